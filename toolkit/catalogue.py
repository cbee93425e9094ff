"""The catalogue of a database: tables, columns, keys, foreign keys.

It is read through SQLAlchemy's inspector on the pooled, read-only connections. No row is read.
"""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
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
    return database.run(lambda c: _Reader(c, database.dialect).catalogue(schemas))


def read_table(database: Database, name: str) -> DatabaseTable | None:
    """Return the table of a name with or without a schema, None where it cannot be read."""
    *schemas, bare = parts_of(name)
    schema, dialect = schemas[-1] if schemas else None, database.dialect
    try:
        tables = database.run(lambda c: _Reader(c, dialect).tables(schema, [bare]))
    except SourceDataError:
        return None
    return next(iter(tables), None)


def parts_of(name: str) -> list[str]:
    """Return the name of a table, and of its schema before it, without quotes."""
    return [a or b for a, b in re.findall(r'"([^"]+)"|([^."`]+)', name)]


class _Reader:
    def __init__(self, connection: sa.Connection, dialect: Dialect) -> None:
        self._connection = connection
        self._inspector: Inspector = sa.inspect(connection)
        self._dialect = dialect

    def catalogue(self, schemas: Sequence[str]) -> Catalogue:
        visible = tuple(self._inspector.get_schema_names())
        if unknown := [schema for schema in schemas if schema not in visible]:
            near = did_you_mean(unknown[0], visible)
            raise SourceDataError(f"there is no schema '{unknown[0]}'{near}")
        tables = [table for s in schemas or (None,) for table in self.tables(s)]
        tables.sort(key=lambda table: table.name)
        return Catalogue(tuple(tables), visible)

    def tables(
        self, schema: str | None, names: Sequence[str] | None = None
    ) -> list[DatabaseTable]:
        """Return the tables of a schema, those of some names if any are given."""
        with warnings.catch_warnings():
            # A type that SQLAlchemy does not know is OTHER here.
            warnings.simplefilter("ignore", sa.exc.SAWarning)
            return [*self._tables(schema, names)]

    def _tables(
        self, schema: str | None, names: Sequence[str] | None
    ) -> Iterable[DatabaseTable]:
        inspector = self._inspector
        of: Any = {"schema": schema, "kind": ObjectKind.ANY, "filter_names": names}
        columns = inspector.get_multi_columns(**of)
        keys = inspector.get_multi_pk_constraint(**of)
        foreign = inspector.get_multi_foreign_keys(**of)
        # SQLite reports the indexes that it creates for UNIQUE on request only.
        indexes = inspector.get_multi_indexes(**of, include_auto_indexes=True)
        unique = inspector.get_multi_unique_constraints(**of)
        readable = self._readable(schema)
        for place, of_table in columns.items():
            name, key = place[1], keys.get(place)
            if readable is not None and name not in readable:
                continue
            primary = tuple(key["constrained_columns"] if key else ())
            leading = tuple(map(_foreign_key, foreign.get(place, ())))
            in_keys = {*primary, *(name for key in leading for name in key.columns)}
            yield DatabaseTable(
                name=f"{schema}.{name}" if schema else name,
                written=self._written(name, schema),
                bare=name,
                schema=schema,
                columns=tuple(self._column(column, in_keys) for column in of_table),
                primary_key=primary,
                foreign_keys=leading,
                unique=_unique(indexes.get(place, ()), unique.get(place, ())),
            )

    def _readable(self, schema: str | None) -> frozenset[str] | None:
        """Return the names of what may be read, None where nothing else is visible."""
        if not self._dialect.readable:
            return None
        statement = sa.text(self._dialect.readable)
        rows = self._connection.execute(statement, {"schema": schema})
        return frozenset(row[0] for row in rows)

    def _column(self, column: Any, keys: Set[str]) -> TableColumn:
        name, dialect = str(column["name"]), self._connection.dialect
        holds = _holds(column["type"], dialect.name, is_key=name in keys)
        try:
            type_ = column["type"].compile(dialect)
        except sa.exc.CompileError:
            type_ = "unknown type"
        return TableColumn(name, self._written(name), holds=holds, type=type_)

    def _written(self, name: str, schema: str | None = None) -> str:
        preparer = self._connection.dialect.identifier_preparer
        text = preparer.quote(name)
        if self._dialect.folds_names:
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
    columns, referred = (
        tuple(key["constrained_columns"]),
        tuple(key["referred_columns"]),
    )
    return ForeignKey(columns, f"{schema}.{table}" if schema else table, referred)


def _unique(
    indexes: Iterable[Any], constraints: Iterable[Any]
) -> frozenset[tuple[str, ...]]:
    keys = (*constraints, *(index for index in indexes if index["unique"]))
    # An index of an expression has no name there.
    return frozenset(tuple(name or "" for name in key["column_names"]) for key in keys)
