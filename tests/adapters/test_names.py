"""A name server that says nothing: who connects is told so in time."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import redis
from werkzeug.wrappers import Response

from adapters.contract import SourceUnavailableError
from adapters.http.client import Answer, Call, Client, Deadline
from adapters.names import look_up
from adapters.sql.database import Database
from adapters.sql.dialects import mysql_connection, postgresql_connection
from app.identity import IdentityError, Provider
from app.timed_redis import ask, connect
from tests.hospital_http import serving
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


def _get(seconds: float, port: int = 80) -> Answer:
    client = Client(f"http://{NAME}:{port}", connections=1, wait=1)
    return client.send(Call("GET", "/"), {}, Deadline(seconds))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return what the name stands for, an answer after the other, and nothing after the last."""
    answers: list[list[str]] = []
    before = socket.getaddrinfo

    def getaddrinfo(host: str, *args: Any, flags: int = 0, **options: Any) -> Any:
        if host == NAME and not flags and answers:
            addresses = answers.pop(0)
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            return [(*kind, (address, 0)) for address in addresses]
        return before(host, *args, flags=flags, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


@contextmanager
def _full(addresses: list[str]) -> Iterator[int]:
    """Listen at addresses where no connection comes about; yield the port."""
    with ExitStack() as sockets:
        port = 0
        for address in addresses:
            listener = sockets.enter_context(socket.socket())
            listener.bind((address, port))
            listener.listen(0)
            port = listener.getsockname()[1]
            for _ in range(4):
                waiting = sockets.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex((address, port))
        yield port


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


def test_a_name_that_was_told_is_not_asked_for_again(
    asked: list[str], told: list[list[str]]
) -> None:
    told.append([HOST])
    with serving(Response("{}")) as url:
        port = int(url.rpartition(":")[2])
        assert _get(PATIENCE, port).json() == {}
    assert not asked


@pytest.mark.usefixtures("asked")
def test_all_addresses_of_a_name_share_the_time(told: list[list[str]]) -> None:
    silent = [f"127.0.0.{n}" for n in range(1, 13)]

    def refused() -> None:
        told.append(silent)
        with pytest.raises(SourceUnavailableError):
            _get(WAIT, port)

    with _full(silent) as port:
        in_time(refused, 5 * WAIT)


@pytest.mark.usefixtures("asked")
def test_an_address_that_refuses_is_passed_over(told: list[list[str]]) -> None:
    told.append(["127.0.0.2", HOST])
    with serving(Response("{}")) as url:
        port = int(url.rpartition(":")[2])
        assert _get(PATIENCE, port).json() == {}


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
