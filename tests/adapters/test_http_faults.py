"""A source that fails: every way has its error, and no word of the source is repeated."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import requests
import responses
from werkzeug.wrappers import Request, Response

from adapters.contract import (
    AdapterError,
    GoneError,
    NotAskableError,
    NotFoundError,
    RowFault,
    SourceDataError,
    SourceUnavailableError,
    TooCostlyError,
)
from adapters.http import HttpAdapter, client
from adapters.http.credentials import Renewed
from adapters.testing.asking import STAY, ask, patient
from tests.adapters.http_cases import api_and_adapter, opened_at
from tests.hospital_http import answer, serving
from tests.hospital_http_mapping import OFFSET
from tests.live import HOST, free_ports, in_time

URL = "http://pas.invalid/api"
LIST, ONE = f"{URL}/sejours", f"{URL}/sejours/1"
PATIENCE = 60.0
SECRET = "Canari Jeanne"
WORD = f'{{"erreur": "{SECRET}"}}'

STAY_1 = {
    "id": 1,
    "patient": {"ipp": 1},
    "etat": "S",
    "etablissement": {"id": "H1"},
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PAUSES", (0.01, 0.02))


@pytest.fixture
def adapter(tmp_path: Path) -> Iterator[HttpAdapter]:
    opened = opened_at(URL, tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def source() -> Iterator[responses.RequestsMock]:
    with responses.RequestsMock() as mock:
        yield mock


def _fails(kind: type[AdapterError], call: Callable[[], Any]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) in (kind, client.SourceTimedOutError)
    assert SECRET not in str(caught.value)
    assert "pas.invalid" not in str(caught.value)


@pytest.mark.parametrize("status", [500, 501, 502, 503, 504, 429])
def test_source_in_trouble_is_away(
    adapter: HttpAdapter, source: responses.RequestsMock, status: int
) -> None:
    source.get(LIST, body=WORD, status=status)
    source.get(ONE, body=WORD, status=status)
    _fails(SourceUnavailableError, lambda: adapter.search(ask()))
    _fails(SourceUnavailableError, lambda: adapter.count(ask()))
    _fails(SourceUnavailableError, lambda: adapter.read(STAY, "1"))
    tries = 3 if status in (429, 502, 503, 504) else 1
    assert source.assert_call_count(ONE, tries)


@pytest.mark.parametrize("status", [301, 302, 400, 401, 403, 405, 418])
def test_answer_that_no_retry_mends_is_told_the_integrator(
    adapter: HttpAdapter, source: responses.RequestsMock, status: int
) -> None:
    source.get(LIST, body=WORD, status=status, headers={"Location": URL})
    source.get(ONE, body=WORD, status=status, headers={"Location": URL})
    _fails(SourceDataError, lambda: adapter.search(ask()))
    _fails(SourceDataError, lambda: adapter.read(STAY, "1"))


def test_values_that_the_source_finds_too_long_are_the_clients(
    adapter: HttpAdapter, source: responses.RequestsMock
) -> None:
    source.get(LIST, body=WORD, status=414)
    _fails(NotAskableError, lambda: adapter.search(ask()))
    _fails(NotAskableError, lambda: adapter.count(ask()))


def test_row_that_is_not_there(
    adapter: HttpAdapter, source: responses.RequestsMock
) -> None:
    source.get(ONE, body=WORD, status=404)
    source.get(f"{URL}/sejours/2", body=WORD, status=410)
    source.get(f"{URL}/sejours/3", json=STAY_1)
    source.get(LIST, body=WORD, status=404)
    _fails(NotFoundError, lambda: adapter.read(STAY, "1"))
    _fails(GoneError, lambda: adapter.read(STAY, "2"))
    _fails(NotFoundError, lambda: adapter.read(STAY, "3"))
    _fails(SourceDataError, lambda: adapter.search(ask()))


@pytest.mark.parametrize("id", [".", "..", "...", "a/b", "a?b", "é", ""])
def test_id_never_leads_elsewhere(
    adapter: HttpAdapter, source: responses.RequestsMock, id: str
) -> None:
    _fails(NotFoundError, lambda: adapter.read(STAY, id))


NONSENSE = (
    *("", "null", "[]", "7", '"x"', "{", "<html>", '{"resultats": [', "{}", "NaN"),
    '{"resultats": null, "nombre": 0}',
    '{"resultats": {}, "nombre": 0}',
    '{"resultats": [7], "nombre": 1}',
    '{"resultats": [], "nombre": null}',
    '{"resultats": [], "nombre": "many"}',
    '{"resultats": [], "nombre": -1}',
    '{"resultats": [], "nombre": true}',
    '{"resultats": [], "nombre": 1.5}',
    # More rows than any hospital has, or FHIR can say.
    f'{{"resultats": [], "nombre": {2**31}}}',
    f'{{"resultats": [], "nombre": "{2**31}"}}',
    f'{{"resultats": [], "nombre": "{"9" * 5000}"}}',
    # Lies: more rows than the total, and fewer.
    '{"resultats": [{"id": 1}, {"id": 2}], "nombre": 1}',
    '{"resultats": [], "nombre": 9}',
    # One stay, twice.
    '{"resultats": [{"id": 1}, {"id": 1}], "nombre": 2}',
    '{"resultats": [{"uf": 7}], "nombre": 1}',
    '{"resultats": [{"uf": []}], "nombre": 1}',
)


@pytest.mark.parametrize("body", NONSENSE)
def test_answer_without_sense_is_told_the_integrator(
    adapter: HttpAdapter, source: responses.RequestsMock, body: str
) -> None:
    source.get(LIST, body=body)
    _fails(SourceDataError, lambda: adapter.search(ask()))


@pytest.mark.parametrize(
    "body", ["", "null7", "[]", "7", '"x"', "<html>", "{}", '{"resultats": []}']
)
def test_row_without_sense_is_told_the_integrator(
    adapter: HttpAdapter, source: responses.RequestsMock, body: str
) -> None:
    source.get(ONE, body=body)
    _fails(SourceDataError, lambda: adapter.read(STAY, "1"))


def test_more_rows_than_asked_are_refused(
    adapter: HttpAdapter, source: responses.RequestsMock
) -> None:
    rows = [{**STAY_1, "id": number} for number in range(5)]
    source.get(LIST, json={"resultats": rows, "nombre": 5})
    _fails(SourceDataError, lambda: adapter.search(ask(count=4)))


def test_answer_without_end_is_refused(
    adapter: HttpAdapter,
    source: responses.RequestsMock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "MAX_BYTES", 1000)
    source.get(LIST, body=b" " * 1001)
    _fails(SourceDataError, lambda: adapter.search(ask()))


def test_total_as_text_and_a_byte_order_mark_are_read(
    adapter: HttpAdapter, source: responses.RequestsMock
) -> None:
    source.get(LIST, body=b'\xef\xbb\xbf{"resultats": [], "nombre": "0"}')
    assert adapter.search(ask()).rows == ()


@pytest.mark.parametrize("id", ["100000000000000000001", "-1e300"])
def test_a_number_that_cannot_be_read_to_its_last_digit_is_no_id(
    adapter: HttpAdapter, source: responses.RequestsMock, id: str
) -> None:
    row = json.dumps({**STAY_1, "id": 0}).replace('"id": 0', f'"id": {id}')
    source.get(LIST, body=f'{{"resultats": [{row}], "nombre": 1}}')
    source.get(f"{URL}/sejours/100000000000000000000", body=row)
    (fault,) = adapter.search(ask()).rows
    assert isinstance(fault, RowFault)
    assert fault.field == "id"
    _fails(SourceDataError, lambda: adapter.read(STAY, "100000000000000000000"))


def test_the_stays_of_two_patients_are_not_taken_for_those_of_one(
    adapter: HttpAdapter, source: responses.RequestsMock
) -> None:
    row = json.dumps({**STAY_1, "patient": {"ipp": 0}})
    row = row.replace('"ipp": 0', '"ipp": 100000000000000000001')
    source.get(LIST, body=f'{{"resultats": [{row}], "nombre": 1}}')
    (fault,) = adapter.search(ask(patient("100000000000000000000"))).rows
    assert isinstance(fault, RowFault)


# --------------------------------------------------------------------- retries


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 503},
        {"status": 429, "headers": {"Retry-After": "0"}},
        {"status": 429, "headers": {"Retry-After": "soon"}},
        {"status": 503, "headers": {"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}},
        {"status": 503, "headers": {"Retry-After": "Sun, 06 Nov 1994 08:49:37 -0000"}},
        {"status": 503, "headers": {"Retry-After": "Sun, 31 Feb 1994 08:49:37 GMT"}},
        {"status": 503, "headers": {"Retry-After": f"Sun, {10**30} Nov 94 8:49:37 Z"}},
        {"status": 503, "headers": {"Retry-After": f"6 Nov 94 8:49:37 +{10**30}"}},
        {"body": requests.ConnectionError(SECRET)},
        {"body": requests.exceptions.ChunkedEncodingError(SECRET)},
    ],
)
def test_source_away_for_a_moment(
    adapter: HttpAdapter, source: responses.RequestsMock, fault: Any
) -> None:
    source.get(LIST, **fault)
    source.get(LIST, json={"resultats": [STAY_1], "nombre": 1})
    assert len(adapter.search(ask()).rows) == 1


def test_a_pause_up_to_a_date_is_waited_for(
    adapter: HttpAdapter, source: responses.RequestsMock
) -> None:
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    said = {"Retry-After": format_datetime(ends, usegmt=True)}
    source.get(LIST, status=503, headers=said)
    source.get(LIST, json={"resultats": [STAY_1], "nombre": 1})
    assert len(adapter.search(ask()).rows) == 1
    assert datetime.now(UTC) >= ends


@pytest.mark.parametrize("pause", ["3600", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_long_pause_is_not_waited_for(
    adapter: HttpAdapter, source: responses.RequestsMock, pause: str
) -> None:
    source.get(LIST, status=429, headers={"Retry-After": pause})

    def given_up_at_once() -> None:
        source.calls.reset()
        _fails(SourceUnavailableError, lambda: adapter.search(ask()))
        assert len(source.calls) == 1

    in_time(given_up_at_once, 1)


def test_a_form_is_never_sent_twice(
    tmp_path: Path, source: responses.RequestsMock
) -> None:
    change = (("rows: resultats", "rows: resultats, method: post"),)
    adapter = opened_at(URL, tmp_path, changes=change)
    source.post(LIST, status=503)
    _fails(SourceUnavailableError, lambda: adapter.search(ask()))
    assert source.assert_call_count(LIST, 1)


# ------------------------------------------------- links, and errors as answers


@pytest.mark.parametrize(
    "link",
    [
        *("http://other.invalid/x", "//other.invalid/x", "file:///etc/passwd", 1.5),
        *("https://pas.invalid/api/2", "http://pas.invalid:81/", "http://[x", "//:x/"),
    ],
)
def test_a_link_leads_to_the_same_server(
    tmp_path: Path, source: responses.RequestsMock, link: Any
) -> None:
    adapter = opened_at(URL, tmp_path, paging="{next: suite.lien}")
    page = {"resultats": [STAY_1], "nombre": 2, "suite": {"lien": link}}
    source.get(LIST, json=page)
    _fails(
        SourceDataError,
        lambda: adapter.search(ask(count=1, after=adapter.search(ask(count=1)).last)),
    )


@pytest.mark.parametrize(
    ("link", "asked"),
    [
        ("/api/sejours?page=2", "/api/sejours?page=2"),
        ("/elsewhere?page=2", "/elsewhere?page=2"),
        ("?page=2", "/api/sejours?page=2"),
        ("page/2", "/api/page/2"),
        ("../sejours?page=2", "/sejours?page=2"),
        ("//pas.invalid/api/2", "/api/2"),
        ("HTTP://PAS.invalid:80/api/2", "/api/2"),
    ],
)
def test_a_link_is_read_beside_the_address_that_was_asked(
    tmp_path: Path, source: responses.RequestsMock, link: str, asked: str
) -> None:
    adapter = opened_at(URL, tmp_path, paging="{next: suite.lien}")
    first = {"resultats": [STAY_1], "nombre": 3, "suite": {"lien": link}}
    source.get(LIST, json=first)
    second = {"resultats": [{**STAY_1, "id": 2}], "nombre": 3}
    source.get(f"http://pas.invalid{asked}", json={**second, "suite": {"lien": "?p=3"}})
    page = adapter.search(ask(count=1))
    page = adapter.search(ask(count=1, after=page.last))
    assert [row.id for row in page.rows] == ["2"]  # type: ignore[union-attr]
    last = f"http://pas.invalid{asked.partition('?')[0]}?p=3"
    source.get(last, json={"resultats": [{**STAY_1, "id": 3}], "nombre": 3})
    page = adapter.search(ask(count=1, after=page.last))
    assert ([row.id for row in page.rows], page.more) == (["3"], False)  # type: ignore[union-attr]


RULE = (
    ", error: {path: erreur.code, fine: [OK], not_found: [E404], unavailable: [E503]}"
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("E404", NotFoundError),
        ("E503", SourceUnavailableError),
        ("E999", SourceDataError),
        (7, SourceDataError),
        ({"x": SECRET}, SourceDataError),
    ],
)
def test_error_with_status_200(
    tmp_path: Path, source: responses.RequestsMock, code: Any, kind: type[AdapterError]
) -> None:
    adapter = opened_at(URL, tmp_path, source=RULE)
    source.get(ONE, json={**STAY_1, "erreur": {"code": code, "texte": SECRET}})
    _fails(kind, lambda: adapter.read(STAY, "1"))


@pytest.mark.parametrize("code", ["OK", "", None, False])
def test_what_is_no_error(
    tmp_path: Path, source: responses.RequestsMock, code: Any
) -> None:
    adapter = opened_at(URL, tmp_path, source=RULE)
    source.get(ONE, json={**STAY_1, "erreur": {"code": code}})
    assert adapter.read(STAY, "1").id == "1"


def test_a_login_that_fails(tmp_path: Path, source: responses.RequestsMock) -> None:
    auth = ", auth: {session: {path: /in, body: {}, token: jeton, header: X-S}}"
    adapter = opened_at(URL, tmp_path, source=auth)
    source.post(f"{URL}/in", body=WORD, status=500)
    _fails(SourceUnavailableError, lambda: adapter.read(STAY, "1"))
    for status in (200, 400, 401, 403):
        source.replace("POST", f"{URL}/in", body=WORD, status=status)
        _fails(SourceDataError, lambda: adapter.read(STAY, "1"))
    source.replace("POST", f"{URL}/in", body=WORD, status=429)
    _fails(SourceUnavailableError, lambda: adapter.read(STAY, "1"))


OAUTH2 = (
    ", auth: {oauth2: {token_url: 'http://id.invalid/token', client_id: c, "
    "client_secret: {env: PAS_PASSWORD}}}"
)


@pytest.mark.parametrize(
    "fault", [{"status": 500}, {"json": {}}, {"body": "x"}, {"json": {"error": "no"}}]
)
def test_a_token_server_that_fails(
    tmp_path: Path, source: responses.RequestsMock, fault: Any
) -> None:
    adapter = opened_at(URL, tmp_path, source=OAUTH2)
    source.post("http://id.invalid/token", **fault)
    _fails(SourceUnavailableError, lambda: adapter.read(STAY, "1"))


@pytest.mark.parametrize(
    "body",
    ['{"error": ["no"]}', '{"error": {"code": 7}}', "[" * 100_000, "[]", "null", '"x"'],
    ids=["errors", "an error in parts", "depths", "a list", "nothing", "a text"],
)
def test_a_token_server_that_answers_in_a_way_of_its_own(
    tmp_path: Path, source: responses.RequestsMock, body: str
) -> None:
    adapter = opened_at(URL, tmp_path, source=OAUTH2)
    source.post("http://id.invalid/token", body=body, status=400)
    _fails(SourceUnavailableError, lambda: adapter.read(STAY, "1"))


def test_a_token_without_end_is_not_taken_in(tmp_path: Path) -> None:
    sent = []

    def serve(connection: socket.socket, ended: Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while not ended.is_set():
            sent.append(connection.send(b" " * 65536))

    with socket_server(serve) as url:
        limits = OAUTH2.replace("http://id.invalid", url) + ", timeout_seconds: 60"
        adapter = opened_at(URL, tmp_path, source=limits)
        _fails(SourceUnavailableError, lambda: adapter.read(STAY, "1"))
        adapter.close()
    assert sum(sent) < 4 * client.MAX_BYTES


@pytest.mark.parametrize(
    ("said", "logins"), [("3600", 1), (3600.0, 1), ("0", 2), ("soon", 1), (None, 1)]
)
def test_the_life_of_a_token_is_read_as_it_is_told(
    tmp_path: Path, source: responses.RequestsMock, said: object, logins: int
) -> None:
    adapter = opened_at(URL, tmp_path, source=OAUTH2)
    asked = source.post(
        "http://id.invalid/token", json={"access_token": "a", "expires_in": said}
    )
    source.get(ONE, json=STAY_1)
    for _ in range(2):
        adapter.read(STAY, "1")
    assert asked.call_count == logins


def test_an_answer_that_is_not_packed_as_it_says(
    adapter: HttpAdapter, source: responses.RequestsMock
) -> None:
    source.get(ONE, body="{}", headers={"Content-Encoding": "gzip"})
    _fails(SourceDataError, lambda: adapter.read(STAY, "1"))


@pytest.mark.parametrize("text", ["\u20ac", "a\\n", " a"])
def test_a_header_that_cannot_be_sent_is_told_the_integrator(
    tmp_path: Path, text: str
) -> None:
    with serving(lambda *_: pytest.fail("it was sent")) as url:
        adapter = opened_at(url, tmp_path, source=f', headers: {{X-Y: "{text}"}}')
        _fails(SourceDataError, lambda: adapter.read(STAY, "1"))
        assert {problem.outage for problem in adapter.check()} == {False}


def test_lengths_that_contradict_each_other_are_those_of_the_answer(
    tmp_path: Path,
) -> None:
    def serve(connection: socket.socket, _: Event) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n"
        connection.sendall(head + b"{} ")

    with socket_server(serve) as url:
        adapter = opened_at(url, tmp_path)
        with pytest.raises(SourceDataError, match="a header of the answer"):
            adapter.read(STAY, "1")
        adapter.close()


TOKENS = {
    "a sign that no header holds": {"access_token": "\u20ac"},
    "an end of line": {"access_token": "a\r\nX-Y: b"},
    "no sign": {"access_token": ""},
    "a life without an end": {"access_token": "a", "expires_in": 1e308 * 10},
}


@pytest.mark.parametrize("said", TOKENS.values(), ids=TOKENS)
def test_a_token_that_makes_no_sense(tmp_path: Path, said: dict[str, Any]) -> None:
    @Request.application
    def token(request: Request) -> Response:
        said_to = {"token_type": "Bearer"} if request.path == "/token" else {}
        return Response(json.dumps(said | said_to), mimetype="application/json")

    session = ", auth: {session: {path: /in, body: {}, token: access_token, header: X}}"
    with serving(token) as url:
        oauth2 = OAUTH2.replace("http://id.invalid", url)
        adapter = opened_at(url, tmp_path, source=oauth2)
        _fails(SourceUnavailableError, lambda: adapter.read(STAY, "1"))
        if "expires_in" not in said:
            adapter = opened_at(url, tmp_path, source=session)
            _fails(SourceDataError, lambda: adapter.read(STAY, "1"))


def test_a_token_of_ten_thousand_years_is_used(
    tmp_path: Path, source: responses.RequestsMock
) -> None:
    adapter = opened_at(URL, tmp_path, source=OAUTH2)
    said = {"access_token": "a", "token_type": "Bearer", "expires_in": 10**400}
    source.post("http://id.invalid/token", body=json.dumps(said))
    source.get(ONE, json=STAY_1)
    assert adapter.read(STAY, "1").id == "1"


def test_who_is_refused_does_not_wait_for_the_login_of_another() -> None:
    asked, answered = Event(), Event()

    def fetch(_: client.Deadline) -> tuple[dict[str, str], float]:
        asked.set()
        assert answered.wait(PATIENCE)
        return {"X-Session": "new"}, PATIENCE

    credentials = Renewed(fetch)
    with ThreadPoolExecutor(2) as threads:
        login = threads.submit(credentials.headers, client.Deadline(PATIENCE))
        assert asked.wait(PATIENCE)
        refused = threads.submit(credentials.refuse, {"X-Session": "old"})
        try:
            assert refused.result(5)
        finally:
            answered.set()
        assert login.result() == {"X-Session": "new"}


@pytest.mark.parametrize("code", ["invalid_client", "unauthorized_client"])
def test_a_token_server_that_refuses_who_asks(
    tmp_path: Path, source: responses.RequestsMock, code: str
) -> None:
    adapter = opened_at(URL, tmp_path, source=OAUTH2)
    source.post("http://id.invalid/token", json={"error": code}, status=401)
    _fails(SourceDataError, lambda: adapter.read(STAY, "1"))


def test_check_tells_what_is_wrong(
    adapter: HttpAdapter, source: responses.RequestsMock
) -> None:
    source.get(LIST, json={"resultats": [{"numero": 1}], "nombre": 1})
    source.get(f"{URL}/patients", body="<html>")
    source.get(f"{URL}/etablissements", status=403)
    problems = [problem.text for problem in adapter.check()]
    assert len(problems) == 3
    assert "no row holds it there" in problems[0]


# ----------------------------------------------------------- slow, on real sockets


@contextmanager
def socket_server(serve: Callable[[socket.socket, Event], None]) -> Iterator[str]:
    """Serve each connection by a function that writes what it likes."""
    ended = Event()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)

    def accept() -> None:
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
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        thread.join()
        listener.close()


def _hang(_: socket.socket, ended: Event) -> None:
    ended.wait(5)


def _drip(connection: socket.socket, ended: Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not ended.wait(0.05):
        connection.sendall(b" ")


def _drip_chunks(connection: socket.socket, ended: Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not ended.wait(0.05):
        connection.sendall(b"1\r\n \r\n")


def _drip_headers(connection: socket.socket, ended: Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not ended.wait(0.05):
        connection.sendall(b"x")


def _half(connection: socket.socket, _: Event) -> None:
    body = b'{"resultats": [], "nombre": 0'
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + body)


def _cut_chunk(connection: socket.socket, _: Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{")


def _noise(connection: socket.socket, _: Event) -> None:
    connection.sendall(b"\x00\x01 this is no HTTP\r\n\r\n")


@pytest.mark.parametrize(
    "serve", [_hang, _drip, _drip_chunks, _drip_headers, _half, _cut_chunk, _noise]
)
def test_slow_and_broken_connections_end_in_time(
    tmp_path: Path, serve: Callable[[socket.socket, Event], None]
) -> None:
    limits = ", timeout_seconds: 0.5, count_timeout_seconds: 0.3"
    with socket_server(serve) as url:
        adapter = opened_at(url, tmp_path, source=limits)
        in_time(
            lambda: _fails(SourceUnavailableError, lambda: adapter.search(ask())), 1.5
        )
        if serve in (_hang, _drip, _drip_chunks, _drip_headers):
            _fails(TooCostlyError, lambda: adapter.count(ask()))
        adapter.close()


@pytest.mark.parametrize(
    "paging", [OFFSET, "{next: suite.lien}"], ids=["offset", "next"]
)
def test_a_page_that_is_asked_for_in_parts_ends_in_time(
    tmp_path: Path, paging: str
) -> None:
    limits = ", timeout_seconds: 0.6"
    with api_and_adapter(tmp_path, paging=paging, source=limits) as (api, adapter):
        api.most = 1
        api.strange = lambda _: time.sleep(0.1)
        query = replace(ask(count=50), placed=True)
        in_time(
            lambda: _fails(SourceUnavailableError, lambda: adapter.search(query)), 1.5
        )


def test_nobody_listens(tmp_path: Path) -> None:
    adapter = opened_at(f"http://{HOST}:{free_ports()}", tmp_path)
    _fails(SourceUnavailableError, lambda: adapter.search(ask()))


def test_one_source_that_hangs_holds_no_more_than_its_connections(
    tmp_path: Path,
) -> None:
    limits = ", timeout_seconds: 0.6, connections: 1"
    with socket_server(_hang) as url:
        adapter = opened_at(url, tmp_path, source=limits)
        first = Thread(
            target=_fails, args=(SourceUnavailableError, lambda: adapter.search(ask()))
        )
        first.start()
        _fails(SourceUnavailableError, lambda: adapter.search(ask()))
        first.join()
        adapter.close()


def test_connections_are_used_again(tmp_path: Path) -> None:
    ports = []

    class Kept(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            ports.append(self.client_address[1])
            body = json.dumps(STAY_1).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Kept) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        adapter = opened_at(f"http://127.0.0.1:{server.server_port}", tmp_path)
        for _ in range(5):
            adapter.read(STAY, "1")
        adapter.close()
        server.shutdown()
        thread.join()
    assert len(ports) == 5
    assert len(set(ports)) == 1


def test_cookies_of_the_source_are_not_kept(tmp_path: Path) -> None:
    with api_and_adapter(tmp_path) as (api, adapter):
        api.strange = lambda _: answer(STAY_1, **{"Set-Cookie": "who=other"})
        adapter.read(STAY, "1")
        adapter.read(STAY, "1")
        assert "Cookie" not in api.requests[-1].headers


@pytest.mark.parametrize(("status", "outage"), [(503, True), (403, False)])
def test_a_source_that_is_down_is_told_from_one_that_refuses(
    adapter: HttpAdapter, source: responses.RequestsMock, status: int, outage: bool
) -> None:
    for path in (LIST, f"{URL}/patients", f"{URL}/etablissements"):
        source.get(path, status=status)
    assert {problem.outage for problem in adapter.check()} == {outage}
