"""The demo's token server: what it issues, and what it refuses as RFC 6749 says."""

import stat
import time
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from joserfc import jws, jwt
from joserfc.jwk import KeySet
from werkzeug.test import TestResponse

from demo.issuer import AUDIENCE, create_issuer
from demo.state import DemoDirectory, deployment

ISSUER = "https://tokens.example.org"


@pytest.fixture
def directory(tmp_path: Path) -> DemoDirectory:
    made = DemoDirectory(tmp_path / "demo")
    made.prepare()
    made.remember_issuer(ISSUER)
    return made


@pytest.fixture
def server(directory: DemoDirectory) -> FlaskClient:
    return create_issuer(directory).test_client()


def ask(
    server: FlaskClient, auth: tuple[str, str] | None = None, **form: str
) -> TestResponse:
    return server.post("/oauth/token", data=form, auth=auth, base_url=ISSUER)


def good_form(directory: DemoDirectory, **changed: str) -> dict[str, str]:
    return {
        "grant_type": "client_credentials",
        "client_id": "ward-3",
        "client_secret": directory.client_secret().read_text(),
        **changed,
    }


def claims_by_published_key(server: FlaskClient, token: str) -> dict[str, Any]:
    """Return the claims, checked with nothing but what the server publishes."""
    published = server.get("/.well-known/jwks.json", base_url=ISSUER).get_json()
    keys = KeySet.import_key_set(published)
    kid = jws.extract_compact(token.encode()).headers()["kid"]
    assert kid in {key.kid for key in keys}
    return dict(jwt.decode(token, keys, algorithms=["RS256"]).claims)


def test_a_token_carries_what_the_service_asks_for(
    server: FlaskClient, directory: DemoDirectory
) -> None:
    before = int(time.time())
    answer = ask(server, **good_form(directory, audience=AUDIENCE))
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    body = answer.get_json()
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 3600)
    claims = claims_by_published_key(server, body["access_token"])
    issued = claims.pop("iat")
    assert before <= issued <= time.time()
    assert claims.pop("exp") == issued + 3600
    assert claims.pop("jti")
    assert claims == {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ward-3",
        "client_id": "ward-3",
        "scope": "PATIENT_GAM_SEARCH",
    }


def test_a_bad_request_is_refused_by_name(
    server: FlaskClient, directory: DemoDirectory
) -> None:
    for name, value, status, error in (
        ("client_secret", "wrong", 401, "invalid_client"),
        ("client_secret", "é", 401, "invalid_client"),
        ("client_id", "no such name", 400, "invalid_client"),
        ("grant_type", "password", 400, "unsupported_grant_type"),
        ("grant_type", "", 400, "unsupported_grant_type"),
        ("scope", "PATIENT_READ EVERYTHING", 400, "invalid_scope"),
        ("audience", "another", 400, "invalid_request"),
    ):
        answer = ask(server, **good_form(directory, **{name: value}))
        assert (answer.status_code, answer.get_json()["error"]) == (status, error)
        assert ("WWW-Authenticate" in answer.headers) == (status == 401)


def test_secrets_are_made_once_and_are_the_owners_alone(
    directory: DemoDirectory, tmp_path: Path
) -> None:
    def secrets() -> tuple[str, ...]:
        files = (directory.client_secret(), directory.seal_key())
        return (*(file.read_text() for file in files), str(directory.signing_key().kid))

    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    assert secrets() == secrets()
    assert mode(directory.root) == 0o700
    names = ("client.secret", "issuer", "lock", "seal.key", "signing.pem")
    modes = {path.name: mode(path) for path in directory.root.iterdir()}
    assert modes == dict.fromkeys(names, 0o600)
    root = tmp_path / "groups"
    deployment("a").directory(root).prepare()
    assert {mode(path) for path in (root, root / "group-a")} == {0o700}
