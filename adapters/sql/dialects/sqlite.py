"""SQLite: a file opened for reading, with a deadline for each statement."""

import sqlite3
import time
from functools import partial
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine

from adapters.folding import fold
from adapters.sql.columns import Column, ColumnKind, UnreadText
from adapters.sql.dialects import refusals
from adapters.sql.dialects.base import (
    AddressError,
    Dialect,
    PoolConfig,
    execute,
    pooled,
)


def _engine(url: URL, config: PoolConfig) -> Engine:
    _refuse_options(url, config)
    name = url.database or ""
    file = name if name.startswith("file:") else f"file:{quote(name)}"
    read_only = URL.create(
        "sqlite", database=file, query={**url.query, "mode": "ro", "uri": "true"}
    )
    engine = pooled(
        read_only,
        config,
        connect_args={"timeout": config.seconds, "check_same_thread": False},
    )

    @sa.event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, _record: Any) -> None:
        ((encoding,),) = connection.execute("PRAGMA encoding").fetchall()
        folding = partial(_fold, _CODECS[encoding])
        connection.create_function("encounters_fold", 1, folding, deterministic=True)
        connection.text_factory = _text_or_bytes

    return engine


_OF_FILES = frozenset({"cache", "immutable", "mode", "nolock", "psow", "uri", "vfs"})
"""The options of sqlite.org/uri.html, and `uri`, which says that the address has some."""


def _refuse_options(url: URL, config: PoolConfig) -> None:
    if url.query.keys() - _OF_FILES:
        # Unknown names are not quoted: they may be a part of something secret.
        known = ", ".join(sorted(_OF_FILES))
        raise AddressError(f"the address has an unknown option: use {known}")
    if url.query.get("mode", "ro") != "ro":
        raise AddressError("the address sets another mode than ro: remove it")
    if config.schema:
        raise AddressError("a file has no schema: remove source.schema")


def _ready(cursor: sqlite3.Cursor, seconds: float) -> None:
    # The statement timeout that SQLite lacks.
    deadline = time.monotonic() + seconds
    cursor.connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)


_CODECS = {"UTF-8": "utf-8", "UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}


def _fold(codec: str, text: bytes | None) -> str | None:
    # As bytes: SQLite cannot call Python with a text that is not valid.
    return None if text is None else fold(text.decode(codec, "replace"))


def _text_or_bytes(cell: bytes) -> str | UnreadText:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return UnreadText(cell)


def _exact(text: str) -> str:
    return f"({text} COLLATE BINARY)"


def _columns(connection: sa.Connection, rows: str) -> tuple[Column, ...]:
    # Only a statement that reads notices tables changed since the connection was opened;
    # the PRAGMA below does not.
    execute(connection, "SELECT COUNT(*) FROM main.sqlite_master").close()
    # A view has the declared types of its columns, which a cursor does not report.
    execute(connection, "DROP VIEW IF EXISTS temp.encounters_columns")
    execute(connection, f"CREATE TEMP VIEW encounters_columns AS {rows}")
    described = execute(connection, "PRAGMA temp.table_info(encounters_columns)").all()
    folding = _folding(connection, rows, len(described))
    names = _selected([str(row[1]) for row in described], rows)
    return tuple(
        Column(name, ColumnKind.FOLDING if folds else _kind(str(row[2]).upper()))
        for name, row, folds in zip(names, described, folding, strict=True)
    )


def _selected(names: list[str], rows: str) -> list[str]:
    """Return the names of a view as the SELECT has them: a second 'id' is 'id:1' there."""
    first_names = {name.lower(): name for name in reversed(names)}
    selected = []
    for name in names:
        without_number = name.lower().rpartition(":")[0]
        first = first_names.get(without_number)
        if first and name not in rows:
            selected.append(first)
        else:
            selected.append(name)
    return selected


def _folding(connection: sa.Connection, rows: str, size: int) -> tuple[bool, ...]:
    """Return for each column whether its collation is NOCASE, which no PRAGMA reports."""
    # One row of the letter A: by UNION ALL it has the collations of the SELECT. A column that
    # equals a is compared without case.
    names = ", ".join(f"c{index}" for index in range(size))
    letters = ", ".join(["'A'"] * size)
    comparisons = ", ".join(f"c{index} = 'a'" for index in range(size))
    row = execute(
        connection,
        f"WITH letters ({names}) AS (SELECT * FROM (SELECT * FROM ({rows}\n) LIMIT 0)"
        f" UNION ALL SELECT {letters}) SELECT {comparisons} FROM letters",
    ).one()
    return tuple(map(bool, row))


def _kind(declared: str) -> ColumnKind:
    """Return the kind by SQLite's own rules of affinity (sqlite.org/datatype3.html, 3.1)."""
    if any(part in declared for part in ("CHAR", "CLOB", "TEXT", "DATE", "TIME")):
        return ColumnKind.TEXT
    if any(part in declared for part in ("INT", "NUM", "DEC", "BOOL")):
        return ColumnKind.INTEGER
    if any(part in declared for part in ("REAL", "FLOA", "DOUB")):
        return ColumnKind.DOUBLE
    return ColumnKind.LOOSE


def _code(error: BaseException) -> str:
    # Errors of the file are of these classes. Those of other classes are the statement's fault.
    is_of_file = type(error) in (sqlite3.OperationalError, sqlite3.DatabaseError)
    return getattr(error, "sqlite_errorname", "") if is_of_file else "SQLITE_ERROR"


DIALECT = Dialect(
    driver="sqlite",
    engine=_engine,
    ready=_ready,
    columns=_columns,
    # The file is opened for reading, whatever the account may do.
    write_grant=lambda _connection: "",
    fold=lambda text: text.within("CAST(", " AS BLOB)").call("encounters_fold"),
    exact=_exact,
    clock=lambda now: (f"{now:%Y-%m-%d %H:%M:%S}", f"{now:%Y-%m-%d}"),
    code=_code,
    timeouts=("SQLITE_INTERRUPT",),
    refusals={
        "CANTOPEN|unable to open|IOERR": refusals.FILE,
        "NOTADB": refusals.NO_DATABASE_FILE,
    },
    # The statement's own fault; the others are the file's or its disk's.
    unknowns="SQLITE_ERROR",
    missing=(r"no such (?:column|table): (\S+)",),
    folds_names=True,
    has_texts_in_numbers=True,
)
