"""`encounters mapping schema`: what an editor checks is what the loader checks."""

import re

import jsonschema
import yaml

from adapters.mapping.schema import all_definitions, editor_schema
from tests.toolkit.places import SHIPPED

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


def test_what_is_right_is_valid_and_what_is_wrong_is_not(mapping):
    schema = mapping("schema").document
    assert schema == editor_schema()

    def is_valid(text):
        return jsonschema.Draft7Validator(schema).is_valid(yaml.safe_load(text))

    assert [file for file in SHIPPED if not is_valid(file.read_bytes())] == []
    assert {text: is_valid(text) for text in TEXTS} == TEXTS


LEADS = re.compile(r"own|http|\w*Sections|Confirmed\w+")
"""What only leads to others has no keys of its own; a file of answers explains itself."""


def test_every_key_is_described():
    silent = {
        f"{name}.{key}"
        for name, definition in all_definitions().items()
        for key, node in definition.get("properties", {}).items()
        if "description" not in node and not LEADS.fullmatch(name)
    }
    assert not silent
