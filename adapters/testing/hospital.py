"""A tiny hospital system as plain rows, and the model of what an adapter makes of them.

Who tests an adapter puts the rows of a `Hospital` into a source of its kind; `model` gives
the same rows as records in memory, worked out here without the code under test.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from zoneinfo import ZoneInfo

from adapters.contract import (
    EncounterRecord,
    IdentifierRecord,
    NameRecord,
    OrganizationRecord,
    PatientRecord,
    ResourceType,
    RowFault,
)
from adapters.mapping.model import DateReading
from adapters.mapping.time_rule import Never, Twice
from adapters.memory import FaultyRow, MemoryAdapter, Row

PARIS = ZoneInfo("Europe/Paris")
UNIT_URL = "https://example.org/fhir/StructureDefinition/functional-unit"
IPP_SYSTEM = "urn:oid:1.2.250.1.999.2"
FINESS_SYSTEM = "urn:oid:1.2.250.1.71.4.2.2"
VISIT_SYSTEMS = {"H1": "urn:oid:1.2.250.1.999.1.1", "H2": "urn:oid:1.2.250.1.999.1.2"}
STATES = {
    "P": "planned",
    "E": "in-progress",
    "S": "finished",
    "C": "finished",
    "A": "hidden",
    "X": "removed",
}
KINDS = {"URG": "EMER", "HC": "IMP", "HP": "IMP", "EXT": "AMB", "SEA": "REC"}
NO_START, NO_END = "1900-01-01 00:00:00", "9999-12-31 23:59:59"
"""Times that this hospital writes for none."""
SEXES = {"1": "male", "2": "female"}


class StayRow(NamedTuple):
    """A row of `stays`. Times are clock times: local ones, `changed` in UTC."""

    id: int
    patient: int | None = 1
    state: str | None = "S"
    kind: str | None = "HC"
    began: str | None = None
    ended: str | None = None
    visit: str | None = None
    hospital: str | None = "H1"
    unit: str | None = None
    changed: str | None = None


class PatientRow(NamedTuple):
    """A row of `patients`, with the rows of `patient_numbers` (number, authority)."""

    id: int
    used_name: str | None = None
    birth_name: str | None = None
    given: str | None = None
    sex: str | None = None
    born: str | None = None
    replaced_by: int | None = None
    changed: str | None = None
    numbers: tuple[tuple[str, str | None], ...] = ()


class OrganizationRow(NamedTuple):
    """A row of `organizations`."""

    code: str
    title: str | None = None
    finess: str | None = None
    changed: str | None = None


class Ids(StrEnum):
    """What kind of column the ids of stays and patients stand in."""

    NUMBERS = "numbers"
    TEXTS = "texts"

    def stored(self, number: int) -> int | str:
        """Return an id as the column holds it."""
        return number if self is Ids.NUMBERS else _text_id(number)

    def text(self, number: int) -> str:
        """Return an id as clients see it."""
        return str(self.stored(number))


_ODD_IDS = {42: "42", 420: "042", 421: "A1", 422: "a1", 423: "a_%b"}


def _text_id(number: int) -> str:
    """Return ids whose order by code point is that of no number and of no dictionary."""
    return _ODD_IDS.get(number, f"{'aB9-.Z'[number % 6]}{number}")


@dataclass(frozen=True, slots=True)
class Hospital:
    """What one hospital holds, and how its deployment reads it."""

    stays: tuple[StayRow, ...] = ()
    patients: tuple[PatientRow, ...] = ()
    organizations: tuple[OrganizationRow, ...] = ()
    ids: Ids = Ids.NUMBERS
    date_reading: DateReading = DateReading.START
    twice: Twice = Twice.FIRST
    never: Never = Never.REFUSE

    def with_ids(self, ids: Ids) -> "Hospital":
        """Return the same hospital with the other kind of ids."""
        return replace(self, ids=ids)

    def model(self) -> MemoryAdapter:
        """Return the memory adapter that holds these rows."""
        return MemoryAdapter(
            self.records(),
            time_zone=PARIS,
            date_reading=self.date_reading,
            number_ids=(ResourceType.ENCOUNTER, ResourceType.PATIENT)
            if self.ids is Ids.NUMBERS
            else (),
        )

    def records(self) -> Iterator[Row]:
        """Yield every row as an adapter should see it."""
        yield from (self.stay(row) for row in self.stays)
        yield from (self._patient(row) for row in self.patients)
        yield from (_organization(row) for row in self.organizations)

    def stay(self, row: StayRow) -> Row:
        """Return a stay as an adapter should see it."""
        record = EncounterRecord(
            id=self.ids.text(row.id),
            status=STATES.get(row.state or "", "?"),
            patient_id=self.ids.text(self._survivor(row.patient))
            if row.patient
            else "",
            visit_number=row.visit or None,
            visit_number_system=VISIT_SYSTEMS.get(row.hospital, "?")
            if row.hospital
            else None,
            class_code=KINDS.get(row.kind or "", "UNK"),
            start=self._instant(None if row.began == NO_START else row.began),
            end=self._instant(None if row.ended == NO_END else row.ended),
            functional_unit=row.unit or None,
            organization_id=row.hospital or None,
            last_updated=_utc(row.changed),
        )
        fault = self._fault(row, record)
        return FaultyRow(record, fault) if fault else record

    def _fault(self, row: StayRow, record: EncounterRecord) -> RowFault | None:
        if "_" in record.id:
            return RowFault("id", "stay_id", "no id")
        if record.status == "?":
            return RowFault("status", "state", "no entry")
        if not row.patient:
            return RowFault("patient_id", "patient_id", "missing")
        if record.visit_number_system == "?":
            return RowFault("visit_number_system", "hospital", "no entry")
        for column, text in (("began", row.began), ("ended", row.ended)):
            if text and self.never is Never.REFUSE and _gap(text):
                return RowFault(column, column, "never")
        if record.start and record.end and _is_before(record.end, record.start):
            return RowFault("end", "ended", "before the start")
        return None

    def _survivor(self, patient: int) -> int:
        by_id = {row.id: row.replaced_by for row in self.patients}
        return by_id.get(patient) or patient

    def _instant(self, text: str | None) -> datetime | None:
        if not text:
            return None
        if gap_end := _gap(text):
            # A time that is refused still has its place: before all that come after.
            early = timedelta(microseconds=self.never is Never.REFUSE)
            return (gap_end - early).astimezone(PARIS)
        fold = self.twice is Twice.SECOND
        return datetime.fromisoformat(text).replace(tzinfo=PARIS, fold=int(fold))

    def _patient(self, row: PatientRow) -> PatientRecord:
        names = (
            NameRecord("usual", row.used_name or None, self._given(row)),
            NameRecord("old", row.birth_name or None),
        )
        id_ = self.ids.text(row.id)
        return PatientRecord(
            id=id_,
            active=row.replaced_by is None,
            identifiers=(
                IdentifierRecord(id_, IPP_SYSTEM, "PI", "usual"),
                *(IdentifierRecord(value, system) for value, system in row.numbers),
            ),
            names=tuple(name for name in names if name.family or name.given),
            gender=SEXES.get(row.sex or "", "unknown"),
            birth_date=date.fromisoformat(row.born) if row.born else None,
            replaced_by=self.ids.text(row.replaced_by) if row.replaced_by else None,
            last_updated=_utc(row.changed),
        )

    def _given(self, row: PatientRow) -> tuple[str, ...]:
        if not row.given:
            return ()
        return tuple(row.given.split()) if self.ids is Ids.TEXTS else (row.given,)


def _organization(row: OrganizationRow) -> Row:
    record = OrganizationRecord(
        id=row.code,
        identifiers=(IdentifierRecord(row.finess, FINESS_SYSTEM, "FINEJ"),)
        if row.finess
        else (),
        name=row.title or None,
        last_updated=_utc(row.changed),
    )
    if record.name or record.identifiers:
        return record
    return FaultyRow(record, RowFault("name", "title", "no name"))


def _is_before(end: datetime, start: datetime) -> bool:
    return end.astimezone(UTC) < start.astimezone(UTC)


def _utc(text: str | None) -> datetime | None:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None
    return moment.astimezone(PARIS) if moment else None


def _gap(text: str) -> datetime | None:
    """Return the instant at which the hour ends that `text` falls in and never happens."""
    local = datetime.fromisoformat(text)
    instant = local.replace(tzinfo=PARIS).astimezone(UTC)
    if instant.astimezone(PARIS).replace(tzinfo=None) == local:
        return None
    return instant.replace(minute=0, second=0, microsecond=0)
