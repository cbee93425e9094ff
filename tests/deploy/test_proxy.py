"""The nginx of deploy/compose, with real instances and with stand-ins behind it."""

import gzip
import json
import re
import socket
import ssl
from contextlib import ExitStack, closing, contextmanager, suppress

import pytest

from tests.app import provider
from tests.app.server.running import edges, running
from tests.deploy.proxies import NEEDS_NGINX, Answer, echoing, nginx
from tests.live import HOST, free_ports
from tests.validity.client import check_answer
from toolkit.contract.hospital import EDGES

pytestmark = [pytest.mark.system, NEEDS_NGINX]

CANARY = "QUENTIN-4711"
STAY = f"/fhir/v3/Encounter/{EDGES.stays[0].id}"


# ---- a real service behind it, which serves the explorer too


@pytest.fixture(scope="module")
def explorer():
    """Return the port where people reach the explorer, and where it listens."""
    return free_ports(2), free_ports()


@pytest.fixture(scope="module")
def service(tmp_path_factory, redis_server, explorer):
    directory = tmp_path_factory.mktemp("service")
    before, behind = explorer
    settings = {
        "THREADS": "2",
        "REDIS_URL": redis_server.url,
        "EXPLORER_BIND": f"{HOST}:{behind}",
        "EXPLORER_URL": f"https://{HOST}:{before}",
        "EXPLORER_CLIENT_ID": "explorer",
    }
    with running(directory, edges(directory), **settings) as started:
        yield started
        assert CANARY not in started.log.read_text("utf-8", "replace")
        assert not started.events("request failed")


@pytest.fixture(scope="module")
def proxy(service, explorer, tmp_path_factory):
    directory = tmp_path_factory.mktemp("nginx")
    with nginx(directory, [service.port] * 2, explorer=explorer) as started:
        yield started
    for name in ("access.log", "error.log"):
        assert CANARY not in (directory / name).read_text("utf-8", "replace")
    assert (directory / "access.log").read_text(), "each request has a line"


@pytest.fixture(scope="module")
def token():
    return {"Authorization": provider.bearer(provider.sign())}


def way(token=""):
    """Return the headers of a client that is let in, with a token of ours or another."""
    headers = ("Host: x", f"Authorization: {provider.bearer(token or provider.sign())}")
    return "\r\n".join((*headers, "Connection: close", "", "")).encode()


def raw(proxy, sent):
    """Send bytes over TLS; return the answer, read until the proxy closes."""
    plain = socket.create_connection((HOST, proxy.port), 60)
    with proxy.trust().wrap_socket(plain, server_hostname=HOST) as connection:
        # It may be refused before all of it is sent.
        with suppress(OSError):
            connection.sendall(sent)
        return read_answer(connection)


def read_answer(connection):
    data = b""
    with suppress(ConnectionResetError, ssl.SSLError):
        while piece := connection.recv(65536):
            data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return Answer(int(first.split()[1]), headers, body)


def check_outcome(answer, status, code, sent=""):
    """Hold an error to what every error of the service promises."""
    assert answer.status == status, (sent, answer)
    check_answer("GET", "/fhir/v3/x", status, answer.headers, answer.body)
    assert json.loads(answer.body)["issue"][0]["code"] == code
    assert answer.headers["Content-Type"] == "application/fhir+json;charset=UTF-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "nginx/" not in str(answer)


GET = b"GET " + STAY.encode()
C = CANARY.encode()
HTTP = b" HTTP/1.1\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
SEARCH = b"POST /fhir/v3/Encounter/_search HTTP/1.1\r\n"
LENGTH, CODING = b"Content-Length: 5\r\n", b"Transfer-Encoding: "
REFUSED = (
    (400, "invalid", b"\0\1\2" + C + b"\r\n\r\n"),
    (400, "invalid", GET + b"%00" + C + HTTP),
    (400, "invalid", GET + HTTP + b"Host: " + C + b"\r\n"),
    (400, "invalid", SEARCH + LENGTH + CODING + b"chunked\r\n"),
    (501, "not-supported", SEARCH + CODING + b"gzip, chunked\r\n"),
    (405, "not-supported", b"BREW" + GET[3:] + HTTP),
    (405, "not-supported", b"TRACE" + GET[3:] + HTTP),
    (505, "not-supported", GET + b" HTTP/3.7\r\n"),
    (414, "too-long", GET + b"?_id=" + C * 700 + HTTP),
    (414, "too-long", GET + b"?_id=" + C * 2000 + HTTP),
    (431, "too-long", GET + HTTP + b"X-Y: " + C * 2000 + b"\r\n"),
    (413, "too-long", SEARCH + b"Content-Length: 65537\r\n"),
    *(
        (404, "not-found", b"GET /" + path + HTTP)
        for path in (C, b"live", b"ready", b"metrics", b"errors/400")
    ),
)
"""Status and issue code of the answer; what is sent, without the headers of `way`."""


def test_what_nginx_refuses_is_an_operation_outcome(proxy):
    for status, code, sent in REFUSED:
        check_outcome(raw(proxy, sent + way()), status, code, sent[:200])
    with socket.create_connection((HOST, proxy.port), 60) as connection:
        connection.sendall(GET + HTTP + way())
        check_outcome(read_answer(connection), 403, "security", "plain HTTP")


def test_without_a_certificate_of_ours_nobody_is_let_in(proxy):
    for client in (None, "encounters"):
        check_outcome(proxy.ask(STAY, client=client), 400, "security")


PASSED = (
    (200, GET + HTTP + b"X-Y: a\r\n" * 300),
    (400, GET + b"?_x=" + b"a" * 7900 + HTTP),
    (400, GET + b"?_x=\xc3\xa9" + HTTP),
    (400, GET + HTTP + b"Accept: " + C + b"\x01\r\n"),
    (200, GET + HTTP + b"X-Y: " + C + b"\x01\r\n"),
    (200, b"GET http://x" + STAY.encode() + HTTP),
    (400, GET + HTTP + b"X-Y: a\r\n b\r\n"),
    (200, GET + HTTP + b"Expect: " + C + b"\r\n"),
    (405, b"PATCH" + GET[3:] + HTTP),
)
"""What gunicorn alone would refuse with HTML, or what must pass; before it the status."""


def test_what_gunicorn_could_refuse_is_answered_in_fhir(proxy):
    for status, sent in PASSED:
        answer = raw(proxy, sent + way())
        assert answer.status == status, sent[:200]
        check_answer("GET", STAY, status, answer.headers, answer.body)
    # A long token is passed, and refused by the service.
    check_outcome(raw(proxy, GET + HTTP + way("a" * 8192)), 401, "unknown")


def test_a_body_in_chunks_reaches_the_service_whole(proxy):
    chunked = FORM + CODING + b"chunked\r\n"
    stay = str(EDGES.stays[0].id).encode()
    form = b"4\r\n_id=\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(stay), stay)
    answer = raw(proxy, SEARCH + chunked + way() + form)
    assert json.loads(answer.body)["total"] == 1


def test_large_answers_are_compressed_for_those_who_accept_it(proxy, token):
    accepting = token | {"Accept-Encoding": "gzip"}
    page = "/fhir/v3/Encounter?_count=100"
    plain, small = proxy.ask(page, token), proxy.ask(STAY, accepting)
    assert len(plain.body) > 1024 > len(small.body)
    for answer in (plain, small):
        assert "Content-Encoding" not in answer.headers
    compressed = proxy.ask(page, accepting | {"Via": "1.1 other"})
    assert compressed.headers["Content-Encoding"] == "gzip"
    assert compressed.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    assert 10 * len(compressed.body) < len(plain.body)
    bundle = json.loads(gzip.decompress(compressed.body))
    assert len(bundle["entry"]) == len(json.loads(plain.body)["entry"])
    unchanged = proxy.ask(STAY, token | {"If-None-Match": small.headers["ETag"]})
    assert (unchanged.status, unchanged.body) == (304, b"")


def test_the_base_url_is_answered_in_json(proxy, token):
    for path in ("", "/", "//", "/.well-known/smart-configuration"):
        answer = proxy.ask(f"/fhir/v3{path}")
        assert answer.status == 200, path
        assert json.loads(answer.body)["capability_statement"].endswith("/metadata")
    assert proxy.ask(STAY.replace("/Encounter", "//Encounter"), token).status == 200
    check_outcome(proxy.ask("/fhir/v3x"), 404, "not-found")


def test_slow_clients_do_not_stop_the_service(proxy, service, token):
    """50 connections of each kind send what they have, and then neither send nor read."""
    headers = f"HTTP/1.1\r\nHost: x\r\nAuthorization: {token['Authorization']}\r\n"
    body = f"{FORM.decode()}Content-Length: 60000\r\n\r\n_id="
    kinds = (
        "",
        f"GET {STAY} {headers}X-Slow: ",
        f"POST {STAY} {headers}{body}",
        # More than the buffers between us hold: the proxy waits for the reader.
        f"GET /fhir/v3/Encounter?_count=100 {headers}\r\n" * 4,
    )
    trusted = proxy.trust()
    with ExitStack() as stack:
        for number in range(200):
            plain = socket.socket()
            # Before it connects: the other side never sees a wider window.
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            plain.bind((f"127.0.1.{number % 4 + 1}", 0))
            plain.connect((HOST, proxy.port))
            slow = trusted.wrap_socket(plain, server_hostname=HOST)
            stack.enter_context(slow)
            slow.sendall(kinds[number % len(kinds)].encode())
        for _ in range(3):
            # Two threads are busy until the first pages of all readers are at the proxy.
            service.until(lambda: proxy.ask(STAY, token).status == 200)
            service.until(lambda: service.get(STAY.partition("v3/")[2]).status == 200)
            assert service.operations("/live").status == 200


def test_a_unix_socket_is_trusted_and_tells_the_address(tmp_path, redis_server, token):
    place, audit = tmp_path / "encounters.sock", tmp_path / "audit.jsonl"
    settings = {
        "BIND": f"unix:{place}",
        "TRUSTED_PROXIES": "192.0.2.1",
        "REDIS_URL": redis_server.url,
        "AUDIT": str(audit),
        "AUDIT_KEY": "k" * 44,
    }
    with (
        running(tmp_path, edges(tmp_path), **settings),
        nginx(tmp_path, [f"unix:{place}"] * 2) as proxy,
    ):
        assert place.stat().st_mode & 0o777 == 0o660
        # gunicorn takes the port of a unix socket from Host.
        headers = {"X-Forwarded-For": "198.51.100.1", "Host": f"x:{free_ports()}"}
        assert proxy.ask(STAY, token | headers).status == 200
        assert proxy.ask("/live", token | headers).status == 404
    (event,) = audit.read_text("utf-8").splitlines()
    assert f'"{HOST}"' in event
    assert "198.51.100.1" not in event


def test_people_reach_the_explorer_and_nothing_else_without_a_certificate(
    proxy, explorer
):
    people = proxy._replace(port=explorer[0], certificate="explorer")

    def get(path, **headers):
        # On a busy machine Redis, which holds the sessions, may be late.
        for _ in range(100):
            answer = people.ask(path, headers, client=None)
            if answer.status != 503:
                break
        return answer

    page = get("/login", **{"Accept-Encoding": "gzip"})
    assert page.status == 200
    # A stranger could have a browser load its pages, and learn from their length (BREACH).
    assert "Content-Encoding" not in page.headers
    assert "Secure" in get("/login?lang=fr").headers["Set-Cookie"]
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert get(f"/?q={CANARY}").headers["Location"] == "/login"
    for path in (STAY, "/live", "/ready", "/metrics"):
        assert get(path).status == 404
    check_outcome(proxy.ask("/login"), 404, "not-found")


# ---- instances that come and go


def both(proxy):
    """Search by GET and by POST; return the statuses."""
    path = f"/fhir/v3/Encounter?patient={CANARY}"
    return [
        proxy.ask(path, {}, m, f).status for m, f in (("GET", None), ("POST", b"a"))
    ]


def test_instances_go_and_come_back(tmp_path):
    first, second = ports = [free_ports(), free_ports()]
    with nginx(tmp_path, ports) as proxy:
        with echoing(second):
            with echoing(first):
                lies = {"X-Forwarded-For": "198.51.100.1", "X-Forwarded-Proto": "no"}
                headers = json.loads(proxy.ask(STAY, lies).body)
                assert headers["X-Forwarded-For"] == HOST
                assert headers["X-Forwarded-Proto"] == "https"
            # From here on the first is skipped, for longer than this takes.
            assert both(proxy) + both(proxy) == [200] * 4
        with echoing(first):
            assert [status for _ in range(4) for status in both(proxy)] == [200] * 8
        answer = proxy.ask(STAY)
        check_outcome(answer, 503, "transient")
        assert int(answer.headers["Retry-After"]) > 0


@contextmanager
def silent(queue):
    """Yield a port that takes connections and never answers."""
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        listening.listen(queue)
        yield listening.getsockname()[1]


@pytest.mark.parametrize("fault", ["refused", "silent", "busy", "no socket"])
def test_no_log_holds_a_request_that_an_upstream_failed(tmp_path, fault):
    soon = "proxy_read_timeout 60s", "proxy_read_timeout 1s"
    connections = 3 if fault == "busy" else 512
    with silent(64) as port:
        place = port if fault == "silent" else free_ports()
        if fault == "no socket":
            place = f"unix:{tmp_path}/encounters.sock"
        with nginx(tmp_path, [place] * 2, soon, connections=connections) as proxy:
            answers = {*both(proxy)}
    access = (tmp_path / "access.log").read_text()
    errors = (tmp_path / "error.log").read_text()
    assert errors, "what nginx says of itself is read"
    assert not re.search(f"{CANARY}|/fhir/v3", access + errors)
    if fault == "busy":
        assert answers == {500}
    else:
        assert answers == {503}
        # The operator sees it all the same: which upstream, and that it failed.
        assert re.search(rf"{place}\b.* 50[24]\b", access)


def test_an_instance_whose_machine_is_silent_is_covered(tmp_path):
    port = free_ports()
    with silent(0) as full, ExitStack() as stack, echoing(port):
        # A full queue says nothing more, as where a container has gone.
        for _ in range(4):
            waiting = stack.enter_context(closing(socket.socket()))
            waiting.setblocking(False)
            waiting.connect_ex((HOST, full))
        with nginx(tmp_path, [full, port]) as proxy:
            assert both(proxy) + both(proxy) == [200] * 4


def test_a_search_that_an_instance_broke_off_is_sent_to_the_other(tmp_path):
    first, second = ports = [free_ports(), free_ports()]
    with echoing(first, breaks=True), echoing(second), nginx(tmp_path, ports) as proxy:
        answers = [proxy.ask(STAY, method="POST", form=b"a") for _ in range(4)]
    assert [each.status for each in answers] == [200] * 4


def test_too_many_requests_of_one_address_are_429(tmp_path):
    port = free_ports()
    limit = ("burst=1000", "burst=1"), ("rate=1000r/s", "rate=1r/m")
    with echoing(port), nginx(tmp_path, [port] * 2, *limit) as proxy:
        answers = [proxy.ask(STAY) for _ in range(3)]
    assert [each.status for each in answers] == [200, 200, 429]
    check_outcome(answers[-1], 429, "throttled")
