"""The integrator's tools as the image has them: installed, without the source tree."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.testing.hospital import EDGES
from tests.app import provider
from tests.hospital_sql import Tables, mapping_text
from tests.live import ROOT, free_ports

PROJECT = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "wsgi.py")
PACKAGES = ("app", "adapters", "demo", "mappings")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the project under a directory of its own."""
    directory = tmp_path_factory.mktemp("installed")
    project = directory / "project"
    project.mkdir()
    for name in PROJECT:
        shutil.copy(ROOT / name, project)
    for name in PACKAGES:
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, project / name, ignore=skip)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    pip += ["install", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*pip, "--target", str(directory / "site"), str(project)], check=True
    )
    shutil.rmtree(project)
    return directory / "site"


@pytest.fixture
def encounters(site: Path, tmp_path: Path) -> Run:
    """Run the installed console script in an empty directory."""

    def run(
        *arguments: object, under: tuple[str, ...] = ("mapping",), **environ: str
    ) -> "subprocess.CompletedProcess[str]":
        kept = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        return subprocess.run(
            [sys.executable, "-P", "-m", "app.cli", *under, *map(str, arguments)],
            cwd=tmp_path,
            env={**kept, "PYTHONPATH": str(site), **environ},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def test_it_runs_from_where_it_is_installed(site: Path, encounters: Run) -> None:
    printed = subprocess.run(
        [sys.executable, "-P", "-c", "import app; print(app.__file__)"],
        env={"PYTHONPATH": str(site)},
        cwd=site.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout.startswith(str(site))
    assert encounters("--help").returncode == 0


def test_schema_has_the_words_of_the_guide(encounters: Run) -> None:
    told = encounters("schema")
    assert (told.returncode, told.stderr) == (0, "")
    file = json.loads(told.stdout)["definitions"]["File"]
    assert file["properties"]["time_zone"]["description"].startswith("the IANA name")


def test_check_and_explain_shipped_mappings(
    site: Path, encounters: Run, tmp_path: Path
) -> None:
    files = [
        file
        for file in sorted((site / "mappings").glob("*/*.yaml"))
        if file.parent.name != "profiles" and not file.name.endswith(".test.yaml")
    ]
    assert len(files) >= 4
    told = encounters("check", "--json", *files)
    assert told.stderr == ""
    # Identifiers of examples are a warning; none has an error.
    findings = json.loads(told.stdout)["findings"]
    assert findings
    assert "error" not in {f["severity"] for f in findings}
    Tables(f"sqlite:///{tmp_path / 'pas.db'}", EDGES).close()
    demo = site / "mappings" / "demo" / "demo.yaml"
    told = encounters("explain", demo, PAS_URL=f"sqlite:///{tmp_path / 'pas.db'}")
    assert (told.returncode, told.stderr) == (0, "")
    assert "offered" in told.stdout


def test_test_and_preview_a_shipped_mapping(
    site: Path, encounters: Run, tmp_path: Path
) -> None:
    group_a = site / "mappings" / "group-a" / "group-a.yaml"
    told = encounters("test", "--complete", group_a)
    assert (told.returncode, told.stderr) == (0, "")
    row = tmp_path / "row.yaml"
    row.write_text("{id: 1, patient: {ipp: 42}, etat: S}")
    told = encounters("preview", group_a, "--row", row)
    assert (told.returncode, told.stderr) == (0, "")
    assert "Encounter.status = finished" in told.stdout


def test_diff_and_report_read_a_source(encounters: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    (tmp_path / "hospital.yaml").write_text(mapping_text(EDGES), "utf-8")
    told = encounters("diff", *["hospital.yaml"] * 2, "--live", PAS_URL=url)
    assert (told.returncode, told.stderr) == (0, "")
    # Its template is part of the package.
    arguments = ("report", "hospital.yaml", "--live", "--out", "report.html")
    told = encounters(*arguments, PAS_URL=url)
    assert (told.returncode, told.stderr) == (0, "")
    assert "<svg" in (tmp_path / "report.html").read_text("utf-8")


def test_new_writes_a_draft_with_open_questions(
    encounters: Run, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    told = encounters("new", "--from", "env:PAS_URL", "--out", "pas.yaml", PAS_URL=url)
    # A word says which column is the status, and the draft marks it.
    assert told.returncode == 0, told.stderr
    assert "pas.db" not in told.stdout + told.stderr
    assert "# ?" in (tmp_path / "pas.yaml").read_text("utf-8")


def test_settings_and_doctor_look_at_a_deployment(
    site: Path, encounters: Run, tmp_path: Path
) -> None:
    Tables(f"sqlite:///{tmp_path / 'pas.db'}", EDGES).close()
    (tmp_path / "hospital.yaml").write_text(mapping_text(EDGES), "utf-8")
    nobody = f"127.0.0.1:{free_ports()}"
    changed = {
        "BASE_URL": f"https://{nobody}/fhir/v3",
        "KEY_SET_URL": f"https://{nobody}/keys",
        "REDIS_URL": f"redis://{nobody}",
    }
    environ = provider.environ(tmp_path / "hospital.yaml", **changed)
    environ["PAS_URL"] = f"sqlite:///{tmp_path / 'pas.db'}"
    told = encounters(under=("settings",), **environ)
    assert (told.returncode, told.stderr) == (0, "")
    assert "ENCOUNTERS_SEAL_KEYS" in told.stdout
    told = encounters("--json", under=("doctor",), **environ)
    assert (told.returncode, told.stderr) == (1, "")
    checks = [check["check"] for check in json.loads(told.stdout)["checks"]]
    assert {"source", "redis", "key set", "disk"} < set(checks)


def test_a_base_of_the_package_is_extended(encounters: Run, tmp_path: Path) -> None:
    text = "mapping: 1\nextend: fhir-r4/fhir-r4.yaml\nname: Own\n"
    (tmp_path / "own.yaml").write_text(text, "utf-8")
    told = encounters("check", "own.yaml", FHIR_URL="https://r4.example")
    assert (told.returncode, told.stderr) == (0, "")
