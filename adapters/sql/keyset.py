"""Where a page starts and goes on: by key and id, never by offset (decision 12).

Rows that have the sort key come first, in its order; the others follow, in the order of
their ids. No index has such an order, so the others are asked for by a statement of their
own, and a page is read in one or two legs; only where few rows match is it one.

The order of the others names the key too, which is NULL in each: where a database wants to
hear it, they come out of the index on (key, id) as well.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from adapters.contract import Bound, Group, Position, SearchQuery
from adapters.sql.columns import Column
from adapters.sql.conditions import (
    ALWAYS,
    NEVER,
    Compare,
    Filter,
    Operator,
    all_of,
    any_of,
)
from adapters.sql.moments import KeyColumn
from adapters.sql.places import TICK, edge


@dataclass(frozen=True, slots=True)
class Leg:
    """One statement of a page: what its rows meet besides the search, in which order.

    Comparisons of the key by the `implied` operator hold for all its rows. Without
    `group` the rows are of both, those whose key is NULL last.
    """

    group: Group | None
    filter: Filter
    order: tuple[tuple[Column, bool], ...]
    implied: Operator | None = None


def legs(
    query: SearchQuery,
    key: KeyColumn | None,
    id_column: Column,
    bound: Callable[[datetime], object],
    *,
    few: bool,
) -> Iterator[Leg]:
    """Yield the legs in the order in which they are asked; without `key`, by id alone.

    `bound` is the smallest value of the key that is not before an instant. With `few`
    rows to be expected, they are sorted rather than asked for twice.
    """
    position = query.after or query.before
    descends = query.sort.descending is not query.backwards
    if few and key and key.is_missing_as_null and not (position or query.backwards):
        yield Leg(None, ALWAYS, ((key.column, descends), (id_column, descends)))
        return
    groups = (Group.KEYED,) if key is None else (Group.KEYED, Group.UNKEYED)
    for group in groups[::-1] if query.backwards else groups:
        if position is not None and _is_behind(group, position, query):
            continue
        here = position if _stands_in(group, position) else None
        row = here if isinstance(here, Position) else None
        if key is None:
            yield Leg(group, _past(id_column, row, descends), ((id_column, descends),))
        elif group is Group.UNKEYED:
            yield _unkeyed(key, id_column, row, descends)
        elif isinstance(here, Bound):
            yield _from_moment(key, id_column, here, bound, descends)
        else:
            yield _keyed(key, id_column, row, descends)


def _is_behind(group: Group, position: Position | Bound, query: SearchQuery) -> bool:
    """Whether the walk has left the group behind."""
    left = Group.UNKEYED if query.backwards else Group.KEYED
    if isinstance(position, Bound) and position.moment is None:
        return group is left
    return group is left and not _stands_in(left, position)


def _stands_in(group: Group, position: Position | Bound | None) -> bool:
    """Whether a place is inside the group; the seam between the two is in none."""
    if isinstance(position, Bound):
        return group is Group.KEYED and position.moment is not None
    return position is not None and position.group is group


def _from_moment(
    key: KeyColumn,
    id_column: Column,
    mark: Bound,
    bound: Callable[[datetime], object],
    descends: bool,
) -> Leg:
    """Return the leg of the rows with the key beyond an instant, of all ids."""
    assert mark.moment is not None, "the seam is in no group"
    # Up to an instant is before the next one: what a bound can say exactly.
    later = mark.included is descends
    operator: Operator = "<" if descends else ">="
    order = ((key.column, descends), (id_column, descends))
    if edge(mark.moment, later=later):
        every = later is descends
        return Leg(Group.KEYED, key.present if every else NEVER, order)
    value = bound(mark.moment + TICK if later else mark.moment)
    past = Filter(Compare(key.column, operator), (value,))
    return Leg(Group.KEYED, all_of([key.present, past]), order, operator)


def _past(column: Column, position: Position | None, descends: bool) -> Filter:
    if position is None:
        return ALWAYS
    return Filter(Compare(column, "<" if descends else ">"), (position.id,))


def _keyed(
    key: KeyColumn, id_column: Column, position: Position | None, descends: bool
) -> Leg:
    """Return the leg of the rows with the key, from `position` on.

    `k <= :k AND (k < :k OR id < :id)`: the first part is what lets every database walk
    its index; OR alone costs PostgreSQL a thousand times as much.
    """
    order = ((key.column, descends), (id_column, descends))
    if position is None:
        return Leg(Group.KEYED, key.present, order)
    at: Operator = "<=" if descends else ">="
    beyond: Operator = "<" if descends else ">"
    tie = any_of(
        [
            Filter(Compare(key.column, beyond), (position.key,)),
            _past(id_column, position, descends),
        ]
    )
    past = all_of([Filter(Compare(key.column, at), (position.key,)), tie])
    return Leg(
        Group.KEYED, all_of([key.present, past]), order, "<" if descends else ">="
    )


def _unkeyed(
    key: KeyColumn, id_column: Column, position: Position | None, descends: bool
) -> Leg:
    """Return the leg of the rows without the key, from `position` on."""
    order: tuple[tuple[Column, bool], ...] = ((id_column, descends),)
    if key.is_missing_as_null:
        order = ((key.column, descends), *order)
    past = _past(id_column, position, descends)
    return Leg(Group.UNKEYED, all_of([key.missing, past]), order)
