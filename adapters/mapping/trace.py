"""What each field of a section makes of one row: for tools that explain a mapping.

Serving never comes here. Each field is read by itself, so that a row with several
faults tells all of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.contract import RowFault
from adapters.mapping.cells import Cell, CellError, Row, compile_cell, time_reader
from adapters.mapping.items import counting, item_positions, item_reader
from adapters.mapping.model import FieldMapping, ItemMapping, ResourceMapping
from adapters.mapping.slots import LINES, LISTS, SLOTS, Kind, ListSlot, Slot
from adapters.mapping.times import read_value

Extras = Mapping[ItemMapping, Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Made:
    """One field, its cells, and what it makes of them.

    `name` is that of a fault (`start`, `names.family`), `element` the path in the
    resource (`period.start`, `name[1].family`). A list item that is left out has no
    number in its path, and `kept` is false; so is `counts` where `only_if` left it
    out. `value` is None or () for nothing. `has_offset` is whether a time comes with an
    offset of its own, so that its field's zone has no part in it.
    """

    name: str
    element: str
    field: FieldMapping
    cells: tuple[tuple[str, object], ...]
    value: Any = None
    fault: RowFault | None = None
    kept: bool = True
    item: ItemMapping | None = None
    counts: bool = True
    has_offset: bool = False

    @property
    def is_filled(self) -> bool:
        """Whether a cell holds anything at all, a sentinel or a code for nothing too."""
        return any(cell is not None and cell != "" for _, cell in self.cells)


def trace(
    section: ResourceMapping, columns: Sequence[str], row: Row, extras: Extras
) -> tuple[Made, ...]:
    """Return what each field makes, in the order of the slots; constants have no cells."""
    positions = {column: at for at, column in enumerate(columns)}
    kind = section.resource_type
    made = [
        _read(
            section.fields[slot.record], slot, slot.name, slot.element, row, positions
        )
        for slot in SLOTS[kind]
        if slot.record in section.fields
    ]
    for listed in LISTS[kind]:
        made += _list(section, listed, positions, row, extras)
    return tuple(made)


def _list(
    section: ResourceMapping,
    listed: ListSlot,
    positions: Mapping[str, int],
    row: Row,
    extras: Extras,
) -> Iterator[Made]:
    number = 0
    for item in section.items.get(listed.name, ()):
        own = item_positions(item, positions)
        read = item_reader(item, listed, positions)
        condition = counting(item, own)
        for source in extras.get(item, ()) if item.rows else (row,):
            kept, counts = _is_kept(read, source), _is_kept(condition, source)
            path = f"{listed.element}[{number}]" if kept else listed.element
            number += kept
            more = {"kept": kept, "item": item, "counts": counts}
            yield from _item(item, listed, path, source, own, more)


def _is_kept(read: Any, row: Row) -> bool:
    """Whether a row gives an item; one that is a fault stands where it would have been."""
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
    more: Mapping[str, Any],
) -> Iterator[Made]:
    for slot in listed.slots:
        if slot.record in item.fields:
            name, element = f"{listed.name}.{slot.name}", f"{path}.{slot.element}"
            field = item.fields[slot.record]
            yield _read(field, slot, name, element, row, positions, **more)
    number = 0
    for field in item.lines:
        element = f"{path}.{LINES.element}[{number}]"
        name = f"{listed.name}.{LINES.name}"
        line = _read(field, LINES, name, element, row, positions, **more)
        number += bool(line.value)
        yield line


def _read(
    field: FieldMapping,
    slot: Slot,
    name: str,
    element: str,
    row: Row,
    positions: Mapping[str, int],
    **more: Any,
) -> Made:
    cell = Cell(field, name, positions)
    cells = tuple((column, row[positions[column]]) for column in field.columns)
    try:
        value = compile_cell(cell, slot.kind)(row)
    except CellError as error:
        return Made(name, element, field, cells, fault=error.fault, **more)
    if slot.kind is Kind.TIME and value is not None:
        said = time_reader(cell, read_value)(row)
        more["has_offset"] = said.tzinfo is not None
    return Made(name, element, field, cells, value, **more)
