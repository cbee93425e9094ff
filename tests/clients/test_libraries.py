"""FHIR libraries with the settings of docs/call/libraries.md, against the demo."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.clients import programs
from tests.clients.running import install_pip, java, maven, output
from tests.docs.pages import CALL, blocks
from tests.npm import npm_install

pytestmark = pytest.mark.extended

JAVA = Path(__file__).parent / "java"
IDS = ["809", "414", "385", "1787", "1643", "1606", "1570", "1449", "1436", "8"]
"""The stays of patient 158, the newest first: on three pages of four."""


@pytest.mark.parametrize(
    ("package", "program"),
    [
        ("fhirpy==2.3.1", programs.FHIRPY),
        ("fhirclient==3.2.0", programs.FHIRCLIENT),
        ("fhir-pyrate==0.2.6", programs.FHIR_PYRATE),
    ],
    ids=["fhirpy", "fhirclient", "fhir-pyrate"],
)
def test_python(
    package: str, program: str, access: Mapping[str, str], tmp_path: Path
) -> None:
    python = install_pip(tmp_path / "venv", package)
    (tmp_path / "main.py").write_text(program)
    printed = output([python, "main.py"], tmp_path, PYTHONPATH="", **access)
    assert json.loads(printed) == IDS


@pytest.mark.parametrize(
    ("package", "program"),
    [
        ("fhir-kit-client@2.0.3", programs.FHIR_KIT_CLIENT),
        ("fhirclient@2.6.3", programs.SMART_FHIRCLIENT),
        ("fhir.js@0.0.22", programs.FHIR_JS),
    ],
    ids=["fhir-kit-client", "smart", "fhir.js"],
)
def test_javascript(
    package: str, program: str, access: Mapping[str, str], tmp_path: Path
) -> None:
    (tmp_path / "package.json").write_text("{}")
    npm_install(tmp_path, package)
    (tmp_path / "main.mjs").write_text(program)
    assert json.loads(output(["node", "main.mjs"], tmp_path, **access)) == IDS


def test_java(access: Mapping[str, str], tmp_path: Path) -> None:
    project = tmp_path / "hapi"
    shutil.copytree(JAVA / "hapi", project)
    page = (CALL / "libraries.md").read_text("utf-8")
    maven(project, *(block.text for block in blocks(page, "java")))
    first, *lines, error = java(project, "Stays", access).splitlines()
    assert (first, error) == ("10 stays", "410 not-found")
    assert [line.split()[0] for line in lines] == IDS
