"""The section encounter: one part for each table that looks like stays."""

from collections.abc import Sequence

from adapters.contract import ResourceType
from adapters.sql.tables import Table, TableColumn
from adapters.sql.tallies import different
from app.tools.starting.building import Builder
from app.tools.starting.doubts import counted_apart, doubts, leave_out_strangers
from app.tools.starting.draft import Found, Part
from app.tools.starting.guesses import instead, slots
from app.tools.starting.habits import UNIT_HABITS, choose
from app.tools.starting.keys import put_id
from app.tools.starting.overlaps import leave_out_overlaps
from app.tools.starting.select import Cell, Select
from app.tools.starting.starts import complete_start
from app.tools.starting.states import put_class, put_status
from app.tools.starting.timing import put_changed, put_time
from app.tools.starting.words import meaning

_FRAMEWORK = frozenset({"create_uid", "write_uid"})
"""Columns of Tryton and Odoo, which keep times in UTC and call a number `name`."""

_ORDER = (
    "id",
    "visit_number",
    "patient_id",
    "status",
    "class",
    "start",
    "end",
    "functional_unit",
    "organization_id",
    "last_updated",
)
_SHORTEST_PREFIX = 3


def stays(builder: Builder) -> list[Part]:
    """Return a part for each table of stays."""
    tables = builder.roles.stays
    if all(map(_is_framework, tables)):
        builder.draft.source_zone = "UTC"
    parts = [_Stays(builder, table).part() for table in tables]
    if len(parts) > 1:
        taken: list[str] = []
        for part in parts:
            part.prefix = _prefix(part.select.table, taken)
            taken.append(part.prefix)
            _ask_for_moves(part, tables)
    return parts


class _Stays:
    def __init__(self, builder: Builder, table: Table) -> None:
        self._builder = builder
        self._table = table
        self._part = Part(Select(table))
        kind = ResourceType.ENCOUNTER
        self._columns = slots(table, kind, builder.references)
        self._references = builder.references.of(table)

    def part(self) -> Part:
        put_id(self._builder, self._part)
        self._visit_number()
        self._patient()
        # Codes are counted in the rows that are left.
        leave_out_overlaps(self._builder, self._part)
        self._times()
        put_status(self._builder, self._part, self._columns)
        put_class(self._builder, self._part, self._columns)
        self._unit()
        self._organization()
        put_changed(self._builder, self._part, self._table, self._columns)
        self._part.questions += doubts(self._builder, self._part, self._columns)
        # In the order of the resource, whatever was looked for first.
        self._part.lines.sort(key=lambda line: _ORDER.index(line.key))
        return self._part

    def _put(self, slot: str, column: TableColumn, question: str = "") -> None:
        self._part.put(slot, {"from": self._part.select.add(column)}, question)

    def _ask(self, question: str) -> None:
        self._part.questions.append(question)

    def _visit_number(self) -> None:
        column, question = self._columns.get("visit_number"), ""
        key = self._table.primary_key
        numbers = {"VISITNO", "FILE"}
        if (
            column
            and column.name in key
            and "VISITNO" not in meaning(column.name).known
        ):
            # A key says who counts; where there is another number, that is the one.
            column = next(iter(self._instead("visit_number")), column)
        if column is None and len(key) == 1 and meaning(key[0]).known & numbers:
            column = self._table.by_name[key[0]]
        if column is None and _is_framework(self._table):
            named = ("name", "code", "reference")
            column = next((c for c in self._table.columns if c.name in named), None)
            question = "is it the number of the stay?"
        if column is None:
            self._ask("visit_number: no column looks like the number of the stay")
            return
        counted = different(self._builder.database, self._table, column.name)
        if counted and counted[1] > counted[2]:
            question = counted_apart(
                self._builder, self._table, column, counted[1] - counted[2]
            )
        self._put("visit_number", column, question)

    def _patient(self) -> None:
        patient = self._builder.roles.patient
        leads = self._builder.references.leading(self._table, patient)
        # `patient_id` before `mother_id`, which leads to a patient as well.
        people = {"PATIENT", "PATIENTNO", "PERSON"}
        leads.sort(key=lambda lead: not meaning(lead.column).known & people)
        column = self._columns.get("patient_id")
        question = "nothing says where it leads: is it the id of a patient?"
        if leads:
            column, question = self._table.by_name[leads[0].column], ""
        if column is None:
            column = self._table.columns[0]
            question = "which column says whose stay it is? This is only the first one"
        elif patient and self._is_known_there(patient, column):
            question = ""
        self._put("patient_id", column, question)
        leave_out_strangers(self._builder, self._part, column.name)

    def _is_known_there(self, patient: Table, column: TableColumn) -> bool:
        """Tell whether the patient's table has such a column or number as well."""
        found = slots(patient, ResourceType.PATIENT, self._builder.references)
        is_number = "PATIENTNO" in meaning(column.name).known
        return column.name in patient.by_name or (is_number and "number" in found)

    def _times(self) -> None:
        for slot in ("start", "end"):
            if column := self._columns.get(slot):
                clock = self._columns.get(f"{slot}_clock")
                found = Found(self._table, column)
                put_time(self._builder, self._part, slot, found, clock)
            else:
                self._ask(f"{slot}: no column looks like it")
        if "start" in self._columns:
            rival = next(iter(self._instead("start")), None)
            complete_start(self._builder, self._part, self._columns, rival)

    def _instead(self, slot: str) -> tuple[TableColumn, ...]:
        kind, references = ResourceType.ENCOUNTER, self._builder.references
        return instead(self._table, kind, references).get(slot, ())

    def _unit(self) -> None:
        column = self._columns.get("functional_unit")
        if column is not None:
            self._put("functional_unit", column)
            return
        leads = self._references.values()
        named = tuple(lead for lead in leads if "UNIT" in meaning(lead.column).known)
        way = named[:1] or self._builder.references.path(
            self._table, self._builder.roles.units, self._builder.roles.patient
        )
        if not way:
            self._ask("functional_unit: no column leads to a unit")
            return
        code = choose(way[-1].target, UNIT_HABITS).get("code")
        if code is None:
            column = self._table.by_name[way[0].column]
            question = (
                f"{way[0].target.name} has no column of codes: do people know this one?"
            )
            self._put("functional_unit", column, question)
            return
        name = self._part.select.add(code, self._part.select.join(way))
        question = "the code that people know the unit by?"
        if len(way) > 1:
            steps = " and ".join(step.column for step in way)
            question = f"found over {steps}: is that the unit of the stay?"
        self._part.put("functional_unit", {"from": name}, question)

    def _organization(self) -> None:
        house = self._builder.roles.organization
        leads = self._builder.references.leading(self._table, house)
        column = self._columns.get("organization_id")
        if leads:
            own = self._table.by_name[leads[0].column]
            if not self._of_unit(own):
                self._put("organization_id", own)
        elif column is not None:
            question = "nothing says where it leads: is it the id of an organization?"
            self._put("organization_id", column, question)
        else:
            text = "is it one for all stays (organization_id: hospital-1)?"
            self._ask(f"organization_id: no column says the hospital; {text}")

    def _of_unit(self, own: TableColumn) -> bool:
        """Read the organization of the unit where it is another; return whether it is.

        Unit and organization stand together in serviceProvider: they belong together.
        """
        part, builder = self._part, self._builder
        table, place = part.select.tables[-1], len(part.select.tables) - 1
        leads = builder.references.leading(table, builder.roles.organization)
        if not (leads and place and builder.computes and part.line("functional_unit")):
            return False
        theirs = table.by_name[leads[0].column]
        cells = {"own": Cell(0, own), "theirs": Cell(place, theirs)}
        counted = builder.tally(part.select, cells, "own <> theirs")
        if not counted or not counted[1] or theirs.type != own.type:
            return False
        both = "COALESCE({0}, {1})"
        name = part.select.express("house", both, cells["theirs"], cells["own"])
        part.put("organization_id", {"from": name})
        part.told.append(
            f"organization_id: in {counted[1]} of {counted[0]} rows {theirs.name} of the unit"
            f" is another than {own.name} of {self._table.name}. serviceProvider shows the unit"
            f" with its organization: that of the unit is read, and {own.name} where there is none"
        )
        return True


def _ask_for_moves(part: Part, tables: Sequence[Table]) -> None:
    """Ask whether stays move to another table of the same columns, as to an archive."""
    names = part.select.table.by_name.keys()
    for other in tables:
        if other is not part.select.table and names <= other.by_name.keys():
            part.questions.append(
                f"{other.name} has the same columns: do stays move there, or from there? Then"
                " one SELECT of both (UNION ALL) and no prefix, or their ids change that day"
            )


def _is_framework(table: Table) -> bool:
    return table.by_name.keys() >= _FRAMEWORK


def _prefix(table: Table, taken: list[str]) -> str:
    """Return the start of the ids of a table, by the word that tells it from others."""
    words = [w for w in meaning(table.bare).words if w.isascii() and w.isalpha()]
    common = {"PATIENT", "PERSON", "STAY", "ENTRY"}
    telling = [word for word in words if meaning(word).known - common]
    stem = (telling or words or ["t"])[0]
    for length in range(_SHORTEST_PREFIX, len(stem) + 1):
        prefix = f"{stem[:length]}-"
        if prefix not in taken:
            return prefix
    return f"{stem}{len(taken)}-"
