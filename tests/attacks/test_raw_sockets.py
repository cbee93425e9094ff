"""Bytes that are no request, sent to gunicorn without its proxy: refused, and not logged.

What clients get then is gunicorn's own; tests/deploy/test_proxy.py has what they get in a
deployment. Here it counts that nothing is answered that was hidden, that nothing sent is in a
log, and that the service goes on.
"""

import gzip
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

import pytest

from adapters.testing.hospital import EDGES
from tests.app import provider
from tests.live import HOST
from tests.redis_server import RedisServer
from tests.server.running import PATIENCE, Running, edges, running

CANARY = b"QUENTIN-4711"
STAY = str(EDGES.stays[0].id).encode()
OTHER = str(EDGES.stays[1].id).encode()


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer
) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("attacked")
    with running(directory, edges(directory), REDIS_URL=redis_server.url) as started:
        workers = started.workers()
        yield started
        assert started.workers() == workers
        log = started.log.read_text("utf-8", "replace")
        assert CANARY.decode() not in log
        assert "Encounter/" + STAY.decode() not in log
        refusals = [e for e in started.lines() if e["logger"] == "gunicorn.error"]
        assert any(e["event"].startswith("(withheld)") for e in refusals)


def exchanged(service: Running, sent: bytes) -> bytes:
    """Send bytes and end; return all that is answered."""
    data = b""
    with (
        socket.create_connection((HOST, service.port), PATIENCE) as connection,
        # It may be refused, and the connection gone, before all of it is sent.
        suppress(OSError),
    ):
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        while more := connection.recv(65536):
            data += more
    assert OTHER not in re.findall(rb'"resourceType":"Encounter","id":"([^"]+)"', data)
    return data


def statuses(service: Running, sent: bytes) -> list[int]:
    """Send bytes and end; return the status of each answer."""
    return statuses_in(exchanged(service, sent))


def statuses_in(data: bytes) -> list[int]:
    return [int(s) for s in re.findall(rb"^HTTP/1\.[01] (\d{3}) ", data, re.MULTILINE)]


@cache
def way(*extra: bytes) -> bytes:
    """Return the headers of a client that is let in, and others."""
    token = provider.bearer(provider.sign()).encode()
    known = (b"Host: x", b"X-Forwarded-Proto: https", b"Authorization: " + token)
    return b"\r\n".join((*known, *extra)) + b"\r\n\r\n"


READ = b"GET /fhir/v3/Encounter/" + STAY + b" HTTP/1.1\r\n"
HIDDEN = b"GET /fhir/v3/Encounter/" + OTHER + b" HTTP/1.1\r\n" + way()
FORM = b"Content-Type: application/x-www-form-urlencoded"
CHUNKED = b"Transfer-Encoding: chunked"
ZERO = b"0\r\n\r\n"


def posted(body: bytes, *extra: bytes) -> bytes:
    return b"POST /fhir/v3/Encounter/_search HTTP/1.1\r\n" + way(FORM, *extra) + body


BAD = {
    "half a request line": b"GET /fhir/" + CANARY,
    "half a head": READ + b"X-Y: " + CANARY,
    "bytes of TLS": b"\x16\x03\x01\x02\x00\x01\xfc\x03\x03" + CANARY + b"\r\n\r\n",
    "HTTP/0.9": b"GET /fhir/v3/Encounter/" + CANARY + b"\r\n\r\n",
    "HTTP/3.7": READ.replace(b"1.1", b"3.7") + way(),
    "no version": b"GET /" + CANARY + b" \r\n" + way(),
    "four words": b"GET / " + CANARY + b" HTTP/1.1\r\n" + way(),
    "a method in small letters": b"quentin-4711" + READ[3:] + way(),
    "a NUL in the address": READ.replace(STAY, CANARY + b"\0") + way(),
    "a NUL in a header": READ + way(b"X-Y: a\0" + CANARY),
    "no colon": READ + way(CANARY),
    "a blank before the colon": READ + way(b"X-Y : " + CANARY),
    "a folded line": READ + way(b"X-Y: a\r\n " + CANARY),
    "two hosts": READ + way(b"Host: " + CANARY),
    "a long address": READ.replace(STAY, CANARY * 5000) + way(),
    "a long header": READ + way(b"X-Y: " + CANARY * 2000),
    "many headers": READ + way(*[b"X-" + CANARY + b": a"] * 9000),
    "a negative length": posted(HIDDEN, b"Content-Length: -1"),
    "a length with a sign": posted(HIDDEN, b"Content-Length: +5"),
    "two lengths": posted(HIDDEN, b"Content-Length: 5", b"Content-Length: 6"),
    "a length and chunks": posted(ZERO + HIDDEN, b"Content-Length: 5", CHUNKED),
    "chunked, chunked": posted(ZERO + HIDDEN, CHUNKED + b", chunked"),
    "chunks, spelt oddly": posted(ZERO + HIDDEN, b"Transfer-Encoding: xchunked"),
    "chunks of HTTP/1.0": posted(ZERO + HIDDEN, CHUNKED).replace(b"1.1", b"1.0", 1),
    "an expectation": posted(b"_id=1", b"Content-Length: 5", b"Expect: " + CANARY),
    "a proxy's first line": b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" + READ + way(),
}


@pytest.mark.parametrize("name", BAD)
def test_bytes_that_are_no_request_are_refused(service: Running, name: str) -> None:
    answers = statuses(service, BAD[name])
    assert len(answers) <= 1
    assert all(400 <= status < 600 for status in answers)
    answered = service.get(f"Encounter/{STAY.decode()}")
    assert (answered.status, answered.json["id"]) == (200, STAY.decode())
    assert service.operations("/live").status == 200


@pytest.mark.parametrize("coding", [b"gzip, chunked", b"gzip\r\n" + CHUNKED, b"gzip"])
def test_a_compressed_form_is_refused_in_fhir(service: Running, coding: bytes) -> None:
    """gunicorn undoes the chunks alone, and refuses a body without chunks itself."""
    form = gzip.compress(b"_id=" + STAY)
    chunk = b"%x\r\n%s\r\n%s" % (len(form), form, ZERO)
    headers = (b"Transfer-Encoding: " + coding, b"Prefer: handling=lenient")
    data = exchanged(service, posted(chunk, *headers))
    (status,) = statuses_in(data)
    assert status == (501 if CHUNKED[-7:] in coding else 400)
    assert (b'"resourceType":"OperationOutcome"' in data) == (status == 501)


BROKEN = {
    "a size that is none": b"zz\r\n_id=" + CANARY + b"\r\n" + ZERO,
    "a huge size": b"FFFFFFFFFFFFFFFF\r\n_id=" + CANARY,
    "a chunk too long": b"2\r\n_id=" + CANARY + b"\r\n" + ZERO,
    "no last chunk": b"5\r\n_id=1\r\n",
    "a long extension": b"5;" + CANARY * 999,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_body_that_breaks_is_never_a_search(service: Running, name: str) -> None:
    answers = statuses(service, posted(BROKEN[name] + HIDDEN, CHUNKED))
    assert len(answers) <= 1
    assert all(400 <= status < 600 for status in answers)
