"""Pages of an HTTP source: does it page at all, and does it give all that is asked for?"""

from collections.abc import Iterator
from dataclasses import replace

from adapters.contract import Page, RowFault, SearchQuery, Sort, SortKey
from adapters.http.inspection.looked import FEW_ROWS, Looked
from adapters.inspection import Observation, Weight
from adapters.mapping.http_model import PagingKind


def paging_tried(looked: Looked) -> Iterator[Observation]:
    """Ask for two pages of one row each: who does not know the parameter gives one twice."""
    listed = looked.section.http.list
    paging = listed.paging if listed else None
    if paging is None or paging.mark is None:
        return
    query = SearchQuery(looked.kind, (), Sort(SortKey.ID), 1)
    first = looked.adapter.search(query)
    if not first.more or first.last is None:
        return
    second = looked.adapter.search(replace(query, after=first.last))
    if set(_ids(first)) & set(_ids(second)):
        text = "the second page is the first one again: does the API know what is sent?"
        element = f"{looked.kind}.list.paging"
        yield Observation(paging.mark, element, paging.send, text, Weight.ERROR)


def rest_tried(looked: Looked) -> Iterator[Observation]:
    """Hold a list against its number, where it is not asked for the rest of a page."""
    listed = looked.section.http.list
    if listed is None or listed.mark is None:
        return
    if listed.paging is not None and listed.paging.kind is not PagingKind.PAGE:
        return
    query = SearchQuery(looked.kind, (), Sort(SortKey.ID), FEW_ROWS)
    found, due = len(looked.few()), min(FEW_ROWS, looked.adapter.count(query))
    if found >= due:
        return
    weight, text = Weight.ERROR, _KEPT_BACK
    if listed.total is not None:
        weight, text = Weight.WARNING, _SMALL.format(found=found, due=due)
    yield Observation(listed.mark, f"{looked.kind}.list", "", text, weight)


_KEPT_BACK = (
    "gives fewer rows at once than it is asked for: the others are never served"
)
_SMALL = (
    "gives {found} rows where {due} are due: a search with more (_count) is refused (502). "
    "Ask the vendor how large a page may be, and offer no larger one: count: {{max: …}} in "
    "a profile of your own"
)


def _ids(page: Page) -> Iterator[str]:
    for row in page.rows:
        if not isinstance(row, RowFault):
            yield row.id
