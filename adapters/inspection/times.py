"""Times of a sample that make one doubt how the mapping reads them."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta

from adapters.contract import EncounterRecord, Record, RowFault
from adapters.inspection import Observation, Weight
from adapters.mapping.model import ResourceMapping
from adapters.mapping.places import Place, places_of
from adapters.mapping.slots import Kind
from adapters.mapping.time_rule import TimeRule
from adapters.mapping.times import read_day
from adapters.mapping.values import presence

_ENOUGH = 20
"""How many times it takes before a pattern among them means something."""

_SHARE = 0.2
"""How many of the stays have to be changed before they begin: a clock is hardly so wrong."""

_BEGUN = ("in-progress", "finished")

_FAR = timedelta(days=20 * 365)
"""No stay is known so long before: what ends then may well have no end."""

_VERBS = {"start": "start", "end": "end"}
"""Slots whose far days are told, and what rows do then."""


def doubtful_times(
    section: ResourceMapping,
    rows: Collection[Record | RowFault],
    columns: Mapping[str, str],
    now: datetime,
) -> Iterator[Observation]:
    """Tell what is odd about the times of records."""
    records = [row for row in rows if not isinstance(row, RowFault)]
    for place in places_of(section):
        rule = place.field.time
        if place.kind is Kind.TIME and rule is not None and place.field.columns:
            times = [t for r in records if (t := getattr(r, place.field.slot))]
            column = columns.get(place.field.columns[0], place.field.columns[0])
            for weight, text in _of_times(times, rule):
                yield Observation.at(place, column, text, weight)
    found = (
        *_starts_ahead(records, section, now),
        *_changes_ahead(records, section, now),
        *_changes_behind(records, section, now),
    )
    for name, text in (*found, *_early(records, section)):
        place = next(p for p in places_of(section) if p.field.slot == name)
        source = place.field.columns[0]
        yield Observation.at(place, columns.get(source, source), text, Weight.WARNING)


def far_from(now: datetime) -> datetime:
    """Return the time from which on a day is a far one."""
    return now + _FAR


def has_far_days(place: Place) -> bool:
    """Tell whether a field is one whose far days stand for none in many systems."""
    field = place.field
    return place.slot in _VERBS and field.time is not None and bool(field.columns)


def far_days(
    place: Place, column: str, values: Iterable[tuple[object, int]], now: datetime
) -> Iterator[Observation]:
    """Tell the far days among values of a start or an end, each with its number of rows.

    A day that is no end of a year and comes once is not quoted: it may be a typing error.
    """
    field, verb = place.field, _VERBS[place.slot]
    present = presence(field.absent)
    assert field.time is not None, "only times are held against the clock"
    found: dict[date, dict[str, int]] = {}
    for value, rows in values:
        day = _day(present(value), field.time)
        if day and day > far_from(now).date():
            texts = found.setdefault(day, {})
            text = _as_absent(value)
            texts[text] = texts.get(text, 0) + rows
    sums = {day: sum(texts.values()) for day, texts in found.items()}
    told = [day for day in sums if sums[day] > 1 or (day.month, day.day) in _OUTER]
    if told:
        days = " and ".join(f"{_rows(sums[d], verb)} on {d}" for d in sorted(told))
        texts_told = [text for day in sorted(told) for text in found[day]]
        written = json.dumps([*sorted(field.absent), *texts_told], ensure_ascii=False)
        asked = "does it stand" if len(told) == 1 else "do they stand"
        text = f"{days}: {asked} for none? Then say so with absent"
        yield Observation.at(place, column, text, Weight.WARNING, f"absent: {written}")
    if others := sum(rows for day, rows in sums.items() if day not in told):
        text = f"{_rows(others, verb)} more than 20 years ahead: is a year wrong?"
        yield Observation.at(place, column, text, Weight.WARNING)


_OUTER = ((12, 31), (1, 1))
"""Days of a calendar that people write for none."""


def _day(value: object, rule: TimeRule) -> date | None:
    try:
        return None if value is None else read_day(value, rule)
    except ValueError:
        return None


def _as_absent(value: object) -> str:
    """Return the text under `absent` that means a value."""
    text = str(value).rstrip()
    return text.removesuffix(" 00:00:00") if isinstance(value, datetime) else text


def _rows(number: int, verb: str) -> str:
    return f"1 row {verb}s" if number == 1 else f"{number:,} rows {verb}"


def _of_times(
    times: Collection[datetime], rule: TimeRule
) -> Iterator[tuple[Weight, str]]:
    twice = sum(_happens_twice(moment, rule) for moment in times)
    if twice:
        text = f"{twice:,} of {len(times):,} times happen twice (autumn clock change)"
        yield Weight.NOTE, f"{text}, and are read as the {rule.twice}"
    if len(times) < _ENOUGH or rule.at is not None:
        return
    if all(_clock(moment, rule) == time() for moment in times):
        text = (
            f"all of {len(times):,} times are at 00:00: does the column hold days only?"
        )
        yield Weight.NOTE, text
    elif all(moment.astimezone(UTC).time() == time() for moment in times):
        text = (
            f"all of {len(times):,} times are at 00:00 in UTC, not in {rule.zone.key}"
        )
        yield Weight.WARNING, f"{text}: is the time zone of the column right?"


def _clock(moment: datetime, rule: TimeRule) -> time:
    return moment.astimezone(rule.zone).time()


def _happens_twice(moment: datetime, rule: TimeRule) -> bool:
    """Whether the clock of the column shows this time twice."""
    local = moment.astimezone(rule.zone)
    first, second = (local.replace(fold=fold).utcoffset() for fold in (0, 1))
    return first is not None and second is not None and first > second


_Doubt = tuple[str, str]
"""A slot, and what is odd about it."""


def _starts_ahead(
    records: Iterable[Record], section: ResourceMapping, now: datetime
) -> Iterator[_Doubt]:
    """Tell stays that have begun and start in the future."""
    starts = [stay.start for stay in _begun(records) if stay.start]
    ahead = [start for start in starts if start > now]
    if not ahead:
        return
    text = (
        f"{len(ahead):,} of {len(starts):,} stays that have begun start in the future"
    )
    if _is_near(section, "start", max(ahead), max(ahead) - now):
        yield "start", f"{text}, by less than the zone's offset: {_MIXED}"
    else:
        yield "start", f"{text}: are they planned, or is a year wrong?"


def _changes_ahead(
    records: Iterable[Record], section: ResourceMapping, now: datetime
) -> Iterator[_Doubt]:
    """Tell rows that were last changed in the future."""
    changes = [record.last_updated for record in records if record.last_updated]
    ahead = [change for change in changes if change > now]
    if not ahead:
        return
    text = f"{len(ahead):,} of {len(changes):,} rows were changed in the future"
    if _is_near(section, "last_updated", max(ahead), max(ahead) - now):
        yield "last_updated", f"{text}, by less than the zone's offset: {_MIXED}"
    else:
        yield "last_updated", f"{text}: is a clock or a year wrong?"


def _changes_behind(
    records: Iterable[Record], section: ResourceMapping, now: datetime
) -> Iterator[_Doubt]:
    """Tell a newest change that is as long ago as the zone is from UTC."""
    changes = [record.last_updated for record in records if record.last_updated]
    rule = section.fields["last_updated"].time if len(changes) >= _ENOUGH else None
    offset = rule and max(changes).astimezone(rule.zone).utcoffset()
    if offset and timedelta() <= now - max(changes) - offset < _JUST:
        yield "last_updated", f"{_BEHIND.format(offset)}: {_MIXED}"


_JUST = timedelta(minutes=15)
"""A hospital changes some row so often."""

_BEHIND = "the newest change is {} hours ago, as far as the zone is from UTC"


def _early(records: Iterable[Record], section: ResourceMapping) -> Iterator[_Doubt]:
    """Tell stays that were last changed before they began, by less than the offset."""
    begun = [
        (stay.start, stay.last_updated)
        for stay in _begun(records)
        if stay.start and stay.last_updated
    ]
    early = [(start, changed) for start, changed in begun if changed < start]
    near = [
        start
        for start, changed in early
        if _is_near(section, "start", start, start - changed)
    ]
    enough = max(_ENOUGH, _SHARE * len(begun), len(early) / 2)
    if len(near) >= enough:
        text = f"{len(near):,} of {len(begun):,} stays were changed before they began"
        yield "last_updated", f"{text}, by less than the zone's offset: {_MIXED}"


def _begun(records: Iterable[Record]) -> list[EncounterRecord]:
    stays = [record for record in records if isinstance(record, EncounterRecord)]
    return [stay for stay in stays if stay.status in _BEGUN]


_MIXED = "is a column of UTC read as local time, or the reverse (time_zone:)?"


def _is_near(
    section: ResourceMapping, slot: str, moment: datetime, apart: timedelta
) -> bool:
    """Whether two times are no further apart than the clocks of clients are from UTC."""
    time = section.fields[slot].time
    offset = time and moment.astimezone(time.written).utcoffset()
    return bool(offset) and apart <= abs(offset or timedelta())
