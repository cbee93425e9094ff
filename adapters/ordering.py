"""Which of two places in the results of a search comes first (decision 12).

Rows with the sort key come before those without, whatever the direction; inside both
groups key and id order them.
"""

from datetime import datetime
from typing import Any

from adapters.contract import Bound, Group, Position, Sort


def inside(position: Position) -> tuple[Any, Any]:
    """Return what orders a row inside its group."""
    return (position.key, position.id)


def follows(here: Position, mark: Position | Bound, sort: Sort) -> bool:
    """Whether a row lies after a place, in the order of the search."""
    if isinstance(mark, Bound):
        return _beyond(here, mark, descends=sort.descending, keyed=False)
    if here.group is not mark.group:
        return here.group is Group.UNKEYED
    if sort.descending:
        return inside(here) < inside(mark)
    return inside(here) > inside(mark)


def precedes(here: Position, mark: Position | Bound, sort: Sort) -> bool:
    """Whether a row lies ahead of a place, in the order of the search."""
    if isinstance(mark, Bound):
        return _beyond(here, mark, descends=not sort.descending, keyed=True)
    same = here.group is mark.group and inside(here) == inside(mark)
    return not same and not follows(here, mark, sort)


def _beyond(here: Position, mark: Bound, *, descends: bool, keyed: bool) -> bool:
    """Whether a row lies beyond an instant; the other group is, or is not, altogether."""
    if here.group is Group.UNKEYED or mark.moment is None:
        return (here.group is Group.KEYED) is keyed
    assert isinstance(here.key, datetime), "only times have instants"
    if here.key == mark.moment:
        return mark.included
    return (here.key < mark.moment) is descends
