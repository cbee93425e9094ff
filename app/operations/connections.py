"""Connections of a gunicorn worker: requests come in, and goodbyes are said, without threads.

gunicorn gives a thread to every connection that shows a first byte, and waits there, for
ever, for the others; and it waits in its one loop, two seconds each, for clients to close. A
few clients that stall would hold all of it. Here the loop itself takes what comes, whenever
it comes: a thread gets a request that is there, and the loop never waits for anybody.
"""

import math
import select
import selectors
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from enum import Enum, auto
from threading import local
from typing import Any, NoReturn, Self

from gunicorn import http, util
from gunicorn.http import errors
from gunicorn.sock import ssl_wrap_socket
from gunicorn.workers.gthread import TConn

from app.operations.arrival import Arrival

GO_AHEAD = b"HTTP/1.1 100 Continue\r\n\r\n"
READ_BYTES = 16384
"""How much is taken at once: a record of TLS is that long at most (RFC 8446, 5.1).

What is left of a record shows at no poll. More would be asked of malloc for each request, and
leave holes: with 64 KB they were a quarter of a worker after half an hour.
"""

KEPT_BYTES = 262144
"""What the system is asked to keep of answers for a client that is slow to take them.

A hundred stays have some 70 KB; for a distant client it would begin with some 30.
"""

MOST_DROPPED = 1048576
"""How much a client may still send after its last answer."""

HANDLED = local()
"""`conn` is the connection that a thread is at: gunicorn does not tell it with an error."""

_NOTHING_YET = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Progress(Enum):
    """What the bytes of a connection have become."""

    PARTLY = auto()
    ARRIVED = auto()
    ENDED = auto()


class Connection(TConn):
    """A client's connection.

    `due` is when it is no longer waited for, `answered` when a thread last left it, on the
    monotonic clock; it `hurries` while one request follows the other at once.
    """

    def __init__(
        self,
        config: Any,
        client: socket.socket,
        address: Any,
        server: Any,
        say_goodbye: Callable[["Connection"], None],
    ) -> None:
        super().__init__(config, client, address, server)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KEPT_BYTES)
        self.sock: Any = ssl_wrap_socket(client, config) if config.is_ssl else client
        # A thread reads what has arrived, and nothing else.
        self.parser = http.get_parser(config, _NothingElse(), address)
        self.data_ready = True
        self.due = 0.0
        self.answered = -math.inf
        self.hurries = False
        self.arrival = Arrival(0)
        self._dropped = 0
        self._say_goodbye = say_goodbye

    def begin(self, most_body: int, seconds: float) -> None:
        """Wait for a request, so long."""
        self.sock.setblocking(False)
        self.arrival, self.due = Arrival(most_body), time.monotonic() + seconds

    def receive(self) -> Progress:
        """Take what has come of the request, without waiting."""
        kept = self.parser.unreader
        while not self.arrival.has_come(kept.buf.getvalue()):
            try:
                data = self.sock.recv(READ_BYTES)
            except _NOTHING_YET:
                return Progress.PARTLY
            except OSError:
                data = b""
            if not data:
                return Progress.ENDED
            kept.buf.seek(0, 2)
            kept.buf.write(data)
        return Progress.ARRIVED

    def hears_within(self, seconds: float) -> bool:
        """Wait so long for bytes, in a thread; tell whether there are any."""
        heard = select.poll()
        heard.register(self.sock, select.POLLIN)
        return bool(heard.poll(seconds * 1000))

    def is_silent(self) -> bool:
        """Tell whether nothing of a request has come."""
        return not self.parser.unreader.buf.getvalue()

    def has_gone(self) -> bool:
        """Drop what comes after the last answer; tell whether the client has closed."""
        try:
            data = self.sock.recv(READ_BYTES)
        except _NOTHING_YET:
            return False
        except OSError:
            return True
        self._dropped += len(data)
        return not data or self._dropped > MOST_DROPPED

    def close(self, graceful: bool = False) -> None:
        """Close it; gracefully so that the client gets the last answer whole."""
        if graceful:
            self._say_goodbye(self)
        else:
            util.close(self.sock)

    def end_answers(self) -> bool:
        """Say that no more comes; tell whether there is still a client to hear it."""
        try:
            self.sock.setblocking(False)
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            return False
        return True

    def let_go_ahead(self) -> None:
        """Tell a client to go on that has asked first, once."""
        if self.arrival.wants_go_ahead:
            self.arrival.wants_go_ahead = False
            try:
                self.sock.send(GO_AHEAD)
            except OSError:
                # Then the client waits in vain, as long as any other.
                return


class Written:
    """Stands for a connection and its socket while an answer is written: it leaves whole.

    gunicorn sends head and body one after the other, and each call costs a turn of threads.
    """

    def __init__(self, connection: Connection) -> None:
        self.client = connection.client
        self.server = connection.server
        self._parts: list[bytes] = []

    @property
    def sock(self) -> Self:
        """This: kept as an attribute, the answer would be there until the collector comes."""
        return self

    def sendall(self, data: bytes) -> None:
        """Take a part of the answer."""
        self._parts.append(data)

    def answer(self) -> bytes:
        """Return the answer."""
        return b"".join(self._parts)


class Waiting:
    """Connections in the order in which they are due, watched by a poller."""

    def __init__(self, poller: Any, seen: Callable[[Connection], None]) -> None:
        self._poller = poller
        self._seen = seen
        self._connections: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def add(self, connection: Connection) -> None:
        """Wait for bytes of a connection; it is due later than all others."""
        self._connections[connection] = None
        self._poller.register(
            connection.sock, selectors.EVENT_READ, lambda _: self._look(connection)
        )

    def _look(self, connection: Connection) -> None:
        # What came before it in the same turn of the loop may have given it up.
        if connection in self._connections:
            self._seen(connection)

    def remove(self, connection: Connection) -> None:
        """Wait no longer."""
        del self._connections[connection]
        self._poller.unregister(connection.sock)

    def late(self) -> Iterator[Connection]:
        """Take out those that are due, one after the other."""
        now = time.monotonic()
        while self._connections and next(iter(self._connections)).due <= now:
            yield self.oldest()

    def oldest(self) -> Connection:
        """Take out the one that has waited longest."""
        first = next(iter(self._connections))
        self.remove(first)
        return first

    def silent(self, due: float) -> Iterator[Connection]:
        """Take out those of which nothing has come, and that are due by then."""
        for each in list(self._connections):
            if each.due <= due and each.is_silent():
                self.remove(each)
                yield each


class _NothingElse:
    """Stands where a thread would read a socket."""

    def recv(self, _size: int) -> NoReturn:
        """Refuse: what has not arrived by now is more than is waited for."""
        raise errors.LimitRequestHeaders("request not complete")
