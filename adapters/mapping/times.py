"""Source values become instants, and instants the bounds that a search compares.

Reading a value raises ValueError with a rule for the integrator, which quotes no value.
"""

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache

from adapters.mapping.clocks import (
    FIRST_TIME,
    LAST_TIME,
    ORIGIN,
    day_bases,
    placed,
    rewritten,
    smallest,
)
from adapters.mapping.time_rule import TimeRule
from adapters.mapping.values import as_text

_DAY = timedelta(days=1)
_DIRECTIVE = re.compile("%.", re.DOTALL)
_ISO_DAY = re.compile(r"\d{4}-?(\d{2}-?\d{2}|W\d{2}(-?\d)?)")


def to_instant(value: object, rule: TimeRule) -> datetime:
    """Return the instant of a source value, with the offset that clients see.

    The value is a datetime, a date, or a text that the rule's format (else ISO 8601)
    reads. An offset that is not whole minutes, as before 1911, is written in UTC.
    Raises ValueError with a rule that quotes no value.
    """
    if isinstance(value, datetime) and value.tzinfo is None:
        base = day_bases(rule.zone, rule.written)[value.toordinal()]
        if base is not None:
            return base + (value - ORIGIN)
    read = read_value(value, rule)
    try:
        if read.tzinfo is None:
            read = placed(read, rule)
        return rewritten(read, rule.written)
    except OverflowError as error:
        raise ValueError("outside the years that can be written") from error


def read_value(value: object, rule: TimeRule) -> datetime:
    """Return the datetime that a source value says, naive where it says no offset."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return _at(value, rule)
    if isinstance(value, str):
        return _read_text(value, rule)
    if isinstance(value, (int, Decimal)) and rule.format:
        return _read_text(as_text(value), rule)
    raise ValueError("not a time")


def read_day(value: object, rule: TimeRule) -> date:
    """Return the calendar day of a source value (a birth date has no time of day).

    Raises ValueError with a rule that quotes no value.
    """
    if isinstance(value, datetime):
        return (value.astimezone(rule.zone) if value.tzinfo else value).date()
    if isinstance(value, date):
        return value
    midnight = TimeRule(rule.zone, rule.written, rule.format, at=time())
    return read_value(value, midnight).date()


def join_parts(day: object, clock: object, rule: TimeRule) -> object:
    """Return one value for a date and its time of day, for `to_instant` to read.

    A time of day that is absent is the rule's `at`. Two texts are joined by a blank.
    """
    if clock is None:
        return read_day(day, rule)
    if rule.format and isinstance(day, str):
        return f"{day} {clock}"
    return datetime.combine(read_day(day, rule), _clock(clock))


def to_local(instant: datetime, rule: TimeRule) -> datetime:
    """Return the smallest local value whose instant is not before `instant`.

    It is naive: what a search bound is compared with. Values that the rule refuses have
    no instant, and are passed over.
    """
    try:
        local = instant.astimezone(rule.zone)
        return smallest(local, rule)
    except OverflowError:
        return LAST_TIME if instant.year > 5000 else FIRST_TIME


def in_format(moment: date, form: str) -> str:
    """Return a time in a strptime format, the year in the four digits that this reads."""
    # By itself, strftime writes 999 on some systems: as a text it comes after 2024.
    year = f"{moment.year:04}"
    padded = _DIRECTIVE.sub(lambda at: year if at[0] == "%Y" else at[0], form)
    return moment.strftime(padded)


# ------------------------------------------------------------------ reading values


def _at(day: date, rule: TimeRule) -> datetime:
    if rule.at is None:
        raise ValueError('a date without a time of day: say at: "00:00"')
    return datetime.combine(day, rule.at)


def _read_text(text: str, rule: TimeRule) -> datetime:
    try:
        if rule.format is None:
            if _ISO_DAY.fullmatch(text):
                return _at(date.fromisoformat(text), rule)
            return datetime.fromisoformat(text)
        read = datetime.strptime(text, rule.format)  # noqa: DTZ007 (placed by the rule)
    except ValueError as error:
        if str(error).startswith("a date without"):
            raise
        said = (
            f"not readable as {rule.format}"
            if rule.format
            else "not readable as a time"
        )
        raise ValueError(said) from error
    return read if _has_clock(rule.format) else _at(read.date(), rule)


@lru_cache
def _has_clock(form: str) -> bool:
    return bool(set(re.findall(r"%(.)", form)) & set("HIMSf"))


def _clock(value: object) -> time:
    if isinstance(value, datetime):
        return value.time()
    if isinstance(value, time):
        return value
    if isinstance(value, timedelta) and timedelta() <= value < _DAY:
        return (FIRST_TIME + value).time()
    try:
        return time.fromisoformat(str(value))
    except ValueError as error:
        raise ValueError("not readable as a time of day") from error
