"""Times of a stay, as filters on the column that holds them.

A value that stands for "no time" ('', or a sentinel of the mapping) is told from a time
here, because a database would compare it as one.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from adapters.contract import DateValue, Prefix
from adapters.sql.columns import FOLDS, TIMES, Column, Kind, held
from adapters.sql.conditions import (
    ALWAYS,
    Compare,
    Filter,
    In,
    IsNull,
    NotIn,
    NotNull,
    Operator,
    all_of,
    any_of,
)

_EMPTIED = (Kind.TEXT, *FOLDS, Kind.LOOSE)
"""Kinds of column that may hold the empty text."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

_ENDLESS = ("infinity", "-infinity")
"""Times of PostgreSQL that no calendar has; the mapping names them where it means them."""


@dataclass(frozen=True)
class KeyColumn:
    """A column whose missing values are NULL and a few texts that stand for it."""

    column: Column
    absent: frozenset[str] = frozenset()

    @cached_property
    def _stand_ins(self) -> tuple[object, ...]:
        texts = sorted(self.absent)
        if self.column.kind in _EMPTIED:
            # A day may be written as its midnight: the mapping reads both as one.
            texts = ["", *texts, *(f"{t} 00:00:00" for t in texts if _DAY.fullmatch(t))]
        found = (value for text in texts for value in held(self.column.kind, text))
        endless = texts if self.column.kind in TIMES else ()
        return (*found, *(text for text in endless if text in _ENDLESS))

    @property
    def is_missing_as_null(self) -> bool:
        """Whether no text stands for a missing value."""
        return not self._stand_ins

    @cached_property
    def present(self) -> Filter:
        """Rows that have the value."""
        if not self._stand_ins:
            return Filter(NotNull(self.column))
        return Filter(NotIn(self.column, len(self._stand_ins)), self._stand_ins)

    @cached_property
    def missing(self) -> Filter:
        """Rows that have not."""
        null = Filter(IsNull(self.column))
        if not self._stand_ins:
            return null
        stand_in = Filter(In(self.column, len(self._stand_ins)), self._stand_ins)
        return any_of([null, stand_in])

    def compared(self, condition: Compare, value: object) -> Filter:
        """Return a comparison that only rows with the value meet."""
        compared = Filter(condition, (value,))
        return all_of([compared, self.present]) if self._stand_ins else compared


@dataclass(frozen=True)
class TimeColumn:
    """A column of times or days; `bound` is its smallest value not before an instant.

    A comparison by the `implied` operator holds already, by where a page starts.
    """

    key: KeyColumn
    bound: Callable[[datetime], object]
    implied: Operator | None = None

    def before(self, value: DateValue, *, end: bool = False) -> Filter:
        """Return the rows before the value's low bound, or before its high one."""
        return self._compared("<", value, end)

    def from_(self, value: DateValue, *, end: bool = False) -> Filter:
        """Return the rows at or after the value's low bound, or its high one."""
        return self._compared(">=", value, end)

    def _compared(self, operator: Operator, value: DateValue, end: bool) -> Filter:
        if operator == self.implied:
            return ALWAYS
        bound = self.bound(value.high if end else value.low)
        return self.key.compared(Compare(self.key.column, operator), bound)


def starts(start: TimeColumn, value: DateValue) -> Filter:
    """Compare the start alone (decision 5), or a day of birth."""
    match value.prefix:
        case Prefix.EQ:
            return all_of([start.from_(value), start.before(value, end=True)])
        case Prefix.NE:
            return any_of([start.before(value), start.from_(value, end=True)])
        case Prefix.GT:
            return start.from_(value, end=True)
        case Prefix.GE:
            return start.from_(value)
        case Prefix.LT:
            return start.before(value)
        case Prefix.LE:
            return start.before(value, end=True)


def lasts(start: TimeColumn, end: TimeColumn, value: DateValue) -> Filter:
    """Compare the whole stay, whose end is part of it; a missing bound has no limit.

    The prefix table word for word: `ge` is `gt` or `eq`, `le` is `lt` or `eq`.
    """
    inside = all_of([start.from_(value), end.before(value, end=True)])
    below = any_of([start.before(value), start.key.missing])
    above = any_of([end.from_(value, end=True), end.key.missing])
    match value.prefix:
        case Prefix.EQ:
            return inside
        case Prefix.NE:
            return any_of([below, above])
        case Prefix.GT:
            return above
        case Prefix.LT:
            return below
        case Prefix.GE:
            return any_of([above, inside])
        case Prefix.LE:
            return any_of([below, inside])
