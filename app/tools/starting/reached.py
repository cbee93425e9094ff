"""Telephones, mail and postal addresses that stand in columns of a row."""

from collections.abc import Mapping

from adapters.sql.tables import TableColumn
from app.tools.starting.draft import Item, Line, Value
from app.tools.starting.select import Select

_TELECOMS = (
    ("phone", "phone", ""),
    ("mobile", "phone", "mobile"),
    ("fax", "fax", ""),
    ("email", "email", ""),
)


def telecoms(
    select: Select, found: Mapping[str, TableColumn], place: int, home: str
) -> list[Item]:
    """Return an item for each column of telephones or mail; `home` is their usual use."""
    items = []
    for slot, system, use in _TELECOMS:
        if column := found.get(slot):
            value: Value = {"from": select.add(column, place)}
            lines = [
                Line("system", system),
                Line("value", value),
                Line("use", use or home),
            ]
            items.append(Item(lines))
    return items


def addresses(
    select: Select, found: Mapping[str, TableColumn], place: int, use: str
) -> list[Item]:
    """Return an item for the columns of an address, none where there is no town in them."""
    if not found.keys() & {"city", "postal_code"}:
        return []
    lines = [Line("use", use)] if use else []
    written: list[Value] = [
        {"from": select.add(found[slot], place)}
        for slot in ("line1", "line2")
        if slot in found
    ]
    if written:
        lines.append(Line("lines", written))
    for slot in ("city", "postal_code", "country"):
        if slot in found:
            lines.append(Line(slot, {"from": select.add(found[slot], place)}))
    return [Item(lines)]
