"""What others wrote and the pages load: as `make vendor` built it, under known licences."""

import gzip
import hashlib
import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.live import ROOT
from tests.npm import npm_install

SOURCE = ROOT / "tools" / "vendor"
EXPLORER, WORKBENCH = "explorer/static/vendor", "toolkit/static/vendor"
FOLDERS = (EXPLORER, WORKBENCH, "tests/browser/axe")
ALLOWED = runpy.run_path(str(ROOT / ".ci" / "licences.py"))["ALLOWED"] | {"0BSD"}
SCRIPTS = {
    EXPLORER: ("htmx.js", "pico.css"),
    WORKBENCH: ("htmx.js", "pico.css", "editor.js"),
}


def versions(folder: str) -> Any:
    return json.loads((ROOT / folder / "VERSIONS.json").read_text("utf-8"))


def files(folder: Path) -> set[str]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix() for path in paths}


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_versions_and_licences_are_those_of_the_table(folder: str) -> None:
    table = versions(folder)
    beside = {"VERSIONS.json", *(f"{name}.gz" for name in table["files"])}
    assert files(ROOT / folder) - beside == set(table["files"])
    for name, row in table["files"].items():
        content = (ROOT / folder / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == row["sha256"], name
    lock = (SOURCE / "package-lock.json").read_text("utf-8")
    # Whoever installs has a registry of their own.
    assert '"resolved"' not in lock
    texts = (ROOT / folder / "LICENSES.txt").read_text("utf-8")
    assert table["packages"]
    for name, package in table["packages"].items():
        version = package["version"]
        locked = json.loads(lock)["packages"][f"node_modules/{name}"]
        assert version == locked["version"], name
        assert package["licence"] in ALLOWED, name
        heading = f"^{re.escape(name)} {re.escape(version)}$"
        assert re.search(heading, texts, re.MULTILINE), name


@pytest.mark.parametrize("folder", SCRIPTS)
def test_compressed_files_hold_the_same(folder: str) -> None:
    scripts = [n for n in versions(folder)["files"] if n.endswith((".js", ".css"))]
    assert {*scripts} == {*SCRIPTS[folder]}
    for name in scripts:
        file = ROOT / folder / name
        assert gzip.decompress(Path(f"{file}.gz").read_bytes()) == file.read_bytes()


def test_pages_stay_light() -> None:
    # 60 and 250 kB less what is for the pages' own scripts and styles.
    for folder, limit in ((EXPLORER, 40_000), (WORKBENCH, 220_000)):
        files = [ROOT / folder / f"{name}.gz" for name in SCRIPTS[folder]]
        assert sum(file.stat().st_size for file in files) < limit
        assert b"data:" not in (ROOT / folder / "pico.css").read_bytes()


@pytest.mark.extended
def test_a_build_writes_the_same_files(tmp_path: Path) -> None:
    source, root = tmp_path / "vendor", tmp_path / "root"
    ignored = shutil.ignore_patterns("node_modules")
    shutil.copytree(SOURCE, source, ignore=ignored)
    npm_install(source)
    subprocess.run(
        ["node", "build.mjs", str(root)], cwd=source, check=True, timeout=300
    )
    for folder in FOLDERS:
        built, here = root / folder, ROOT / folder
        assert files(built) == files(here)
        # How well zlib compresses depends on its version.
        for name in (each for each in files(built) if not each.endswith(".gz")):
            assert (built / name).read_bytes() == (here / name).read_bytes(), name
