"""Decisions 21, 24 and 26: HTTPS, headers of every response, and reads that are live."""

from app.middleware import SECURITY_HEADERS, UNIX_SOCKET
from tests.app.answers import body, refused
from tests.serving import Served, ids

PLAIN = "http://encounters.example.org"
PROXY, OTHER, LOOPBACK = "10.1.2.3", "10.9.9.9", "127.0.0.1"
FORWARDED = {"X-Forwarded-Proto": "https"}
STRICT = "Strict-Transport-Security"
DEMO = {"PLAIN_HTTP": "loopback", "BASE_URL": "http://127.0.0.1:8000/fhir/v3"}


def plain(served, peer, headers=(), path="Encounter/1"):
    """Send a request over plain HTTP from an address; check the response."""
    sent = {"headers": dict(headers), "environ_overrides": {"REMOTE_ADDR": peer}}
    answer = served.send("GET", path, base_url=PLAIN, **sent)
    if answer.status_code != 200:
        refused(answer, 403, "security")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    return answer


def test_plain_http_is_refused(served):
    """Decision 24: before anything else is looked at, and by default from any proxy."""
    for path in ("Encounter/1", "metadata", "Nonsense"):
        for peer in (PROXY, LOOPBACK, "::1", "unknown"):
            assert plain(served, peer, FORWARDED, path).status_code == 403
        assert plain(served, UNIX_SOCKET, {}, path).status_code == 403
    anonymous = Served(served.app)
    answer = anonymous.send("POST", "Encounter/_search", base_url=PLAIN, data="x")
    refused(answer, 403, "security")
    assert "HTTPS" in answer.text


FROM_PROXIES = (
    (PROXY, FORWARDED, 200),
    (PROXY, {"X-Forwarded-Proto": "http, https"}, 200),
    # The nearest proxy writes last; what a client wrote comes first.
    (PROXY, {"X-Forwarded-Proto": "https, http"}, 403),
    (PROXY, {}, 403),
    (PROXY, {"Forwarded": "proto=https"}, 403),
    (OTHER, FORWARDED, 403),
    (LOOPBACK, FORWARDED, 403),
    ("unknown", FORWARDED, 403),
    (UNIX_SOCKET, FORWARDED, 200),
    (UNIX_SOCKET, {"X-Forwarded-Proto": "http"}, 403),
)


def test_a_trusted_proxy_reports_https(make_service):
    """Decision 24; only the proxy can open a unix socket."""
    served = make_service(TRUSTED_PROXIES="10.1.0.0/16, 192.0.2.7")
    for peer, headers, status in FROM_PROXIES:
        assert plain(served, peer, headers).status_code == status, (peer, headers)


def test_one_switch_lets_this_machine_in(make_service):
    """Decision 24: strict transport is sent over HTTPS alone."""
    served = make_service(TRUSTED_PROXIES=PROXY, **DEMO)
    for peer, headers, status in (
        (LOOPBACK, {}, 200),
        ("::1", {}, 200),
        (OTHER, {}, 403),
        ("", {}, 403),
        (PROXY, {}, 403),
        (PROXY, FORWARDED, 200),
    ):
        answer = plain(served, peer, headers)
        assert answer.status_code == status, peer
        assert (STRICT in answer.headers) == (headers == FORWARDED)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    bundle = body(plain(served, LOOPBACK, path="Encounter?_id=1"))
    assert bundle["link"][0]["url"].startswith("http://127.0.0.1:8000/fhir/v3/Bundle?")


def test_every_response_has_the_security_headers_and_a_request_id(served):
    """Decisions 21 and 24."""
    for method, path, status in (
        ("GET", "Encounter/1", 200),
        ("HEAD", "Encounter/1", 200),
        ("GET", "metadata", 200),
        ("GET", "Encounter?_count=1", 200),
        ("GET", "Encounter/987654", 404),
        ("GET", "Encounter/37", 500),
        ("DELETE", "Encounter/1", 405),
        ("OPTIONS", "Encounter/1", 200),
    ):
        first, second = (served.send(method, path) for _ in range(2))
        assert first.status_code == status
        for name, text in (*SECURITY_HEADERS, (STRICT, "max-age=31536000")):
            assert first.headers.getlist(name) == [text]
        assert first.headers["X-Request-Id"] != second.headers["X-Request-Id"]
        assert ("Content-Type" in first.headers) == (method != "OPTIONS")


def test_changes_and_deletions_are_visible_at_once(hospital):
    """Decision 26."""
    served = hospital.served
    assert served.search("Encounter", {"_id": "90"})["total"] == 0
    hospital.put(90, "2024-06-01 10:00:00", visit="NEW-1", state="E")
    assert body(served.get("Encounter/90"))["status"] == "in-progress"
    for name, value in (("_id", "90"), ("identifier", "NEW-1"), ("_count", "1")):
        assert ids(served.search("Encounter", {name: value})) == ["90"]
    assert ids(served.search("Encounter", {"status": "planned"})) == []
    assert body(served.get("Encounter/3"))["status"] == "finished"
    hospital.put(3, state="P")
    assert ids(served.search("Encounter", {"status": "planned"})) == ["3"]
    assert body(served.get("Encounter/3"))["status"] == "planned"
    hospital.delete(3)
    refused(served.get("Encounter/3"), 404, "not-found")
    assert served.search("Encounter", {"status": "planned"})["total"] == 0
