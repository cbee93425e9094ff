"""SQL Server, by pyodbc: connections that declare to read only, statements with a timeout.

Written from Microsoft's documentation and tested with golden files; docs/run/databases.md says
what has not been tried on a server.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine

from adapters.folding import BLANKS, UNSEEN
from adapters.sql.columns import Column, ColumnKind
from adapters.sql.dialects import refusals
from adapters.sql.dialects.base import (
    CONNECT_SECONDS,
    MARK,
    AddressError,
    DatabaseTransport,
    Dialect,
    PoolConfig,
    Sql,
    execute,
    first_text,
    named_in,
    pooled,
)
from adapters.sql.dialects.folding import SIGNS, one_blank, spelled_out

_DRIVER = "mssql+pyodbc"

_KINDS: Mapping[str, ColumnKind] = {
    **dict.fromkeys(("bigint", "int", "smallint", "tinyint"), ColumnKind.INTEGER),
    **dict.fromkeys(("decimal", "numeric", "money", "smallmoney"), ColumnKind.NUMBER),
    "float": ColumnKind.DOUBLE,
    **dict.fromkeys(("binary", "varbinary"), ColumnKind.BINARY),
    **dict.fromkeys(("image", "text", "ntext", "xml"), ColumnKind.LARGE),
    "real": ColumnKind.SINGLE,
    **dict.fromkeys(("datetime", "smalldatetime"), ColumnKind.TICK_TIME),
    "bit": ColumnKind.BOOLEAN,
    "date": ColumnKind.DATE,
    "datetime2": ColumnKind.FINE_TIME,
    "uniqueidentifier": ColumnKind.UUID,
}
"""By the name of the type; times with an offset are OTHER."""


def _engine(url: URL, config: PoolConfig) -> Engine:
    engine = pooled(
        read_only(url, config), config, connect_args={"timeout": CONNECT_SECONDS}
    )

    @sa.event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        connection.timeout = math.ceil(config.seconds)

    return engine


_READ_ONLY = "ReadOnly"


def read_only(url: URL, config: PoolConfig) -> URL:
    """Return the address with ApplicationIntent=ReadOnly. Raises AddressError.

    The option is added to the connection string of `odbc_connect`, if there is one: the driver
    then ignores the other options of the address.
    """
    if config.schema:
        raise AddressError(
            "SQL Server has no schema of a connection: write it before each table, or set"
            " DEFAULT_SCHEMA of the account, and remove source.schema"
        )
    options = {name.lower(): value for name, value in url.query.items()}
    connection_string = str(options.get("odbc_connect", ""))
    in_string = re.search(r"(?i)ApplicationIntent\s*=\s*(\w+)", connection_string)
    intent = _READ_ONLY
    if "applicationintent" in options:
        intent = str(options["applicationintent"])
    elif in_string:
        intent = in_string[1]
    if intent.lower() != _READ_ONLY.lower():
        raise AddressError(
            "the address sets an ApplicationIntent other than ReadOnly: remove it"
        )
    if connection_string and not in_string:
        extended = f"{connection_string.rstrip(';')};ApplicationIntent={_READ_ONLY}"
        url = url.difference_update_query(["odbc_connect"])
        url = url.update_query_dict({"odbc_connect": extended})
    elif not connection_string and "applicationintent" not in options:
        url = url.update_query_dict({"ApplicationIntent": _READ_ONLY})
    return url.set(drivername=_DRIVER)


_KEYWORD = re.compile(r"\s*([^=;]+)=(\{(?:[^}]|\}\})*\}|[^;]*);?")
_SERVER = re.compile(r"(?:tcp:)?([^,\\]*)", re.IGNORECASE)


def _transport(url: URL) -> DatabaseTransport:
    """Read the connection string; of a keyword that is in it twice the first counts."""
    dialect = url.set(drivername=_DRIVER).get_dialect()()
    (text,), _ = dialect.create_connect_args(url)
    options: dict[str, str] = {}
    for name, value in _KEYWORD.findall(str(text)):
        options.setdefault(name.strip().lower(), value.strip("{} ").lower())
    server = _SERVER.match(options.get("server", ""))
    host = server[1] if server else ""
    if host in (".", "(local)"):
        host = "localhost"
    is_encrypted = options.get("encrypt") in ("yes", "true", "mandatory", "strict")
    trusts_any = options.get("trustservercertificate", "no") not in ("no", "false")
    return DatabaseTransport((host,), is_encrypted and not trusts_any)


def _columns(connection: sa.Connection, rows: str) -> tuple[Column, ...]:
    select = f"SELECT * FROM ({rows}\n) AS pas WHERE 1 = 0"
    described = execute(
        connection,
        "SELECT name, system_type_name, collation_name, is_nullable, error_message"
        " FROM sys.dm_exec_describe_first_result_set(?, NULL, 0)"
        " ORDER BY column_ordinal",
        (select,),
    ).all()
    if any(row[4] for row in described):
        # The SELECT itself fails with the reason.
        execute(connection, select)
    return tuple(
        Column(name, _kind(type_, collation), is_nullable=bool(is_nullable))
        for name, type_, collation, is_nullable, _ in described
    )


def _kind(type_: str, collation: str | None) -> ColumnKind:
    name = type_.partition("(")[0]
    if collation is None or name in _KINDS:
        return _KINDS.get(name, ColumnKind.OTHER)
    return ColumnKind.TEXT if collation.endswith("_BIN2") else ColumnKind.FOLDING


def _exact(text: str) -> str:
    return f"({text} COLLATE Latin1_General_100_BIN2)"


def _uuid_text(column: str) -> str:
    return f"LOWER(CONVERT(CHAR(36), {column}))"


def _time_text(column: str) -> str:
    return f"CONVERT(VARCHAR(33), {column}, 121)"


def _fold(text: Sql) -> Sql:
    """Fold with what SQL Server 2017 has; case and accents by a collation."""
    small = text.call("lower")
    plain = spelled_out(small._replace(sql=_exact(small.sql)))
    marks = f"{SIGNS}{UNSEEN}"
    plain = plain.call("translate", marks, marks[0] * len(marks))
    plain = plain.call("replace", marks[0], "")
    gaps = f"{BLANKS}\t\n\r\u00a0\u2002\u2009\u202f\u3000"
    plain = one_blank(plain.call("translate", gaps, " " * len(gaps)))
    return plain.call("trim").within("(", " COLLATE Latin1_General_100_CI_AI)")


WRITE_GRANT = """
SELECT TOP (1) wanted.privilege + ' ON ' + COALESCE(t.name, 'DATABASE')
FROM (VALUES ('INSERT'), ('UPDATE'), ('DELETE')) AS wanted (privilege)
LEFT JOIN (
  SELECT QUOTENAME(SCHEMA_NAME(schema_id)) + '.' + QUOTENAME(name) AS name FROM sys.tables
) AS t ON HAS_PERMS_BY_NAME(NULL, 'DATABASE', wanted.privilege) = 0
WHERE HAS_PERMS_BY_NAME(NULL, 'DATABASE', wanted.privilege) = 1
   OR HAS_PERMS_BY_NAME(t.name, 'OBJECT', wanted.privilege) = 1
"""

FILTERED = """
SELECT OBJECT_NAME(predicate.target_object_id) FROM sys.security_predicates AS predicate
JOIN sys.security_policies AS policy ON policy.object_id = predicate.object_id
WHERE policy.is_enabled = 1 AND predicate.predicate_type_desc = 'FILTER'
"""

_REFUSALS: Mapping[str, str] = {
    "^(IM002|IM003|01000)": refusals.DRIVER,
    r"\(4060\)|Cannot open database": refusals.DATABASE,
    r"\((18486|18487|18488)\)": refusals.LOCKED,
    r"^28000|\(18456\)": refusals.CREDENTIALS,
    "SSL Provider|certificate": refusals.CERTIFICATE,
    "^HYT0[01]": refusals.SILENT,
    "Error Locating Server|getaddrinfo|0x2AF9": refusals.HOST,
    "0x274D|0x2749|error code 10061|TCP Provider": refusals.PORT,
}
"""By SQLSTATE, the number of the server's error in brackets, or the driver's text."""


DIALECT = Dialect(
    driver=_DRIVER,
    engine=_engine,
    has_included_columns=True,
    pads_bytes=True,
    transport=_transport,
    verifying="Encrypt=yes&TrustServerCertificate=no",
    columns=_columns,
    write_grant=first_text(WRITE_GRANT),
    fold=_fold,
    exact=_exact,
    # A DATETIME has steps of 1/300 second, which no time with microseconds equals.
    marks={
        ColumnKind.TICK_TIME: f"CAST({MARK} AS DATETIME)",
        ColumnKind.FINE_TIME: f"CAST({MARK} AS DATETIME2)",
        ColumnKind.UUID: f"CAST({MARK} AS UNIQUEIDENTIFIER)",
    },
    # The driver would cut such a time to microseconds, and write a UUID in capitals.
    reads={ColumnKind.FINE_TIME: _time_text, ColumnKind.UUID: _uuid_text},
    writes={
        ColumnKind.UUID: _uuid_text,
        ColumnKind.BINARY: lambda column: f"LOWER(CONVERT(VARCHAR(8000), {column}, 2))",
    },
    joint="+",
    substring="substring",
    # A TEXT compares with nothing.
    long="NVARCHAR(4000)",
    # OFFSET … FETCH needs an order, which one row by its id has not.
    top=f"TOP ({MARK}) ",
    limit="",
    filtered=named_in(FILTERED),
    refusals=_REFUSALS,
    timeouts=("HYT00",),
    # Classes 22 (data) and 42 (syntax, names, rights) of ODBC's SQLSTATEs.
    unknowns="(22|42)...",
    missing=(r"Invalid (?:column|object) name '([^']+)'",),
    denied={r"permission was denied on the object '([^']+)'": "GRANT SELECT ON"},
    repeated=r"The column '([^']+)' was specified multiple times",
    folds_names=True,
)
