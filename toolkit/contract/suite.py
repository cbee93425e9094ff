"""The contract of adapters, as tests for a test module to import.

    from toolkit.contract.suite import *

The module, or the conftest.py beside it, has the fixture `open_hospital`: a function
`Open` that fills the hospital system under test and opens the adapter on it. The suite
knows no adapter: it compares answers with expected ids and with the model in memory.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from adapters.contract import (
    Adapter,
    AdapterError,
    GoneError,
    NotFoundError,
    Prefix,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    StringCriterion,
)
from adapters.mapping.model import DateReading, Never, Twice
from adapters.parameters import INCLUDES, Include
from app.offer import finds_several
from app.search.references import included_in
from toolkit.contract.harness import (
    EVERY_ROW,
    FOUND,
    ORGANIZATION,
    PATIENT,
    SOME,
    STAY,
    Open,
    Opened,
    Outcome,
    SearchCase,
    ask,
    assert_as_model,
    dates,
    ids_of,
    noted,
    patient,
    plain,
    rows_of,
    skip_for,
    token,
    walk,
    with_ids,
)
from toolkit.contract.hospital import EDGES, PARIS, Hospital, Ids, StayRow

TABLE = json.loads(
    (Path(__file__).parent / "date-prefix-truth-table.json").read_text(encoding="utf-8")
)
CASES = tuple(TABLE["cases"])
ROWS = tuple(row for row in TABLE["rows"] if row["value"][:2] in set(Prefix))
VALUES = tuple(dict.fromkeys(row["value"] for row in ROWS))
COLUMNS = {DateReading.START: "start_only", DateReading.PERIOD: "literal"}

START_OF_NO_HOUR = {
    (DateReading.START, "date-only-day", f"{prefix}2019-03-14T{time}")
    for prefix in ("gt", "ge")
    for time in ("10:00:00+01:00", "10:00Z")
}
"""Rows of the table with a start that is a day only: the sources here give it an hour (`at`)."""


def _local(text: str | None, midnight: str) -> str | None:
    """Return a time of the table as local time of the hospital; a day gets a time of day."""
    if text is None:
        return None
    if len(text) == len("2019-03-14"):
        return f"{text} {midnight}"
    local = datetime.fromisoformat(text).astimezone(PARIS)
    return local.strftime("%Y-%m-%d %H:%M:%S")


def _stay(number: int, period: dict[str, str]) -> StayRow:
    return StayRow(
        number,
        began=_local(period.get("start"), "00:00:00"),
        ended=_local(period.get("end"), "23:59:59"),
    )


@pytest.fixture(scope="module", params=DateReading)
def table(request: pytest.FixtureRequest, open_hospital: Open) -> Opened:
    """Return a hospital of the table's cases, under one of the readings."""
    periods = {row["period_case"]: row["period"] for row in ROWS}
    stays = (_stay(number, periods[case]) for number, case in enumerate(CASES, 1))
    return open_hospital(Hospital(tuple(stays), date_reading=request.param))


def test_table_is_whole() -> None:
    assert len(ROWS) == len(CASES) * len(VALUES) == 17 * 30


@pytest.mark.parametrize("prefix", Prefix)
def test_prefix_table(table: Opened, prefix: Prefix) -> None:
    reading, refusals = table.hospital.date_reading, set[str]()
    held = {CASES[int(id) - 1] for id in table.held(STAY)}
    for value in (value for value in VALUES if value.startswith(prefix)):
        expected = held & {
            row["period_case"]
            for row in ROWS
            if (row["value"], row[COLUMNS[reading]]) == (value, True)
            and (reading, row["period_case"], value) not in START_OF_NO_HOUR
        }
        with noted(refusals):
            page = table.adapter.search(ask(dates(value)))
            assert {CASES[int(id) - 1] for id in ids_of(page)} == expected, value
            assert table.adapter.count(ask(dates(value))) == len(expected), value
    skip_for(refusals)


def test_dates_together(table: Opened) -> None:
    for first, second in product(VALUES[::4], VALUES[2::5]):
        for criteria in ((dates(first, second),), (dates(first), dates(second))):
            if table.adapter.takes(ask(*criteria)):
                assert_as_model(table, ask(*criteria))


CHANGES = tuple(map(datetime.fromisoformat, ("2024-03-31", "2024-10-27")))
QUARTERS = tuple(
    night + timedelta(minutes=minutes)
    for night in CHANGES
    for minutes in range(0, 301, 15)
)


@pytest.fixture(
    scope="module",
    params=[
        (Twice.FIRST, Never.REFUSE, Ids.NUMBERS),
        (Twice.SECOND, Never.SHIFT, Ids.TEXTS),
    ],
    ids=["first-refuse", "second-shift"],
)
def nights(request: pytest.FixtureRequest, open_hospital: Open) -> Opened:
    """Return a hospital where somebody arrives each quarter of an hour of both nights."""
    twice, never, ids = request.param
    stays = (
        StayRow(number, began=moment.isoformat(" "), changed=moment.isoformat(" "))
        for number, moment in enumerate(QUARTERS, 1)
    )
    return open_hospital(Hospital(tuple(stays), ids=ids, twice=twice, never=never))


@pytest.mark.parametrize("prefix", Prefix)
def test_bounds_around_clock_changes(nights: Opened, prefix: Prefix) -> None:
    refusals = set[str]()
    steps, precisions = range(-120, 241, 15), ("minutes", "seconds")
    for night, minutes, precision in product(CHANGES, steps, precisions):
        moment = night.replace(tzinfo=UTC) + timedelta(minutes=minutes)
        texts = [
            f"{prefix}{moment.astimezone(zone).isoformat(timespec=precision)}"
            for zone in (UTC, PARIS)
        ]
        query, local = (ask(dates(text)) for text in texts)
        # The adapter receives an instant, however it was written.
        assert repr(local) == repr(query), texts
        expected = sorted(ids_of(nights.model.search(query)))
        with noted(refusals):
            assert sorted(ids_of(nights.adapter.search(query))) == expected, texts
            assert nights.adapter.count(query) == len(expected), texts
    skip_for(refusals)


ODD_HOURS = {
    Twice.FIRST: {
        # 02:30 summer time is the first 02:30 of that night, 02:30 winter time the other.
        "2024-10-27T02:30+02:00": 1,
        "2024-10-27T02:30+01:00": 0,
        "2024-10-27T00:30Z": 1,
        # The hour that never was: a stay that starts in it is invalid.
        "2024-03-31T03:00+02:00": 1,
        "2024-03-31T02:30+01:00": 1,
        "2024-03-31": 21,
        # A day of 25 hours.
        "2024-10-27": 21,
    },
    Twice.SECOND: {
        "2024-10-27T02:30+02:00": 0,
        "2024-10-27T02:30+01:00": 1,
        "2024-10-27T01:30Z": 1,
        # All of the hour that never was is three o'clock.
        "2024-03-31T03:00+02:00": 5,
    },
}


def test_odd_hours(nights: Opened) -> None:
    if len(nights.held(STAY)) < len(QUARTERS):
        pytest.skip("the hospital does not hold all hours of the nights")
    for value, number in ODD_HOURS[nights.hospital.twice].items():
        assert nights.adapter.count(ask(dates(value))) == number, value


ORDERS = [
    pytest.param(kind, Sort(key, descending), id=f"{kind}-{Sort(key, descending)}")
    for kind, keys in (
        (STAY, (SortKey.DATE, SortKey.LAST_UPDATED, SortKey.ID)),
        (PATIENT, (SortKey.ID, SortKey.LAST_UPDATED)),
        (ORGANIZATION, (SortKey.ID, SortKey.LAST_UPDATED)),
    )
    for key in keys
    for descending in (False, True)
]


@pytest.mark.parametrize(("kind", "sort"), ORDERS)
def test_every_page_size_reaches_all_rows_both_ways(
    edges: Opened, kind: ResourceType, sort: Sort
) -> None:
    rows = rows_of(edges.model.search(ask(of=kind, sort=sort)))
    for size in range(1, len(rows) + 2):
        _check_pages(edges, ask(of=kind, sort=sort, count=size))


def _check_pages(opened: Opened, query: SearchQuery) -> None:
    """Follow all pages of a search to the end and back, and compare them with the model."""
    expected = _in_order(opened, query)
    forwards = list(walk(opened.adapter, query))
    assert [row for page in forwards for row in rows_of(page)] == expected
    assert all(len(page.rows) == query.count for page in forwards[:-1])
    if forwards:
        ahead = replace(query, before=forwards[-1].first)
        backwards = list(walk(opened.adapter, ahead, back=True))
        # The previous page is the page that the client left.
        assert [rows_of(page) for page in backwards] == [
            rows_of(page) for page in forwards[-2::-1]
        ]


def _in_order(opened: Opened, query: SearchQuery) -> list[Any]:
    """Return all rows of a search in the model's order; skip the test if it is not offered."""
    kind, key = query.resource_type, query.sort.key
    if kind in opened.adapter.capabilities and not opened.adapter.sorts_by(query):
        pytest.skip(f"{kind} sorted by {key} is not offered")
    return rows_of(opened.model.search(replace(query, count=EVERY_ROW)))


@pytest.mark.parametrize(("kind", "sort"), ORDERS)
def test_pages_from_the_end(edges: Opened, kind: ResourceType, sort: Sort) -> None:
    expected = _in_order(edges, ask(of=kind, sort=sort))
    for size in (1, 2, 7, len(expected), len(expected) + 1):
        last = ask(of=kind, sort=sort, count=size, from_end=True)
        pages = list(walk(edges.adapter, last, back=True))
        assert [row for page in reversed(pages) for row in rows_of(page)] == expected
        assert all(len(page.rows) == size for page in pages[:-1])


@pytest.mark.parametrize(("kind", "sort"), ORDERS[:4])
def test_pages_of_filtered_rows(edges: Opened, kind: ResourceType, sort: Sort) -> None:
    for criterion, size in product(SOME, (1, 4)):
        edge = with_ids(edges, criterion)
        if edges.adapter.takes(ask(edge, of=kind, sort=sort)):
            _check_pages(edges, ask(edge, of=kind, sort=sort, count=size))


def test_position_and_page_size_do_not_count(edges: Opened) -> None:
    page = edges.adapter.search(ask(count=3))
    assert edges.adapter.count(ask(count=3, after=page.last)) == (
        edges.model.count(ask())
    )


@pytest.mark.parametrize("kind", ResourceType)
def test_every_row_is_read_as_it_is(edges: Opened, kind: ResourceType) -> None:
    for id_ in sorted(edges.held(kind)):
        if "_" not in id_:  # never asked for: no resource has such an id
            expected, outcome = (
                _read(adapter, kind, id_) for adapter in (edges.model, edges.adapter)
            )
            assert plain(outcome) == plain(expected), id_


def _read(adapter: Adapter, kind: ResourceType, id: str) -> Outcome:
    try:
        return adapter.read(kind, id)
    except (NotFoundError, GoneError, SourceDataError) as error:
        return getattr(error, "fault", None) or type(error)


def test_fault_tells_no_value_of_its_row(edges: Opened) -> None:
    reads = [
        (row, _read(edges.adapter, STAY, edges.id(row.id)))
        for row in edges.hospital.stays
    ]
    faults = [(row, read) for row, read in reads if isinstance(read, RowFault)]
    for row, fault in faults:
        for value in filter(None, (edges.id(row.id), row.visit, row.began, row.ended)):
            whole = rf"(?<!\w){re.escape(value)}(?!\w)"
            assert not re.search(whole, fault.rule)
    if not faults:
        pytest.skip("the hospital does not hold a faulty stay")


@pytest.mark.parametrize(
    ("number", "error"),
    [(37, SourceDataError), (50, NotFoundError), (51, GoneError)],
    ids=("faulty", "hidden", "removed"),
)
def test_stay_that_is_not_served(
    edges: Opened, number: int, error: type[AdapterError]
) -> None:
    if edges.id(number) not in edges.held(STAY):
        pytest.skip(f"the hospital does not hold stay {number}")
    with pytest.raises(error):
        edges.adapter.read(STAY, edges.id(number))


NO_IDS = (
    *("", " ", "0", "-1", "abc", "1.0", "1e0", "01", "+1", " 1", "1 ", "1_0", "１"),
    *("\x00", "1\x00", "%", "_", "1' OR '1'='1", "h1", "\ud83d\ude00", "é" * 2000),
    *(str(10**30), str(-(10**30)), str(2**63), "None", "NULL", "NaN", "\\"),
)


@pytest.mark.parametrize("kind", ResourceType)
def test_ids_that_no_row_has_are_not_found(edges: Opened, kind: ResourceType) -> None:
    alone = edges.adapter.count(ask(token("_id", "1"), of=kind))
    for id_ in NO_IDS:
        with pytest.raises(NotFoundError):
            edges.adapter.read(kind, id_)
        query = ask(token("_id", "1", id_), of=kind)
        if edges.adapter.takes(query):
            assert edges.adapter.count(query) == alone, id_


def test_ids_are_whole_and_exact(edges: Opened) -> None:
    texts = {edges.id(number) for number in (42, 420, 421, 422, 423)}
    for id_ in sorted(texts & edges.held(STAY)):
        assert edges.adapter.count(ask(token("_id", id_))) == 1
        others = {id_.upper(), id_[:-1], f"{id_}00", id_.replace("-", ""), f"{{{id_}}}"}
        for other in sorted(others - edges.held(STAY) - {""}):
            assert edges.adapter.count(ask(token("_id", other))) == 0, other
    for code in sorted({"042", "42"} & edges.held(ORGANIZATION)):
        assert edges.adapter.read(ORGANIZATION, code).id == code


def _cases_by_parameter() -> Iterator[Any]:
    """Yield the cases of each parameter, `:exact` and `:contains` apart."""
    for kind, cases_of_kind in FOUND.items():
        groups: dict[str, list[SearchCase]] = {}
        for case in cases_of_kind:
            first = case[1][0]
            name = first.parameter
            if isinstance(first, StringCriterion) and first.match:
                name += f":{first.match}"
            groups.setdefault(name, []).append(case)
        for name, cases in groups.items():
            yield pytest.param(kind, cases, id=f"{kind}-{name}")


@pytest.mark.parametrize(("kind", "cases"), [*_cases_by_parameter()])
def test_rows_found(edges: Opened, kind: ResourceType, cases: list[SearchCase]) -> None:
    """Search for each case; the test is skipped after that if some are refused."""
    refusals = set[str]()
    for name, criteria, rows in cases:
        if kind is not ORGANIZATION:
            criteria = tuple(with_ids(edges, criterion) for criterion in criteria)
        query = ask(*criteria, of=kind)
        ids = {edges.id(row) if isinstance(row, int) else row for row in rows}
        with noted(refusals):
            page = edges.adapter.search(query)
            assert set(ids_of(page)) == ids & edges.held(kind), name
            assert_as_model(edges, query)
    skip_for(refusals)


@pytest.mark.parametrize(("size", "each"), [(1, 1), (2, 1), (3, 7)])
def test_criteria_hold_together(edges: Opened, size: int, each: int) -> None:
    criteria = [with_ids(edges, criterion) for criterion in SOME]
    askable = [c for c in criteria if edges.adapter.takes(ask(c))]
    assert len(askable) > len(SOME) / 2
    for some in tuple(combinations(askable, size))[::each]:
        assert_as_model(edges, ask(*some))


@pytest.mark.parametrize("include", INCLUDES[STAY], ids=lambda include: include.name)
def test_what_stays_refer_to_is_found_by_ids_at_once(
    edges: Opened, include: Include
) -> None:
    if not finds_several(edges.adapter.capabilities, include.target):
        pytest.skip("not found by several ids")
    stays = edges.adapter.search(ask()).rows
    included = included_in(stays, (include,), edges.adapter)
    records = included.rows[include.target]
    named = {f"{include.target}/{getattr(s, include.field, '')}" for s in stays}
    references = {f"{include.target}/{record.id}" for record in records}
    assert references
    assert len(references) == len(records)
    assert named - {f"{include.target}/", f"{include.target}/None"} == references | {
        *included.missing
    }
    for record in records:
        assert record == edges.adapter.read(include.target, record.id)


def test_question_explained_shows_no_value(edges: Opened) -> None:
    query = ask(
        token("identifier", "SECRET-1"), dates("2031-05-06"), patient(edges.id(1))
    )
    explained = edges.adapter.explain(query)
    assert explained
    assert "SECRET-1" not in explained
    assert "2031" not in explained


def test_sound_source_has_no_problems(edges: Opened) -> None:
    assert list(edges.adapter.check()) == []


def test_fingerprint_stays(edges: Opened) -> None:
    assert edges.adapter.fingerprint == edges.adapter.fingerprint != ""


@pytest.fixture(scope="module", params=Ids)
def edges(request: pytest.FixtureRequest, open_hospital: Open) -> Opened:
    """Return the hospital of edge cases, with ids of each kind; tests do not change it."""
    return open_hospital(EDGES.with_ids(request.param))


# The tests and what they need, and no name beside that could hide one of the module's.
__all__ = ["edges", "nights", "table"]
__all__ += [name for name in globals() if name.startswith("test_")]
