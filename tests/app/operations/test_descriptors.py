"""A worker that has used up its file descriptors goes on, and keeps nobody out for good."""

import json
import socket
from contextlib import ExitStack
from pathlib import Path

import psutil

from tests.app.operations.standin import exchange, standing_in
from tests.live import HOST

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
