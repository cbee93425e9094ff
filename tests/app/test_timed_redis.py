"""Answers of Redis end in time, and each is the answer to what was asked.

One that came in time counts however late it is read.
"""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import redis

from app.timed_redis import _TimedSocket, ask, connect
from tests.redis_server import RedisServer

SECONDS = 0.05
PING = ("PING",)


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    # Patient: a machine may stand still while a test holds an answer back.
    with connect(f"{redis_server.url}?socket_timeout=60") as made:
        yield made


@pytest.fixture
def other(redis_server: RedisServer) -> Iterator[redis.Redis]:
    """Connect somebody else, with the one connection that is not the client's."""
    with redis_server.client() as made:
        made.client_kill_filter(_type="normal")
        yield made


def connections(other: redis.Redis) -> set[str]:
    """Return the client's connections, by the ids that Redis gives them."""
    mine = str(other.client_id())
    return {each["id"] for each in other.client_list()} - {mine}


def test_one_connection_takes_what_is_asked_in_turn(
    other: redis.Redis, client: redis.Redis
) -> None:
    assert ask(client, PING, ("ECHO", "first")) == [b"PONG", b"first"]
    (first,) = connections(other)
    assert ask(client, ("ECHO", "second")) == [b"second"]
    assert connections(other) == {first}


def test_what_is_asked_at_once_waits_for_nobody(
    other: redis.Redis, client: redis.Redis
) -> None:
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(ask, client, ("BLPOP", "list", "60"))
        while not other.info("clients")["blocked_clients"]:
            assert not waits.done()
        assert ask(client, PING) == [b"PONG"]
        other.rpush("list", "late")
        assert waits.result() == [[b"list", b"late"]]
    both = connections(other)
    assert len(both) == 2
    assert ask(client, PING) == [b"PONG"]
    assert connections(other) == both


def test_a_connection_that_redis_has_closed_is_made_anew(
    other: redis.Redis, client: redis.Redis
) -> None:
    assert ask(client, PING) == [b"PONG"]
    assert other.client_kill_filter(_type="normal") == 1
    assert ask(client, PING) == [b"PONG"]


def test_what_nobody_asked_is_no_answer(
    other: redis.Redis, client: redis.Redis
) -> None:
    ask(client, ("SUBSCRIBE", "news"))
    assert other.publish("news", "stray") == 1
    # It is sent before this is.
    assert other.ping()
    assert ask(client, ("ECHO", "asked")) == [b"asked"]


def test_what_was_not_read_is_no_answer_to_what_is_asked_next(
    other: redis.Redis, client: redis.Redis
) -> None:
    with pytest.raises(redis.ResponseError):
        ask(client, PING, ("NONSENSE",), ("ECHO", "not read"))
    assert ask(client, ("ECHO", "asked")) == [b"asked"]


def test_what_came_in_time_counts_on_a_busy_machine() -> None:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        timed = _TimedSocket(ours, SECONDS)
        timed.sendall(b"GET")
        theirs.sendall(b"first")
        # Nobody gave this process a turn meanwhile.
        time.sleep(2 * SECONDS)
        assert timed.recv(100) == b"first"
        # It goes on by drips: that is time enough.
        theirs.sendall(b"s" * 100)
        with pytest.raises(TimeoutError):
            list(iter(lambda: timed.recv(1), b""))
        assert len(ours.recv(100)) > 90
        timed.sendall(b"GET")
        theirs.sendall(b"second")
        assert timed.recv(100) == b"second"


def test_what_does_not_come_is_not_waited_for_again() -> None:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        timed = _TimedSocket(ours, SECONDS)
        timed.sendall(b"GET")
        time.sleep(2 * SECONDS)
        with pytest.raises(TimeoutError):
            timed.recv(100)
