"""What all sections are built with: the database, its roles, and code tables."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from adapters.contract import ResourceType
from adapters.mapping.slots import LISTS, SLOTS, UNSERVED
from adapters.sql.database import Database
from adapters.sql.samples import CodeCount, code_counts
from adapters.sql.tables import Catalogue, Table, TableColumn
from adapters.sql.tallies import rows_with, tally
from app.tools.starting.codes import entries
from app.tools.starting.data import data
from app.tools.starting.draft import CodeTable, Draft, Found, Part
from app.tools.starting.guesses import slots
from app.tools.starting.habits import DAYS
from app.tools.starting.personal import is_list_of_codes, may_show
from app.tools.starting.references import References
from app.tools.starting.select import Cell, Select
from app.tools.starting.tables import Roles
from app.tools.starting.words import meaning

_BARE_FLAGS = frozenset({"0", "1", "true", "false"})
_TOLD = 6
_MANY = 4
"""So many French words among the columns make a database a French one."""

_CLASSES = (
    ("EMERGENCY", "EMER"),
    ("INPATIENT", "IMP"),
    ("OUTPATIENT", "AMB"),
    ("APPOINTMENT", "AMB"),
)

_UNKNOWN = {"gender": "unknown", "telecom_system": "other"}
"""What a code becomes whose meaning nobody can guess, where there is such a word."""

_LISTED = {
    f"{listed.name}.{slot.name}": slot.codes
    for listed in LISTS[ResourceType.PATIENT]
    for slot in listed.slots
}
CODES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {slot.name: slot.codes for of in SLOTS.values() for slot in of if slot.codes}
    | {
        "yes": ("true", "false"),
        "active": ("true", "false"),
        "telecom_system": _LISTED["telecoms.system"],
        "telecom_use": _LISTED["telecoms.use"],
        "address_use": _LISTED["addresses.use"],
        "name_use": _LISTED["names.use"],
    }
)
"""The codes that each kind of code table may make."""


@dataclass
class Builder:
    """The database, what it says of itself, and the draft that grows."""

    database: Database
    catalogue: Catalogue
    references: References
    roles: Roles
    draft: Draft
    _counts: dict[tuple[object, ...], tuple[CodeCount, ...] | None] = field(
        default_factory=dict
    )

    @property
    def computes(self) -> bool:
        """Whether the file can say how values are made of columns, by SQL."""
        return self.draft.kind == "sql"

    @cached_property
    def is_french(self) -> bool:
        """Whether the names of columns are French ones."""
        known = frozenset(data("words")["french"].split())
        columns = (c for table in self.catalogue.tables for c in table.columns)
        return len(known & {w for c in columns for w in meaning(c.name).words}) >= _MANY

    def counts(
        self, table: Table, column: TableColumn, select: Select | None = None
    ) -> tuple[CodeCount, ...] | None:
        """Return the codes of a column, None where it holds no codes.

        Of the table that a SELECT begins with only the rows count that it leaves. None
        as well, and nothing is asked, where it may identify people.
        """
        rows = ""
        if select and select.table is table and select.leaves_out:
            rows = select.showing(**{column.name: Cell(0, column)}).text
        key = (table.name, column.name, rows)
        if key not in self._counts:
            found = self._asked(table, column, rows)
            seen = {count.code for count in found or ()}
            rest = tuple(CodeCount(c, 0) for c in column.choices if c not in seen)
            self._counts[key] = None if found is None else found + rest
        return self._counts[key]

    def _asked(
        self, table: Table, column: TableColumn, rows: str
    ) -> tuple[CodeCount, ...] | None:
        if not may_show(table, column):
            return None
        # In a list of codes each stands once.
        often = not is_list_of_codes(table)
        of = (self.database, table, column.name)
        return code_counts(*of, often=often, rows=rows)

    def tally(
        self, select: Select, cells: Mapping[str, Cell], *conditions: str
    ) -> tuple[int, ...] | None:
        """Return how many rows a SELECT has, and how many of them meet each condition.

        Conditions name the cells as they are named here.
        """
        rows = select.showing(**cells).text
        return tally(self.database, rows, tuple(cells), *conditions)

    def states(self, table: Table, made: Container[str]) -> tuple[str, str] | None:
        """Return the column of states of a table of stays, and SQL that lists codes of it.

        They are those that probably become one of `made`; None where there is none.
        """
        column = slots(table, ResourceType.ENCOUNTER, self.references).get("status")
        counts = self.counts(table, column) if column else None
        found = entries("status", counts or (), french=self.is_french)
        codes = [entry.code for entry in found if entry.made in made]
        return (column.name, listed(codes)) if column and codes else None

    def code_table(
        self,
        habit: str,
        name: str,
        table: Table,
        column: TableColumn,
        select: Select | None = None,
    ) -> str:
        """Make a code table of a column and return its name, "" where it has no codes."""
        counts = self.counts(table, column, select)
        if not counts:
            return ""
        found = entries(habit, counts, french=self.is_french)
        otherwise = ""
        if habit == "status" and not self.computes:
            # What is not served has to be left out by the API itself: nobody asked it to.
            found = tuple(e if e.made not in UNSERVED else e.unknown() for e in found)
        if habit == "class":
            # A comment would be served by `otherwise`, and nobody would see it.
            otherwise = class_by_name(table) or "UNK"
            found = tuple(e.or_else(otherwise) for e in found)
        elif habit in _UNKNOWN:
            found = tuple(e.or_else(_UNKNOWN[habit]) for e in found)
        chosen = self._free(name, table)
        source = f"{table.name}.{column.name}"
        made = CodeTable(source, found, CODES[habit], otherwise)
        self.draft.codes[chosen] = made
        return chosen

    def coded(self, part: Part, slot: str, found: Found) -> bool:
        """Fill a coded slot from a column; return whether it could be."""
        table, column, _ = found
        name = self.code_table(slot, slot, table, column, part.select)
        if not name:
            is_empty = self.counts(table, column, part.select) == ()
            told = "is empty" if is_empty else "has too many values for codes"
            part.questions.append(f"{slot}: could be {column.name}, which {told}")
            return False
        part.put(slot, {"from": part.read(found), "codes": name})
        return True

    def flag(self, part: Part, slot: str, habit: str, found: Found) -> None:
        """Fill a slot of true or false from a column that has a value anywhere."""
        table, column, _ = found
        counts = self.counts(table, column)
        if not counts:
            return
        if {count.code.lower() for count in counts} <= _BARE_FLAGS:
            part.put(slot, {"from": part.read(found)})
            return
        name = self.code_table(habit, slot, table, column)
        part.put(slot, {"from": part.read(found), "codes": name})

    def told(
        self, table: Table, column: TableColumn, select: Select | None = None
    ) -> str:
        """Return the commonest codes of a column with their counts, for a question."""
        counts = self.counts(table, column, select) or ()
        more = ", …" if len(counts) > _TOLD else ""
        return ", ".join(f"{c.code}: {c.rows}" for c in counts[:_TOLD]) + more

    def shown(self, table: Table, column: TableColumn) -> str:
        """Return a column with what it holds: its codes, or in how many rows there is any."""
        told = "" if column.holds in DAYS else self.told(table, column)
        if not told:
            counted = rows_with(self.database, table, column.name)
            told = f"in {counted[1]} of {counted[0]} rows" if counted else "not counted"
        return f"{column.name} ({told})"

    def rival(self, table: Table, column: TableColumn) -> str:
        """Return the same of a column that could be read instead, "" where that tells nothing."""
        counts = self.counts(table, column)
        is_one = counts is not None and len(counts) <= 1
        return "" if is_one else self.shown(table, column)

    def _free(self, name: str, table: Table) -> str:
        if name not in self.draft.codes:
            return name
        words = [w for w in meaning(table.bare).words if w.isalpha()]
        named = f"{name}_{words[-1]}" if words else f"{name}_2"
        while named in self.draft.codes:
            named += "_2"
        return named


def listed(codes: Sequence[str]) -> str:
    """Return codes as a list in SQL."""
    return ", ".join("'" + code.replace("'", "''") + "'" for code in codes)


def class_by_name(table: Table) -> str:
    """Return what the name of a table says of the class of its stays, "" for nothing."""
    known = meaning(table.bare).known
    return next((made for word, made in _CLASSES if word in known), "")
