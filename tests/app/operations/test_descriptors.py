"""A worker that has used up its file descriptors goes on, and keeps nobody out for good."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psutil

from adapters.testing.stays import EDGES
from tests.app.operations.running import Running, running
from tests.app.operations.standin import exchange, standing_in
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST
from tests.redis_server import RedisServer

GOOD = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngood"
LEFT = 12
"""Connections that the worker still has descriptors for."""


def test_a_worker_without_descriptors_lets_go_of_who_says_nothing(
    tmp_path: Path,
) -> None:
    with standing_in(tmp_path, REQUEST_SECONDS="300") as service, ExitStack() as stack:
        worker = service.worker()
        most = worker.num_fds() + LEFT
        worker.rlimit(psutil.RLIMIT_NOFILE, (most, most))
        for _ in range(3 * LEFT):
            stack.enter_context(socket.create_connection((HOST, service.port), 60))
        answer = exchange(service.port, GOOD)
        assert (answer.status, json.loads(answer.body)["read"]) == (200, 4)
        assert service.worker() == worker
        assert '"reason": "EMFILE"' in service.log.read_text("utf-8")


def statuses(service: Running, count: int) -> set[int]:
    """Return what so many searches at once are answered; 0 is a connection that ends."""
    with ThreadPoolExecutor(16) as pool:
        asked = pool.map(lambda _: service.get("Encounter?_count=1"), range(count))
        return {answer.status for answer in asked}


def test_what_fails_for_want_of_descriptors_works_again_with_them(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    url, mapping = f"sqlite:///{tmp_path / 'pas.db'}", tmp_path / "mapping.yaml"
    Tables(url, EDGES).close()
    mapping.write_text(mapping_text(EDGES), "utf-8")
    named = {"PAS_URL": url}
    with running(tmp_path, mapping, named, REDIS_URL=redis_server.url) as service:
        (worker,) = service.workers()
        enough = worker.rlimit(psutil.RLIMIT_NOFILE)
        for left in (1, 4):
            worker.rlimit(psutil.RLIMIT_NOFILE, (worker.num_fds() + left, enough[1]))
            assert statuses(service, 40) <= {0, 200, 503}
        worker.rlimit(psutil.RLIMIT_NOFILE, enough)
        service.until(lambda: statuses(service, 20) == {200})
        assert service.workers() == [worker]
