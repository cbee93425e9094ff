"""Walks over whatever a column of times may hold: no row comes twice, and none is lost."""

from dataclasses import replace
from itertools import product

import pytest
from sqlalchemy.engine import make_url

from adapters.contract import RowFault, Sort, SortKey
from tests.adapters.emptied import stays, table
from toolkit.contract.harness import ask, dates, walk

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
ABSENT = {
    "sqlite": ("x", "10:00", "0000-00-00", "2024-03-14 24:00:00"),
    "postgresql": ("infinity", "-infinity", "0044-03-15 10:00:00 BC", "12024-03-14"),
    "mysql": ("0000-00-00", "2024-00-00 00:00:00", "2024-02-00 10:00:00"),
}
"""Texts that are no date of any calendar, or of none that Python has.

By the dialect: that of MySQL is MariaDB's, too.
"""

MAPPING = stays(
    "id, began", "_id, patient, date", "date", patient_id="id", start="began"
)


def _filled(url, values, is_nullable):
    database = make_url(url).get_backend_name()
    null = "NULL" if is_nullable else "NOT NULL"
    # The driver writes fractions of zeros, too.
    fraction = "(6)" if database == "mysql" and is_nullable else ""
    type_ = f"{TYPES[database]}{fraction} {null}"
    lenient = ("SET SESSION sql_mode = ''",) if database == "mysql" else ()
    rows = (f"{id}, {value}" for id, value in enumerate(values))
    return lenient + table("stays", f"id BIGINT, began {type_}", *rows)


def _values(url, is_nullable):
    null = ["NULL"] if is_nullable else []
    return 2 * [*EVERYWHERE, *ODD[make_url(url).get_backend_name()], *null]


def _ids(adapter, query, *, back=False):
    pages = walk(adapter, replace(query, from_end=back), back=back)
    if back:
        pages = reversed([*pages])
    return [int(row.id) for page in pages for row in page.rows]


@pytest.mark.parametrize("is_nullable", [True, False])
def test_every_row_comes_once_in_any_order(opened, url, is_nullable):
    values = _values(url, is_nullable)
    adapter = opened(MAPPING, _filled(url, values, is_nullable))
    for descending, size in product((False, True), (1, 7)):
        query = ask(sort=Sort(SortKey.DATE, descending), count=size)
        forwards = _ids(adapter, query)
        assert sorted(forwards) == [*range(len(values))], (descending, size)
        assert _ids(adapter, query, back=True) == forwards, (descending, size)
        assert adapter.count(query) == len(values)
    # A row is on one side of a date, or has none.
    before, since, unequal = (
        {*_ids(adapter, ask(dates(criterion), count=100))}
        for criterion in (
            *("lt2024-03-14", "ge2024-03-14"),
            "ne2024-03-14T10:00:00+01:00",
        )
    )
    assert not before & since
    assert unequal <= before | since


@pytest.mark.parametrize("is_nullable", [True, False])
@pytest.mark.parametrize("search", ["", ", search: copy"])
def test_a_value_that_is_left_out_is_neither_found_nor_sorted_by(
    opened, url, is_nullable, search
):
    """Decision 45, by the column that is shown or by another one that holds a time there."""
    database = make_url(url).get_backend_name()
    values = _values(url, is_nullable)
    texts = {f"{text} 00:00:00" for text in ABSENT[database]} | {*ABSENT[database]}
    none = [at for at, value in enumerate(values) if value.strip("'") in texts]
    none += [at for at, value in enumerate(values) if value in ("NULL", "''")]
    field = f"{{from: began, absent: {list(ABSENT[database])}{search}}}"
    mapping = MAPPING.replace("{from: began}", field)
    if search:
        copy = "CASE WHEN began IS NOT NULL THEN TIMESTAMP '2024-03-14 10:00:00' END"
        if database == "sqlite":
            copy = "CASE WHEN began > '' THEN '2024-03-14 10:00:00' END"
        mapping = mapping.replace(
            "SELECT id, began", f"SELECT id, began, {copy} AS copy"
        )
    adapter = opened(mapping, _filled(url, values, is_nullable))
    for descending, size in product((False, True), (2, 100)):
        ids = _ids(adapter, ask(sort=Sort(SortKey.DATE, descending), count=size))
        assert sorted(ids) == [*range(len(values))]
        assert sorted(ids[-len(none) :]) == sorted(none)
    by_id = adapter.search(ask(sort=Sort(SortKey.ID), count=100)).rows
    faults = {row.id for row in by_id if isinstance(row, RowFault)}
    assert not faults & {*map(str, none)}
    for criterion in ("lt2024-03-14", "ne2024-03-14", "ge2024-03-14"):
        assert not {*_ids(adapter, ask(dates(criterion), count=100))} & {*none}
