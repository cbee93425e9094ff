"""What others wrote and the pages load: as `make vendor` built it, under known licences."""

import gzip
import hashlib
import json
import re
import runpy
import shutil
import subprocess

import pytest

from tests.live import ROOT
from tests.npm import npm_install

SOURCE = ROOT / "tools" / "vendor"
EXPLORER, WORKBENCH = "explorer/static/vendor", "toolkit/static/vendor"
FOLDERS = (EXPLORER, WORKBENCH, "tests/browser/axe")
ALLOWED = runpy.run_path(str(ROOT / ".ci" / "licences.py"))["ALLOWED"] | {"0BSD"}


def files(folder):
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix() for path in paths}


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_versions_and_licences_are_those_of_the_table(folder):
    folder = ROOT / folder
    table = json.loads((folder / "VERSIONS.json").read_text("utf-8"))
    packed = {name for name in files(folder) if name.endswith(".gz")}
    assert files(folder) - packed - {"VERSIONS.json"} == set(table["files"])
    for name, row in table["files"].items():
        content = (folder / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == row["sha256"], name
    for name in packed:
        content = gzip.decompress((folder / name).read_bytes())
        assert content == (folder / name.removesuffix(".gz")).read_bytes(), name
    lock = (SOURCE / "package-lock.json").read_text("utf-8")
    # Whoever installs has a registry of their own.
    assert '"resolved"' not in lock
    texts = (folder / "LICENSES.txt").read_text("utf-8")
    assert table["packages"]
    for name, package in table["packages"].items():
        version = package["version"]
        locked = json.loads(lock)["packages"][f"node_modules/{name}"]
        assert version == locked["version"], name
        assert package["licence"] in ALLOWED, name
        heading = f"^{re.escape(name)} {re.escape(version)}$"
        assert re.search(heading, texts, re.MULTILINE), name


@pytest.mark.parametrize(
    ("folder", "scripts", "limit"),
    [
        (EXPLORER, {"htmx.js", "pico.css"}, 40_000),
        (WORKBENCH, {"htmx.js", "pico.css", "editor.js"}, 220_000),
    ],
)
def test_pages_stay_light(folder, scripts, limit):
    """60 and 250 kB less what is for the pages' own scripts and styles."""
    packed = [*(ROOT / folder).glob("*.gz")]
    assert {file.stem for file in packed} == scripts
    assert sum(file.stat().st_size for file in packed) < limit
    assert b"data:" not in (ROOT / folder / "pico.css").read_bytes()


@pytest.mark.extended
def test_a_build_writes_the_same_files(tmp_path):
    source, root = tmp_path / "vendor", tmp_path / "root"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("node_modules"))
    npm_install(source)
    build = ["node", "build.mjs", str(root)]
    subprocess.run(build, cwd=source, check=True, timeout=300)
    for folder in FOLDERS:
        built, here = root / folder, ROOT / folder
        assert files(built) == files(here)
        # How well zlib compresses depends on its version.
        for name in (name for name in files(built) if not name.endswith(".gz")):
            assert (built / name).read_bytes() == (here / name).read_bytes(), name
