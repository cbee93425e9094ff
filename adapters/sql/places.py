"""The instant at which a row stands in its order, whatever its column holds.

A source that is one of several is asked by instants. A value of its column has one even
where the mapping finds none in it (an hour that never happens, a text that is no time):
the last instant whose bound is not behind the value, so that a row is never asked twice
nor passed over.
"""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

from adapters.mapping.time_rule import TimeRule
from adapters.mapping.times import to_instant
from adapters.sql.columns import FOLDS, NUMBERS, Kind, time_bound

TICK = timedelta(microseconds=1)
FIRST = datetime(1, 1, 3, tzinfo=UTC)
LAST = datetime(9999, 12, 29, tzinfo=UTC)
"""All that is earlier, or later, stands here: every zone can write these."""

_LATE = re.compile("[0-9]{5}")
"""How a year past 9999 starts, where a database has such."""

_WRITTEN = (Kind.TEXT, Kind.LOOSE, Kind.FILLED, Kind.PADDED, *FOLDS, *NUMBERS)
"""Kinds whose values are read by a format: not each compares as the time that it says."""


def place_of(kind: Kind, rule: TimeRule, value: object) -> datetime:
    """Return the instant, in UTC, that comparisons with `time_bound` see in a value."""
    try:
        moment = to_instant(value, rule).astimezone(UTC)
    except (ValueError, OverflowError):
        return _sought(kind, rule, value)
    if kind in _WRITTEN and not _is_at(kind, rule, value, moment):
        return _sought(kind, rule, value)
    return min(max(moment, FIRST), LAST)


def edge(moment: datetime, *, later: bool) -> bool:
    """Whether no value lies on the far side of an instant, or of the one `later`."""
    return moment >= LAST if later else moment <= FIRST


def _is_at(kind: Kind, rule: TimeRule, value: object, moment: datetime) -> bool:
    """Whether a value compares as the time that it says: 10:00 is before 10:00:00."""
    return _reaches(kind, rule, value, moment) and not (
        moment < LAST and _reaches(kind, rule, value, moment + TICK)
    )


def _sought(kind: Kind, rule: TimeRule, value: object) -> datetime:
    """Find the last instant whose bound is not behind the value."""
    low, high = 0, (LAST - FIRST) // TICK
    while low < high:
        middle = (low + high + 1) // 2
        if _reaches(kind, rule, value, FIRST + middle * TICK):
            low = middle
        else:
            high = middle - 1
    return FIRST + low * TICK


def _reaches(kind: Kind, rule: TimeRule, value: Any, moment: datetime) -> bool:
    bound: Any = time_bound(kind, rule, moment)
    if kind in NUMBERS and bound.isdecimal():
        # 202403141000 is a number; SQLite puts every text in such a column behind all.
        return isinstance(value, str) or int(bound) <= value
    if isinstance(value, str) is not isinstance(bound, str):
        return _reaches_otherwise(value, bound)
    compared: bool = bound <= value
    return compared


def _reaches_otherwise(value: object, bound: Any) -> bool:
    """Compare a value of another type than the bound, as the database does."""
    if isinstance(value, str) and isinstance(bound, date):
        if value.endswith("BC") or _LATE.match(value):
            return not value.endswith("BC")
        # A date of zeros comes as text, and stands where it would as a text.
        return str(bound.isoformat()).replace("T", " ") <= value
    # SQLite puts every number before every text.
    return isinstance(value, str)
