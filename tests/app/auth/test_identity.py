"""Asking the provider: in bounded time and size, over real sockets."""

import contextlib
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from requests.auth import HTTPBasicAuth

from app.errors import UnavailableError
from app.identity import MAX_ANSWER_BYTES, IdentityError, Provider
from app.keys import KeySource
from tests.live import in_time

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture
def serve():
    """Return the URL of a server that gives `pieces` with a pause between them."""
    servers = []

    def start(*pieces: bytes, pause: float = 0.0, seen: list[bytes] | None = None):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        told = [] if seen is None else seen
        arguments = (server, pieces, pause, told)
        threading.Thread(target=answer_all, args=arguments, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/keys"

    yield start
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def answer_all(server, pieces, pause, told):
    with contextlib.suppress(OSError):  # the server is closed
        while True:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):  # the client has gone
                told.append(connection.recv(65536))
                for piece in pieces:
                    connection.sendall(piece)
                    time.sleep(pause)


@pytest.fixture
def ask():
    """Return what the provider at a URL says in time."""
    made = []

    def ask(url, seconds=60):
        made.append(Provider(url, seconds))
        return made[-1].get()

    yield ask
    for each in made:
        each.close()


def test_an_object_is_read(serve, ask):
    url = serve(HEAD + b"Content-Length: 10\r\n\r\n", b'{"a"', b': "b"}')
    assert ask(url) == {"a": "b"}


def test_chunks_are_read(serve, ask):
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    assert ask(serve(head, b'4\r\n{"a"\r\n', b"4\r\n: 1}\r\n", b"0\r\n\r\n")) == {
        "a": 1
    }


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((HEAD + b"Content-Length: 99\r\n\r\n", *[b" "] * 98), id="drips"),
        pytest.param((HEAD + b"X-Long: ", *[b"x"] * 98), id="drips its headers"),
        pytest.param((b"HTTP/1.1 ", *[b"2"] * 98), id="drips its status"),
        pytest.param(
            (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\n \r\n"] * 98),
            id="drips chunks",
        ),
        pytest.param((b"", b"", b"", b"", b"", b"", b"", b""), id="says nothing"),
    ],
)
def test_a_slow_provider_does_not_hold_the_thread(serve, ask, pieces):
    def asked():
        with pytest.raises(IdentityError):
            ask(serve(*pieces, pause=0.2), 0.5)

    in_time(asked, 1.5)


def test_a_form_to_a_slow_provider_ends_in_time(serve):
    def asked():
        provider = Provider(serve(HEAD + b"X-Long: ", *[b"x"] * 98, pause=0.2), 0.5)
        with pytest.raises(IdentityError):
            provider.post({"token": "t"}, HTTPBasicAuth("us", "hush"))
        provider.close()

    in_time(asked, 1.5)


def test_a_slow_provider_holds_the_key_set_no_longer_than_its_time_out(serve):
    """Those who wait for the one who asks are told with it: nobody asks again at once."""

    def asked():
        provider = Provider(serve(HEAD + b"X-Long: ", *[b"x"] * 98, pause=0.2), 0.5)
        keys = KeySource(provider, fresh=60, retry=30)
        with ThreadPoolExecutor(4) as callers:
            asked = [callers.submit(keys.find, "a", "RS256") for _ in range(4)]
            assert all(isinstance(a.exception(), UnavailableError) for a in asked)
        provider.close()

    in_time(asked, 1.5)


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((HEAD + b'Content-Length: 99\r\n\r\n{"a": 1}',), id="cut"),
        pytest.param((b"garbage\r\n\r\n",), id="no HTTP"),
        pytest.param((HEAD + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b",), id="packed"),
        pytest.param((HEAD + b"\r\n{}", b" " * MAX_ANSWER_BYTES), id="endless"),
    ],
)
def test_a_broken_answer_is_an_error(serve, ask, pieces):
    with pytest.raises(IdentityError) as caught:
        ask(serve(*pieces))
    assert "127.0.0.1" not in str(caught.value)


def test_nothing_of_the_environment_is_used(serve, monkeypatch, ask, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login us password hush\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")
    seen: list[bytes] = []
    url = serve(HEAD + b"Content-Length: 2\r\n\r\n{}", seen=seen)
    assert ask(url) == {}
    assert b"authorization" not in seen[0].lower()


def test_cookies_are_not_kept(serve):
    seen: list[bytes] = []
    head = HEAD + b"Set-Cookie: a=b\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    url = serve(head, seen=seen)
    asked = Provider(url, 60)
    asked.get()
    asked.get()
    asked.close()
    assert len(seen) == 2
    assert b"cookie" not in seen[1].lower()
