"""`encounters mapping schema`: what an editor checks is what the loader checks."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from adapters.mapping.schema import all_definitions, editor_schema
from app.cli import main

MAPPINGS = Path(__file__).parents[2] / "mappings"
SHIPPED = {
    file
    for file in MAPPINGS.glob("*/*.yaml")
    if file.parent.name != "profiles" and not file.name.endswith(".test.yaml")
}

OWN = """\
mapping: 1
name: Own
profile: full
time_zone: Europe/Paris
source: {kind: "pas.adapter:Pas", url: "ipc:/run/pas", options: {site: {env: SITE}}}
encounter: {search: [_id], sort: [date]}
"""
EXTENDING = "mapping: 1\nextend: base.yaml\n"

TEXTS = {
    OWN + "patient: {}": True,
    OWN + "patient: {rows: SELECT 1}": False,
    EXTENDING + "encounter: {search: [_id, patient]}": True,
    EXTENDING + "encounter: {fields: {end: {from: left}}}": True,
    EXTENDING + "source: {url: {env: URL}}": True,
    EXTENDING + "encounter: {sources: [{prefix: a-, rows: SELECT 1}]}": True,
    EXTENDING + "encounter: {list: {fixed: a=b}}": True,
    EXTENDING + "encounter: {sources: [{rows: SELECT 1}]}": False,
    EXTENDING + "encounter: {search: [nobody]}": False,
    EXTENDING + "encounter: {fields: {end: {}}}": False,
    EXTENDING + "encounters: {}": False,
}
"""Files of a custom adapter, files that extend another, and whether they are right."""


def is_valid(schema: dict[str, Any], text: bytes | str) -> bool:
    return jsonschema.Draft7Validator(schema).is_valid(yaml.safe_load(text))


def test_what_is_right_is_valid_and_what_is_wrong_is_not() -> None:
    mappings = editor_schema()
    assert [f for f in SHIPPED if not is_valid(mappings, f.read_bytes())] == []
    assert {text: is_valid(mappings, text) for text in TEXTS} == TEXTS


LEADS = re.compile(r"own|http|\w*Sections|Confirmed\w+")
"""What only leads to others has no keys of its own; a file of answers explains itself."""


def test_every_key_is_described() -> None:
    silent = {
        f"{name}.{key}"
        for name, definition in all_definitions().items()
        for key, node in definition.get("properties", {}).items()
        if "description" not in node and not LEADS.fullmatch(name)
    }
    assert not silent


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mapping", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == editor_schema()
