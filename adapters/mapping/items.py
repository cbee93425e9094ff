"""List items: identifiers, names, telecoms and addresses of one row."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from adapters.contract import (
    AddressRecord,
    IdentifierRecord,
    NameRecord,
    TelecomRecord,
)
from adapters.mapping.cells import Cell, Reader, Row, compile_cell
from adapters.mapping.model import FieldMapping, ItemMapping, ResourceMapping
from adapters.mapping.slots import LINES, Kind, ListSlot, Slot

ITEM_RECORDS: Mapping[str, type[Any]] = MappingProxyType(
    {
        "identifiers": IdentifierRecord,
        "names": NameRecord,
        "telecoms": TelecomRecord,
        "addresses": AddressRecord,
    }
)


def own_fields(section: ResourceMapping) -> tuple[FieldMapping, ...]:
    """Return the fields that come from the section's own row, those of its items too."""
    fields = [*section.fields.values()]
    for item in _own_items(section):
        fields += [*item.fields.values(), *item.lines]
    return tuple(fields)


def own_columns(section: ResourceMapping) -> tuple[str, ...]:
    """Return every column of the section's own row that the mapping names."""
    columns = [item.only_if.column for item in _own_items(section) if item.only_if]
    for field in own_fields(section):
        columns += field.columns
    return tuple(dict.fromkeys(columns))


def known_columns(section: ResourceMapping) -> tuple[str, ...]:
    """Return these columns, and those that only searches name."""
    searched = [f.search_column for f in own_fields(section) if f.search_column]
    return tuple(dict.fromkeys((*own_columns(section), *searched)))


def _own_items(section: ResourceMapping) -> tuple[ItemMapping, ...]:
    items = (item for listed in section.items.values() for item in listed)
    return tuple(item for item in items if item.rows is None)


def item_columns(item: ItemMapping) -> tuple[str, ...]:
    """Return the columns of an item's own SELECT: the key, then those its fields name."""
    columns = [item.key] if item.key else []
    for field in (*item.fields.values(), *item.lines):
        columns += field.columns
    if item.only_if:
        columns.append(item.only_if.column)
    return tuple(dict.fromkeys(columns))


def list_reader(
    section: ResourceMapping, listed: ListSlot, positions: Mapping[str, int]
) -> Any:
    """Return the function that reads all items of one list slot from a row."""
    readers = tuple(
        (item if item.rows else None, item_reader(item, listed, positions))
        for item in section.items[listed.name]
    )

    def read(row: Row, extras: Mapping[ItemMapping, Sequence[Row]]) -> tuple[Any, ...]:
        found = []
        for apart, read_item in readers:
            for source in (row,) if apart is None else extras.get(apart, ()):
                made = read_item(source)
                if made is not None:
                    found.append(made)
        return tuple(found)

    return read


def item_reader(
    item: ItemMapping, listed: ListSlot, positions: Mapping[str, int]
) -> Reader:
    """Return the function that reads one item from its row, None where there is none."""
    positions = item_positions(item, positions)
    record = ITEM_RECORDS[listed.name]
    slots = {slot.record: slot for slot in listed.slots}
    readers = tuple(
        _item_slot(item, listed, slots.get(name, LINES), positions)
        for name in record._fields
    )
    content = _content(item, listed, record._fields)
    counts = counting(item, positions)

    def read(row: Row) -> Any:
        if not counts(row):
            return None
        values = [read_slot(row) for read_slot in readers]
        if not any(values[index] for index in content):
            return None
        return record._make(values)

    return read


def item_positions(
    item: ItemMapping, positions: Mapping[str, int]
) -> Mapping[str, int]:
    """Return where columns stand in the row of an item: its own, or the resource's."""
    if not item.rows:
        return positions
    return {column: at for at, column in enumerate(item_columns(item))}


def _item_slot(
    item: ItemMapping, listed: ListSlot, slot: Slot, positions: Mapping[str, int]
) -> Reader:
    name = f"{listed.name}.{slot.name}"
    if slot is LINES:
        cells = (Cell(line, name, positions) for line in item.lines)
        readers = tuple(compile_cell(cell, slot.kind) for cell in cells)
        return lambda row: tuple(line for read in readers if (line := read(row)))
    if slot.record in item.fields:
        return compile_cell(Cell(item.fields[slot.record], name, positions), slot.kind)
    return no_items if slot.kind is Kind.PARTS else nothing


def _content(
    item: ItemMapping, listed: ListSlot, names: Sequence[str]
) -> tuple[int, ...]:
    """Return the slots one of which must hold a value for the item to be there.

    A constant beside columns is no content: a country alone is no address.
    """
    given = {name: (field,) for name, field in item.fields.items()}
    given[LINES.name] = item.lines  # type: ignore[assignment]
    filled = [name for name in listed.content if given.get(name)]
    varying = [name for name in filled if any(f.columns for f in given[name])]
    return tuple(names.index(name) for name in varying or filled)


def counting(item: ItemMapping, positions: Mapping[str, int]) -> Reader:
    """Return the function that tells whether `only_if` lets an item count in its row."""
    if item.only_if is None:
        return lambda _: True
    values = item.only_if.values
    field = FieldMapping("only_if", item.mark, (item.only_if.column,))
    text = compile_cell(Cell(field, f"{item.slot}.only_if", positions), Kind.EXACT)
    return lambda row: text(row) in values


def nothing(_: Row) -> None:
    """Read a slot that the mapping does not fill."""


def no_items(_: Row) -> tuple[str, ...]:
    """Read a list that the mapping does not fill."""
    return ()
