"""Statements run: compiled once a shape, on a pooled read-only connection, faults named.

The compiled text goes to a plain DB-API cursor, each statement its own transaction:
SQLAlchemy's own execution costs two to four times as much a row.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import sqlalchemy as sa

from adapters.contract import (
    AdapterError,
    SourceDataError,
    SourceUnavailableError,
)
from adapters.errors import SourceTimedOutError
from adapters.mapping.model import WAIT_SECONDS, SourceConfig
from adapters.outward import Kind, outward
from adapters.sql.addresses import address, is_of_the_driver, odd_option
from adapters.sql.columns import Column
from adapters.sql.connections import Connections
from adapters.sql.dialects import Cursor, dialect_of
from adapters.sql.dialects.plans import Origin, Plan
from adapters.sql.dialects.vitals import Vitals
from adapters.sql.statements import Shape, Statement, compile_shape

Answer = TypeVar("Answer")

COUNTS = 2
"""How many counts may run at once: wide ones cost the hospital most."""

_REFUSED = (
    "the database took no connection: it refuses the account, its password or the name of"
    " the database"
)

_CURSOR = "cursor"
_SHAPES = 512
"""How many compiled statements are kept."""


class Database:
    """One hospital database; safe to share between threads.

    Every method raises SourceUnavailableError when the database does not answer and
    SourceDataError when it does not know what it is asked for.
    """

    def __init__(
        self,
        url: str,
        seconds: float,
        connections: int,
        wait: float = WAIT_SECONDS,
    ) -> None:
        read = address(url)
        self._seconds = seconds
        self._dialect = dialect_of(read)
        try:
            self._engine = self._dialect.engine(read, seconds, connections)
        except ImportError as error:
            raise SourceUnavailableError(
                f"the driver for {read.get_backend_name()} cannot be loaded: install"
                f" the extra that docs/operators.md names ({error.msg})"
            ) from error
        except (ValueError, sa.exc.ArgumentError) as error:
            raise odd_option() from error
        self._connections = Connections(self._engine, connections, wait)
        self._compile = lru_cache(_SHAPES)(self._compile_shape)

    def fetch(
        self, shape: Shape, values: tuple[object, ...], limit: int | None = None
    ) -> list[Any]:
        """Return the rows of a statement as tuples."""
        statement = self._compile(shape)
        bound = statement.bind(values, limit)
        text = statement.text
        with outward(Kind.STORE, self._engine.dialect.name, "SELECT"):
            return self._ask(lambda cursor: self._dialect.fetch(cursor, text, bound))

    def columns(self, rows: str) -> tuple[Column, ...]:
        """Return the columns of a SELECT, without reading a row."""
        return self._ask(lambda cursor: self._dialect.columns(cursor, rows))

    @property
    def tells_plans(self) -> bool:
        """Whether this kind of database is asked how it runs a statement."""
        return self._dialect.plan is not None

    def plan(
        self, shape: Shape, values: tuple[object, ...], limit: int | None = None
    ) -> Plan:
        """Return how the database would run a statement, where it tells plans."""
        plan = self._dialect.plan
        assert plan is not None, "who asks has looked at tells_plans"
        statement = self._compile(shape)
        bound = statement.bind(values, limit)
        return self._ask(lambda cursor: plan(cursor, statement.text, bound))

    def origins(self, rows: str) -> Mapping[str, Origin]:
        """Return the tables that columns of a SELECT come from, as far as it is told."""
        origins = self._dialect.origins
        try:
            return self._ask(lambda cursor: origins(cursor, rows)) if origins else {}
        except SourceDataError:
            return {}

    def text_index(self, origin: Origin) -> str:
        """Return what makes an index that finds parts of the texts of a column, or ""."""
        name = origin.index_name(origin.column, "parts")
        return self._dialect.text_index.format(name=name, **origin._asdict())

    def may_write(self) -> bool:
        """Tell whether the account that is used here could change a table elsewhere."""
        return self._ask(self._dialect.may_write)

    def vitals(self) -> Vitals | None:
        """Return how the database is, None for a kind that is not asked."""
        vitals = self._dialect.vitals
        return self._ask(vitals) if vitals else None

    def ask(self, question: Callable[[sa.Connection], Answer]) -> Answer:
        """Return what a question finds out over one connection, by SQLAlchemy's means.

        For tools: what clients ask for goes the faster way.
        """
        connection = self._connections.turn()
        try:
            if connection is not None:
                # To the engine's pool, where its own connections come from.
                connection.close()
            with self._connecting():
                asked = self._engine.connect()
            with asked:
                self._dialect.start(asked.connection)
                return question(asked)
        except sa.exc.DBAPIError as error:
            raise self._fault(error.orig or error) from error
        except sa.exc.InvalidRequestError as error:
            raise SourceDataError("the database has no such table or schema") from error
        finally:
            self._connections.give_back(None)

    def _ask(self, question: Callable[[Cursor], Answer]) -> Answer:
        began = time.monotonic()
        try:
            return self._ask_once(question)
        except _StaleConnectionError:
            # The database may have been restarted since the connection was last used;
            # then it shows at once. One that stands still is not waited for twice.
            if time.monotonic() - began >= self._seconds:
                raise
            return self._ask_once(question)

    def _ask_once(self, question: Callable[[Cursor], Answer]) -> Answer:
        connection, cursor = self._connections.turn(), None
        try:
            if connection is None:
                connection = self._connect()
            self._dialect.start(connection)
            # One goes with each connection: drivers learn in it how rows are read.
            cursor = connection.info.pop(_CURSOR, None) or connection.cursor()
            answer = question(cursor)
            connection.info[_CURSOR] = cursor
            return answer
        except self._engine.dialect.loaded_dbapi.Error as error:
            if self._engine.dialect.is_disconnect(error, connection, cursor):
                connection.invalidate()
                raise _StaleConnectionError("the connection was lost") from error
            raise self._fault(error) from error
        finally:
            self._connections.give_back(connection)

    def text(self, shape: Shape) -> str:
        """Return the statement as it is sent, values as placeholders."""
        return self._compile(shape).text

    def legend(self, shape: Shape, values: tuple[object, ...], limit: int) -> str:
        """Return what each placeholder of a statement stands for, a line each."""
        bound = self._compile(shape).bind(values, limit)
        named = bound.items() if isinstance(bound, dict) else enumerate(bound, 1)
        return "\n".join(f"-- {name}: {value!r}" for name, value in named)

    def close(self) -> None:
        """Close the connections; one that is in use is closed when its answer is in."""
        self._connections.close()

    def _compile_shape(self, shape: Shape) -> Statement:
        return compile_shape(shape, self._engine.dialect, self._dialect.idiom)

    def _connect(self) -> Any:
        with self._connecting():
            return self._connections.made()

    @contextmanager
    def _connecting(self) -> Iterator[None]:
        """Name what keeps a connection from being made."""
        try:
            yield
        except (sa.exc.DBAPIError, self._engine.dialect.loaded_dbapi.Error) as error:
            if is_of_the_driver(error):
                raise odd_option() from error
            is_refused = self._dialect.refuses(getattr(error, "orig", None) or error)
            text = _REFUSED if is_refused else "the database took no connection"
            raise SourceUnavailableError(text) from error
        except OSError as error:
            # A certificate may be renewed just now.
            raise SourceUnavailableError(
                f"a file that the address names cannot be read ({error.strerror})"
            ) from error
        except (AttributeError, TypeError, ValueError) as error:
            raise odd_option() from error

    def _fault(self, error: BaseException) -> AdapterError:
        kind = type(error).__name__
        if self._dialect.timed_out(error):
            return SourceTimedOutError("the statement took too long")
        if self._dialect.unknown(error):
            return SourceDataError(f"the database refused the statement ({kind})")
        return SourceUnavailableError(f"the database failed ({kind})")


def open_databases(source: SourceConfig) -> tuple[Database, Database]:
    """Return the connections for pages and those for counts; none is made yet.

    Raises SourceDataError, with the place of the source in its file, for an address that
    is none, of a kind that is not known, or whose driver is not installed.
    """
    wait = source.wait_seconds
    try:
        return (
            Database(source.url, source.timeout_seconds, source.connections, wait),
            Database(source.url, source.count_timeout_seconds, COUNTS, wait),
        )
    except AdapterError as error:
        raise SourceDataError(f"{source.mark}: {error}") from error


class _StaleConnectionError(SourceUnavailableError):
    """The connection was lost before or while the statement ran."""
