"""The section patient: the table of patients, and that of the person where it is another."""

from collections.abc import Iterator
from functools import partial

from adapters.contract import ResourceType
from adapters.sql.tables import Holds, Table, TableColumn
from app.tools.starting.building import Builder
from app.tools.starting.draft import Found, Part, Value
from app.tools.starting.guesses import others, slots
from app.tools.starting.lists import Lists
from app.tools.starting.marks import marked
from app.tools.starting.select import Cell, Select
from app.tools.starting.sight import Sight
from app.tools.starting.timing import put_changed, put_day, put_time
from app.tools.starting.words import meaning

_ORDER = (
    "id",
    "active",
    "gender",
    "birth_date",
    "deceased",
    "deceased_at",
    "organization_id",
    "replaced_by",
    "last_updated",
)


def patients(builder: Builder, patient: Table) -> Part:
    """Return the section for the table of patients."""
    return _Patients(builder, patient).part()


class _Patients:
    def __init__(self, builder: Builder, patient: Table) -> None:
        self._builder = builder
        self._table = patient
        self._key = _key(builder, patient)
        self._person = builder.roles.person
        self._part = Part(Select(patient))
        self._sight = Sight(builder.references)

    def part(self) -> Part:
        part = self._part
        part.put("id", {"from": part.select.add(self._table.by_name[self._key])})
        self._sight.see(self._table, 0)
        if self._person:
            self._sight.see(self._person.target, part.select.join([self._person]))
        self._coded()
        self._days()
        self._survivor()
        self._organization()
        columns = self._sight.slots_of(self._table)
        put_changed(self._builder, part, self._table, columns)
        self._changed_elsewhere()
        Lists(self._builder, part, self._sight, self._table, self._key).put()
        part.questions += self._doubts()
        part.lines.sort(key=lambda line: _ORDER.index(line.key))
        return part

    def _coded(self) -> None:
        # Of two, that of the person: it is the registered one.
        if found := self._sight.last("gender"):
            self._builder.coded(self._part, "gender", found)
        for slot, habit in (("active", "active"), ("deceased", "yes")):
            if found := self._sight.first(slot):
                self._builder.flag(self._part, slot, habit, found)

    def _days(self) -> None:
        if found := self._sight.first("birth_date"):
            put_day(self._builder, self._part, "birth_date", found)
        else:
            self._part.questions.append("birth_date: no column looks like it")
        if found := self._sight.first("deceased_at"):
            self._death(found)

    def _death(self, found: Found) -> None:
        clock = self._sight.slots_of(found.table).get("deceased_clock")
        if clock is None or found.column.holds is not Holds.DATE:
            put_time(self._builder, self._part, "deceased_at", found)
            return
        # Nobody searches by it: two columns can stay two.
        pair = found, found._replace(column=clock)
        value: dict[str, Value] = {"from": [self._part.read(of) for of in pair]}
        self._part.put_unsearched("deceased_at", value)

    def _survivor(self) -> None:
        found = self._sight.first("replaced_by")
        if found is None:
            return
        question = "does it hold the id of the patient that lives on?"
        select, person = self._part.select, self._person
        name = select.add(found.column, found.place)
        if found.place and person and person.column != self._key:
            # The person that lives on is known; the patient is found by it.
            select.drop(name)
            column = found.column.name
            place = select.join_at(found.place, column, self._table, person.column)
            cell = Cell(place, self._table.by_name[self._key])
            name = select.express("survivor", "{0}", cell)
        self._part.put("replaced_by", {"from": name}, question)

    def _organization(self) -> None:
        house = self._builder.roles.organization
        for table, place in self._sight.places:
            for lead in self._builder.references.leading(table, house)[:1]:
                column = table.by_name[lead.column]
                name = self._part.select.add(column, place)
                self._part.put("organization_id", {"from": name})
                return

    def _changed_elsewhere(self) -> None:
        """Tell how many rows of the person were changed after those of the patient."""
        changes = self._sight.every("changed")
        if len(changes) < 2 or not self._builder.computes:
            return
        own, other = changes[:2]
        cells = {
            "own": Cell(own.place, own.column),
            "theirs": Cell(other.place, other.column),
        }
        later = "theirs > own OR (own IS NULL AND theirs IS NOT NULL)"
        counted = self._builder.tally(self._part.select, cells, later)
        if counted and counted[1]:
            self._part.questions.append(
                f"last_updated: {counted[1]} of {counted[0]} rows were changed later in"
                f" {other.table.name} ({other.column.name}), which is read too: read the later of"
                " the two, or leave last_updated out"
            )

    def _doubts(self) -> Iterator[str]:
        yield from self._part.select.doubts(self._builder.database)
        if found := self._sight.first("deleted"):
            yield marked(self._builder, found.table, found.column, "deleted")
        kind, references = ResourceType.PATIENT, self._builder.references
        for table, _ in self._sight.places:
            read = self._part.select.read_of(table)
            shown = partial(self._builder.rival, table)
            yield from others(table, kind, references, read, shown)


def _key(builder: Builder, patient: Table) -> str:
    """Return the column of the patient's table that stays refer to."""
    for stay in builder.roles.stays:
        leads = builder.references.leading(stay, patient)
        if leads:
            return leads[0].key
        columns = slots(stay, ResourceType.ENCOUNTER, builder.references)
        if same := _same(builder, patient, columns.get("patient_id")):
            return same
    key = patient.primary_key
    return key[0] if len(key) == 1 else patient.columns[0].name


def _same(builder: Builder, patient: Table, column: TableColumn | None) -> str:
    """Return the patient's own column for what a stay says of it, "" where there is none."""
    if column is None:
        return ""
    if column.name in patient.by_name:
        return column.name
    found = slots(patient, ResourceType.PATIENT, builder.references).get("number")
    is_number = "PATIENTNO" in meaning(column.name).known
    return found.name if found and is_number else ""
