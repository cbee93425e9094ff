"""Clients that generators make of OpenAPI: they compile, follow pages and keep their content."""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.clients import programs
from tests.clients.running import install_pip, java, maven, output
from tests.demo.running import Demo
from tests.live import ROOT
from tests.npm import npm_install

pytestmark = pytest.mark.extended

JAVA = Path(__file__).parent / "java"


@pytest.fixture(scope="module")
def description(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the OpenAPI description of the demo, written without its database."""
    file = tmp_path_factory.mktemp("description") / "openapi.json"
    environ = {
        "ENCOUNTERS_BASE_URL": demo.base_url,
        "ENCOUNTERS_MAPPING": str(ROOT / "mappings" / "demo" / "demo.yaml"),
        "ENCOUNTERS_TOKEN_URL": demo.client()["TOKEN_URL"],
    }
    command = ["env", "-u", "PAS_URL", "-u", "PAS_KEY", sys.executable, "-m", "app.cli"]
    file.write_text(output([*command, "openapi"], ROOT, **environ), "utf-8")
    return file


def assert_has_pages(printed: str, access: Mapping[str, str]) -> None:
    """Check that a program has printed all pages, with all that the service sends."""
    pages = json.loads(printed)
    assert [_content(page) for page in pages] == [*_contents(access)]
    next_links = [
        [link["relation"] for link in page["link"]].count("next") for page in pages
    ]
    assert next_links == [1, 1, 0]


def _contents(access: Mapping[str, str]) -> Iterator[Any]:
    """Yield the content of each page, as the service sends it."""
    url, query = f"{access['BASE']}/Encounter", {"patient": "Patient/158", "_count": 4}
    headers = {"Authorization": f"Bearer {access['TOKEN']}"}
    page = requests.get(url, params=query, headers=headers, timeout=60).json()
    yield _content(page)
    while links := [link["url"] for link in page["link"] if link["relation"] == "next"]:
        page = requests.get(links[0], headers=headers, timeout=60).json()
        yield _content(page)


def _content(page: Any) -> Any:
    # Ids of pages are drawn for each search.
    entries = [
        (each["fullUrl"], each["resource"], each["search"]) for each in page["entry"]
    ]
    return page["resourceType"], page["type"], page["total"], entries


def test_python(description: Path, access: Mapping[str, str], tmp_path: Path) -> None:
    python = install_pip(tmp_path / "venv", "openapi-python-client==0.29.1")
    (tmp_path / "config.yml").write_text("package_name_override: client\n")
    generator = str(python.parent / "openapi-python-client")
    options = ["--meta", "none", "--config", "config.yml", "--output-path", "client"]
    output([generator, "generate", "--path", str(description), *options], tmp_path)
    output([str(python), "-m", "compileall", "-q", "client"], tmp_path)
    (tmp_path / "main.py").write_text(programs.PYTHON_GENERATED)
    printed = output([str(python), "main.py"], tmp_path, PYTHONPATH="", **access)
    assert_has_pages(printed, access)


def test_typescript(
    description: Path, access: Mapping[str, str], tmp_path: Path
) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}')
    npm_install(
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
    assert_has_pages(output(["node", "main.js"], tmp_path, **access), access)


def test_java(description: Path, access: Mapping[str, str], tmp_path: Path) -> None:
    paths = json.loads(description.read_text("utf-8"))["paths"]

    def arguments(path: str, values: Mapping[str, str]) -> str:
        parameters = paths[path]["get"]["parameters"]
        return ", ".join(values.get(each["name"], "null") for each in parameters)

    search = arguments("/Encounter", {"patient": '"Patient/158"', "_count": "4"})
    names = ("_id", "_index", "_searchAfter")
    page = arguments("/Bundle", {name: f'query.get("{name}")' for name in names})
    project = tmp_path / "generated"
    shutil.copytree(JAVA / "generated", project)
    shutil.copy(description, project / "openapi.json")
    program = programs.JAVA_GENERATED.replace("SEARCH_ARGUMENTS", search)
    program = program.replace("PAGE_ARGUMENTS", page)
    maven(project, program)
    assert_has_pages(java(project, "Main", access), access)
