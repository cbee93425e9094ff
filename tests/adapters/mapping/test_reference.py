"""The reference in docs/bring/reference.md: its examples load."""

import re
from pathlib import Path
from textwrap import indent
from typing import Any

from adapters.contract import ResourceType
from adapters.mapping.load import load_mapping
from adapters.mapping.row_mapper import RowMapper
from adapters.mapping.slots import LISTS, SLOTS
from tests.docs.pages import table

GUIDE = Path(__file__).parents[3] / "docs" / "bring" / "reference.md"
TEXT = GUIDE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


def example(words: str, environ: dict[str, str], directory: Path, head: str) -> Any:
    """Return the mapping of the one example that holds the words, behind a head."""
    (found,) = [each for each in EXAMPLES if words in each]
    file = directory / "mapping.yaml"
    file.write_text(head + found, encoding="utf-8")
    return load_mapping(file, environ)


HEAD = "mapping: 1\nname: Example\nprofile: {}\ntime_zone: Europe/Paris\n"


def test_the_http_example_loads(tmp_path: Path) -> None:
    environ = {"PAS_URL": "https://pas/api", "PAS_KEY": "k"}
    mapping = example("kind: http", environ, tmp_path, HEAD.format("group-a"))
    assert mapping.resources[ResourceType.ENCOUNTER].http is not None


def test_the_example_of_a_class_loads(tmp_path: Path) -> None:
    environ = {"KESTREL_FILE": "visits.db"}
    mapping = example("KESTREL_FILE", environ, tmp_path, HEAD.format("full"))
    assert mapping.source.options == {"file": "visits.db"}
    assert mapping.source.timeout_seconds == 5


def test_codes_of_each_slot() -> None:
    allowed = {row[0]: row[1] for row in table(TEXT, "slot")}
    slots = {slot.name: slot for kind in ResourceType for slot in SLOTS[kind]}
    for name in ("status", "class", "gender"):
        assert re.split(r"[,;] ", allowed[name]) == list(slots[name].codes)
    for listed in LISTS[ResourceType.PATIENT]:
        for slot in listed.slots:
            if slot.codes:
                assert f"| {', '.join(slot.codes)} |" in TEXT


def test_the_example_gives_what_the_guide_says(tmp_path: Path) -> None:
    environ = {"PAS_URL": "postgresql://pas/pas"}
    mapping = example(EXAMPLES[0], environ, tmp_path, "")
    names, values = re.findall(r"^\| (?:sejour_id|900001) .*\|$", TEXT, re.MULTILINE)
    columns, cells = (
        [c.strip() for c in row.strip("|").split("|")] for row in (names, values)
    )
    stay = RowMapper(mapping.resources[ResourceType.ENCOUNTER], columns)(cells)
    for value in stay:
        written = value.isoformat() if hasattr(value, "isoformat") else value
        assert written is None or written in TEXT
    assert (stay.id, stay.status) == ("900001", "finished")  # type: ignore[union-attr]


def test_the_example_of_several_sources_loads(tmp_path: Path) -> None:
    environ = {"NORTH_URL": "sqlite:///north.db", "SOUTH_URL": "sqlite:///south.db"}
    parts = example(EXAMPLES[1], environ, tmp_path, "").parts
    assert [(part.kind, part.name) for part in parts] == [
        (ResourceType.ENCOUNTER, "north"),
        (ResourceType.ENCOUNTER, "south"),
        (ResourceType.PATIENT, "north"),
        (ResourceType.PATIENT, "south"),
    ]
    assert parts[1].section.fields["patient_id"].prefix == "s-"


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
    (item_text,) = [each for each in EXAMPLES if "may_go_out" in each]
    file = tmp_path / "mapping.yaml"
    file.write_text(CARRIES + indent(item_text, "    "), encoding="utf-8")
    mapping = load_mapping(file, None)
    (item,) = mapping.resources[ResourceType.PATIENT].items["identifiers"]
    assert item.only_if is not None
