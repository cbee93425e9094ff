"""Each order of an HTTP source asked once: do its rows come in it?"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from adapters.contract import SearchQuery, Sort, SortKey
from adapters.http.inspection.looked import Looked
from adapters.inspection import Observation, Weight
from adapters.mapping.parameters import SORTS

_ROWS = 20

_CLOCK = timedelta(hours=1)
"""What happens twice in an autumn night may stand in another order than it is read in."""


def orders_tried(looked: Looked) -> Iterator[Observation]:
    """Ask for rows in each order: who does not know the parameter gives them in its own."""
    sort = looked.section.http.sort
    slots = SORTS[looked.kind]
    for word, sent in sort.by.items() if sort else ():
        key, descending = SortKey(word.removeprefix("-")), word.startswith("-")
        asked = Sort(key, descending=descending)
        page = looked.adapter.search(SearchQuery(looked.kind, (), asked, _ROWS))
        found = (getattr(row, slots.get(key, ""), None) for row in page.rows)
        times = [time for time in found if isinstance(time, datetime)]
        if sort and sort.mark and not _is_sorted(times, descending=descending):
            text = f"the rows of '{word}' come in another order: does the API know what is sent?"
            element = f"{looked.kind}.sort"
            yield Observation(sort.mark, element, sent, text, Weight.ERROR)


def _is_sorted(times: list[datetime], *, descending: bool) -> bool:
    ordered = times[::-1] if descending else times
    return all(one <= other + _CLOCK for one, other in pairwise(ordered))
