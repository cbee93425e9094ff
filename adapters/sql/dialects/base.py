"""What every dialect says of itself, and the pool that all of them use."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine
from sqlalchemy.pool import QueuePool

from adapters.sql.columns import Column
from adapters.sql.dialects.plans import Origin, Plan
from adapters.sql.dialects.vitals import Vitals
from adapters.sql.idiom import Idiom

CONNECT_SECONDS = 3

GRACE_SECONDS = 1
"""How much longer than a statement may take its answer is waited for."""


class Cursor(Protocol):
    """As much of a DB-API cursor as is used here (PEP 249)."""

    description: Sequence[Any] | None

    def execute(self, statement: str, values: Any = ..., /) -> Any: ...

    def fetchall(self) -> list[Any]: ...


def run(cursor: Cursor, text: str, bound: Any) -> list[Any]:
    """Run a statement and return its rows as the driver reads them."""
    cursor.execute(text, bound)
    return cursor.fetchall()


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of database is spoken to.

    `engine` makes up to so many connections that cannot write, and whose statements end by
    themselves after so many seconds. `columns` reads the columns of a SELECT from the
    database without reading a row. `idiom` is what statements say in words of its own.
    `may_write` tells whether the account itself could change a table. `start` runs before
    each statement. `timed_out` and `unknown` tell a time-out, and a statement that can
    never run, from outages. `fetch` runs a statement and returns its rows; a time that
    Python cannot hold comes as text, a text that is not UTF-8 as bytes.

    Where a database tells it: `refuses` whether an error means that the address names an
    account, a password or a database that it does not take, `plan` how it would run a
    statement, `origins` the table behind each column of a SELECT, `vitals` how it is.
    `text_index` is the statement for an index of words, where there is one.
    """

    engine: Callable[[URL, float, int], Engine]
    columns: Callable[[Cursor, str], tuple[Column, ...]]
    idiom: Idiom
    may_write: Callable[[Cursor], bool]
    start: Callable[[Any], None]
    timed_out: Callable[[BaseException], bool]
    unknown: Callable[[BaseException], bool]
    fetch: Callable[[Any, str, Any], list[Any]] = run
    plan: Callable[[Any, str, Any], Plan] | None = None
    origins: Callable[[Any, str], Mapping[str, Origin]] | None = None
    text_index: str = ""
    vitals: Callable[[Any], Vitals] | None = None
    refuses: Callable[[BaseException], bool] = lambda _error: False


def pooled(url: URL | str, connections: int, **options: Any) -> Engine:
    """Return an engine with a pool of fixed size; who asks it has a turn already."""
    return sa.create_engine(
        url,
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        pool_use_lifo=True,
        pool_reset_on_return=None,
        **options,
    )


def nothing(_connection: Any) -> None:
    """Do nothing before a statement."""
