"""One hospital database: its pool of read-only connections, statements run, faults named."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from adapters.contract import (
    AdapterError,
    SourceBusyError,
    SourceDataError,
    SourceTimedOutError,
    SourceUnavailableError,
)
from adapters.lifetime import LIFETIME_SECONDS, end_of_life
from adapters.mapping.model import WAIT_SECONDS, SourceConfig
from adapters.sql.columns import Column
from adapters.sql.dialects import dialect_of
from adapters.sql.dialects.base import (
    AddressError,
    ColumnOrigin,
    PoolConfig,
    Report,
    RowsRead,
    Statement,
)

T = TypeVar("T")
Connection = TypeVar("Connection", PoolProxiedConnection, sa.Connection)
"""A connection of the pool: as its driver made it, or with SQLAlchemy around it."""

COUNTS = 2
"""How many counts may run at once: wide ones cost the hospital most."""

_PORTS = 2**16

_POOLER = (
    "a pooler between the service and the database loses prepared statements: write"
    " `prepared: false` under source (PgBouncer keeps them from 1.21 on, with"
    " max_prepared_statements above 0)"
)


class StatementRefusedError(SourceDataError):
    """The database refused a statement: tables or columns do not match the mapping."""


class _ConnectionLostError(SourceUnavailableError):
    """The connection was lost before or while the statement ran."""


class Database:
    """One hospital database; safe to share between threads.

    Every method raises SourceUnavailableError when the database does not answer,
    SourceBusyError when no connection becomes free in time, and SourceDataError when the
    database refuses the statement, or sends a value that its driver cannot read.
    """

    def __init__(
        self,
        url: str,
        seconds: float,
        connections: int,
        wait: float = WAIT_SECONDS,
        lifetime: float = LIFETIME_SECONDS,
        **session: Any,
    ) -> None:
        """Take more fields of `PoolConfig` as `session`. Raises AddressError."""
        address = read_address(url)
        self._seconds, self._lifetime = seconds, lifetime
        self.dialect = dialect_of(address)
        try:
            self._engine = self.dialect.engine(
                address, PoolConfig(seconds, connections, wait, **session)
            )
        except ImportError as error:
            raise SourceUnavailableError(
                f"the driver for {address.get_backend_name()} cannot be loaded: install"
                f" the extra that docs/run/databases.md names ({error.msg})"
            ) from error
        except (ValueError, sa.exc.ArgumentError) as error:
            raise _invalid_option() from error
        self._driver_error: Any = self._engine.dialect.loaded_dbapi.Error
        self._generation = 0
        self._is_lenient = False
        sa.event.listen(self._engine, "connect", self._opened)
        sa.event.listen(self._engine, "close", self._closed)

    def fetch(self, statement: Statement | sa.Executable) -> Sequence[Any]:
        """Return the rows of a statement."""
        if not isinstance(statement, Statement):
            return self.run(lambda connection: connection.execute(statement).all())
        text, values = self._sent(statement)
        return self._run(
            self._engine.raw_connection, partial(self._rows, text, values), text
        )

    def run(self, question: Callable[[sa.Connection], T]) -> T:
        """Return the answer to a question over one connection; a stale one is replaced."""
        return self._run(self._engine.connect, partial(self._answer, question))

    def columns(self, rows: str) -> tuple[Column, ...]:
        """Return the columns of a SELECT, without reading a row."""
        text = self.dialect.described(rows)
        return self.run(lambda connection: self.dialect.columns(connection, text))

    def rows_read(self, statement: Statement) -> RowsRead | None:
        """Run a statement and return how many rows it read, where the database reports it."""
        sent = self._sent(statement)
        return self.run(lambda connection: self.dialect.rows_read(connection, *sent))

    def origins(self, rows: str) -> Mapping[str, ColumnOrigin]:
        """Return the tables that columns of a SELECT come from, where they are reported."""
        return self._reported(self.dialect.origins, rows)

    def computed(self, rows: str) -> Mapping[str, ColumnOrigin]:
        """Return the tables and expressions of computed columns, where they are reported."""
        return self._reported(self.dialect.computed, rows)

    def _reported(self, report: Report, rows: str) -> Mapping[str, ColumnOrigin]:
        text = self.dialect.described(rows)
        try:
            return self.run(lambda connection: report(connection, text))
        except SourceDataError:
            return {}

    def filtered(self, rows: str) -> Collection[str]:
        """Return the tables of a SELECT of which a policy hides rows from the account."""
        return self.run(lambda connection: self.dialect.filtered(connection, rows))

    def write_grant(self) -> str:
        """Return a privilege by which the account could change a table, "" for none."""
        return self.run(self.dialect.write_grant)

    def server_time(self) -> datetime | None:
        """Return the clock of the server, None for a kind that does not report it."""
        return self.run(self.dialect.server_time)

    def text(self, statement: Statement) -> str:
        """Return the statement as it is sent, values as placeholders."""
        return statement.text(self.dialect.placeholder)

    def close(self) -> None:
        """Close the connections; one that is in use is closed after its statement."""
        self._engine.dispose()

    def _sent(self, statement: Statement) -> tuple[str, tuple[object, ...] | None]:
        # Without values the driver replaces nothing in the text.
        return self.text(statement), statement.values or None

    def _run(
        self,
        connect: Callable[[], Connection],
        question: Callable[[Connection], T],
        text: str = "",
    ) -> T:
        """Return the answer to a question, over a second connection if the first was lost."""
        began = time.monotonic()
        try:
            return self._run_once(connect, question, text)
        except _ConnectionLostError:
            # A database that was restarted fails at once. One that hangs gets no retry.
            if time.monotonic() - began >= self._seconds:
                raise
            return self._run_once(connect, question, text)

    def _run_once(
        self,
        connect: Callable[[], Connection],
        question: Callable[[Connection], T],
        text: str,
    ) -> T:
        connection = self._checked_out(connect)
        try:
            return question(connection)
        except BaseException as error:
            self._raise_fault(error, connection, text)
            # The server may still send rows of this statement.
            connection.invalidate()
            raise
        finally:
            connection.close()

    def _rows(
        self, text: str, values: Any, connection: PoolProxiedConnection
    ) -> Sequence[Any]:
        cursor = connection.info.get("cursor")
        if cursor is None:
            # A new one for each statement would cost a quarter of a short one's time.
            connection.info["cursor"] = cursor = connection.cursor()
        self.dialect.ready(cursor, self._seconds)
        if values is None:
            cursor.execute(text)
        else:
            cursor.execute(text, values)
        rows: Sequence[Any] = cursor.fetchall()
        return rows

    def _answer(
        self, question: Callable[[sa.Connection], T], connection: sa.Connection
    ) -> T:
        cursor = connection.connection.cursor()
        self.dialect.ready(cursor, self._seconds)
        cursor.close()
        return question(connection)

    # Connections

    def _opened(self, connection: Any, entry: ConnectionPoolEntry) -> None:
        entry.info["generation"] = self._generation
        entry.info["ends"] = end_of_life(self._lifetime)
        entry.info["is_lenient"] = self._is_lenient
        if self._is_lenient:
            self.dialect.lenient(connection)

    def _closed(self, _connection: Any, entry: ConnectionPoolEntry) -> None:
        if cursor := entry.info.pop("cursor", None):
            with suppress(self._driver_error):
                cursor.close()

    def _checked_out(self, connect: Callable[[], Connection]) -> Connection:
        """Return a connection within its lifetime, made after the last one that was lost."""
        with self._connecting():
            while True:
                connection = connect()
                is_young = time.monotonic() < connection.info["ends"]
                if is_young and connection.info["generation"] == self._generation:
                    return connection
                connection.invalidate()
                connection.close()

    @contextmanager
    def _connecting(self) -> Iterator[None]:
        """Raise the error that says why a connection cannot be made."""
        try:
            yield
        except sa.exc.TimeoutError as error:
            raise SourceBusyError("no connection was free in time") from error
        except (sa.exc.DBAPIError, self._driver_error) as error:
            cause = getattr(error, "orig", None) or error
            if (option := self.dialect.invalid_option(cause)) is not None:
                raise _invalid_option(option) from cause
            raise self._unavailable("no connection to the database", cause) from cause
        except OSError as error:
            # This may pass: a certificate is replaced while the service reads it.
            raise SourceUnavailableError(
                f"a file that the address names cannot be read ({error.strerror})"
            ) from error
        except (
            AttributeError,
            TypeError,
            ValueError,
            NotImplementedError,
        ) as error:
            raise _invalid_option() from error

    def _raise_fault(
        self,
        error: BaseException,
        connection: PoolProxiedConnection | sa.Connection,
        text: str,
    ) -> None:
        """Raise the AdapterError that an error of the driver or of SQLAlchemy stands for.

        Return for all other errors. A connection that the fault makes unusable is invalidated.
        """
        cause = error
        if isinstance(error, sa.exc.DBAPIError):
            cause = error.orig or error
            is_lost = error.connection_invalidated
            text = error.statement or text
        elif isinstance(error, self._driver_error):
            driver = getattr(connection, "dbapi_connection", None)
            is_lost = self._engine.dialect.is_disconnect(error, driver, None)
        elif isinstance(error, sa.exc.InvalidRequestError):
            missing = "the database has no such table or schema"
            raise SourceDataError(missing) from error
        elif isinstance(error, (ValueError, NotImplementedError)):
            # The driver stopped amid the rows: the next statement would get the rest of them.
            connection.invalidate()
            unread = f"the driver cannot read a value ({type(error).__name__})"
            raise SourceDataError(unread) from error
        else:
            return

        is_pooler = self.dialect.code(cause) in self.dialect.pooler
        is_unread = self.dialect.unread(cause) and not connection.info["is_lenient"]
        if is_unread:
            self._is_lenient = True
        fault: AdapterError
        if is_pooler and not is_lost:
            # The name may stand for the prepared statement of another client.
            fault = SourceDataError(_POOLER)
            fault.reason = _POOLER
        elif is_lost or is_unread or self.dialect.replans(cause):
            # All connections of the pool are replaced: a server that restarted has closed them.
            self._generation += 1
            by = " by the pooler" if is_pooler else ""
            fault = _ConnectionLostError(f"the connection was lost{by}")
        else:
            fault = self._fault(cause)

        reasons = (self.dialect.reason(cause, text), fault.reason)
        fault.reason = ": ".join(filter(None, reasons))
        if is_pooler or isinstance(fault, SourceUnavailableError):
            # Its driver may have given the connection up: no rollback, no reuse.
            connection.invalidate()
        raise fault from cause

    def _fault(self, error: BaseException) -> AdapterError:
        """Return the fault of a statement that failed while its connection was not lost."""
        kind = type(error).__name__
        if self.dialect.timed_out(error):
            return SourceTimedOutError("the statement took too long")
        if self.dialect.unknown(error):
            text = f"the database refused the statement ({kind})"
            if str(getattr(error, "sqlstate", "")).startswith("22"):
                text += ": an expression of the SELECT fails on the value of a row"
            return StatementRefusedError(text)
        return self._unavailable(f"the database failed ({kind})", error)

    def _unavailable(self, text: str, error: BaseException) -> SourceUnavailableError:
        """Return the error of a database that does not answer, with the reason if known."""
        reason = self.dialect.refusal(error)
        unavailable = SourceUnavailableError(f"{text}: {reason}" if reason else text)
        unavailable.reason = reason
        return unavailable


def open_databases(source: SourceConfig) -> tuple[Database, Database]:
    """Return the database for pages and that for counts; neither is connected yet.

    Raises SourceDataError, with the place of the source in its file, for an address that
    cannot be read, of an unknown kind, or whose driver is not installed.
    """
    return (
        open_database(source, source.timeout_seconds, source.connections),
        open_database(source, source.count_timeout_seconds, COUNTS),
    )


def open_database(source: SourceConfig, seconds: float, connections: int) -> Database:
    """Return the database of a source, which is not connected yet; as `open_databases`."""
    try:
        return Database(
            source.url,
            seconds,
            connections,
            source.wait_seconds,
            source.lifetime_seconds,
            account_seconds=min(source.timeout_seconds, source.count_timeout_seconds),
            schema=source.schema,
            prepared=source.prepared,
        )
    except AdapterError as error:
        raise SourceDataError(f"{source.mark}: {error}") from error


def read_address(url: str) -> URL:
    """Return the address of a database; raises AddressError."""
    try:
        address = make_url(url)
    except (ValueError, sa.exc.ArgumentError):
        # Their messages may quote a part of a password that contains @ or :.
        raise AddressError(
            "the address cannot be read: signs like @ : / in a password are written"
            " as %40 %3A %2F"
        ) from None
    if address.port is not None and not 0 < address.port < _PORTS:
        raise AddressError(f"the address has an invalid port: use 1 to {_PORTS - 1}")
    return address


def _invalid_option(name: str = "") -> AddressError:
    """Return the error of an address with an option, or a value of it, that is refused.

    Only names that the driver knows are quoted: the rest may be a part of a password.
    """
    if name:
        return AddressError(
            f"the address has a value of {name} that the driver does not accept"
        )
    return AddressError("the address has an option that the driver does not accept")
