"""Every value that a built section fills, with its element, kind and SELECT."""

from collections.abc import Iterator
from typing import NamedTuple

from adapters.mapping.model import Condition, FieldMapping, ResourceMapping
from adapters.mapping.slots import LINES, LISTS, SLOTS, Kind, ListSlot, Slot


class Place(NamedTuple):
    """A field of a section: the FHIR element that it makes, and how it is read.

    `slot` is its name in faults, `rows` the second SELECT of its item, "" for the
    section's own; `only_if` says which rows the item counts in. `takes` are all the words that
    it can hold, where they are few.
    """

    field: FieldMapping
    slot: str
    element: str
    kind: Kind
    rows: str = ""
    only_if: Condition | None = None
    takes: tuple[str, ...] = ()


def places_of(section: ResourceMapping) -> tuple[Place, ...]:
    """Return the fields of a section in the order of the slots."""
    kind = section.resource_type
    found = [
        Place(
            section.fields[slot.record],
            slot.name,
            f"{kind}.{slot.element}",
            slot.kind,
            takes=_takes(slot),
        )
        for slot in SLOTS[kind]
        if slot.record in section.fields
    ]
    for listed in LISTS[kind]:
        found += _of_items(section, listed)
    return tuple(found)


def _of_items(section: ResourceMapping, listed: ListSlot) -> Iterator[Place]:
    for item in section.items.get(listed.name, ()):
        above = f"{section.resource_type}.{listed.element}"
        where = (item.rows or "", item.only_if)
        for slot in listed.slots:
            if slot.record in item.fields:
                field, name = item.fields[slot.record], f"{listed.name}.{slot.name}"
                element = f"{above}.{slot.element}"
                yield Place(field, name, element, slot.kind, *where, _takes(slot))
        for line in item.lines:
            name, element = f"{listed.name}.{LINES.name}", f"{above}.{LINES.element}"
            yield Place(line, name, element, LINES.kind, *where)


def _takes(slot: Slot) -> tuple[str, ...]:
    return ("true", "false") if slot.kind is Kind.FLAG else slot.codes
