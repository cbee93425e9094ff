"""Connections to Redis whose answers end in time, however they come, and whatever they are.

A time-out of a socket starts anew with each byte: a Redis that drips its answers would
hold a thread for minutes.
"""

import ssl
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import SentinelConnectionPool

from adapters.names import look_up
from app.sentinels import SentinelAddress, is_sentinel

_AT_ONCE = 0.001
_READS = 8
"""How often what is there already is taken afterwards: a drip goes on no longer."""

REDIS_SECONDS = 0.25
"""How long Redis may take for an answer: its library's own defaults hang for seconds."""


def connect(url: str) -> redis.Redis:
    """Return a client of the Redis at `url` that never waits long and never repeats."""
    options: dict[str, Any] = {
        "socket_timeout": REDIS_SECONDS,
        "socket_connect_timeout": REDIS_SECONDS,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        # Else each connection reads the package's version from disk first, and where that
        # fails, for want of file descriptors, its place in the pool is lost for good.
        "driver_info": None,
    }
    if is_sentinel(url):
        return _ending_in_time(SentinelAddress.read(url).client(**options))
    return _ending_in_time(redis.Redis.from_url(url, **options))


def ask(client: redis.Redis, *commands: tuple[Any, ...]) -> list[Any]:
    """Send commands in one go and return their answers as Redis gives them.

    A pipeline of the library does the same at nearly twice the cost. Raises RedisError.
    """
    pool = client.connection_pool
    connection: Any = pool.get_connection()
    try:
        connection.send_packed_command(connection.pack_commands(commands))
        return [connection.read_response() for _ in commands]
    except BaseException:
        # What was not read must not be the answer to what is asked next.
        connection.disconnect()
        raise
    finally:
        pool.release(connection)


class _TimedSocket:
    """A socket whose answer to what was sent last may take so many seconds in all.

    An answer that had come by then counts, though nobody looked before: on a busy machine
    it is this process that is late.
    """

    def __init__(self, sock: Any, seconds: float) -> None:
        self._sock = sock
        self._seconds = seconds
        self._ends = time.monotonic() + seconds
        self._late = 0

    def sendall(self, data: bytes) -> None:
        self._ends = time.monotonic() + self._seconds
        self._late = 0
        self._sock.settimeout(self._seconds)
        self._sock.sendall(data)

    def recv(self, size: int) -> bytes:
        data: bytes = self._in_time(self._sock.recv)(size)
        return data

    def recv_into(self, *args: Any) -> int:
        count: int = self._in_time(self._sock.recv_into)(*args)
        return count

    def has_more(self) -> bool:
        """Whether there is a byte already, or the end; the byte is lost."""
        self._sock.settimeout(0)
        try:
            self._sock.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError:
            return True
        finally:
            self._sock.settimeout(self._seconds)
        return True

    def _in_time(self, receive: Callable[..., Any]) -> Callable[..., Any]:
        left = self._ends - time.monotonic()
        self._late += left <= 0
        if self._late > _READS:
            raise TimeoutError
        self._sock.settimeout(max(left, _AT_ONCE))
        return receive

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


class _Timed:
    """What makes a kind of connection a timed one."""

    def _connect(self) -> Any:
        if name := getattr(self, "host", None):
            look_up(name, self.socket_connect_timeout)  # type: ignore[attr-defined]
        sock = super()._connect()  # type: ignore[misc]
        return _TimedSocket(sock, self.socket_timeout)  # type: ignore[attr-defined]

    def can_read(self, *_: Any) -> bool:
        """Whether what nobody has asked for is there: then the connection is of no use.

        The library takes a readable socket for that, but TLS has bytes of its own.
        """
        more: bool = self._sock.has_more()  # type: ignore[attr-defined]
        return more

    def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return super().read_response(*args, **options)  # type: ignore[misc]
        except (ValueError, RecursionError) as error:
            # Numbers that are none, texts that are not UTF-8, lists without an end.
            raise redis.InvalidResponse("the answer makes no sense") from error


@cache
def _timed(kind: type) -> type:
    return type(kind.__name__, (_Timed, kind), {})


def _ending_in_time(client: redis.Redis) -> redis.Redis:
    clients = [client]
    if isinstance(client.connection_pool, SentinelConnectionPool):
        clients += client.connection_pool.sentinel_manager.sentinels
    for each in clients:
        pool = each.connection_pool
        pool.connection_class = _timed(pool.connection_class)
    return client
