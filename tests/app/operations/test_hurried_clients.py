"""Clients whose requests follow each other at once, against a real gunicorn."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from threading import Event

import pytest

from tests.app.operations.standin import Gunicorn, encrypting, exchange, standing_in
from tests.live import HOST, wait_until

PATIENCE = 60.0
HEAD = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
LAST = HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
ANSWERED = b'{"read":4}\n'
SERIES = 100


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gunicorn]:
    with standing_in(tmp_path_factory.mktemp("hurried")) as started:
        yield started


@pytest.fixture
def client(service: Gunicorn) -> Iterator[socket.socket]:
    with socket.create_connection((HOST, service.port), PATIENCE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def ask(client: socket.socket) -> None:
    client.sendall(HEAD + b"good")
    answered = b""
    while not answered.endswith(ANSWERED):
        data = client.recv(65536)
        assert data
        answered += data
    assert answered.startswith(b"HTTP/1.1 200 ")


def test_their_thread_stays_with_them(service: Gunicorn, client: socket.socket) -> None:
    loop = service.worker()

    def stays() -> bool:
        before = loop.num_ctx_switches().voluntary
        for _ in range(SERIES):
            ask(client)
        # Each request that the loop hands on wakes it.
        return loop.num_ctx_switches().voluntary - before < SERIES / 2

    wait_until(stays, service.log)


def test_they_do_not_keep_others_from_a_thread(tmp_path: Path) -> None:
    asked, enough = count(), Event()

    def hurry(port: int) -> None:
        with socket.create_connection((HOST, port), PATIENCE) as connection:
            while not enough.is_set():
                ask(connection)
                next(asked)

    with (
        standing_in(tmp_path, THREADS="1") as service,
        ThreadPoolExecutor(1) as pool,
        ExitStack() as stack,
    ):
        stack.callback(enough.set)
        hurried = pool.submit(hurry, service.port)
        for _ in range(SERIES):
            assert exchange(service.port, LAST + b"good", PATIENCE).status == 200
        enough.set()
        hurried.result()
    # It goes on while others connect and close, too: some ten times for each of them.
    assert next(asked) < SERIES * 50


@pytest.mark.parametrize("held_back", [len(HEAD) + 2, len(HEAD), len(HEAD) - 4, 9])
def test_what_they_have_half_sent_is_waited_for(
    service: Gunicorn, client: socket.socket, held_back: int
) -> None:
    request = HEAD + b"good"
    for _ in range(SERIES):
        client.sendall(request[:-held_back])
        client.sendall(request[-held_back:])
        assert client.recv(65536).endswith(ANSWERED)


def test_they_are_told_once_to_go_on(client: socket.socket) -> None:
    expecting = HEAD.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
    for _ in range(SERIES):
        ask(client)
        client.sendall(expecting)
        assert client.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"good")
        answered = client.recv(65536)
        assert answered.startswith(b"HTTP/1.1 200 ")
        assert answered.endswith(ANSWERED)


def test_requests_that_they_send_ahead_are_answered_in_turn(
    client: socket.socket,
) -> None:
    for _ in range(SERIES):
        ask(client)
        client.sendall((HEAD + b"good") * 3)
        answered = b""
        while answered.count(ANSWERED) < 3:
            data = client.recv(65536)
            assert data
            answered += data


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Iterator[socket.socket]:
    """Connect where gunicorn ends TLS."""
    with encrypting(tmp_path_factory.mktemp("encrypting")) as (service, trusted):
        plain = socket.create_connection((HOST, service.port), PATIENCE)
        with trusted.wrap_socket(plain, server_hostname=HOST) as client:
            yield client


@pytest.mark.parametrize("length", [2**power for power in range(8, 14)])
def test_what_they_send_ahead_in_one_record_of_tls_is_answered(
    secret: socket.socket, length: int
) -> None:
    line = b"\r\nX-Long: "
    filler = b"x" * (length - len(HEAD + line + b"good"))
    first = HEAD.replace(b"\r\n\r\n", line + filler + b"\r\n\r\n") + b"good"
    assert len(first) == length
    secret.sendall(first + HEAD + b"good")
    answered = b""
    while answered.count(ANSWERED) < 2:
        data = secret.recv(65536)
        assert data
        answered += data
