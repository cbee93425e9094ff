"""FHIR libraries with the settings of docs/clients.md, against the demo."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.clients import programs
from tests.clients.running import install_pip, java, maven, output
from tests.docs.pages import CLIENTS, blocks
from tests.docs.running import Demo

JAVA = Path(__file__).parent / "java"
IDS = ["809", "414", "385", "1787", "1643", "1606", "1570", "1449", "1436", "8"]
"""The stays of patient 158, the newest first: on three pages of four."""


@pytest.mark.parametrize(
    ("package", "program"),
    [("fhirpy==2.3.1", programs.FHIRPY), ("fhirclient==3.2.0", programs.FHIRCLIENT)],
    ids=["fhirpy", "fhirclient"],
)
def test_python(
    package: str, program: str, access: Mapping[str, str], tmp_path: Path
) -> None:
    python = install_pip(tmp_path / "venv", package)
    (tmp_path / "main.py").write_text(program)
    printed = output([python, "main.py"], tmp_path, PYTHONPATH="", **access)
    assert json.loads(printed) == IDS


def test_java(demo: Demo, tmp_path: Path) -> None:
    project = tmp_path / "hapi"
    shutil.copytree(JAVA / "hapi", project)
    maven(project, *(b.text for b in blocks(CLIENTS.read_text("utf-8"), "java")))
    first, *lines = java(project, "Stays", demo.client()).splitlines()
    assert first == "10 stays"
    assert [line.split()[0] for line in lines] == IDS
    assert java(project, "Errors", demo.client()) == "410 not-found\n"
