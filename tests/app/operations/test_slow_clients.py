"""Clients that stall hold no thread and nobody up, against a real gunicorn."""

import json
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.app.operations.standin import (
    THREADS,
    Answer,
    Gunicorn,
    encrypting,
    exchange,
    read_answer,
    standing_in,
)
from tests.live import HOST

PATIENCE = 60.0
RESET = struct.pack("ii", 1, 0)
CONNECTIONS = 40
GOOD = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngood"
KEPT = GOOD.replace(b"Connection: close\r\n", b"")
CHUNKED = (
    b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: close\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
)
HALVES = {
    "a first byte": (GOOD[:1], GOOD[1:]),
    "half a line": (GOOD[:9], GOOD[9:]),
    "half a head": (GOOD[:30], GOOD[30:]),
    "a head": (GOOD[:-4], GOOD[-4:]),
    "half a body": (GOOD[:-2], GOOD[-2:]),
    "half a chunk": (CHUNKED[:-9], CHUNKED[-9:]),
    "no last chunk": (CHUNKED[:-4], CHUNKED[-4:]),
}
"""What is sent, and what is held back."""


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gunicorn]:
    """Serve so that requests may take minutes to arrive."""
    folder = tmp_path_factory.mktemp("waiting")
    options = ("--worker-connections", str(CONNECTIONS))
    with standing_in(folder, *options, REQUEST_SECONDS="300") as started:
        yield started


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gunicorn]:
    """Serve so that requests may take a second to arrive."""
    folder = tmp_path_factory.mktemp("hasty")
    with standing_in(folder, REQUEST_SECONDS="1") as started:
        yield started


def connect(service: Gunicorn) -> socket.socket:
    return socket.create_connection((HOST, service.port), PATIENCE)


def read_of(answer: Answer) -> int:
    assert answer.status == 200
    return int(json.loads(answer.body)["read"])


def test_half_sent_requests_hold_no_thread(waiting: Gunicorn) -> None:
    with ExitStack() as stack:
        stalled = []
        for first, rest in [*HALVES.values()] * THREADS:
            client = stack.enter_context(connect(waiting))
            client.sendall(first)
            stalled.append((client, rest))
        assert read_of(exchange(waiting.port, GOOD)) == 4
        for client, rest in stalled:
            client.sendall(rest)
            assert read_of(read_answer(client)) in (2, 4)


def test_connections_that_send_nothing_keep_nobody_out(waiting: Gunicorn) -> None:
    with ExitStack() as stack:
        for _ in range(2 * CONNECTIONS):
            stack.enter_context(connect(waiting))
        for _ in range(CONNECTIONS):
            stack.enter_context(connect(waiting)).sendall(GOOD[:20])
        assert read_of(exchange(waiting.port, GOOD)) == 4


def test_clients_that_do_not_close_hold_nobody_up(waiting: Gunicorn) -> None:
    began = time.monotonic()
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            client = stack.enter_context(connect(waiting))
            client.sendall(GOOD)
            client.recv(65536)
        assert read_of(exchange(waiting.port, GOOD)) == 4
        # gunicorn alone waits two seconds for each, one after the other.
        assert time.monotonic() - began < CONNECTIONS


def test_a_request_that_does_not_arrive_in_time_is_408(hasty: Gunicorn) -> None:
    with ExitStack() as stack:
        clients = []
        for first, _ in HALVES.values():
            # At once: of whom nothing came in a second, the connection is closed.
            clients.append(stack.enter_context(connect(hasty)))
            clients[-1].sendall(first)
        for answer in map(read_answer, clients):
            assert (answer.status, answer.headers["Connection"]) == (408, "close")
            assert json.loads(answer.body)["issue"][0]["code"] == "timeout"
    assert '"LateRequestError"' in hasty.log.read_text()


@pytest.mark.parametrize("first", [b"GET /", GOOD[:-4]], ids=["a head", "a body"])
def test_drop_by_drop_it_has_no_more_time(hasty: Gunicorn, first: bytes) -> None:
    answered = Event()
    with connect(hasty) as client:
        client.sendall(first.replace(b" 4", b" 60000"))
        dripping = Thread(target=_drip, args=(client, answered), daemon=True)
        dripping.start()
        assert client.recv(65536).startswith(b"HTTP/1.1 408 ")
        answered.set()
        dripping.join(PATIENCE)


def _drip(client: socket.socket, answered: Event) -> None:
    for _ in range(int(PATIENCE / 0.1)):
        if answered.wait(0.1):
            return
        try:
            client.send(b"a")
        except OSError:
            return


def test_a_connection_that_sends_nothing_is_closed(hasty: Gunicorn) -> None:
    with connect(hasty) as client:
        assert client.recv(65536) == b""


def test_an_idle_connection_is_kept_for_the_next_request(hasty: Gunicorn) -> None:
    with closing(HTTPConnection(HOST, hasty.port, timeout=PATIENCE)) as client:
        client.request("POST", "/body", b"good")
        assert client.getresponse().read() == b'{"read":4}\n'
        first = client.sock
        time.sleep(2.5)
        client.request("POST", "/body", b"again")
        assert client.getresponse().read() == b'{"read":5}\n'
        assert client.sock is first


def test_requests_sent_at_once_are_answered_in_their_order(waiting: Gunicorn) -> None:
    longer = KEPT.replace(b": 4", b": 6") + b"!!"
    with connect(waiting) as client:
        client.sendall(KEPT + longer + GOOD[:-2])
        client.sendall(GOOD[-2:])
        told = b"".join(iter(lambda: client.recv(65536), b""))
    assert [int(each[:1]) for each in told.split(b'{"read":')[1:]] == [4, 6, 4]


def test_a_client_that_asks_first_is_told_once_to_go_on(waiting: Gunicorn) -> None:
    head, body = GOOD[:-4], GOOD[-4:]
    with connect(waiting) as client:
        client.sendall(head.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
        assert client.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        assert read_of(read_answer(client)) == 4


def test_an_answer_that_nobody_takes_holds_no_thread_for_long(hasty: Gunicorn) -> None:
    with ExitStack() as stack:
        for _ in range(2 * THREADS):
            client = stack.enter_context(connect(hasty))
            client.sendall(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_of(exchange(hasty.port, GOOD, PATIENCE)) == 4
    assert '"answer not taken"' in hasty.log.read_text()


def test_an_answer_of_usual_length_that_nobody_takes_holds_no_thread(
    waiting: Gunicorn,
) -> None:
    with ExitStack() as stack:
        for _ in range(2 * THREADS):
            client = stack.enter_context(socket.socket())
            # As far away and small as can be: next to nothing is on its way at once.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
            client.connect((HOST, waiting.port))
            client.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_of(exchange(waiting.port, GOOD, PATIENCE)) == 4


def test_where_gunicorn_ends_tls_half_handshakes_hold_no_thread(tmp_path: Path) -> None:
    with (
        encrypting(tmp_path, REQUEST_SECONDS="300") as (service, trusted),
        ExitStack() as stack,
    ):
        for _ in range(10):
            # Gone before the service has seen it.
            with connect(service) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        stalled = []
        for _ in range(2 * THREADS):
            stack.enter_context(connect(service)).sendall(b"\x16\x03\x01")
            client = trusted.wrap_socket(connect(service), server_hostname=HOST)
            stalled.append(stack.enter_context(client))
            client.sendall(GOOD[:-2])
        for client in stalled:
            client.sendall(GOOD[-2:])
            assert read_of(read_answer(client)) == 4
        assert "Traceback" not in service.log.read_text()
