"""Each order of an HTTP source asked once: do its rows come in it?"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from adapters.contract import (
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    SourceUnavailableError,
)
from adapters.http.inspection.looked import Looked
from adapters.inspection import Observation, Weight
from adapters.mapping.parameters import SORTS

_ROWS = 20

_CLOCK = timedelta(hours=1)
"""What happens twice in an autumn night may stand in another order than it is read in."""


def orders_tried(looked: Looked) -> Iterator[Observation]:
    """Ask for rows in each order: who does not know the parameter gives them in its own."""
    sort = looked.section.http.sort
    if sort is None or sort.mark is None:
        return
    for word, sent in sort.by.items():
        if text := _fault(looked, word):
            element = f"{looked.kind}.sort"
            yield Observation(sort.mark, element, sent, text, Weight.ERROR)


def _fault(looked: Looked, word: str) -> str:
    key, descending = SortKey(word.removeprefix("-")), word.startswith("-")
    asked = Sort(key, descending=descending)
    try:
        rows = looked.adapter.search(SearchQuery(looked.kind, (), asked, _ROWS)).rows
    except (SourceDataError, SourceUnavailableError) as error:
        if isinstance(error, SourceDataError) and error.refused:
            raise
        # The list was answered: an API may fail at what it does not know.
        return f"'{word}' is not answered: {error}"
    slot = SORTS[looked.kind].get(key, "")
    found = (getattr(row, slot, None) for row in rows)
    times = [time for time in found if isinstance(time, datetime)]
    if _is_sorted(times, descending=descending):
        return ""
    return (
        f"the rows of '{word}' come in another order: does the API know what is sent?"
    )


def _is_sorted(times: list[datetime], *, descending: bool) -> bool:
    ordered = times[::-1] if descending else times
    return all(one <= other + _CLOCK for one, other in pairwise(ordered))
