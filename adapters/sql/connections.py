"""The connections to one database: so many at once, each given to one statement at a time.

SQLAlchemy's pool makes them, sets them up and closes them. Between statements they are
kept here: a way through that pool costs a statement more than a turn does.
"""

from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from sqlalchemy.engine import Engine

from adapters.contract import SourceUnavailableError


class Connections:
    """Up to `most` connections of an engine; `wait` is how long one is waited for."""

    def __init__(self, engine: Engine, most: int, wait: float) -> None:
        self._engine = engine
        self._wait = wait
        self._closed = False
        # The last used comes first; None is one that is still to be made.
        self._free: list[Any] = [None] * most
        # As many turns: this queue costs a tenth of one that keeps an order itself.
        self._turns: SimpleQueue[None] = SimpleQueue()
        for _ in range(most):
            self._turns.put(None)

    def turn(self) -> Any:
        """Return a connection, or None, with which one may be made; to be given back.

        Raises SourceUnavailableError when there is none in time.
        """
        try:
            self._turns.get(timeout=self._wait)
        except Empty as error:
            raise SourceUnavailableError("no connection was free in time") from error
        return self._free.pop()

    def made(self) -> Any:
        """Return a connection for a turn that has brought none; raises what the driver does."""
        return self._engine.raw_connection()

    def give_back(self, connection: Any) -> None:
        """End a turn, with its connection unless that was lost or never made."""
        kept = connection is not None and connection.is_valid
        self._free.append(connection if kept else None)
        self._turns.put(None)
        if self._closed:
            self.close()

    def close(self) -> None:
        """Close them; one that is in use is closed when it is given back."""
        self._closed = True
        idle = []
        with suppress(Empty):
            while True:
                self._turns.get_nowait()
                idle.append(self._free.pop())
        for connection in idle:
            if connection is not None:
                connection.close()
        self._engine.pool.dispose()
        for _ in idle:
            self._free.append(None)
            self._turns.put(None)
