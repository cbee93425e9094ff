"""A database and a plain list API as one list: rows without a start, equal times, changes."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import NamedTuple, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from werkzeug import Request, Response

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    Page,
    Sort,
    SortKey,
    SourceUnavailableError,
)
from adapters.mapping.load import load_mapping
from tests.hospital_http import answer, serving
from tests.plain_api import Plain, plain_rows
from toolkit.contract.harness import NEWEST_FIRST, ask, ids_of
from toolkit.contract.hospital import StayRow

Times: TypeAlias = Sequence[str | None]
ORDERS = (NEWEST_FIRST, Sort(SortKey.DATE))
TIMES = (None, "2024-03-14T10:00:00", "2024-03-14T10:00:01", "2024-05-01T00:00:00")

MAPPING = """\
mapping: 1
name: A database and an API
profile: stays.yaml
time_zone: Europe/Paris
sources:
  north: {kind: sql, url: {env: NORTH_URL}, may_write: true}
  south: {kind: http, url: {env: SOUTH_URL}, timeout_seconds: 30, count_timeout_seconds: 30}
codes:
  states: {table: {S: finished, P: planned, A: hidden}}
encounter:
  search: [_id, patient, date]
  sort: [date]
  sources:
    - source: north
      prefix: n-
      rows: SELECT id, patient, start FROM stays
      fields:
        id: {from: id}
        patient_id: {from: patient, source: north}
        status: finished
        start: {from: start, format: "%Y-%m-%dT%H:%M:%S"}
    - source: south
      prefix: s-
      read: {path: "/stays?id={id}", row: "[0]"}
      list:
        path: /stays
        rows: .
        total: {header: X-Total-Count}
        count: _limit
        paging: {offset: _start}
        fixed: {status_ne: A}
      fields:
        id: {from: id}
        patient_id: {from: subject.reference, strip: Patient/, source: south}
        status: {from: status, codes: states}
        start: {from: start}
      search:
        _id: {send: id, several: repeat}
        patient: {send: subject.reference, several: repeat}
        date: {from: start_gte, until: start_lte}
      sort:
        nulls: NULLS
        by:
          date: {_sort: "start,id", _order: "asc,asc"}
          -date: {_sort: "start,id", _order: "desc,desc"}
patient:
  sources:
    - {source: north, prefix: n-, rows: SELECT 1 AS id, fields: {id: {from: id}}}
    - {source: south, prefix: s-, read: {path: "/people/{id}"}, fields: {id: {from: id}}}
"""
PROFILE = """\
profile: stays
paging: true
encounter: {patient: {}, date: {}, _sort: {}, _id: {}, _count: {}}
"""


class Row(NamedTuple):
    """A stay: the index of its source, its number there, and its start."""

    source: int
    number: int
    start: str | None

    @property
    def id(self) -> str:
        """The id that clients see."""
        return f"{'ns'[self.source]}-{self.number}"


@dataclass
class Pair:
    """A database and the API behind one adapter."""

    adapter: Adapter
    database: sqlite3.Connection
    api: Plain
    rows: list[Row]
    north: str
    url: str

    def hold(self, north: Times, south: Times) -> None:
        """Replace the stays of both; those of even numbers are of patient 1."""
        rows = [(n, n % 2 + 1, start) for n, start in enumerate(north, 1)]
        with self.database:
            self.database.execute("DELETE FROM stays")
            self.database.executemany("INSERT INTO stays VALUES (?, ?, ?)", rows)
        self.rows = [Row(0, n, start) for n, start in enumerate(north, 1)]
        self.hold_south(south)

    def hold_south(self, south: Times) -> None:
        """Replace the stays of the API, and forget its requests."""
        self.api.requests.clear()
        rows = [Row(1, n, start) for n, start in enumerate(south, 1)]
        self.rows = [row for row in self.rows if not row.source] + rows
        self.api.rows[:] = plain_rows(
            StayRow(row.number, patient=row.number % 2 + 1, began=row.start)
            for row in rows
        )

    def expected(self, sort: Sort, patients: str = "") -> list[str]:
        """Return the ids of all stays in their order, or of one patient (s-1)."""
        return [row.id for row in in_order(self.rows, sort, patients)]


def in_order(rows: Sequence[Row], sort: Sort, patients: str = "") -> list[Row]:
    """Return stays in their order, those without a start last; of one patient if any."""
    ordered = sorted(
        (r for r in rows if patients in ("", f"{r.id[:2]}{r.number % 2 + 1}")),
        key=lambda row: (row.start or "", row.source, row.number),
        reverse=sort.descending,
    )
    return sorted(ordered, key=lambda row: not row.start)


@contextmanager
def opened(directory: Path, nulls: str = "high") -> Iterator[Pair]:
    """Open both without stays; the file says where the API puts rows without a start."""
    (directory / "stays.yaml").write_text(PROFILE, encoding="utf-8")
    file = directory / "pair.yaml"
    file.write_text(MAPPING.replace("NULLS", nulls), encoding="utf-8")
    north, api = directory / "north.db", Plain([])
    with ExitStack() as stack:
        database = stack.enter_context(closing(sqlite3.connect(north)))
        database.execute("CREATE TABLE stays (id INTEGER PRIMARY KEY, patient, start)")
        url = stack.enter_context(serving(api))
        environ = {"NORTH_URL": f"sqlite:///{north}", "SOUTH_URL": url}
        adapter = open_adapter(load_mapping(file, environ))
        stack.callback(adapter.close)
        yield Pair(adapter, database, api, [], environ["NORTH_URL"], url)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with opened(tmp_path_factory.mktemp("pair")) as both:
        yield both


times = st.lists(st.sampled_from(TIMES), max_size=12)
few = st.lists(st.sampled_from(TIMES[:2]), min_size=2, max_size=4)
"""So few that a page needs both lists of the API: stays with a start, and those without."""


class Happening:
    """What happens to the API at each of its requests; `changed` holds its later stays."""

    def __init__(self, pair: Pair, events: Sequence[str], changed: Times = ()) -> None:
        self._pair, self._coming, self._changed = pair, [*events], changed
        self.past: list[str] = []

    def __enter__(self) -> "Happening":
        self._pair.api.strange = self._happen
        return self

    def __exit__(self, *_: object) -> None:
        self._pair.api.strange = lambda _: None

    def _happen(self, _: Request) -> Response | None:
        event = self._coming.pop(0) if self._coming else "fine"
        self.past.append(event)
        if event == "slow":
            Event().wait(0.02)
        if event == "changed":
            self._pair.hold_south(self._changed)
        return answer({}, 500) if event == "down" else None


def events(*names: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(("fine", *names)), max_size=4)


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    north=times,
    south=times | few,
    later=times | few,
    happen=events("slow", "down", "changed") | st.just(["fine", "changed"]),
    count=st.integers(1, 9),
    sort=st.sampled_from(ORDERS),
)
def test_a_first_page_is_right_or_an_error_while_the_api_is_slow_down_or_changing(
    pair: Pair,
    north: Times,
    south: Times,
    later: Times,
    happen: list[str],
    count: int,
    sort: Sort,
) -> None:
    pair.hold(north, south)
    pair.adapter.search(ask())  # closes the breaker
    before = in_order(pair.rows, sort)
    with Happening(pair, happen, later) as happening:
        try:
            page = pair.adapter.search(ask(sort=sort, count=count))
        except SourceUnavailableError:
            assert "down" in happening.past
            return
    assert "down" not in happening.past
    after = in_order(pair.rows, sort)
    if "changed" in happening.past[1:]:
        assert_merged(page, before, after, sort, count)
    else:
        assert ids_of(page) == [row.id for row in after][:count]


def assert_merged(
    page: Page, before: list[Row], after: list[Row], sort: Sort, count: int
) -> None:
    """Compare a page with stays that have changed while it was read.

    Those that did not change are there, in their order, and none is passed over.
    """
    ids, steady = ids_of(page), [row.id for row in before if row in after]
    assert len({*ids}) == len(ids) <= count
    assert {*ids} <= {row.id for row in (*before, *after)}
    unchanged = [id for id in ids if id in steady]
    assert unchanged == steady[: len(unchanged)]
    assert len(ids) == count or unchanged == steady
    starts = [getattr(row, "start", None) for row in page.rows]
    keys = [start for start in starts if start]
    assert keys == sorted(keys, reverse=sort.descending)
    assert not any(starts[len(keys) :])
