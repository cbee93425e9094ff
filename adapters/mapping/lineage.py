"""What each field of a section makes of one row: for tools that explain a mapping.

Serving never comes here. Each field is read by itself, so that a row with several
faults shows all of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adapters.contract import RowFault
from adapters.mapping.model import FieldMapping, ItemMapping, ResourceMapping
from adapters.mapping.row_mapper import (
    Cell,
    CellError,
    Extras,
    Reader,
    Row,
    compile_cell,
    counting,
    item_positions,
    item_reader,
)
from adapters.mapping.slots import LINES, LISTS, SLOTS, Kind, ListSlot, Slot, fields_of
from adapters.mapping.times import join_parts, read_value
from adapters.mapping.values import presence


@dataclass(frozen=True, slots=True)
class TracedField:
    """One field, its cells, and the value that it makes of them.

    `name` is that of a fault (`start`, `names.family`), `element` the path in the
    resource (`period.start`, `name[1].family`). A list item that is left out has no
    number in its path, and `is_included` is false; so is `counts` where `only_if` left it
    out. `value` is None or () for nothing. `has_offset` is whether a time comes with an
    offset of its own, so that its field's zone has no part in it.
    """

    name: str
    element: str
    field: FieldMapping
    cells: tuple[tuple[str, object], ...]
    value: Any = None
    fault: RowFault | None = None
    is_included: bool = True
    item: ItemMapping | None = None
    counts: bool = True
    has_offset: bool = False

    @property
    def is_filled(self) -> bool:
        """Whether a cell holds anything at all, a sentinel or a code for nothing too."""
        return any(cell is not None and cell != "" for _, cell in self.cells)


def trace(
    section: ResourceMapping, columns: Sequence[str], row: Row, extras: Extras
) -> tuple[TracedField, ...]:
    """Return what each field makes, in the order of the slots; constants have no cells."""
    positions = {column: at for at, column in enumerate(columns)}
    traced = [
        _read(field, slot, slot.name, slot.element, row, positions)
        for slot in SLOTS[section.resource_type]
        if (field := section.fields.get(slot.record)) is not None
    ]
    for listed in LISTS[section.resource_type]:
        traced += _list(section, listed, positions, row, extras)
    return tuple(traced)


def _list(
    section: ResourceMapping,
    listed: ListSlot,
    positions: Mapping[str, int],
    row: Row,
    extras: Extras,
) -> Iterator[TracedField]:
    number = 0
    for item in section.items.get(listed.name, ()):
        own = item_positions(item, positions)
        read, condition = item_reader(item, listed, positions), counting(item, own)
        for source in extras.get(item, ()) if item.rows else (row,):
            is_included, counts = _fills(read, source), _fills(condition, source)
            path = f"{listed.element}[{number}]" if is_included else listed.element
            number += is_included
            for traced in _item(item, listed, path, source, own):
                yield replace(traced, is_included=is_included, item=item, counts=counts)


def _fills(read: Reader, row: Row) -> bool:
    """Whether a row fills an item; one that is a fault stands where it would have been."""
    try:
        return read(row) not in (None, False)
    except CellError:
        return True


def _item(
    item: ItemMapping,
    listed: ListSlot,
    path: str,
    row: Row,
    positions: Mapping[str, int],
) -> Iterator[TracedField]:
    number = 0
    for slot, field in fields_of(item, listed):
        name, element = f"{listed.name}.{slot.name}", f"{path}.{slot.element}"
        if slot is LINES:
            element += f"[{number}]"
        traced = _read(field, slot, name, element, row, positions)
        number += slot is LINES and bool(traced.value)
        yield traced


def _read(
    field: FieldMapping,
    slot: Slot,
    name: str,
    element: str,
    row: Row,
    positions: Mapping[str, int],
) -> TracedField:
    cell = Cell(field, name, positions)
    cells = tuple((column, row[positions[column]]) for column in field.columns)
    try:
        value = compile_cell(cell, slot.kind)(row)
    except CellError as error:
        return TracedField(name, element, field, cells, fault=error.fault)
    is_time = slot.kind is Kind.TIME and value is not None
    has_offset = is_time and _has_offset(field, [each for _, each in cells])
    return TracedField(name, element, field, cells, value, has_offset=has_offset)


def _has_offset(field: FieldMapping, cells: Sequence[object]) -> bool:
    assert field.time is not None, "the loader gives every time a rule"
    first, *more = map(presence(field.absent), cells)
    value = join_parts(first, more[0], field.time) if more else first
    return read_value(value, field.time).tzinfo is not None
