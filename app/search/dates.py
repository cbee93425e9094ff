"""FHIR date text as a prefix and the half-open interval that it means.

Precision runs from a year to fractions of a second; a value without an offset is in the
deployment's time zone (spec 4.1; decision 5; FHIR STU3 search, "date").
"""

import re
from calendar import isleap, monthrange
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from adapters.contract import DateValue, Prefix

FORMS = (
    "YYYY, YYYY-MM, YYYY-MM-DD, YYYY-MM-DDThh:mm, YYYY-MM-DDThh:mm:ss, "
    "YYYY-MM-DDThh:mm:ss.fff, those with a time with or without Z or an offset such as "
    "+01:00"
)
"""The forms of a date, for error texts."""

_PREFIX = re.compile(r"[A-Za-z]{2}(?=[0-9])|[A-Za-z]+")
_DATE = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?P<time>T(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?"
    r"(?P<offset>Z|[+-][0-9]{2}:[0-9]{2})?)?)?)?",
    re.ASCII,
)
_NOT_SUPPORTED = ("sa", "eb", "ap")
_DIGITS = 6
"""The digits of a fraction of a second that an instant has; finer ones are cut off."""
_MOST_SHOWN = 100

# People write 9999-12-31 for "no limit": a year at either end of the calendar becomes
# an instant that any zone can still express, in four digits. It is a midnight, since
# some sources compare whole days.
_FIRST = datetime(1001, 1, 1)  # noqa: DTZ001 - the zone comes with the bounds
_LAST = datetime(9999, 1, 1)  # noqa: DTZ001
_LEAP_YEAR = 2000


class DateTextError(ValueError):
    """A text is not a date value; the message names the part and what is wrong with it."""


def parse_date(text: str, zone: tzinfo) -> DateValue:
    """Read a date value with its prefix; without one it means `eq`.

    Raises DateTextError.
    """
    prefix = Prefix.EQ
    value = text
    if letters := _PREFIX.match(text):
        prefix = _prefix(letters.group())
        value = text[letters.end() :]
    match = _DATE.fullmatch(value)
    if match is None:
        raise DateTextError(_hint(value))
    try:
        low, high = _interval(match, zone)
    except (ValueError, OverflowError) as error:
        problem = f"'{shortened(value)}' does not exist in the calendar"
        raise DateTextError(problem) from error
    return DateValue(prefix, low, high)


def _prefix(text: str) -> Prefix:
    try:
        return Prefix(text)
    except ValueError:
        known = "not supported here" if text in _NOT_SUPPORTED else "not known"
        raise DateTextError(f"the prefix '{shortened(text)}' is {known}") from None


def _hint(value: str) -> str:
    if not value:
        return "no date follows the prefix"
    if _DATE.fullmatch(value.replace(" ", "+")):
        return (
            f"'{shortened(value)}' has a blank in place of the + of its offset: "
            "send + as %2B"
        )
    return f"'{shortened(value)}' is not a date"


def shortened(text: str) -> str:
    """Return a client's text as far as a message quotes it."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _interval(match: re.Match[str], zone: tzinfo) -> tuple[datetime, datetime]:
    """Return the first instant of a date or time in `zone`, and the first one after it.

    Raises ValueError for a day or a time that does not exist, OverflowError.
    """
    part = match.groupdict()
    year, month, day = (int(part[name] or 1) for name in ("year", "month", "day"))
    first = datetime(year, month, day, tzinfo=zone)
    if not _FIRST.year <= year < _LAST.year:
        # Raises ValueError for a time that does not exist, as in any other year.
        _time_interval(part, first.replace(year=_LEAP_YEAR))
        limit = _local(_FIRST if year < _FIRST.year else _LAST, zone)
        return limit, limit
    if part["time"]:
        return _time_interval(part, first)
    if part["day"]:
        days = 1
    elif part["month"]:
        days = monthrange(year, month)[1]
    else:
        days = 366 if isleap(year) else 365
    low = datetime(year, month, day)  # noqa: DTZ001 - the zone comes with the bounds
    return _local(low, zone), _local(low + timedelta(days=days), zone)


def _local(wall: datetime, zone: tzinfo) -> datetime:
    """Return midnight in `zone`; where the clock skips it, the first instant after."""
    aware = wall.replace(tzinfo=zone)
    return aware.astimezone(UTC).astimezone(zone)


def _time_interval(
    part: dict[str, str | None], day: datetime
) -> tuple[datetime, datetime]:
    """Return the interval of a time on a day: a minute, a second, or a fraction of one.

    Raises ValueError, OverflowError.
    """
    fraction = (part["fraction"] or "")[:_DIGITS]
    low = day.replace(
        hour=int(part["hour"] or 0),
        minute=int(part["minute"] or 0),
        second=int(part["second"] or 0),
        microsecond=int(fraction.ljust(_DIGITS, "0")),
        tzinfo=_offset(part["offset"]) or day.tzinfo,
    )
    if fraction:
        width = timedelta(microseconds=10 ** (_DIGITS - len(fraction)))
    elif part["second"]:
        width = timedelta(seconds=1)
    else:
        width = timedelta(minutes=1)
    # In UTC, because an hour on the clock is not always an hour.
    instant = low.astimezone(UTC)
    return instant.astimezone(day.tzinfo), (instant + width).astimezone(day.tzinfo)


def _offset(text: str | None) -> tzinfo | None:
    """Return the zone of an offset such as +02:00, None without one. Raises ValueError."""
    if text is None:
        return None
    if text == "Z":
        return UTC
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 14 or minutes > 59 or (hours == 14 and minutes):
        raise ValueError("an offset is at most 14:00")
    difference = timedelta(hours=hours, minutes=minutes)
    return timezone(-difference if text[0] == "-" else difference)
