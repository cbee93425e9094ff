"""A page of a search as statements, and where its rows stand."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from adapters.contract import (
    Criterion,
    Group,
    Position,
    ReferenceCriterion,
    SearchQuery,
    SortKey,
    SourceDataError,
    TokenCriterion,
)
from adapters.sql.conditions import NEVER, Condition, Filter, all_of
from adapters.sql.keyset import Leg, legs
from adapters.sql.section import Section
from adapters.sql.statements import Shape


def legs_of(section: Section, query: SearchQuery) -> Iterable[tuple[Leg, Filter]]:
    """Yield the legs of a page that can hold rows, each with its whole filter."""
    sort = query.sort.key
    key = section.keys.get(sort)
    bound = partial(section.bound, sort)
    keyed = section.filters.need_start(query)
    few = not keyed and any(map(_names, query.criteria))
    for leg in legs(query, key, section.id, bound, few=few):
        implied = leg.implied if sort is SortKey.DATE else None
        wanted = section.filters.of_query(query, implied)
        if wanted is not NEVER and not (keyed and leg.group is Group.UNKEYED):
            yield leg, all_of([wanted, leg.filter])


Sent: TypeAlias = tuple[str, Shape, tuple[object, ...]]
"""A statement of a page: its label, "" where it is the only one, and its values."""


def sent_for(section: Section, query: SearchQuery) -> Iterator[Sent]:
    """Yield the statements of a page in the order in which they would be sent."""
    found = tuple(legs_of(section, query))
    for number, (leg, wanted) in enumerate(found, 1):
        has = "without" if leg.group is Group.UNKEYED else "with"
        label = f"-- {number} of {len(found)}: rows {has} a time to sort by"
        label += ", asked where the page is not full yet\n" if number > 1 else "\n"
        shape = page_shape(section, leg, wanted.condition)
        yield label if len(found) > 1 else "", shape, wanted.values


def _names(criterion: Criterion) -> bool:
    """Whether a criterion names what it wants, so that few rows meet it."""
    match criterion:
        case ReferenceCriterion():
            return True
        case TokenCriterion("_id" | "identifier", tokens):
            return all(token.code for token in tokens)
        case _:
            return False


def page_shape(section: Section, leg: Leg, condition: Condition) -> Shape:
    """Return the statement of one leg."""
    return Shape(
        section.mapping.rows,
        section.selected,
        condition,
        leg.order,
        limited=True,
        nulls_last=leg.group is None,
    )


def position_of(
    section: Section, query: SearchQuery, group: Group | None, row: Any
) -> Position:
    """Return the position of a row that a leg of this group has found."""
    id = row[section.places[section.id.name]]
    key = section.keys.get(query.sort.key)
    if key is None or group is Group.UNKEYED:
        return Position(group or Group.KEYED, None, id)
    value = row[section.places[key.column.name]]
    found = Group.UNKEYED if group is None and value is None else Group.KEYED
    return Position(found, value, id)


def check_kept(*positions: Position) -> None:
    """Refuse to go on from bytes: no value that can be bound compares as they do."""
    if any(isinstance(key, bytes) for at in positions for key in (at.key, at.id)):
        raise SourceDataError("a page ends at an id or time that is no text (UTF-8)")


def placed_position(
    section: Section, query: SearchQuery, group: Group | None, row: Any
) -> Position:
    """Return the position of a row with the instant of its key."""
    position = position_of(section, query, group, row)
    check_kept(position)
    if position.key is None:
        return position
    return replace(position, moment=section.moment(query.sort.key, position.key))
