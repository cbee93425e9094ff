"""The pages of docs/bring: their examples load."""

import re
from textwrap import indent

from adapters.contract import ResourceType
from adapters.mapping.profile import load_profile
from adapters.mapping.slots import SLOTS
from tests.adapters.mapping.good import MINIMAL, changed, load
from tests.docs.pages import BRING, blocks, table


def test_codes_of_each_slot():
    text = (BRING / "values.md").read_text("utf-8")
    allowed = {row[0]: row[1] for row in table(text, "slot")}
    slots = {slot.name: slot for kind in ResourceType for slot in SLOTS[kind]}
    for name in ("status", "class", "gender"):
        assert re.split(r"[,;] ", allowed[name]) == list(slots[name].codes)


CODES = """\
codes:
  number_type: {table: {IPP: PI, INS-NIR: INS-NIR}}
  number_system: {table: {IPP: "urn:oid:1.2.3", INS-NIR: "urn:oid:1.2.4"}}
"""
PATIENT = "patient:\n  rows: SELECT id FROM patients\n  fields:\n    id: {from: id}\n"


def test_the_example_of_an_item_that_hangs_on_another_table_loads(tmp_path):
    (block,) = blocks((BRING / "patients.md").read_text("utf-8"), "yaml")
    text = changed(MINIMAL, "codes:\n", CODES) + PATIENT + indent(block.text, "    ")
    (item,) = load(text, tmp_path).resources[ResourceType.PATIENT].items["identifiers"]
    assert item.only_if is not None


def test_the_example_of_a_profile_loads(tmp_path):
    (block,) = blocks((BRING / "keys.md").read_text("utf-8"), "yaml")
    (tmp_path / "partner.yaml").write_text(block.text, encoding="utf-8")
    profile = load_profile("partner.yaml", tmp_path)
    assert set(profile.resources) == set(ResourceType)
