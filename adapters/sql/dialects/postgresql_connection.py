"""Connections of psycopg whose every answer ends in time, however it comes."""

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

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
    try:
        for host in hosts.split(","):
            # One that is a path is a directory of sockets.
            if host and not host.startswith("/"):
                look_up(host, CONNECT_SECONDS)
    except TimeoutError as error:
        raise psycopg.OperationalError(str(error)) from error
