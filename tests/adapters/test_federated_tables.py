"""Three tables of one database as one list, each with less than the others."""

from contextlib import closing
from dataclasses import replace
from itertools import product

import pytest

from adapters import open_adapter
from adapters.contract import Sort, SortKey
from adapters.mapping.load import load_mapping
from tests.adapters.emptied import table
from toolkit.contract.harness import STAY, ask, dates, ids_of, patient, token, walk

MAPPING = """\
codes:
  state: {table: {P: planned, S: finished, A: hidden}}
  kind: {table: {U: EMER}, otherwise: IMP}
encounter:
  search: [_id, patient, date, identifier, status, class, service-provider._extension]
  sort: [date, _lastUpdated]
  sources:
    - prefix: inp-
      rows: SELECT id, who, state, kind, began, visit, unit, changed FROM inpatients
      fields:
        id: {from: id}
        patient_id: {from: who}
        status: {from: state, codes: state}
        class: {from: kind, codes: kind}
        start: {from: began}
        visit_number: {from: visit}
        functional_unit: {from: unit}
        last_updated: {from: changed, time_zone: UTC}
    - prefix: out-
      rows: SELECT id, who, day, changed FROM outpatients
      fields:
        id: {from: id}
        patient_id: {from: who}
        status: finished
        class: AMB
        start: {from: day, at: "00:00", time_zone: Europe/London}
    - prefix: exp-
      rows: SELECT id, who, changed FROM expected
      fields:
        id: {from: id}
        patient_id: {from: who}
        status: planned
        last_updated: {from: changed, time_zone: UTC}
patient:
  rows: SELECT id, into_id FROM people
  fields:
    id: {from: id}
    replaced_by: {from: into_id}
  search: [_id]
"""

TABLES = (
    table("people", "id INTEGER, into_id INTEGER", "1, NULL", "2, 1", "3, NULL")
    + table(
        "inpatients",
        "id INTEGER, who INTEGER, state TEXT, kind TEXT, began TEXT, visit TEXT, unit TEXT,"
        " changed TEXT",
        "1, 1, 'S', 'U', '2024-03-14 01:00:00', 'V1', 'A', '2024-03-15 00:00:00'",
        "2, 1, 'S', 'H', '2024-03-14 01:00:00', 'V2', 'A', NULL",
        "3, 3, 'P', 'H', NULL, 'V3', 'B', '2024-03-14 00:00:00'",
        "4, 3, 'A', 'H', '2024-03-14 01:00:00', 'V4', 'B', NULL",
        "5, 3, 'Z', 'H', '2024-03-13 09:00:00', 'V5', 'B', NULL",
        "6, 3, 'S', 'H', 'none', 'V6', 'B', NULL",
    )
    + table(
        "outpatients",
        "id INTEGER, who INTEGER, day TEXT, changed TEXT",
        *("1, 1, '2024-03-14', NULL", "2, 3, '2024-03-13', NULL", "3, 3, NULL, NULL"),
    )
    + table(
        "expected",
        "id INTEGER, who INTEGER, changed TEXT",
        *("1, 3, '2024-03-14 00:00:00'", "2, 1, NULL", "3, 1, NULL"),
    )
)

BY_DATE = [
    "out-2",
    "!state",
    *("inp-1", "inp-2", "out-1"),
    "!began",
    *("inp-3", "out-3", "exp-1", "exp-2", "exp-3"),
]
"""Midnight in London is one o'clock in Paris."""

BY_UPDATE = [
    *("inp-3", "exp-1", "inp-1"),
    *("inp-2", "!state", "!began", "out-1", "out-2", "out-3", "exp-2", "exp-3"),
]


def _reversed(ids, keyed):
    """Return an order turned round; rows without the key stay at the end."""
    return ids[keyed - 1 :: -1] + ids[: keyed - 1 : -1]


ORDERS = [
    (Sort(SortKey.DATE), BY_DATE),
    (Sort(SortKey.DATE, True), _reversed(BY_DATE, 6)),
    (Sort(SortKey.LAST_UPDATED), BY_UPDATE),
    (Sort(SortKey.LAST_UPDATED, True), _reversed(BY_UPDATE, 3)),
]


@pytest.fixture
def url(tmp_path):
    """Return the address of an empty database."""
    return f"sqlite:///{tmp_path / 'pas.db'}"


@pytest.fixture
def three(opened):
    """Return the adapter of three tables."""
    return opened(MAPPING, TABLES)


def test_rows_of_all_tables_in_one_order(three):
    for (sort, expected), size in product(ORDERS, range(1, len(BY_DATE) + 1)):
        pages = list(walk(three, ask(sort=sort, count=size)))
        assert [id for page in pages for id in ids_of(page)] == expected
        ahead = ask(sort=sort, count=size, before=pages[-1].first)
        back = list(walk(three, ahead, back=True))
        assert [ids_of(page) for page in back] == [ids_of(p) for p in pages[-2::-1]]
        end = three.search(replace(ask(sort=sort, count=size), from_end=True))
        assert ids_of(end) == expected[-size:]
        assert three.count(ask(sort=sort)) == len(expected)


FOUND = (
    (token("_id", "inp-1", "out-1", "exp-9", "1"), {"inp-1", "out-1"}),
    (token("class", "AMB"), {"out-1", "out-2", "out-3"}),
    (token("class", "IMP"), {"inp-2", "inp-3", "!state", "!began"}),
    (token("status", "planned", "hidden"), {"inp-3", "exp-1", "exp-2", "exp-3"}),
    (token("identifier", "urn:oid:1.2.3|V2"), {"inp-2"}),
    (token("service-provider._extension", "A"), {"inp-1", "inp-2"}),
    (patient("1"), {"inp-1", "inp-2", "out-1", "exp-2", "exp-3"}),
    (patient("2"), {"inp-1", "inp-2", "out-1", "exp-2", "exp-3"}),
    (dates("2024-03-13"), {"out-2", "!state"}),
    (dates("lt2024-03-14T01:00:00+01:00"), {"out-2", "!state"}),
    (dates("ge2024-03-14T01:00:00+01:00"), {"inp-1", "inp-2", "out-1", "!began"}),
)


def test_table_without_the_field_matches_nothing(three):
    for criterion, found in FOUND:
        assert set(ids_of(three.search(ask(criterion)))) == found, criterion
        assert three.count(ask(criterion)) == len(found)
        pages = list(walk(three, ask(criterion, count=1)))
        assert {id for page in pages for id in ids_of(page)} == found


def test_table_that_has_a_field_and_cannot_filter_withdraws_the_parameter(
    three, opened
):
    own = "    - prefix: out-\n      search: [_id, patient, date]\n      sort: []\n"
    text = MAPPING.replace("    - prefix: out-\n", own)
    narrower = opened(text, ())
    able = narrower.capabilities[STAY]
    # It has no identifier, so it is in nobody's way there.
    assert set(able.parameters) == {
        *("_id", "patient", "date", "identifier", "service-provider._extension")
    }
    # It has a start it cannot sort by, and no time of change.
    assert set(able.sorts) == {SortKey.LAST_UPDATED, SortKey.ID}
    assert narrower.fingerprint == three.fingerprint


ELSEWHERE = """\
mapping: 1
name: Merged into patients of another source
profile: full
time_zone: Europe/Paris
sources:
  north: {kind: sql, url: {env: PAS_URL}}
  south: {kind: sql, url: {env: PAS_URL}}
encounter:
  search: [_id, patient]
  sources:
    - source: north
      prefix: n-
      rows: SELECT id, who FROM expected
      fields: {id: {from: id}, patient_id: {from: who, source: north}, status: planned}
    - source: south
      prefix: s-
      rows: SELECT id, who FROM outpatients
      fields: {id: {from: id}, patient_id: {from: who, source: south}, status: finished}
patient:
  search: [_id]
  sources:
    - source: north
      prefix: n-
      rows: SELECT id, into_id FROM people
      fields: {id: {from: id}, replaced_by: {from: into_id, source: south}}
    - source: south
      prefix: s-
      rows: SELECT id FROM people
      fields: {id: {from: id}}
"""


@pytest.mark.parametrize(
    ("source", "others"), [("south", set()), ("north", {"n-2", "n-3"})]
)
def test_a_survivor_is_a_patient_of_its_own_source(
    source, others, three, url, tmp_path
):
    """Not the one of that number here; ids of a chain have the prefix of their source."""
    file = tmp_path / "elsewhere.yaml"
    into = "{from: into_id, source: south}"
    text = ELSEWHERE.replace(into, into.replace("south", source))
    file.write_text(text, encoding="utf-8")
    with closing(open_adapter(load_mapping(file, {"PAS_URL": url}))) as adapter:
        found = [{*ids_of(adapter.search(ask(patient(p))))} for p in ("n-1", "n-2")]
    assert found == [{"n-2", "n-3"}, others]
