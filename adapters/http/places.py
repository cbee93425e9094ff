"""Where the rows of a page stand among those of other sources: by the instant of their key.

A row whose key cannot be read stays where the source has put it, at the instant of the
row before it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from adapters.contract import (
    Group,
    Page,
    Position,
    SearchQuery,
    SortKey,
    SourceDataError,
)
from adapters.http.section import Section
from adapters.mapping.cells import CellError


class _Place(NamedTuple):
    """What orders a row: rows without the key are last."""

    unkeyed: bool
    moment: datetime | None = None


def placed(
    section: Section, query: SearchQuery, rows: Sequence[Mapping[str, Any]], page: Page
) -> Page:
    """Return the page with a position for every row, its instant included.

    Raises SourceDataError when the rows are in another order than they were asked for:
    among those of others they would be in the wrong place.
    """
    if query.sort.key not in section.keys:
        place = Position(Group.KEYED, None, None)
        return replace(page, positions=(place,) * len(rows))
    places = list(_places(section, query.sort.key, rows))
    for one, other in pairwise(places):
        if not _in_order(one, other, descending=query.sort.descending):
            raise SourceDataError("the list is not in the order that was asked for")
    return replace(page, positions=tuple(map(_position, places)))


def _places(
    section: Section, key: SortKey, rows: Sequence[Mapping[str, Any]]
) -> Iterator[_Place]:
    read = [_place(section, key, row) for row in rows]
    last = next((place for place in read if place), _Place(unkeyed=True))
    for place in read:
        last = place or last
        yield last


def _place(section: Section, key: SortKey, row: Mapping[str, Any]) -> _Place | None:
    try:
        moment = section.moment(row, key)
    except CellError:
        return None
    return _Place(moment is None, moment)


def _in_order(one: _Place, other: _Place, *, descending: bool) -> bool:
    if one.moment is None or other.moment is None:
        return one.unkeyed <= other.unkeyed
    return one.moment >= other.moment if descending else one.moment <= other.moment


def _position(place: _Place) -> Position:
    group = Group.UNKEYED if place.unkeyed else Group.KEYED
    return Position(group, place.moment, None, place.moment)
