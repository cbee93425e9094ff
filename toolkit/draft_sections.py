"""Which column fills which slot of a first mapping: by declared keys and by exact names.

A slot is filled by a declared foreign key, a primary key, or a column with exactly its name
and a fitting type. A required slot that none of these fills gets NULL, so that the file loads
and no row is served before somebody has answered.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from adapters.contract import ResourceType
from adapters.mapping.slots import REFERS, REQUIRED, SLOTS, Slot, SlotKind, named_slots
from adapters.sql.engine import Database
from toolkit.catalogue import DatabaseTable, ForeignKey, Holds, TableColumn
from toolkit.contents import (
    MOST_CODES,
    MOST_PATIENT_CODES,
    TIME_TYPES,
    Contents,
    count_contents,
)

STAY, PATIENT, ORGANIZATION = ResourceType

Tables = Mapping[ResourceType, Sequence[DatabaseTable]]
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
    """A column of a section's table, its `name` in the SELECT, and what its rows hold.

    `listed` is what the SELECT lists for it, "" where `*` covers it. `refers` is the column
    that a declared key leads to.
    """

    table: DatabaseTable
    source: TableColumn
    name: str
    listed: str
    contents: Contents
    refers: str

    @property
    def is_primary_key(self) -> bool:
        """Whether it is the primary key of its table, or part of it."""
        return self.source.name in self.table.primary_key


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
    table: DatabaseTable
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
        table: DatabaseTable,
    ) -> None:
        self._database = database
        self._tables = tables
        self._kind = kind
        self._table = table

    def read(self) -> DraftSection:
        """Return the section."""
        alias = re.sub(r"[^a-z]", "", self._table.bare.lower())[:1] or "t"
        columns = self._columns(alias)
        slots = [s for s in SLOTS[self._kind] if s.kind is not SlotKind.SYSTEM]
        fields = [field for slot in slots if (field := self._field(slot, columns))]
        filled = {field.slot.name for field in fields}
        return DraftSection(
            kind=self._kind,
            table=self._table,
            alias=alias,
            columns=columns,
            fields=fields,
            open=[slot.name for slot in slots if slot.name not in filled],
        )

    def _columns(self, alias: str) -> list[SelectedColumn]:
        """Return the columns of the table."""
        table = self._table
        keys = {k.columns[0]: k for k in table.foreign_keys if len(k.columns) == 1}
        columns = []
        for source in table.columns:
            name, listed = source.name, ""
            if source.holds is Holds.UUID:
                # A FHIR id is a text.
                name = re.sub(r"\W", "_", f"{name}_text").lower()
                listed = f"CAST({alias}.{source.written} AS VARCHAR(36)) AS {name}"
            key = keys.get(source.name)
            most = self._most_codes(table, source, key)
            columns.append(
                SelectedColumn(
                    table=table,
                    source=source,
                    name=name,
                    listed=listed,
                    contents=count_contents(self._database, table, source, most),
                    refers=f"{key.table}.{key.referred[0]}" if key else "",
                )
            )
        return columns

    def _most_codes(
        self, table: DatabaseTable, column: TableColumn, key: ForeignKey | None
    ) -> int:
        """Return how many values may be codes, 0 where they may identify a person."""
        personal = {slot.name for _, slot in named_slots(self._kind) if slot.personal}
        is_personal = column.name.lower() in personal or table.is_unique(column.name)
        if key:
            patients = [table.name for table in self._tables.get(PATIENT, ())]
            is_personal |= key.table in patients or column.holds is Holds.TEXT
        if is_personal:
            return 0
        return MOST_PATIENT_CODES if self._kind is PATIENT else MOST_CODES

    def _field(self, slot: Slot, columns: Sequence[SelectedColumn]) -> Field | None:
        """Return a slot with its column, None where nothing declared or named fills it."""
        fitting = [c for c in columns if c.source.holds in _FITTING_TYPES[slot.kind]]
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
            question = "no declared key refers to it: is it what stays refer to?"
        if len(table.primary_key) == 1:
            return next((c for c in fitting if c.is_primary_key), None), question
        if table.primary_key:
            names = ", ".join(table.primary_key)
            return None, f"the primary key is ({names}): make one text of it"
        return named, "no primary key is declared: is it different in all rows?"

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
            ids = {f"{table.name}.{id}" for id in _id_names(self._tables, table)}
            leading = [column for column in fitting if column.refers in ids]
        if named in leading:
            return named, ""
        if len(leading) == 1 and kind is not self._kind:
            return leading[0], ""
        if leading and slot.name in REQUIRED[self._kind]:
            others = ", ".join(column.name for column in leading[1:])
            return leading[0], f"or is it {others}?"
        # A declared key that leads elsewhere says that it is no such id.
        if named and not named.refers:
            return named, "no key is declared: is it the id there?"
        return None, ""

    def _doubts(self, slot: Slot, column: SelectedColumn) -> Iterator[str]:
        """Yield what the author must decide about a column that fills a slot."""
        contents = column.contents
        if slot.kind is SlotKind.TIME and column.source.holds is Holds.DATE:
            yield "at which time of day?"
        if slot.kind is SlotKind.TIME and column.source.holds is Holds.LOCAL_TIME:
            yield "by whose clock?"
        if contents.far:
            days = ", ".join(f'"{day.text}"' for day in contents.far)
            yield f"no value? Then absent: [{days}]"
        elif slot.kind in (SlotKind.TIME, SlotKind.DATE) and contents.rare:
            yield "some days are before 1800 or after 2199"
        if slot.name in REQUIRED[self._kind] and contents.nulls + contents.blanks:
            yield "it is empty in some rows, which cannot be served"
        if slot.kind is SlotKind.ID and column.source.holds is Holds.TEXT:
            yield "is every value a FHIR id (letters, digits, - and .)?"


def _referred(tables: Tables, table: DatabaseTable) -> set[str]:
    """Return the columns of a table that declared keys of the other sections refer to."""
    return {
        key.referred[0]
        for of_kind in tables.values()
        for other in of_kind
        for key in other.foreign_keys
        if other != table and key.table == table.name and len(key.columns) == 1
    }


def _id_names(tables: Tables, table: DatabaseTable) -> set[str]:
    """Return the column of a table that is its section's id."""
    referred = _referred(tables, table)
    return referred if len(referred) == 1 else {*table.primary_key}
