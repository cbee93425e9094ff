"""`encounters mapping schema`: what an editor checks is what the loader checks."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from app.cli import main
from app.cli.schema import schema_of_mappings, schema_of_profiles

MAPPINGS = Path(__file__).parents[3] / "mappings"
PROFILES = sorted((MAPPINGS / "profiles").glob("*.yaml"))
SHIPPED = sorted(
    file
    for file in MAPPINGS.glob("*/*.yaml")
    if file not in PROFILES and not file.name.endswith(".test.yaml")
)


def faults(schema: dict[str, Any], data: object) -> list[str]:
    return [e.message for e in jsonschema.Draft7Validator(schema).iter_errors(data)]


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_mappings_are_valid_as_editors_read_them(file: Path) -> None:
    assert faults(schema_of_mappings(), yaml.safe_load(file.read_bytes())) == []


@pytest.mark.parametrize("file", PROFILES, ids=lambda file: file.stem)
def test_shipped_profiles_are_valid(file: Path) -> None:
    assert faults(schema_of_profiles(), yaml.safe_load(file.read_bytes())) == []


OWN = """\
mapping: 1
name: Own
profile: full
time_zone: Europe/Paris
source: {kind: "pas.adapter:Pas", url: "ipc:/run/pas", options: {site: {env: SITE}}}
encounter: {search: [_id], sort: [date]}
patient: {}
"""


def test_a_class_of_the_hospitals_own() -> None:
    assert faults(schema_of_mappings(), yaml.safe_load(OWN)) == []
    wrong = OWN.replace("patient: {}", "patient: {rows: SELECT 1}")
    assert faults(schema_of_mappings(), yaml.safe_load(wrong))


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("encounter: {search: [_id, patient]}", True),
        ("encounter: {fields: {end: {from: left}}}", True),
        ("source: {url: {env: URL}}", True),
        ("without: [encounter.fields.end]", True),
        ("encounter: {sources: [{prefix: a-, rows: SELECT 1}]}", True),
        ("encounter: {list: {fixed: {a: b}}}", True),
        ("encounter: {sources: [{rows: SELECT 1}]}", False),
        ("encounter: {search: [nobody]}", False),
        ("encounter: {fields: {end: {}}}", False),
        ("encounters: {}", False),
    ],
)
def test_a_file_that_extends_another_says_what_is_different(
    said: str, right: bool
) -> None:
    data = yaml.safe_load(f"mapping: 1\nextend: base.yaml\n{said}\n")
    assert (faults(schema_of_mappings(), data) == []) is right


def test_every_key_is_described_by_the_guide() -> None:
    """A key of a small shape, told with the key that holds it, needs no line of its own."""
    silent = {
        f"{name}.{key}"
        for name, table in schema_of_mappings()["definitions"].items()
        for key, node in table.get("properties", {}).items()
        if "description" not in node
    }
    small = (
        "Basic OAuth2 Session Error Read Counting Paging Token System Sort Condition"
        " Header Bound"
    )
    # What only leads to other definitions has no keys of its own.
    leads = re.compile(r"own|http|\w*Sections|\w+Searches|\w+Sort|ExtendingSource")
    found = {name.partition(".")[0] for name in silent} - {
        *small.split(),
        "FromEnvironment",
    }
    assert {name for name in found if not leads.fullmatch(name)} == set()


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mapping", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema_of_mappings()
    assert main(["mapping", "schema", "--profile"]) == 0
    assert json.loads(capsys.readouterr().out) == schema_of_profiles()
