"""Bytes that no HTTP library would send, against the whole service.

Each gets a clean refusal or an end of the connection. Nothing of it is in the log, nothing
that follows it on the connection is taken for a request of its own, the worker lives, and the
next request gets its own answer.
"""

import re
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from typing import NamedTuple

import pytest

from adapters.testing.stays import EDGES
from tests.app import provider
from tests.app.operations.running import Running, running
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST
from tests.redis_server import RedisServer
from tests.validity.client import check_answer

PATIENCE = 60.0
RESET = struct.pack("ii", 1, 0)
CANARY = b"QUENTIN-4711"
STAY = str(EDGES.stays[0].id).encode()
OTHER = str(EDGES.stays[1].id).encode()


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer
) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("attacked")
    url = f"sqlite:///{directory / 'pas.db'}"
    Tables(url, EDGES).close()
    mapping = directory / "mapping.yaml"
    mapping.write_text(mapping_text(EDGES), "utf-8")
    settings = {"REQUEST_SECONDS": "1", "THREADS": "2", "REDIS_URL": redis_server.url}
    with running(directory, mapping, {"PAS_URL": url}, **settings) as started:
        workers = started.workers()
        yield started
        assert started.workers() == workers
        log = started.log.read_text("utf-8", "replace")
        assert CANARY.decode() not in log
        assert "Traceback" not in log
        assert not started.events("request failed")


class Told(NamedTuple):
    """One answer of those that came over a connection."""

    status: int
    headers: dict[str, str]
    body: bytes


def told(service: Running, sent: bytes, *, ends: bool = False) -> list[Told]:
    """Send bytes; return all answers, until the service closes."""
    with socket.create_connection((HOST, service.port), PATIENCE) as connection:
        try:
            connection.sendall(sent)
            if ends:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            # It was refused before all of it was sent.
            pass
        return list(_answers(_all(connection)))


def _all(connection: socket.socket) -> bytes:
    data = b""
    try:
        while more := connection.recv(65536):
            data += more
    except ConnectionResetError:
        pass
    return data


def _answers(data: bytes) -> Iterator[Told]:
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("ascii").split("\r\n")
        status = int(re.fullmatch(r"HTTP/1\.[01] (\d{3}) .*", first)[1])  # type: ignore[index]
        headers = dict(line.split(": ", 1) for line in lines)
        length = int(headers.get("Content-Length", 0))
        body, data = data[:length], data[length:]
        assert len(body) == length
        if status != 100:
            check_answer("GET", "/fhir/v3/x", status, headers, body)
        yield Told(status, headers, body)


@cache
def bearer() -> bytes:
    # Made when tests are collected: good for as long as any run takes.
    return provider.bearer(provider.sign(exp=int(time.time()) + 86400)).encode()


def way(*extra: bytes) -> bytes:
    """Return the headers of a client that is let in, and others."""
    known = (b"Host: x", b"X-Forwarded-Proto: https", b"Authorization: " + bearer())
    return b"\r\n".join((*known, *extra)) + b"\r\n\r\n"


CLOSE = b"Connection: close"
FORM = b"Content-Type: application/x-www-form-urlencoded"
READ = b"GET /fhir/v3/Encounter/" + STAY + b" HTTP/1.1\r\n"
SEARCH = b"POST /fhir/v3/Encounter/_search HTTP/1.1\r\n"
SMUGGLED = b"GET /fhir/v3/Encounter/" + OTHER + b" HTTP/1.1\r\n"
"""Hidden in another request: an answer to it would be somebody else's."""


def posted(body: bytes, *extra: bytes) -> bytes:
    return SEARCH + way(FORM, *extra) + body


@cache
def bad() -> dict[str, tuple[bytes, list[int]]]:
    """Return what is sent, and the statuses that come for it."""
    hidden = SMUGGLED + way(CLOSE)
    length = b"Content-Length: %d"
    chunked = b"Transfer-Encoding: chunked"
    form = b"_id=" + STAY
    padding = b"4000\r\n" + b"_format=json;".ljust(16384, b"a") + b"\r\n"
    zero = b"0\r\n\r\n"
    return {
        "half a request line": (b"GET /fhir/" + CANARY, [408]),
        "half a head": (READ + b"X-Y: " + CANARY, [408]),
        "nothing but blanks": (b"    \r\n\r\n", [400]),
        "nothing but line ends": (b"\r\n" * 50, [400]),
        "bytes of TLS": (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + CANARY,
            [408],
        ),
        "HTTP/0.9": (b"GET /fhir/v3/Encounter/" + STAY + b"\r\n\r\n", [400]),
        "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9), [400]),
        "HTTP/3.7": (READ.replace(b"1.1", b"3.7") + way(), [400]),
        "no version": (b"GET /" + CANARY + b" \r\n" + way(), [400]),
        "four words": (b"GET / " + CANARY + b" HTTP/1.1\r\n" + way(), [400]),
        "an unknown method": (b"BREW" + READ[3:] + way(CLOSE), [405]),
        "a method in small letters": (b"get" + READ[3:] + way(), [400]),
        "a long method": (b"G" * 5000 + READ[3:] + way(), [400]),
        "CONNECT": (b"CONNECT 192.0.2.1:443 HTTP/1.1\r\n" + way(), [404]),
        "TRACE": (b"TRACE" + READ[3:] + way(CLOSE), [405]),
        "another's address": (
            READ.replace(b" /", b" http://" + CANARY + b"/") + way(CLOSE),
            [200],
        ),
        "an asterisk": (b"OPTIONS * HTTP/1.1\r\n" + way(CLOSE), [404]),
        "no slash": (b"GET fhir/v3/metadata HTTP/1.1\r\n" + way(CLOSE), [400]),
        "a NUL in the address": (READ.replace(STAY, STAY + b"\0") + way(), [400]),
        "a NUL in a header": (READ + way(b"X-Y: a\0" + CANARY), [400]),
        "a carriage return in a header": (READ + way(b"X-Y: a\r" + CANARY), [400]),
        "a line feed in a header": (READ + way(b"X-Y: a\n" + CANARY), [400]),
        "line feeds alone": ((READ + way()).replace(b"\r\n", b"\n"), [400]),
        "no colon": (READ + way(CANARY), [400]),
        "a blank before the colon": (READ + way(b"X-Y : " + CANARY), [400]),
        "an underscore for a hyphen": (
            READ + way(b"X_Forwarded_For: " + CANARY, CLOSE),
            [200],
        ),
        "no name": (READ + way(b": " + CANARY), [400]),
        "a folded line": (READ + way(b"X-Y: a\r\n " + CANARY), [400]),
        "letters beyond ASCII": (READ + way("X-Y: é".encode(), CLOSE), [200]),
        "two hosts": (READ + way(b"Host: " + CANARY), [400]),
        "a long address": (READ.replace(STAY, CANARY * 5000) + way(), [414]),
        "a long header": (READ + way(b"X-Y: " + CANARY * 2000), [431]),
        "a header without end": (READ + b"X-Y: " + CANARY * 20000, [431]),
        "many headers": (READ + way(*[b"X-Y: a"] * 5000), [431]),
        "a length too long": (posted(form, length % 90), [408]),
        "a length too long, and the end": (posted(form, length % 90), [400]),
        "a length too short": (posted(form + hidden, length % len(form)), [200, 200]),
        "a negative length": (posted(form, b"Content-Length: -1"), [400]),
        "a length with a sign": (posted(form, b"Content-Length: +5"), [400]),
        "a length in hexadecimal": (posted(form, b"Content-Length: 0x5"), [400]),
        "a length in other digits": (posted(form, "Content-Length: ٥".encode()), [400]),
        "a superscript length": (posted(form, b"Content-Length: \xb2"), [400]),
        "an empty length": (posted(form, b"Content-Length:"), [400]),
        "a list of lengths": (posted(form + hidden, b"Content-Length: 5, 5"), [400]),
        "two lengths": (posted(form + hidden, length % 5, length % 6), [400]),
        "the same length twice": (posted(form + hidden, length % 5, length % 5), [400]),
        "a huge length": (posted(form, b"Content-Length: 99999999999999999999"), [413]),
        "a body too long": (posted(form * 99999, length % (99999 * len(form))), [413]),
        "a length and chunks": (posted(zero + hidden, length % 5, chunked), [400]),
        "chunks and a length": (posted(zero + hidden, chunked, length % 5), [400]),
        "chunks twice": (posted(zero + hidden, chunked, chunked), [400]),
        "chunked, chunked": (posted(zero + hidden, chunked + b", chunked"), [400]),
        "chunks, spelt oddly": (
            posted(zero + hidden, b"Transfer-Encoding: xchunked"),
            [501],
        ),
        "chunks after a tab": (
            posted(zero + hidden, b"Transfer-Encoding:\x0bchunked"),
            [400],
        ),
        "chunks, then identity": (
            posted(zero + hidden, b"Transfer-Encoding: chunked, identity"),
            [400],
        ),
        "identity": (posted(form + hidden, b"Transfer-Encoding: identity"), [400]),
        "chunks of HTTP/1.0": (
            posted(zero + hidden, chunked).replace(b"1.1", b"1.0", 1),
            [400],
        ),
        "a chunk without a size": (posted(b"\r\n" + hidden, chunked), [400]),
        "a size that is none": (posted(b"zz\r\n" + form + hidden, chunked), [400]),
        "a negative size": (posted(b"-5\r\n" + form + hidden, chunked), [400]),
        "a size with 0x": (posted(b"0x5\r\n" + form + hidden, chunked), [400]),
        "a huge size": (
            posted(b"FFFFFFFFFFFFFFFF\r\n" + form + hidden, chunked),
            [413],
        ),
        "a filter behind chunks too long": (
            posted(padding * 4 + b"6\r\n&" + form[:5] + b"\r\n" + zero, chunked),
            [413],
        ),
        "a chunk too short": (posted(b"9\r\n" + form + b"\r\n" + zero, chunked), [408]),
        "a chunk too long": (posted(b"2\r\n" + form + b"\r\n" + zero, chunked), [400]),
        "no last chunk": (posted(b"5\r\n" + form[:5] + b"\r\n", chunked), [408]),
        "a line feed in a size": (
            posted(b"5\n" + form[:5] + b"\r\n" + zero, chunked),
            [400],
        ),
        "a long extension": (posted(b"5;" + CANARY * 999, chunked), [400]),
        "a length in a trailer": (
            posted(b"0\r\nContent-Length: 5\r\n\r\n" + hidden, chunked),
            [400],
        ),
        "an expectation": (posted(form, length % 5, b"Expect: " + CANARY), [417]),
        "an upgrade, and the end": (
            READ + way(b"Upgrade: h2c", b"Connection: Upgrade"),
            [200],
        ),
        "a proxy's first line": (
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" + READ + way(),
            [400],
        ),
    }


@pytest.fixture(scope="module")
def late(service: Running) -> Iterator[dict[str, Future[list[Told]]]]:
    """Send all that the service waits for the rest of, at the same time."""
    waiting = [name for name, (_, statuses) in bad().items() if statuses == [408]]
    with ThreadPoolExecutor(len(waiting)) as elsewhere:
        yield {
            name: elsewhere.submit(told, service, bad()[name][0]) for name in waiting
        }


@pytest.mark.parametrize("name", bad())
def test_bytes_that_are_no_request_are_refused(
    service: Running, late: dict[str, Future[list[Told]]], name: str
) -> None:
    sent, statuses = bad()[name]
    if name in late:
        given = late[name].result(PATIENCE)
    else:
        given = told(service, sent, ends=name.endswith("the end"))
    assert [each.status for each in given] == statuses
    answered = service.get(f"Encounter/{STAY.decode()}")
    assert (answered.status, answered.json["id"]) == (200, STAY.decode())


def test_probes_are_answered_whatever_comes_to_their_port(service: Running) -> None:
    place = (HOST, service.port + 1)
    with ExitStack() as stack:
        for _ in range(50):
            stalled = socket.create_connection(place, PATIENCE)
            stack.enter_context(stalled).sendall(b"GET /live HTTP/1.1\r\nX-Y: ")
        for sent in (
            b"",
            b"GET /metrics HTTP/1.1\r\n\r\n",
            CANARY * 9000,
            b"\0\r\n\r\n",
        ):
            with socket.create_connection(place, PATIENCE) as gone:
                gone.sendall(sent)
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        assert service.operations("/live").status == 200
        assert service.operations("/metrics").status == 200
