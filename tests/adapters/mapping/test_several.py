"""Files with several sources: what they mean, and what is refused with its place."""

from pathlib import Path
from typing import Any

from adapters.contract import ResourceType
from adapters.mapping.row_mapper import RowMapper
from tests.adapters.mapping.good import assert_problems, changed, load, problems

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


def test_one_named_source_is_one_source(tmp_path: Path) -> None:
    text = TWO[: TWO.index("encounter:")] + (
        "encounter:\n  rows: SELECT a FROM t\n  fields:\n    id: {from: a}\n"
        "    patient_id: {from: a}\n    status: {from: a, codes: status}\n"
    )
    south = "  south: {kind: sql, url: {env: PAS_URL}, time_zone: UTC}\n"
    mapping = load(changed(text, south, ""), tmp_path)
    assert not mapping.parts
    assert mapping.resources[ResourceType.ENCOUNTER].rows == "SELECT a FROM t"


def test_reference_names_one_of_two_tables_by_its_prefix(tmp_path: Path) -> None:
    south = "- {source: south, prefix: s-"
    text = changed(TWO, south, "- {source: north, prefix: s-")
    named = "patient_id: {from: b, source: "
    text = changed(text, f"{named}south}}", f"{named}s-}}")
    assert_problems(text, tmp_path, ("19 Encounter.subject prefix",))
    text = changed(text, f"{named}north}}", f"{named}n-}}")
    north, south_part, *_ = load(text, tmp_path).parts
    assert north.section.fields["patient_id"].prefix == "n-"
    assert south_part.section.fields["patient_id"].prefix == "s-"
    # Whom they merged with is known where they are.
    assert ResourceType.PATIENT not in south_part.mapping.resources


def test_name_of_a_source_in_a_file_with_one(tmp_path: Path) -> None:
    north = "  north: {kind: sql, url: {env: PAS_URL}}\n"
    south = "  south: {kind: sql, url: {env: PAS_URL}, time_zone: UTC}\n"
    one = "source: {kind: sql, url: {env: PAS_URL}}\n"
    found = problems(changed(TWO, f"sources:\n{north}{south}", one), tmp_path)
    assert found[0].startswith("m.yaml:12:15: encounter.source: ")


def test_ids_from_a_code_table_carry_the_prefix_of_their_source(tmp_path: Path) -> None:
    coded = "organization_id: {from: e, codes: units, source: north}"
    text = changed(TWO, "organization_id: h-1", coded)
    table = "  units: {table: {U: u-1}, otherwise: u-0}\n"
    text = changed(text, "encounter:\n", f"{table}encounter:\n") + (
        "organization:\n  sources:\n"
        "    - {source: north, prefix: n-, rows: SELECT a FROM o, fields: {id: {from: a}}}\n"
        "    - {source: south, prefix: s-, rows: SELECT a FROM r, fields: {id: {from: a}}}\n"
    )
    north = load(text, tmp_path).parts[0].section
    stay = RowMapper(north, ("a", "b", "c", "d", "e"))
    made: Any = [stay((1, 2, "S", None, unit)) for unit in "UV"]
    assert [each.organization_id for each in made] == ["n-u-1", "n-u-0"]
