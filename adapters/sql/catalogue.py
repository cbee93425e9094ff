"""What a database says of itself: tables, columns, keys, indexes, comments.

Read through SQLAlchemy's inspector on the same pooled, read-only connections with
time-outs as everything else; no row of a table is read here.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.reflection import Inspector, ObjectKind
from sqlalchemy.types import TypeEngine

from adapters.contract import SourceDataError
from adapters.mapping.problems import did_you_mean
from adapters.sql.database import Database
from adapters.sql.tables import (
    Catalogue,
    ForeignKey,
    Holds,
    Table,
    TableColumn,
    TableIndex,
)

_READABLE = {
    "postgresql": sa.text(
        "SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
        " WHERE nspname = COALESCE(:schema, current_schema())"
        " AND has_any_column_privilege(pg_class.oid, 'SELECT')"
    )
}
"""What the account may read, for databases that show it more than that."""

_FOLDS_NAMES = ("mysql", "mariadb", "sqlite", "mssql")
"""Databases to which a name without quotes is the same in capitals and small letters."""


def read_catalogue(database: Database, schemas: Sequence[str] = ()) -> Catalogue:
    """Return what the account may read of the default schema, or of the schemas named.

    Raises SourceUnavailableError, and SourceDataError for a schema that is not there.
    """
    return database.ask(lambda connection: _Reader(connection).catalogue(schemas))


class _Reader:
    def __init__(self, connection: sa.Connection) -> None:
        self._inspector: Inspector = sa.inspect(connection)
        self._connection = connection
        self._dialect = connection.dialect

    def catalogue(self, schemas: Sequence[str]) -> Catalogue:
        with warnings.catch_warnings():
            # A type that SQLAlchemy does not know is OTHER here.
            warnings.simplefilter("ignore", sa.exc.SAWarning)
            known = tuple(self._inspector.get_schema_names())
            if unknown := [schema for schema in schemas if schema not in known]:
                near = did_you_mean(unknown[0], known)
                raise SourceDataError(f"there is no schema '{unknown[0]}'{near}")
            found = [table for s in schemas or (None,) for table in self._tables(s)]
        found.sort(key=lambda table: table.name)
        return Catalogue(self._dialect.name, tuple(found), known)

    def _tables(self, schema: str | None) -> Iterable[Table]:
        ask = self._inspector
        of: dict[str, Any] = {"schema": schema, "kind": ObjectKind.ANY}
        columns = ask.get_multi_columns(**of)
        keys = ask.get_multi_pk_constraint(**of)
        foreign = ask.get_multi_foreign_keys(**of)
        # SQLite makes an index of itself for UNIQUE, and tells of it when asked.
        indexes = ask.get_multi_indexes(**of, include_auto_indexes=True)
        unique = ask.get_multi_unique_constraints(**of)
        views = {*ask.get_view_names(schema), *self._materialized(schema)}
        readable = self._readable(schema)
        for place, of_table in columns.items():
            name = place[1]
            if readable is not None and name not in readable:
                continue
            yield Table(
                name=f"{schema}.{name}" if schema else name,
                written=self._written(name, schema),
                bare=name,
                schema=schema,
                columns=tuple(self._column(column) for column in of_table),
                is_view=name in views,
                primary_key=_primary_key(keys.get(place)),
                foreign_keys=tuple(map(_foreign_key, foreign.get(place, ()))),
                indexes=_indexes(indexes.get(place, ()), unique.get(place, ())),
            )

    def _readable(self, schema: str | None) -> frozenset[str] | None:
        """Return the names of what may be read, None where nothing else is shown."""
        asked = _READABLE.get(self._dialect.name)
        if asked is None:
            return None
        rows = self._connection.execute(asked, {"schema": schema})
        return frozenset(row[0] for row in rows)

    def _materialized(self, schema: str | None) -> Sequence[str]:
        try:
            return self._inspector.get_materialized_view_names(schema)
        except NotImplementedError:
            return ()

    def _column(self, column: Any) -> TableColumn:
        type_: TypeEngine[Any] = column["type"]
        length = getattr(type_, "length", None)
        return TableColumn(
            name=str(column["name"]),
            written=self._written(str(column["name"])),
            type=_described(type_, self._dialect),
            holds=_holds(type_, self._dialect.name),
            nullable=bool(column.get("nullable", True)),
            length=length if isinstance(length, int) else None,
            choices=tuple(getattr(type_, "enums", ())),
            comment=column.get("comment") or "",
        )

    def _written(self, name: str, schema: str | None = None) -> str:
        preparer = self._dialect.identifier_preparer
        text = preparer.quote(name)
        if self._dialect.name in _FOLDS_NAMES:
            plain = name.lower()
            text = name if preparer.quote(plain) == plain else text
        return f"{preparer.quote(schema)}.{text}" if schema else text


def _described(type_: TypeEngine[Any], dialect: Any) -> str:
    try:
        return type_.compile(dialect=dialect)
    except sa.exc.CompileError:
        return type(type_).__name__.lower()


def _holds(type_: TypeEngine[Any], dialect: str) -> Holds:
    if getattr(type_, "display_width", None) == 1 or isinstance(type_, sa.Boolean):
        return Holds.FLAG
    if isinstance(type_, sa.DateTime):
        # A TIMESTAMP of MySQL and MariaDB is kept in UTC, whatever is shown.
        is_instant = type_.timezone or (
            dialect in ("mysql", "mariadb") and isinstance(type_, sa.TIMESTAMP)
        )
        return Holds.INSTANT if is_instant else Holds.LOCAL_TIME
    return next(
        (holds for kind, holds in _HOLDS if isinstance(type_, kind)), Holds.OTHER
    )


_HOLDS: tuple[tuple[type[TypeEngine[Any]], Holds], ...] = (
    (sa.String, Holds.TEXT),
    (sa.Integer, Holds.INTEGER),
    (sa.Numeric, Holds.NUMBER),
    (sa.Date, Holds.DATE),
    (sa.Time, Holds.CLOCK),
)


def _primary_key(key: Any) -> tuple[str, ...]:
    return tuple(key["constrained_columns"]) if key else ()


def _foreign_key(key: Any) -> ForeignKey:
    schema, table = key["referred_schema"], key["referred_table"]
    return ForeignKey(
        tuple(key["constrained_columns"]),
        f"{schema}.{table}" if schema else table,
        tuple(key["referred_columns"]),
    )


def _indexes(indexes: Iterable[Any], unique: Iterable[Any]) -> tuple[TableIndex, ...]:
    found = {
        TableIndex(
            tuple(name or "" for name in index["column_names"]), bool(index["unique"])
        )
        for index in indexes
    }
    found |= {TableIndex(tuple(key["column_names"]), unique=True) for key in unique}
    return tuple(sorted(found, key=lambda index: (index.columns, index.unique)))
