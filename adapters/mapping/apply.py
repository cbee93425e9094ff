"""A row of the source → a record of the door, or the fault that keeps it from being one.

Compiled once for a section and the columns of its SELECT, then called for every row.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from adapters.contract import (
    EncounterRecord,
    GoneError,
    NotFoundError,
    OrganizationRecord,
    PatientRecord,
    Record,
    ResourceType,
    RowFault,
    SourceDataError,
)
from adapters.mapping.cells import Cell, CellError, Reader, Row, compile_cell
from adapters.mapping.columns import ColumnReader, Columns, compile_column, constant
from adapters.mapping.items import item_columns, list_reader, no_items, nothing
from adapters.mapping.model import HIDDEN, REMOVED, ItemMapping, ResourceMapping
from adapters.mapping.named import unknown_columns
from adapters.mapping.problems import MappingError
from adapters.mapping.slots import LISTS, SLOTS, UNSERVED, Kind, Slot

__all__ = ["RowMapper", "item_columns", "served"]

RECORDS: Mapping[ResourceType, type[Any]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: EncounterRecord,
        ResourceType.PATIENT: PatientRecord,
        ResourceType.ORGANIZATION: OrganizationRecord,
    }
)
_FEW = 6
"""Up to so many rows, one by one is as fast."""
NO_EXTRAS: Mapping[ItemMapping, Sequence[Row]] = MappingProxyType({})


class RowMapper:
    """Maps rows of one section whose columns are `columns`, in their order.

    Raises MappingError when the section names a column that is not there.
    """

    def __init__(self, section: ResourceMapping, columns: Sequence[str]) -> None:
        problems = unknown_columns(section, columns)
        if problems:
            raise MappingError(problems)
        kind = section.resource_type
        record = RECORDS[kind]
        positions = {column: index for index, column in enumerate(columns)}
        cells = {
            slot.record: (Cell(section.fields[slot.record], slot.name, positions), slot)
            for slot in SLOTS[kind]
            if slot.record in section.fields
        }
        self._make = record._make
        self._put_together = partial(tuple.__new__, record)
        lists = {listed.name for listed in LISTS[kind]}
        self._readers = tuple(
            no_items if name in lists else _reader(cells.get(name))
            for name in record._fields
        )
        self._column_readers = tuple(
            _column_reader(cells.get(name), read)
            for name, read in zip(record._fields, self._readers, strict=True)
        )
        self._lists = tuple(
            (record._fields.index(listed.name), list_reader(section, listed, positions))
            for listed in LISTS[kind]
            if listed.name in section.items
        )
        self._empty = _required(record._fields, section.required, cells)
        self._period = _period(cells)
        self._nameless = _nameless(kind, cells)
        self._status = _status_reader(cells)

    def __call__(
        self, row: Row, extras: Mapping[ItemMapping, Sequence[Row]] = NO_EXTRAS
    ) -> Record | RowFault:
        """Return the record of a row; `extras` holds the rows of items with own SELECTs.

        A row whose status is hidden or removed is never a fault: what it cannot say is
        left out, since nobody is going to see it.
        """
        try:
            values = [read(row) for read in self._readers]
            for index, read_list in self._lists:
                values[index] = read_list(row, extras)
        except CellError as error:
            return self._unserved(row) or error.fault
        fault = self._fault(values)
        if fault is not None:
            return self._unserved(row) or fault
        made: Record = self._make(values)
        return made

    def many(
        self, rows: Sequence[Row], extras: Sequence[Mapping[ItemMapping, Sequence[Row]]]
    ) -> tuple[Record | RowFault, ...]:
        """Return for each row what a call returns; of many rows, in half the time."""
        values = self._values_of_all(rows, extras) if len(rows) > _FEW else None
        if values is None or self._may_have_fault(values):
            return tuple(map(self, rows, extras))
        return tuple(map(self._put_together, zip(*values, strict=True)))

    def _values_of_all(
        self, rows: Sequence[Row], extras: Sequence[Mapping[ItemMapping, Sequence[Row]]]
    ) -> Columns | None:
        columns = tuple(zip(*rows, strict=True))
        try:
            values = [read(rows, columns) for read in self._column_readers]
            for index, read_list in self._lists:
                values[index] = list(map(read_list, rows, extras))
        except CellError:
            return None
        return values

    def _may_have_fault(self, values: Columns) -> bool:
        if self._nameless or not all(all(values[index]) for index, _ in self._empty):
            return True
        if self._period is None:
            return False
        start, end, _ = self._period
        bounds = zip(values[start], values[end], strict=True)
        return any(began and ended and ended < began for began, ended in bounds)

    def _fault(self, values: list[Any]) -> RowFault | None:
        for index, fault in self._empty:
            if values[index] is None or values[index] == ():
                return fault
        if self._nameless and not any(values[i] for i in self._nameless[0]):
            return self._nameless[1]
        if self._period:
            start, end, fault = self._period
            if values[end] is not None and values[start] is not None:
                return fault if values[end] < values[start] else None
        return None

    def _unserved(self, row: Row) -> Record | None:
        if self._status is None:
            return None
        try:
            status = self._status(row)
        except CellError:
            return None
        return EncounterRecord("", status, "") if status in UNSERVED else None


def served(record: Record | RowFault) -> Record:
    """Return a record that was read, unless its status is not served (decision 17).

    Raises SourceDataError for a fault, GoneError for a removed stay, NotFoundError for a
    hidden one.
    """
    if isinstance(record, RowFault):
        raise SourceDataError("the row cannot be mapped", record)
    status = record.status if isinstance(record, EncounterRecord) else None
    if status == REMOVED:
        raise GoneError(ResourceType.ENCOUNTER)
    if status == HIDDEN:
        raise NotFoundError(ResourceType.ENCOUNTER)
    return record


def _reader(compiled: tuple[Cell, Slot] | None) -> Reader:
    if compiled is None:
        return nothing
    cell, slot = compiled
    return compile_cell(cell, slot.kind)


def _column_reader(compiled: tuple[Cell, Slot] | None, read: Reader) -> ColumnReader:
    if compiled is None:
        return constant(read(()))
    cell, slot = compiled
    return compile_column(cell, slot.kind, read)


def _required(
    names: Sequence[str],
    required: frozenset[str],
    cells: Mapping[str, tuple[Cell, Slot]],
) -> tuple[tuple[int, RowFault], ...]:
    rule = "required and empty"
    return tuple(
        (
            index,
            cells[name][0].fault(rule) if name in cells else RowFault(name, "", rule),
        )
        for index, name in enumerate(names)
        if name in required
    )


def _period(
    cells: Mapping[str, tuple[Cell, Slot]],
) -> tuple[int, int, RowFault] | None:
    """Return where start and end stand, and the fault of an end before the start."""
    if not {"start", "end"} <= set(cells):
        return None
    at = EncounterRecord._fields.index
    return at("start"), at("end"), cells["end"][0].fault("ends before it starts")


def _nameless(
    kind: ResourceType, cells: Mapping[str, tuple[Cell, Slot]]
) -> tuple[tuple[int, ...], RowFault] | None:
    """Return what an organization needs one of, and the fault of none (FHIR org-1)."""
    if kind is not ResourceType.ORGANIZATION:
        return None
    rule = "an organization needs a name or an identifier"
    cell, _ = cells.get("name", (None, None))
    at = OrganizationRecord._fields.index
    fault = cell.fault(rule) if cell else RowFault("name", "", rule)
    return (at("name"), at("identifiers")), fault


def _status_reader(cells: Mapping[str, tuple[Cell, Slot]]) -> Reader | None:
    """Return the reader of the status, where some rows are not to be served."""
    cell, _ = cells.get("status", (None, None))
    codes = cell.field.codes if cell else None
    if cell is None or codes is None:
        return None
    targets = {*codes.table.values(), codes.otherwise}
    return compile_cell(cell, Kind.CODE) if targets & set(UNSERVED) else None
