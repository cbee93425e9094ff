"""Connections of psycopg whose every answer ends in time, however it comes."""

import socket
import time
from collections.abc import Generator, Mapping
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo, ConnStatus, PGconn

from adapters.names import look_up
from adapters.sql.dialects.base import CONNECT_SECONDS

Answer = TypeVar("Answer")
Steps = Generator[Any, Any, Answer]
"""What psycopg does for one answer; it yields whenever it has to wait for the server."""


class TimedConnection(psycopg.Connection[Any]):
    """A connection that waits for one answer no longer than so many seconds.

    A server that stands still ends no statement, and its host still takes bytes.
    """

    longest: float = CONNECT_SECONDS

    def wait(self, gen: Steps[Answer], *args: Any, **kwargs: Any) -> Answer:
        """Take the steps to an answer; raises OperationalError when it is late."""
        ends = time.monotonic() + self.longest
        return super().wait(self._in_time(gen, ends), *args, **kwargs)

    def _in_time(self, steps: Steps[Answer], ends: float) -> Steps[Answer]:
        ready = None
        while True:
            try:
                wanted = steps.send(ready)
            except StopIteration as done:
                answer: Answer = done.value
                return answer
            ready = yield wanted
            # psycopg looks up ten times a second where nothing comes.
            if time.monotonic() > ends:
                self.close()
                raise psycopg.OperationalError("the server stands still")


def look_up_hosts(hosts: str) -> None:
    """Look up the hosts of an address in bounded time; raises OperationalError when late."""
    try:
        for host in hosts.split(","):
            # One that is a path is a directory of sockets.
            if host and not host.startswith("/"):
                look_up(host, CONNECT_SECONDS)
    except TimeoutError as error:
        raise psycopg.OperationalError(str(error)) from error


def refused_option(options: Mapping[str, Any]) -> str | None:
    """Return the option whose value the driver takes of no server, None where it takes all.

    "" where it refuses several for standing together.
    """
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    asked = {name: value for name, value in options.items() if name in known}
    try:
        # The driver looks at them before it looks at what comes from a server.
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            host, port = nobody.getsockname()
            here = {"host": host, "hostaddr": host, "port": port}
            if _begins(asked | here):
                return None
            return next((n for n in asked if not _begins({n: asked[n]} | here)), "")
    except OSError:
        return None


def _begins(options: Mapping[str, Any]) -> bool:
    begun = PGconn.connect_start(make_conninfo(**options).encode())
    try:
        return begun.status != ConnStatus.BAD
    finally:
        begun.finish()
