"""Connections that the loop waits for: who is due, who has gone, who was given up meanwhile."""

import selectors
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TypeAlias

import pytest
from gunicorn.config import Config

from app.operations.connections import MOST_DROPPED, Connection, Progress, Waiting
from tests.live import HOST

Pair: TypeAlias = tuple[Connection, socket.socket]

FAR = 1e9
RESET = struct.pack("ii", 1, 0)


@pytest.fixture
def connect() -> Iterator[Callable[[], Pair]]:
    """Return what makes a connection and the client at its other end."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((HOST, 0)))

        def made() -> Pair:
            client = socket.create_connection(listener.getsockname())
            server, _ = listener.accept()
            stack.enter_context(client)
            stack.enter_context(server)
            connection = Connection(Config(), server, HOST, HOST, Connection.close)
            connection.begin(1000, FAR)
            return connection, client

        yield made


@pytest.fixture
def poller() -> Iterator[selectors.DefaultSelector]:
    with selectors.DefaultSelector() as made:
        yield made


def test_who_was_given_up_in_the_same_turn_is_not_looked_at(
    connect: Callable[[], Pair], poller: selectors.DefaultSelector
) -> None:
    seen: list[Connection] = []
    waiting = Waiting(poller, seen.append)
    (first, one), (second, other) = connect(), connect()
    for connection, client in ((first, one), (second, other)):
        waiting.add(connection)
        client.sendall(b"G")
    turn = poller.select(0)
    assert len(turn) == 2
    assert waiting.oldest() is first
    for key, _ in turn:
        key.data(key.fileobj)
    assert seen == [second]


def test_those_that_are_due_are_taken_out_in_their_order(
    connect: Callable[[], Pair], poller: selectors.DefaultSelector
) -> None:
    waiting = Waiting(poller, lambda _: None)
    made = [connect()[0] for _ in range(4)]
    for connection, due in zip(made, (0.0, 1.0, FAR, 0.0), strict=True):
        connection.due = due
        waiting.add(connection)
    # They are added in the order in which they are due: nobody looks behind the first.
    assert list(waiting.late()) == made[:2]
    assert len(waiting) == 2
    assert {key.fileobj for key in poller.get_map().values()} == {
        connection.sock for connection in made[2:]
    }


def test_only_those_that_say_nothing_and_are_due_by_then_are_silent(
    connect: Callable[[], Pair], poller: selectors.DefaultSelector
) -> None:
    waiting = Waiting(poller, lambda _: None)
    (silent, _), (speaks, client), (later, _) = connect(), connect(), connect()
    for connection, due in ((silent, 7.0), (speaks, 7.0), (later, 8.0)):
        connection.due = due
        waiting.add(connection)
    client.sendall(b"G")
    assert speaks.receive() is Progress.PARTLY
    assert list(waiting.silent(7.0)) == [silent]
    assert len(waiting) == 2


def test_after_the_last_answer_a_client_may_still_send_so_much(
    connect: Callable[[], Pair],
) -> None:
    connection, client = connect()
    assert connection.end_answers()
    assert client.recv(1) == b""
    assert not connection.has_gone()
    for _ in range(MOST_DROPPED // 8192):
        client.sendall(bytes(8192))
        assert not connection.has_gone()
    client.sendall(b"!")
    assert connection.has_gone()


def test_who_has_closed_has_gone(connect: Callable[[], Pair]) -> None:
    connection, client = connect()
    client.close()
    assert connection.has_gone()


def test_a_client_that_breaks_off_has_gone_too(connect: Callable[[], Pair]) -> None:
    for look in (Connection.has_gone, lambda each: not each.end_answers()):
        connection, client = connect()
        _break_off(client)
        assert look(connection)


@pytest.mark.parametrize("breaks_off", [False, True])
@pytest.mark.parametrize("sent", [b"GET", b""])
def test_of_a_client_that_has_gone_there_is_nothing_to_come(
    connect: Callable[[], Pair], sent: bytes, breaks_off: bool
) -> None:
    connection, client = connect()
    client.sendall(sent)
    if breaks_off:
        _break_off(client)
    client.close()
    assert connection.receive() is Progress.ENDED


def _break_off(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    client.close()
