"""SQLite: a file opened for reading, with a clock of our own for its statements."""

import sqlite3
import time
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine

from adapters.sql.columns import Column, Kind
from adapters.sql.dialects.base import Cursor, Dialect, pooled, run
from adapters.sql.dialects.origins import sqlite_origins
from adapters.sql.dialects.plans import sqlite_plan
from adapters.sql.dialects.vitals import sqlite_vitals
from adapters.sql.idiom import Idiom, Text, read_back
from adapters.words import fold


def _engine(url: URL, seconds: float, connections: int) -> Engine:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(url.database or '')}?mode=ro",
            uri=True,
            timeout=seconds,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.create_function("encounters_fold", 1, _fold, deterministic=True)
        return connection

    engine = pooled("sqlite://", connections, creator=connect)

    @sa.event.listens_for(engine, "connect")
    def add_deadline(connection: sqlite3.Connection, record: Any) -> None:
        record.info["deadline"] = deadline = _Deadline(seconds)
        connection.set_progress_handler(deadline.passed, 10_000)

    return engine


class _Deadline:
    """SQLite has no time-out for a statement; its progress handler can be one."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at = 0.0

    def start(self) -> None:
        self._at = time.monotonic() + self._seconds

    def passed(self) -> bool:
        return time.monotonic() > self._at


def _fold(text: object) -> str | None:
    return None if text is None else fold(str(text))


def _exact(text: Text) -> Text:
    return text.collate("BINARY")


def _fetch(cursor: Any, text: str, bound: Any) -> list[Any]:
    try:
        return run(cursor, text, bound)
    except sqlite3.OperationalError as error:
        if not str(error).startswith("Could not decode to UTF-8"):
            raise
    # Only now: a row that has no such text is read without a call for each cell.
    cursor.connection.text_factory = _text_or_bytes
    try:
        return run(cursor, text, bound)
    finally:
        cursor.connection.text_factory = str


def _text_or_bytes(cell: bytes) -> str | bytes:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return cell


def _columns(cursor: Cursor, rows: str) -> tuple[Column, ...]:
    # Tables that somebody changed since this connection was opened are read anew only
    # by a statement that reads; the PRAGMA below does not.
    cursor.execute("SELECT COUNT(*) FROM main.sqlite_master")
    # A view keeps the declared types of its columns, which a cursor does not tell.
    cursor.execute("DROP VIEW IF EXISTS temp.encounters_columns")
    cursor.execute(f"CREATE TEMP VIEW encounters_columns AS {rows}")
    cursor.execute("PRAGMA temp.table_info(encounters_columns)")
    described = [(row[1], str(row[2]).upper()) for row in cursor.fetchall()]
    cursor.execute("DROP VIEW temp.encounters_columns")
    columns = [Column(name, _kind(type_)) for name, type_ in described]
    folding = _folding(cursor, rows, len(columns))
    return tuple(
        Column(column.name, Kind.FOLDING) if folds else column
        for column, folds in zip(columns, folding, strict=True)
    )


def _folding(cursor: Cursor, rows: str, size: int) -> tuple[bool, ...]:
    """Return for each column whether its collation is NOCASE, which no PRAGMA tells."""
    # One row of letters, which takes the collations of the SELECT above it.
    names = ", ".join(f"c{place}" for place in range(size))
    letters = ", ".join("'A'" for _ in range(size))
    told = ", ".join(f"c{place} = 'a'" for place in range(size))
    cursor.execute(
        f"WITH told ({names}) AS (SELECT * FROM (SELECT * FROM ({rows}\n) LIMIT 0)"
        f" UNION ALL SELECT {letters}) SELECT {told} FROM told"
    )
    (row,) = cursor.fetchall()
    return tuple(map(bool, row))


def _kind(declared: str) -> Kind:
    """Tell the kind by SQLite's own rules of affinity (sqlite.org/datatype3.html, 3.1)."""
    if any(part in declared for part in ("CHAR", "CLOB", "TEXT", "DATE", "TIME")):
        return Kind.TEXT
    if any(part in declared for part in ("INT", "NUM", "DEC", "BOOL")):
        return Kind.INTEGER
    return Kind.LOOSE


def _unknown(error: BaseException) -> bool:
    # SQLITE_ERROR is the statement's own fault; the others are the file's or its disk's.
    code = getattr(error, "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_ERROR or not isinstance(
        error, sqlite3.OperationalError
    )


DIALECT = Dialect(
    engine=_engine,
    columns=_columns,
    idiom=Idiom(
        fold=lambda text: sa.func.encounters_fold(text),
        exact=_exact,
        reads={Kind.INTEGER: read_back(sa.BigInteger(), _exact)},
    ),
    # The file is opened for reading, whatever its owner may do.
    may_write=lambda _cursor: False,
    start=lambda connection: connection.info["deadline"].start(),
    timed_out=lambda error: str(error) == "interrupted",
    unknown=_unknown,
    fetch=_fetch,
    plan=sqlite_plan,
    origins=sqlite_origins,
    vitals=sqlite_vitals,
)
