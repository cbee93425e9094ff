"""Written rows as a SQLite database that stands in for the hospital's.

Each section's SELECT is replaced by a table that holds the written rows as its result:
what is tried is all that the mapping says of them, not the SELECT itself. Columns hold
texts, and times are texts that compare as times do.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from adapters.mapping.items import known_columns, own_fields
from adapters.mapping.model import (
    ItemMapping,
    PartMapping,
    ResourceMapping,
    SourceMapping,
)
from adapters.mapping.slots import SLOTS, Kind
from adapters.mapping.time_rule import TimeRule
from app.tools.given import Cells, flag_columns, known_item_columns

Rows = Mapping[int, Sequence[Cells]]
"""Rows by the id() of the section or the item that they are of."""


class OffsetError(ValueError):
    """A written time has an offset, which SQLite cannot compare."""


def stand_in(mapping: SourceMapping, rows: Rows, file: Path) -> SourceMapping:
    """Write the rows into a database file, and return the mapping that reads them there.

    Parts that are no databases are left out. Raises OffsetError.
    """
    sections = {
        id(section): _section(section, f"rows_{number}")
        for number, section in enumerate(mapping.sections)
        if section.rows
    }
    with closing(sqlite3.connect(file)) as database:
        for section in mapping.sections:
            if section.rows:
                _fill(database, section, sections[id(section)], rows)
        database.commit()
    source = replace(mapping.source, url=f"sqlite:///{file}")
    made = {kind: sections.get(id(s), s) for kind, s in mapping.resources.items()}
    parts = tuple(
        _part(part, sections, str(file)) for part in mapping.parts if part.section.rows
    )
    return replace(mapping, source=source, resources=made, parts=parts)


def _part(
    part: PartMapping, sections: Mapping[int, ResourceMapping], file: str
) -> PartMapping:
    own = part.mapping
    source = replace(own.source, url=f"sqlite:///{file}")
    resources = {kind: sections.get(id(s), s) for kind, s in own.resources.items()}
    return replace(part, mapping=replace(own, source=source, resources=resources))


def _section(section: ResourceMapping, table: str) -> ResourceMapping:
    items: dict[str, tuple[ItemMapping, ...]] = {}
    for name, listed in section.items.items():
        items[name] = tuple(
            replace(item, rows=f"SELECT * FROM {table}_{name}_{number}")
            if item.rows
            else item
            for number, item in enumerate(listed)
        )
    return replace(section, rows=f"SELECT * FROM {table}", items=items)


def _fill(
    database: sqlite3.Connection,
    section: ResourceMapping,
    there: ResourceMapping,
    rows: Rows,
) -> None:
    flags = flag_columns(section)
    columns = {c: "INTEGER" if c in flags else "TEXT" for c in known_columns(section)}
    clocks = _clocks(section)
    own = [_comparable(row, clocks) for row in rows.get(id(section), ())]
    _table(database, there.rows, columns, own)
    pairs = zip(_items(section), _items(there), strict=True)
    for item, item_there in pairs:
        if item.rows and item_there.rows:
            texts = dict.fromkeys(known_item_columns(item), "TEXT")
            _table(database, item_there.rows, texts, rows.get(id(item), ()))


def _items(section: ResourceMapping) -> Iterable[ItemMapping]:
    return (item for items in section.items.values() for item in items)


def _table(
    database: sqlite3.Connection,
    select: str,
    columns: Mapping[str, str],
    rows: Sequence[Cells],
) -> None:
    name = select.rpartition(" ")[2]
    described = ", ".join(f"{_quoted(c)} {kind}" for c, kind in columns.items())
    database.execute(f"CREATE TABLE {name} ({described})")
    places = ", ".join("?" * len(columns))
    database.executemany(
        f"INSERT INTO {name} VALUES ({places})",
        [tuple(row.get(column) for column in columns) for row in rows],
    )


def _quoted(column: str) -> str:
    return '"{}"'.format(column.replace('"', '""'))


# ------------------------------------------------------------------------ times


def _clocks(section: ResourceMapping) -> Mapping[str, tuple[TimeRule, bool]]:
    """Return the rule of each column of times, and whether it holds days alone."""
    days = {s.record for s in SLOTS[section.resource_type] if s.kind is Kind.DATE}
    return {
        column: (field.time, field.slot in days or field.time.at is not None)
        for field in own_fields(section)
        if field.time is not None and field.time.format is None
        for column in (*field.columns, field.search_column)
        if column and len(field.columns) == 1
    }


def _comparable(row: Cells, clocks: Mapping[str, tuple[TimeRule, bool]]) -> Cells:
    return {
        column: _as_compared(value, clocks[column][1]) if column in clocks else value
        for column, value in row.items()
    }


def _as_compared(value: Any, is_day: bool) -> Any:
    """Write a time as the SQL adapter compares texts with it; what is none stays."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    if moment.tzinfo is not None:
        raise OffsetError(value)
    if is_day:
        return moment.date().isoformat()
    text = moment.strftime("%Y-%m-%d %H:%M:%S")
    return (
        f"{text}.{moment.microsecond:06d}".rstrip("0") if moment.microsecond else text
    )
