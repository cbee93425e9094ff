"""Items of a patient in tables of their own: numbers, telephones, addresses."""

from collections.abc import Mapping, Sequence

from adapters.mapping.checks import is_system
from adapters.sql.tables import Table, TableColumn
from app.tools.starting.belongings import Child
from app.tools.starting.building import Builder
from app.tools.starting.codes import Entry, all_known, entries
from app.tools.starting.draft import CodeTable, Item, Line, Value
from app.tools.starting.habits import CHILD_HABITS, choose
from app.tools.starting.qualified import how_qualified
from app.tools.starting.reached import addresses
from app.tools.starting.select import Select

_SYSTEM = "their system (urn:oid:…)"

PATIENT_SYSTEM = "https://example.org/identifiers/patient"
"""What stands for the system of patient numbers until somebody says it."""


class _Rows:
    """A table with several rows a patient, read by the id of the patient."""

    def __init__(
        self, builder: Builder, name: str, child: Child, id: TableColumn, patient: Table
    ) -> None:
        self.builder = builder
        self.table = child.table
        self.select = Select(child.table)
        keys = builder.references.of(child.table).keys()
        neutral = frozenset({"PATIENT"})
        self.columns: Mapping[str, TableColumn] = choose(
            child.table, CHILD_HABITS[name], neutral, keys
        )
        self.lines: list[Line] = []
        self.questions: list[str] = []
        self._child = child
        self._key = self._read_key(child, id, patient)

    def _read_key(self, child: Child, id: TableColumn, patient: Table) -> str:
        of, person = child.reference, self.builder.roles.person
        by = of.key
        if person and of.target.name != patient.name:
            by = person.column
        elif of.key == id.name:
            return self.select.add(child.table.by_name[of.column])
        place = self.select.join_at(0, of.column, patient, by)
        return self.select.add(id, place)

    def read(self, slot: str) -> str:
        return self.select.add(self.columns[slot])

    def put_codes(self, key: str, habit: str) -> bool:
        """Fill a coded slot by the type of the row, where every code is known."""
        column = self.columns.get("type")
        if column is None:
            return False
        if not self._known(habit, column):
            told = self.builder.told(self.table, column)
            self.questions.append(f"{column.name} ({told}) may say the {key}: how?")
            return False
        name = self.builder.code_table(habit, habit, self.table, column)
        value: Value = {"from": self.read("type"), "codes": name}
        self.lines.append(Line(key, value))
        return True

    def _known(self, habit: str, column: TableColumn) -> bool:
        """Tell whether each code is known, or has a word for what is not."""
        counts = self.builder.counts(self.table, column) or ()
        found = entries(habit, counts, french=self.builder.is_french)
        return bool(found) and (habit == "telecom_system" or all_known(found))

    def put_value(self) -> None:
        self.lines.append(Line("value", {"from": self.read("value")}))

    def left_out(self, name: str, entries: Sequence[Entry]) -> str:
        """Return the question about types of numbers that are not served."""
        told = ", ".join(f"{entry.code}: {entry.rows}" for entry in entries)
        asked = f"other codes of {name} are left out ({told})"
        national = [e.code for e in entries if e.made.startswith("INS")]
        if not national:
            return asked
        how = how_qualified(self.builder, self.select, self._child, name, national)
        return f"{asked}; an INS goes out only when its identity is qualified{how}"

    def item(self, *questions: str) -> Item:
        asked = "; ".join([*questions, *self.questions])
        return Item(self.lines, self.select, self._key, asked)


def number_rows(
    builder: Builder, child: Child, id: TableColumn, patient: Table
) -> Item:
    """Return the item of a table of patient numbers."""
    rows = _Rows(builder, "identifiers", child, id, patient)
    if "type" in rows.columns:
        _put_types(rows)
    else:
        rows.lines += [Line("type", "PI"), Line("system", PATIENT_SYSTEM, _SYSTEM)]
    rows.put_value()
    leads = builder.references.leading(child.table, builder.roles.organization)
    for lead in leads[:1]:
        column = rows.select.add(child.table.by_name[lead.column])
        rows.lines.append(Line("assigner", {"from": column}))
    return rows.item()


def _put_types(rows: _Rows) -> None:
    """Fill type and system from the type of a number, for the hospital's own ones."""
    column = rows.columns["type"]
    counts = rows.builder.counts(rows.table, column) or ()
    if counts and all(is_system(count.code) for count in counts):
        rows.lines.append(Line("system", {"from": rows.read("type")}))
        return
    found = entries("identifier_type", counts, french=rows.builder.is_french)
    own = [entry for entry in found if entry.made == "PI"]
    if not own:
        told = rows.builder.told(rows.table, column)
        rows.questions.append(f"{column.name} ({told}) may say the type: how?")
        return
    name = rows.read("type")
    rows.lines.append(Line("type", "PI"))
    if len(own) == 1:
        rows.lines.append(Line("system", PATIENT_SYSTEM, _SYSTEM))
    else:
        source = f"{rows.table.name}.{column.name}"
        made = tuple(
            Entry(entry.code, f"{PATIENT_SYSTEM}-{number}", entry.rows, is_sure=False)
            for number, entry in enumerate(own, 1)
        )
        rows.builder.draft.codes["identifier_system"] = CodeTable(source, made, ())
        rows.lines.append(Line("system", {"from": name, "codes": "identifier_system"}))
    if len(own) < len(found):
        only: Value = {"from": name, "in": [entry.code for entry in own]}
        rest = [entry for entry in found if entry not in own]
        rows.lines.append(Line("only_if", only, rows.left_out(name, rest)))


def telecom_rows(
    builder: Builder, child: Child, id: TableColumn, patient: Table
) -> Item:
    """Return the item of a table of telephones and the like."""
    rows = _Rows(builder, "telecoms", child, id, patient)
    if not rows.put_codes("system", "telecom_system"):
        rows.lines.append(Line("system", "phone", "are all of them telephones?"))
    rows.put_codes("use", "telecom_use")
    rows.put_value()
    return rows.item()


def address_rows(
    builder: Builder, child: Child, id: TableColumn, patient: Table
) -> Item:
    """Return the item of a table of addresses."""
    rows = _Rows(builder, "addresses", child, id, patient)
    rows.put_codes("use", "address_use")
    for item in addresses(rows.select, rows.columns, 0, use=""):
        rows.lines += item.lines
    return rows.item()


def name_rows(builder: Builder, child: Child, id: TableColumn, patient: Table) -> Item:
    """Return the item of a table of names."""
    rows = _Rows(builder, "names", child, id, patient)
    if not rows.put_codes("use", "name_use"):
        rows.lines.append(Line("use", "official"))
    for key in ("family", "given", "prefix"):
        if key in rows.columns:
            rows.lines.append(Line(key, {"from": rows.read(key)}))
    return rows.item("which of its rows are names of today?")
