"""The package for Python, installed: data frames and Parquet by its extras, the oldest Python."""

import json
import shutil
import subprocess

import pytest

from tests.clients.running import CLIENTS, install_pip, output

pytestmark = pytest.mark.extended

FRAMES = """
import json
from encounters_client import Encounters
from pyarrow import parquet

with Encounters.from_environment() as hospital:
    polars = hospital.search().to_polars()
    pandas = hospital.search().to_pandas()
    arrow = hospital.search().to_arrow()
    hospital.search().copy_to("stays.parquet")
file = parquet.read_table("stays.parquet")
assert file.num_rows == 0 or json.loads(file["body"][0].as_py())["resourceType"] == "Encounter"
print(json.dumps([
    [polars.height, str(polars.schema["start"])],
    [len(pandas), str(pandas["start"].dtype)],
    [arrow.num_rows, str(arrow.schema.field("start").type)],
    [file.num_rows, str(file.schema.field("start").type)],
]))
"""


@pytest.fixture
def sources(tmp_path):
    """Return a copy of the package, as pip builds within it."""
    ignored = shutil.ignore_patterns("build", "*.egg-info")
    return shutil.copytree(CLIENTS / "python", tmp_path / "sources", ignore=ignored)


def test_frames_have_the_types_of_the_columns(service, sources, tmp_path):
    python = install_pip(tmp_path / "venv", f"{sources}[arrow,pandas,polars]")
    (tmp_path / "main.py").write_text(FRAMES, "utf-8")
    for stays in (25, 0):
        service.open(stays)
        environ = {"PYTHONPATH": "", **service.environ()}
        frames = json.loads(output([python, "main.py"], tmp_path, **environ))
        assert [rows for rows, _ in frames] == [stays] * 4
        assert all("UTC" in start for _, start in frames)


def test_the_oldest_python_runs_it(served, sources, tmp_path):
    oldest = shutil.which("python3.10")
    # A version manager's command may exist without its Python.
    if not oldest or subprocess.run([oldest, "-V"]).returncode:
        pytest.skip("python3.10 is not installed")
    python = install_pip(tmp_path / "venv", str(sources), interpreter=oldest)
    command = python.with_name("encounters-client")
    environ = {"PYTHONPATH": "", **served.environ()}
    output([command, "copy", "--to", "stays.sqlite"], tmp_path, **environ)
    output([command, "sync", "copy.sqlite", "--full"], tmp_path, **environ)
