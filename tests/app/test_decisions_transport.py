"""Decisions 24 and 26: HTTPS only, and reads that are live."""

from collections.abc import Mapping

import pytest

from app.transport import SECURITY_HEADERS
from tests.app.answers import body, raw, refused
from tests.app.changing import Changing
from tests.app.conftest import Mapped
from tests.serving import Served, ids, link

PLAIN = "http://encounters.example.org"
PROXY, OTHER, LOOPBACK = "10.1.2.3", "10.9.9.9", "127.0.0.1"


def _asked(served: Served, peer: str, path: str = "Encounter/1", **headers: str) -> int:
    answer = raw(
        served,
        "GET",
        path,
        base_url=PLAIN,
        headers={name.replace("_", "-"): text for name, text in headers.items()},
        environ_overrides={"REMOTE_ADDR": peer},
    )
    if answer.status_code != 200:
        refused(answer, 403, "security")
    return answer.status_code


# -------------------------------------------------------------------- decision 24


@pytest.mark.parametrize("peer", [OTHER, LOOPBACK, "::1", ""])
@pytest.mark.parametrize("path", ["Encounter/1", "metadata", "Nonsense"])
def test_24_plain_http_is_refused(served: Served, path: str, peer: str) -> None:
    assert _asked(served, peer, path) == 403


def test_24_before_anything_else_is_looked_at(served: Served) -> None:
    anonymous = Served(served.app)
    answer = raw(anonymous, "POST", "Encounter/_search", base_url=PLAIN, data="x")
    refused(answer, 403, "security")
    assert "HTTPS" in answer.text


VOUCHED = {"X_Forwarded_Proto": "https"}


@pytest.mark.parametrize(
    ("peer", "headers", "status"),
    [
        (PROXY, VOUCHED, 200),
        ("10.1.9.9", VOUCHED, 200),
        (PROXY, {"X_Forwarded_Proto": "HTTPS"}, 200),
        (PROXY, {"X_Forwarded_Proto": "http, https"}, 200),
        # The proxy next to us writes last; what a client wrote comes first.
        (PROXY, {"X_Forwarded_Proto": "https, http"}, 403),
        (PROXY, {"X_Forwarded_Proto": "http"}, 403),
        (PROXY, {}, 403),
        (PROXY, {"X_Forwarded_Ssl": "on"}, 403),
        (PROXY, {"Forwarded": "proto=https"}, 403),
        (OTHER, VOUCHED, 403),
        (LOOPBACK, VOUCHED, 403),
        ("", VOUCHED, 403),
        ("fe80::1", VOUCHED, 403),
    ],
    ids=str,
)
def test_24_unless_a_configured_proxy_vouches_for_it(
    mapped: Mapped, peer: str, headers: Mapping[str, str], status: int
) -> None:
    served = mapped(TRUSTED_PROXIES="10.1.0.0/16, 192.0.2.7")
    assert _asked(served, peer, **headers) == status


def test_24_nobody_vouches_by_default(served: Served) -> None:
    for peer in (PROXY, LOOPBACK):
        assert _asked(served, peer, **VOUCHED) == 403


@pytest.mark.parametrize(
    ("peer", "status"), [(LOOPBACK, 200), ("::1", 200), (OTHER, 403), ("", 403)]
)
def test_24_one_switch_lets_this_machine_in(
    mapped: Mapped, peer: str, status: int
) -> None:
    served = mapped(PLAIN_HTTP="loopback", BASE_URL="http://127.0.0.1:8000/fhir/v3")
    assert _asked(served, peer) == status
    found = body(
        raw(
            served,
            "GET",
            "Encounter?_id=1",
            base_url=PLAIN,
            environ_overrides={"REMOTE_ADDR": LOOPBACK},
        )
    )
    assert found["link"][0]["url"].startswith("http://127.0.0.1:8000/fhir/v3/Bundle?")


STRICT = "Strict-Transport-Security"
ANSWERS = (
    ("GET", "Encounter/1", 200),
    ("HEAD", "Encounter/1", 200),
    ("GET", "Encounter?_id=1", 200),
    ("GET", "Patient/1", 200),
    ("GET", "metadata", 200),
    ("GET", "Encounter/987654", 404),
    ("GET", "Nonsense", 404),
    ("GET", "Encounter?_count=0", 412),
    ("DELETE", "Encounter/1", 405),
    ("OPTIONS", "Encounter/1", 200),
)


@pytest.mark.parametrize(("method", "path", "status"), ANSWERS, ids=str)
def test_24_every_answer_is_kept_by_no_cache_and_does_nothing_in_a_browser(
    served: Served, method: str, path: str, status: int
) -> None:
    answer = raw(served, method, path)
    assert answer.status_code == status
    for name, text in (*SECURITY_HEADERS, (STRICT, "max-age=31536000")):
        assert answer.headers.getlist(name) == [text]


def test_24_an_answer_that_nothing_has_changed_is_not_kept_either(
    served: Served,
) -> None:
    etag = served.get("Encounter/1").headers["ETag"]
    answer = served.get("Encounter/1", If_None_Match=etag)
    assert answer.status_code == 304
    assert answer.headers.getlist("Cache-Control") == ["no-store"]


def test_24_a_page_of_a_search_is_kept_by_no_cache(served: Served) -> None:
    first = served.search("Encounter", {"_count": "1"})
    answer = served.get(link(first, "next"))
    assert answer.headers.getlist("Cache-Control") == ["no-store"]


def test_24_https_is_asked_for_over_https_alone(mapped: Mapped) -> None:
    served = mapped(
        TRUSTED_PROXIES=PROXY,
        PLAIN_HTTP="loopback",
        BASE_URL="http://127.0.0.1:8000/fhir/v3",
    )
    for peer, headers, asked_for in (
        (PROXY, {"X-Forwarded-Proto": "https"}, True),
        (PROXY, {}, False),
        (LOOPBACK, {}, False),
    ):
        answer = raw(
            served,
            "GET",
            "Encounter/1",
            base_url=PLAIN,
            headers=headers,
            environ_overrides={"REMOTE_ADDR": peer},
        )
        assert (STRICT in answer.headers) == asked_for
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


# -------------------------------------------------------------------- decision 26


def test_26_a_stay_is_found_as_soon_as_it_is_there(hospital: Changing) -> None:
    served = hospital.served
    assert served.search("Encounter", {"_id": "90"})["total"] == 0
    hospital.put(90, "2024-06-01 10:00:00", visit="NEW-1", state="E")
    assert body(served.get("Encounter/90"))["status"] == "in-progress"
    for params in (
        {"_id": "90"},
        {"identifier": "NEW-1"},
        {"date": "2024-06-01"},
        {"_count": "1"},
    ):
        assert ids(served.search("Encounter", params)) == ["90"]


def test_26_a_change_and_a_deletion_are_seen_at_once(hospital: Changing) -> None:
    served = hospital.served
    assert ids(served.search("Encounter", {"status": "planned"})) == []
    hospital.put(3, state="P")
    assert ids(served.search("Encounter", {"status": "planned"})) == ["3"]
    assert body(served.get("Encounter/3"))["status"] == "planned"
    hospital.delete(3)
    refused(served.get("Encounter/3"), 404, "not-found")
    assert served.search("Encounter", {"status": "planned"})["total"] == 0


def test_24_what_has_no_body_has_no_type(served: Served) -> None:
    assert "Content-Type" not in raw(served, "OPTIONS", "Encounter/1").headers
