"""A name server that says nothing: who connects is told so in time."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis

from adapters.contract import SourceUnavailableError
from adapters.http.client import Call, Client, Deadline
from adapters.names import look_up
from adapters.sql.database import Database
from adapters.sql.dialects import mysql_connection, postgresql_connection
from app.identity import IdentityError, Provider
from app.timed_redis import ask, connect
from tests.live import HOST, in_time

NAME = "pas.invalid"
PATIENCE = 60.0
WAIT = 0.2


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Let nobody tell what the name stands for; return who was asked about it."""
    over, real = threading.Event(), socket.getaddrinfo
    asked = []

    def getaddrinfo(host: str, *args: Any, flags: int = 0, **options: Any) -> Any:
        if host == NAME and not flags:
            asked.append(host)
            assert over.wait(PATIENCE)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return real(host, *args, flags=flags, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    for dialect in (mysql_connection, postgresql_connection):
        monkeypatch.setattr(dialect, "CONNECT_SECONDS", WAIT)
    yield asked
    over.set()
    while any(thread.name == NAME for thread in threading.enumerate()):
        over.wait(WAIT)


def _get(seconds: float) -> object:
    client = Client(f"http://{NAME}", connections=1, wait=1)
    return client.send(Call("GET", "/"), {}, Deadline(seconds))


ASKING: dict[str, tuple[Callable[[], object], type[Exception]]] = {
    "Redis": (
        lambda: ask(connect(f"redis://{NAME}/0"), ("PING",)),
        redis.TimeoutError,
    ),
    "an API": (lambda: _get(WAIT), SourceUnavailableError),
    "the identity provider": (
        lambda: Provider(f"https://{NAME}/keys", WAIT).get(),
        IdentityError,
    ),
    "PostgreSQL": (
        lambda: Database(f"postgresql://pas@{NAME}/pas", 1, 1).may_write(),
        SourceUnavailableError,
    ),
    "MariaDB": (
        lambda: Database(f"mysql://pas@{NAME}/pas", 1, 1).may_write(),
        SourceUnavailableError,
    ),
}


@pytest.mark.parametrize(("question", "error"), ASKING.values(), ids=ASKING)
def test_who_connects_does_not_wait_for_a_name_server(
    asked: list[str], question: Callable[[], object], error: type[Exception]
) -> None:
    def refused() -> None:
        with pytest.raises(error) as caught:
            question()
        assert NAME not in str(caught.value)

    in_time(refused, 5 * WAIT)
    assert asked


def test_one_thread_asks_for_all(asked: list[str]) -> None:
    with ThreadPoolExecutor(8) as threads:
        each = [threads.submit(look_up, NAME, WAIT) for _ in range(8)]
        found = [one.exception(PATIENCE) for one in each]
    assert {type(error) for error in found} == {TimeoutError}
    assert asked == [NAME]


def test_where_no_thread_can_be_had_nobody_is_kept_from_connecting(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", start)
        look_up(NAME, WAIT)
    assert not asked
    with pytest.raises(TimeoutError):
        look_up(NAME, WAIT)


@pytest.mark.parametrize("host", [HOST, "::1", "localhost", "a..b"])
def test_whatever_is_said_of_a_name_is_for_who_connects(host: str) -> None:
    for _ in range(2):
        look_up(host, PATIENCE)
