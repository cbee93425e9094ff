"""The demo's token server refuses as RFC 6749 says; its secrets are its owner's alone."""

import stat

import pytest

from demo.issuer import create_issuer
from demo.state import DemoDirectory, deployment

ISSUER = "https://tokens.example.org"


@pytest.fixture
def directory(tmp_path):
    directory = DemoDirectory(tmp_path / "demo")
    directory.prepare()
    directory.remember_issuer(ISSUER)
    return directory


@pytest.mark.parametrize(
    ("name", "value", "status", "error"),
    [
        ("client_secret", "wrong", 401, "invalid_client"),
        ("client_secret", "é", 401, "invalid_client"),
        ("client_id", "no such name", 400, "invalid_client"),
        ("grant_type", "password", 400, "unsupported_grant_type"),
        ("scope", "PATIENT_READ EVERYTHING", 400, "invalid_scope"),
        ("audience", "another", 400, "invalid_request"),
    ],
)
def test_a_bad_request_is_refused_by_name(directory, name, value, status, error):
    server = create_issuer(directory).test_client()
    form = {
        "grant_type": "client_credentials",
        "client_id": "ward-3",
        "client_secret": directory.client_secret().read_text(),
        name: value,
    }
    answer = server.post("/oauth/token", data=form, base_url=ISSUER)
    assert (answer.status_code, answer.get_json()["error"]) == (status, error)
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)


def test_secrets_are_made_once_and_are_the_owners_alone(directory, tmp_path):
    def secrets():
        files = (directory.client_secret(), directory.seal_key())
        return (*(file.read_text() for file in files), str(directory.signing_key().kid))

    def mode(path):
        return stat.S_IMODE(path.stat().st_mode)

    assert secrets() == secrets()
    assert mode(directory.root) == 0o700
    names = ("client.secret", "issuer", "lock", "seal.key", "signing.pem")
    modes = {path.name: mode(path) for path in directory.root.iterdir()}
    assert modes == dict.fromkeys(names, 0o600)
    root = tmp_path / "groups"
    deployment("a").directory(root).prepare()
    assert {mode(path) for path in (root, root / "group-a")} == {0o700}
