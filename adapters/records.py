"""What comes back from a hospital system: flat records, and faults in their place."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple, TypeAlias

from adapters.questions import Position


class IdentifierRecord(NamedTuple):
    """An identifier of a patient or an organization; `type` is its code (PI, INS-NIR)."""

    value: str
    system: str | None = None
    type: str | None = None
    use: str | None = None
    assigner_id: str | None = None


class NameRecord(NamedTuple):
    """A person's name; `use` is a FHIR name-use code."""

    use: str | None = None
    family: str | None = None
    given: tuple[str, ...] = ()
    prefix: str | None = None
    text: str | None = None


class TelecomRecord(NamedTuple):
    """A way to reach somebody; `system` is a FHIR contact-point-system code."""

    value: str
    system: str | None = None
    use: str | None = None


class AddressRecord(NamedTuple):
    """A postal address."""

    use: str | None = None
    lines: tuple[str, ...] = ()
    city: str | None = None
    postal_code: str | None = None
    country: str | None = None


class EncounterRecord(NamedTuple):
    """A stay: FHIR codes, aware times, our field names. Absent is None."""

    id: str
    status: str
    patient_id: str
    visit_number: str | None = None
    visit_number_system: str | None = None
    class_code: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    functional_unit: str | None = None
    organization_id: str | None = None
    last_updated: datetime | None = None


class PatientRecord(NamedTuple):
    """A patient's administrative profile."""

    id: str
    active: bool | None = None
    identifiers: tuple[IdentifierRecord, ...] = ()
    names: tuple[NameRecord, ...] = ()
    telecoms: tuple[TelecomRecord, ...] = ()
    gender: str | None = None
    birth_date: date | None = None
    deceased: bool | None = None
    deceased_at: datetime | None = None
    addresses: tuple[AddressRecord, ...] = ()
    organization_id: str | None = None
    replaced_by: str | None = None
    last_updated: datetime | None = None


class OrganizationRecord(NamedTuple):
    """A healthcare structure."""

    id: str
    active: bool | None = None
    identifiers: tuple[IdentifierRecord, ...] = ()
    name: str | None = None
    telecoms: tuple[TelecomRecord, ...] = ()
    addresses: tuple[AddressRecord, ...] = ()
    part_of: str | None = None
    last_updated: datetime | None = None


Record: TypeAlias = EncounterRecord | PatientRecord | OrganizationRecord


class RowFault(NamedTuple):
    """A row that could not be mapped: what to mend, never whose row it is (decision 16).

    `rule` may quote a code that no table names; it quotes no other value.
    """

    field: str
    column: str
    rule: str


@dataclass(frozen=True, slots=True)
class Page:
    """Rows in the order of the query, faults in their place.

    `more` says whether a further row lies beyond, in the direction of travel: after the
    last one, or for a backwards query, ahead of the first one. `first` and `last`
    are the positions of the outer rows, None on an empty page; `positions` are those of
    all rows, where the query asks for them.
    """

    rows: tuple[Record | RowFault, ...]
    more: bool = False
    first: Position | None = None
    last: Position | None = None
    positions: tuple[Position, ...] = ()
