"""The catalogue of a database: its tables, as SQLAlchemy reflects them. No row is read."""

import re
import warnings
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import Dialect as SqlAlchemyDialect

from adapters.contract import SourceDataError
from adapters.mapping.problems import did_you_mean
from adapters.sql.engine import Database


class Holds(StrEnum):
    """What a column is declared to hold, whatever the database calls the type."""

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


def read_catalogue(database: Database, schemas: Sequence[str] = ()) -> list[sa.Table]:
    """Return the tables and views of the named schemas, or of the default one, by name.

    Tables that the account may not read are left out. Raises SourceUnavailableError, and
    SourceDataError for a schema that does not exist or schemas without a table.
    """
    # A statement that returns the names of readable tables, "" where reflection does.
    readable = database.dialect.readable

    def reflect(connection: sa.Connection) -> list[sa.Table]:
        visible = sa.inspect(connection).get_schema_names()
        if unknown := [schema for schema in schemas if schema not in visible]:
            near = did_you_mean(unknown[0], visible)
            raise SourceDataError(f"there is no schema '{unknown[0]}'{near}")
        tables: list[sa.Table] = []
        for schema in schemas or (None,):
            metadata = sa.MetaData()
            metadata.reflect(connection, schema, views=True, resolve_fks=False)
            of_schema = [*metadata.tables.values()]
            if readable:
                rows = connection.execute(sa.text(readable), {"schema": schema})
                names = {row[0] for row in rows}
                of_schema = [table for table in of_schema if table.name in names]
            tables += of_schema
        if not tables:
            hint = f"name a schema with --schema ({', '.join(visible)})"
            raise SourceDataError(f"the schema has no table: {hint}")
        return sorted(tables, key=lambda table: str(table.key))

    with warnings.catch_warnings():
        # SQLAlchemy warns of types that it does not know; they are Holds.OTHER.
        warnings.simplefilter("ignore", sa.exc.SAWarning)
        return database.run(reflect)


def parts_of_name(name: str) -> list[str]:
    """Return the parts of a name such as `"schema".table`, without quotes."""
    parts = re.findall(r'"([^"]+)"|([^."`]+)', name)
    return [quoted or plain for quoted, plain in parts]


def dialect_of(database: Database) -> SqlAlchemyDialect:
    """Return the SQLAlchemy dialect of a database."""
    return database.run(lambda connection: connection.dialect)


def written(database: Database, name: str, schema: str | None = None) -> str:
    """Return a table as a statement names it: with its schema, and quoted where it must be."""
    preparer = dialect_of(database).identifier_preparer
    text = preparer.quote(name)
    lowered = name.lower()
    if database.dialect.folds_names and preparer.quote(lowered) == lowered:
        # SQLAlchemy quotes capitals, which this database does not need.
        text = name
    return f"{preparer.quote(schema)}.{text}" if schema else text


def primary_key(table: sa.Table) -> list[str]:
    """Return the names of the columns of a primary key."""
    return [column.name for column in table.primary_key]


def foreign_keys(table: sa.Table) -> Iterator[tuple[str, str, str]]:
    """Yield each column that is a foreign key alone, and the table and column it refers to."""
    for constraint in table.foreign_key_constraints:
        if len(constraint.elements) == 1:
            (key,) = constraint.elements
            target, _, column = key.target_fullname.rpartition(".")
            yield key.parent.name, target, column


def is_unique(table: sa.Table, column: str) -> bool:
    """Whether a column alone is a primary key, or has a unique constraint or index."""
    keys: list[Sequence[str]] = [primary_key(table)]
    for constraint in table.constraints:
        if isinstance(constraint, sa.UniqueConstraint):
            keys.append([column.name for column in constraint.columns])
    keys += [[c.name for c in index.columns] for index in table.indexes if index.unique]
    return [column] in keys


def type_of(column: sa.Column[Any], dialect: SqlAlchemyDialect) -> str:
    """Return the SQL type of a column."""
    try:
        return column.type.compile(dialect)
    except sa.exc.CompileError:
        return "unknown type"


def holds_of(column: sa.Column[Any], dialect: str) -> Holds:
    """Return what a column is declared to hold."""
    type_ = column.type
    if getattr(type_, "display_width", None) == 1 or isinstance(type_, sa.Boolean):
        return Holds.FLAG
    if isinstance(type_, sa.DateTime):
        # MySQL and MariaDB store a TIMESTAMP in UTC.
        is_utc = dialect in ("mysql", "mariadb") and isinstance(type_, sa.TIMESTAMP)
        return Holds.INSTANT if type_.timezone or is_utc else Holds.LOCAL_TIME
    is_key = column.primary_key or column.foreign_keys
    if isinstance(type_, sa.Numeric) and (is_key or type_.scale == 0):
        return Holds.INTEGER
    for sql_type, holds in _HOLDS:
        if isinstance(type_, sql_type):
            return holds
    return Holds.OTHER


_HOLDS: tuple[tuple[type[sa.types.TypeEngine[Any]], Holds], ...] = (
    (sa.Uuid, Holds.UUID),
    (sa.String, Holds.TEXT),
    (sa.Integer, Holds.INTEGER),
    (sa.Numeric, Holds.NUMBER),
    (sa.Date, Holds.DATE),
    (sa.Time, Holds.CLOCK),
)
