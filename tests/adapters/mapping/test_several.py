"""Files with several sources: what they mean, and what is refused with its place."""

from pathlib import Path

import pytest

from adapters.contract import ResourceType
from adapters.mapping.load import load_mapping
from tests.adapters.mapping.good import ENVIRON, changed, load, problems

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


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            ("patient_id: {from: b, source: north}", "patient_id: {from: b}"),
            "m.yaml:19:9: Encounter.subject ← b: several sources hold patient: "
            "say which one with source:",
        ),
        (
            (
                "patient_id: {from: b, source: north}",
                "patient_id: {from: b, source: x}",
            ),
            "m.yaml:19:9: Encounter.subject ← b: 'x' is not a source of patient: "
            "use north, south",
        ),
        (
            (
                "      prefix: s-\n      rows: SELECT a, b, d",
                "      rows: SELECT a, b, d",
            ),
            "m.yaml:23:7: encounter.prefix: 'prefix' is missing",
        ),
        (
            ("prefix: s-\n      rows", "prefix: n-x\n      rows"),
            "m.yaml:24:15: encounter.prefix: 'n-x' and 'n-': one is the start of "
            "the other",
        ),
        (
            ("prefix: s-\n      rows", "prefix: s_\n      rows"),
            "m.yaml:24:15: encounter.prefix: not the start of an id: up to 16 "
            "letters, digits, '-' and '.'",
        ),
        (
            ("- source: south\n", "- source: suth\n"),
            "m.yaml:23:15: encounter.source: 'suth' is not a source of this file; "
            "did you mean 'south'?",
        ),
        (
            ("    - source: south\n      prefix", "    - prefix"),
            "m.yaml:23:7: encounter: say source: which of north, south holds these rows",
        ),
        (
            ("organization_id: h-1", "organization_id: {from: b}"),
            "m.yaml:22:9: Encounter.serviceProvider ← b: two sources may hold the same "
            "id: the file needs a section organization",
        ),
        (
            ("organization_id: h-1", "organization_id: {value: h, source: north}"),
            "m.yaml:22:9: Encounter.serviceProvider: there is no section organization "
            "that source: could name",
        ),
        (
            ("class: AMB", "class: AMBU"),
            "m.yaml:30:16: Encounter.class: 'AMBU' is not a code of 'class'; "
            "did you mean 'AMB'?",
        ),
        (
            ("search: [_id, date, class]", "search: [_id, date, identifier]"),
            "m.yaml:11:23: encounter.search: 'identifier' needs the field visit_number, "
            "from a column",
        ),
        (
            ("  search: [_id, date, class]\n", "  rows: SELECT 1\n"),
            "m.yaml:11:3: encounter.rows: 'rows' stands in each entry of sources",
        ),
        (
            (
                "- source: south\n      prefix: s-\n",
                "- source: south\n      search: [_id, identifier]\n      prefix: s-\n",
            ),
            "m.yaml:24:21: encounter.search: 'identifier' needs the field visit_number, "
            "from a column",
        ),
        (
            (
                "id: {from: a}\n        patient_id: {from: b, source: north}",
                "id: {from: a, source: x}\n        patient_id: {from: b, source: north}",
            ),
            "m.yaml:18:23: Encounter.id ← a: 'source' is only for ids of other resources",
        ),
        (
            ("mapping: 1\n", "mapping: 1\nsource: {kind: sql, url: {env: PAS_URL}}\n"),
            "m.yaml:2:1: source: 'source' and 'sources' cannot both be given",
        ),
        (
            ("codes:\n", "  west: {kind: sql, url: {env: PAS_URL}}\ncodes:\n"),
            "m.yaml:8:3: sources.west: no section reads this source: name it with "
            "source:, or remove it",
        ),
        (
            (
                "north: {kind: sql, url: {env: PAS_URL}}",
                "north: {kind: sql, url: {env: X}}",
            ),
            "m.yaml:6:33: sources.north.url.env: the environment variable X is not set",
        ),
    ],
)
def test_refused(changes: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    assert problems(changed(TWO, *changes), tmp_path) == [expected]


def test_name_of_a_source_in_a_file_with_one(tmp_path: Path) -> None:
    north = "  north: {kind: sql, url: {env: PAS_URL}}\n"
    south = "  south: {kind: sql, url: {env: PAS_URL}, time_zone: UTC}\n"
    one = "source: {kind: sql, url: {env: PAS_URL}}\n"
    found = problems(changed(TWO, f"sources:\n{north}{south}", one), tmp_path)
    assert (
        "m.yaml:12:15: encounter.source: the file has one source: names are for "
        in ("\n".join(found))
    )


def test_period_needs_an_end_wherever_there_is_a_start(tmp_path: Path) -> None:
    found = problems(changed(TWO, "codes:\n", "date: period\ncodes:\n"), tmp_path)
    assert found == [
        "m.yaml:12:17: encounter.search: 'date: period' needs the field end, from a column"
    ]


def test_reference_names_one_of_two_tables_by_its_prefix(tmp_path: Path) -> None:
    south = "- {source: south, prefix: s-"
    text = changed(TWO, south, "- {source: north, prefix: s-")
    named = "patient_id: {from: b, source: "
    text = changed(text, f"{named}south}}", f"{named}s-}}")
    assert problems(text, tmp_path) == [
        "m.yaml:19:9: Encounter.subject ← b: 'north' holds patient more than once: "
        "name the prefix with source:",
    ]
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
    (found,) = problems(text, tmp_path)
    assert "is longer than an id may be: 64 characters" in found


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
