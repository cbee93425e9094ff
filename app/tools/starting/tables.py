"""Which tables hold stays, patients, organizations and units, by their names and columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapters.contract import ResourceType
from adapters.sql.database import Database
from adapters.sql.tables import Catalogue, Table
from adapters.sql.tallies import rows_with
from app.tools.starting.belongings import Child, find_children
from app.tools.starting.guesses import slots
from app.tools.starting.habits import UNIT_HABITS, choose
from app.tools.starting.references import Reference, References
from app.tools.starting.words import meaning

_STAYS = frozenset(
    {"STAY", "ENTRY", "INPATIENT", "OUTPATIENT", "APPOINTMENT", "EMERGENCY"}
)
_NO_STAYS = frozenset(
    {"BED", "REASON", "DOCTOR", "INSURANCE", "CONTACT", "ADDRESS", "ALIAS"}
)
_NO_PEOPLE = frozenset(
    {"DOCTOR", "USER", "ORGANIZATION", "UNIT", "CONTACT", "ADDRESS", "ALIAS"}
)
_NO_HOUSES = frozenset({"UNIT", "BED", "BUILDING", "PATIENT", "STAY", "PERSON", "KIND"})
_NAMED_PATIENT, _NAMED_PERSON, _REFERRED, _VIEW, _ENOUGH = 90, 45, 20, 60, 60
_EVIDENCE = {
    "birth_date": 20,
    "family": 15,
    "birth_family": 15,
    "given": 10,
    "gender": 10,
}


@dataclass(frozen=True)
class Roles:
    """What the tables of a hospital seem to hold.

    `parts` are tables of stays whose rows all belong to stays of another one, `person`
    the way between a patient and what is known of the person.
    """

    stays: tuple[Table, ...]
    parts: tuple[Reference, ...]
    patient: Table | None
    person: Reference | None
    organization: Table | None
    units: tuple[Table, ...]
    children: Mapping[str, Child]


class Finder:
    """Finds the roles; what a person has named goes before what is guessed."""

    def __init__(self, catalogue: Catalogue, references: References) -> None:
        self._catalogue = catalogue
        self._references = references

    def roles(
        self,
        database: Database,
        stays: Sequence[Table],
        patients: Sequence[Table],
        organizations: Sequence[Table],
    ) -> Roles:
        """Return what the tables hold; no stays and no patient where none is like one."""
        patient = patients[0] if patients else self._patient(stays)
        person = self._person(patient, patients[1:]) if patient else None
        taken = {t.name for t in (patient, person and person.target) if t}
        found = tuple(stays) or self._stays(patient, taken)
        parts = () if stays else tuple(self._parts(database, found))
        left = {part.table.name for part in parts}
        return Roles(
            stays=tuple(table for table in found if table.name not in left),
            parts=parts,
            patient=patient,
            person=person,
            organization=organizations[0] if organizations else self._organization(),
            units=self._units(),
            children=find_children(self._references, patient, person),
        )

    def _patient(self, stays: Sequence[Table]) -> Table | None:
        named = {table.name for table in stays}
        scored = [
            (self._likeness(table), -len(table.bare), table.name)
            for table in self._catalogue.tables
            if table.name not in named
        ]
        best = max(scored, default=(0, 0, ""))
        return self._catalogue.by_name[best[2]] if best[0] >= _ENOUGH else None

    def _likeness(self, table: Table) -> int:
        """Return how much a table looks like one of patients."""
        known = meaning(table.bare).known
        if known & (_NO_PEOPLE | _STAYS):
            return 0
        named = (
            _NAMED_PATIENT
            if "PATIENT" in known
            else _NAMED_PERSON
            if "PERSON" in known
            else 0
        )
        others = known - {"PATIENT", "PERSON", "FILE"}
        found = slots(table, ResourceType.PATIENT, self._references)
        shown = sum(worth for slot, worth in _EVIDENCE.items() if slot in found)
        if not named and "birth_date" not in found:
            return 0
        referred = _REFERRED if self._references.to(table) else 0
        # A view shows what a table holds; where there is only a view, it will do.
        shown -= _VIEW * table.is_view
        return named - 20 * len(others) + shown + referred

    def _person(self, patient: Table, named: Sequence[Table]) -> Reference | None:
        """Return the way from a patient to the table of the person, where it is another."""
        own = slots(patient, ResourceType.PATIENT, self._references)
        if (
            not named
            and {"birth_date", "gender"} <= own.keys()
            and {"family", "birth_family"} & own.keys()
        ):
            return None
        ways = [
            r
            for r in self._references.of(patient).values()
            if r.table.name != r.target.name
        ]
        ways += [
            _turned(r)
            for r in self._references.to(patient)
            if r.table.is_unique(r.column)
        ]
        known = {table.name for table in named}
        ways = [r for r in ways if not known or r.target.name in known]
        scored = [(self._knows(r.target), i) for i, r in enumerate(ways)]
        best = max(scored, default=(0, 0))
        return ways[best[1]] if best[0] >= 2 else None

    def _knows(self, table: Table) -> int:
        wanted = {"birth_date", "gender", "family", "birth_family", "given"}
        return len(wanted & slots(table, ResourceType.PATIENT, self._references).keys())

    def _stays(self, patient: Table | None, taken: set[str]) -> tuple[Table, ...]:
        scored = [
            (-score, table.name)
            for table in self._catalogue.tables
            if table.name not in taken
            and (score := self._stay_likeness(table, patient))
        ]
        found = [self._catalogue.by_name[name] for _, name in sorted(scored)]
        # Views of the same stays would serve them twice.
        tables = [table for table in found if not table.is_view]
        return tuple(tables or found)

    def _stay_likeness(self, table: Table, patient: Table | None) -> int:
        known = meaning(table.bare).known
        found = slots(table, ResourceType.ENCOUNTER, self._references)
        refers = self._references.of(table).values()
        of_patient = "patient_id" in found or any(
            patient is not None and r.target.name == patient.name for r in refers
        )
        if not of_patient or "start" not in found or known & _NO_STAYS:
            return 0
        dated = "end" in found and all(
            word in meaning(found[slot].name).known
            for slot, word in (("start", "ENTRY"), ("end", "EXIT"))
        )
        if not (known & _STAYS or dated):
            return 0
        return (
            len(found.keys() & {"start", "end", "status", "class", "visit_number"})
            + 2 * dated
        )

    def _parts(self, database: Database, stays: Sequence[Table]) -> list[Reference]:
        """Return the tables of stays whose every row is a part of another's."""
        names = [table.name for table in stays]
        found: dict[str, Reference] = {}
        for table in stays:
            for reference in self._references.of(table).values():
                target = reference.target.name
                if target in names and target not in found and table.name not in found:
                    counted = rows_with(database, table, reference.column)
                    if counted and counted[0] and counted[0] == counted[1]:
                        found[table.name] = reference
        return list(found.values())

    def _organization(self) -> Table | None:
        scored = []
        for table in self._catalogue.tables:
            said = meaning(table.bare)
            if "ORGANIZATION" not in said.known or said.known & _NO_HOUSES:
                continue
            if len(table.primary_key) == 1:
                extra = said.unknown + len(said.known)
                scored.append((-len(self._references.to(table)), extra, table.name))
        return self._catalogue.by_name[min(scored)[2]] if scored else None

    def _units(self) -> tuple[Table, ...]:
        return tuple(
            table
            for table in self._catalogue.tables
            if "UNIT" in meaning(table.bare).known
            and not meaning(table.bare).known & {"BED", "PATIENT", "STAY"}
            and choose(table, UNIT_HABITS)
        )


def _turned(reference: Reference) -> Reference:
    return Reference(
        reference.target,
        reference.key,
        reference.table,
        reference.column,
        reference.declared,
    )
