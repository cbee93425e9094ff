"""Who has connected before a stop is answered, over raw sockets against a real gunicorn."""

import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.app.operations.standin import Gunicorn, read_answer, standing_in
from tests.live import HOST, listens, wait_until

PATIENCE = 60.0
CLIENTS = 10
GOOD = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\ngood"


@pytest.fixture
def clients() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def stopped_meanwhile(service: Gunicorn, worker: psutil.Process) -> None:
    """Stop the service while its worker stands still, so that it finds out later."""
    service.process.send_signal(signal.SIGTERM)
    status = Path(f"/proc/{worker.pid}/status")
    asked_to_stop = 1 << (signal.SIGTERM - 1)

    def is_told() -> bool:
        (line,) = (line for line in status.read_text().splitlines() if "ShdPnd" in line)
        return bool(int(line.split()[1], 16) & asked_to_stop)

    wait_until(is_told, service.log, PATIENCE)


@pytest.mark.parametrize("ahead", [len(GOOD), len(GOOD) - 2, 0])
def test_who_has_connected_before_a_stop_is_answered(
    tmp_path: Path, clients: ExitStack, ahead: int
) -> None:
    with standing_in(tmp_path) as service:
        worker = service.worker()
        worker.suspend()
        waiting = []
        for _ in range(CLIENTS):
            client = socket.create_connection((HOST, service.port), PATIENCE)
            waiting.append(clients.enter_context(client))
            client.sendall(GOOD[:ahead])
        stopped_meanwhile(service, worker)
        worker.resume()
        for client in waiting:
            client.sendall(GOOD[ahead:])
        answers = [read_answer(client) for client in waiting]
    assert {answer.status for answer in answers} == {200}
    assert {answer.headers["Connection"] for answer in answers} == {"close"}


def test_who_sends_nothing_does_not_hold_up_a_stop(
    tmp_path: Path, clients: ExitStack
) -> None:
    with standing_in(tmp_path, REQUEST_SECONDS="300") as service:
        for _ in range(CLIENTS):
            clients.enter_context(socket.create_connection((HOST, service.port)))
        service.process.send_signal(signal.SIGTERM)
        # Half of what those may take whose request has begun to come.
        assert service.process.wait(15) == 0


def test_a_worker_whose_master_was_killed_keeps_nobody_waiting(
    tmp_path: Path, clients: ExitStack
) -> None:
    options = ("--graceful-timeout", "300")
    killed = -signal.SIGKILL
    with standing_in(
        tmp_path, *options, status=killed, REQUEST_SECONDS="300"
    ) as service:
        # An answer that nobody takes yet is under way.
        client = socket.create_connection((HOST, service.port), PATIENCE)
        clients.enter_context(client).sendall(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1, socket.MSG_PEEK)
        service.process.kill()
        wait_until(lambda: not listens(service.port), service.log, PATIENCE)
        assert len(read_answer(client).body) == 16_000_000
