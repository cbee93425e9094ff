"""The identity provider: requests in bounded time and size, and which keys count when."""

import base64
import contextlib
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace

import pytest
import requests
import responses
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from joserfc.errors import InvalidKeyIdError

from app.errors import UnavailableError
from app.jwks import (
    MAX_RESPONSE_BYTES,
    USABLE_SECONDS,
    IdentityError,
    KeySource,
    Provider,
    usable_keys,
)
from tests.app import provider
from tests.app.provider import KEY_SET_URL, ec, okp, rsa

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture
def serve():
    """Return the URL of a server that sends `pieces`, or is silent without any."""
    servers = []

    def start(*pieces: bytes, received: list[bytes] | None = None):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        arguments = (server, pieces, [] if received is None else received)
        threading.Thread(target=answer_all, args=arguments, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/keys"

    yield start
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def answer_all(server, pieces, received):
    with contextlib.suppress(OSError):  # the server is closed
        while True:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):  # the client has gone
                received.append(connection.recv(65536))
                for piece in pieces:
                    connection.sendall(piece)
                if not pieces:
                    connection.recv(1)  # until the client goes


def ask(url, seconds=60):
    """Return the object that the provider at a URL sends."""
    return Provider(url, seconds).fetch()


def test_a_slow_body_and_silence_end_with_the_timeout(serve, monkeypatch):
    # Each read is in time, the whole is not: every look at the clock is 100 s later.
    slow = SimpleNamespace(monotonic=count(step=100).__next__)
    monkeypatch.setattr("app.jwks.time", slow)
    url = serve(HEAD + b"Content-Length: 2\r\n\r\n{}")
    with pytest.raises(IdentityError):
        ask(url)
    monkeypatch.undo()
    with pytest.raises(IdentityError):
        ask(serve(), 0.05)


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((HEAD + b'Content-Length: 99\r\n\r\n{"a": 1}',), id="cut"),
        pytest.param((b"garbage\r\n\r\n",), id="no HTTP"),
        pytest.param((HEAD + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b",), id="packed"),
        pytest.param((HEAD + b"\r\n{}", b" " * MAX_RESPONSE_BYTES), id="endless"),
    ],
)
def test_a_broken_answer_is_an_error(serve, pieces):
    with pytest.raises(IdentityError) as caught:
        ask(serve(*pieces))
    assert "127.0.0.1" not in str(caught.value)


def test_nothing_of_the_environment_is_used(serve, monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login us password hush\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")
    received: list[bytes] = []
    url = serve(HEAD + b"Content-Length: 2\r\n\r\n{}", received=received)
    assert ask(url) == {}
    assert b"authorization" not in received[0].lower()


@pytest.fixture
def mock(keys):
    """The provider's answers."""
    return keys


@pytest.fixture
def source(mock, clock, tmp_path):
    """Keys that are fresh for 300 seconds, and fetched again after 10."""
    (mapping := tmp_path / "mapping.yaml").touch()
    return KeySource(provider.settings(mapping), KEY_SET_URL, clock)


@dataclass
class Named:
    """A token that names a key."""

    kid: str

    def headers(self):
        return {"alg": "RS256", "kid": self.kid}


def find(source, name="rsa-1"):
    """Return the name of the key, or None where there is none for it."""
    with contextlib.suppress(InvalidKeyIdError):
        return source.for_token(Named(name)).get_by_kid(name).kid


def test_one_request_fetches_and_others_use_the_keys_at_hand(source, mock, clock):
    through, started = threading.Event(), threading.Event()

    def respond(request):
        started.set()
        assert through.wait(60)
        return 200, {}, json.dumps(provider.key_set(rsa(), rsa("rsa-2")))

    find(source)
    mock.remove(responses.GET, KEY_SET_URL)
    mock.add_callback(responses.GET, KEY_SET_URL, respond)
    clock.now += 300
    with ThreadPoolExecutor(1) as threads:
        fetching = threads.submit(find, source, "rsa-2")
        assert started.wait(60)
        assert [find(source) for _ in range(100)] == ["rsa-1"] * 100
        through.set()
    assert fetching.result() == "rsa-2"
    assert len(mock.calls) == 2


def test_keys_serve_for_a_while_after_the_provider_has_gone(source, mock, clock):
    find(source)
    mock.upsert(responses.GET, KEY_SET_URL, status=503)
    clock.now += 300 + USABLE_SECONDS - 1
    assert find(source) == "rsa-1"
    clock.now += 1
    with pytest.raises(UnavailableError):
        find(source)


def test_a_new_key_is_found_at_once_or_after_the_pause(source, mock, clock):
    find(source)
    provider.publish(mock, rsa(), rsa("rsa-2"))
    assert find(source, "rsa-2") == "rsa-2"
    assert find(source, "forged") is None
    provider.publish(mock, rsa(), rsa("rsa-3"))
    clock.now += 9
    assert find(source, "rsa-3") is None
    clock.now += 1
    assert find(source, "rsa-3") == "rsa-3"
    assert len(mock.calls) == 3


def test_a_flood_of_forged_names_costs_one_fetch_a_pause(source, mock, clock):
    find(source)
    for number in range(800):
        clock.now += 0.125
        assert find(source, f"forged-{number}") is None
    assert len(mock.calls) == 1 + 10


BAD_ANSWERS = {
    "no connection": {"body": requests.ConnectionError("auth.example.org")},
    "time-out": {"body": requests.Timeout()},
    "error": {"status": 500},
    "redirect": {"status": 302, "headers": {"Location": "https://evil.example.org/"}},
    "page": {"body": "<html>"},
    "list": {"json": []},
    "no keys": {"json": {}},
    "keys is a text": {"json": {"keys": "abc"}},
    "nothing usable": {"json": {"keys": [7, {"kty": "RSA"}, {"kty": "new"}]}},
    "too long": {"json": provider.key_set(rsa()) | {"x": "x" * MAX_RESPONSE_BYTES}},
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_a_bad_answer_leaves_what_we_have(source, mock, clock, caplog, name):
    find(source)
    mock.upsert(responses.GET, KEY_SET_URL, **BAD_ANSWERS[name])
    clock.now += 301
    assert find(source) == "rsa-1"
    clock.now += 10
    with pytest.raises(UnavailableError) as caught:
        find(source, "rsa-2")
    assert caught.value.headers == (("Retry-After", "10"),)
    assert {call.request.url for call in mock.calls} == {KEY_SET_URL}
    assert caplog.records
    assert not any("example.org" in str(vars(line)["data"]) for line in caplog.records)


def _number(bits):
    key = generate_private_key(public_exponent=65537, key_size=bits).public_key()
    octets = key.public_numbers().n.to_bytes(bits // 8, "big")
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


PUBLIC = rsa().as_dict(private=False)
UNUSABLE = {
    "for encryption": {**PUBLIC, "use": "enc"},
    "use is a list": {**PUBLIC, "use": ["sig"]},
    "for other operations": {**PUBLIC, "key_ops": ["encrypt"]},
    "symmetric": {"kty": "oct", "k": "c2VjcmV0", "kid": "rsa-1"},
    "of a kind not known": {"kty": "AKP", "alg": "ML-DSA-44", "pub": "x"},
    "kind is a list": {"kty": ["RSA"]},
    "without a kind": {"n": PUBLIC["n"], "e": PUBLIC["e"]},
    "without its number": {"kty": "RSA", "e": "AQAB"},
    "with a broken number": {"kty": "RSA", "n": "=", "e": "AQAB"},
    "number is not text": {"kty": "RSA", "n": 7, "e": "AQAB"},
    "too short": {"kty": "RSA", "n": _number(1024), "e": "AQAB"},
    "on a curve not known": {"kty": "EC", "crv": "P-0", "x": "AA", "y": "AA"},
    "off its curve": {**ec().as_dict(private=False), "y": "AA"},
    "for key agreement": okp("x", "X25519").as_dict(private=False),
    "of the other Edwards curve": okp("e", "Ed448").as_dict(private=False),
    "a text": "key",
    "nothing": None,
}


def test_a_key_that_cannot_serve_is_passed_over():
    good = ec().as_dict(private=False)
    for name, unusable in UNUSABLE.items():
        usable = usable_keys({"keys": [unusable, good]})
        assert [each.as_dict() for each in usable] == [good], name
        with pytest.raises(IdentityError):
            usable_keys({"keys": [unusable]})
