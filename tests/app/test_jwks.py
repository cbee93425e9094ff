"""The identity provider: requests in bounded time and size, and which keys count when."""

import base64
import contextlib
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
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
from tests.app.provider import KEY_SET_URL, Clock, ec, okp, rsa

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture
def serve():
    """Return the URL of a server that sends `pieces`, or is silent without any."""
    servers = []

    def start(*pieces: bytes, seen: list[bytes] | None = None):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        told = [] if seen is None else seen
        arguments = (server, pieces, told)
        threading.Thread(target=answer_all, args=arguments, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/keys"

    yield start
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def answer_all(server, pieces, told):
    with contextlib.suppress(OSError):  # the server is closed
        while True:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):  # the client has gone
                told.append(connection.recv(65536))
                for piece in pieces:
                    connection.sendall(piece)
                if not pieces:
                    connection.recv(1)  # until the client goes


def ask(url, seconds=60):
    """Return the object that the provider at a URL sends."""
    return Provider(url, seconds).fetch()


def test_a_slow_body_ends_with_the_timeout(serve, monkeypatch):
    # Each read is in time, the whole is not: every look at the clock is 100 s later.
    slow = SimpleNamespace(monotonic=count(step=100).__next__)
    monkeypatch.setattr("app.jwks.time", slow)
    url = serve(HEAD + b"Content-Length: 2\r\n\r\n{}")
    with pytest.raises(IdentityError):
        ask(url)


def test_silence_ends_with_the_timeout(serve):
    with pytest.raises(IdentityError):
        ask(serve(), 0.05)


def test_chunks_are_read(serve):
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    assert ask(serve(head, b'4\r\n{"a"\r\n', b"4\r\n: 1}\r\n", b"0\r\n\r\n")) == {
        "a": 1
    }


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
    seen: list[bytes] = []
    url = serve(HEAD + b"Content-Length: 2\r\n\r\n{}", seen=seen)
    assert ask(url) == {}
    assert b"authorization" not in seen[0].lower()


def test_cookies_are_not_kept(serve):
    seen: list[bytes] = []
    head = HEAD + b"Set-Cookie: a=b\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    url = serve(head, seen=seen)
    asked = Provider(url, 60)
    asked.fetch()
    asked.fetch()
    assert len(seen) == 2
    assert b"cookie" not in seen[1].lower()


@pytest.fixture
def mock():
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        provider.publish(mock, rsa())
        yield mock


THREADS = 16


@dataclass
class WatchedClock(Clock):
    """A clock that knows which threads have read it, as all do before they fetch."""

    readers: set[int] = field(default_factory=set)
    read: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self) -> float:
        with self.read:
            self.readers.add(threading.get_ident())
            self.read.notify_all()
        return self.now


def publish_to_all(mock, clock, *keys):
    """Publish these keys, and respond only when all threads have come along."""
    clock.readers.clear()

    def respond(request):
        with clock.read:
            assert clock.read.wait_for(lambda: len(clock.readers) == THREADS, 60)
        return 200, {}, json.dumps(provider.key_set(*keys))

    mock.remove(responses.GET, KEY_SET_URL)
    mock.add_callback(responses.GET, KEY_SET_URL, respond)


@pytest.fixture
def clock():
    return WatchedClock(1000.0)


@pytest.fixture
def given(tmp_path):
    """The settings: a key set is fresh for 300 seconds, and fetched again after 10."""
    mapping = tmp_path / "mapping.yaml"
    mapping.touch()
    return provider.settings(mapping)


@pytest.fixture
def keys(clock, given):
    return KeySource(given, KEY_SET_URL, clock=clock)


def test_a_key_set_is_fetched_once_while_it_is_fresh(keys, mock, clock):
    for _ in range(30):
        assert keys.find("rsa-1", "RS256").kid == "rsa-1"
        clock.now += 9
    assert len(mock.calls) == 1
    clock.now += 30
    assert keys.find("rsa-1", "RS256").kid == "rsa-1"
    assert len(mock.calls) == 2


@pytest.fixture
def held(mock):
    """Hold the provider's next response back until the event that this returns is set."""
    through, started = threading.Event(), threading.Event()

    def respond(request):
        started.set()
        assert through.wait(60)
        return 200, {}, json.dumps(provider.key_set(rsa(), rsa("rsa-2")))

    def hold():
        mock.remove(responses.GET, KEY_SET_URL)
        mock.add_callback(responses.GET, KEY_SET_URL, respond)
        return through, started

    yield hold
    through.set()


def test_one_request_fetches_and_others_use_the_keys_at_hand(keys, mock, clock, held):
    keys.find("rsa-1", "RS256")
    through, started = held()
    clock.now += 300
    with ThreadPoolExecutor(1) as threads:
        fetching = threads.submit(keys.find, "rsa-2", "RS256")
        assert started.wait(60)
        for _ in range(100):
            assert keys.find("rsa-1", "RS256").kid == "rsa-1"
        through.set()
    assert fetching.result().kid == "rsa-2"
    assert len(mock.calls) == 2


def test_keys_that_nobody_refreshed_for_an_hour_are_asked_for_first(keys, mock, clock):
    keys.find("rsa-1", "RS256")
    provider.publish(mock, rsa("rsa-2"))
    clock.now += 300 + USABLE_SECONDS
    with pytest.raises(InvalidKeyIdError):
        keys.find("rsa-1", "RS256")
    assert len(mock.calls) == 2


def test_however_old_they_are_they_serve_while_the_provider_is_away(keys, mock, clock):
    keys.find("rsa-1", "RS256")
    mock.upsert(responses.GET, KEY_SET_URL, status=503)
    clock.now += 86400
    assert keys.find("rsa-1", "RS256").kid == "rsa-1"
    clock.now += 10
    assert keys.find("rsa-1", "RS256").kid == "rsa-1"
    assert len(mock.calls) == 3


def test_a_new_key_is_found_at_once(keys, mock):
    keys.find("rsa-1", "RS256")
    provider.publish(mock, rsa(), rsa("rsa-2"))
    assert keys.find("rsa-2", "RS256").kid == "rsa-2"
    assert len(mock.calls) == 2


def test_a_new_key_is_found_at_once_after_the_pause(keys, mock, clock):
    keys.find("rsa-1", "RS256")
    with pytest.raises(InvalidKeyIdError):
        keys.find("forged", "RS256")
    provider.publish(mock, rsa(), rsa("rsa-2"))
    clock.now += 9
    with pytest.raises(InvalidKeyIdError):
        keys.find("rsa-2", "RS256")
    clock.now += 1
    assert keys.find("rsa-2", "RS256").kid == "rsa-2"
    assert len(mock.calls) == 3


def test_a_flood_of_forged_names_costs_one_fetch_a_pause(keys, mock, clock):
    keys.find("rsa-1", "RS256")
    for number in range(800):
        clock.now += 0.125
        with pytest.raises(InvalidKeyIdError):
            keys.find(f"forged-{number}", "RS256")
    assert len(mock.calls) == 1 + 10


def together(keys, *names):
    """Look for keys from as many threads at once; return those that were there."""
    barrier = threading.Barrier(len(names))

    def ask(name):
        barrier.wait(60)
        with contextlib.suppress(InvalidKeyIdError):
            return keys.find(name, "RS256").kid

    with ThreadPoolExecutor(len(names)) as pool:
        return list(pool.map(ask, names))


def test_threads_that_meet_cost_one_fetch_before_there_are_keys_and_for_unknown_names(
    keys, mock, clock
):
    publish_to_all(mock, clock, rsa())
    assert together(keys, *["rsa-1"] * THREADS) == ["rsa-1"] * THREADS
    assert len(mock.calls) == 1
    publish_to_all(mock, clock, rsa())
    clock.now += 10
    assert set(together(keys, *(f"forged-{n}" for n in range(THREADS)))) == {None}
    assert len(mock.calls) == 2
    publish_to_all(mock, clock, rsa("rsa-2"))
    clock.now += 10
    assert together(keys, *["rsa-2"] * THREADS) == ["rsa-2"] * THREADS
    assert len(mock.calls) == 3


def test_a_name_that_does_not_fit_costs_no_fetch(keys, mock, clock):
    keys.find("rsa-1", "RS256")
    clock.now += 60
    with pytest.raises(InvalidKeyIdError):
        keys.find("rsa-1", "ES256")
    assert len(mock.calls) == 1


@pytest.fixture
def another(clock, given, tmp_path):
    """Return a function that makes the key source of another process."""

    def begun():
        kept = tmp_path / "keys"
        return KeySource(given, KEY_SET_URL, clock=clock, saved=kept)

    return begun


def test_who_begins_while_the_provider_is_away_has_the_keys_of_others(
    another, mock, clock
):
    another().find("rsa-1", "RS256")
    mock.upsert(responses.GET, KEY_SET_URL, status=503)
    late = another()
    assert late.find("rsa-1", "RS256").kid == "rsa-1"
    with pytest.raises(UnavailableError):
        late.find("rsa-2", "RS256")
    # Withdrawn meanwhile: that counts as soon as the provider is back.
    provider.publish(mock, rsa("rsa-2"))
    clock.now += 10
    assert late.freshen() == 2
    with pytest.raises(InvalidKeyIdError):
        late.find("rsa-1", "RS256")


def test_who_begins_while_it_answers_asks_it(another, mock):
    another().find("rsa-1", "RS256")
    provider.publish(mock, rsa("rsa-2"))
    with pytest.raises(InvalidKeyIdError):
        another().find("rsa-1", "RS256")


@pytest.mark.parametrize(
    "found", [None, b"", b"{", b"{}", b'{"keys": [{"kty": "oct"}]}']
)
def test_what_was_kept_and_is_none_is_as_nothing(another, mock, tmp_path, found):
    if found is not None:
        (tmp_path / "keys").write_bytes(found)
    mock.upsert(responses.GET, KEY_SET_URL, status=503)
    late = another()
    with pytest.raises(UnavailableError):
        late.find("rsa-1", "RS256")
    assert late.freshen() == 0


def test_no_private_part_of_a_key_is_kept(another, mock, tmp_path):
    open_handed = {"keys": [rsa().as_dict(private=True)]}
    mock.upsert(responses.GET, KEY_SET_URL, json=open_handed)
    another().find("rsa-1", "RS256")
    (kept,) = json.loads((tmp_path / "keys").read_bytes())["keys"]
    assert open_handed["keys"][0].keys() - kept.keys() >= {"d", "p", "q"}
    assert {each.name for each in tmp_path.iterdir()} == {"keys", "mapping.yaml"}


BAD_ANSWERS = {
    "no connection": {"body": requests.ConnectionError("auth.example.org")},
    "time-out": {"body": requests.Timeout()},
    "error": {"status": 500},
    "redirect": {"status": 302, "headers": {"Location": "https://evil.example.org/"}},
    "page": {"body": "<html>"},
    "list": {"json": []},
    "no keys": {"json": {}},
    "keys is a text": {"json": {"keys": "abc"}},
    "empty": {"json": {"keys": []}},
    "nothing usable": {"json": {"keys": [7, {"kty": "RSA"}, {"kty": "new"}]}},
    "too long": {
        "json": provider.key_set(rsa("rsa-2")) | {"x": "x" * MAX_RESPONSE_BYTES}
    },
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_a_bad_answer_leaves_what_we_have(keys, mock, clock, caplog, name):
    keys.find("rsa-1", "RS256")
    mock.upsert(responses.GET, KEY_SET_URL, **BAD_ANSWERS[name])
    clock.now += 301
    assert keys.find("rsa-1", "RS256").kid == "rsa-1"
    clock.now += 10
    with pytest.raises(UnavailableError) as caught:
        keys.find("rsa-2", "RS256")
    assert caught.value.headers == (("Retry-After", "10"),)
    assert {call.request.url for call in mock.calls} == {KEY_SET_URL}
    assert caplog.records
    assert not any("example.org" in str(vars(line)["data"]) for line in caplog.records)


def test_without_keys_the_answer_names_the_seconds_to_the_next_try(keys, mock, clock):
    mock.upsert(responses.GET, KEY_SET_URL, status=500)
    with pytest.raises(UnavailableError):
        keys.find("rsa-1", "RS256")
    clock.now += 6.5
    with pytest.raises(UnavailableError) as caught:
        keys.find("rsa-1", "RS256")
    assert caught.value.headers == (("Retry-After", "4"),)
    assert len(mock.calls) == 1


def test_after_an_outage_the_first_waits_for_keys_and_forged_names_are_unknown(
    keys, mock, clock
):
    mock.upsert(responses.GET, KEY_SET_URL, status=500)
    with pytest.raises(UnavailableError):
        keys.find("rsa-1", "RS256")
    provider.publish(mock, rsa())
    clock.now += 10
    assert keys.find("rsa-1", "RS256").kid == "rsa-1"
    with pytest.raises(InvalidKeyIdError):
        keys.find("forged", "RS256")


# ------------------------------------------------------------- which key it is


def test_a_token_without_a_name_is_taken_where_one_key_fits(keys, mock):
    provider.publish(mock, rsa(), ec(), okp())
    assert keys.find(None, "RS256").kid == "rsa-1"
    assert keys.find(None, "ES256").kid == "ec-1"
    with pytest.raises(InvalidKeyIdError):
        keys.find(None, "ES384")


def test_a_token_without_a_name_is_refused_where_two_keys_fit(keys, mock):
    provider.publish(mock, rsa(), rsa("rsa-2"))
    with pytest.raises(InvalidKeyIdError):
        keys.find(None, "RS256")


def test_two_keys_of_one_name_are_told_apart_by_the_algorithm(keys, mock):
    provider.publish(mock, rsa("same"), ec("same"))
    assert keys.find("same", "ES256").key_type == "EC"
    assert keys.find("same", "PS512").key_type == "RSA"


def test_a_key_for_one_algorithm_serves_no_other(keys, mock):
    mock.upsert(responses.GET, KEY_SET_URL, json=provider.key_set(rsa(), alg="RS512"))
    assert keys.find("rsa-1", "RS512")
    with pytest.raises(InvalidKeyIdError):
        keys.find("rsa-1", "RS256")


def _number(bits):
    made = generate_private_key(public_exponent=65537, key_size=bits).public_key()
    octets = made.public_numbers().n.to_bytes(bits // 8, "big")
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


PUBLIC = rsa().as_dict(private=False)
UNUSABLE = {
    "for encryption": {**PUBLIC, "use": "enc"},
    "for something else": {**PUBLIC, "use": "x"},
    "use is a list": {**PUBLIC, "use": ["sig"]},
    "for other operations": {**PUBLIC, "key_ops": ["encrypt"]},
    "symmetric": {"kty": "oct", "k": "c2VjcmV0", "kid": "rsa-1"},
    "of a kind not known": {"kty": "AKP", "alg": "ML-DSA-44", "pub": "x"},
    "kind is a list": {"kty": ["RSA"]},
    "without a kind": {"n": PUBLIC["n"], "e": PUBLIC["e"]},
    "without its number": {"kty": "RSA", "e": "AQAB"},
    "with a broken number": {"kty": "RSA", "n": "=", "e": "AQAB"},
    "number is not text": {"kty": "RSA", "n": 7, "e": "AQAB"},
    "number is null": {"kty": "RSA", "n": None, "e": "AQAB"},
    "too short": {"kty": "RSA", "n": _number(1024), "e": "AQAB"},
    "on a curve not known": {"kty": "EC", "crv": "P-0", "x": "AA", "y": "AA"},
    "off its curve": {**ec().as_dict(private=False), "y": "AA"},
    "for key agreement": okp("x", "X25519").as_dict(private=False),
    "of the other Edwards curve": okp("e", "Ed448").as_dict(private=False),
    "a text": "key",
    "nothing": None,
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_key_that_cannot_serve_is_passed_over(name):
    good = ec().as_dict(private=False)
    (kept,) = usable_keys({"keys": [UNUSABLE[name], good]})
    assert kept.as_dict() == good
    with pytest.raises(IdentityError):
        usable_keys({"keys": [UNUSABLE[name]]})
