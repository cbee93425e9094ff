"""`make release`: what it builds is whole, and runs without the source tree."""

import hashlib
import json
import os
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.live import ROOT

GENERATE = runpy.run_path(str(ROOT / "deploy" / "kubernetes" / "generate.py"))
VERSION = GENERATE["version"]()
HELM = GENERATE["helm"]()
WHEEL = f"encounters-{VERSION}-py3-none-any.whl"
CLIENT_WHEEL = f"encounters_client-{VERSION}-py3-none-any.whl"
CLIENT_TGZ = f"encounters-client-{VERSION}.tgz"

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        not (ROOT / ".git").exists() or not shutil.which("git"),
        reason="a release is made of a commit, and this is no checkout of git",
    ),
]


def git(*arguments, cwd):
    identity = ("-c", "user.name=Release", "-c", "user.email=release@example.org")
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """Return a clean clone of what would be committed here, which builds no image or helm."""
    folder = tmp_path_factory.mktemp("clone")
    every = ("--cached", "--others", "--exclude-standard")
    for name in git("ls-files", *every, cwd=ROOT).splitlines():
        if (ROOT / name).is_file() and not (ROOT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    (folder / ".ci" / "image.py").write_text("")
    (folder / ".ci" / "helm").write_text("#!/bin/sh\nexit 1\n")
    git("init", "--quiet", cwd=folder)
    git("add", "--all", cwd=folder)
    git("commit", "--quiet", "--message", "A release", cwd=folder)
    return folder


def release(clone):
    """Build a release in a clone."""
    kept = {k: os.environ[k] for k in ("PATH", "HOME") if k in os.environ}
    environ = {**kept, "HELM": HELM or "", "PYTHON": sys.executable}
    command = [str(clone / ".ci" / "release")]
    return subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def dist(clone):
    """Return the folder of a release."""
    done = release(clone)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("LEFT OUT: the chart" in done.stdout) is (HELM is None)
    packed = (clone / "dist" / CLIENT_TGZ).exists()
    assert ("LEFT OUT: the client for TypeScript" in done.stdout) is not packed
    return clone / "dist"


def test_a_release_holds_all_that_an_operator_downloads(dist):
    chart = {f"encounters-{VERSION}.tgz"} if HELM else set()
    files = {file.name: file for file in dist.iterdir()}
    assert files.keys() - {CLIENT_TGZ} == chart | {
        WHEEL,
        CLIENT_WHEEL,
        f"encounters_client-{VERSION}.tar.gz",
        f"encounters-{VERSION}.tar.gz",
        f"encounters-{VERSION}-wheel.cdx.json",
        f"encounters-deploy-{VERSION}.tar.gz",
        f"encounters-docs-{VERSION}.tar.gz",
        *("requirements.lock", "requirements-tracing.lock", "requirements-image.lock"),
        *("RELEASE-NOTES.md", "SHA256SUMS"),
    }
    lines = files.pop("SHA256SUMS").read_text().splitlines()
    sums = dict(reversed(line.split("  ")) for line in lines)
    assert sums == {name: sha256(file) for name, file in files.items()}


def sha256(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_notes_are_the_first_section_of_the_changelog(dist):
    notes = (dist / "RELEASE-NOTES.md").read_text("utf-8")
    assert VERSION in notes.splitlines()[0]
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    first = changelog.split("\n## ")[1]
    assert notes.partition("\n## ")[2].strip() == first.strip()


def test_wheel_sdist_bill_archive_and_chart_are_of_this_release(dist):
    with zipfile.ZipFile(dist / WHEEL) as wheel:
        installed = {n for n in wheel.namelist() if ".dist-info/" not in n}
    with tarfile.open(dist / f"encounters-{VERSION}.tar.gz") as sdist:
        sources = {m.name.partition("/")[2] for m in sdist.getmembers() if m.isfile()}
    assert installed <= sources
    assert "mappings/group-a/group-a.yaml" in installed
    assert not [n for n in sources if n.startswith("tests/")]
    text = (dist / f"encounters-{VERSION}-wheel.cdx.json").read_text("utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bom = json.loads(text)
    (digest,) = bom["metadata"]["component"]["hashes"]
    assert digest["content"] == sha256(dist / WHEEL)
    names = {component["name"] for component in bom["components"]}
    assert {"flask", "psycopg", "opentelemetry-sdk"} <= names
    assert all(component["licenses"] for component in bom["components"])
    with tarfile.open(dist / f"encounters-deploy-{VERSION}.tar.gz") as archive:
        deployed = set(archive.getnames())
    for file in ("compose/compose.yaml", "compose/.env", "pin", "chart/example.yaml"):
        assert f"encounters-deploy-{VERSION}/deploy/{file}" in deployed
    if HELM:
        chart = str(dist / f"encounters-{VERSION}.tgz")
        command = [HELM, "show", "chart", chart]
        shown = subprocess.run(command, capture_output=True, text=True, check=True)
        assert f"appVersion: {VERSION}\n" in shown.stdout


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory):
    """Run commands of a new environment with the wheels; what they require is of this one."""
    folder = tmp_path_factory.mktemp("environment")
    bin_ = folder / "venv" / "bin"
    venv = [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")]
    subprocess.run(venv, check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    pip += ["--python", str(bin_ / "python"), "install", "--no-index", "--no-deps"]
    # Without PYTHONPATH, by which pip would see the source tree as installed.
    environ = {"PATH": os.environ["PATH"]}
    wheels = [str(dist / WHEEL), str(dist / CLIENT_WHEEL)]
    subprocess.run([*pip, *wheels], env=environ, check=True)
    (site,) = folder.glob("venv/lib/python3.*/site-packages")
    # A line of a .pth file adds a folder alone: no .pth in it is read, ours neither.
    shared = [path for path in sys.path if path.endswith("site-packages")]
    (site / "shared.pth").write_text("\n".join(shared))

    def run(command, *arguments):
        command = [str(bin_ / command), *map(str, arguments)]
        options = {"cwd": folder, "env": environ, "timeout": 120}
        return subprocess.run(command, capture_output=True, text=True, **options)

    return run


def test_the_wheel_runs_without_the_source_tree(installed):
    printed = installed("python", "-c", "import app; print(app.__file__)")
    assert "venv/lib" in printed.stdout
    assert VERSION in installed("encounters", "--version").stdout
    listed = "import mappings; print(*mappings.__path__)"
    folder = Path(installed("python", "-c", listed).stdout.strip())
    for name in ("demo/demo", "group-a/group-a", "group-b/group-b"):
        file = folder / f"{name}.yaml"
        assert "venv/lib" in str(file)
        checked = installed("encounters", "mapping", "check", "--json", file)
        # Their identifiers are those of examples: warnings, and no error.
        findings = json.loads(checked.stdout)["findings"]
        assert {each["severity"] for each in findings} <= {"warning", "note"}
    assert "the IANA name" in installed("encounters", "mapping", "schema").stdout


def test_the_client_for_python_is_whole(dist, installed):
    with zipfile.ZipFile(dist / CLIENT_WHEEL) as wheel:
        files = wheel.namelist()
    assert "encounters_client/py.typed" in files
    assert [name for name in files if name.endswith("licenses/LICENSE")]
    helped = installed("encounters-client", "--help")
    assert (helped.returncode, helped.stderr) == (0, "")


def test_the_client_for_typescript_is_whole(dist):
    file = dist / CLIENT_TGZ
    if not file.exists():
        pytest.skip("npm or its registry")
    with tarfile.open(file) as packed:
        names = set(packed.getnames())
    for name in ("LICENSE", "dist/index.js", "dist/index.d.ts", "package.json"):
        assert f"package/{name}" in names
    assert not [name for name in names if name.startswith("package/src/")]


def test_a_release_is_made_of_a_commit(clone, dist):
    (clone / "README.md").write_text("changed")
    done = release(clone)
    git("checkout", "--quiet", "README.md", cwd=clone)
    assert (done.returncode, done.stdout) == (1, "")
    assert dist.exists()
