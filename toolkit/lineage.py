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
from adapters.mapping.slots import LISTS, ListSlot, Place, SlotKind, places_of
from adapters.mapping.times import join_parts, presence, read_value


@dataclass(frozen=True, slots=True)
class TracedField:
    """One field with its cells and the value that they give.

    `name` is the slot as faults name it (`start`, `names.family`), `element` the path in the
    resource (`period.start`, `name[1].family`). `is_included` is false for a list item that is
    left out, which has no number in its path; `counts` is false if `only_if` leaves it out.
    `value` is None or () for no value. `has_offset` is whether a time has an offset from UTC
    of its own, so that the zone of the field does not matter.
    """

    name: str
    element: str
    kind: SlotKind
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
        """Whether a cell is not empty, even if its value stands for none."""
        return any(cell is not None and cell != "" for _, cell in self.cells)


def trace(
    section: ResourceMapping, columns: Sequence[str], row: Row, extras: Extras
) -> tuple[TracedField, ...]:
    """Return the value of each field, in the order of the slots; constants have no cells."""
    positions = {column: at for at, column in enumerate(columns)}
    places = [place for place in places_of(section) if place.item is None]
    traced = [_read(p, _relative(p.element), row, positions) for p in places]
    for listed in LISTS[section.resource_type]:
        traced += _list(section, listed, positions, row, extras)
    return tuple(traced)


def _relative(element: str) -> str:
    """Return the path of an element without the resource type."""
    return element.partition(".")[2]


def _list(
    section: ResourceMapping,
    listed: ListSlot,
    positions: Mapping[str, int],
    row: Row,
    extras: Extras,
) -> Iterator[TracedField]:
    """Yield the fields of each item of a list, once for each row of an item with own rows."""
    included = 0
    for item in section.items.get(listed.name, ()):
        read_item = item_reader(item, listed, positions)
        own_positions = item_positions(item, positions)
        read_condition = counting(item, own_positions)
        places = [place for place in places_of(section) if place.item is item]
        item_rows = extras.get(item, ()) if item.rows else (row,)
        for item_row in item_rows:
            path = listed.element
            is_included = _fills(read_item, item_row)
            if is_included:
                path += f"[{included}]"
                included += 1
            lines = 0
            for place in places:
                element = _relative(place.element).replace(listed.element, path, 1)
                is_line = place.field in item.lines
                if is_line:
                    element += f"[{lines}]"
                traced = _read(place, element, item_row, own_positions)
                if is_line and traced.value:
                    lines += 1
                yield replace(
                    traced,
                    item=item,
                    is_included=is_included,
                    counts=_fills(read_condition, item_row),
                )


def _fills(read: Reader, row: Row) -> bool:
    """Whether a reader returns a value or true; also for a fault, so that it is shown."""
    try:
        return read(row) not in (None, False)
    except CellError:
        return True


def _read(
    place: Place, element: str, row: Row, positions: Mapping[str, int]
) -> TracedField:
    """Return a field with what it reads in a row."""
    name, kind, field = place.slot, place.kind, place.field
    cells = tuple((column, row[positions[column]]) for column in field.columns)
    traced = TracedField(name, element, kind=kind, field=field, cells=cells)
    try:
        value = compile_cell(Cell(field, name, positions), kind)(row)
    except CellError as error:
        return replace(traced, fault=error.fault)
    is_time = kind is SlotKind.TIME and value is not None
    has_offset = is_time and _has_offset(field, [cell for _, cell in cells])
    return replace(traced, value=value, has_offset=has_offset)


def _has_offset(field: FieldMapping, cells: Sequence[object]) -> bool:
    """Whether the cells of a time, a date and a time of day or one cell, have an offset."""
    assert field.time is not None, "the loader gives every time a rule"
    first, *more = map(presence(field.absent), cells)
    value = join_parts(first, more[0], field.time) if more else first
    return read_value(value, field.time).tzinfo is not None
