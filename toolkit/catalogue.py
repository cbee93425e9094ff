"""The catalogue of a database: tables, columns, keys, foreign keys.

It is read through SQLAlchemy's inspector on the pooled, read-only connections. No row is read.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.reflection import Inspector, ObjectKind
from sqlalchemy.types import TypeEngine

from adapters.contract import SourceDataError
from adapters.mapping.problems import did_you_mean
from adapters.sql.dialects.base import Dialect
from adapters.sql.engine import Database


class Holds(StrEnum):
    """What a column is declared to hold, as far as all databases agree."""

    TEXT = "text"
    UUID = "uuid"
    INTEGER = "integer"
    NUMBER = "number"
    FLAG = "true or false"
    DATE = "date"
    LOCAL_TIME = "time without zone"
    INSTANT = "time with zone"
    CLOCK = "time of day"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table or view: `written` is its name in a statement, `type` its SQL type."""

    name: str
    written: str
    holds: Holds
    type: str = ""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns that hold the key of a row of another table."""

    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]


@dataclass(frozen=True)
class DatabaseTable:
    """A table or view; `name` has its schema in front where that is not the default one.

    `unique` are the columns of its unique constraints and indexes.
    """

    name: str
    written: str
    bare: str
    schema: str | None
    columns: tuple[TableColumn, ...]
    primary_key: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...]
    unique: frozenset[tuple[str, ...]]

    @cached_property
    def by_name(self) -> Mapping[str, TableColumn]:
        """The columns by name."""
        return {column.name: column for column in self.columns}

    def is_unique(self, column: str) -> bool:
        """Whether the database itself keeps two rows from the same value."""
        return (column,) in {self.primary_key, *self.unique}


@dataclass(frozen=True)
class Catalogue:
    """The tables of a database by name; `schemas` are all that the account can see."""

    tables: tuple[DatabaseTable, ...]
    schemas: tuple[str, ...]

    @cached_property
    def by_name(self) -> Mapping[str, DatabaseTable]:
        """The tables by name."""
        return {table.name: table for table in self.tables}


def read_catalogue(database: Database, schemas: Sequence[str] = ()) -> Catalogue:
    """Return what the account may read of the default schema, or of the schemas named.

    Raises SourceUnavailableError, and SourceDataError for a schema that is not there.
    """
    return database.run(lambda c: _catalogue(c, database.dialect, schemas))


def parts_of_name(name: str) -> list[str]:
    """Return the schema and the table of a name as a statement has it, without quotes."""
    parts = re.findall(r'"([^"]+)"|([^."`]+)', name)
    return [quoted or plain for quoted, plain in parts]


def _catalogue(
    connection: sa.Connection, dialect: Dialect, schemas: Sequence[str]
) -> Catalogue:
    visible = tuple(sa.inspect(connection).get_schema_names())
    if unknown := [schema for schema in schemas if schema not in visible]:
        near = did_you_mean(unknown[0], visible)
        raise SourceDataError(f"there is no schema '{unknown[0]}'{near}")
    with warnings.catch_warnings():
        # A type that SQLAlchemy does not know is OTHER here.
        warnings.simplefilter("ignore", sa.exc.SAWarning)
        tables = [
            table
            for schema in schemas or (None,)
            for table in _tables(connection, dialect, schema)
        ]
    tables.sort(key=lambda table: table.name)
    return Catalogue(tuple(tables), visible)


def _tables(
    connection: sa.Connection, dialect: Dialect, schema: str | None
) -> Iterator[DatabaseTable]:
    """Yield the tables and views of a schema that the account may read."""
    inspector: Inspector = sa.inspect(connection)
    of: Any = {"schema": schema, "kind": ObjectKind.ANY}
    columns = inspector.get_multi_columns(**of)
    keys = inspector.get_multi_pk_constraint(**of)
    foreign = inspector.get_multi_foreign_keys(**of)
    # SQLite reports the indexes that it creates for UNIQUE on request only.
    indexes = inspector.get_multi_indexes(**of, include_auto_indexes=True)
    unique = inspector.get_multi_unique_constraints(**of)
    # Not every database leaves out what the account may not read.
    readable = None
    if dialect.readable:
        rows = connection.execute(sa.text(dialect.readable), {"schema": schema})
        readable = {row[0] for row in rows}
    for place, of_table in columns.items():
        name, key = place[1], keys.get(place)
        if readable is not None and name not in readable:
            continue
        primary = tuple(key["constrained_columns"] if key else ())
        leading = tuple(map(_foreign_key, foreign.get(place, ())))
        in_keys = {*primary, *(name for key in leading for name in key.columns)}
        yield DatabaseTable(
            name=f"{schema}.{name}" if schema else name,
            written=_written(connection, dialect, name, schema),
            bare=name,
            schema=schema,
            columns=tuple(_column(connection, dialect, c, in_keys) for c in of_table),
            primary_key=primary,
            foreign_keys=leading,
            unique=_unique(indexes.get(place, ()), unique.get(place, ())),
        )


def _column(
    connection: sa.Connection, dialect: Dialect, column: Any, keys: Set[str]
) -> TableColumn:
    name = str(column["name"])
    holds = _holds(column["type"], connection.dialect.name, is_key=name in keys)
    try:
        type_ = column["type"].compile(connection.dialect)
    except sa.exc.CompileError:
        type_ = "unknown type"
    written = _written(connection, dialect, name)
    return TableColumn(name, written, holds=holds, type=type_)


def _written(
    connection: sa.Connection, dialect: Dialect, name: str, schema: str | None = None
) -> str:
    """Return a name as a statement needs it."""
    preparer = connection.dialect.identifier_preparer
    text = preparer.quote(name)
    if dialect.folds_names:
        plain = name.lower()
        text = name if preparer.quote(plain) == plain else text
    return f"{preparer.quote(schema)}.{text}" if schema else text


def _holds(type_: TypeEngine[Any], dialect: str, *, is_key: bool) -> Holds:
    if getattr(type_, "display_width", None) == 1 or isinstance(type_, sa.Boolean):
        return Holds.FLAG
    if isinstance(type_, sa.DateTime):
        # A TIMESTAMP of MySQL and MariaDB is kept in UTC, whatever is shown.
        is_utc = dialect in ("mysql", "mariadb") and isinstance(type_, sa.TIMESTAMP)
        return Holds.INSTANT if type_.timezone or is_utc else Holds.LOCAL_TIME
    if isinstance(type_, sa.Numeric) and (is_key or type_.scale == 0):
        return Holds.INTEGER
    held = (holds for kind, holds in _HOLDS if isinstance(type_, kind))
    return next(held, Holds.OTHER)


_HOLDS: tuple[tuple[type[TypeEngine[Any]], Holds], ...] = (
    (sa.Uuid, Holds.UUID),
    (sa.String, Holds.TEXT),
    (sa.Integer, Holds.INTEGER),
    (sa.Numeric, Holds.NUMBER),
    (sa.Date, Holds.DATE),
    (sa.Time, Holds.CLOCK),
)


def _foreign_key(key: Any) -> ForeignKey:
    schema, table = key["referred_schema"], key["referred_table"]
    return ForeignKey(
        columns=tuple(key["constrained_columns"]),
        table=f"{schema}.{table}" if schema else table,
        referred=tuple(key["referred_columns"]),
    )


def _unique(
    indexes: Iterable[Any], constraints: Iterable[Any]
) -> frozenset[tuple[str, ...]]:
    keys = (*constraints, *(index for index in indexes if index["unique"]))
    # An index of an expression has no name there.
    return frozenset(tuple(name or "" for name in key["column_names"]) for key in keys)
