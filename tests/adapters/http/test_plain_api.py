"""A plain list API without a shim: headers, expressions, and rows without the sort key."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from adapters.contract import (
    NotAskableError,
    NotFoundError,
    Page,
    RowFault,
    Sort,
    SortKey,
    SourceDataError,
)
from adapters.http.adapter import HttpAdapter
from adapters.mapping.load import load_mapping
from tests.adapters import http_cases
from tests.hospital_http import answer, serving
from tests.plain_api import (
    COLUMNS,
    LINKED,
    OFFSET,
    PLAIN,
    Plain,
    plain_mapping_text,
    plain_rows,
)
from toolkit.contract.harness import (
    NEWEST_FIRST,
    STAY,
    ask,
    dates,
    ids_of,
    patient,
    rows_of,
    token,
    walk,
)

MODEL = PLAIN.model()
OLDEST_FIRST = Sort(SortKey.DATE)
FIRST = {
    "last": {"asc": False, "desc": False},
    "first": {"asc": True, "desc": True},
    "high": {"asc": False, "desc": True},
    "low": {"asc": True, "desc": False},
}


@contextmanager
def plain(
    directory: Path, *, first: str = "high", **variant: str
) -> Iterator[tuple[Plain, HttpAdapter]]:
    """Serve the rows, and open an adapter on them."""
    api = Plain(plain_rows(PLAIN.stays), FIRST[first])
    file = directory / "plain.yaml"
    file.write_text(plain_mapping_text(**variant), encoding="utf-8")
    with serving(api) as url:
        adapter = HttpAdapter(load_mapping(file, {"PAS_URL": url}))
        try:
            yield api, adapter
        finally:
            adapter.close()


def shown(page: Page) -> list[Any]:
    """Return the rows of a page for comparing, columns by the suite's names of them."""
    return http_cases.rows_of(page, COLUMNS)


def expected(*criteria: Any, sort: Sort = NEWEST_FIRST) -> list[Any]:
    return rows_of(MODEL.search(ask(*criteria, sort=sort)))


@pytest.mark.parametrize("nulls", FIRST)
def test_rows_without_the_key_come_last_wherever_the_api_puts_them(
    tmp_path: Path, nulls: str
) -> None:
    assert {row["start"] is None for row in plain_rows(PLAIN.stays)} == {True, False}
    with plain(tmp_path, first=nulls, nulls=nulls) as (_, adapter):
        for sort, size in product((NEWEST_FIRST, OLDEST_FIRST), (1, 7, 100)):
            rows = expected(sort=sort)
            query = ask(sort=sort, count=size)
            forwards = list(walk(adapter, query))
            assert [row for page in forwards for row in shown(page)] == rows
            assert {page.total for page in forwards} <= {None, len(rows)}
            back = replace(query, before=forwards[-1].first)
            backwards = list(walk(adapter, back, back=True))
            assert [shown(p) for p in backwards] == [shown(p) for p in forwards[-2::-1]]
            last = adapter.search(replace(query, from_end=True))
            assert shown(last) == rows[-size:]


@pytest.mark.parametrize("paging", [OFFSET, LINKED])
def test_a_page_costs_one_call_and_knows_the_total(tmp_path: Path, paging: str) -> None:
    rows = expected(sort=OLDEST_FIRST)
    with plain(tmp_path, paging=paging, nulls="last") as (api, adapter):
        page = adapter.search(ask(sort=OLDEST_FIRST, count=5))
        assert (page.total, page.more, len(api.requests)) == (len(rows), True, 1)
        after = replace(ask(sort=OLDEST_FIRST, count=5), after=page.last)
        assert shown(adapter.search(after)) == rows[5:10]
        assert len(api.requests) == 2
        assert adapter.count(ask()) == len(rows)


SEARCHES: tuple[Any, ...] = (
    token("_id", "1", "2"),
    patient("1", "3"),
    token("status", "finished"),
    token("class", "IMP", "AMB"),
    dates("2024-03-14"),
    dates("ge2024-03-14"),
    dates("lt2024-03-14T10:00:00+01:00"),
    dates("ne2024-03-14"),
)


NO_START = {"low": "1900-01-01T00:00:00", "high": "9999-12-31T00:00:00"}


@pytest.mark.parametrize("absent", ["-", *NO_START.values()])
def test_every_search_is_equal(tmp_path: Path, absent: str) -> None:
    """Also where the API finds and sorts by a start that stands for none."""
    nulls = "low" if absent == NO_START["low"] else "high"
    with plain(tmp_path, nulls=nulls, absent=absent) as (api, adapter):
        for row in api.rows if absent != "-" else ():
            row["start"] = row["start"] or absent
        criteria = ((), *((criterion,) for criterion in SEARCHES))
        for criteria_, sort in product(criteria, (NEWEST_FIRST, OLDEST_FIRST)):
            rows = expected(*criteria_, sort=sort)
            assert rows
            query = ask(*criteria_, sort=sort)
            assert shown(adapter.search(query)) == rows, criteria_
            assert adapter.count(query) == len(rows)
            pages = list(walk(adapter, replace(query, count=2)))
            assert [row for page in pages for row in shown(page)] == rows
            last = adapter.search(replace(query, count=3, from_end=True))
            assert shown(last) == rows[-3:]


def test_a_row_that_is_found_by_an_absent_value_is_a_fault(tmp_path: Path) -> None:
    """No bound leaves out what is no time; the others are served (decision 45)."""
    absent = "2024-03-00T00:00:00"
    with plain(tmp_path, absent=absent) as (api, adapter):
        query = ask(dates("ge2024-02-20"))
        others = shown(adapter.search(query))
        (row,) = (row for row in api.rows if row["id"] == 1)
        row["start"] = absent
        page = adapter.search(query)
        (fault,) = (found for found in page.rows if found.id == "1")
        assert isinstance(fault, RowFault)
        assert (fault.field, fault.column) == ("start", "start")
        assert len(page.rows) == len(others) == adapter.count(query)
        # What does not match otherwise is a row of another search.
        api.strange = lambda _: answer([row], **{"X-Total-Count": "1"})
        with pytest.raises(SourceDataError, match="does not match"):
            adapter.search(ask(token("_id", "2"), dates("ge2024-02-20")))


def test_ne_is_refused_where_its_two_lists_do_not_follow_each_other(
    tmp_path: Path,
) -> None:
    with plain(tmp_path, paging=LINKED, nulls="last") as (api, adapter):
        with pytest.raises(NotAskableError):
            adapter.search(ask(dates("ne2024-03-14")))
        assert api.requests == []


def test_references_are_sent_with_their_prefix(tmp_path: Path) -> None:
    with plain(tmp_path) as (api, adapter):
        assert adapter.read(STAY, "1").id == "1"
        assert api.requests.pop().args.keys() == {"id"}
        with pytest.raises(NotFoundError):
            adapter.read(STAY, "999999")
        api.requests.clear()
        assert ids_of(adapter.search(ask(patient("3"))))
        assert {r.args["subject.reference"] for r in api.requests} == {"Patient/3"}
        for reference in ("Group/7", "7"):
            api.rows[0]["subject"]["reference"] = reference
            (fault,) = adapter.search(ask(token("_id", str(api.rows[0]["id"])))).rows
            assert getattr(fault, "field", "") == "patient_id", reference
            assert "Group" not in str(fault)
