"""Files with several sources: what they mean, and what is refused with its place."""
# ruff: noqa: E501

from pathlib import Path

import pytest

from adapters.contract import ResourceType
from adapters.mapping.load import load_mapping
from tests.adapters.mapping.good import (
    ENVIRON,
    assert_problems,
    changed,
    load,
    problems,
)

TWO = """\
mapping: 1
name: Two
profile: full
time_zone: Europe/Paris
sources:
  north: {kind: sql, url: {env: PAS_URL}}
  south: {kind: sql, url: {env: PAS_URL}, time_zone: UTC}
codes:
  status: {table: {S: finished}}
encounter:
  search: [_id, date, class]
  sort: [date]
  sources:
    - source: north
      prefix: n-
      rows: SELECT a, b, c, d FROM t
      fields:
        id: {from: a}
        patient_id: {from: b, source: north}
        status: {from: c, codes: status}
        start: {from: d}
        organization_id: h-1
    - source: south
      prefix: s-
      rows: SELECT a, b, d FROM v
      fields:
        id: {from: a}
        patient_id: {from: b, source: south}
        status: finished
        class: AMB
        start: {from: d}
patient:
  search: [_id]
  sources:
    - {source: north, prefix: n-, rows: SELECT a FROM p, fields: {id: {from: a}}}
    - {source: south, prefix: s-, rows: SELECT a FROM q, fields: {id: {from: a}}}
"""


def test_parts(tmp_path: Path) -> None:
    mapping = load(TWO, tmp_path)
    assert not mapping.resources
    north, south, *patients = mapping.parts
    assert [part.kind for part in patients] == [ResourceType.PATIENT] * 2
    assert north.name == "north"
    assert north.section.fields["id"].prefix == "n-"
    assert south.section.fields["patient_id"].prefix == "s-"
    assert north.section.fields["organization_id"].prefix == ""
    assert north.section.parameters == ("_id", "date")
    assert north.lacks >= {"class", "identifier", "_lastUpdated"}
    assert south.section.parameters == ("_id", "date", "class")
    start = south.section.fields["start"].time
    assert start is not None
    assert start.zone.key == "UTC"
    # The patients beside the stays are those of the same source.
    beside = south.mapping.resources[ResourceType.PATIENT]
    assert beside.rows == "SELECT a FROM q"


def test_one_named_source_is_one_source(tmp_path: Path) -> None:
    text = TWO[: TWO.index("encounter:")] + (
        "encounter:\n  rows: SELECT a FROM t\n  fields:\n    id: {from: a}\n"
        "    patient_id: {from: a}\n    status: {from: a, codes: status}\n"
    )
    south = "  south: {kind: sql, url: {env: PAS_URL}, time_zone: UTC}\n"
    mapping = load(changed(text, south, ""), tmp_path)
    assert not mapping.parts
    assert mapping.resources[ResourceType.ENCOUNTER].rows == "SELECT a FROM t"


CASES = (
    (("patient_id: {from: b, source: north}", "patient_id: {from: b}"), "19 Encounter.subject"),
    (("patient_id: {from: b, source: north}", "patient_id: {from: b, source: x}"), "19 Encounter.subject x"),
    (("      prefix: s-\n      rows: SELECT a, b, d", "      rows: SELECT a, b, d"), "23 encounter.prefix"),
    (("prefix: s-\n      rows", "prefix: n-x\n      rows"), "24 encounter.prefix n-x"),
    (("prefix: s-\n      rows", "prefix: s_\n      rows"), "24 encounter.prefix -"),
    (("- source: south\n", "- source: suth\n"), "23 encounter.source suth"),
    (("    - source: south\n      prefix", "    - prefix"), "23 encounter"),
    (("organization_id: h-1", "organization_id: {from: b}"), "22 Encounter.serviceProvider"),
    (("organization_id: h-1", "organization_id: {value: h, source: north}"), "22 Encounter.serviceProvider"),
    (("class: AMB", "class: AMBU"), "30 Encounter.class AMBU"),
    (("search: [_id, date, class]", "search: [_id, date, identifier]"), "11 encounter.search identifier"),
    (("  search: [_id, date, class]\n", "  rows: SELECT 1\n"), "11 encounter.rows"),
    (("- source: south\n      prefix: s-\n", "- source: south\n      search: [_id, identifier]\n      prefix: s-\n"), "24 encounter.search identifier"),
    (("id: {from: a}\n        patient_id: {from: b, source: north}", "id: {from: a, source: x}\n        patient_id: {from: b, source: north}"), "18 Encounter.id source"),
    (("mapping: 1\n", "mapping: 1\nsource: {kind: sql, url: {env: PAS_URL}}\n"), "2 source sources"),
    (("codes:\n", "  west: {kind: sql, url: {env: PAS_URL}}\ncodes:\n"), "8 sources.west"),
    (("north: {kind: sql, url: {env: PAS_URL}}", "north: {kind: sql, url: {env: X}}"), "6 sources.north.url.env"),
)  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), CASES)
def test_refused(changes: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    assert_problems(changed(TWO, *changes), tmp_path, (expected,))


def test_name_of_a_source_in_a_file_with_one(tmp_path: Path) -> None:
    north = "  north: {kind: sql, url: {env: PAS_URL}}\n"
    south = "  south: {kind: sql, url: {env: PAS_URL}, time_zone: UTC}\n"
    one = "source: {kind: sql, url: {env: PAS_URL}}\n"
    found = problems(changed(TWO, f"sources:\n{north}{south}", one), tmp_path)
    assert found[0].startswith("m.yaml:12:15: encounter.source: ")


def test_period_needs_an_end_wherever_there_is_a_start(tmp_path: Path) -> None:
    text = changed(TWO, "codes:\n", "date: period\ncodes:\n")
    assert_problems(text, tmp_path, ("12 encounter.search end",))


def test_reference_names_one_of_two_tables_by_its_prefix(tmp_path: Path) -> None:
    south = "- {source: south, prefix: s-"
    text = changed(TWO, south, "- {source: north, prefix: s-")
    named = "patient_id: {from: b, source: "
    text = changed(text, f"{named}south}}", f"{named}s-}}")
    assert_problems(text, tmp_path, ("19 Encounter.subject north",))
    text = changed(text, f"{named}north}}", f"{named}n-}}")
    north, south_part, *_ = load(text, tmp_path).parts
    assert north.section.fields["patient_id"].prefix == "n-"
    assert south_part.section.fields["patient_id"].prefix == "s-"
    # Whom they merged with is known where they are.
    assert ResourceType.PATIENT not in south_part.mapping.resources


def test_constant_with_prefix_is_no_longer_than_an_id(tmp_path: Path) -> None:
    long = "x" * 63
    text = changed(
        TWO,
        "patient_id: {from: b, source: north}",
        f"patient_id: {{value: {long}, source: north}}",
    )
    assert_problems(text, tmp_path, ("19 Encounter.subject 64",))


def test_the_environment_names_each_address(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(
        TWO.replace(
            "south: {kind: sql, url: {env: PAS_URL}", "south: {kind: sql, url: {env: B}"
        ),
        encoding="utf-8",
    )
    parts = load_mapping(file, {**ENVIRON, "B": "sqlite:///b.db"}).parts
    assert [part.mapping.source.url for part in parts[:2]] == [
        ENVIRON["PAS_URL"],
        "sqlite:///b.db",
    ]
