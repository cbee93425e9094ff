"""The reference in mappings/README.md: its keys are those of the schema, its example loads."""

import re
from collections.abc import Iterable
from pathlib import Path
from textwrap import indent

import pytest
from marshmallow import fields

from adapters.contract import ResourceType
from adapters.mapping.apply import RowMapper
from adapters.mapping.auth_schema import AuthShape
from adapters.mapping.constants import Constants
from adapters.mapping.http_schema import (
    DateSearch,
    HttpSourceShape,
    IdentifierSearch,
    ListShape,
    PatientSearch,
    TextSearch,
    http_section_shape,
)
from adapters.mapping.load import load_mapping
from adapters.mapping.own_schema import OwnSourceShape
from adapters.mapping.parameters import PARAMETERS
from adapters.mapping.profile import ProfileShape
from adapters.mapping.schema import (
    CodeTableShape,
    ConstantsShape,
    DateOptions,
    KnownShape,
    LocalTimesShape,
    MappingShape,
    PartsOptions,
    ReferenceOptions,
    TextOptions,
    TimeOptions,
    UpdatedOptions,
)
from adapters.mapping.several import SectionPart
from adapters.mapping.shapes import Part, Shape
from adapters.mapping.slots import LISTS, SLOTS
from adapters.mapping.source_schema import SqlSource

GUIDE = Path(__file__).parents[3] / "mappings" / "README.md"
TEXT = GUIDE.read_text(encoding="utf-8")


def keys_under(heading: str) -> list[str]:
    """Return the first column of the tables under a heading, of what is in backticks."""
    start = TEXT.index(f"\n{heading}\n") + 1
    depth = heading.count("#")
    end = re.search(rf"\n#{{1,{depth}}} ", TEXT[start + 1 :])
    part = TEXT[start : start + 1 + end.start()] if end else TEXT[start:]
    return re.findall(r"^\| `([^`]+)`", part, re.MULTILINE)


def below(prefix: str, shape: type[Shape]) -> list[str]:
    return [f"{prefix}.{key}" for key in shape.known()]


def section(kind: ResourceType) -> SectionPart:
    part = MappingShape.known()[kind.lower()]
    assert isinstance(part, SectionPart)
    return part


def test_keys_of_the_file() -> None:
    expected = [
        *MappingShape.known(),
        *below("local_times", LocalTimesShape),
        *below("constants", ConstantsShape),
        *below("source", SqlSource),
        *below("codes.NAME", CodeTableShape),
        *below("known", KnownShape),
    ]
    assert sorted(keys_under("### The file")) == sorted(expected)


def test_constants_are_those_of_the_model() -> None:
    assert set(ConstantsShape.known()) == set(Constants.__slots__)


def test_keys_of_a_section() -> None:
    found = keys_under("### A section: encounter, patient, organization")
    for kind in ResourceType:
        part = section(kind)
        several = part.several
        entry = several.known()["sources"].inner.schema.fields  # type: ignore[attr-defined]
        own = [key for key in entry if key not in part.schema.fields]
        assert own == ["prefix"]
        whole = list(several.known())
        assert found == [*part.schema.fields, whole[0], *own, *whole[1:]]


@pytest.mark.parametrize("kind", ResourceType)
def test_fields_of_each_section(kind: ResourceType) -> None:
    found = keys_under(f"### Fields of {kind.lower()}")
    inner = section(kind).schema.fields["fields"]
    assert isinstance(inner, Part)
    assert found == list(inner.schema.fields)
    assert found == [s.name for s in (*SLOTS[kind], *LISTS[kind])]


def test_options_of_a_value() -> None:
    shapes = (
        *(TextOptions, ReferenceOptions, PartsOptions),
        *(DateOptions, TimeOptions, UpdatedOptions),
    )
    expected = {key for shape in shapes for key in shape.known()}
    found = keys_under("### One value")
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_keys_of_items() -> None:
    inner = section(ResourceType.PATIENT).schema.fields["fields"]
    assert isinstance(inner, Part)
    expected = {
        key
        for listed in LISTS[ResourceType.PATIENT]
        for key in _item_keys(inner.schema.fields[listed.name])
    }
    found = keys_under("### Items of lists")
    assert len(found) == len(set(found))
    assert set(found) == expected


def _item_keys(listed: fields.Field[object]) -> Iterable[str]:
    assert isinstance(listed, fields.List)
    assert isinstance(listed.inner, Part)
    return listed.inner.schema.fields


def test_search_parameters() -> None:
    rows = re.findall(
        r"^\| (encounter|patient|organization) \| `([^`]+)`", TEXT, re.MULTILINE
    )
    expected = [
        (kind.lower(), name) for kind in ResourceType for name in PARAMETERS[kind]
    ]
    assert rows == expected


def test_keys_of_an_http_source() -> None:
    expected = [*HttpSourceShape.known(), *below("auth", AuthShape)]
    assert sorted(keys_under("### Keys of an HTTP source")) == sorted(expected)


def test_keys_of_a_section_of_an_http_source() -> None:
    shape = http_section_shape(ResourceType.ENCOUNTER, Shape)
    searches = (IdentifierSearch, PatientSearch, TextSearch, DateSearch)
    expected = [*shape.known(), *below("list", ListShape)]
    expected += {key for each in searches for key in below("search.NAME", each)}
    found = keys_under("### Keys of a section of an HTTP source")
    assert sorted(found) == sorted(expected)


def test_the_http_example_loads(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    (example,) = [each for each in examples if "kind: http" in each]
    head = "mapping: 1\nname: Example\nprofile: group-a\ntime_zone: Europe/Paris\n"
    file = tmp_path / "mapping.yaml"
    file.write_text(head + example, encoding="utf-8")
    mapping = load_mapping(file, {"PAS_URL": "https://pas/api", "PAS_KEY": "k"})
    assert mapping.resources[ResourceType.ENCOUNTER].http is not None


def test_keys_of_a_class_of_your_own() -> None:
    found = keys_under("### Keys of a class of your own")
    assert found == list(OwnSourceShape.known())


def test_the_example_of_a_class_loads(tmp_path: Path) -> None:
    start = TEXT.index("\n## A class of your own\n")
    example = re.findall(r"```yaml\n(.*?)```", TEXT[start:], re.DOTALL)[0]
    head = "mapping: 1\nname: Example\nprofile: full\ntime_zone: Europe/Paris\n"
    file = tmp_path / "mapping.yaml"
    file.write_text(head + example, encoding="utf-8")
    mapping = load_mapping(file, {"KESTREL_FILE": "visits.db"})
    assert mapping.source.options == {"file": "visits.db"}
    assert mapping.source.timeout_seconds == 5


def test_keys_of_a_profile() -> None:
    assert keys_under("## Profiles") == list(ProfileShape.known())


def test_codes_of_each_slot() -> None:
    row = r"^\| `(status|class|gender)` \| ([A-Za-z,; -]+) \|$"
    said = dict(re.findall(row, TEXT, re.MULTILINE))
    slots = {slot.name: slot for kind in ResourceType for slot in SLOTS[kind]}
    assert said
    for name, codes in said.items():
        assert re.split(r"[,;] ", codes) == list(slots[name].codes)
    for listed in LISTS[ResourceType.PATIENT]:
        for slot in listed.slots:
            if slot.codes:
                assert f"| {', '.join(slot.codes)} |" in TEXT


def test_the_example_gives_what_the_guide_says(tmp_path: Path) -> None:
    example = re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert example
    file = tmp_path / "mapping.yaml"
    file.write_text(example[1], encoding="utf-8")
    mapping = load_mapping(file, {"PAS_URL": "postgresql://pas/pas"})
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
    examples = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    file = tmp_path / "mapping.yaml"
    file.write_text(examples[1], encoding="utf-8")
    environ = {"NORTH_URL": "sqlite:///north.db", "SOUTH_URL": "sqlite:///south.db"}
    parts = load_mapping(file, environ).parts
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
    examples = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    (example,) = [each for each in examples if "may_go_out" in each]
    file = tmp_path / "mapping.yaml"
    file.write_text(CARRIES + indent(example, "    "), encoding="utf-8")
    mapping = load_mapping(file, None)
    (item,) = mapping.resources[ResourceType.PATIENT].items["identifiers"]
    assert item.only_if is not None
