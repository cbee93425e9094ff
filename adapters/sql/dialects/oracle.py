"""Oracle, by python-oracledb: read-only transactions, calls with a timeout.

Written from Oracle's documentation and tested with golden files; docs/run/databases.md says what
has not been tried on a server.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine

from adapters.mapping.slots import LONGEST_ID
from adapters.sql.columns import Column, ColumnKind
from adapters.sql.dialects import refusals
from adapters.sql.dialects.base import (
    CONNECT_SECONDS,
    MARK,
    DatabaseTransport,
    Dialect,
    PoolConfig,
    Sql,
    description,
    first_text,
    named_in,
    pooled,
)
from adapters.sql.dialects.folding import translated

_DRIVER = "oracle+oracledb"

_KINDS = {
    "DB_TYPE_VARCHAR": ColumnKind.FILLED,
    "DB_TYPE_NVARCHAR": ColumnKind.FILLED,
    "DB_TYPE_CHAR": ColumnKind.PADDED,
    "DB_TYPE_NCHAR": ColumnKind.PADDED,
    "DB_TYPE_BINARY_INTEGER": ColumnKind.INTEGER,
    "DB_TYPE_BINARY_DOUBLE": ColumnKind.DOUBLE,
    "DB_TYPE_BINARY_FLOAT": ColumnKind.SINGLE,
    "DB_TYPE_RAW": ColumnKind.BINARY,
    **dict.fromkeys(
        ("DB_TYPE_BLOB", "DB_TYPE_CLOB", "DB_TYPE_NCLOB"), ColumnKind.LARGE
    ),
    **dict.fromkeys(("DB_TYPE_LONG", "DB_TYPE_LONG_RAW"), ColumnKind.LARGE),
    "DB_TYPE_BOOLEAN": ColumnKind.BOOLEAN,
    "DB_TYPE_DATE": ColumnKind.SECOND_TIME,
    "DB_TYPE_TIMESTAMP": ColumnKind.FINE_TIME,
}
"""By the name of the driver's type; times with a zone come without it, and are OTHER."""

_SESSION = (
    "ALTER SESSION SET TIME_ZONE = 'UTC' NLS_COMP = 'BINARY' NLS_SORT = 'BINARY'"
    " NLS_NUMERIC_CHARACTERS = '. '"
)


def _engine(url: URL, config: PoolConfig) -> Engine:
    timeout = "tcp_connect_timeout"
    engine = pooled(
        url.set(drivername=_DRIVER),
        config,
        isolation_level=None,
        pool_reset_on_return="rollback",
        connect_args={} if timeout in url.query else {timeout: CONNECT_SECONDS},
    )

    @sa.event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        connection.call_timeout = round(config.seconds * 1000)
        connection.inputtypehandler = _whole_times
        with connection.cursor() as cursor:
            cursor.execute(session(config))

    return engine


def session(config: PoolConfig) -> str:
    """Return the statement that prepares a session."""
    if not config.schema:
        return _SESSION
    # As everywhere in a mapping, a name in small letters is one without quotes.
    name = config.schema.upper() if config.schema.islower() else config.schema
    quoted = name.replace('"', "")
    return f'{_SESSION} CURRENT_SCHEMA = "{quoted}"'


def _ready(cursor: Any, _seconds: float) -> None:
    # The pool has ended the transaction before this one.
    cursor.execute("SET TRANSACTION READ ONLY")


_PROTOCOL = re.compile(r"\(PROTOCOL=(\w+)\)|^(\w+)://", re.IGNORECASE)


def _transport(url: URL) -> DatabaseTransport:
    # SQLAlchemy connects to host and port by TCP alone; other protocols need a `dsn`.
    dsn = re.sub(r"\s", "", str(url.query.get("dsn", "")))
    protocols = {
        (of_descriptor or of_url).lower()
        for of_descriptor, of_url in _PROTOCOL.findall(dsn)
    }
    is_verified = not url.host and protocols == {"tcps"}
    return DatabaseTransport((url.host or dsn,), is_verified)


def _whole_times(cursor: Any, value: object, rows: int) -> Any:
    """Bind times with their fractions: by default the driver sends whole seconds."""
    # Imported late: this module is also loaded where the driver is not installed.
    from oracledb import DB_TYPE_TIMESTAMP

    if isinstance(value, datetime):
        return cursor.var(DB_TYPE_TIMESTAMP, arraysize=rows)
    return None


_ENCODINGS = {
    "US7ASCII": "ascii",
    "WE8ISO8859P1": "iso8859-1",
    "WE8ISO8859P15": "iso8859-15",
    "WE8MSWIN1252": "cp1252",
    "EE8ISO8859P2": "iso8859-2",
    "EE8MSWIN1250": "cp1250",
    "CL8MSWIN1251": "cp1251",
}
"""The codecs of character sets that do not hold all characters, by their names.

The server would make similar characters of others in a value that is bound.
"""

_OF_UNICODE = ("DB_TYPE_NVARCHAR", "DB_TYPE_NCHAR", "DB_TYPE_NCLOB")
"""Texts in the national character set, which holds all characters."""

_CHARACTERS = """
SELECT value FROM nls_database_parameters WHERE parameter = 'NLS_CHARACTERSET'
"""


def _columns(connection: sa.Connection, rows: str) -> tuple[Column, ...]:
    encoding = _ENCODINGS.get(first_text(_CHARACTERS)(connection), "")
    return tuple(_column(encoding, *column) for column in description(connection, rows))


def _column(encoding: str, name: str, type_: Any, *size: Any) -> Column:
    """Return a column from the driver's description of it.

    `encoding` is the codec of the texts that are not in the national character set.
    """
    # A name without quotes is in capitals here, and in small letters in the mapping.
    if name.isupper():
        name = name.lower()
    *_, scale, is_nullable = size
    kind = _KINDS.get(type_.name, ColumnKind.OTHER)
    if type_.name == "DB_TYPE_NUMBER":
        kind = ColumnKind.INTEGER if scale == 0 else ColumnKind.NUMBER
    if type_.name in _OF_UNICODE:
        encoding = ""
    return Column(name, kind, is_nullable=bool(is_nullable), encoding=encoding)


_FINE = "YYYY-MM-DD HH24:MI:SS.FF9"


def _fold(text: Sql) -> Sql:
    parts = text.call("lower").call("decompose", "COMPATIBILITY")
    return translated(parts.call("lower")).call("compose")


WRITE_GRANT = """
SELECT privilege FROM (
  SELECT privilege FROM session_privs
  WHERE privilege IN ('INSERT ANY TABLE', 'UPDATE ANY TABLE', 'DELETE ANY TABLE')
  UNION ALL SELECT privilege || ' ON ' || owner || '.' || table_name
  FROM user_tab_privs_recd WHERE privilege IN ('INSERT', 'UPDATE', 'DELETE')
  UNION ALL SELECT privilege || ' ON ' || owner || '.' || table_name || ' TO ' || role
  FROM role_tab_privs WHERE privilege IN ('INSERT', 'UPDATE', 'DELETE')
  UNION ALL SELECT 'OWNER OF ' || table_name FROM user_tables)
FETCH FIRST 1 ROWS ONLY
"""

FILTERED = """
SELECT object_name FROM all_policies WHERE enable = 'YES' AND sel = 'YES'
"""

_REFUSALS: Mapping[str, str] = {
    "ORA-(01017|1017)": refusals.CREDENTIALS,
    "ORA-(28000|28001)": refusals.LOCKED,
    "ORA-01045": refusals.NO_RIGHT,
    "ORA-(12514|12505)|DPY-600[13]": refusals.DATABASE,
    "ORA-(12541|12516|12519|12520)": refusals.PORT,
    "ORA-12545": refusals.HOST,
    "ORA-(12170|12535)": refusals.SILENT,
    "ORA-(00018|00020|12518)": refusals.FULL,
    "ORA-(01033|01034|01089|01090)": refusals.STARTING,
    "ORA-(28759|28860|28865|29024)": refusals.CERTIFICATE,
}
"""By the code of the server or the driver; DPY-6005 has the cause in its text."""


def _code(error: BaseException) -> str:
    return str(getattr(error.args[0] if error.args else None, "full_code", ""))


DIALECT = Dialect(
    driver=_DRIVER,
    placeholder=":v",
    engine=_engine,
    ready=_ready,
    transport=_transport,
    verifying="dsn=tcps://host:2484/service in place of a host",
    columns=_columns,
    write_grant=first_text(WRITE_GRANT),
    fold=_fold,
    some_time="TIMESTAMP '2000-01-01 00:00:00'",
    # CHAR equals VARCHAR2 only blank for blank, but CHAR of any length; and DATE has no
    # index for a TIMESTAMP.
    marks={
        ColumnKind.PADDED: f"CAST({MARK} AS CHAR(2000))",
        ColumnKind.SECOND_TIME: f"CAST({MARK} AS DATE)",
        ColumnKind.FINE_TIME: f"TO_TIMESTAMP({MARK}, '{_FINE}')",
    },
    # The driver would cut such a time to microseconds.
    reads={ColumnKind.FINE_TIME: lambda column: f"TO_CHAR({column}, '{_FINE}')"},
    writes={ColumnKind.BINARY: lambda column: f"LOWER(RAWTOHEX({column}))"},
    # A CLOB compares with nothing.
    long="VARCHAR2(4000)",
    short=f"VARCHAR2({LONGEST_ID} CHAR)",
    limit=f"\nFETCH FIRST {MARK} ROWS ONLY",
    code=_code,
    # Of the driver without and with Oracle's own client.
    timeouts=("DPY-4024", "DPI-1067", "ORA-01013"),
    filtered=named_in(FILTERED),
    refusals=_REFUSALS,
    # ORA-00900 to 00999: syntax, names, and columns that are two.
    unknowns="ORA-(009..|01031|01722|12704|18014)",
    # ORA-00942 does not say which table, nor whether it is missing or denied.
    repeated=r"ORA-00918: (\S+?):? column ambiguously",
    missing=(r"ORA-00904: ([\w.$#\"]+): invalid identifier",),
)
