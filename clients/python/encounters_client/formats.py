"""The formats of a copy, by the suffix of its file."""

import csv
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from encounters_client.resources import Resource
from encounters_client.tables import COLUMNS, arrow_schema, columns_of

Rows: TypeAlias = Iterable[Resource]
Writer: TypeAlias = Callable[[Path, type[Resource], Rows], object]

_BATCH = 10_000
"""Rows that a Parquet file takes at once: what bounds the memory."""


def write_ndjson(path: Path, kind: type[Resource], rows: Rows) -> None:
    """Write the JSON of each resource on a line."""
    del kind
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row.raw, ensure_ascii=False) + "\n")


def write_csv(path: Path, kind: type[Resource], rows: Rows) -> None:
    """Write the columns of the type, times in UTC."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(column.name for column in COLUMNS[kind])
        writer.writerows(_texts(kind, rows))


def write_sqlite(path: Path, kind: type[Resource], rows: Rows) -> None:
    """Write a table named after the type: its columns, and the JSON as `body`."""
    path.unlink(missing_ok=True)
    names = ", ".join(f'"{column.name}" TEXT' for column in COLUMNS[kind])
    places = ", ".join("?" for _ in (*COLUMNS[kind], "body"))
    table = kind.__name__.lower()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"CREATE TABLE {table} ({names}, body TEXT, PRIMARY KEY (id))")
        db.executemany(
            f"INSERT INTO {table} VALUES ({places})",
            ((*_cells(kind, row), json.dumps(row.raw)) for row in rows),
        )


def write_parquet(path: Path, kind: type[Resource], rows: Rows) -> None:
    """Write the columns of the type, and the JSON as `body`."""
    import pyarrow
    from pyarrow import parquet

    schema = arrow_schema(kind).append(pyarrow.field("body", pyarrow.string()))
    remaining = iter(rows)
    with parquet.ParquetWriter(path, schema) as writer:
        while batch := list(islice(remaining, _BATCH)):
            columns = columns_of(kind, batch)
            columns["body"] = [json.dumps(row.raw) for row in batch]
            writer.write_table(pyarrow.table(columns, schema=schema))


FORMATS: Mapping[str, Writer] = {
    ".csv": write_csv,
    ".ndjson": write_ndjson,
    ".parquet": write_parquet,
    ".sqlite": write_sqlite,
}


def writer_for(path: Path) -> Writer:
    """Return what writes a file. Raises ValueError if it cannot be written."""
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent}: there is no such directory")
    if path.suffix not in FORMATS:
        raise ValueError(f"{path.name}: use one of the suffixes {', '.join(FORMATS)}")
    if path.suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise ValueError(
                f"{path.name}: install encounters-client[arrow] to write Parquet"
            ) from error
    return FORMATS[path.suffix]


def _texts(kind: type[Resource], rows: Rows) -> Iterator[list[str | None]]:
    for row in rows:
        yield _cells(kind, row)


def _cells(kind: type[Resource], row: Resource) -> list[str | None]:
    """Return the values of a row as texts; times and days as ISO 8601 has them."""
    values = (column.of(row) for column in COLUMNS[kind])
    return [
        value if value is None or isinstance(value, str) else value.isoformat()
        for value in values
    ]
