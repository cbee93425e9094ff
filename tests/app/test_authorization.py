"""Decisions 21 and 22: tokens, scopes, clients, and the challenges of 401 and 403."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
import responses

from adapters.testing.hospital import EDGES
from tests.app import provider
from tests.app.answers import body, refused
from tests.app.conftest import Mapped
from tests.redis_server import RedisServer
from tests.serving import Served, ids, link, relations, serve

NEEDS = {
    "Encounter/1": "ENCOUNTER_READ",
    "Encounter?_id=1": "ENCOUNTER_SEARCH",
    "Patient/1": "PATIENT_READ",
    "Patient?_id=1": "PATIENT_SEARCH",
    "Organization/H1": "ORGANIZATION_READ",
    "Organization?_id=H1": "ORGANIZATION_READ",
}
OPAQUE = "opaque-token-of-client-1"


def _with(served: Served, token: str) -> Served:
    return Served(served.app, {"Authorization": f"Bearer {token}"})


def _claiming(served: Served, **claims: Any) -> Served:
    return _with(served, provider.sign(**claims))


@pytest.mark.parametrize("path", [*NEEDS, "Bundle?_id=x"])
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic dXM6aHVzaA=="}])
def test_without_a_token_401_requests_one(
    served: Served, path: str, headers: dict[str, str]
) -> None:
    """Decision 21."""
    answer = Served(served.app, headers).get(path)
    refused(answer, 401, "login", "Authorization")
    # No error attribute: nothing was wrong with the credentials (RFC 6750, 3.1).
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="encounters"'


@pytest.mark.parametrize(
    ("claims", "code"), [({"iss": None}, "unknown"), ({"exp": 1}, "expired")], ids=str
)
def test_a_bad_token_is_401(
    served: Served, claims: Mapping[str, Any], code: str
) -> None:
    """Decision 21; which tokens are bad: test_auth.py."""
    answer = _claiming(served, **claims).get("Encounter/1")
    refused(answer, 401, code, "Authorization")
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_a_missing_scope_is_named(served: Served) -> None:
    """Decision 21."""
    answer = served.as_client("c", "PATIENT_READ").get("Encounter/1")
    assert answer.status_code == 403
    challenge = answer.headers["WWW-Authenticate"]
    assert challenge.startswith("Bearer ")
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="ENCOUNTER_READ"' in challenge


@pytest.mark.parametrize(
    "error", [requests.ConnectionError("away"), requests.Timeout("slow")], ids=str
)
def test_a_provider_that_does_not_answer_is_503(
    redis_server: RedisServer, tmp_path: Path, error: Exception
) -> None:
    """Decision 21."""
    served = serve(EDGES, tmp_path, redis_server.url)
    with responses.RequestsMock() as mock:
        mock.get(provider.KEY_SET_URL, body=error)
        answer = served.get("Encounter/1")
    refused(answer, 503, "transient")
    assert int(answer.headers["Retry-After"]) > 0


@pytest.fixture
def introspecting(redis_server: RedisServer, tmp_path: Path) -> Served:
    """Return a service that introspects each token, asked with an opaque one."""
    served = serve(
        EDGES,
        tmp_path,
        redis_server.url,
        KEY_SET_URL=None,
        INTROSPECTION_URL=provider.INTROSPECTION_URL,
        INTROSPECTION_CLIENT_ID="encounters",
        INTROSPECTION_CLIENT_SECRET="hush",
    )
    return _with(served, OPAQUE)


@pytest.mark.parametrize("active", [True, False])
def test_an_opaque_token_is_introspected(introspecting: Served, active: bool) -> None:
    """Decision 22."""
    with responses.RequestsMock() as mock:
        claims = {"active": active, "client_id": "client-1", "scope": provider.SCOPE}
        mock.post(provider.INTROSPECTION_URL, json=claims)
        answer = introspecting.get("Encounter/1")
        if active:
            assert body(answer)["id"] == "1"
            first = introspecting.search("Encounter", {"_count": "2"})
            assert relations(introspecting.follow(first, "next"))
        else:
            refused(answer, 401, "unknown", "Authorization")
        assert mock.calls[0].request.headers["Authorization"].startswith("Basic ")


def test_a_provider_that_cannot_introspect_is_503(introspecting: Served) -> None:
    """Decision 22."""
    with responses.RequestsMock() as mock:
        mock.post(provider.INTROSPECTION_URL, status=500)
        refused(introspecting.get("Encounter/1"), 503, "transient")


@pytest.mark.parametrize("path", NEEDS)
def test_each_interaction_requires_its_own_scope(served: Served, path: str) -> None:
    """Decision 22: PATIENT_GAM_SEARCH stands for all five."""
    for scope in {*NEEDS.values(), "PATIENT_GAM_SEARC", "patient_gam_search", ""}:
        answer = served.as_client("c", scope).get(path)
        assert answer.status_code == (200 if NEEDS[path] == scope else 403)
    assert served.as_client("c", "PATIENT_GAM_SEARCH").get(path).status_code == 200


def test_what_a_scope_stands_for_is_a_setting(mapped: Mapped) -> None:
    """Decision 22."""
    served = mapped(SCOPES="STAYS=ENCOUNTER_READ ENCOUNTER_SEARCH")
    for scope, path, status in (
        ("STAYS", "Encounter/1", 200),
        ("STAYS", "Patient/1", 403),
        ("PATIENT_GAM_SEARCH", "Encounter/1", 403),
    ):
        assert served.as_client("c", scope).get(path).status_code == status


@pytest.mark.parametrize(
    ("claims", "same"),
    [
        ({"client_id": "one", "azp": "x", "sub": "y", "jti": "2"}, True),
        ({"client_id": None, "azp": "one", "sub": "y"}, True),
        ({"client_id": None, "sub": "one"}, True),
        ({"client_id": "two", "azp": "one", "sub": "one"}, False),
        ({"client_id": None, "azp": "two", "sub": "one"}, False),
    ],
    ids=str,
)
def test_a_renewed_token_is_the_same_client(
    served: Served, claims: Mapping[str, Any], same: bool
) -> None:
    """Decision 22."""
    one = _claiming(served, client_id="one", jti="1")
    first = one.search("Encounter", {"_count": "2"})
    for relation in ("self", "next"):
        answer = _claiming(served, **claims).get(link(first, relation))
        assert answer.status_code == (200 if same else 404)


def test_a_token_in_the_address_or_a_form_is_none(served: Served) -> None:
    """Decision 22."""
    token = provider.sign()
    anonymous = Served(served.app)
    for answer in (
        anonymous.get(f"Encounter/1?access_token={token}"),
        anonymous.post("Encounter/_search", {"access_token": token}),
    ):
        refused(answer, 401, "login", "Authorization")


def test_metadata_is_open_and_shows_no_patient(served: Served, mapped: Mapped) -> None:
    """Decision 22: a setting closes it."""
    answer = Served(served.app).get("metadata")
    assert body(answer)["resourceType"] == "CapabilityStatement"
    for text in ("Martin", "V1", "Hôpital de l"):
        assert text not in answer.text
    closed = mapped(OPEN_METADATA="false")
    refused(Served(closed.app).get("metadata"), 401, "login", "Authorization")
    assert body(closed.get("metadata"))["resourceType"] == "CapabilityStatement"
    assert ids(closed.search("Encounter", {"_id": "1"})) == ["1"]


@pytest.mark.parametrize("id", ["1", "51", "50", "37", "987654"])
def test_a_client_that_may_not_read_learns_nothing(served: Served, id: str) -> None:
    """Decision 22."""
    reader = served.as_client("c", "PATIENT_READ")
    answer = reader.get(f"Encounter/{id}")
    assert answer.status_code == 403
    assert answer.get_data() == reader.get("Encounter/1").get_data()


def test_scopes_are_checked_before_a_page_is_looked_up(served: Served) -> None:
    """Decision 32: with a search scope, another client's page is 404 (decision 14)."""
    next_page = link(served.search("Encounter", {"_count": "1"}), "next")
    made_up = f"Bundle?_id={'a' * 32}"
    reader = served.as_client("c", "PATIENT_READ ENCOUNTER_READ")
    for path in (next_page, made_up, "Bundle?_id=x", "Bundle"):
        text = refused(reader.get(path), 403, "processing", "Authorization")
        assert "ENCOUNTER_SEARCH" in text
    searcher = served.as_client("c", "PATIENT_SEARCH")
    for path in (next_page, made_up):
        assert searcher.get(path).status_code == 404
