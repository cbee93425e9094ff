"""Pages in the contract of adapters: all rows, in order, both ways, at every page size."""

import pytest

from adapters.contract import Criterion, ResourceType, Sort, SortKey
from adapters.testing.asking import (
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    rows_of,
    walk,
    with_ids,
)
from adapters.testing.found import SOME
from adapters.testing.opened import Opened

ORDERS = [
    pytest.param(kind, Sort(key, descending), id=f"{kind}-{'-' * descending}{key}")
    for kind, keys in (
        (STAY, (SortKey.DATE, SortKey.LAST_UPDATED)),
        (PATIENT, (SortKey.ID, SortKey.LAST_UPDATED)),
        (ORGANIZATION, (SortKey.ID, SortKey.LAST_UPDATED)),
    )
    for key in keys
    for descending in (False, True)
]


def _skip_unless_sorted(opened: Opened, kind: ResourceType, sort: Sort) -> None:
    offered = opened.adapter.capabilities.get(kind)
    if offered is not None and sort.key not in offered.sorts:
        pytest.skip(f"{kind} sorted by {sort.key} is not offered")


@pytest.mark.parametrize(("kind", "sort"), ORDERS)
def test_every_page_size_walks_all_rows_both_ways(
    edges: Opened, kind: ResourceType, sort: Sort
) -> None:
    _skip_unless_sorted(edges, kind, sort)
    everything = edges.model.search(ask(of=kind, sort=sort))
    expected = rows_of(everything)
    for size in range(1, len(expected) + 2):
        forwards = list(walk(edges.adapter, ask(of=kind, sort=sort, count=size)))
        assert [row for page in forwards for row in rows_of(page)] == expected
        assert all(len(page.rows) == size for page in forwards[:-1])
        end = forwards[-1].first
        ahead = ask(of=kind, sort=sort, count=size, before=end)
        backwards = list(walk(edges.adapter, ahead, back=True))
        # A page that is gone back to is the page that was left.
        assert [rows_of(page) for page in backwards] == [
            rows_of(page) for page in forwards[-2::-1]
        ]


@pytest.mark.parametrize(("kind", "sort"), ORDERS)
def test_walk_from_the_end(edges: Opened, kind: ResourceType, sort: Sort) -> None:
    _skip_unless_sorted(edges, kind, sort)
    expected = rows_of(edges.model.search(ask(of=kind, sort=sort)))
    for size in (1, 2, 7, len(expected), len(expected) + 1):
        last = ask(of=kind, sort=sort, count=size, from_end=True)
        pages = list(walk(edges.adapter, last, back=True))
        assert [row for page in reversed(pages) for row in rows_of(page)] == expected
        assert all(len(page.rows) == size for page in pages[:-1])


@pytest.mark.parametrize(("kind", "sort"), ORDERS[:4])
@pytest.mark.parametrize("criterion", SOME, ids=lambda c: c.parameter)
def test_filtered_walk(
    edges: Opened, kind: ResourceType, sort: Sort, criterion: Criterion
) -> None:
    _skip_unless_sorted(edges, kind, sort)
    criteria = (with_ids(edges, criterion),)
    expected = rows_of(edges.model.search(ask(*criteria, of=kind, sort=sort)))
    for size in (1, 4):
        forwards = list(
            walk(edges.adapter, ask(*criteria, of=kind, sort=sort, count=size))
        )
        assert [row for page in forwards for row in rows_of(page)] == expected
        if forwards:
            end = forwards[-1].first
            ahead = ask(*criteria, of=kind, sort=sort, count=size, before=end)
            backwards = list(walk(edges.adapter, ahead, back=True))
            assert [rows_of(page) for page in backwards] == [
                rows_of(page) for page in forwards[-2::-1]
            ]


@pytest.mark.parametrize(("kind", "sort"), ORDERS)
def test_nothing_lies_before_the_first_row_or_after_the_last(
    edges: Opened, kind: ResourceType, sort: Sort
) -> None:
    _skip_unless_sorted(edges, kind, sort)
    everything = edges.adapter.search(ask(of=kind, sort=sort))
    ahead = edges.adapter.search(ask(of=kind, sort=sort, before=everything.first))
    after = edges.adapter.search(ask(of=kind, sort=sort, after=everything.last))
    for page in (ahead, after):
        assert (page.rows, page.more, page.first, page.last) == ((), False, None, None)


def test_position_and_page_size_do_not_count(edges: Opened) -> None:
    page = edges.adapter.search(ask(count=3))
    assert edges.adapter.count(ask(count=3, after=page.last)) == (
        edges.model.count(ask())
    )
