"""Decision 22: tokens, scopes and clients."""

import base64
import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import responses

from adapters.testing.stays import EDGES
from tests.app import provider
from tests.app.answers import body, refused
from tests.app.conftest import Mapped
from tests.redis_server import RedisServer
from tests.serving import Served, ids, link, relations, serve

TECHNICAL = (
    "ORGANIZATION_READ",
    "PATIENT_READ",
    "PATIENT_SEARCH",
    "ENCOUNTER_READ",
    "ENCOUNTER_SEARCH",
)
NEEDS = {
    "Encounter/1": "ENCOUNTER_READ",
    "Encounter?_id=1": "ENCOUNTER_SEARCH",
    "Patient/1": "PATIENT_READ",
    "Patient?_id=1": "PATIENT_SEARCH",
    "Organization/H1": "ORGANIZATION_READ",
    "Organization?_id=H1": "ORGANIZATION_READ",
}


def _with(served: Served, token: str) -> Served:
    return Served(served.app, {"Authorization": f"Bearer {token}"})


def _claiming(served: Served, **claims: Any) -> Served:
    return _with(served, provider.sign(**claims))


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"iss": "https://evil.example.org/"}, "unknown"),
        ({"iss": None}, "unknown"),
        ({"aud": "https://other.example.org/"}, "unknown"),
        ({"aud": None}, "unknown"),
        ({"exp": None}, "unknown"),
        ({"exp": 1_700_000_000}, "expired"),
        ({"nbf": 4_000_000_000, "exp": 4_000_000_600}, "unknown"),
    ],
    ids=str,
)
def test_22_issuer_audience_expiry_and_key_are_checked(
    served: Served, changed: Mapping[str, Any], code: str
) -> None:
    answer = _claiming(served, **changed).get("Encounter/1")
    refused(answer, 401, code, "Authorization")


@pytest.mark.parametrize("kid", ["another", "rsa-1"])
def test_22_a_key_that_the_provider_does_not_publish(served: Served, kid: str) -> None:
    token = provider.sign(provider.rsa("another"), header={"kid": kid})
    refused(_with(served, token).get("Encounter/1"), 401, "unknown", "Authorization")


@pytest.mark.parametrize("alg", ["none", "HS256", "HS512"])
def test_22_only_asymmetric_algorithms(served: Served, alg: str) -> None:
    # The secret is what everybody knows: the public key.
    signed = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
        for part in ({"alg": alg, "kid": "rsa-1"}, provider.claims())
    )
    secret = provider.rsa().as_pem(private=False)
    digest = {"HS256": "sha256", "HS512": "sha512"}.get(alg)
    seal = hmac.digest(secret, signed.encode(), digest) if digest else b""
    token = f"{signed}.{base64.urlsafe_b64encode(seal).rstrip(b'=').decode()}"
    refused(_with(served, token).get("Encounter/1"), 401, "unknown", "Authorization")


OPAQUE = "opaque-token-of-client-1"


@pytest.fixture
def introspecting(redis_server: RedisServer, tmp_path: Path) -> Served:
    """Return a service that asks the provider about each token."""
    return serve(
        EDGES,
        tmp_path,
        redis_server.url,
        KEY_SET_URL=None,
        INTROSPECTION_URL=provider.INTROSPECTION_URL,
        INTROSPECTION_CLIENT_ID="encounters",
        INTROSPECTION_CLIENT_SECRET="hush",
    )


@pytest.mark.parametrize("active", [True, False])
def test_22_an_opaque_token_is_introspected(
    introspecting: Served, active: bool
) -> None:
    with responses.RequestsMock() as mock:
        says = {"active": active, "client_id": "client-1", "scope": provider.SCOPE}
        mock.post(provider.INTROSPECTION_URL, json=says)
        answer = _with(introspecting, OPAQUE).get("Encounter/1")
        if active:
            assert body(answer)["id"] == "1"
            found = _with(introspecting, OPAQUE).search("Encounter", {"_count": "2"})
            assert relations(_with(introspecting, OPAQUE).follow(found, "next"))
        else:
            refused(answer, 401, "unknown", "Authorization")
        assert mock.calls[0].request.headers["Authorization"].startswith("Basic ")


def test_22_a_provider_that_cannot_introspect_is_503(
    introspecting: Served,
) -> None:
    with responses.RequestsMock() as mock:
        mock.post(provider.INTROSPECTION_URL, status=500)
        refused(_with(introspecting, OPAQUE).get("Encounter/1"), 503, "transient")


@pytest.mark.parametrize(
    "said",
    [
        {"scope": "openid ENCOUNTER_READ"},
        {"scope": ["openid", "ENCOUNTER_READ"]},
        {"scope": None, "scp": "ENCOUNTER_READ"},
        {"scope": None, "scp": ["ENCOUNTER_READ"]},
        {"scope": None, "permissions": ["ENCOUNTER_READ"]},
        {"scope": "openid", "permissions": ["ENCOUNTER_READ"]},
    ],
    ids=str,
)
def test_22_scopes_are_read_from_three_claims(
    served: Served, said: Mapping[str, Any]
) -> None:
    client = _claiming(served, **said)
    assert client.get("Encounter/1").status_code == 200
    assert client.get("Patient/1").status_code == 403


@pytest.mark.parametrize("scope", TECHNICAL)
@pytest.mark.parametrize("path", NEEDS)
def test_22_each_interaction_needs_its_own_scope(
    served: Served, path: str, scope: str
) -> None:
    answer = served.as_client("c", scope).get(path)
    assert answer.status_code == (200 if NEEDS[path] == scope else 403)


@pytest.mark.parametrize("path", NEEDS)
def test_22_patient_gam_search_stands_for_all_five(served: Served, path: str) -> None:
    assert served.as_client("c", "PATIENT_GAM_SEARCH").get(path).status_code == 200
    for scope in ("PATIENT_GAM_SEARC", "patient_gam_search", ""):
        assert served.as_client("c", scope).get(path).status_code == 403


def test_22_what_a_scope_stands_for_is_a_setting(mapped: Mapped) -> None:
    served = mapped(SCOPES="STAYS=ENCOUNTER_READ ENCOUNTER_SEARCH")
    stays = served.as_client("c", "STAYS")
    assert stays.get("Encounter/1").status_code == 200
    assert stays.get("Patient/1").status_code == 403
    assert (
        served.as_client("c", "PATIENT_GAM_SEARCH").get("Encounter/1").status_code
        == 403
    )


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
def test_22_a_renewed_token_is_the_same_client(
    served: Served, claims: Mapping[str, Any], same: bool
) -> None:
    first = _claiming(served, client_id="one", jti="1").search(
        "Encounter", {"_count": "2"}
    )
    renewed = _claiming(served, **claims)
    for relation in ("self", "next"):
        answer = renewed.get(link(first, relation))
        assert answer.status_code == (200 if same else 404)


def test_22_a_token_in_the_address_or_a_form_is_none(served: Served) -> None:
    token = provider.sign()
    anonymous = Served(served.app)
    sent = {"access_token": token}
    for answer in (
        anonymous.get(f"Encounter/1?access_token={token}"),
        anonymous.post("Encounter/_search", sent),
    ):
        refused(answer, 401, "login", "Authorization")


def test_22_metadata_is_open_and_shows_no_patient(served: Served) -> None:
    answer = Served(served.app).get("metadata")
    assert body(answer)["resourceType"] == "CapabilityStatement"
    for text in ("Martin", "V1", "Hôpital de l"):
        assert text not in answer.text


def test_22_a_setting_closes_metadata(mapped: Mapped) -> None:
    served = mapped(OPEN_METADATA="false")
    refused(Served(served.app).get("metadata"), 401, "login", "Authorization")
    assert body(served.get("metadata"))["resourceType"] == "CapabilityStatement"
    assert ids(served.search("Encounter", {"_id": "1"})) == ["1"]
