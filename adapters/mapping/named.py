"""Columns that a mapping names and a SELECT does not return once, each where it is named."""

from collections.abc import Iterator, Sequence

from adapters.mapping.items import own_fields
from adapters.mapping.model import FieldMapping, ItemMapping, ResourceMapping
from adapters.mapping.problems import MappingProblem, did_you_mean
from adapters.mapping.slots import LISTS, SLOTS


def unknown_columns(
    section: ResourceMapping, columns: Sequence[str], *, searched: bool = False
) -> tuple[MappingProblem, ...]:
    """Return a problem for each column that the section's own SELECT should have once.

    Those that only searches compare are told when rows are `searched`, not only read.
    """
    named = [_of_field(field) for field in section.fields.values()]
    for items in section.items.values():
        named += [_of_item(item) for item in items if item.rows is None]
    if searched:
        named += [_compared(field) for field in own_fields(section)]
    return _problems(section, named, columns)


def unknown_item_columns(
    section: ResourceMapping, item: ItemMapping, columns: Sequence[str]
) -> tuple[MappingProblem, ...]:
    """Return a problem for each column that an item's second SELECT should have once."""
    key = iter([(item, item.key)] if item.key else [])
    compared = [_compared(field) for field in item.fields.values()]
    return _problems(section, [key, _of_item(item), *compared], columns)


_Named = Iterator[tuple[FieldMapping | ItemMapping, str]]


def _of_field(field: FieldMapping) -> _Named:
    for column in field.columns:
        yield field, column


def _compared(field: FieldMapping) -> _Named:
    if field.search_column:
        yield field, field.search_column


def _of_item(item: ItemMapping) -> _Named:
    for field in (*item.fields.values(), *item.lines):
        yield from _of_field(field)
    if item.only_if:
        yield item, item.only_if.column


def _problems(
    section: ResourceMapping, named: list[_Named], columns: Sequence[str]
) -> tuple[MappingProblem, ...]:
    kind = section.resource_type
    elements = {slot.record: slot.element for slot in SLOTS[kind]}
    elements |= {listed.name: listed.element for listed in LISTS[kind]}
    return tuple(
        MappingProblem(
            place.mark,
            f"{kind}.{elements.get(place.slot, place.slot)}",
            _said(column, columns),
            column,
        )
        for found in named
        for place, column in found
        if columns.count(column) != 1
    )


def _said(column: str, columns: Sequence[str]) -> str:
    if column in columns:
        return f"the SELECT returns two columns '{column}': give each a name of its own"
    return f"the SELECT returns no column '{column}'{did_you_mean(column, columns)}"
