"""Which column fills which slot of a first mapping: by declared keys and by exact names.

A slot is filled by a declared foreign key, a primary key, or a column with exactly its name
and a fitting type. A required slot that none of these fills gets NULL, so that the file loads
and no row is served before somebody has answered.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from adapters.contract import ResourceType
from adapters.mapping.slots import REFERS, REQUIRED, SLOTS, Slot, SlotKind, named_slots
from adapters.sql.engine import Database
from toolkit.catalogue import (
    Holds,
    dialect_of,
    foreign_keys,
    holds_of,
    is_unique,
    primary_key,
    type_of,
    written,
)
from toolkit.contents import (
    MOST_CODES,
    MOST_PATIENT_CODES,
    TIME_TYPES,
    Contents,
    count_contents,
)

STAY, PATIENT, ORGANIZATION = ResourceType

Tables = Mapping[ResourceType, Sequence[sa.Table]]
"""By resource type its tables: each is a source."""

_ID_TYPES = frozenset({Holds.TEXT, Holds.INTEGER, Holds.UUID})
_CODE_TYPES = frozenset({Holds.TEXT, Holds.INTEGER})
_TEXT_TYPES = frozenset({Holds.TEXT})
_FITTING_TYPES = {
    SlotKind.ID: _ID_TYPES,
    SlotKind.EXACT: _ID_TYPES | {Holds.NUMBER},
    SlotKind.CODE: _CODE_TYPES,
    SlotKind.FLAG: _CODE_TYPES | {Holds.FLAG},
    SlotKind.TIME: TIME_TYPES,
    SlotKind.DATE: TIME_TYPES,
    SlotKind.TEXT: _TEXT_TYPES,
    SlotKind.PARTS: _TEXT_TYPES,
}
"""What a column may hold to fill a slot of a kind."""


@dataclass(frozen=True, slots=True)
class SelectedColumn:
    """A column of a section's table, and what its rows hold.

    `refers` is the column that a declared key leads to.
    """

    source: sa.Column[Any]
    type: str
    holds: Holds
    contents: Contents
    refers: str


@dataclass(frozen=True, slots=True)
class Field:
    """A slot with its column, None if it is required and none is known; `questions` are open."""

    slot: Slot
    column: SelectedColumn | None
    questions: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DraftSection:
    """A section or source of a first mapping; `open` are the slots without a column."""

    kind: ResourceType
    table: sa.Table
    written: str
    alias: str
    columns: Sequence[SelectedColumn]
    fields: Sequence[Field]
    open: Sequence[str]


def read_sections(database: Database, tables: Tables) -> Sequence[DraftSection]:
    """Return the sections of the tables that the author named."""
    return [
        _SectionReader(database, tables, kind, table).read()
        for kind, of_kind in tables.items()
        for table in of_kind
    ]


class _SectionReader:
    """Reads a section from its table."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        kind: ResourceType,
        table: sa.Table,
    ) -> None:
        self._database = database
        self._tables = tables
        self._kind = kind
        self._table = table

    def read(self) -> DraftSection:
        """Return the section."""
        table = self._table
        alias = re.sub(r"[^a-z]", "", table.name.lower())[:1] or "t"
        columns = self._columns()
        slots = [s for s in SLOTS[self._kind] if s.kind is not SlotKind.SYSTEM]
        fields = [field for slot in slots if (field := self._field(slot, columns))]
        filled = {field.slot.name for field in fields}
        return DraftSection(
            kind=self._kind,
            table=table,
            written=written(self._database, table.name, table.schema),
            alias=alias,
            columns=columns,
            fields=fields,
            open=[slot.name for slot in slots if slot.name not in filled],
        )

    def _columns(self) -> list[SelectedColumn]:
        """Return the columns of the table."""
        table, database = self._table, self._database
        dialect = dialect_of(database)
        keys = {name: (other, column) for name, other, column in foreign_keys(table)}
        columns = []
        for source in table.columns:
            holds = holds_of(source, dialect.name)
            target, referred = keys.get(source.name, ("", ""))
            most = self._most_codes(source, holds, target)
            columns.append(
                SelectedColumn(
                    source=source,
                    type=type_of(source, dialect),
                    holds=holds,
                    contents=count_contents(database, table, source.name, holds, most),
                    refers=f"{target}.{referred}" if target else "",
                )
            )
        return columns

    def _most_codes(self, column: sa.Column[Any], holds: Holds, target: str) -> int:
        """Return how many values may be codes, 0 where they may identify a person."""
        personal = {slot.name for _, slot in named_slots(self._kind) if slot.personal}
        patients = [table.key for table in self._tables.get(PATIENT, ())]
        if (
            column.name.lower() in personal
            or is_unique(self._table, column.name)
            or target in patients
            or (target and holds is Holds.TEXT)
        ):
            return 0
        return MOST_PATIENT_CODES if self._kind is PATIENT else MOST_CODES

    def _field(self, slot: Slot, columns: Sequence[SelectedColumn]) -> Field | None:
        """Return a slot with its column, None where nothing declared or named fills it."""
        fitting = [c for c in columns if c.holds in _FITTING_TYPES[slot.kind]]
        names = [column.source.name.lower() for column in fitting]
        named = fitting[names.index(slot.name)] if slot.name in names else None
        column, question = named, ""
        if slot.name == "id":
            column, question = self._id(fitting, named)
        elif slot.name in REFERS:
            column, question = self._reference(slot, fitting, named)
        if column:
            doubts = (question, *self._doubts(slot, column))
            return Field(slot, column, list(filter(None, doubts)))
        if slot.name in REQUIRED[self._kind]:
            return Field(slot, None, [question or "which column is it?"])
        return None

    def _id(
        self, fitting: Sequence[SelectedColumn], named: SelectedColumn | None
    ) -> tuple[SelectedColumn | None, str]:
        """Return the column of the id: what declared keys refer to, else the primary key."""
        table = self._table
        referred = _referred(self._tables, table)
        if self._kind is not STAY and len(referred) == 1:
            return next((c for c in fitting if c.source.name in referred), None), ""
        question = ""
        if self._kind is not STAY:
            question = "no declared key refers to it: do stays refer to it?"
        names = primary_key(table)
        if len(names) == 1:
            return next((c for c in fitting if c.source.name in names), None), question
        if names:
            text = f"the primary key is ({', '.join(names)}): make one text of them"
            return None, text
        return named, "no primary key is declared: is it unique?"

    def _reference(
        self,
        slot: Slot,
        fitting: Sequence[SelectedColumn],
        named: SelectedColumn | None,
    ) -> tuple[SelectedColumn | None, str]:
        """Return the column that a declared key leads from, else the one with the slot's name.

        A key to the table itself may mean anything: the mother of a patient.
        """
        kind, leading = REFERS[slot.name], list[SelectedColumn]()
        for table in self._tables.get(kind, ())[:1]:
            ids = {f"{table.key}.{id}" for id in _id_names(self._tables, table)}
            leading = [column for column in fitting if column.refers in ids]
        if named in leading:
            return named, ""
        if len(leading) == 1 and kind is not self._kind:
            return leading[0], ""
        if leading and slot.name in REQUIRED[self._kind]:
            others = ", ".join(column.source.name for column in leading[1:])
            return leading[0], f"or is it {others}?"
        # A declared key that leads elsewhere says that it is no such id.
        if named and not named.refers:
            return named, f"no key is declared: is it the id of the {kind.lower()}?"
        return None, ""

    def _doubts(self, slot: Slot, column: SelectedColumn) -> Iterator[str]:
        """Yield what the author must decide about a column that fills a slot."""
        contents = column.contents
        if slot.kind is SlotKind.TIME and column.holds is Holds.DATE:
            yield "at which time of day?"
        if slot.kind is SlotKind.TIME and column.holds is Holds.LOCAL_TIME:
            yield "in which time zone?"
        if contents.far:
            days = ", ".join(f'"{day.text}"' for day in contents.far)
            yield f"does it mean no value? Then add absent: [{days}]"
        elif slot.kind in (SlotKind.TIME, SlotKind.DATE) and contents.rare:
            yield "some days are before 1800 or after 2199"
        if slot.name in REQUIRED[self._kind] and contents.nulls + contents.blanks:
            yield "rows without a value cannot be served"
        if slot.kind is SlotKind.ID and column.holds is Holds.TEXT:
            yield "is every value a FHIR id (letters, digits, - and .)?"


def _referred(tables: Tables, table: sa.Table) -> set[str]:
    """Return the columns of a table that declared keys of the other sections refer to."""
    return {
        column
        for of_kind in tables.values()
        for other in of_kind
        for _, target, column in foreign_keys(other)
        if other is not table and target == table.key
    }


def _id_names(tables: Tables, table: sa.Table) -> set[str]:
    """Return the column of a table that is its section's id."""
    referred = _referred(tables, table)
    return referred if len(referred) == 1 else {*primary_key(table)}
