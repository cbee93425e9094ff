"""What gunicorn refuses, over raw sockets against a real gunicorn (decision 20)."""

import json
import re
import socket
import weakref
from collections.abc import Iterator
from datetime import timedelta
from email.utils import parsedate_to_datetime
from types import SimpleNamespace

import pytest
from gunicorn.config import Config

from app.operations.connections import Connection, Written
from app.operations.quiet import QuietLogger
from tests.app.operations.standin import Answer, Gunicorn, exchange, standing_in
from tests.live import HOST
from tests.validity.client import check_answer

CANARY = b"MARTIN-1987"


@pytest.fixture(scope="module")
def gunicorn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gunicorn]:
    with standing_in(tmp_path_factory.mktemp("gunicorn")) as started:
        yield started


def issue(answer: Answer) -> dict[str, str]:
    check_answer("GET", "/", answer.status, answer.headers, answer.body)
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["X-Request-Id"])
    (only,) = json.loads(answer.body)["issue"]
    return dict(only)


END = b"Host: x\r\n\r\n"

REFUSED = {
    "no request line": (b"\x16\x03\x01 " + CANARY + b"\r\n\r\n", 400, "structure"),
    "method": (b"g@t /" + CANARY + b" HTTP/1.1\r\n" + END, 400, "structure"),
    "version": (b"GET /" + CANARY + b" HTTP/9.1\r\n" + END, 400, "structure"),
    "header name": (
        b"GET / HTTP/1.1\r\nX Y: " + CANARY + b"\r\n\r\n",
        400,
        "structure",
    ),
    "a fragment": (b"GET /scheme#" + CANARY + b" HTTP/1.1\r\n" + END, 400, "structure"),
    "an empty fragment": (b"GET /scheme?a=b# HTTP/1.1\r\n" + END, 400, "structure"),
    "no host": (b"GET /" + CANARY + b" HTTP/1.1\r\nX-Y: a\r\n\r\n", 400, "structure"),
    "a host that is none": (
        b"GET / HTTP/1.1\r\nHost: x/" + CANARY + b"\r\n\r\n",
        400,
        "structure",
    ),
    "a host of two words": (b"GET / HTTP/1.1\r\nHost: x y\r\n\r\n", 400, "structure"),
    "a host beyond ASCII": (b"GET / HTTP/1.1\r\nHost: \xe9\r\n\r\n", 400, "structure"),
    "folded header": (
        b"GET / HTTP/1.1\r\nX-Y: a\r\n " + CANARY + b"\r\n\r\n",
        400,
        "structure",
    ),
    "two lengths": (
        b"POST /body HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" + END,
        400,
        "structure",
    ),
    "request line": (
        b"GET /?patient=" + CANARY * 800 + b" HTTP/1.1\r\n" + END,
        414,
        "too-long",
    ),
    "long header": (
        b"GET / HTTP/1.1\r\nX-Y: " + CANARY * 2000 + b"\r\n" + END,
        431,
        "too-long",
    ),
    "many headers": (
        b"GET / HTTP/1.1\r\n" + b"X-Y: a\r\n" * 70 + END,
        431,
        "too-long",
    ),
    "expectation": (
        b"GET / HTTP/1.1\r\nExpect: " + CANARY + b"\r\n" + END,
        417,
        "invalid",
    ),
    "transfer coding": (
        b"POST /body HTTP/1.1\r\nTransfer-Encoding: x-" + CANARY + b"\r\n" + END,
        501,
        "not-supported",
    ),
}


@pytest.mark.parametrize(("request_", "status", "code"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_is_an_operation_outcome(
    gunicorn: Gunicorn, request_: bytes, status: int, code: str
) -> None:
    answer = exchange(gunicorn.port, request_)
    assert answer.status == status
    assert answer.headers["Connection"] == "close"
    assert parsedate_to_datetime(answer.headers["Date"])
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    only = issue(answer)
    assert only["code"] == code
    assert CANARY.decode() not in answer.body.decode()


HEADS = {
    name: (b"HEAD" + request_.removeprefix(b"GET"), status)
    for name, (request_, status, _) in REFUSED.items()
    if request_.startswith(b"GET ")
}


@pytest.mark.parametrize("before", [b"", b"\r\n"], ids=["at once", "an empty line"])
@pytest.mark.parametrize(("request_", "status"), HEADS.values(), ids=HEADS)
def test_a_refusal_of_head_has_no_content(
    gunicorn: Gunicorn, request_: bytes, status: int, before: bytes
) -> None:
    answer = exchange(gunicorn.port, before + request_)
    assert (answer.status, answer.body) == (status, b"")
    assert int(answer.headers["Content-Length"]) > 0
    assert answer.headers["Connection"] == "close"


def test_what_is_refused_is_the_last_of_several(gunicorn: Gunicorn) -> None:
    good = b"HEAD /scheme HTTP/1.1\r\n" + END
    answer = exchange(gunicorn.port, good + REFUSED["a fragment"][0])
    assert answer.body.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert answer.body.endswith(b'"}]}')
    answer = exchange(gunicorn.port, good + HEADS["a fragment"][0])
    assert answer.body.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert answer.body.endswith(b"\r\n\r\n")


HOSTS = [b"x", b"", b"a-b_c.example.org:8443", b"192.0.2.1", b"[2001:db8::1]:80", b"x:"]


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_may_be_any_name_or_address(gunicorn: Gunicorn, host: bytes) -> None:
    head = b"GET /scheme HTTP/1.1\r\nConnection: close\r\nHost: " + host
    assert exchange(gunicorn.port, head + b"\r\n\r\n").status == 200


def test_before_http_1_1_there_need_be_none(gunicorn: Gunicorn) -> None:
    assert exchange(gunicorn.port, b"GET /scheme HTTP/1.0\r\n\r\n").status == 200
    answer = exchange(gunicorn.port, b"GET /scheme HTTP/1.0\r\nHost: a b\r\n\r\n")
    assert answer.status == 400


def test_a_version_to_come_is_answered_in_ours(gunicorn: Gunicorn) -> None:
    head = b"GET /scheme HTTP/1.2\r\nConnection: close\r\n"
    with socket.create_connection((HOST, gunicorn.port), 60) as client:
        client.sendall(head + END)
        with client.makefile("rb") as answer:
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
    # It needs a Host, as ours does.
    assert exchange(gunicorn.port, head + b"\r\n").status == 400


CLOSING = {
    "alone": b"Connection: Close",
    "the first option": b"Connection: close, TE",
    "the last option": b"Connection: TE ,\tCLOSE",
    "an option of its own line": b"Connection: TE\r\nConnection: close",
    "a contradiction": b"Connection: keep-alive\r\nConnection: close",
}


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("option", CLOSING.values(), ids=CLOSING)
def test_a_client_that_closes_is_told_that_it_is_heard(
    gunicorn: Gunicorn, option: bytes, version: bytes
) -> None:
    asked = b"GET /scheme HTTP/" + version + b"\r\n" + option + b"\r\n" + END
    answer = exchange(gunicorn.port, asked + asked)
    assert (answer.status, answer.headers["Connection"]) == (200, "close")
    assert answer.body == b"http"


@pytest.mark.parametrize("option", [b"closed", b"keep-alive, TE", b"", b'"close"'])
def test_other_options_close_nothing(gunicorn: Gunicorn, option: bytes) -> None:
    asked = b"GET /scheme HTTP/1.1\r\n%bHost: x\r\n\r\n"
    first = asked % (b"Connection: " + option + b"\r\n")
    answer = exchange(gunicorn.port, first + asked % b"Connection: close\r\n")
    assert answer.headers["Connection"] == "keep-alive"
    assert answer.body.count(b"HTTP/1.1 200 OK") == 1


CHUNKED = b"POST /body HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + END


def test_a_chunked_body_is_read(gunicorn: Gunicorn) -> None:
    request = CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    answer = exchange(gunicorn.port, request + b"3\r\nabc\r\n0\r\n\r\n")
    assert (answer.status, json.loads(answer.body)) == (200, {"read": 3})


@pytest.mark.parametrize("chunk", [b"zz\r\nabc\r\n", b"3\r\nabcX\r\n0\r\n\r\n"])
def test_a_broken_chunk_is_the_clients_fault(gunicorn: Gunicorn, chunk: bytes) -> None:
    answer = exchange(gunicorn.port, CHUNKED + chunk)
    assert answer.status == 400
    check_answer("POST", "/body", answer.status, answer.headers, answer.body)


MANY = b"4000\r\n" + b"a" * 16384 + b"\r\n"

TOO_LONG = {
    "many chunks": MANY * 5,
    "one byte more": MANY * 4 + b"1\r\na\r\n",
    "one chunk": b"10001\r\n" + b"a" * 65537 + b"\r\n",
    "a chunk that has not come": MANY + b"FFFFFFFF\r\n",
}


@pytest.mark.parametrize("chunks", TOO_LONG.values(), ids=TOO_LONG)
def test_chunks_that_are_too_long_are_413(gunicorn: Gunicorn, chunks: bytes) -> None:
    answer = exchange(gunicorn.port, CHUNKED + chunks + b"0\r\n\r\n")
    assert answer.status == 413
    assert answer.headers["Connection"] == "close"
    check_answer("POST", "/body", answer.status, answer.headers, answer.body)


def test_chunks_may_be_as_long_as_a_body(gunicorn: Gunicorn) -> None:
    request = CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    answer = exchange(gunicorn.port, request + MANY * 4 + b"0\r\n\r\n")
    assert (answer.status, json.loads(answer.body)) == (200, {"read": 65536})


UNREAD = {
    "a size with a blank": b"3 \r\nabc\r\n0\r\n\r\n",
    "an extension without a name": b"3;=\r\nabc\r\n0\r\n\r\n",
    "a chunk that goes on": b"3\r\nabcXX0\r\n\r\n",
    "a host behind it": b"0\r\nHost: x\r\n\r\n",
    "a bare line feed behind it": b"0\r\nX-Y: a\nb\r\n\r\n",
}


@pytest.mark.parametrize("body", UNREAD.values(), ids=UNREAD)
def test_a_broken_body_that_nobody_reads_has_one_answer(
    gunicorn: Gunicorn, body: bytes
) -> None:
    """A second one would be taken for that of the next request."""
    unread = CHUNKED.replace(b"/body", b"/scheme")
    answer = exchange(gunicorn.port, unread + body)
    assert answer.status == 405
    assert int(answer.headers["Content-Length"]) == len(answer.body)


def test_a_body_that_breaks_off_is_no_fault_of_ours(gunicorn: Gunicorn) -> None:
    with socket.create_connection(("127.0.0.1", gunicorn.port), 10) as connection:
        connection.sendall(CHUNKED + b"30\r\nabc")
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_header_that_the_application_spoils_is_500(gunicorn: Gunicorn) -> None:
    answer = exchange(gunicorn.port, b"GET /bad-header HTTP/1.1\r\n" + END)
    assert answer.status == 500
    assert issue(answer)["code"] == "exception"
    assert answer.headers["X-Request-Id"] in gunicorn.log.read_text()


def test_a_forwarded_scheme_is_nobodys_word(gunicorn: Gunicorn) -> None:
    """Left to itself, gunicorn believes whoever comes over the loopback interface."""
    head = b"GET /scheme HTTP/1.1\r\nX-Forwarded-Proto: https\r\n"
    answer = exchange(gunicorn.port, head + b"Connection: close\r\n" + END)
    assert answer.body == b"http"


def test_the_log_names_the_refusal_and_nothing_that_was_sent(
    gunicorn: Gunicorn,
) -> None:
    answer = exchange(gunicorn.port, REFUSED["method"][0])
    lines = gunicorn.log.read_text().splitlines()
    (line,) = (text for text in lines if answer.headers["X-Request-Id"] in text)
    entry = json.loads(line)
    assert entry["reason"] == "InvalidRequestMethod"
    assert entry["status"] == 400
    assert CANARY.decode() not in gunicorn.log.read_text()


@pytest.mark.parametrize(("file", "lines"), [(None, 0), ("-", 1)])
def test_an_access_line_of_gunicorn_is_written_where_it_is_asked_for(
    file: str | None, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    config = Config()
    config.set("accesslog", file)
    answer = SimpleNamespace(status="200 OK", sent=1, headers=())
    asked = {"REQUEST_METHOD": "GET", "RAW_URI": "/", "SERVER_PROTOCOL": "HTTP/1.1"}
    logger = QuietLogger(config)
    logger.access(answer, SimpleNamespace(headers=()), asked, timedelta(0))
    assert capsys.readouterr().out.count("GET /") == lines


def test_an_answer_is_not_kept_for_the_garbage_collector() -> None:
    """It may be large, it is about patients, and a busy thread has many."""
    client, server = socket.socketpair()
    with client, server:
        connection = Connection(Config(), server, HOST, HOST, Connection.close)
        written = Written(connection)
        written.sock.sendall(b"answer")
        assert written.answer() == b"answer"
        left = weakref.ref(written)
        del written
        assert left() is None
