"""MariaDB and MySQL, by PyMySQL: the server ends long statements and refuses to write."""

import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pymysql
import sqlalchemy as sa
from pymysql.converters import conversions, convert_datetime, escape_datetime
from sqlalchemy.engine import URL, Engine

from adapters.mapping.slots import LONGEST_ID
from adapters.sql.columns import WHOLE, Column, ColumnKind, has_zeros
from adapters.sql.dialects import refusals
from adapters.sql.dialects.base import (
    CONNECT_SECONDS,
    GRACE_SECONDS,
    MARK,
    AddressError,
    ColumnOrigin,
    DatabaseTransport,
    Dialect,
    PoolConfig,
    RowsRead,
    SessionError,
    Sql,
    description,
    execute,
    pooled,
)
from adapters.sql.dialects.folding import GAPS, MARKS, spelled_out

_DRIVER = "mysql+pymysql"

_TIMESTAMP, _DATETIME = 7, 12
_KINDS: Mapping[int, ColumnKind] = {
    **dict.fromkeys((1, 2, 3, 8, 9, 13), ColumnKind.WIDE),
    4: ColumnKind.SINGLE,
    5: ColumnKind.DOUBLE,
    **dict.fromkeys((0, 246), ColumnKind.NUMBER),
    **dict.fromkeys((249, 250, 251, 252, 253, 254), ColumnKind.FOLDING),
    _TIMESTAMP: ColumnKind.INSTANT,
    10: ColumnKind.DATE,
    _DATETIME: ColumnKind.LOCAL_TIME,
    16: ColumnKind.BITS,
}
"""By the number of the type in the protocol (enum_field_types)."""

_SESSION = (
    "time_zone = '+00:00', sql_mode = 'NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT',"
    " sql_select_limit = 18446744073709551615"
)
"""As in other databases, a backslash is a plain character and || joins texts."""

_SET_BY_US = (
    "binary_prefix",
    "read_timeout",
    "write_timeout",
    "sql_mode",
    "autocommit",
    "use_unicode",
)
"""Options that an address cannot have: timeouts are those of the mapping."""

_SESSION_SETTING = re.compile(
    "time_zone|sql_mode|max_statement_time|max_execution_time|read_only|autocommit"
    r"|\bNAMES\b|character.set|\bCHARSET\b|transaction",
    re.IGNORECASE,
)


def _engine(url: URL, config: PoolConfig) -> Engine:
    _refuse_options(url)
    options: dict[str, Any] = {
        "charset": "utf8mb4",
        # Else a literal of bytes would be read as a text in UTF-8.
        "binary_prefix": True,
        "conv": {
            **conversions,
            _TIMESTAMP: _instant,
            _DATETIME: _local_time,
            datetime: _literal,
        },
        "read_timeout": config.seconds + GRACE_SECONDS,
        "write_timeout": config.seconds + GRACE_SECONDS,
    }
    if "connect_timeout" not in url.query:
        options["connect_timeout"] = CONNECT_SECONDS
    address = url.set(drivername=_DRIVER, database=config.schema or url.database)
    engine = pooled(address, config, connect_args=options)

    @sa.event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        is_mariadb = "MariaDB" in connection.get_server_info()
        limit = (
            f"max_statement_time = {config.seconds}"
            if is_mariadb
            else f"max_execution_time = {round(config.seconds * 1000)}"
        )
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION READ ONLY")
            cursor.execute(f"SET SESSION {limit}, {_SESSION}")
        read_back(connection, config.seconds)

    return engine


def _refuse_options(url: URL) -> None:
    """Raise AddressError for options that what the service sets would replace."""
    names = [name for name in _SET_BY_US if name in url.query]
    if url.query.get("charset", "utf8mb4") != "utf8mb4":
        names.append("charset (texts are read as utf8mb4)")
    if _SESSION_SETTING.search(str(url.query.get("init_command", ""))):
        names.append("a session setting in init_command")
    if names:
        raise AddressError(
            f"the address sets {', '.join(names)}, which the service sets itself:"
            " remove it there"
        )


def read_back(connection: Any, seconds: float) -> None:
    """Raise SessionError where a session lacks what was set in it (decision 42)."""
    is_mariadb = "MariaDB" in connection.get_server_info()
    names = (
        "@@max_statement_time, @@time_zone, @@tx_read_only"
        if is_mariadb
        else "@@max_execution_time / 1000, @@time_zone, @@transaction_read_only"
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {names}")
        limit, zone, reads_only = cursor.fetchone()
    if not 0 < limit <= seconds or zone != "+00:00" or not reads_only:
        raise SessionError(
            "the session lacks the time limit, the zone or the read-only mode that the"
            " service has set: a proxy in between drops them. Let the proxy keep one"
            " server for each connection, or connect to the server directly"
        )


def _transport(url: URL) -> DatabaseTransport:
    # A connection that is not made yet: the driver itself reads its options.
    dialect = url.set(drivername=_DRIVER).get_dialect()()
    _, options = dialect.create_connect_args(url)
    connection: Any = pymysql.Connection(**options, defer_connect=True)
    context = getattr(connection, "ctx", None)
    is_verified = context is not None and context.verify_mode is ssl.CERT_REQUIRED
    hosts = () if connection.unix_socket else (connection.host,)
    return DatabaseTransport(hosts, is_verified)


def _instant(text: str) -> object:
    """Read a TIMESTAMP, which the session has in UTC."""
    moment = _local_time(text)
    return moment.replace(tzinfo=UTC) if isinstance(moment, datetime) else moment


def _local_time(text: str) -> object:
    # What is no time (0000-00-00) stays a text, without the zeros of its fraction.
    moment = convert_datetime(text)
    return moment.removesuffix(".000000") if isinstance(moment, str) else moment


def _literal(moment: datetime, _conversions: object = None) -> str:
    # A literal has no zone; that of the session is UTC.
    return escape_datetime(moment.astimezone(UTC) if moment.tzinfo else moment)


def _columns(connection: sa.Connection, rows: str) -> tuple[Column, ...]:
    columns = [
        Column(name, _KINDS.get(type_, ColumnKind.OTHER), is_nullable=bool(is_nullable))
        for name, type_, *_, is_nullable in description(connection, rows)
    ]
    texts = [column.name for column in columns if column.kind is ColumnKind.FOLDING]
    collations = _collations(connection, rows, texts)
    for index, column in enumerate(columns):
        collation = collations.get(column.name)
        if collation:
            kind = _text_kind(collation)
            columns[index] = column._replace(kind=kind, collation=collation)
    return tuple(columns)


def _collations(
    connection: sa.Connection, rows: str, names: list[str]
) -> Mapping[str, str]:
    """Return the collations of columns by their names."""
    if not names:
        return {}
    # One row of NULLs, each with the collation of its column.
    quoted = [name.replace("`", "``") for name in names]
    collations = ", ".join(f"COLLATION(pas.`{name}`)" for name in quoted)
    row = execute(
        connection,
        f"SELECT {collations} FROM (SELECT 1 AS one) AS one"
        f" LEFT JOIN (SELECT * FROM ({rows}\n) AS pas LIMIT 0) AS pas ON 1 = 0",
    ).one()
    return dict(zip(names, row, strict=True))


def _pads(collation: str) -> bool:
    return "_0900_" not in collation and "_nopad_" not in collation


def _text_kind(collation: str) -> ColumnKind:
    if collation == "binary":
        return ColumnKind.BINARY
    is_exact = collation.startswith("utf8") and collation.endswith("_bin")
    return ColumnKind.TEXT if is_exact else ColumnKind.FOLDING


# SQL of its own


def _exact(text: str) -> str:
    # A binary order of MySQL and MariaDB alike; trailing blanks count in neither.
    return f"(convert({text} USING utf8mb4) COLLATE utf8mb4_bin)"


def _collated(text: str, collation: str) -> str:
    # A collation of another character set fits no text as it is.
    charset = collation.partition("_")[0]
    return f"(convert({text} USING {charset}) COLLATE {collation})"


def _text_mark(collation: str) -> str:
    # A character that the set lacks becomes ?, and may match: the exact comparison beside this
    # one decides.
    is_unicode = not collation or collation.startswith("utf8mb4")
    return MARK if is_unicode else _collated(MARK, collation)


def _digits(number: str) -> str:
    # The result of a CAST has a collation of its own, which no column's compares with.
    return f"concat({number} + 0, '')"


def _fold(text: Sql) -> Sql:
    """Fold; a collation takes care of case and accents. What folds to nothing is NULL."""
    plain = _replaced(text._replace(sql=_exact(text.sql)).call("lower"), MARKS, "")
    plain = _replaced(spelled_out(plain), GAPS, " ")
    return plain.call("trim").within("(", " COLLATE utf8mb4_unicode_520_ci)")


def _replaced(text: Sql, pattern: str, replacement: str) -> Sql:
    """Replace what a pattern matches; a text without a character becomes NULL.

    MySQL 8.0.15 crashes on an empty text in a row after one that matches. Before 8.0.17 it
    returns UTF-16 (reference manual, REGEXP_REPLACE).
    """
    not_empty = text.within("nullif(", ", '')")
    replaced = not_empty.call("regexp_replace", pattern, replacement)
    return replaced._replace(sql=_exact(replaced.sql))


# Rights and errors

_CHANGES = re.compile(r"\b(ALL PRIVILEGES|INSERT|UPDATE|DELETE|DROP)\b")


_PLACE = re.compile(r"`((?:[^`]|``)*)`\.(?:`((?:[^`]|``)*)`|\*)")


def _write_grant(connection: sa.Connection) -> str:
    """Return the first grant by which the account may change a database or table that exists.

    A grant stays when its database is dropped.
    """
    # GRANT privilege, … ON … TO …; the grant of a role has no ON.
    for (grant,) in execute(connection, "SHOW GRANTS").all():
        privileges, on, rest = str(grant).partition(" ON ")
        changes = sorted(set(_CHANGES.findall(privileges)))
        place = rest.rpartition(" TO ")[0]
        if on and changes and _exists(connection, place):
            return f"{', '.join(changes)} ON {place}"
    return ""


_SCHEMATA_LIKE = (
    "SELECT COUNT(*) FROM information_schema.schemata"
    " WHERE schema_name LIKE %s ESCAPE '\\'"
)
_TABLES_NAMED = (
    "SELECT COUNT(*) FROM information_schema.tables"
    " WHERE table_schema = %s AND table_name = %s"
)


def _exists(connection: sa.Connection, place: str) -> bool:
    """Whether the database or table of a grant exists, True for a grant on all of them.

    Without a table, the database is a pattern of LIKE.
    """
    match = _PLACE.match(place)
    if match is None:
        return True
    schema, table = (name and name.replace("``", "`") for name in match.groups())
    if table is None:
        count = _SCHEMATA_LIKE
        values: tuple[str, ...] = (schema,)
    else:
        count = _TABLES_NAMED
        values = (schema, table)
    return bool(execute(connection, count, values).scalar_one())


_UNKNOWN = (
    *(1044, 1052, 1054, 1060, 1064, 1103, 1142, 1143, 1146, 1176, 1305),
    *(1055, 1111, 1140, 1222, 1241, 1247, 1267, 1270, 1271, 1356, 1582, 1792),
    *(4078, 4079),
)
"""Names, rights, syntax; statements without a meaning; types that do not compare. Of the
server's error reference."""


_REFUSALS: Mapping[str, str] = {
    "^1049": refusals.DATABASE,
    "^1044": refusals.NO_RIGHT,
    "^(1045|1698)": refusals.CREDENTIALS,
    "^1130": refusals.PLACE,
    "^(3118|4151|1820|1862)": refusals.LOCKED,
    "^(1040|1203|1226)": refusals.FULL,
    "^(1053|1077|1079)": refusals.STARTING,
    "^(3159|1251)": refusals.TLS_REQUIRED,
}
"""By the code of the server (its error reference); the driver's own 2003 has the cause in it."""


# Rows read, origins, clock

_COUNTERS = (
    "SHOW SESSION STATUS WHERE Variable_name LIKE 'Handler_read%'"
    " OR Variable_name = 'Handler_icp_attempts'"
)


def _rows_read(connection: sa.Connection, text: str, parameters: Any) -> RowsRead:
    """Count by the server's counters, which MariaDB and MySQL both have.

    Reading the counters counts as well: what that costs is measured first, and subtracted.
    """
    start = _counted(connection)
    before = _counted(connection)
    cost_of_counting = before - start
    rows = len(execute(connection, text, parameters).all())
    read = _counted(connection) - before - cost_of_counting
    return RowsRead(max(read, 0), rows)


def _counted(connection: sa.Connection) -> int:
    """Return how many rows the session has read so far."""
    return sum(int(row[1]) for row in execute(connection, _COUNTERS))


_NAME = "`((?:[^`]|``)+)`"
_TABLE = re.compile(rf"{_NAME}\.{_NAME} {_NAME}")
_RESULT = re.compile(
    rf"(?:(?:(?<=select )|(?<=,)){_NAME}\.{_NAME}\.{_NAME})? AS {_NAME}"
)


def _origins(connection: sa.Connection, rows: str) -> Mapping[str, ColumnOrigin]:
    """Read the statement as the server rewrites it, with the tables behind views.

    A table of another database is named with it.
    """
    current = execute(connection, "SELECT DATABASE()").scalar_one()
    explain = "EXPLAIN EXTENDED" if connection.dialect.is_mariadb else "EXPLAIN"  # type: ignore[attr-defined]
    execute(connection, f"{explain} SELECT * FROM ({rows}\n) AS pas").close()
    origins: dict[str, ColumnOrigin | None] = {}
    for _, _, note in execute(connection, "SHOW WARNINGS"):
        tables = {alias: table for _, table, alias in _TABLE.findall(note)}
        for database, alias, column, name in _RESULT.findall(note):
            table = tables.get(alias, alias)
            if database != current:
                table = f"{database}.{table}"
            origin = ColumnOrigin(table, column) if column else None
            # A column of the same name further on is one of a subquery.
            origins.setdefault(name, origin)
    return {name: origin for name, origin in origins.items() if origin}


def _server_time(connection: sa.Connection) -> datetime:
    now: datetime = execute(connection, "SELECT UTC_TIMESTAMP(6)").scalar_one()
    return now.replace(tzinfo=UTC)


DIALECT = Dialect(
    driver=_DRIVER,
    placeholder="%s",
    engine=_engine,
    transport=_transport,
    verifying="ssl_ca=/path/of/authorities.pem",
    columns=_columns,
    write_grant=_write_grant,
    fold=_fold,
    exact=_exact,
    collated=_collated,
    text_mark=_text_mark,
    pads=_pads,
    # IS NULL also finds dates of zeros, in columns that are NOT NULL: such a row would be in
    # both groups of a page (keyset.py), and come twice in a walk.
    is_null=lambda column: f"{column} <=> NULL",
    long="CHAR",
    short=f"CHAR({LONGEST_ID})",
    reads={ColumnKind.BITS: lambda column: f"{column} + 0"},
    writes={
        **dict.fromkeys(WHOLE, _digits),
        ColumnKind.BINARY: lambda column: f"lower(hex({column}))",
    },
    # MariaDB: ER_STATEMENT_TIMEOUT. MySQL: ER_QUERY_TIMEOUT.
    timeouts=("1969", "3024"),
    unknowns="|".join(map(str, _UNKNOWN)),
    refusals=_REFUSALS,
    missing=(r"[Uu]nknown column '([^']+)'", r"Table '([^']+)' doesn't exist"),
    repeated=r"Duplicate column name '([^']+)'",
    rows_read=_rows_read,
    # MariaDB names the database as well.
    denied={
        r"denied to user .* for table (?:`[^`]+`\.)?[`']([^`']+)": "GRANT SELECT ON"
    },
    origins=_origins,
    server_time=_server_time,
    folds_names=True,
    zero_date="0000-00-00",
    unreal=has_zeros,
)
