"""PostgreSQL, by psycopg: the server itself ends statements and refuses to write."""

from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader, Transformer
from psycopg.pq import Format
from sqlalchemy.engine import URL, Engine

from adapters.sql.addresses import odd_option
from adapters.sql.columns import Kind
from adapters.sql.dialects.base import (
    CONNECT_SECONDS,
    GRACE_SECONDS,
    Cursor,
    Dialect,
    nothing,
    pooled,
    run,
)
from adapters.sql.dialects.folding import translated
from adapters.sql.dialects.origins import postgresql_origins
from adapters.sql.dialects.plans import postgresql_plan
from adapters.sql.dialects.postgresql_columns import TIME_TYPES, read_columns
from adapters.sql.dialects.postgresql_connection import (
    TimedConnection,
    look_up_hosts,
    refused_option,
)
from adapters.sql.dialects.vitals import postgresql_vitals
from adapters.sql.idiom import Idiom, Made, Text


def _engine(url: URL, seconds: float, connections: int) -> Engine:
    engine = pooled(
        url.set(drivername="postgresql+psycopg"),
        connections,
        connect_args={
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "encounters",
            "options": "-c default_transaction_read_only=on -c TimeZone=UTC"
            f" -c statement_timeout={round(seconds * 1000)}",
            # Ends the wait for a host that takes no more bytes.
            "tcp_user_timeout": round((seconds + GRACE_SECONDS) * 1000),
        },
    )

    @sa.event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, args: Any, options: Any) -> Any:
        try:
            look_up_hosts(str(options.get("host", "")))
            connection = TimedConnection.connect(*args, **options)
        except psycopg.OperationalError as error:
            # To psycopg this is an outage, too.
            name = refused_option(options)
            if name is None:
                raise
            raise odd_option(name) from error
        connection.longest = seconds + GRACE_SECONDS
        return connection

    @sa.event.listens_for(engine, "connect")
    def one_statement_each(connection: Any, _record: Any) -> None:
        connection.autocommit = True

    return engine


class _AsSent(Loader):
    """What Python cannot hold (`infinity`, years BC or past 9999) stays as it was sent."""

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        plain = psycopg.adapters.get_loader(oid, Format.TEXT)
        assert plain is not None, "every time has a loader"
        self._load = plain(oid, context).load

    def load(self, data: Buffer) -> object:
        try:
            return self._load(data)
        except psycopg.DataError:
            return bytes(data).decode()


def _fetch(cursor: Any, text: str, bound: Any) -> list[Any]:
    try:
        return run(cursor, text, bound)
    except psycopg.DataError:
        if cursor.pgresult is None or not cursor.pgresult.ntuples:
            raise
    # The answer is here whole: only its cells are read anew.
    lenient = cursor.connection.cursor()
    for oid in TIME_TYPES:
        lenient.adapters.register_loader(oid, _AsSent)
    reader = Transformer(lenient)
    reader.set_pgresult(cursor.pgresult)
    return reader.load_rows(0, cursor.pgresult.ntuples, tuple)


def _collated(text: Text, collation: str) -> Text:
    # It comes with its schema and in quotes, as it is written.
    return text.op("COLLATE")(sa.literal_column(collation))


def _exact(text: Text) -> Text:
    return sa.cast(text, sa.Text()).collate("C")


def _searched(text: Text) -> Text:
    # No LIKE takes a collation that is not exact before PostgreSQL 18.
    return sa.cast(text, sa.Text()).collate("default")


def _fold(text: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Fold as `adapters.words.fold` does, with what every PostgreSQL 13 has."""
    plain: sa.ColumnElement[str] = sa.func.normalize(
        sa.func.lower(text), sa.literal_column("NFKD")
    )
    # Where the database's locale knows no upper-case accents, they are separate now.
    bare = translated(sa.func.lower(plain), "g")
    return sa.func.normalize(bare, sa.literal_column("NFC"))


_WHOLE = "^(0|-?[1-9][0-9]{0,18})$"
_FRACTION = "^(0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)[.][0-9]*[1-9])$"
_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


def _reader(form: str, type_: sa.types.TypeEngine[Any]) -> Made:
    """Return what reads a text that is in a form; PostgreSQL's CAST fails with another."""
    pattern: sa.ColumnElement[str] = sa.literal_column(f"'{form}'")

    def made(text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        bare = sa.func.rtrim(text)
        return sa.case(
            (bare.op("~", is_comparison=True)(pattern), sa.cast(bare, type_))
        )

    return made


def _whole(text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    number = _reader(_WHOLE, sa.Numeric())(text)
    fits = number.between(
        sa.literal_column(f"{-(2**63)}"), sa.literal_column(f"{2**63 - 1}")
    )
    return sa.case((fits, sa.cast(number, sa.BigInteger())))


def _number_text(number: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.cast(sa.func.trim_scale(sa.cast(number, sa.Numeric())), sa.Text())


_MAY_WRITE = """
SELECT rolsuper OR EXISTS (
  SELECT FROM pg_class
  WHERE relkind IN ('r', 'p', 'v', 'f')
    AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
    AND has_table_privilege(oid, 'INSERT, UPDATE, DELETE, TRUNCATE'))
FROM pg_roles WHERE rolname = current_user
"""


def _may_write(cursor: Cursor) -> bool:
    cursor.execute(_MAY_WRITE)
    return any(row[0] for row in cursor.fetchall())


def _timed_out(error: BaseException) -> bool:
    return getattr(error, "sqlstate", None) == "57014"


def _unknown(error: BaseException) -> bool:
    # Classes 0A (not supported), 22 (data), 42 (syntax, names, rights) of PostgreSQL's
    # appendix A, and 25006, a change or a lock; without a class, a value that the driver
    # cannot read (`infinity`).
    state = getattr(error, "sqlstate", None)
    if state is None:
        return isinstance(error, psycopg.DataError)
    return str(state)[:2] in ("0A", "22", "42") or state == "25006"


DIALECT = Dialect(
    engine=_engine,
    columns=read_columns,
    idiom=Idiom(
        fold=_fold,
        exact=_exact,
        searched=_searched,
        collated=_collated,
        writes={Kind.NUMBER: _number_text},
        reads={
            Kind.INTEGER: _whole,
            Kind.NUMBER: _reader(_FRACTION, sa.Numeric()),
            Kind.UUID: _reader(_UUID, sa.Uuid()),
        },
        orders_nulls=True,
    ),
    may_write=_may_write,
    start=nothing,
    timed_out=_timed_out,
    unknown=_unknown,
    fetch=_fetch,
    plan=postgresql_plan,
    origins=postgresql_origins,
    vitals=postgresql_vitals,
    text_index="CREATE EXTENSION IF NOT EXISTS pg_trgm;\n"
    "CREATE INDEX {name} ON {table} USING gin ((' ' || lower({column})) gin_trgm_ops);",
)
