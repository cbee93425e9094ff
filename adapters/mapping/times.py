"""Source values become instants, and instants the bounds that a search compares.

The results carry fixed offsets, not zones: Python compares two times of one zone by their
clocks alone, which is wrong in the hour that happens twice. Reading a value raises
ValueError with a rule for the integrator, which quotes no value.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache, partial
from types import MappingProxyType
from zoneinfo import ZoneInfo, available_timezones

from adapters.mapping.model import Never, TimeRule, Twice
from adapters.mapping.values import Memo, as_text, text_or_none

FIRST_TIME = datetime.min  # noqa: DTZ901 (a local value, as sources have them)
LAST_TIME = datetime.max  # noqa: DTZ901
ORIGIN = datetime(2000, 1, 1)  # noqa: DTZ001

_TICK = timedelta(microseconds=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_LAST_DAY = date.max.toordinal()
_DIRECTIVE = re.compile("%(:z|.)", re.DOTALL)
_DIRECTIVES = frozenset("YymdbBjHIMSfpz%")
_SORTABLE = re.compile(
    r"[^%]*%Y[^%]*%m[^%]*%d(?:[^%]*%H(?:[^%]*%M(?:[^%]*%S(?:[^%]*%f)?)?)?)?[^%]*"
)
EPOCHS: Mapping[str, int] = MappingProxyType({"epoch": 1_000_000, "epoch-ms": 1_000})
"""Formats of numbers: the time since 1970 in UTC, each with its unit in microseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_OUTSIDE = "outside the years 1 to 9999"
_NO_DATETIME = re.compile(r"-?infinity|.* BC|\d{5,}-.*", re.IGNORECASE)
"""What PostgreSQL writes for a time that no datetime holds."""
_ISO_DAY = re.compile(r"\d{4}-?(\d{2}-?\d{2}|W\d{2}(-?\d)?)")


def to_instant(value: object, rule: TimeRule) -> datetime:
    """Return the instant of a source value, with the offset that clients see.

    The value is a datetime, a date, or a text that the rule's format (else ISO 8601)
    reads. An offset that is not whole minutes, as before 1911, is written in UTC.
    Raises ValueError with a rule that quotes no value.
    """
    if type(value) is datetime and value.tzinfo is None:
        base = day_bases(rule.zone, rule.written)[value.toordinal()]
        if base is not None:
            return base + (value - ORIGIN)
    read = read_value(value, rule)
    try:
        if read.tzinfo is None:
            read = placed(read, rule)
        return rewritten(read, rule.written)
    except OverflowError as error:
        raise ValueError(_OUTSIDE) from error


def read_value(value: object, rule: TimeRule) -> datetime:
    """Return the datetime of a source value, naive where it has no offset."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return _at(value, rule)
    if unit := EPOCHS.get(rule.format or ""):
        return _since_epoch(value, unit)
    if isinstance(value, str):
        return _read_text(value, rule)
    if isinstance(value, (int, Decimal)) and rule.format:
        return _read_text(digits_of(value, rule.format), rule)
    raise ValueError("not a time")


def read_day(value: object, rule: TimeRule) -> date:
    """Return the calendar day of a source value.

    Raises ValueError with a rule that quotes no value.
    """
    if isinstance(value, datetime):
        return (value.astimezone(rule.zone) if value.tzinfo else value).date()
    if isinstance(value, date):
        return value
    if rule.format is None and isinstance(value, str) and _ISO_DAY.fullmatch(value):
        # For a text that is no day, the lines below raise the error.
        with suppress(ValueError):
            return date.fromisoformat(value)
    read = read_value(value, _at_midnight(rule))
    return (read.astimezone(rule.zone) if rule.format in EPOCHS else read).date()


@lru_cache
def _at_midnight(rule: TimeRule) -> TimeRule:
    return replace(rule, at=time())


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
    """Return the smallest local value, naive, whose instant is not before `instant`.

    It is the bound of a search in the source. Values that the rule refuses do not count.
    """
    try:
        local = instant.astimezone(rule.zone)
        return smallest(local, rule)
    except OverflowError:
        return LAST_TIME if instant.year > 5000 else FIRST_TIME


def in_format(moment: date, form: str) -> str:
    """Return a time in a strptime format, the year in the four digits that this reads."""
    # By itself, strftime writes 999 on some systems: as a text it comes after 2024.
    offset = moment.strftime("%z")
    written = {"%Y": f"{moment.year:04}", "%:z": f"{offset[:3]}:{offset[3:]}"}
    form = _DIRECTIVE.sub(lambda match: written.get(match[0], match[0]), form)
    return moment.strftime(form)


def _readable(form: str) -> str:
    """Return a format for strptime, whose %z reads offsets with a colon, too."""
    return _DIRECTIVE.sub(lambda match: "%z" if match[0] == "%:z" else match[0], form)


def epoch_of(instant: datetime, form: str) -> Fraction:
    """Return the number that a format of EPOCHS has for an instant."""
    return Fraction((instant - _EPOCH) // _TICK, EPOCHS[form])


def _since_epoch(value: object, unit: int) -> datetime:
    """Return the instant of a number of units since 1970; `unit` is in microseconds."""
    if type(value) is not int:
        text = text_or_none(value) or ""
        if isinstance(value, bool) or not _NUMBER.fullmatch(text):
            raise ValueError("not a number of seconds or milliseconds")
        value = Decimal(text)
    try:
        return _EPOCH + timedelta(microseconds=int(value * unit // 1))
    except (OverflowError, ArithmeticError) as error:
        raise ValueError(_OUTSIDE) from error


def _at(day: date, rule: TimeRule) -> datetime:
    """Return a day at the rule's time of day; raises ValueError if the rule has none."""
    if rule.at is None:
        raise ValueError('a date without a time of day: add at: "00:00"')
    return datetime.combine(day, rule.at)


def _read_text(text: str, rule: TimeRule) -> datetime:
    """Return the datetime that a text holds, a day at the rule's time of day."""
    try:
        read = _parsed(text, rule)
    except ValueError as error:
        if _NO_DATETIME.fullmatch(text):
            raise ValueError(_OUTSIDE) from error
        raise ValueError(f"not readable as {rule.format or 'a time'}") from error
    return read if isinstance(read, datetime) else _at(read, rule)


def _parsed(text: str, rule: TimeRule) -> datetime | date:
    """Return the datetime that a text holds, or its day where it has no time of day."""
    if rule.format is None:
        if _ISO_DAY.fullmatch(text):
            return date.fromisoformat(text)
        return datetime.fromisoformat(text)
    form = _readable(rule.format)
    if (strict := _of_fixed_width(form)) and not strict.fullmatch(text):
        raise ValueError
    read = datetime.strptime(text, form)  # noqa: DTZ007 (placed by the rule)
    if rule.pivot is not None:
        read = _in_century(read, rule.pivot)
    return read if has_clock(rule.format) else read.date()


def digits_of(value: int | Decimal, form: str) -> str:
    """Return a number as text, with the leading zeros that a format requires."""
    return as_text(value).zfill(len(ORIGIN.strftime(_readable(form))))


_WIDTHS = {"Y": 4, "j": 3, **dict.fromkeys("ymdHIMS", 2)}


@lru_cache
def _of_fixed_width(form: str) -> re.Pattern[str] | None:
    """Return a pattern that requires all digits of directives which follow each other directly.

    None for a format with a text between all of its directives. By itself, strptime reads
    10245 as %d%m%y, the tenth of February.
    """
    parts = re.split("%(.)", form)
    # literals[n] stands before letters[n], literals[n + 1] after it.
    literals = parts[::2]
    letters = parts[1::2]
    if all(literals[1:-1]):
        return None
    pattern = re.escape(literals[0])
    for index, letter in enumerate(letters):
        touches_last = index > 0 and not literals[index]
        touches_next = index + 1 < len(letters) and not literals[index + 1]
        if letter in _WIDTHS and (touches_last or touches_next):
            pattern += rf"\d{{{_WIDTHS[letter]}}}"
        else:
            pattern += ".+"
        pattern += re.escape(literals[index + 1])
    return re.compile(pattern, re.ASCII | re.DOTALL)


def _in_century(read: datetime, first: int) -> datetime:
    """Return a time with the century of the hundred years that begin with `first`."""
    return read.replace(year=first + (read.year - first) % 100)


@lru_cache
def has_clock(form: str) -> bool:
    """Return whether a format has a time of day."""
    return form in EPOCHS or bool(directives(form) & set("HIMSf"))


def _clock(value: object) -> time:
    """Return the time of day of a source value; raises ValueError."""
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


# -------------------------------------------------------------------- clock changes


def rewritten(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the same instant with the offset that a zone has then."""
    local = instant.astimezone(zone)
    return _fixed(local, _offset(local))


def placed(local: datetime, rule: TimeRule) -> datetime:
    """Return the instant of a local time, by the zone and the rule's two policies."""
    first, second = _offsets(local, rule.zone)
    if first == second:
        return _fixed(local, first)
    if first > second:
        if rule.twice is Twice.REFUSE:
            raise ValueError("a local time that happens twice (clock change)")
        return _fixed(local, first if rule.twice is Twice.FIRST else second)
    if rule.never is Never.REFUSE:
        raise ValueError("a local time that does not exist (clock change)")
    change = _change(local - second, local - first, rule.zone)
    return _fixed(change + second, second)


def _fixed(local: datetime, offset: timedelta) -> datetime:
    """Return a local time with its offset, or in UTC if that is not whole minutes."""
    fixed = local.replace(tzinfo=_timezone(offset), fold=0)
    return fixed.astimezone(UTC) if offset % _MINUTE else fixed


@lru_cache
def _timezone(offset: timedelta) -> timezone:
    """Return one object for each offset: times that share it compare ten times faster."""
    return timezone(offset)


@lru_cache
def day_bases(zone: ZoneInfo, written: ZoneInfo) -> Mapping[int, datetime | None]:
    """Return ORIGIN by the offset of each day, by the day's ordinal.

    A local time of the day is as far from it as from ORIGIN: adding that difference is
    nine times faster than `replace` and `astimezone`. None if the offset changes that day.
    All times share it that are read by one zone and written by another.
    """
    return Memo(partial(_base, zone, written), most=1 << 16)


def _base(zone: ZoneInfo, written: ZoneInfo, ordinal: int) -> datetime | None:
    """Return ORIGIN by the offset of one day, as `day_bases` has it."""
    if not 2 < ordinal < _LAST_DAY - 2:
        return None
    start = datetime.fromordinal(ordinal)
    walls = (start, start + _DAY / 2, start + _DAY)
    read = _one_offset(offset for wall in walls for offset in _offsets(wall, zone))
    if read is None:
        return None
    shown = _one_offset(
        _offset(wall.replace(tzinfo=read).astimezone(written)) for wall in walls
    )
    return ORIGIN.replace(tzinfo=read).astimezone(shown) if shown else None


def _one_offset(offsets: Iterable[timedelta]) -> timezone | None:
    """Return the offset that all are, None if they differ or are not whole minutes."""
    distinct = set(offsets)
    if len(distinct) != 1:
        return None
    offset = distinct.pop()
    return None if offset % _MINUTE else _timezone(offset)


def _offsets(local: datetime, zone: ZoneInfo) -> tuple[timedelta, timedelta]:
    """Return the offset before and after a change that a local time may fall on."""
    aware = local.replace(tzinfo=zone, fold=0)
    return _offset(aware), _offset(aware.replace(fold=1))


def _offset(aware: datetime) -> timedelta:
    offset = aware.utcoffset()
    assert offset is not None, "the time is aware"
    return offset


def _change(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant of the offset that holds at `after`; all naive UTC."""
    offset = _offset_at(after, zone)
    while after - before > _TICK:
        middle = before + (after - before) // 2
        if _offset_at(middle, zone) == offset:
            after = middle
        else:
            before = middle
    return after


def _offset_at(utc: datetime, zone: ZoneInfo) -> timedelta:
    """Return the offset of a zone at an instant, which is naive UTC."""
    return _offset(utc.replace(tzinfo=UTC).astimezone(zone))


def smallest(local: datetime, rule: TimeRule) -> datetime:
    """Return the smallest value that the rule reads as this instant or a later one."""
    wall = local.replace(tzinfo=None, fold=0)
    first, second = _offsets(wall, rule.zone)
    if first == second:
        return wall - _skipped(local, rule)
    if rule.twice is (Twice.SECOND if local.fold else Twice.FIRST):
        return wall
    # The hour happens twice, and the rule does not read it as the pass of this instant. Under
    # SECOND all of it is later, so that its start is the smallest value; under FIRST all of it
    # is earlier and under REFUSE none of it is read, so that its end is.
    change = _change(wall - first, wall - second, rule.zone)
    return change + (second if rule.twice is Twice.SECOND else first)


def _skipped(local: datetime, rule: TimeRule) -> timedelta:
    """Return the length of the spring gap if `local` is the instant at which it ends.

    Where such times are shifted, all of the gap is this instant.
    """
    if rule.never is Never.REFUSE:
        return timedelta()
    utc = local.astimezone(UTC).replace(tzinfo=None)
    if utc == FIRST_TIME:
        return timedelta()
    offset_before = _offset_at(utc - _TICK, rule.zone)
    return max(_offset(local) - offset_before, timedelta())


# ---------------------------------------------------------------- zones and formats


@cache
def zone_names() -> frozenset[str]:
    """Return the names of all time zones."""
    return frozenset(available_timezones())


@lru_cache
def directives(form: str) -> frozenset[str]:
    """Return the letters that follow a percent sign in a strptime format; z for %:z."""
    return frozenset(re.findall(r"%(.?)", _readable(form), re.DOTALL))


def format_fault(form: str) -> str:
    """Return why a text is no format of a whole day, "" for one that is."""
    if form in EPOCHS:
        return ""
    letters = directives(form)
    has_month = bool(letters & set("mbB"))
    has_day = "j" in letters or ("d" in letters and has_month)
    is_whole_day = bool(letters & set("Yy")) and has_day
    # `_is_read` tries a time without an offset.
    if letters <= _DIRECTIVES and is_whole_day and ("z" in letters or _is_read(form)):
        return ""
    return f"'{form}' is not a format: write it like %d/%m/%Y %H:%M, an offset as %z"


def _is_read(form: str) -> bool:
    """Return whether strptime reads what strftime writes in a format."""
    sample = datetime(2024, 3, 30, 8, 15)  # noqa: DTZ001 (a local value, as sources have them)
    try:
        datetime.strptime(sample.strftime(form), form)  # noqa: DTZ007
    except (ValueError, re.error):
        return False
    return True


def ends_in_a_z(form: str) -> bool:
    """Return whether a strptime format ends in the letter Z, which names no zone by itself."""
    return form.endswith("Z") and not form.endswith("%Z")


def sorts_as_text(form: str) -> bool:
    """Return whether values of this format, as texts or numbers, sort as their times."""
    return form in EPOCHS or _SORTABLE.fullmatch(form) is not None


def says_offset(form: str | None) -> bool:
    """Return whether values of a format have their own offset from UTC."""
    return form is not None and (form in EPOCHS or "z" in directives(form))


def presence(absent: frozenset[str]) -> Callable[[object], object]:
    """Return a function that returns a value without trailing blanks, None for an absent one.

    A day in `absent` is also the midnight that some databases make of it, and a time is the
    same however it is written: filters compare it as a time.
    """
    absent_texts = absent | {""}
    absent_times = moments(absent)
    absent_days = frozenset(at.date() for at in absent_times if at.timetz() == time())

    def present(value: object) -> object:
        if isinstance(value, datetime):
            return None if value in absent_times else value
        if isinstance(value, date):
            return None if value in absent_days else value
        if isinstance(value, str):
            value = value.rstrip()
        # As a person writes it, and as SQL compares it: 0 is also 0.00.
        text = text_or_none(value)
        if text is None:
            return value
        if text in absent_texts or text.removesuffix(" 00:00:00") in absent_texts:
            return None
        return value

    return present if absent else _strip


def moments(absent: Iterable[str]) -> tuple[datetime, ...]:
    """Return the times among texts that mean no value; a day is its midnight."""
    times = []
    for text in absent:
        with suppress(ValueError):
            times.append(datetime.fromisoformat(text))
    return tuple(times)


def _strip(value: object) -> object:
    """Return a value without trailing blanks, None for a text of blanks alone."""
    return (value.rstrip() or None) if isinstance(value, str) else value
