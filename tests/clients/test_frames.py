"""The package for Python, installed: data frames and Parquet by its extras, the oldest Python."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.cases import COMPLETE
from tests.clients.programs import FRAMES
from tests.clients.running import CLIENTS, install_pip, output, run
from tests.clients.service import Service

pytestmark = pytest.mark.extended


def sources(folder: Path) -> Path:
    """Return a copy of the package, as pip builds within it."""
    ignored = shutil.ignore_patterns("build", "*.egg-info")
    return shutil.copytree(CLIENTS / "python", folder / "sources", ignore=ignored)


def test_frames_have_the_types_of_the_columns(service: Service, tmp_path: Path) -> None:
    package = f"{sources(tmp_path)}[arrow,pandas,polars]"
    python = install_pip(tmp_path / "venv", package)
    (tmp_path / "main.py").write_text(FRAMES, "utf-8")
    for stays in (25, 0):
        service.open(stays)
        environ = {"PYTHONPATH": "", **service.environ()}
        frames = json.loads(output([python, "main.py"], tmp_path, **environ))
        assert frames.keys() == {"polars", "pandas", "arrow", "parquet"}
        for name, frame in frames.items():
            assert frame["rows"] == stays, name
            assert "UTC" in frame["start"], name


def test_the_oldest_python_runs_it(served: Service, tmp_path: Path) -> None:
    oldest = shutil.which("python3.10")
    # A version manager's command may exist without its Python.
    if not oldest or subprocess.run([oldest, "-V"], check=False).returncode:
        pytest.skip("python3.10 is not installed")
    python = install_pip(tmp_path / "venv", str(sources(tmp_path)), interpreter=oldest)
    command = (str(python.parent / "encounters-client"),)
    environ = {**served.environ(), "PYTHONPATH": ""}
    for arguments in (
        ("copy", "--to", str(tmp_path / "stays.sqlite")),
        ("sync", str(tmp_path / "copy.sqlite"), "--full"),
    ):
        done = run(command, environ, *arguments)
        assert done.returncode == COMPLETE, done.stderr
