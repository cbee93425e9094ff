"""Texts that end in blanks which their database counts: what is shown does not find them."""

from collections.abc import Iterator

from adapters.inspection import Observation, Weight
from adapters.mapping.places import Place
from adapters.mapping.slots import Kind as SlotKind
from adapters.sql.columns import TEXTS, Kind
from adapters.sql.conditions import ALWAYS, EndsInBlanks, Filter, all_of
from adapters.sql.inspection.kinds import compared_fields
from adapters.sql.inspection.rows import Looked
from adapters.sql.statements import Shape

_KINDS = {*TEXTS, Kind.LOOSE} - {Kind.PADDED}
"""Kinds of text that are compared with what is shown of them as it is."""

_EXACT = (SlotKind.ID, SlotKind.EXACT, SlotKind.SYSTEM, SlotKind.CODE, SlotKind.FLAG)


def blank_ends(looked: Looked) -> Iterator[Observation]:
    """Tell how many rows have an id, number or code that searches by it miss."""
    compared = compared_fields(looked)
    for place in looked.places:
        is_compared = place.field in compared or place.kind is SlotKind.ID
        if not (is_compared and place.kind in _EXACT and place.field.filter_column):
            continue
        if rows := _count(looked, place, place.field.filter_column):
            text = (
                f"{rows:,} {'row ends' if rows == 1 else 'rows end'} in blanks, which the"
                " database counts: searches by what is shown do not find them. RTRIM the"
                " column in the SELECT, and let an index have that"
            )
            yield Observation.at(place, looked.column(place), text, Weight.ERROR)


def _count(looked: Looked, place: Place, name: str) -> int:
    filters, section = looked.section.filters, looked.section.mapping
    columns = filters.item_columns[place.rows] if place.rows else filters.columns
    column = columns.column(name)
    if column.kind not in _KINDS:
        return 0
    wanted = Filter(EndsInBlanks(column))
    wanted = all_of([ALWAYS if place.rows else looked.served, wanted])
    shape = Shape(place.rows or section.rows, (), wanted.condition)
    ((rows,),) = looked.database.fetch(shape, wanted.values)
    return int(rows)
