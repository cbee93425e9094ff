"""Fields and items that no row of a sample fills: dead lines of the mapping.

A column or a list that is empty in the source leaves nothing to mend, and is a note. One
that has values of which nothing comes is a warning.
"""

from collections.abc import Iterator, Mapping, Sequence

from adapters.inspection import Observation, Weight
from adapters.mapping.cells import Cell, CellError, Reader, Row, compile_cell
from adapters.mapping.items import counting, item_positions, item_reader
from adapters.mapping.model import ItemMapping, Mark, ResourceMapping
from adapters.mapping.slots import LISTS, SLOTS, ListSlot

Sampled = Sequence[tuple[Row, Mapping[ItemMapping, Sequence[Row]]]]
"""Rows, each with the rows of the items that have a SELECT or a list of their own."""

_ENOUGH = 20
"""In fewer rows than these it means nothing that something is in none."""

_RARE = ("replaced_by", "deceased_at")
"""What few people have by its nature."""


def never_filled(
    section: ResourceMapping,
    columns: Sequence[str],
    rows: Sampled,
    names: Mapping[str, str],
) -> Iterator[Observation]:
    """Tell each field and item that none of the rows fills.

    `columns` are those of a row in order, `names` their names as the source has them.
    """
    if len(rows) < _ENOUGH:
        return
    positions = {column: at for at, column in enumerate(columns)}
    kind = section.resource_type
    text = f"none of {len(rows):,} rows has it"
    for slot in SLOTS[kind]:
        field = section.fields.get(slot.record)
        if field is None or not field.columns or slot.record in _RARE:
            continue
        read = compile_cell(Cell(field, slot.name, positions), slot.kind)
        if not any(_gives(read, row) for row, _ in rows):
            source = ", ".join(names.get(name, name) for name in field.columns)
            own = [row for row, _ in rows]
            weight = _weight(own, positions, field.columns)
            yield _seen(field.mark, f"{kind}.{slot.element}", source, text, weight)
    for listed in LISTS[kind]:
        for item in section.items.get(listed.name, ()):
            own = _own(item, rows)
            if not any(map(_giver(item_reader(item, listed, positions)), own)):
                why = _why(item, own, positions)
                there = item_positions(item, positions)
                columns = _content(item, listed)
                weight = Weight.WARNING if why else _weight(own, there, columns)
                element = f"{kind}.{listed.element}"
                yield _seen(item.mark, element, "", text + why, weight)


def _own(item: ItemMapping, rows: Sampled) -> list[Row]:
    if item.rows is None:
        return [row for row, _ in rows]
    return [each for _, below in rows for each in below.get(item, ())]


def _why(item: ItemMapping, own: list[Row], positions: Mapping[str, int]) -> str:
    if not own:
        return (
            f": '{item.rows}' has no row for them"
            if not item.key
            else (
                f": its SELECT has no row of theirs; is '{item.key}' the id of the row?"
            )
        )
    counts = counting(item, item_positions(item, positions))
    if item.only_if and not any(_gives(lambda r: counts(r) or None, o) for o in own):
        return f": only_if lets none through, is '{item.only_if.column}' as it says?"
    return ""


def _giver(read: Reader) -> Reader:
    return lambda row: _gives(read, row)


def _gives(read: Reader, row: Row) -> bool:
    """Whether a row gives a value; what cannot be read is told elsewhere."""
    try:
        return read(row) not in (None, ())
    except CellError:
        return True


def _content(item: ItemMapping, listed: ListSlot) -> list[str]:
    """Return the columns without which an item says nothing."""
    wanted = [item.fields[name] for name in listed.content if name in item.fields]
    return [column for of in (*wanted, *item.lines) for column in of.columns]


def _weight(
    rows: Sequence[Row], positions: Mapping[str, int], columns: Sequence[str]
) -> Weight:
    """Return how much it matters that nothing comes of the columns in these rows."""
    places = [positions[name] for name in columns if name in positions]
    cells = (row[place] for row in rows for place in places)
    has_any = any(cell is not None and str(cell).strip() for cell in cells)
    return Weight.WARNING if has_any else Weight.NOTE


def _seen(
    mark: Mark, element: str, source: str, text: str, weight: Weight
) -> Observation:
    why = ": it is empty in the source" if weight is Weight.NOTE else ""
    return Observation(mark, element, source, text + why, weight)
