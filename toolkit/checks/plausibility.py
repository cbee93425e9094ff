"""What a sample of records says of its mapping: one that is served, and wrong.

`_DOUBTS` is the table of these checks: the fields that each is about, and how much it matters.
A check returns what is odd about a field, "" where nothing is. In few records a pattern means
nothing, and what a hospital may really have is a note.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cached_property, partial
from typing import Any, TypeAlias

from adapters.contract import EncounterRecord, PatientRecord, Record, RowFault
from adapters.mapping.model import ResourceMapping, TimeRule
from adapters.mapping.slots import Place, places_of
from toolkit.checks.engine import ENOUGH, FEW, Finding, Severity
from toolkit.checks.labels import NAMES, is_audit, words_of

ZONE = "is the time zone of the column right (time_zone:)?"

CLEARLY = 0.9
"""How many of the records nearly all are."""

_SHARE = 0.2
"""How many of the stays have to be changed before they begin: a clock is hardly so wrong."""

_JUST = timedelta(minutes=15)
"""A hospital changes some row so often, and soon after a patient comes or leaves."""

_MINUTE, _DAY, _WEEK = timedelta(minutes=1), timedelta(1), timedelta(7)
_INFANCY = timedelta(730)
_TEXTS = "identifiers.value telecoms.value addresses.lines"


@dataclass(frozen=True)
class Seen:
    """A field in the records of a sample; `column` is where it comes from."""

    section: ResourceMapping
    place: Place
    column: str
    records: Sequence[Any]
    now: datetime

    @cached_property
    def stays(self) -> Sequence[EncounterRecord]:
        """The stays of the sample."""
        return [each for each in self.records if isinstance(each, EncounterRecord)]

    @cached_property
    def begun(self) -> Sequence[EncounterRecord]:
        """Those that have begun."""
        states = "in-progress", "finished"
        return [each for each in self.stays if each.status in states]

    @property
    def times(self) -> Sequence[datetime]:
        """The times that the field has; of starts, of stays that have begun."""
        slot = self.place.slot
        of = self.begun if slot == "start" else self.records
        return [moment for each in of if (moment := getattr(each, slot))]

    @property
    def parts(self) -> Sequence[Any]:
        """The items of the records that have the constants of the field's own item."""
        item, listed = self.place.item, self.place.slot.partition(".")[0]
        fields = item.fields.items() if item else ()
        said = {name: f.constant for name, f in fields if f.constant is not None}
        every = [part for each in self.records for part in getattr(each, listed)]
        return [p for p in every if all(getattr(p, n, v) == v for n, v in said.items())]

    @property
    def rule(self) -> TimeRule:
        """How the field is read."""
        assert self.place.field.time is not None, "the field is one of times"
        return self.place.field.time


def doubts(
    section: ResourceMapping,
    rows: Collection[Record | RowFault],
    columns: Mapping[str, str],
    now: datetime,
) -> Iterator[Finding]:
    """Yield what is odd about records; `columns` are names as the source has them."""
    records = [row for row in rows if not isinstance(row, RowFault)]
    for place in places_of(section):
        own: Mapping[str, str] = {} if place.rows else columns
        column = ", ".join(own.get(name, name) for name in place.field.columns[:1])
        seen = Seen(section, place, column, records, now)
        for slots, severity, doubt in _DOUBTS:
            if place.slot in slots.split() and (text := doubt(seen)):
                topic = "fields with doubtful values"
                yield Finding.of_field(place, column, text, severity, "", topic)


# Zones and clocks


def _days_of_utc(seen: Seen) -> str:
    """Times that are all days of UTC, and not of their zone."""
    times = seen.times
    if len(times) < ENOUGH or seen.rule.at is not None:
        return ""
    is_day, is_utc_day = (
        all(moment.astimezone(zone).time() == time() for moment in times)
        for zone in (seen.rule.zone, UTC)
    )
    text = f"all of {len(times):,} times are at 00:00 in UTC, not in {seen.rule.zone}"
    return f"{text}: {ZONE}" if is_utc_day and not is_day else ""


def _ahead(seen: Seen) -> str:
    """What has happened in the future."""
    number = sum(moment > seen.now for moment in seen.times)
    text = f"{number:,} of {len(seen.times):,} are in the future: is a clock wrong, or a year?"
    return f"{text} Or {ZONE}" if number else ""


def _behind(seen: Seen) -> str:
    """A newest change as long ago as the zone is from UTC.

    Without many changes in as long a time before it, it is so by chance.
    """
    newest = max(seen.times, default=seen.now)
    offset = newest.astimezone(seen.rule.zone).utcoffset() or timedelta()
    is_just = offset and timedelta() <= seen.now - newest - offset < _JUST
    if not is_just or sum(newest - each < offset for each in seen.times) < ENOUGH:
        return ""
    return f"the newest change is {offset} ago, as far as the zone is from UTC: {ZONE}"


def _changed_early(seen: Seen) -> str:
    """Stays that were changed before they began, by less than a zone.

    By more, they may have been booked days before.
    """
    pairs = [
        (s.last_updated, s.start) for s in seen.begun if s.last_updated and s.start
    ]
    early = [(changed, start) for changed, start in pairs if changed < start]
    near = sum(start - changed <= abs(_offset(seen, start)) for changed, start in early)
    text = (
        f"{near:,} of {len(pairs):,} stays were changed before they began, by no more"
    )
    text += " than a zone is from UTC"
    least = max(ENOUGH, _SHARE * len(pairs), len(early) / 2)
    return f"{text}: {ZONE}" if near >= least else ""


def _changed_by_zone(seen: Seen) -> str:
    """Changes that follow, or precede, what they are of by as much as the zone is from UTC.

    In summer by an hour more than in winter: a hospital has no such habit.
    """
    for slot in ("start", "end"):
        lags: dict[timedelta, list[timedelta]] = {}
        for stay in seen.begun:
            if (moment := getattr(stay, slot)) and stay.last_updated:
                lag = stay.last_updated - moment
                lags.setdefault(_offset(seen, moment), []).append(lag)
        least = {
            offset: sorted(of)[len(of) // 10]
            for offset, of in lags.items()
            if len(of) >= ENOUGH
        }
        for sign, word in ((1, "after"), (-1, "before")):
            is_so = all(abs(lag - sign * by) < _JUST for by, lag in least.items())
            if len(least) > 1 and is_so:
                hours = " or ".join(str(abs(by)) for by in sorted(least))
                return f"stays are changed {hours} {word} their {slot}, as the zone is: {ZONE}"
    return ""


def _offset(seen: Seen, moment: datetime) -> timedelta:
    """Return how far the clocks of the hospital are from UTC."""
    start = seen.section.fields.get("start", seen.place.field).time or seen.rule
    return moment.astimezone(start.written).utcoffset() or timedelta()


# Times and states


def _without_start(seen: Seen) -> str:
    """Starts that begun stays lack; none at all is reported for the field."""
    lacking = sum(stay.start is None for stay in seen.begun)
    is_odd = max(ENOUGH, len(seen.begun) / 2) <= lacking < len(seen.begun)
    text = f"{lacking:,} of {len(seen.begun):,} stays that have begun have none"
    return f"{text}: does another column hold it?" * is_odd


def _ended_in_progress(seen: Seen) -> str:
    """Ends of stays that are in progress, of all or of one class."""
    stays = [stay for stay in seen.stays if stay.status == "in-progress"]
    for name in (None, *sorted({stay.class_code or "" for stay in stays})):
        ends = [stay.end for stay in stays if name in (None, stay.class_code)]
        ended = sum(end is not None and end <= seen.now for end in ends)
        if ended >= max(ENOUGH, len(ends) / 2):
            of = f" of class {name}" if name else ""
            text = f"{ended:,} of {len(ends):,} stays{of} in progress have ended"
            return f"{text}: does their status follow from another column?"
    return ""


def _finished_without_end(seen: Seen) -> str:
    """Finished stays of which none has an end."""
    ends = [stay.end for stay in seen.stays if stay.status == "finished"]
    text = (
        f"none of {len(ends):,} finished stays has an end: does another column hold it?"
    )
    return text * (len(ends) >= ENOUGH and not any(ends))


def _of_change(seen: Seen, *, slot: str, is_sure: bool) -> str:
    """Starts or ends that are last changes.

    Who closes a visit may change its row for the last time, and who registers one for the
    only time: surely not where no inpatient is in the hospital, or stays have ended since.
    """
    every = [(getattr(s, slot), s.last_updated, s.end) for s in seen.begun]
    changed = [(at, change, end) for at, change, end in every if at and change]
    same = [(change, end) for at, change, end in changed if abs(at - change) < _MINUTE]
    inpatients = [stay.end for stay in seen.begun if stay.class_code == "IMP"]
    is_clear = len(inpatients) >= ENOUGH and all(inpatients)
    if slot == "start":
        is_clear = sum(bool(end and end - at > _MINUTE) for at, end in same) >= ENOUGH
    if is_clear is not is_sure or len(same) < max(ENOUGH, CLEARLY * len(changed)):
        return ""
    text = f"{len(same):,} of {len(changed):,} {slot}s are the last change of their row"
    return (
        f"{text}: does another column hold the {'end' if slot == 'end' else 'change'}?"
    )


def _planned(seen: Seen, *, every: bool) -> str:
    """Stays that are all planned, though most have begun, or many still after a week."""
    starts = [s.start for s in seen.stays if s.start and s.status == "planned"]
    past = sum(start < seen.now - (_DAY if every else _WEEK) for start in starts)
    is_odd = ({s.status for s in seen.stays} == {"planned"}) is every
    is_odd &= past >= max(ENOUGH, len(starts) / 2)
    number = f"{past:,} of {len(starts):,}"
    text = f"{number} planned stays should have begun a week ago"
    if every:
        text = f"all stays are planned, {number} with a start in the past"
    return text * is_odd


def _all_finished(seen: Seen) -> str:
    """Stays that are all finished, though the newest have no end.

    Ends that are optional are missing in old stays too.
    """
    dated = [(stay.start, stay.end) for stay in seen.stays if stay.start]
    ended = sorted(start for start, end in dated if end)
    without = [start for start, end in dated if not end]
    is_one = {stay.status for stay in seen.stays} == {"finished"}
    if not (is_one and ended) or len(without) < ENOUGH:
        return ""
    recent = sum(start > ended[len(ended) * 3 // 4] for start in without)
    text = f"all stays are finished, but {recent:,} of the newest have no end"
    return f"{text}: are they in progress?" * (recent >= 0.75 * len(without))


# Classes


def _swapped_classes(seen: Seen) -> str:
    """Inpatients who leave within a day, or never, where others stay."""
    lasting: dict[str | None, list[timedelta | None]] = {}
    for stay in seen.stays:
        if stay.status == "finished" and stay.start:
            length = stay.end - stay.start if stay.end else None
            lasting.setdefault(stay.class_code, []).append(length)
    known = {of: sorted(filter(None, each)) for of, each in lasting.items()}
    inpatients = lasting.pop("IMP", [])
    if len(inpatients) >= ENOUGH and not known["IMP"]:
        ended = sum(map(len, known.values()))
        text = f"none of {len(inpatients):,} finished stays of class IMP has an end"
        return f"{text}, {ended:,} others do: are codes swapped?" * (ended >= ENOUGH)
    medians = {of: x[len(x) // 2] for of, x in known.items() if len(x) >= ENOUGH}
    long = [of for of in ("AMB", "EMER") if medians.get(of, _DAY) > _DAY]
    text = "at the median, stays of class IMP last less than a day"
    text += f", of {' and '.join(long)} more: are codes swapped?"
    return text * (medians.get("IMP", _DAY) < _DAY and bool(long))


# Columns that hold something else


def _of_audit(seen: Seen) -> str:
    """A column that by its name holds when its row was written."""
    is_audit_time = bool(seen.column) and is_audit(seen.column.rpartition(".")[2])
    text = "by its name the column says when the row was written: does another one hold it?"
    return text * is_audit_time


def _infants(seen: Seen) -> str:
    """Patients who are nearly all infants."""
    births = [each.birth_date for each in seen.records if each.birth_date]
    young: int = sum(max(births) - birth < _INFANCY for birth in births)
    text = f"{young:,} of {len(births):,} patients were born within two years"
    text += ": does another column hold the day of birth?"
    return text * (young >= max(ENOUGH, CLEARLY * len(births)))


def _reversed(seen: Seen, *, odd: bool) -> str:
    """A flag that nearly all patients have, and few can have. Merged ones are inactive."""
    patients = [each for each in seen.records if isinstance(each, PatientRecord)]
    values = [getattr(p, seen.place.slot) for p in patients if not p.replaced_by]
    values = [value for value in values if value is not None]
    number = values.count(odd)
    text = f"{number:,} of {len(values):,} patients are {str(odd).lower()} here: is it reversed?"
    return text * (number >= max(ENOUGH, CLEARLY * len(values)))


def _all_deceased(seen: Seen) -> str:
    """Times of death that nearly all patients have."""
    number, every = len(seen.times), len(seen.records)
    text = f"{number:,} of {every:,} patients have one: is it that of something else?"
    return text * (number >= max(ENOUGH, CLEARLY * every))


def _placeholders(seen: Seen) -> str:
    """Texts that stand for none: without a letter or digit, or the number of many people."""
    listed = seen.place.slot.partition(".")[0]
    is_list = listed == "addresses"
    texts = [t for p in seen.parts for t in (p.lines if is_list else (p.value,))]
    number, least = sum(not any(map(str.isalnum, text)) for text in texts), FEW
    text = "have no letter or digit"
    if number < FEW and listed == "identifiers":
        number, least = max(Counter(texts).values(), default=0), ENOUGH
        text = "are the same"
    text = f"{number:,} of {len(texts):,} {text}: no value? Then set absent"
    return text * (number >= least)


def _other_system(seen: Seen) -> str:
    """Phone numbers with an @, or addresses of email without."""
    values = [part.value for part in seen.parts if part.system in ("phone", "fax")]
    odd = sum("@" in value for value in values)
    mails = [part.value for part in seen.parts if part.system == "email"]
    text = f"{odd:,} of {len(values):,} numbers have an @: is it email?"
    if odd < FEW:
        odd = sum("@" not in mail for mail in mails)
        text = f"{odd:,} of {len(mails):,} have no @: are they addresses of email?"
    return text * (odd >= FEW)


def _given_as_family(seen: Seen) -> str:
    """A family name from a column that by its name holds a given one."""
    is_given = words_of(seen.column.rpartition(".")[2], NAMES) == {"given"}
    return "by its name the column holds given names: are both swapped?" * is_given


# Visit numbers


def _lacking_numbers(seen: Seen, *, is_sure: bool) -> str:
    """Visit numbers that begun stays lack; surely where all planned ones have one."""
    planned = [bool(s.visit_number) for s in seen.stays if s.status == "planned"]
    begun = [bool(s.visit_number) for s in seen.begun]
    is_other = len(planned) >= FEW and all(planned)
    # None at all is reported for the field.
    is_odd = any(begun) and begun.count(False) >= max(ENOUGH, len(begun) / 2)
    if not is_odd or is_other is not is_sure:
        return ""
    text = f"{begun.count(False):,} of {len(begun):,} stays that have begun have none"
    text += ", all planned ones have one" * is_other
    return f"{text}: does the SELECT choose another kind (type, tag)?"


def _shared_numbers(seen: Seen, *, is_sure: bool) -> str:
    """Visit numbers that several stays have; surely where they are of several patients."""
    patients: dict[tuple[str | None, ...], list[str]] = {}
    for stay in (each for each in seen.stays if each.visit_number):
        # A number is unique within one hospital.
        number = stay.visit_number, stay.visit_number_system, stay.organization_id
        patients.setdefault(number, []).append(stay.patient_id)
    least = max(ENOUGH, len(seen.stays) / 2)
    shared = [of for of in patients.values() if len(of) > 1]
    mixed = sum(len(of) for of in shared if len({*of}) > 1)
    sharing = mixed if is_sure else sum(map(len, shared))
    if sharing < least or (mixed >= least) is not is_sure:
        return ""
    others = "stays of other patients" if is_sure else "other stays of the patient"
    text = f"{sharing:,} of {len(seen.stays):,} stays share theirs with {others}"
    return f"{text}: which column tells visits apart?"


_Doubt: TypeAlias = tuple[str, Severity, Callable[[Seen], str]]

_DOUBTS: tuple[_Doubt, ...] = (
    ("start end last_updated deceased_at", Severity.WARNING, _days_of_utc),
    ("start", Severity.WARNING, _without_start),
    ("start last_updated", Severity.WARNING, _ahead),
    ("last_updated", Severity.WARNING, _behind),
    ("last_updated", Severity.WARNING, _changed_early),
    ("last_updated", Severity.WARNING, _changed_by_zone),
    ("end", Severity.WARNING, _ended_in_progress),
    ("end", Severity.WARNING, _finished_without_end),
    ("end", Severity.WARNING, partial(_of_change, slot="end", is_sure=True)),
    ("end", Severity.NOTE, partial(_of_change, slot="end", is_sure=False)),
    ("last_updated", Severity.WARNING, partial(_of_change, slot="start", is_sure=True)),
    ("last_updated", Severity.NOTE, partial(_of_change, slot="start", is_sure=False)),
    ("status", Severity.WARNING, partial(_planned, every=True)),
    ("status", Severity.NOTE, partial(_planned, every=False)),
    ("status", Severity.WARNING, _all_finished),
    ("class", Severity.WARNING, _swapped_classes),
    ("end birth_date", Severity.WARNING, _of_audit),
    ("birth_date", Severity.WARNING, _infants),
    ("active", Severity.WARNING, partial(_reversed, odd=False)),
    ("deceased", Severity.WARNING, partial(_reversed, odd=True)),
    ("deceased_at", Severity.WARNING, _all_deceased),
    (_TEXTS, Severity.WARNING, _placeholders),
    ("telecoms.value", Severity.WARNING, _other_system),
    ("names.family", Severity.WARNING, _given_as_family),
    ("visit_number", Severity.WARNING, partial(_lacking_numbers, is_sure=True)),
    ("visit_number", Severity.NOTE, partial(_lacking_numbers, is_sure=False)),
    ("visit_number", Severity.WARNING, partial(_shared_numbers, is_sure=True)),
    ("visit_number", Severity.NOTE, partial(_shared_numbers, is_sure=False)),
)
