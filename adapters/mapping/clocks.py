"""Clocks and offsets: where a local time stands among instants, whatever the zone does.

The answers carry fixed offsets, not zones: Python compares two times of one zone by
their clocks alone, which is wrong in the hour that happens twice.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo

from adapters.mapping.time_rule import Never, TimeRule, Twice

FIRST_TIME = datetime.min  # noqa: DTZ901 (a local value, as sources have them)
LAST_TIME = datetime.max  # noqa: DTZ901
ORIGIN = datetime(2000, 1, 1)  # noqa: DTZ001

_TICK = timedelta(microseconds=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_LAST_DAY = date.max.toordinal()
_MOST_DAYS = 1 << 16


def rewritten(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the same instant with the offset that a zone has then."""
    steady = _steady_around(zone, instant.toordinal())
    if steady:
        return instant.astimezone(steady)
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
        raise ValueError("a local time that never happens (clock change)")
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


class DayBases(dict[int, datetime | None]):
    """The instant of ORIGIN by the offset of each day, by its ordinal; None if that changes then.

    A local time of the day is as far from it as from ORIGIN: adding that difference is
    nine times faster than `replace` and `astimezone`.
    """

    def __init__(self, zone: ZoneInfo, written: ZoneInfo) -> None:
        super().__init__()
        self._zones = zone, written

    def __missing__(self, ordinal: int) -> datetime | None:
        if len(self) > _MOST_DAYS:
            self.clear()
        zone, written = self._zones
        read = _steady_day(zone, ordinal)
        shown = read
        if read and zone is not written:
            shown = _steady_during(written, ordinal, read)
        base = self[ordinal] = _base(read, shown) if read and shown else None
        return base


@lru_cache
def day_bases(zone: ZoneInfo, written: ZoneInfo) -> DayBases:
    """Return what all times share that are read by one zone and written by another."""
    return DayBases(zone, written)


@lru_cache
def _base(read: timezone, shown: timezone) -> datetime:
    """Return one object for each pair of offsets: there are thousands of days, and few pairs."""
    return ORIGIN.replace(tzinfo=read).astimezone(shown)


def _steady_day(zone: ZoneInfo, ordinal: int) -> timezone | None:
    """Return the offset of a whole local day, None if it may change within the day."""
    if ordinal >= _LAST_DAY:
        return None
    start = datetime.fromordinal(ordinal)
    walls = (start, start + _DAY / 2, start + _DAY)
    return _one_offset(offset for wall in walls for offset in _offsets(wall, zone))


def _steady_during(zone: ZoneInfo, ordinal: int, read: timezone) -> timezone | None:
    """Return the offset of a zone during a day of another offset, None if it may change."""
    if not 2 < ordinal < _LAST_DAY - 2:
        return None
    start = datetime.fromordinal(ordinal).replace(tzinfo=read)
    instants = (start, start + _DAY / 2, start + _DAY)
    return _one_offset(_offset(instant.astimezone(zone)) for instant in instants)


@lru_cache(maxsize=1 << 16)
def _steady_around(zone: ZoneInfo, ordinal: int) -> timezone | None:
    """Return the offset in and around a day, whatever zone names the day."""
    if not 2 < ordinal < _LAST_DAY - 2:
        return None
    start = datetime.fromordinal(ordinal).replace(tzinfo=UTC)
    instants = (start + days * _DAY for days in (-1, 0, 1, 2))
    return _one_offset(_offset(instant.astimezone(zone)) for instant in instants)


def _one_offset(offsets: Iterable[timedelta]) -> timezone | None:
    found = set(offsets)
    whole = len(found) == 1 and not any(offset % _MINUTE for offset in found)
    return _timezone(found.pop()) if whole else None


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
    return _offset(utc.replace(tzinfo=UTC).astimezone(zone))


def smallest(local: datetime, rule: TimeRule) -> datetime:
    """Return the smallest value that the rule reads as this instant or a later one."""
    wall = local.replace(tzinfo=None, fold=0)
    first, second = _offsets(wall, rule.zone)
    if first == second:
        return wall - _skipped(local, rule)
    if rule.twice is (Twice.SECOND if local.fold else Twice.FIRST):
        return wall
    change = _change(wall - first, wall - second, rule.zone)
    # The hour happens twice: under SECOND all of it is later than its first pass, under
    # FIRST and REFUSE nothing in it is as late as its second.
    return change + (second if rule.twice is Twice.SECOND else first)


def _skipped(local: datetime, rule: TimeRule) -> timedelta:
    """Return the length of the gap that ends at this instant and shifts to it."""
    if rule.never is Never.REFUSE:
        return timedelta()
    utc = local.astimezone(UTC).replace(tzinfo=None)
    if utc == FIRST_TIME:
        return timedelta()
    return max(_offset(local) - _offset_at(utc - _TICK, rule.zone), timedelta())
