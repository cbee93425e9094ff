"""Items that have a SELECT of their own: read for all rows of a page at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.mapping.apply import NO_EXTRAS
from adapters.mapping.items import item_columns
from adapters.mapping.model import ItemMapping, ResourceMapping
from adapters.mapping.values import as_text
from adapters.sql.columns import TEXTS, Kind, held
from adapters.sql.conditions import In
from adapters.sql.database import Database
from adapters.sql.statements import Shape
from adapters.sql.values import Columns

_BLANK = (*TEXTS, Kind.LOOSE, Kind.OTHER)
"""Kinds of key that may end in the blanks that an id ends in."""


def read_items(
    database: Database,
    section: ResourceMapping,
    columns: Mapping[str, Columns],
    ids: Sequence[Any],
) -> Sequence[Mapping[ItemMapping, Sequence[Any]]]:
    """Return for each id the rows of its items; `columns` are those of each SELECT."""
    items = [
        item
        for of_slot in section.items.values()
        for item in of_slot
        if item.rows is not None
    ]
    if not items or not ids:
        return [NO_EXTRAS] * len(ids)
    texts = [_text_of(id) for id in ids]
    pairs = tuple(zip(ids, texts, strict=True))
    found = [
        (item, _by_key(database, item, columns[item.rows or ""], pairs))
        for item in items
    ]
    return tuple(
        {item: by_key.get(text, ()) for item, by_key in found} for text in texts
    )


def _by_key(
    database: Database,
    item: ItemMapping,
    there: Columns,
    ids: Sequence[tuple[Any, str | None]],
) -> Mapping[str | None, list[Any]]:
    """Read the items of all these rows at once, by the text of the id that each is of.

    The key may be of another type than the id: a number and its text, CHAR and VARCHAR.
    """
    columns = item_columns(item)
    # In one order every time: the digest of a resource must not hang on a plan.
    order = tuple((there.column(name), False) for name in columns)
    key = there.column(columns[0])
    sought = tuple(value for id in ids for value in _values_of(key.kind, *id))
    by_key: dict[str | None, list[Any]] = {}
    if not sought:
        return by_key
    shape = Shape(item.rows or "", columns, In(key, len(sought)), order)
    for row in database.fetch(shape, sought):
        by_key.setdefault(_text_of(row[0]), []).append(row)
    return by_key


def _text_of(id: object) -> str | None:
    try:
        return as_text(id)
    except ValueError:
        return None  # its row has no id, and is a fault


def _values_of(kind: Kind, id: object, text: str | None) -> tuple[object, ...]:
    """Return what a key of this kind may hold for an id."""
    if text is None:
        return ()
    found = held(kind, text)
    if isinstance(id, str) and id != text and kind in _BLANK:
        return (*found, id)
    return found
