"""The second page of an HTTP source held against the first: does it page at all?"""

from collections.abc import Iterator
from dataclasses import replace

from adapters.contract import Page, RowFault, SearchQuery, Sort, SortKey
from adapters.http.inspection.looked import Looked
from adapters.inspection import Observation, Weight


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


def _ids(page: Page) -> Iterator[str]:
    for row in page.rows:
        if not isinstance(row, RowFault):
            yield row.id
