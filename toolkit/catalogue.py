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


def read_catalogue(database: Database, schemas: Sequence[str] = ()) -> list[sa.Table]:
    """Return what the account may read of the default schema, or of those named.

    Raises SourceUnavailableError, and SourceDataError for a schema that is not there or where
    no schema that is read has a table.
    """
    readable = database.dialect.readable

    def reflected(connection: sa.Connection) -> list[sa.Table]:
        visible, tables = sa.inspect(connection).get_schema_names(), list[sa.Table]()
        if unknown := [schema for schema in schemas if schema not in visible]:
            near = did_you_mean(unknown[0], visible)
            raise SourceDataError(f"there is no schema '{unknown[0]}'{near}")
        for schema in schemas or (None,):
            metadata = sa.MetaData()
            metadata.reflect(connection, schema, views=True, resolve_fks=False)
            of_schema = [*metadata.tables.values()]
            if readable:
                # Not every database leaves out what the account may not read.
                rows = connection.execute(sa.text(readable), {"schema": schema})
                names = {row[0] for row in rows}
                of_schema = [table for table in of_schema if table.name in names]
            tables += of_schema
        if not tables:
            hint = f"name a schema with --schema ({', '.join(visible)})"
            raise SourceDataError(f"the schema has no table: {hint}")
        return sorted(tables, key=lambda table: str(table.key))

    with warnings.catch_warnings():
        # A type that SQLAlchemy does not know is OTHER here.
        warnings.simplefilter("ignore", sa.exc.SAWarning)
        return database.run(reflected)


def parts_of_name(name: str) -> list[str]:
    """Return the schema and the table of a name as a statement has it, without quotes."""
    parts = re.findall(r'"([^"]+)"|([^."`]+)', name)
    return [quoted or plain for quoted, plain in parts]


def dialect_of(database: Database) -> SqlAlchemyDialect:
    """Return what SQLAlchemy knows of the kind of a database."""
    return database.run(lambda connection: connection.dialect)


def written(database: Database, name: str, schema: str | None = None) -> str:
    """Return a name as a statement needs it."""
    preparer = dialect_of(database).identifier_preparer
    text = preparer.quote(name)
    if database.dialect.folds_names:
        plain = name.lower()
        text = name if preparer.quote(plain) == plain else text
    return f"{preparer.quote(schema)}.{text}" if schema else text


def primary_key(table: sa.Table) -> list[str]:
    """Return the names of the columns of a primary key."""
    return [column.name for column in table.primary_key]


def foreign_keys(table: sa.Table) -> Iterator[tuple[str, str, str]]:
    """Yield each column that is a foreign key, and the table and column that it leads to."""
    for constraint in table.foreign_key_constraints:
        if len(constraint.elements) == 1:
            (key,) = constraint.elements
            target, _, column = key.target_fullname.rpartition(".")
            yield key.parent.name, target, column


def is_unique(table: sa.Table, column: str) -> bool:
    """Whether the database itself keeps two rows from the same value."""
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
        # A TIMESTAMP of MySQL and MariaDB is kept in UTC, whatever is shown.
        is_utc = dialect in ("mysql", "mariadb") and isinstance(type_, sa.TIMESTAMP)
        return Holds.INSTANT if type_.timezone or is_utc else Holds.LOCAL_TIME
    is_key = column.primary_key or column.foreign_keys
    if isinstance(type_, sa.Numeric) and (is_key or type_.scale == 0):
        return Holds.INTEGER
    held = (holds for kind, holds in _HOLDS if isinstance(type_, kind))
    return next(held, Holds.OTHER)


_HOLDS: tuple[tuple[type[sa.types.TypeEngine[Any]], Holds], ...] = (
    (sa.Uuid, Holds.UUID),
    (sa.String, Holds.TEXT),
    (sa.Integer, Holds.INTEGER),
    (sa.Numeric, Holds.NUMBER),
    (sa.Date, Holds.DATE),
    (sa.Time, Holds.CLOCK),
)
