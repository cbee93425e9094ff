"""What a first mapping file is made of, before it is written."""

from dataclasses import dataclass, field
from typing import NamedTuple

from adapters.contract import ResourceType
from adapters.sql.tables import Table, TableColumn
from app.tools.starting.codes import Entry
from app.tools.starting.select import Select

Value = str | list["Value"] | dict[str, "Value"]

VISIT_NUMBER_SYSTEM = "visit_number_system"
"""The constant that visit numbers need."""


class Found(NamedTuple):
    """A column of a table, and the place of that table in the SELECT."""

    table: Table
    column: TableColumn
    place: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """A key and what it holds; `question` is "" where nothing is open.

    One that `is_out` stays a comment until its question is answered.
    """

    key: str
    value: Value
    question: str = ""
    is_out: bool = False


@dataclass
class Item:
    """An item of a list; with a `select` of its own where it has one, and its `key`.

    `path` is that of a list in each row, which is read in place of the select.
    """

    lines: list[Line] = field(default_factory=list)
    select: Select | None = None
    key: str = ""
    question: str = ""
    path: str = ""


@dataclass
class Part:
    """A section, or one entry of a section with several sources.

    `questions` stand above it, and `told` what was decided by counts. `asked` are
    lines that say how its rows are asked for, where
    that is not by the SELECT. `left` lines stand at its end, and questions (`undecided`)
    and remarks (`unread`) on the columns that it does not read.
    `searchable` are the slots that the source can compare.
    """

    select: Select
    prefix: str = ""
    lines: list[Line] = field(default_factory=list)
    lists: dict[str, list[Item]] = field(default_factory=dict)
    questions: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    searchable: set[str] = field(default_factory=set)
    asked: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    undecided: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def read(self, found: Found) -> str:
        """Read a column and return its name in the SELECT."""
        return self.select.add(found.column, found.place)

    def line(self, slot: str) -> Line | None:
        """Return the line of a slot, None where it is not filled."""
        return next((line for line in self.lines if line.key == slot), None)

    def put(self, slot: str, value: Value, question: str = "") -> None:
        """Fill a slot that can be searched."""
        self.lines.append(Line(slot, value, question))
        self.searchable.add(slot)

    def put_unsearched(self, slot: str, value: Value, question: str = "") -> None:
        """Fill a slot that cannot be searched."""
        self.lines.append(Line(slot, value, question))

    def leave_out(self, slot: str, value: Value, question: str) -> None:
        """Write how a slot could be filled, as a comment."""
        self.lines.append(Line(slot, value, question, is_out=True))


@dataclass(frozen=True, slots=True)
class CodeTable:
    """A code table; `source` is the table.column that its codes are from."""

    source: str
    entries: tuple[Entry, ...]
    allowed: tuple[str, ...]
    otherwise: str = ""


@dataclass
class Draft:
    """A whole file: sections by resource type, each with one part or several.

    `variable` is the environment variable that holds the address of the database.
    `systems` are constants with the question that each leaves open.
    """

    variable: str
    kind: str
    profile: str = "full"
    source_zone: str = ""
    source_questions: tuple[str, ...] = ()
    systems: dict[str, tuple[str, str]] = field(default_factory=dict)
    codes: dict[str, CodeTable] = field(default_factory=dict)
    sections: dict[ResourceType, list[Part]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
