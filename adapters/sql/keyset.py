"""Where a page starts and goes on: by key and id, never by offset (decision 12).

Rows that have the sort key come first, in its order; the others follow, in the order of
their ids. No index has such an order, so a page is read by one or two statements: one for
each group of rows, and a single one where few rows match.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from adapters.contract import Bound, Group, Position, SearchQuery
from adapters.sql.columns import TICK, edge
from adapters.sql.query import (
    ALWAYS,
    NEVER,
    Condition,
    KeyColumn,
    Operator,
    Order,
    SqlColumn,
    TimeColumn,
    all_of,
    any_of,
)


@dataclass(frozen=True, slots=True)
class Segment:
    """What one statement of a page reads: its condition besides the search, its order.

    Comparisons of the key by the `implied` sign hold for all its rows. Without `group`
    the rows are of both groups, those whose key is NULL last.
    """

    group: Group | None
    condition: Condition
    order: Order
    implied: Operator | None = None


def segments(
    query: SearchQuery,
    time: TimeColumn | None,
    id_column: SqlColumn,
    *,
    few: bool,
) -> Iterator[Segment]:
    """Yield the segments of a page in the order in which they are read.

    Without `time` the order is by id alone. `few` rows are sorted rather than read by two
    statements.
    """
    key = time and time.key
    cursor = query.after or query.before
    backwards = query.backwards
    descends = query.sort.descending != backwards
    if few and key and key.is_missing_as_null and not (cursor or backwards):
        yield Segment(None, ALWAYS, ((key.column, descends), (id_column, descends)))
        return
    groups = (Group.KEYED,) if key is None else (Group.KEYED, Group.UNKEYED)
    ordered = groups[::-1] if backwards else groups
    for group in ordered:
        inside = cursor if cursor and _group_of(cursor) is group else None
        if cursor and not inside and group is ordered[0]:
            # The cursor is beyond this group: the pages before have read it.
            continue
        if isinstance(inside, Bound):
            assert time is not None, "only times have instants"
            yield _from_moment(time, id_column, inside, descends)
        elif key is None:
            order: Order = ((id_column, descends),)
            yield Segment(group, _beyond(id_column, inside, descends), order)
        elif group is Group.UNKEYED:
            yield _unkeyed(key, id_column, inside, descends)
        else:
            yield _keyed(key, id_column, inside, descends)


def _group_of(cursor: Position | Bound) -> Group | None:
    """Return the group that a cursor is inside of; the seam between the two is in none."""
    if isinstance(cursor, Position):
        return cursor.group
    return Group.KEYED if cursor.moment is not None else None


def _beyond(column: SqlColumn, row: Position | None, descends: bool) -> Condition:
    """Return where the id comes after that of a row, `ALWAYS` without a row."""
    if row is None:
        return ALWAYS
    return column.compare("<" if descends else ">", row.id)


def _keyed(
    key: KeyColumn, id_column: SqlColumn, row: Position | None, descends: bool
) -> Segment:
    """Return the segment of the rows with the key, after one of them.

    `k <= :k AND (k < :k OR id < :id)`: by the first part every database can read its index
    from there; OR alone costs PostgreSQL a thousand times as much.
    """
    order: Order = ((key.column, descends), (id_column, descends))
    if row is None:
        return Segment(Group.KEYED, key.present, order)
    beyond: Operator = "<" if descends else ">"
    key_or_id_beyond = any_of(
        [key.column.compare(beyond, row.key), _beyond(id_column, row, descends)]
    )
    not_before = key.column.compare("<=" if descends else ">=", row.key)
    condition = all_of([key.present, not_before, key_or_id_beyond])
    implied: Operator = "<" if descends else ">="
    return Segment(Group.KEYED, condition, order=order, implied=implied)


def _from_moment(
    time: TimeColumn, id_column: SqlColumn, cursor: Bound, descends: bool
) -> Segment:
    """Return the segment of the rows with the key beyond an instant, of all ids."""
    assert cursor.moment is not None, "the seam is in no group"
    key = time.key
    order: Order = ((key.column, descends), (id_column, descends))
    # A bound has only < and >=: <= an instant is < the next one, and > it is >= the next one.
    is_next = cursor.included == descends
    if edge(cursor.moment, later=is_next):
        # All rows are before the last instant, and at or after the first one.
        all_follow = is_next == descends
        condition = key.present if all_follow else NEVER
        return Segment(Group.KEYED, condition, order)
    moment = cursor.moment + TICK if is_next else cursor.moment
    sign: Operator = "<" if descends else ">="
    condition = all_of([key.present, key.column.compare(sign, time.bound(moment))])
    return Segment(Group.KEYED, condition, order=order, implied=sign)


def _unkeyed(
    key: KeyColumn, id_column: SqlColumn, row: Position | None, descends: bool
) -> Segment:
    """Return the segment of the rows without the key, after one of them."""
    order: Order = ((id_column, descends),)
    if key.is_missing_as_null and key.column.dialect.orders_nulls:
        order = ((key.column, descends), *order)
    beyond = _beyond(id_column, row, descends)
    return Segment(Group.UNKEYED, all_of([key.missing, beyond]), order)
