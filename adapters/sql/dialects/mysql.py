"""MariaDB and MySQL, by PyMySQL: the server itself ends statements and refuses to write."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import BIGINT
from sqlalchemy.engine import URL, Engine

from adapters.sql.columns import WHOLE, Column, Kind
from adapters.sql.dialects.base import (
    CONNECT_SECONDS,
    GRACE_SECONDS,
    Cursor,
    Dialect,
    nothing,
    pooled,
)
from adapters.sql.dialects.folding import GAPS, MARKS, spelled_out
from adapters.sql.dialects.origins import mysql_origins
from adapters.sql.dialects.plans import mysql_plan
from adapters.sql.dialects.vitals import mysql_vitals
from adapters.sql.idiom import Idiom, Text, read_back

_TIMESTAMP = 7
_UNSIGNED = 32
"""The flag of a column (FLAG.UNSIGNED)."""

_KINDS: Mapping[int, Kind] = {
    **dict.fromkeys((1, 2, 3, 8, 9, 13), Kind.INTEGER),
    **dict.fromkeys((0, 4, 5, 246), Kind.NUMBER),
    **dict.fromkeys((249, 250, 251, 252, 253, 254), Kind.FOLDING),
    _TIMESTAMP: Kind.INSTANT,
    10: Kind.DATE,
    12: Kind.LOCAL_TIME,
}
"""By the number of the type in the protocol (enum_field_types)."""


def _engine(url: URL, seconds: float, connections: int) -> Engine:
    engine = pooled(
        url.set(drivername="mysql+pymysql"),
        connections,
        connect_args={
            "charset": "utf8mb4",
            "connect_timeout": CONNECT_SECONDS,
            "autocommit": True,
            "conv": _conversions(),
            "write_timeout": seconds + GRACE_SECONDS,
        },
    )

    @sa.event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, args: Any, options: Any) -> Any:
        from adapters.sql.dialects.mysql_connection import TimedConnection

        return TimedConnection(*args, **options)

    @sa.event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        connection.longest = seconds + GRACE_SECONDS
        is_mariadb = "MariaDB" in connection.get_server_info()
        limit = (
            f"max_statement_time = {seconds}"
            if is_mariadb
            else f"max_execution_time = {round(seconds * 1000)}"
        )
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION READ ONLY")
            # As in other databases, \\ is a sign like any other and || joins texts.
            cursor.execute(
                f"SET SESSION {limit}, time_zone = '+00:00',"
                " sql_mode = 'NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'"
            )

    return engine


def _conversions() -> Mapping[Any, Any]:
    from pymysql.converters import conversions, convert_datetime, escape_datetime

    def instant(text: str) -> object:
        # What is no time (0000-00-00) stays the text that it is.
        moment = convert_datetime(text)
        return moment.replace(tzinfo=UTC) if isinstance(moment, datetime) else moment

    def literal(moment: datetime, _conversions: object = None) -> str:
        # A literal has no zone; that of the session is UTC.
        return escape_datetime(moment.astimezone(UTC) if moment.tzinfo else moment)

    return {**conversions, _TIMESTAMP: instant, datetime: literal}


def _columns(cursor: Any, rows: str) -> tuple[Column, ...]:
    cursor.execute(f"SELECT * FROM ({rows}\n) AS pas LIMIT 0")
    columns = [
        Column(field.name, _kind_of(field.type_code, field.flags))
        # What PyMySQL's `description` is made of, which leaves the flags out.
        for field in cursor._result.fields
    ]
    names = [column.name for column in columns if column.kind is Kind.FOLDING]
    collations = _collations(cursor, rows, names) if names else {}
    return tuple(
        Column(column.name, _kind(found), found)
        if (found := collations.get(column.name))
        else column
        for column in columns
    )


def _kind_of(type_: int, flags: int) -> Kind:
    kind = _KINDS.get(type_, Kind.OTHER)
    return Kind.UNSIGNED if kind is Kind.INTEGER and flags & _UNSIGNED else kind


def _collations(cursor: Cursor, rows: str, names: list[str]) -> Mapping[str, str]:
    # One row of NULLs, each with the collation of its column.
    quoted = [name.replace("`", "``") for name in names]
    told = ", ".join(f"COLLATION(pas.`{name}`)" for name in quoted)
    cursor.execute(
        f"SELECT {told} FROM (SELECT 1 AS one) AS one"
        f" LEFT JOIN (SELECT * FROM ({rows}\n) AS pas LIMIT 0) AS pas ON 1 = 0"
    )
    (row,) = cursor.fetchall()
    return dict(zip(names, row, strict=True))


def _kind(collation: str) -> Kind:
    if collation == "binary":
        return Kind.OTHER
    if collation.startswith("latin1_"):
        return Kind.WESTERN
    is_exact = collation.startswith("utf8") and collation.endswith("_bin")
    return Kind.TEXT if is_exact else Kind.FOLDING


def _exact(text: Text) -> Text:
    # A binary order of MySQL and MariaDB alike; blanks at the end count in neither.
    utf8: Text = sa.func.convert(text.op("USING")(sa.literal_column("utf8mb4")))
    return utf8.collate("utf8mb4_bin")


def _collated(text: Text, collation: str) -> Text:
    # One of another set of signs fits no text as it is.
    signs: Text = sa.literal_column(collation.partition("_")[0])
    converted: Text = sa.func.convert(text.op("USING")(signs))
    return converted.collate(collation)


def _digits(number: sa.ColumnElement[Any]) -> Text:
    # What a CAST writes has a collation of its own, which no column's compares with.
    return sa.func.concat(number, sa.literal_column("''"))


def _fold(text: Text) -> Text:
    """Fold as `adapters.words.fold` does; case and accents by a collation."""
    plain: Text = sa.func.lower(_exact(text))
    plain = sa.func.regexp_replace(plain, MARKS, "")
    plain = sa.func.regexp_replace(spelled_out(plain), GAPS, " ")
    return sa.func.trim(plain).collate("utf8mb4_unicode_520_ci")


_CHANGES = re.compile(r"\b(ALL PRIVILEGES|INSERT|UPDATE|DELETE|DROP)\b")


def _may_write(cursor: Cursor) -> bool:
    cursor.execute("SHOW GRANTS")
    # GRANT privilege, … ON … TO …; the grant of a role has no ON.
    grants = [str(row[0]).partition(" ON ") for row in cursor.fetchall()]
    return any(on and _CHANGES.search(given) for given, on, _ in grants)


def _timed_out(error: BaseException) -> bool:
    # MariaDB: ER_STATEMENT_TIMEOUT. MySQL: ER_QUERY_TIMEOUT.
    return _code(error) in (1969, 3024)


_UNKNOWN = frozenset(
    {
        *(1044, 1052, 1054, 1060, 1064, 1103, 1142, 1143, 1146, 1176, 1305),
        *(1055, 1111, 1140, 1222, 1241, 1247, 1267, 1270, 1271, 1356, 1582, 1792),
        *(4078, 4079),
    }
)
"""Names, rights, syntax; statements without a meaning; types that do not compare. Of the
server's error reference."""


def _unknown(error: BaseException) -> bool:
    return _code(error) in _UNKNOWN


def _refuses(error: BaseException) -> bool:
    # Database denied, access denied (twice), no such database, host not allowed, account locked.
    return _code(error) in (1044, 1045, 1698, 1049, 1130, 3118, 4151)


def _code(error: BaseException) -> object:
    return error.args[0] if error.args else None


DIALECT = Dialect(
    engine=_engine,
    columns=_columns,
    idiom=Idiom(
        fold=_fold,
        exact=_exact,
        collated=_collated,
        writes=dict.fromkeys(WHOLE, _digits),
        reads={
            Kind.INTEGER: read_back(sa.BigInteger(), _exact),
            Kind.UNSIGNED: read_back(BIGINT(unsigned=True), _exact),
        },
    ),
    may_write=_may_write,
    start=nothing,
    timed_out=_timed_out,
    unknown=_unknown,
    plan=mysql_plan,
    origins=mysql_origins,
    vitals=mysql_vitals,
    refuses=_refuses,
)
