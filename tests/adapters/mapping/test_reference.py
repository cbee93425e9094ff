"""The pages of docs/bring: their examples load."""

import re
from pathlib import Path
from textwrap import indent

from adapters.contract import ResourceType
from adapters.mapping.load import load_mapping
from adapters.mapping.slots import SLOTS
from tests.docs.pages import BRING, blocks, table


def test_codes_of_each_slot() -> None:
    text = (BRING / "values.md").read_text("utf-8")
    allowed = {row[0]: row[1] for row in table(text, "slot")}
    slots = {slot.name: slot for kind in ResourceType for slot in SLOTS[kind]}
    for name in ("status", "class", "gender"):
        assert re.split(r"[,;] ", allowed[name]) == list(slots[name].codes)


CARRIES = """\
mapping: 1
name: Example
profile: full
time_zone: Europe/Paris
source: {kind: sql, url: "sqlite:///pas.db"}
codes:
  states: {table: {S: finished}}
  number_type: {table: {IPP: PI, INS-NIR: INS-NIR}}
  number_system: {table: {IPP: "urn:oid:1.2.3", INS-NIR: "urn:oid:1.2.4"}}
encounter:
  rows: SELECT id, patient, state FROM stays
  fields: {id: {from: id}, patient_id: {from: patient}, status: {from: state, codes: states}}
patient:
  rows: SELECT id FROM patients
  fields:
    id: {from: id}
"""


def test_the_example_of_an_item_that_hangs_on_another_table_loads(
    tmp_path: Path,
) -> None:
    (block,) = blocks((BRING / "patients.md").read_text("utf-8"), "yaml")
    file = tmp_path / "mapping.yaml"
    file.write_text(CARRIES + indent(block.text, "    "), encoding="utf-8")
    mapping = load_mapping(file, None)
    (item,) = mapping.resources[ResourceType.PATIENT].items["identifiers"]
    assert item.only_if is not None
