"""A tiny hospital system as plain rows, and the model of what an adapter makes of them.

A test of an adapter puts the rows of a `Hospital` into a source of its kind. `model` returns
the same rows as records in memory, computed here without the code under test.

`EDGES` is the hospital that the contract suite searches, with the rows on which adapters have
failed. Add the row on which yours fails.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID, uuid5
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
from adapters.mapping.model import DateReading, Never, Twice
from adapters.matching import utc
from adapters.memory import FaultyRow, MemoryAdapter, MemoryRow

# -------------------------------------------------------------- hospital

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
    """The type of the column with the ids of stays and patients.

    The order of TEXTS by code point is neither that of numbers nor that of a dictionary. UUIDS
    are texts in small letters, or their bytes, which have the same order.
    """

    NUMBERS = "numbers"
    TEXTS = "texts"
    UUIDS = "uuids"

    def stored(self, number: int) -> int | str:
        """Return an id as the column holds it."""
        if self is Ids.NUMBERS:
            return number
        if self is Ids.UUIDS:
            return str(uuid5(_NAMESPACE, str(number)))
        return _ODD_IDS.get(number, f"{'aB9-.Z'[number % 6]}{number}")

    def text(self, number: int) -> str:
        """Return an id as clients see it."""
        return str(self.stored(number))


_NAMESPACE = UUID(int=0)
_ODD_IDS = {42: "42", 420: "042", 421: "A1", 422: "a1", 423: "a_%b"}


@dataclass(frozen=True, slots=True)
class Hospital:
    """The rows of a hospital, and how its deployment reads ids and times."""

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
        numbered = (ResourceType.ENCOUNTER, ResourceType.PATIENT)
        return MemoryAdapter(
            self.records(),
            time_zone=PARIS,
            date_reading=self.date_reading,
            number_ids=numbered if self.ids is Ids.NUMBERS else (),
        )

    def records(self) -> Iterator[MemoryRow]:
        """Yield every row as an adapter should see it."""
        yield from (self.stay(row) for row in self.stays)
        yield from (self._patient(row) for row in self.patients)
        yield from (_organization(row) for row in self.organizations)

    def stay(self, row: StayRow) -> MemoryRow:
        """Return a stay as an adapter should see it."""
        survivors = {patient.id: patient.replaced_by for patient in self.patients}
        patient = survivors.get(row.patient) or row.patient if row.patient else None
        system = VISIT_SYSTEMS.get(row.hospital, "?") if row.hospital else None
        record = EncounterRecord(
            id=self.ids.text(row.id),
            status=STATES.get(row.state or "", "?"),
            patient_id=self.ids.text(patient) if patient else "",
            visit_number=row.visit or None,
            visit_number_system=system,
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
        """Return the fault that an adapter should report for a stay, None for a valid one."""
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
        if record.start and record.end and utc(record.end) < utc(record.start):
            return RowFault("end", "ended", "before the start")
        return None

    def _instant(self, text: str | None) -> datetime | None:
        """Return the time that a local time of the hospital means, None for an empty text."""
        if not text:
            return None
        gap_end = _gap(text)
        if gap_end is not None:
            if self.never is Never.REFUSE:
                # The invalid row is sorted before the rows at the end of the gap.
                gap_end -= timedelta(microseconds=1)
            return gap_end.astimezone(PARIS)
        fold = 1 if self.twice is Twice.SECOND else 0
        return datetime.fromisoformat(text).replace(tzinfo=PARIS, fold=fold)

    def _patient(self, row: PatientRow) -> PatientRecord:
        given = row.given or ""
        parts = tuple(given.split() if self.ids is Ids.TEXTS else filter(None, [given]))
        names = (
            NameRecord("usual", row.used_name or None, parts),
            NameRecord("old", row.birth_name or None),
        )
        id_ = self.ids.text(row.id)
        return PatientRecord(
            id=id_,
            active=row.replaced_by is None,
            identifiers=(
                IdentifierRecord(id_, IPP_SYSTEM, type="PI", use="usual"),
                *(IdentifierRecord(value, system) for value, system in row.numbers),
            ),
            names=tuple(name for name in names if name.family or name.given),
            gender=SEXES.get(row.sex or "", "unknown"),
            birth_date=date.fromisoformat(row.born) if row.born else None,
            replaced_by=self.ids.text(row.replaced_by) if row.replaced_by else None,
            last_updated=_utc(row.changed),
        )


def _organization(row: OrganizationRow) -> MemoryRow:
    """Return an organization as an adapter should see it."""
    finess = IdentifierRecord(row.finess or "", FINESS_SYSTEM, "FINEJ")
    record = OrganizationRecord(
        id=row.code,
        identifiers=(finess,) if row.finess else (),
        name=row.title or None,
        last_updated=_utc(row.changed),
    )
    if record.name or record.identifiers:
        return record
    return FaultyRow(record, RowFault("name", "title", "no name"))


def _utc(text: str | None) -> datetime | None:
    """Return the time that a time in UTC means, None for an empty text."""
    if not text:
        return None
    return datetime.fromisoformat(text).replace(tzinfo=UTC).astimezone(PARIS)


def _gap(text: str) -> datetime | None:
    """Return the end of the gap that a local time is in, None for a time that exists.

    The gap is the hour that the clock skips in spring.
    """
    local = datetime.fromisoformat(text)
    instant = local.replace(tzinfo=PARIS).astimezone(UTC)
    if instant.astimezone(PARIS).replace(tzinfo=None) == local:
        return None
    return instant.replace(minute=0, second=0, microsecond=0)


# ----------------------------------------------------------------- stays

LARGEST_ID = 2**63 - 1

CANARIES = ("Serincanari", "Canarinette", "CANARI-0042", "CANARI-V-1", "CANARI-V-2")
"""Names and numbers of one patient, which no log may ever hold."""

_MARCH = "2024-03-14"

TIES = tuple(
    StayRow(number, 5, began=f"{_MARCH} 09:00:00", changed="2024-03-14 08:30:00")
    for number in (*range(10, 22), 420, 421, 422)
)
"""More stays in one minute than a page holds; their ids alone tell the order."""

STAYS = (
    # One day and its edges; an off-by-one in a bound shows at midnight only.
    StayRow(1, began=f"{_MARCH} 08:15:00", ended=f"{_MARCH} 17:30:00", visit="V1"),
    StayRow(2, began=f"{_MARCH} 00:00:00", ended="2024-03-15 00:00:00", visit="v1"),
    StayRow(3, began="2024-03-13 23:59:59", ended=f"{_MARCH} 00:00:00", visit="V2"),
    StayRow(4, began="2024-03-15 00:00:00", ended="2024-03-16 10:00:00"),
    StayRow(5, began=f"{_MARCH} 23:59:59.999999", ended=f"{_MARCH} 23:59:59.999999"),
    StayRow(6, began="2024-03-13 23:59:59.500000", unit="0123"),
    StayRow(7, began=f"{_MARCH} 00:00:00.000001", unit="123"),
    StayRow(8, began="2024-02-29 12:00:00", ended="2024-04-01 12:00:00", unit="0123 A"),
    # Bounds that are not known.
    StayRow(22, began="2024-03-01 09:00:00", state="E"),
    StayRow(23, ended="2024-03-20 10:00:00", changed="2024-03-20 09:00:00.123456"),
    StayRow(24, state="P", changed="2024-03-20 09:00:00.123457"),
    StayRow(25, state="P", changed="2024-03-20 09:00:00"),
    StayRow(26, state="P"),
    StayRow(28, began="", ended="", changed=""),
    StayRow(29, began=NO_START, ended=NO_END),
    StayRow(9, began=NO_START, ended="2024-03-10 10:00:00"),
    StayRow(93, 9, began="9999-12-30 00:00:00", ended=NO_END),
    StayRow(27, 2, state="P", kind="SEA"),
    StayRow(42, 2, "P", began="2024-03-20 09:00:00", changed="2023-01-01 00:00:00"),
    # The hour that happens twice, and the clock changes on both sides.
    StayRow(30, 3, began="2024-10-27 02:30:00", ended="2024-10-27 02:45:00"),
    StayRow(31, 3, began="2024-10-27 01:59:59", ended="2024-10-27 03:00:00"),
    StayRow(32, 3, began="2024-10-27 03:00:00", changed="2024-10-27 02:30:00"),
    StayRow(33, 3, began="2024-03-31 01:59:59", ended="2024-03-31 03:30:00"),
    StayRow(34, 3, began="2024-03-31 03:00:01", changed="2024-03-31 02:30:00"),
    # Rows that cannot be mapped stay in their place (decision 16).
    StayRow(35, 3, began="2024-03-31 02:30:00", visit="G1"),
    StayRow(36, 3, began="2024-03-30 20:00:00", ended="2024-03-31 02:00:00"),
    StayRow(37, state="Z", began=f"{_MARCH} 10:00:00", visit="Z1", kind="URG"),
    StayRow(38, state=None, began=f"{_MARCH} 10:00:00"),
    StayRow(39, state="", changed="2024-03-14 10:00:00"),
    StayRow(40, None, began=f"{_MARCH} 10:00:01", visit="Z1"),
    StayRow(41, hospital="H9", began=f"{_MARCH} 10:00:02", visit="Z9"),
    StayRow(43, began=f"{_MARCH} 10:00:03", ended=f"{_MARCH} 10:00:02"),
    StayRow(423, state="S"),
    # Rows that are never served, or are gone (decision 17).
    StayRow(50, state="A", began=f"{_MARCH} 10:00:00", visit="V1"),
    StayRow(51, state="X", began=f"{_MARCH} 10:00:00", visit="V1"),
    StayRow(52, state="X"),
    # Codes: several for one, none, empty, unknown, other letters.
    StayRow(60, 4, "C", "HP", began="2024-05-01 10:00:00"),
    StayRow(61, 4, "S", None, began="2024-05-02 10:00:00"),
    StayRow(62, 4, "S", "", began="2024-05-03 10:00:00"),
    StayRow(63, 4, "S", "NEW", began="2024-05-04 10:00:00"),
    StayRow(64, 4, "S", "hc", began="2024-05-05 10:00:00"),
    StayRow(65, 4, "E", "EXT", began="2024-05-06 10:00:00"),
    # Visit numbers: the same in two hospitals and in none, leading zeros, odd signs.
    StayRow(70, 6, began="2024-06-01 10:00:00", visit="000123"),
    StayRow(71, 6, began="2024-06-01 10:00:00", visit="000123", hospital="H2"),
    StayRow(72, 6, began="2024-06-01 10:00:00", visit="000123", hospital=None),
    StayRow(73, 6, began="2024-06-01 10:00:00", visit="123", hospital=""),
    StayRow(74, 6, began="2024-06-02 10:00:00", visit="100%", unit="%"),
    StayRow(75, 6, began="2024-06-02 10:00:00", visit="A_B", unit="_"),
    StayRow(76, 6, began="2024-06-02 10:00:00", visit="AXB", unit="É"),
    StayRow(77, 6, began="2024-06-02 10:00:00", visit="A\\B", unit="é"),
    StayRow(78, 6, began="2024-06-02 10:00:00", visit="O'B", unit="'"),
    StayRow(79, 6, began="2024-06-02 10:00:00", visit='"', unit=":v0"),
    StayRow(80, 6, began="2024-06-02 10:00:00", visit=":v0", unit="a|b"),
    StayRow(81, 6, began="2024-06-02 10:00:00", visit="?", unit=""),
    StayRow(82, 6, began="2024-06-02 10:00:00", visit="", unit=None),
    # Recorded on a patient that was merged into another (decision 9).
    StayRow(90, 7, began="2024-07-01 10:00:00"),
    StayRow(91, 8, began="2024-07-02 10:00:00"),
    # The canary's, shown and not to be shown.
    StayRow(94, 14, began="2001-08-01 10:00:00", visit="CANARI-V-1"),
    StayRow(95, 14, "Z", began="2001-08-02 10:00:00", visit="CANARI-V-2"),
    # Far away.
    StayRow(92, 9, began="1999-12-31 23:59:59", changed="1970-01-01 00:00:00"),
    StayRow(LARGEST_ID, 9, began="2024-07-02 10:00:00"),
    *TIES,
)

PATIENTS = (
    PatientRow(1, "Martin", "Duprès", "Jean Paul", "1", "1950-02-28"),
    PatientRow(2, "De La Tour", "de la tour", "Marie-Ève", "2", "1950-03-01"),
    PatientRow(3, "Latour", "MARTIN", "Éléonore", "2", "2000-02-29"),
    PatientRow(4, "O'Brien", "L\u2019Hermite", "Zoe\u0308", "9", "1999-12-31"),
    PatientRow(5, "Le Bœuf", "Strauß", "Œdipe", "", "2000-01-01"),
    PatientRow(6, "100%", "A_B", "Back\\slash", None, None),
    PatientRow(7, "Ancien", None, "Paul", "1", "1970-01-01", 8),
    PatientRow(8, "Nouveau", "Ancien", "Paul", "1", "1970-01-01"),
    PatientRow(9, "Saint-Jean", "Ñuñez", "Łukasz", "1", "1969-12-31"),
    PatientRow(13, "Ping !", "M!0", "J.P."),
    PatientRow(10, "", "", "", changed="2024-03-14 08:00:00"),
    PatientRow(11, None, None, None, changed="2024-03-14 08:00:00"),
    PatientRow(
        12,
        "Émile",
        "Smith Jones",
        "Ann",
        "2",
        "1960-06-15",
        changed="2024-03-14 08:00:00.000001",
        numbers=(("0042", "urn:oid:1.2.3"), ("AbC", "urn:oid:1.2.4"), ("7", None)),
    ),
    PatientRow(
        14,
        "Serincanari",
        None,
        "Canarinette",
        numbers=(("CANARI-0042", "urn:oid:1.2.5"),),
    ),
    PatientRow(
        LARGEST_ID,
        "X",
        numbers=(("abc", "urn:oid:1.2.4"), ("0042", "urn:oid:1.2.4")),
        changed="2020-01-01 00:00:00",
    ),
)

ORGANIZATIONS = (
    OrganizationRow("H1", "Hôpital de l'Île", "750000001", "2024-01-01 00:00:00"),
    OrganizationRow("H2", "Clinique Saint-Cœur", "750000002", "2024-01-01 00:00:00"),
    OrganizationRow("h2", "HOPITAL DU NORD", None),
    OrganizationRow("H-3.b", "100% Santé", "", "2023-01-01 00:00:00"),
    OrganizationRow("042", None, "0042"),
    OrganizationRow("42", "Clinique 42"),
    # FHIR asks for a name or a number: this one cannot be mapped.
    OrganizationRow("43", ""),
)

EDGES = Hospital(STAYS, PATIENTS, ORGANIZATIONS)
