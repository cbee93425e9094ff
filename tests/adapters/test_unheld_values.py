"""Values that a database holds and Python does not: their row is a fault, no more."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import time
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    NotFoundError,
    RowFault,
    Sort,
    SortKey,
    SourceDataError,
)
from adapters.mapping.load import load_mapping
from adapters.mapping.time_rule import TimeRule
from adapters.sql.columns import Kind
from adapters.sql.places import FIRST, LAST, place_of
from adapters.testing.asking import STAY, ask, dates, ids_of, patient, walk
from adapters.testing.hospital import PARIS
from tests.databases import NewDatabase

MAPPING = """\
mapping: 1
name: Values that are hard to read
profile: full
time_zone: Europe/Paris
source: {kind: sql, url: {env: PAS_URL}, may_write: true}
constants: {visit_number_system: "urn:oid:1.2.3"}
codes: {states: {table: {S: finished}}}
encounter:
  rows: SELECT id, patient, visit, state, began, ended, changed FROM stays
  fields:
    id: {from: id}
    status: {from: state, codes: states}
    patient_id: {from: patient}
    visit_number: {from: visit}
    start: {from: began}
    end: {from: ended, absent: [infinity], at: "12:00"}
    last_updated: {from: changed}
  search: [_id, patient, date]
  sort: [date, _lastUpdated]
"""

BEGAN = {
    "a": "2024-03-14 10:00:00",
    "b": "infinity",
    "c": "-infinity",
    "d": "10000-01-01 00:00:00",
    "e": "0044-03-15 12:00:00 BC",
    "f": "2024-03-14 11:00:00",
    "g": None,
}
"""In PostgreSQL's own order: c e a f d b, and g without one."""

UNHELD = {"b", "c", "d", "e"}


def opened(url: str, directory: Path, text: str = MAPPING) -> Adapter:
    file = directory / "hospital.yaml"
    file.write_text(text, encoding="utf-8")
    return open_adapter(load_mapping(file, {"PAS_URL": url}))


def connected(url: str) -> psycopg.Connection[tuple[object, ...]]:
    plain = make_url(url).set(drivername="postgresql").render_as_string(False)
    return psycopg.connect(plain, autocommit=True)


def table(zoned: str = "timestamptz") -> str:
    return (
        "CREATE TABLE stays (id text, patient text, visit text, state text,"
        f" began timestamp, ended date, changed {zoned})"
    )


@pytest.fixture(scope="module")
def adapter(
    new_postgresql: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Adapter]:
    url = new_postgresql("unicode")
    insert = "INSERT INTO stays VALUES (%s, 'P', %s, 'S', %s, %s, %s)"
    with connected(url) as connection:
        connection.execute(table())
        for id, began in BEGAN.items():
            ended = "infinity" if id == "a" else None
            connection.execute(insert, (id, id, began, ended, began))
    made = opened(url, tmp_path_factory.mktemp("unheld"))
    yield made
    made.close()


def test_only_the_row_of_such_a_time_is_a_fault(adapter: Adapter) -> None:
    page = adapter.search(ask())
    read = {row.id for row in page.rows if not isinstance(row, RowFault)}
    faults = [row for row in page.rows if isinstance(row, RowFault)]
    assert read == set(BEGAN) - UNHELD
    assert len(faults) == len(UNHELD)
    assert {fault.column for fault in faults} == {"began"}
    assert {fault.rule for fault in faults} == {"not readable as a time"}


def test_such_a_time_may_stand_for_none(adapter: Adapter) -> None:
    """`absent: [infinity]`: a stay that has not ended."""
    stay = adapter.read(STAY, "a")
    assert getattr(stay, "end", "?") is None


def test_the_row_itself_is_a_fault_when_it_is_read(adapter: Adapter) -> None:
    with pytest.raises(SourceDataError) as refused:
        adapter.read(STAY, "b")
    assert refused.value.fault is not None
    assert refused.value.fault.column == "began"
    with pytest.raises(NotFoundError):
        adapter.read(STAY, "z")


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("key", [SortKey.DATE, SortKey.LAST_UPDATED])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_walk_passes_them_once(
    adapter: Adapter, key: SortKey, descending: bool, size: int
) -> None:
    query = ask(sort=Sort(key, descending), count=size)
    found = [id for page in walk(adapter, query) for id in ids_of(page)]
    order = ["!began", "!began", "a", "f", "!began", "!began"]
    assert found == [*(order[::-1] if descending else order), "g"]


def test_they_are_compared_as_the_database_does(adapter: Adapter) -> None:
    assert adapter.count(ask(dates("ge2025"))) == 2
    assert adapter.count(ask(dates("lt2024"))) == 2


@pytest.mark.parametrize("kind", [Kind.DATE, Kind.LOCAL_TIME, Kind.INSTANT])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("infinity", LAST),
        ("-infinity", FIRST),
        ("10000-01-01", LAST),
        ("294276-12-31 23:59:59", LAST),
        ("2024-03-14 BC", FIRST),
        ("0044-03-15 12:00:00+00 BC", FIRST),
    ],
)
def test_they_have_a_place_among_the_instants_of_other_sources(
    kind: Kind, text: str, place: object
) -> None:
    rule = TimeRule(PARIS, PARIS, at=time() if kind is Kind.DATE else None)
    assert place_of(kind, rule, text) == place


BAD = b"J\xf6rg"
"""A name in Latin-1, which is not UTF-8."""


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    file = tmp_path / "pas.db"
    connection = sqlite3.connect(file)
    connection.execute(table("text"))
    insert = (
        "INSERT INTO stays VALUES"
        " (?, 'P', CAST(? AS TEXT), 'S', '2024-03-14 10:00:00', NULL, NULL)"
    )
    connection.executemany(insert, [("a", b"1"), ("b", BAD), ("c", "Jörg".encode())])
    connection.commit()
    connection.close()
    return f"sqlite:///{file}"


def test_only_the_row_of_a_text_that_is_not_utf8_is_a_fault(
    sqlite: str, tmp_path: Path
) -> None:
    adapter = opened(sqlite, tmp_path)
    for _ in range(2):
        page = adapter.search(ask(patient("P"), sort=Sort(SortKey.ID)))
        assert ids_of(page) == ["a", "!visit", "c"]
        assert getattr(page.rows[2], "visit_number", "") == "Jörg"
    adapter.close()


def test_a_page_that_would_go_on_from_such_a_text_is_refused(
    sqlite: str, tmp_path: Path
) -> None:
    """No text that can be bound compares as it does."""
    text = MAPPING.replace("    id: {from: id}", "    id: {from: visit}")
    adapter = opened(sqlite, tmp_path, text)
    query = ask(sort=Sort(SortKey.ID))
    assert len(ids_of(adapter.search(query))) == 3
    with pytest.raises(SourceDataError, match="no text"):
        list(walk(adapter, ask(sort=Sort(SortKey.ID), count=1)))
    adapter.close()


@pytest.mark.parametrize("column", ["id: {from: id}", "start: {from: began}"])
def test_among_several_sources_it_has_no_place(
    sqlite: str, tmp_path: Path, column: str
) -> None:
    changed = column.replace(column.split()[-1], "visit}")
    adapter = opened(sqlite, tmp_path, MAPPING.replace(column, changed))
    with pytest.raises(SourceDataError, match="no text"):
        adapter.search(replace(ask(), placed=True))
    adapter.close()
