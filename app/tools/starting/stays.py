"""The section encounter: one part for each table that looks like stays."""

from collections.abc import Iterator, Mapping

from adapters.contract import ResourceType
from adapters.sql.catalogue import Holds, Table, TableColumn
from adapters.sql.samples import rows_with
from app.tools.starting.building import Builder, class_by_name
from app.tools.starting.codes import Entry
from app.tools.starting.draft import CodeTable, Part
from app.tools.starting.habits import DAYS, UNIT_HABITS, choose
from app.tools.starting.references import Reference
from app.tools.starting.select import Cell, Select
from app.tools.starting.tables import others, slots
from app.tools.starting.words import meaning

_FRAMEWORK = frozenset({"create_uid", "write_uid"})
"""Columns of Tryton and Odoo, which keep times in UTC and call a number `name`."""


_BY_DATES = CodeTable(
    "",
    (
        Entry("expected", "planned", 0),
        Entry("here", "in-progress", 0),
        Entry("left", "finished", 0),
    ),
    ("planned", "in-progress", "finished"),
)
_ORDER = (
    "id visit_number patient_id status class start end functional_unit organization_id last_updated"
).split()


def stays(builder: Builder) -> list[Part]:
    """Return a part for each table of stays."""
    tables = builder.roles.stays
    if all(_FRAMEWORK <= table.by_name.keys() for table in tables):
        builder.draft.source_zone = "UTC"
    parts = [_Stays(builder, table).part() for table in tables]
    if len(parts) > 1:
        taken: list[str] = []
        for part in parts:
            part.prefix = _prefix(part.select.table, taken)
            taken.append(part.prefix)
    return parts


class _Stays:
    def __init__(self, builder: Builder, table: Table) -> None:
        self._builder = builder
        self._table = table
        self._part = Part(Select(table))
        self._columns = slots(table, ResourceType.ENCOUNTER, builder.references)
        self._references = builder.references.of(table)

    def part(self) -> Part:
        self._id()
        self._visit_number()
        self._patient()
        self._times()
        self._status()
        self._class()
        self._unit()
        self._organization()
        self._changed()
        self._belonging()
        self._marks()
        self._expected_ends()
        self._part.questions += others(
            self._table, ResourceType.ENCOUNTER, self._builder.references
        )
        # In the order of the resource, whatever was looked for first.
        self._part.lines.sort(key=lambda line: _ORDER.index(line.key))
        return self._part

    def _id(self) -> None:
        key = self._table.primary_key
        part = self._part
        if len(key) == 1:
            part.put("id", {"from": part.select.add(self._table.by_name[key[0]])})
            return
        if key:
            cells = [Cell(0, self._table.by_name[name]) for name in key]
            template = " || '-' || ".join(f"{{{place}}}" for place in range(len(cells)))
            name = part.select.express("stay_id", template, *cells)
            part.put("id", {"from": name}, "made of the columns of the key")
            return
        unique = [c for c in self._table.columns if self._table.is_unique(c.name)]
        number = self._columns.get("visit_number")
        chosen = (unique or ([number] if number else list(self._table.columns)))[0]
        question = (
            "" if unique else "no key is declared: has each stay another value here?"
        )
        part.put("id", {"from": part.select.add(chosen)}, question)

    def _visit_number(self) -> None:
        column, question = self._columns.get("visit_number"), ""
        key = self._table.primary_key
        if (
            column is None
            and len(key) == 1
            and meaning(key[0]).known & {"VISITNO", "FILE"}
        ):
            column = self._table.by_name[key[0]]
        if column is None and _FRAMEWORK <= self._table.by_name.keys():
            found = [
                c
                for c in self._table.columns
                if c.name in ("name", "code", "reference")
            ]
            column = found[0] if found else None
            question = "is it the number of the stay?"
        if column is None:
            self._part.questions.append(
                "visit_number: no column looks like the number of the stay"
            )
            return
        self._part.put(
            "visit_number", {"from": self._part.select.add(column)}, question
        )

    def _patient(self) -> None:
        patient = self._builder.roles.patient
        ways = [
            r
            for r in self._references.values()
            if patient and r.target.name == patient.name
        ]
        # `patient_id` before `mother_id`, which leads to a patient as well.
        ways.sort(
            key=lambda way: (
                not meaning(way.column).known & {"PATIENT", "PATIENTNO", "PERSON"}
            )
        )
        column = self._columns.get("patient_id")
        if ways:
            column = self._table.by_name[ways[0].column]
        question = "nothing says where it leads: is it the id of a patient?"
        if ways or (patient and column and self._is_known_there(patient, column)):
            question = ""
        if column is None:
            column = self._table.columns[0]
            question = "which column says whose stay it is? This one is only the first"
        self._part.put("patient_id", {"from": self._part.select.add(column)}, question)

    def _is_known_there(self, patient: Table, column: TableColumn) -> bool:
        """Tell whether the patient's table has the column, or such a number, as well."""
        found = slots(patient, ResourceType.PATIENT, self._builder.references)
        is_number = "PATIENTNO" in meaning(column.name).known
        return column.name in patient.by_name or (is_number and "number" in found)

    def _times(self) -> None:
        for slot in ("start", "end"):
            if column := self._columns.get(slot):
                clock = self._columns.get(f"{slot}_clock")
                self._builder.time(self._part, slot, self._table, column, clock)
            else:
                self._part.questions.append(f"{slot}: no column looks like it")

    def _status(self) -> None:
        column = self._columns.get("status")
        if column and self._builder.coded(self._part, "status", self._table, column):
            return
        name = self._part.select.express("status_by_dates", *self._by_dates())
        self._builder.draft.codes.setdefault("status_by_dates", _BY_DATES)
        question = (
            "no column of states: told by the dates, as long as nothing better is known"
        )
        self._part.put("status", {"from": name, "codes": "status_by_dates"}, question)

    def _by_dates(self) -> tuple[str, *tuple[Cell, ...]]:
        start, end = self._columns.get("start"), self._columns.get("end")
        cells = tuple(Cell(0, column) for column in (end, start) if column)
        if end is None:
            return ("'left'", *cells[:0])
        left = "WHEN {0} IS NOT NULL THEN 'left'"
        if lines := [line for line in self._part.lines if line.key == "end"]:
            value = lines[0].value
            absent = value.get("absent") if isinstance(value, dict) else None
            if isinstance(absent, list) and end.holds in (*DAYS, Holds.TEXT):
                left = f"WHEN {{0}} < '{absent[0]}' THEN 'left'"
        if start and start.holds in DAYS:
            return (
                f"CASE {left} WHEN {{1}} > CURRENT_TIMESTAMP THEN 'expected' ELSE 'here' END",
                *cells,
            )
        return (f"CASE {left} ELSE 'here' END", *cells[:1])

    def _class(self) -> None:
        column = self._columns.get("class")
        if column and self._builder.coded(self._part, "class", self._table, column):
            return
        if made := class_by_name(self._table):
            question = "by the name of the table: the same for all of its stays"
            self._part.put_unsearched("class", made, question)
        else:
            self._part.questions.append(
                "class: no column tells emergencies, inpatients and outpatients apart"
            )

    def _unit(self) -> None:
        column = self._columns.get("functional_unit")
        if column is not None:
            self._part.put("functional_unit", {"from": self._part.select.add(column)})
            return
        way = self._builder.references.path(self._table, self._builder.roles.units)
        if not way:
            self._part.questions.append("functional_unit: no column leads to a unit")
            return
        code = choose(way[-1].target, UNIT_HABITS)["code"]
        name = self._part.select.add(code, self._part.select.join(way))
        question = "the code that people know the unit by?"
        if len(way) > 1:
            steps = " and ".join(step.column for step in way)
            question = f"found over {steps}: is that the unit of the stay?"
        self._part.put("functional_unit", {"from": name}, question)

    def _organization(self) -> None:
        house = self._builder.roles.organization
        ways = [
            r
            for r in self._references.values()
            if house and r.target.name == house.name
        ]
        column = self._columns.get("organization_id")
        if ways:
            column = self._table.by_name[ways[0].column]
        if column is None:
            self._part.questions.append(
                "organization_id: no column says the hospital; is it one for all stays"
                " (organization_id: hospital-1)?"
            )
            return
        question = (
            ""
            if ways
            else "nothing says where it leads: is it the id of an organization?"
        )
        self._part.put(
            "organization_id", {"from": self._part.select.add(column)}, question
        )

    def _changed(self) -> None:
        put_changed(self._builder, self._part, self._table, self._columns)

    def _belonging(self) -> None:
        """Leave out rows that belong to a stay of another table; it is served by that one."""
        others = {table.name for table in self._builder.roles.stays} - {
            self._table.name
        }
        for reference in self._references.values():
            if reference.target.name in others:
                column = self._table.by_name[reference.column]
                self._part.select.filled_only("{0} IS NULL", column)
                self._part.questions.append(
                    f"rows with {column.name} are left out: they seem to be parts of stays of"
                    f" {reference.target.name}, which are served from there"
                )

    def _marks(self) -> None:
        for slot, said in (("cancelled", "cancelled"), ("deleted", "deleted")):
            if column := self._columns.get(slot):
                self._part.questions.append(
                    marked(self._builder, self._table, column, said)
                )
        if column := self._columns.get("planned"):
            start = self._columns.get("start")
            self._part.questions.append(
                f"start: planned stays may have {column.name} alone:"
                f" COALESCE({start.name if start else '…'}, {column.name})"
            )

    def _expected_ends(self) -> None:
        """Ask about stays that go on and have an end already: the expected one."""
        line = next((line for line in self._part.lines if line.key == "status"), None)
        status, end = self._columns.get("status"), self._columns.get("end")
        if not (line and status and end and isinstance(line.value, dict)):
            return
        codes = self._builder.draft.codes[str(line.value["codes"])]
        going = [e.code for e in codes.entries if e.made in ("planned", "in-progress")]
        ended = next(line for line in self._part.lines if line.key == "end")
        absent = ended.value.get("absent", []) if isinstance(ended.value, dict) else []
        if absent or not going:
            return
        counted = rows_with(
            self._builder.database, self._table, end.name, status.name, going
        )
        if counted and counted[1]:
            self._part.questions.append(
                f"end: {counted[1]} stays that are planned or in progress have a {end.name}:"
                " the expected one? Then read it by a CASE on the state in rows"
            )


def marked(builder: Builder, table: Table, column: TableColumn, said: str) -> str:
    """Return the question about a column that seems to mark rows as deleted or cancelled."""
    if column.holds in DAYS:
        return f"{column.name} seems to mark what was {said}: add WHERE {column.written} IS NULL to rows?"
    told = builder.told(table, column)
    counts = f" ({told})" if told else ""
    return f"{column.name}{counts} seems to mark what was {said}: leave it out by WHERE in rows?"


def put_changed(
    builder: Builder,
    part: Part,
    table: Table,
    columns: Mapping[str, TableColumn],
    place: int = 0,
) -> None:
    """Fill last_updated from the time of change, or of creation where there was none."""
    changed, created = columns.get("changed"), columns.get("created")
    chosen = changed or created
    if chosen is None:
        return
    builder.time(part, "last_updated", table, chosen, place=place)
    if not (changed and created and changed.type == created.type):
        return
    line = part.lines.pop()
    cells = Cell(place, changed), Cell(place, created)
    if isinstance(line.value, dict):
        part.select.drop(str(line.value["from"]))
        name = part.select.express("last_changed", "COALESCE({0}, {1})", *cells)
        part.put("last_updated", {**line.value, "from": name}, line.question)


def _prefix(table: Table, taken: list[str]) -> str:
    words = [w for w in meaning(table.bare).words if w.isascii() and w.isalpha()]
    known = [
        w for w in words if meaning(w).known - {"PATIENT", "PERSON", "STAY", "ENTRY"}
    ]
    stem = (known or words or ["t"])[0]
    for length in range(3, len(stem) + 1):
        prefix = f"{stem[:length]}-"
        if prefix not in taken:
            return prefix
    return f"{stem}{len(taken)}-"


def outlying(parts: tuple[Reference, ...]) -> Iterator[str]:
    """Yield what there is to know of tables whose rows are parts of stays."""
    for part in parts:
        yield (
            f"{part.table.name} also looks like stays, but each of its rows has a {part.column}:"
            f" a part of one of {part.target.name}, and not served"
        )
