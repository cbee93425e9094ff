"""What kind of value a column holds, a searched value in that kind, the instant of a value.

A value that a column's type cannot hold matches nothing; it never reaches the database,
where it would be an error (decision 6).

Pages of several sources continue at an instant. Every value of a column has one, even where
the mapping reads none from it (an hour that never happens, a text that is no time): the last
instant whose bound is not above the value. So no row is read twice or missed.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any, NamedTuple
from uuid import UUID

from adapters.mapping.binary import BinaryForm, bytes_of
from adapters.mapping.births import Partial, written
from adapters.mapping.model import TimeRule
from adapters.mapping.times import EPOCHS, epoch_of, in_format, to_instant, to_local
from adapters.mapping.values import text_or_none

# --------------------------------------------------------------- columns

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,19})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?")
_UNHELD = re.compile("[\0\ud800-\udfff]")
_SIGNED, _EITHER = range(-(2**63), 2**63), range(-(2**63), 2**64)
_FIRST_TICK = datetime(1753, 1, 1)  # noqa: DTZ001 - as the column is
_STEPS = (
    timedelta(seconds=1),
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
)


class ColumnKind(StrEnum):
    """Kinds of column, as far as searching distinguishes them."""

    TEXT = "text"
    # A text that the database compares without case or accents.
    FOLDING = "folding text"
    # A text that is NULL where it is empty.
    FILLED = "filled text"
    # A FILLED text that ends in blanks.
    PADDED = "padded text"
    INTEGER = "integer"
    WIDE = "integer, signed or not"
    # A number that the driver would read as bytes.
    BITS = "bits"
    NUMBER = "number"
    # A float of 64 bits.
    DOUBLE = "double-precision number"
    # A float of 32 bits, which equals no value that is sent.
    SINGLE = "single-precision number"
    BOOLEAN = "boolean"
    UUID = "uuid"
    BINARY = "bytes"
    DATE = "date"
    LOCAL_TIME = "local time"
    # Read and bound as a text: a datetime would cut its fraction.
    FINE_TIME = "local time of more than microseconds"
    # Of 1/300 seconds, from 1753 on: its fractions end in 0, 3 or 7 milliseconds.
    TICK_TIME = "time in ticks"
    # Of whole seconds.
    SECOND_TIME = "time in seconds"
    INSTANT = "instant"
    # A column of SQLite without a type: text compares with text, a number with numbers.
    LOOSE = "loose"
    # BLOB and CLOB, which equal no value.
    LARGE = "large object"
    # Compared by its text: an enumeration, for example.
    OTHER = "other"


FOLDS = (ColumnKind.FOLDING,)
"""Kinds of text whose own comparison is not exact."""

TEXTS = (ColumnKind.TEXT, *FOLDS, ColumnKind.FILLED, ColumnKind.PADDED)
"""Kinds of column that hold nothing but texts."""

WHOLE = frozenset({ColumnKind.INTEGER, ColumnKind.WIDE, ColumnKind.BITS})
"""Kinds of column that hold nothing but whole numbers, of 64 bits."""

NUMBERS = WHOLE | {ColumnKind.NUMBER, ColumnKind.DOUBLE, ColumnKind.SINGLE}
"""Kinds of column that hold nothing but numbers."""

_LOCAL = (
    ColumnKind.LOCAL_TIME,
    ColumnKind.FINE_TIME,
    ColumnKind.TICK_TIME,
    ColumnKind.SECOND_TIME,
)

_FRACTIONS: Mapping[ColumnKind, tuple[int, ...]] = {
    ColumnKind.TICK_TIME: (0, 3_000, 7_000, 10_000),
    ColumnKind.SECOND_TIME: (0, 1_000_000),
}
"""The fractions of a second, in microseconds, that a column holds; the last one is the period
after which they repeat."""

TIMES = (ColumnKind.DATE, ColumnKind.INSTANT, *_LOCAL)
"""Kinds of column that hold nothing but days and times."""


class Column(NamedTuple):
    """A column of a `rows` SELECT.

    `collation` is that of its texts, where columns of unlike ones do not compare by
    themselves. `enumeration` is its type, where that lists the texts that it holds.
    `is_nullable`: whether it may be NULL. `form` is how its bytes are written, as the
    mapping says. `encoding` is the codec of its characters where it does not hold all.
    """

    name: str
    kind: ColumnKind
    collation: str = ""
    enumeration: str = ""
    is_nullable: bool = True
    form: BinaryForm = BinaryForm.HEX
    encoding: str = ""


class UnreadText(bytes):
    """A text that is not of its encoding: as bytes, it would compare as another value."""


def held(
    kind: ColumnKind, text: str, form: BinaryForm = BinaryForm.HEX
) -> tuple[object, ...]:
    """Return `text` as values that such a column can equal; empty if it can hold none.

    `form` is how bytes are written.
    """
    if kind is ColumnKind.BINARY:
        return bytes_of(text, form)
    if not can_hold(text):
        return ()
    # A column without a type may hold bytes as well.
    others = bytes_of(text, form) if kind is ColumnKind.LOOSE else ()
    return (*_HELD[kind](text), *others)


def can_hold(text: str, encoding: str = "") -> bool:
    """Whether a database can hold such a text at all: no NUL, no half of a character.

    In an encoding, it holds no character of others.
    """
    if _UNHELD.search(text):
        return False
    return not encoding or text.encode(encoding, "ignore").decode(encoding) == text


def _integer(text: str, values: range = _SIGNED) -> tuple[int, ...]:
    if not _INTEGER.fullmatch(text) or text == "-0":
        return ()
    number = int(text)
    return (number,) if number in values else ()


def _uuid(text: str) -> tuple[UUID, ...]:
    try:
        value = UUID(text)
    except ValueError:
        return ()
    return (value,) if str(value) == text else ()


def _moment(kind: ColumnKind, text: str) -> tuple[date | datetime, ...]:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return ()
    has_zone = moment.tzinfo is not None
    needs_zone = kind is ColumnKind.INSTANT
    if has_zone != needs_zone:
        return ()
    if kind is ColumnKind.DATE:
        return (moment.date(),) if moment.time() == time() else ()
    return (moment,)


def _fine_time(text: str) -> tuple[str, ...]:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return ()
    if moment.tzinfo is not None:
        return ()
    if fine := re.search(r"\.[0-9]{7,9}$", text):
        # A datetime has cut the fraction.
        return (moment.isoformat(" ", "seconds") + fine[0],)
    return (moment.isoformat(" ", "microseconds"),)


def _number(text: str) -> tuple[Decimal, ...]:
    if not _NUMBER.fullmatch(text) or text == "-0":
        return ()
    return (Decimal(text),)


def _double(text: str) -> tuple[float, ...]:
    # A float equals every number that is nearest to it; it is shown as one of them.
    is_shown = _number(text) and text_or_none(float(text)) == text
    return (float(text),) if is_shown else ()


def _truth(text: str) -> tuple[bool, ...]:
    return (text == "true",) if text in ("true", "false") else ()


def _unpadded(text: str) -> tuple[str, ...]:
    # A database may ignore trailing blanks; a cell never has them.
    return () if text.endswith(" ") else (text,)


_HELD: Mapping[ColumnKind, Callable[[str], tuple[object, ...]]] = {
    ColumnKind.TEXT: _unpadded,
    ColumnKind.FOLDING: _unpadded,
    ColumnKind.FILLED: lambda text: (text,) if text else (),
    ColumnKind.PADDED: lambda text: _unpadded(text) if text else (),
    **dict.fromkeys((ColumnKind.LARGE, ColumnKind.OTHER), lambda text: (text,)),
    ColumnKind.INTEGER: _integer,
    ColumnKind.WIDE: partial(_integer, values=_EITHER),
    ColumnKind.BITS: partial(_integer, values=_EITHER),
    ColumnKind.NUMBER: _number,
    ColumnKind.DOUBLE: _double,
    ColumnKind.SINGLE: _number,
    ColumnKind.BOOLEAN: _truth,
    ColumnKind.UUID: _uuid,
    **{kind: partial(_moment, kind) for kind in TIMES},
    ColumnKind.FINE_TIME: _fine_time,
    ColumnKind.LOOSE: lambda text: (text, *_integer(text)),
}


def unreal_as_held(kind: ColumnKind, text: str) -> tuple[str, ...]:
    """Return a time that no datetime can hold (0000-00-00, infinity) as a column compares it.

    A column of days holds none that has a time of day.
    """
    day, _, clock = text.partition(" ")
    is_midnight = re.fullmatch(r"(00:00:00(\.0+)?)?", clock)
    if kind is ColumnKind.DATE:
        return (day,) if is_midnight else ()
    if is_midnight and day[:1].isdigit():
        return (f"{day} 00:00:00",)
    return (text,)


def has_zeros(text: str) -> bool:
    """Whether a text is a date, or a time, whose month or day is zero."""
    match = re.fullmatch(r"(\d{4})-(\d\d-\d\d)( .+)?", text)
    if match is None or "00" not in match[2].split("-"):
        return False
    try:
        datetime.fromisoformat(f"2000-{match[2].replace('00', '01')}{match[3] or ''}")
    except ValueError:
        return False
    return True


_WITHOUT_PARTIALS = (
    ColumnKind.INSTANT,
    ColumnKind.BOOLEAN,
    ColumnKind.UUID,
    ColumnKind.BINARY,
)
"""Kinds of column that hold no birth date of which only the year or the month is known."""


def time_bound(kind: ColumnKind, rule: TimeRule, instant: datetime) -> object:
    """Return the smallest value of the column that is not before `instant`.

    `column >= bound` then holds exactly for the values at or after the instant, and
    `column < bound` for those before it.
    """
    if kind is ColumnKind.INSTANT:
        return instant
    if rule.format and rule.format in EPOCHS and kind not in TIMES:
        return _number_of(kind, epoch_of(instant, rule.format))
    local = to_local(instant, rule)
    if kind in _LOCAL:
        return _held_time(kind, local)
    if rule.at is None:
        return _text(kind, rule, local)
    # The column holds days, each of which means this time of the day.
    day = local.date()
    if local.time() > rule.at:
        day += timedelta(days=1)
    if kind is ColumnKind.DATE:
        return day
    return _text(kind, rule, datetime.combine(day, rule.at))


def _number_of(kind: ColumnKind, number: Fraction) -> int | float | Decimal | str:
    """Return the smallest number of a column that is not below `number`.

    It is a text for a column that holds numbers as texts.
    """
    holds_numbers = kind in NUMBERS or kind is ColumnKind.LOOSE
    if kind in WHOLE or number.denominator == 1:
        whole = ceil(number)
        return whole if holds_numbers else str(whole)
    if kind is ColumnKind.NUMBER:
        return Decimal(number.numerator) / number.denominator
    return float(number) if holds_numbers else str(float(number))


def day_bound(
    kind: ColumnKind, rule: TimeRule, instant: datetime, *, zeros: bool = False
) -> object:
    """Return the lowest value that a column of birth dates has for a day or a later one.

    A year or a month is lower than its first day. `zeros`: whether days and times of the
    database have them as such with zeros.
    """
    day = instant.date()
    period = Partial.beginning(day)
    spellings = _partial_values(kind, rule, period, zeros=zeros) if period else ()
    if spellings:
        if spellings[0] == f"{day.year:04}":
            # SQLite would compare a text of four digits as a number with a column of DATE.
            return f"{day.year - 1:04}-13"
        return spellings[0]
    if kind is ColumnKind.DATE:
        return day
    if kind is ColumnKind.INSTANT:
        return datetime.combine(day, time(), rule.zone).astimezone(UTC)
    if kind in _LOCAL:
        midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - as the column is
        return _held_time(kind, midnight)
    if rule.format in EPOCHS:
        return time_bound(kind, rule, datetime.combine(day, time(), rule.zone))
    if kind in NUMBERS and rule.format is None:
        return day.year + 1
    return in_format(day, rule.format) if rule.format else day.isoformat()


def partial_values(
    kind: ColumnKind, rule: TimeRule, instant: datetime, *, zeros: bool = False
) -> tuple[object, ...]:
    """Return all values of a year or a month that has begun before a day, and goes on."""
    return tuple(
        value
        for period in Partial.around(instant.date())
        for value in _partial_values(kind, rule, period, zeros=zeros)
    )


def _partial_values(
    kind: ColumnKind, rule: TimeRule, period: Partial, *, zeros: bool
) -> tuple[object, ...]:
    """Return how a column writes a year or a month, the lowest first; empty if it cannot."""
    if rule.format in EPOCHS or kind in _WITHOUT_PARTIALS:
        return ()
    if kind in TIMES:
        # MariaDB and MySQL hold the day 1950-00-00 and its midnight.
        if not zeros:
            return ()
        *_, day, midnight = written(period, None)
        return (day,) if kind is ColumnKind.DATE else (midnight,)
    if kind in NUMBERS and rule.format is None:
        # The number of a year; no number stands for a month.
        return () if period.month else (period.year,)
    return written(period, rule.format)


def _held_time(kind: ColumnKind, local: datetime) -> datetime | str:
    """Return a local time as the column holds it, rounded up.

    A server would round it to the nearest time that the column holds.
    """
    if kind is ColumnKind.FINE_TIME:
        return local.isoformat(" ", "microseconds")
    if kind not in _FRACTIONS:
        return local
    if kind is ColumnKind.TICK_TIME:
        local = max(local, _FIRST_TICK)
    fractions = _FRACTIONS[kind]
    fraction = local.microsecond % fractions[-1]
    rounded_up = next(held for held in fractions if held >= fraction)
    try:
        return local + timedelta(microseconds=rounded_up - fraction)
    except OverflowError:
        # No year follows 9999: this is the last time that the column holds.
        return local + timedelta(microseconds=fractions[-2] - fraction)


def _text(kind: ColumnKind, rule: TimeRule, local: datetime) -> str:
    """Return a local time as the column's text, rounded up to what its format writes."""
    if rule.format is None:
        return _iso_text(local, with_time=rule.at is None)
    prefix, has_fraction, _ = rule.format.partition("%f")
    if has_fraction and kind not in NUMBERS:
        # A column may write three places or six: without zeros the text is below both.
        return in_format(local, f"{prefix}%f").rstrip("0")
    text = in_format(local, rule.format)
    # A format may leave out seconds, minutes or hours: the shortest step that its text
    # shows is added.
    for step in _STEPS:
        moment = datetime.strptime(text, rule.format)  # noqa: DTZ007 - as the column is
        if moment >= local:
            break
        text = in_format(moment + step, rule.format)
    return text


def _iso_text(local: datetime, *, with_time: bool) -> str:
    if not with_time:
        return local.date().isoformat()
    text = local.isoformat(" ", "seconds")
    # Text with and without a fraction then compares as the times do.
    return f"{text}.{local.microsecond:06d}".rstrip("0") if local.microsecond else text


# ------------------------------------------------------ instants of values

TICK = timedelta(microseconds=1)
FIRST = datetime(1, 1, 3, tzinfo=UTC)
LAST = datetime(9999, 12, 29, tzinfo=UTC)
"""Earlier and later instants are replaced by these, which every time zone can write."""

_LATE = re.compile("[0-9]{5}")
"""How a year past 9999 starts, where a database has such."""

_WRITTEN = (*TEXTS, ColumnKind.LOOSE, *NUMBERS)
"""Kinds whose values are read by a format: a value may compare as another time than it means."""


def instant_of(kind: ColumnKind, rule: TimeRule, value: object) -> datetime:
    """Return the instant, in UTC, that comparisons with `time_bound` see in a value."""
    try:
        moment = to_instant(value, rule).astimezone(UTC)
    except (ValueError, OverflowError):
        return _last_reached(kind, rule, value)
    if kind in _WRITTEN and not is_at(kind, rule, value, moment):
        return _last_reached(kind, rule, value)
    return min(max(moment, FIRST), LAST)


def edge(moment: datetime, *, later: bool) -> bool:
    """Whether an instant is the last one, if `later`, or the first one that values can have."""
    return moment >= LAST if later else moment <= FIRST


def is_at(
    kind: ColumnKind,
    rule: TimeRule,
    value: object,
    moment: datetime,
    step: timedelta = TICK,
) -> bool:
    """Whether the database compares a value as the instant that it means.

    The value is then not below the bound of that instant, and below the bound of the one that
    is a step later. The text 10:00 is below the bound 10:00:00, for example.
    """
    return _reaches(kind, rule, value, moment) and not (
        moment < LAST and _reaches(kind, rule, value, moment + step)
    )


def _last_reached(kind: ColumnKind, rule: TimeRule, value: object) -> datetime:
    """Return the last instant whose bound is not above the value, by a binary search."""

    def is_beyond(tick: int) -> bool:
        return not _reaches(kind, rule, value, FIRST + tick * TICK)

    ticks = range(1, (LAST - FIRST) // TICK + 1)
    return FIRST + bisect_left(ticks, True, key=is_beyond) * TICK


def _reaches(kind: ColumnKind, rule: TimeRule, value: Any, moment: datetime) -> bool:
    """Whether the database finds a value by `column >= bound` with the bound of an instant."""
    bound: Any = time_bound(kind, rule, moment)
    if isinstance(bound, (int, float, Decimal)):
        return isinstance(value, str) or bound <= value
    if kind in NUMBERS and bound.isdecimal():
        # 202403141000 is a number; SQLite puts every text in such a column behind all.
        return isinstance(value, str) or int(bound) <= value
    if isinstance(value, str) != isinstance(bound, str):
        return _reaches_otherwise(value, bound)
    compared: bool = bound <= value
    return compared


def _reaches_otherwise(value: object, bound: Any) -> bool:
    """Whether the database finds `value >= bound` where one is a text and the other is not."""
    if not isinstance(value, str):
        # SQLite puts every number before every text.
        return False
    if not isinstance(bound, date):
        return True
    if value.endswith("BC"):
        return False
    if _LATE.match(value):
        return True
    # A date of zeros comes as text, and sorts where it would as a text.
    return str(bound.isoformat()).replace("T", " ") <= value
