"""Several orders made one: by instant, place of the source in the list, its own order.

Two databases never agree on the order of ids, so the place of the source stands between
the instant and the id. Descending is ascending reversed, but that rows without the sort
key come last both ways (decisions 8 and 12). Ordered by id alone, one source follows the
other.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from adapters.contract import (
    Bound,
    Group,
    Page,
    Position,
    Record,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
)

_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


class Placed(NamedTuple):
    """A row of one of the sources, with its position among the rows of all."""

    row: Record | RowFault
    position: Position


def question(query: SearchQuery, index: int, *, keyless: bool) -> SearchQuery | None:
    """Return what the source at `index` is asked for a page of all, None for nothing.

    A `keyless` source does not have the sort key: all its rows come after those that do.
    """
    asked = replace(query, after=None, before=None, placed=True)
    if keyless:
        asked = replace(asked, sort=Sort(SortKey.ID, query.sort.descending))
    mark = query.after or query.before
    if not isinstance(mark, Position):
        return asked
    if index == mark.source:
        own = Group.KEYED if keyless else mark.group
        return _beside(asked, query, Position(own, mark.key, mark.id))
    descends = query.sort.descending is not query.backwards
    ahead = (index > mark.source) is not descends
    return _another(asked, query, mark, ahead=ahead, keyless=keyless)


def _another(
    asked: SearchQuery,
    query: SearchQuery,
    mark: Position,
    *,
    ahead: bool,
    keyless: bool,
) -> SearchQuery | None:
    """Return what a source is asked that the position is not of.

    `ahead` tells that its rows of one instant come after those of the position's source,
    in the direction of travel.
    """
    if mark.moment is not None and not keyless:
        return _beside(asked, query, Bound(mark.moment, included=ahead))
    if mark.group is Group.UNKEYED and not keyless and ahead is not query.backwards:
        return _beside(asked, query, Bound())
    whole = ahead if mark.moment is None else not query.backwards
    return replace(asked, from_end=query.backwards) if whole else None


def _beside(
    asked: SearchQuery, query: SearchQuery, mark: Position | Bound
) -> SearchQuery:
    if query.backwards:
        return replace(asked, before=mark)
    return replace(asked, after=mark)


def placed(page: Page, index: int, *, keyless: bool) -> list[Placed]:
    """Return the rows of one source with their positions among those of all."""
    return [
        Placed(row, _outward(position, index, keyless=keyless))
        for row, position in zip(page.rows, page.positions, strict=True)
    ]


def _outward(position: Position, index: int, *, keyless: bool) -> Position:
    group = Group.UNKEYED if keyless else position.group
    return replace(position, group=group, source=index)


def merged(pages: Iterable[list[Placed]], more: bool, query: SearchQuery) -> Page:
    """Return one page of rows that come source by source, in the order of the list."""
    in_order = list(pages)
    if query.sort.descending:
        in_order.reverse()
    sign = -1 if query.sort.descending else 1
    # Sorting is stable: inside one instant the order of the sources and their own stay.
    rows = sorted(
        (row for page in in_order for row in page), key=lambda row: _rank(row, sign)
    )
    more = more or len(rows) > query.count
    kept = rows[-query.count :] if query.backwards else rows[: query.count]
    if not kept:
        return Page(())
    positions = tuple(position for _, position in kept)
    found = tuple(row for row, _ in kept)
    return Page(found, more, positions[0], positions[-1], positions)


def _rank(row: Placed, sign: int) -> tuple[bool, int]:
    moment = row.position.moment
    ticks = 0 if moment is None else (moment - _ORIGIN) // _TICK
    return row.position.group is Group.UNKEYED, sign * ticks
