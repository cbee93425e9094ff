"""Requests over real sockets and mocked answers: retries, limits, failures, connections."""

import socket
from collections.abc import Callable
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest
import requests

from adapters.contract import (
    SourceDataError,
    SourceTimedOutError,
    SourceUnavailableError,
)
from adapters.http import client
from adapters.http.client import Deadline, HttpCall, HttpClient
from tests.adapters.http_cases import URL
from tests.live import HOST

LIST = f"{URL}/list"
LONG = 60.0
SHORT = 0.3


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Do not wait between attempts; return how long the client would have."""
    waited: list[float] = []
    monkeypatch.setattr(client.time, "sleep", waited.append)
    return waited


def send(url=URL, path="/list", method="GET", seconds=LONG):
    with closing(HttpClient(url)) as opened:
        return opened.send(HttpCall(method, path, (("a", "1"),)), {}, Deadline(seconds))


TRANSIENT = (
    {"status": 503},
    {"status": 429, "headers": {"Retry-After": "soon"}},
    {"status": 503, "headers": {"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}},
    {"status": 503, "headers": {"Retry-After": f"6 Nov 94 8:49:37 +{10**30}"}},
    {"body": requests.ConnectionError("Jeanne")},
    {"body": requests.exceptions.ChunkedEncodingError("Jeanne")},
)


def test_get_is_sent_again(source, pauses):
    for fault in TRANSIENT:
        source.reset()
        pauses.clear()
        source.get(LIST, **fault)
        source.get(LIST, json={"it": "answers"})
        assert send().json() == {"it": "answers"}
        assert pauses == [client._PAUSES[0]], fault


def test_a_form_is_never_sent_twice(source):
    sent = source.post(LIST, status=503)
    assert send(method="POST").status == 503
    assert sent.call_count == 1
    assert sent.calls[0].request.body == "a=1"


def test_retry_after_is_respected(source, pauses):
    moment = datetime.now(UTC) + timedelta(seconds=20)
    date = {"Retry-After": format_datetime(moment, usegmt=True)}
    source.get(LIST, status=503, headers={"Retry-After": "7"})
    source.get(LIST, status=503, headers=date)
    source.get(LIST, json={})
    assert send().status == 200
    assert pauses[0] == 7
    assert 0 < pauses[1] <= 20


def test_a_pause_beyond_the_deadline_is_not_waited_for(source, pauses):
    far = "Fri, 31 Dec 9999 23:59:59 GMT"
    for pause in ("3600", far, f"Sun, {10**30} Nov 94 8:49:37 Z"):
        source.reset()
        sent = source.get(LIST, status=429, headers={"Retry-After": pause})
        assert send().status == 429
        assert (pauses, sent.call_count) == ([], 1)


def test_an_expired_deadline_sends_nothing(source):
    with pytest.raises(SourceTimedOutError):
        send(seconds=0)
    assert not source.calls


def test_an_answer_without_end_is_refused(source, monkeypatch):
    monkeypatch.setattr(client, "MAX_BYTES", 1000)
    source.get(LIST, body=b" " * 1001)
    with pytest.raises(SourceDataError, match="too large"):
        send()
    source.upsert("GET", LIST, body="{}", headers={"Content-Encoding": "gzip"})
    with pytest.raises(SourceDataError):
        send()


REFUSED_LINKS = (
    *("//other.invalid/x", "file:///etc/passwd", "https://pas.invalid/api/2"),
    *("http://pas.invalid:81/", "http://[x", "//:x/"),
)
LINKS = {
    "/elsewhere?page=2": "/elsewhere?page=2",
    "?page=2": "/api/list?page=2",
    "page/2": "/api/page/2",
    "../list?page=2": "/list?page=2",
    "//pas.invalid/api/2": "/api/2",
    "HTTP://PAS.invalid:80/api/2": "/api/2",
}


def test_a_link_to_another_server_is_refused():
    opened = HttpClient(URL)
    for link in REFUSED_LINKS:
        with pytest.raises(SourceDataError):
            opened.resolve(link, "/list")
    # Others are relative to their page.
    for link, address in LINKS.items():
        assert opened.resolve(link, "/list") == f"http://pas.invalid{address}"


Serve = Callable[[socket.socket, Event], None]
OK = b"HTTP/1.1 200 OK\r\n"
CUT_CHUNK = b"Transfer-Encoding: chunked\r\n\r\n9\r\n{"
CONTRADICTION = b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} "


@contextmanager
def socket_server(serve):
    """Serve each connection by a function that writes any bytes, and yield the address."""
    ended = Event()
    listener = socket.create_server((HOST, 0))
    listener.settimeout(0.05)

    def accept():
        while not ended.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            with connection, suppress(OSError):
                connection.recv(65536)
                serve(connection, ended)

    thread = Thread(target=accept)
    thread.start()
    try:
        yield f"http://{HOST}:{listener.getsockname()[1]}"
    finally:
        ended.set()
        thread.join()
        listener.close()


def _hang(_, ended):
    ended.wait(LONG)


def _drip(connection, ended):
    connection.sendall(OK + b"Content-Length: 100000\r\n\r\n")
    while not ended.wait(0.05):
        connection.sendall(b" ")


def _sent(data):
    return lambda connection, _: connection.sendall(data)


@pytest.mark.parametrize(
    ("serve", "seconds", "error"),
    [
        (_hang, SHORT, SourceTimedOutError),
        (_drip, SHORT, SourceTimedOutError),
        (_sent(OK + b"Content-Length: 100\r\n\r\n{}"), LONG, SourceUnavailableError),
        (_sent(OK + CUT_CHUNK), LONG, SourceUnavailableError),
        (_sent(b"\x00\x01 this is no HTTP\r\n\r\n"), LONG, SourceUnavailableError),
        (_sent(OK + CONTRADICTION), LONG, SourceDataError),
    ],
    ids=["hang", "drip", "half", "cut chunk", "noise", "contradiction"],
)
def test_broken_connections(serve, seconds, error):
    with socket_server(serve) as url, pytest.raises(error) as caught:
        send(url, seconds=seconds)
    assert type(caught.value) is error
    assert HOST not in str(caught.value)


RECEIVED = []


class Recording(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        RECEIVED.append((self.client_address, {*self.headers}))
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Set-Cookie", "who=other")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


def test_a_connection_is_kept_and_cookies_proxies_and_passwords_are_ignored(
    tmp_path, monkeypatch
):
    (tmp_path / ".netrc").write_text(f"machine {HOST} login a password b")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("http_proxy", "http://proxy.invalid")
    with ThreadingHTTPServer((HOST, 0), Recording) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with closing(HttpClient(f"http://{HOST}:{server.server_port}")) as opened:
            for path in ("/", "/missing", "/"):
                opened.send(HttpCall("GET", path), {}, Deadline(LONG))
        server.shutdown()
    assert len(RECEIVED) == 3
    assert len({client for client, _ in RECEIVED}) == 1
    for _, headers in RECEIVED:
        assert not {"Cookie", "Authorization"} & headers
