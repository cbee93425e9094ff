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


def test_shipped_mappings_are_checked_explained_and_tried(
    site: Path, encounters: Run, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    files = [
        file
        for file in sorted((site / "mappings").glob("*/*.yaml"))
        if file.parent.name != "profiles" and not file.name.endswith(".test.yaml")
    ]
    assert len(files) >= 4
    done = encounters("check", "--json", *files)
    # Identifiers of examples are a warning; none has an error.
    findings = json.loads(done.stdout)["findings"]
    assert findings
    assert "error" not in {f["severity"] for f in findings}
    group_a = site / "mappings" / "group-a" / "group-a.yaml"
    (tmp_path / "row.yaml").write_text("{id: 1, patient: {ipp: 42}, etat: S}")
    (tmp_path / "hospital.yaml").write_text(mapping_text(EDGES), "utf-8")
    base = "mapping: 1\nextend: fhir-r4/fhir-r4.yaml\nname: Own\n"
    (tmp_path / "own.yaml").write_text(base, "utf-8")
    report = ("report", "hospital.yaml", "--live", "--out", "report.html")
    for arguments, words in (
        (("explain", site / "mappings" / "demo" / "demo.yaml"), "offered"),
        (("test", "--complete", group_a), ""),
        (("preview", group_a, "--row", "row.yaml"), "Encounter.status = finished"),
        (("schema",), "the IANA name"),
        (("diff", "hospital.yaml", "hospital.yaml", "--live"), ""),
        (report, ""),
        (("check", "own.yaml"), ""),
        (("new", "--from", "env:PAS_URL", "--out", "pas.yaml"), ""),
    ):
        done = encounters(*arguments, PAS_URL=url, FHIR_URL="https://r4.example")
        assert done.returncode == 0, (arguments, done.stderr)
        assert words in done.stdout
    assert "<svg" in (tmp_path / "report.html").read_text("utf-8")
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
    done = encounters(under=("settings",), **environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ENCOUNTERS_SEAL_KEYS" in done.stdout
    done = encounters("--json", under=("doctor",), **environ)
    assert (done.returncode, done.stderr) == (1, "")
    checks = [check["check"] for check in json.loads(done.stdout)["checks"]]
    assert {"source", "redis", "key set", "disk"} < set(checks)
