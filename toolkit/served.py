"""What clients get of some stays, and what the hospital's screens can confirm of it.

`mapping confirm` asks about a sample of stays, and compares the stays that answers name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

from adapters.contract import (
    EncounterRecord,
    GoneError,
    NotFoundError,
    Record,
    ReferenceCriterion,
    ResourceType,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
)
from adapters.mapping.model import Mark, ResourceMapping
from adapters.mapping.slots import FHIR_ID, LISTS, REFERS, SLOTS, Kind, places_of
from toolkit.checks.rows import plain_text
from toolkit.console import MappingFile
from toolkit.lineage import TracedField, trace
from toolkit.source_rows import SourceRow, all_pages, find_rows
from toolkit.stays import Stays, reading
from toolkit.trial import Searches, searching, written

STAY, PATIENT, ORGANIZATION = ResourceType

_BY_CLASS = {"status", "start", "end", "functional_unit"}
"""Slots that a SELECT often takes from elsewhere for some classes of stays."""

_SELDOM_EMPTY = {"visit_number", "gender", "birth_date", "identifiers.value"} | {
    *("names.family", "names.given", "names.text", "telecoms.value")
}
"""Slots that a mapping may have lost where clients get nothing."""

_UNASKED = {"id", "system", "use", "type"} | ({*REFERS} - {"replaced_by", "part_of"})
"""Slots that no screen shows, and references whose resource is asked for itself."""

_MOST_CLASSES = 6
"""Of so many codes of the class each may have a unit or an end from elsewhere."""

_MOST_STAYS = 40
"""How many stays of each source are sampled at most."""


class Aspect(NamedTuple):
    """What one answer can confirm: a field of a section, or a code or the clock of one."""

    section: Mark
    field: Mark
    slot: str
    variant: str = ""

    def __str__(self) -> str:
        return f"{self.slot} {self.variant}".rstrip()


class Value(NamedTuple):
    """A value that clients get, and what a screen that shows the same confirms."""

    traced: TracedField
    aspects: Sequence[Aspect]


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that clients get, with its values, and what it `lacks` by the mapping."""

    row: SourceRow
    values: Sequence[Value]
    lacks: Sequence[Aspect]

    @classmethod
    def of(cls, row: SourceRow, patient_id: str = "") -> Self:
        """Return the resource of a row; of a stay, `patient_id` is who remains of merged ones."""
        fields = trace(row.section, row.columns, row.cells, row.items)
        filled = [
            replace(f, value=patient_id) if patient_id and f.name == "patient_id" else f
            for f in fields
            if f.is_included and f.counts and f.value not in (None, (), "")
        ]
        of_class = [f"of {_class_of(f)}" for f in filled if f.name == "class"]
        section = row.section.mark
        values = [Value(f, [*_aspects(f, section, of_class)]) for f in filled]
        return cls(row, values, [*_lacking(row.section, filled, of_class)])

    @property
    def aspects(self) -> Iterator[Aspect]:
        """What answers about it can confirm."""
        yield from (aspect for value in self.values for aspect in value.aspects)
        yield from self.lacks

    def named(self, slot: str) -> list[TracedField]:
        """Return the values of a slot."""
        return [value.traced for value in self.values if value.traced.name == slot]


def _class_of(traced: TracedField) -> str:
    """Return the code of a class, that of FHIR where the file has many."""
    codes = traced.field.codes
    is_few = codes is not None and len(codes.table) <= _MOST_CLASSES
    return _variant(traced) if is_few else str(traced.value)


def _lacking(
    section: ResourceMapping, fields: Sequence[TracedField], of_class: list[str]
) -> Iterator[Aspect]:
    """Yield the fields of a stay or patient that are empty, and what has no field."""
    kind, mark = section.resource_type, section.mark
    if kind is ORGANIZATION:
        return
    filled = {each.name for each in fields if each.value not in (None, (), "")}
    mapped = {place.slot: place.field.mark for place in places_of(section)}
    slots = [s.name for s in SLOTS[kind] if s.kind not in (Kind.SYSTEM, Kind.FLAG)]
    slots = [s for s in slots if s not in {"replaced_by", *_UNASKED, *mapped}]
    lists = [each for each in LISTS[kind] if not section.items.get(each.name)]
    slots += [f"{each.name}.{each.content[0]}" for each in lists]
    empty = (_BY_CLASS | _SELDOM_EMPTY) & ({*mapped} - filled)
    lacking = [(slot, mapped[slot], "where it is empty") for slot in sorted(empty)]
    lacking += [(slot, mark, "without a field") for slot in slots]
    is_over = any(f.name == "status" and f.value == "finished" for f in fields)
    for slot, field, variant in lacking:
        is_by_class = slot in _BY_CLASS
        if slot == "end":
            # A stay that goes on has no end.
            variant += " if finished" * is_over
            is_by_class = is_over
        yield Aspect(mark, field, slot, " ".join((variant, *of_class * is_by_class)))


def _aspects(
    traced: TracedField, section: Mark, of_class: Sequence[str]
) -> Iterator[Aspect]:
    """Yield what a value can confirm; `of_class` names the class of its stay, if any."""
    slot = traced.name
    is_fixed = not traced.cells and traced.kind is not Kind.CODE
    if is_fixed or traced.kind is Kind.SYSTEM or slot.split(".")[-1] in _UNASKED:
        return
    yield Aspect(section, traced.field.mark, slot, _variant(traced))
    for variant in of_class if slot in _BY_CLASS else ():
        yield Aspect(section, traced.field.mark, slot, variant)


def _variant(traced: TracedField) -> str:
    """Return which code, which flag, or which of a zone's two clocks a value shows."""
    codes = traced.field.codes
    if codes and traced.cells:
        code = plain_text(traced.cells[0][1])
        # A code that the file does not name may be anything.
        return f"'{code}'" if code in codes.table else "otherwise"
    if traced.kind is Kind.FLAG:
        return written(traced.value)
    is_by_clock = traced.kind is Kind.TIME and not (traced.has_offset or is_day(traced))
    return _season(traced) if is_by_clock else ""


def _season(traced: TracedField) -> str:
    """Return which of the two clocks of a zone shows a time, "" where it has one."""
    assert traced.field.time is not None, "the loader gives every time a rule"
    local = traced.value.astimezone(traced.field.time.written)
    winter, summer = offsets(local)
    if winter == summer:
        return ""
    return "in summer" if local.utcoffset() == summer else "in winter"


def offsets(local: datetime) -> list[timedelta]:
    """Return how far a zone is from UTC in the winter and in the summer of a year."""
    days = (local.replace(month=month, day=1) for month in (1, 7))
    return sorted(day.utcoffset() or timedelta() for day in days)


def is_day(traced: TracedField) -> bool:
    """Whether the file adds the time of day (`at`), which then no screen shows."""
    rule, value = traced.field.time, traced.value
    if rule is None or rule.at is None or not isinstance(value, datetime):
        return False
    return value.astimezone(rule.zone).time() == rule.at


class Stay(NamedTuple):
    """A stay that clients get, with its patient and its hospital, as far as they get them."""

    record: EncounterRecord
    resources: Mapping[ResourceType, Resource]

    @property
    def aspects(self) -> set[Aspect]:
        """What its screens can confirm."""
        return {a for resource in self.resources.values() for a in resource.aspects}


@dataclass(frozen=True, slots=True)
class Served:
    """What clients get of a mapping whose sources are open."""

    file: MappingFile
    sources: Sequence[Stays]
    searches: Searches

    def sample(self) -> list[Stay]:
        """Return stays that differ, and whose patients do: by codes, clock and fields.

        The first of each source is its newest, where the source sorts by start.
        """
        stays = self._whole([pair for s in self.sources for pair in _varied(s)])
        shown = {aspect for stay in stays for aspect in stay.aspects}
        ids = [id for source in self.sources for id in self._others(source, shown)]
        return [*stays, *self.stays(ids).values()]

    def _others(self, source: Stays, shown: set[Aspect]) -> Iterator[str]:
        """Yield a stay of each patient who shows something that those before do not."""
        able, sections = source.reader.capabilities, self.file.sections(PATIENT)
        is_own = PATIENT in able and able[PATIENT].listed and len(sections) == 1
        if not is_own or "patient" not in able[STAY].parameters:
            return
        for page in islice(all_pages(source.reader, PATIENT), 1):
            for patient, cells in zip(page.page.rows, page.cells, strict=True):
                row = SourceRow(sections[0], page.columns, tuple(cells))
                new = {*Resource.of(row).aspects} - shown if patient.id else ()
                if new and (found := self._stay_of(patient.id)):
                    shown |= new
                    yield found

    def _stay_of(self, patient_id: str) -> str:
        """Return the id of a stay of a patient, "" if clients get none."""
        only = (ReferenceCriterion("patient", (patient_id,)),)
        query = SearchQuery(STAY, only, Sort(SortKey.ID), 1)
        return next((row.id for row in self.searches.adapter.search(query).rows), "")

    def stays(self, ids: Iterable[str]) -> Mapping[str, Stay]:
        """Return stays by id, as far as clients get them."""
        records = [self.record(STAY, id) for id in dict.fromkeys(ids)]
        stays = [each for each in records if isinstance(each, EncounterRecord)]
        rows = find_rows(self.file.mapping, STAY, [stay.id for stay in stays])
        pairs = zip(stays, rows, strict=True)
        own = [(stay, Resource.of(row, stay.patient_id)) for stay, row in pairs]
        return {stay.record.id: stay for stay in self._whole(own)}

    def record(self, kind: ResourceType, id: str) -> Record | None:
        """Return what clients get by an id, None for nothing."""
        try:
            is_id = FHIR_ID.fullmatch(id) is not None
            return self.searches.adapter.read(kind, id) if is_id else None
        except (NotFoundError, GoneError, SourceDataError):
            return None

    def _whole(self, pairs: Sequence[tuple[EncounterRecord, Resource]]) -> list[Stay]:
        """Return stays with what they refer to."""
        patients = self._resources(PATIENT, [r.patient_id for r, _ in pairs])
        hospitals = self._resources(ORGANIZATION, [r.organization_id for r, _ in pairs])
        whole = []
        for record, resource in pairs:
            patient = patients.get(record.patient_id)
            hospital = hospitals.get(record.organization_id)
            every = {STAY: resource, PATIENT: patient, ORGANIZATION: hospital}
            whole.append(Stay(record, {k: r for k, r in every.items() if r}))
        return whole

    def _resources(
        self, kind: ResourceType, ids: Iterable[str | None]
    ) -> Mapping[str | None, Resource]:
        """Return resources by id, as far as clients get them."""
        wanted = [*dict.fromkeys(filter(None, ids))] if self.file.sections(kind) else []
        served = [id for id in wanted if self.record(kind, id)]
        rows = find_rows(self.file.mapping, kind, served)
        return {id: Resource.of(row) for id, row in zip(served, rows, strict=True)}


def _varied(source: Stays) -> Iterator[tuple[EncounterRecord, Resource]]:
    """Yield the stays of a source that show something which those before do not."""
    shown, number = set[Aspect](), 0
    for row in source.sample():
        if row.stay and number < _MOST_STAYS:
            cells = (source.section, tuple(row.columns), tuple(row.cells))
            resource = Resource.of(SourceRow(*cells))
            if not shown.issuperset(resource.aspects):
                shown.update(resource.aspects)
                number += 1
                yield row.stay, resource


@contextmanager
def serving(path: Path) -> Iterator[Served]:
    """Open the sources of a mapping file. Raises AdapterError, MappingError."""
    with reading(path) as [(file, sources)], searching(file.mapping) as searches:
        yield Served(file, sources, searches)
