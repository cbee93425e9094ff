"""Bytes that are no request, sent to gunicorn without its proxy: refused, and not logged.

tests/deploy/test_proxy.py has what clients get behind the proxy.
"""

import gzip
import re
import socket
from contextlib import suppress
from functools import cache

import pytest

from tests.app import provider
from tests.app.server.running import PATIENCE, edges, running
from tests.live import HOST
from toolkit.contract.hospital import EDGES

pytestmark = pytest.mark.system

CANARY = b"QUENTIN-4711"
STAY = str(EDGES.stays[0].id).encode()
OTHER = str(EDGES.stays[1].id).encode()


@pytest.fixture(scope="module")
def service(tmp_path_factory, redis_server):
    directory = tmp_path_factory.mktemp("attacked")
    with running(directory, edges(directory), REDIS_URL=redis_server.url) as started:
        workers = started.workers()
        yield started
        assert started.workers() == workers
        log = started.log.read_text("utf-8", "replace")
        assert CANARY.decode() not in log
        assert "Encounter/" + STAY.decode() not in log


def exchanged(service, sent):
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


def statuses_in(data):
    return [int(s) for s in re.findall(rb"^HTTP/1\.[01] (\d{3}) ", data, re.MULTILINE)]


@cache
def way(*extra):
    """Return the headers of a client that is let in, and others."""
    token = provider.bearer(provider.sign()).encode()
    known = (b"Host: x", b"X-Forwarded-Proto: https", b"Authorization: " + token)
    return b"\r\n".join((*known, *extra)) + b"\r\n\r\n"


READ = b"GET /fhir/v3/Encounter/" + STAY + b" HTTP/1.1\r\n"
HIDDEN = b"GET /fhir/v3/Encounter/" + OTHER + b" HTTP/1.1\r\n" + way()
FORM = b"Content-Type: application/x-www-form-urlencoded"
CHUNKED = b"Transfer-Encoding: chunked"
ZERO = b"0\r\n\r\n"


def posted(body, *extra):
    return b"POST /fhir/v3/Encounter/_search HTTP/1.1\r\n" + way(FORM, *extra) + body


BAD = (
    b"GET /fhir/" + CANARY,
    READ + b"X-Y: " + CANARY,
    b"\x16\x03\x01\x02\x00\x01\xfc\x03\x03" + CANARY + b"\r\n\r\n",
    b"GET /fhir/v3/Encounter/" + CANARY + b"\r\n\r\n",
    READ.replace(b"1.1", b"3.7") + way(),
    b"quentin-4711" + READ[3:] + way(),
    READ.replace(STAY, CANARY + b"\0") + way(),
    READ + way(CANARY),
    READ + way(b"X-Y : " + CANARY),
    READ + way(b"X-Y: a\r\n " + CANARY),
    READ + way(b"Host: " + CANARY),
    READ.replace(STAY, CANARY * 5000) + way(),
    READ + way(b"X-Y: " + CANARY * 2000),
    READ + way(*[b"X-" + CANARY + b": a"] * 9000),
    posted(HIDDEN, b"Content-Length: -1"),
    posted(HIDDEN, b"Content-Length: 5", b"Content-Length: 6"),
    posted(ZERO + HIDDEN, b"Content-Length: 5", CHUNKED),
    posted(ZERO + HIDDEN, CHUNKED + b", chunked"),
    posted(ZERO + HIDDEN, b"Transfer-Encoding: xchunked"),
    posted(ZERO + HIDDEN, CHUNKED).replace(b"1.1", b"1.0", 1),
    posted(b"_id=1", b"Content-Length: 5", b"Expect: " + CANARY),
    b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" + READ + way(),
)


def test_bytes_that_are_no_request_are_refused(service):
    for sent in BAD:
        answers = statuses_in(exchanged(service, sent))
        assert len(answers) <= 1, sent[:200]
        assert all(400 <= status < 600 for status in answers), sent[:200]
        answered = service.get(f"Encounter/{STAY.decode()}")
        assert (answered.status, answered.json["id"]) == (200, STAY.decode())
    assert service.operations("/live").status == 200
    refusals = [e for e in service.lines() if e["logger"] == "gunicorn.error"]
    assert any(e["event"].startswith("(withheld)") for e in refusals)


def test_a_compressed_form_is_refused_in_fhir(service):
    """gunicorn undoes the chunks alone, and refuses a body without chunks itself."""
    form = gzip.compress(b"_id=" + STAY)
    chunk = b"%x\r\n%s\r\n%s" % (len(form), form, ZERO)
    for coding in (b"gzip, chunked", b"gzip\r\n" + CHUNKED, b"gzip"):
        headers = (b"Transfer-Encoding: " + coding, b"Prefer: handling=lenient")
        data = exchanged(service, posted(chunk, *headers))
        (status,) = statuses_in(data)
        assert status == (501 if CHUNKED[-7:] in coding else 400)
        assert (b'"resourceType":"OperationOutcome"' in data) == (status == 501)


BROKEN = (
    # A size that is none, a huge one, one too small; no last chunk.
    b"zz\r\n_id=" + CANARY + b"\r\n" + ZERO,
    b"FFFFFFFFFFFFFFFF\r\n_id=" + CANARY,
    b"2\r\n_id=" + CANARY + b"\r\n" + ZERO,
    b"5\r\n_id=1\r\n",
)


def test_a_body_that_breaks_is_never_a_search(service):
    for sent in BROKEN:
        data = exchanged(service, posted(sent + HIDDEN, CHUNKED))
        assert statuses_in(data) == [400], sent[:200]
        assert b'"resourceType":"OperationOutcome"' in data


def test_where_a_body_is_too_long_the_connection_announces_its_end(service):
    chunk = b"%x\r\n%s\r\n" % (65537, b"a" * 65537)
    for sent in (
        posted(b"a" * 65537 + HIDDEN, b"Content-Length: 65537"),
        posted(b"", b"Content-Length: 99999999"),
        posted(chunk + ZERO + HIDDEN, CHUNKED),
    ):
        data = exchanged(service, sent)
        assert statuses_in(data) == [413]
        assert b"\r\nConnection: close\r\n" in data
