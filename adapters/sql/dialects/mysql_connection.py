"""Connections of PyMySQL whose every answer ends in time, however it comes.

PyMySQL's own time-outs start anew with each byte: a server, or a network, that lets an answer
drip would hold a thread for minutes.
"""

import io
import ssl
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pymysql.connections import Connection
from pymysql.constants import CR
from pymysql.err import OperationalError

from adapters.names import look_up
from adapters.sql.dialects.base import CONNECT_SECONDS
from adapters.timed import TimedRaw

if TYPE_CHECKING:
    _Connection = Connection[Any]
else:
    _Connection = Connection


class TimedConnection(_Connection):
    """A connection that waits for one answer no longer than for `longest` seconds."""

    longest: float = CONNECT_SECONDS
    _sock: Any
    _is_connected = False
    _ends = 0.0
    _reader: io.BufferedReader | None = None
    _unchecked: ClassVar[ssl.SSLContext | None] = None

    def connect(self, sock: Any = None) -> None:
        """Connect, with all that is said on that occasion, in bounded time."""
        self._ends = time.monotonic() + CONNECT_SECONDS
        self._is_connected = False
        try:
            look_up(self.host, CONNECT_SECONDS)
        except TimeoutError as error:
            raise OperationalError(CR.CR_CONN_HOST_ERROR, str(error)) from error
        super().connect(sock)
        self._is_connected = True

    # What follows is PyMySQL's own: where it sends a command, and what it reads from.

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        if self._is_connected:
            self._ends = time.monotonic() + self.longest
        super()._execute_command(command, sql)  # type: ignore[misc]

    def _create_ssl_ctx(self, options: Mapping[str, Any]) -> ssl.SSLContext:
        """Return how TLS is spoken; who asks for nothing of it shares one with all others.

        PyMySQL would read every authority that the machine knows, at each connection, and
        then check none.
        """
        if options:
            return self._made(options)
        if TimedConnection._unchecked is None:
            TimedConnection._unchecked = self._made({})
        return TimedConnection._unchecked

    def _made(self, options: Mapping[str, Any]) -> ssl.SSLContext:
        made: ssl.SSLContext = super()._create_ssl_ctx(options)  # type: ignore[misc]
        return made

    @property
    def _rfile(self) -> io.BufferedReader | None:
        return self._reader

    @_rfile.setter
    def _rfile(self, file: io.BufferedReader | None) -> None:
        self._reader = None
        if file:
            raw = TimedRaw(file.detach(), self._sock, self._left)
            self._reader = io.BufferedReader(raw)

    def _left(self) -> float:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("the server takes too long")
        return left
