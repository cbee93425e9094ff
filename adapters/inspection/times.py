"""Times of a sample that make one doubt how the mapping reads them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta

from adapters.contract import EncounterRecord, Record, RowFault
from adapters.inspection import Observation, Weight
from adapters.mapping.model import ResourceMapping
from adapters.mapping.places import places_of
from adapters.mapping.slots import Kind
from adapters.mapping.time_rule import TimeRule

_ENOUGH = 20
"""How many times it takes before a pattern among them means something."""

_SHARE = 0.2
"""How many of the stays have to be changed before they begin: a clock is hardly so wrong."""

_BEGUN = ("in-progress", "finished")


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
    )
    for name, text in (*found, *_early(records, section)):
        place = next(p for p in places_of(section) if p.field.slot == name)
        source = place.field.columns[0]
        yield Observation.at(place, columns.get(source, source), text, Weight.WARNING)


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
