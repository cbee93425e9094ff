"""Which column fills which slot of a first mapping: by declared keys and by exact names.

A slot is filled by a declared foreign key, a primary key, or a column with exactly its name
and a fitting type. A required slot that none of these fills gets NULL: the file loads, and no
row is served before the author has named a column.
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
    """A slot, its column, and the questions that the author must answer.

    The column is None for a required slot that nothing declared or named fills.
    """

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
        keys = {name: (target, column) for name, target, column in foreign_keys(table)}
        columns = []
        for source in table.columns:
            holds = holds_of(source, dialect.name)
            target, referred = keys.get(source.name, ("", ""))
            most_codes = self._most_codes(source, holds, target)
            contents = count_contents(database, table, source.name, holds, most_codes)
            column = SelectedColumn(
                source=source,
                type=type_of(source, dialect),
                holds=holds,
                contents=contents,
                refers=f"{target}.{referred}" if target else "",
            )
            columns.append(column)
        return columns

    def _most_codes(self, column: sa.Column[Any], holds: Holds, target: str) -> int:
        """Return how many different codes a column may have, 0 if it may identify a person.

        `target` is the table that a foreign key of the column refers to, "" for none.
        """
        personal = {slot.name for _, slot in named_slots(self._kind) if slot.personal}
        patients = [table.key for table in self._tables.get(PATIENT, ())]
        is_text_key = bool(target) and holds is Holds.TEXT
        if (
            column.name.lower() in personal
            or is_unique(self._table, column.name)
            or target in patients
            or is_text_key
        ):
            return 0
        return MOST_PATIENT_CODES if self._kind is PATIENT else MOST_CODES

    def _field(self, slot: Slot, columns: Sequence[SelectedColumn]) -> Field | None:
        """Return a slot with its column, None where nothing declared or named fills it."""
        fitting = [c for c in columns if c.holds in _FITTING_TYPES[slot.kind]]
        named = next((c for c in fitting if c.source.name.lower() == slot.name), None)
        column, question = named, ""
        if slot.name == "id":
            column, question = self._id(fitting, named)
        elif slot.name in REFERS:
            column, question = self._reference(slot, fitting, named)
        if column:
            questions = [*self._doubts(slot, column)]
            if question:
                questions.insert(0, question)
            return Field(slot, column, questions)
        if slot.name in REQUIRED[self._kind]:
            return Field(slot, None, [question or "which column is it?"])
        return None

    def _id(
        self, fitting: Sequence[SelectedColumn], named: SelectedColumn | None
    ) -> tuple[SelectedColumn | None, str]:
        """Return the column of the id, and the question about it or "".

        It is the column that declared keys refer to, else the primary key, else the column
        with the name of the slot.
        """
        by_name = {column.source.name: column for column in fitting}
        question = ""
        if self._kind is not STAY:
            referred = _referred(self._tables, self._table)
            if len(referred) == 1:
                (name,) = referred
                return by_name.get(name), ""
            question = "no declared key refers to it: do stays refer to it?"
        names = primary_key(self._table)
        if len(names) == 1:
            return by_name.get(names[0]), question
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
        """Return the column of a reference, and the question about it or "".

        It is a column with a foreign key to the table of that resource, else the one with the
        name of the slot.
        """
        kind = REFERS[slot.name]
        keys: list[SelectedColumn] = []
        for table in self._tables.get(kind, ())[:1]:
            ids = {f"{table.key}.{id}" for id in _id_names(self._tables, table)}
            keys = [column for column in fitting if column.refers in ids]
        if named in keys:
            return named, ""
        # A key of a table to itself may mean anything, such as the mother of a patient.
        if len(keys) == 1 and kind is not self._kind:
            return keys[0], ""
        if keys and slot.name in REQUIRED[self._kind]:
            choices = ", ".join(column.source.name for column in keys[1:])
            return keys[0], f"or is it {choices}?"
        # A foreign key to another table shows that the column is no such id.
        if named and not named.refers:
            return named, f"no key is declared: is it the id of the {kind.lower()}?"
        return None, ""

    def _doubts(self, slot: Slot, column: SelectedColumn) -> Iterator[str]:
        """Yield the questions that the author must answer about a column that fills a slot."""
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
    """Return the columns of a table that foreign keys of the other sections' tables refer to."""
    referring = [other for of_kind in tables.values() for other in of_kind]
    return {
        column
        for other in referring
        if other is not table
        for _, target, column in foreign_keys(other)
        if target == table.key
    }


def _id_names(tables: Tables, table: sa.Table) -> set[str]:
    """Return the columns that are the id of a table: what keys refer to, or the primary key."""
    referred = _referred(tables, table)
    return referred if len(referred) == 1 else {*primary_key(table)}
