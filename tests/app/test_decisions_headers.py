"""Decision 21: what the headers of an answer tell."""

from pathlib import Path

import pytest
import requests
import responses

from adapters.testing.stays import EDGES
from tests.app import provider
from tests.app.answers import raw, refused
from tests.redis_server import RedisServer
from tests.serving import Served, serve

PATHS = (
    *("Encounter/1", "Encounter?_id=1", "Patient/1", "Patient?_id=1"),
    *("Organization/H1", "Organization?_id=H1"),
)


@pytest.mark.parametrize("path", [*PATHS, "Bundle?_id=x"])
def test_21_without_a_token_401_asks_for_one(served: Served, path: str) -> None:
    for headers in ({}, {"Authorization": "Basic dXM6aHVzaA=="}):
        answer = Served(served.app, headers).get(path)
        refused(answer, 401, "login", "Authorization")
        # No error attribute: nothing was wrong with what was shown (RFC 6750, 3.1).
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="encounters"'


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({"Authorization": ""}, "Encounter/1", 401),
        ({}, "Encounter/987654", 404),
        ({}, "Encounter?nonsense=1", 400),
        ({}, "Encounter?_count=0", 412),
        ({}, "Nonsense", 404),
    ],
)
def test_21_no_cache_keeps_an_error(
    served: Served, headers: dict[str, str], path: str, status: int
) -> None:
    answer = Served(served.app, {**served.headers, **headers}).get(path)
    assert answer.status_code == status
    assert answer.headers["Cache-Control"] == "no-store"


def test_21_a_bad_token_is_told_so(served: Served) -> None:
    bad = Served(served.app, {"Authorization": "Bearer x.y.z"})
    answer = bad.get("Encounter/1")
    refused(answer, 401, "unknown", "Authorization")
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_21_a_lack_of_scope_names_the_scope(served: Served) -> None:
    answer = served.as_client("c", "PATIENT_READ").get("Encounter/1")
    assert answer.status_code == 403
    challenge = answer.headers["WWW-Authenticate"]
    assert challenge.startswith("Bearer ")
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="ENCOUNTER_READ"' in challenge


def test_21_plain_http_is_refused_with_a_challenge_too(served: Served) -> None:
    answer = raw(served, "GET", "metadata", base_url="http://encounters.example.org")
    assert answer.status_code == 403
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", path) for path in PATHS),
        ("GET", "metadata"),
        ("GET", "Encounter/987"),
        ("GET", "Nonsense"),
        ("DELETE", "Encounter/1"),
        ("OPTIONS", "Encounter/1"),
        ("HEAD", "Encounter/1"),
        ("GET", "Encounter/37"),
    ],
)
def test_21_every_answer_carries_a_request_id(
    served: Served, method: str, path: str
) -> None:
    first, second = (raw(served, method, path) for _ in range(2))
    assert first.headers["X-Request-Id"] != second.headers["X-Request-Id"]
    given = {"X-Request-Id": "gateway-17.b"}
    assert raw(served, method, path, headers=given).headers["X-Request-Id"] == (
        "gateway-17.b"
    )


@pytest.mark.parametrize(
    "fails", [requests.ConnectionError("away"), requests.Timeout("slow")], ids=str
)
def test_21_a_provider_that_cannot_be_asked_is_503(
    redis_server: RedisServer, tmp_path: Path, fails: Exception
) -> None:
    served = serve(EDGES, tmp_path, redis_server.url)
    with responses.RequestsMock() as mock:
        mock.get(provider.KEY_SET_URL, body=fails)
        answer = served.get("Encounter/1")
    refused(answer, 503, "transient")
    assert int(answer.headers["Retry-After"]) > 0
