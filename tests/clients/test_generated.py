"""Clients that generators make of OpenAPI: they compile, fetch a page and keep its content."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.clients import programs
from tests.clients.running import install_npm, install_pip, java, maven
from tests.docs.running import Demo
from tests.live import ROOT

JAVA = Path(__file__).parent / "java"


@pytest.fixture(scope="module")
def description(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the OpenAPI description of the demo."""
    out = tmp_path_factory.mktemp("kit")
    (database,) = demo.directory.glob("hospital-*.sqlite")
    environ = {
        **os.environ,
        "ENCOUNTERS_BASE_URL": demo.base_url,
        "ENCOUNTERS_MAPPING": str(ROOT / "mappings" / "demo" / "demo.yaml"),
        "PAS_URL": f"sqlite:///{database}",
    }
    command = [sys.executable, "-m", "app.cli", "kit", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, env=environ, check=True, timeout=120)
    return out / "openapi.json"


def output(command: list[str], directory: Path, **environ: str) -> str:
    """Run a program to its end; return what it prints."""
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_is_page(printed: str, access: Mapping[str, str]) -> None:
    """Check that a program has printed a page with all that the service sends."""
    answer = requests.get(
        f"{access['BASE']}/Encounter",
        params={"patient": "Patient/158", "_count": 5},
        headers={"Authorization": f"Bearer {access['TOKEN']}"},
        timeout=60,
    )
    page, expected = json.loads(printed), answer.json()
    # Ids of pages are drawn for each search.
    assert _content(page) == _content(expected)
    assert [link["relation"] for link in page["link"]] == ["self", "next"]
    assert page["total"] == expected["total"]


def _content(page: Any) -> Any:
    return [
        (each["fullUrl"], each["resource"], each["search"]) for each in page["entry"]
    ]


def test_python(description: Path, access: Mapping[str, str], tmp_path: Path) -> None:
    python = install_pip(tmp_path / "venv", "openapi-python-client==0.29.1")
    (tmp_path / "config.yml").write_text("package_name_override: client\n")
    generator = str(python.parent / "openapi-python-client")
    options = ["--meta", "none", "--config", "config.yml", "--output-path", "client"]
    output([generator, "generate", "--path", str(description), *options], tmp_path)
    output([str(python), "-m", "compileall", "-q", "client"], tmp_path)
    (tmp_path / "main.py").write_text(programs.PYTHON_GENERATED)
    printed = output([str(python), "main.py"], tmp_path, PYTHONPATH="", **access)
    assert_is_page(printed, access)


def test_typescript(
    description: Path, access: Mapping[str, str], tmp_path: Path
) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    install_npm(
        tmp_path,
        "openapi-typescript@7.13.0",
        "openapi-fetch@0.17.0",
        "typescript@5.9.3",
        "@types/node@20.19.43",
    )
    tools = tmp_path / "node_modules" / ".bin"
    generate = [str(tools / "openapi-typescript"), str(description)]
    output([*generate, "--output", "schema.d.ts"], tmp_path)
    (tmp_path / "main.ts").write_text(programs.TYPESCRIPT_GENERATED)
    options = ["--strict", "--target", "ES2022", "--module", "NodeNext"]
    output([str(tools / "tsc"), *options, "--types", "node", "main.ts"], tmp_path)
    assert_is_page(output(["node", "main.js"], tmp_path, **access), access)


def test_java(description: Path, access: Mapping[str, str], tmp_path: Path) -> None:
    document = json.loads(description.read_text("utf-8"))
    values = {"patient": '"Patient/158"', "_count": "5"}
    parameters = document["paths"]["/Encounter"]["get"]["parameters"]
    arguments = ", ".join(values.get(each["name"], "null") for each in parameters)
    project = tmp_path / "generated"
    shutil.copytree(JAVA / "generated", project)
    shutil.copy(description, project / "openapi.json")
    program = programs.JAVA_GENERATED.replace("(ARGUMENTS)", f"({arguments})")
    maven(project, "Main", program)
    assert_is_page(java(project, "Main", access), access)
