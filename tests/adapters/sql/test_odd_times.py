"""Walks over whatever a column of times may hold: no row comes twice, and none is lost."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import pytest
from sqlalchemy.engine import make_url

from adapters.contract import (
    Adapter,
    Position,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
)
from tests.adapters.emptied import Opened, stays, table
from toolkit.contract.harness import ask, dates

EVERYWHERE = (
    "'2024-03-14 10:00:00'",
    "'2024-03-31 02:30:00'",  # no such hour
    "'2024-10-27 02:30:00'",  # two such hours
    "'9999-12-31 23:59:59'",
    "'0001-01-01 00:00:00'",
)
ODD = {
    "sqlite": (
        *("''", "'0000-00-00'", "'2024-03-14 24:00:00'"),
        *("'10:00'", "'infinity'", "'-infinity'", "'12024-03-14'", "'x'", "20240314"),
    ),
    "postgresql": (
        *("'infinity'", "'-infinity'", "'0044-03-15 10:00:00 BC'", "'4713-01-01 BC'"),
        *("'2024-03-14 24:00:00'", "'12024-03-14'", "'9999-12-31 23:59:59.999999'"),
    ),
    "mysql": (
        *("'0000-00-00 00:00:00'", "'2024-00-00 00:00:00'", "'2024-02-00 10:00:00'"),
        *("'1000-01-01 00:00:00'", "'2024-03-14 23:59:59.6'"),
    ),
}
TYPES = {"sqlite": "TEXT", "postgresql": "TIMESTAMP", "mysql": "DATETIME"}
"""By the dialect: that of MySQL is MariaDB's, too."""

MAPPING = stays(
    "id, began", "_id, patient, date", "date", patient_id="id", start="began"
)


def _filled(url: str, *, is_nullable: bool) -> tuple[str, ...]:
    database = make_url(url).get_backend_name()
    null = "NULL" if is_nullable else "NOT NULL"
    rows = (f"{id}, {value}" for id, value in enumerate(_values(database, is_nullable)))
    lenient = ("SET SESSION sql_mode = ''",) if database == "mysql" else ()
    # The driver writes fractions of zeros, too.
    fraction = "(6)" if database == "mysql" and is_nullable else ""
    type_ = f"{TYPES[database]}{fraction} {null}"
    return lenient + table("stays", f"id BIGINT, began {type_}", *rows)


def _values(database: str, is_nullable: bool) -> list[str]:
    return 2 * [*EVERYWHERE, *ODD[database], *(["NULL"] if is_nullable else [])]


def _walk(
    adapter: Adapter, query: SearchQuery, *, back: bool = False
) -> Iterator[Sequence[Position]]:
    """Yield the positions of each page; backwards from the end."""
    page = adapter.search(replace(query, placed=True, from_end=back))
    for _ in range(200):
        if not page.rows:
            return
        yield page.positions
        if not page.more:
            return
        at = {"before": page.first} if back else {"after": page.last}
        page = adapter.search(replace(query, placed=True, **at))
    raise AssertionError("the walk goes in circles")


@pytest.mark.parametrize("is_nullable", [True, False])
def test_every_row_comes_once_in_any_order(
    opened: Opened, url: str, is_nullable: bool
) -> None:
    statements = _filled(url, is_nullable=is_nullable)
    number = len(_values(make_url(url).get_backend_name(), is_nullable))
    adapter = opened(MAPPING, statements)
    for descending, size in product((False, True), (1, 7, 100)):
        query = ask(sort=Sort(SortKey.DATE, descending), count=size)
        forwards = [at.id for page in _walk(adapter, query) for at in page]
        assert sorted(forwards) == [*range(number)], (descending, size)
        pages = [*_walk(adapter, query, back=True)]
        backwards = [at.id for page in reversed(pages) for at in page]
        assert backwards == forwards, (descending, size)
        assert adapter.count(query) == number


def test_a_row_is_on_one_side_of_a_date_or_has_none(opened: Opened, url: str) -> None:
    adapter = opened(MAPPING, _filled(url, is_nullable=True))
    before, since = (
        {at.id for page in _walk(adapter, query) for at in page}
        for query in (ask(dates("lt2024-03-14")), ask(dates("ge2024-03-14")))
    )
    assert not before & since
    unequal = ask(dates("ne2024-03-14T10:00:00+01:00"), count=100)
    assert {at.id for page in _walk(adapter, unequal) for at in page} <= before | since


ABSENT = {
    "sqlite": ("x", "10:00", "0000-00-00", "2024-03-14 24:00:00"),
    "postgresql": ("infinity", "0044-03-15 10:00:00 BC", "12024-03-14"),
    "mysql": ("0000-00-00", "2024-00-00 00:00:00", "2024-02-00 10:00:00"),
}
"""Texts that are no date of any calendar, or of none that Python has."""


@pytest.mark.parametrize("is_nullable", [True, False])
@pytest.mark.parametrize("search", ["", ", search: copy"])
def test_a_value_that_is_left_out_is_neither_found_nor_sorted_by(
    opened: Opened, url: str, is_nullable: bool, search: str
) -> None:
    """Decision 45, by the column that is shown or by another one that holds a time there."""
    database = make_url(url).get_backend_name()
    values = _values(database, is_nullable)
    texts = {f"{text} 00:00:00" for text in ABSENT[database]} | {*ABSENT[database]}
    none = [at for at, value in enumerate(values) if value.strip("'") in texts]
    none += [at for at, value in enumerate(values) if value in ("NULL", "''")]
    field = f"{{from: began, absent: {list(ABSENT[database])}{search}}}"
    statements = _filled(url, is_nullable=is_nullable)
    mapping = MAPPING.replace("{from: began}", field)
    if search:
        is_there = "began > ''" if database == "sqlite" else "began IS NOT NULL"
        time = "'2024-03-14 10:00:00'"
        time = time if database == "sqlite" else f"TIMESTAMP {time}"
        copy = f"CASE WHEN {is_there} THEN {time} END"
        mapping = mapping.replace(
            "SELECT id, began", f"SELECT id, began, {copy} AS copy"
        )
    adapter = opened(mapping, statements)
    for descending, size in product((False, True), (2, 100)):
        query = ask(sort=Sort(SortKey.DATE, descending), count=size)
        ids = [at.id for page in _walk(adapter, query) for at in page]
        assert sorted(ids) == [*range(len(values))]
        assert sorted(ids[-len(none) :]) == sorted(none)
    by_id = adapter.search(ask(sort=Sort(SortKey.ID), count=100)).rows
    faults = {row.id for row in by_id if isinstance(row, RowFault)}
    assert not faults & {*map(str, none)}
    for criterion in ("lt2024-03-14", "ne2024-03-14", "ge2024-03-14"):
        query = ask(dates(criterion), count=100)
        assert not {at.id for page in _walk(adapter, query) for at in page} & {*none}
