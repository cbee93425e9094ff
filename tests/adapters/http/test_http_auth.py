"""How the service authenticates to a source, and logins and token servers that fail."""

import base64
import json
import math
from itertools import count
from types import SimpleNamespace

import pytest
import requests

from adapters.contract import SourceDataError, SourceUnavailableError
from adapters.http import client
from adapters.http.client import Credentials
from tests.adapters.http_cases import STAY_1, URL, WORD, fails, opened_at
from tests.hospital_http import SECRETS, Api, serving
from toolkit.contract.harness import STAY, ask
from toolkit.contract.hospital import EDGES

ONE = f"{URL}/sejours/1"
PATIENCE = 60.0


OAUTH2 = (
    "auth: {oauth2: {token_url: 'http://id.invalid/token', client_id: c, "
    "client_secret: {env: PAS_PASSWORD}OPTIONS}}"
)
SESSION = (
    "auth: {session: {path: /session, body: {nom: {env: PAS_USER}}, "
    "token: jeton.valeur, header: X-Session, format: 'Session {token}'}}"
)
BASIC = "auth: {basic: {user: {env: PAS_USER}, password: {env: PAS_PASSWORD}}}"
BASIC_VALUE = f"Basic {base64.b64encode(b'lecture:p-1').decode()}"
OPTIONS = ", scope: lire, audience: pas", ", credentials: form"
SHOWN = (
    ("headers: {X-Api-Key: {env: PAS_KEY}}", "X-Api-Key", SECRETS["PAS_KEY"]),
    (BASIC, "Authorization", BASIC_VALUE),
    (OAUTH2.replace("OPTIONS", OPTIONS[0]), "Authorization", "Bearer TOKEN"),
    (OAUTH2.replace("OPTIONS", OPTIONS[1]), "Authorization", "Bearer TOKEN"),
    (SESSION, "X-Session", "Session TOKEN"),
    (SESSION.replace("body:", "form:"), "X-Session", "Session TOKEN"),
)


@pytest.mark.parametrize(("source", "header", "value"), SHOWN)
def test_the_source_is_shown_who_asks(tmp_path, source, header, value):
    api = Api(EDGES)

    def is_known(request):
        token = ["", *api.sessions][-1]
        return request.headers.get(header) == value.replace("TOKEN", token)

    api.guard = is_known
    with serving(api) as url:
        adapter = opened_at(
            url, tmp_path, source=f", {source.replace('http://id.invalid', url)}"
        )
        assert adapter.read(STAY, "1").id == "1"
        # A token that the source has forgotten is renewed, once.
        api.sessions.append("other")
        assert adapter.read(STAY, "2").id == "2"
        logins = [r for r in api.requests if r.path in ("/session", "/token")]
        assert len(logins) == 2 * ("TOKEN" in value)
        for login in (login for login in logins if login.path == "/token"):
            sent = [login.form.get("client_id"), login.form.get("client_secret")]
            in_form = "credentials: form" in source
            assert sent == (["c", "p-1"] if in_form else [None, None])
            assert ("Authorization" in login.headers) is not in_form
        api.guard = lambda _: False
        with pytest.raises(SourceDataError, match="refuses the credentials"):
            adapter.read(STAY, "1")
        adapter.close()


def test_a_login_that_fails(tmp_path, source):
    auth = ", auth: {session: {path: /in, body: {}, token: jeton, header: X-S}}"
    adapter = opened_at(URL, tmp_path, source=auth)
    source.post(f"{URL}/in", body=WORD, status=500)
    fails(SourceUnavailableError, lambda: adapter.read(STAY, "1"))
    for status in (200, 401):
        source.replace("POST", f"{URL}/in", body=WORD, status=status)
        fails(SourceDataError, lambda: adapter.read(STAY, "1"))
    source.replace("POST", f"{URL}/in", body=WORD, status=429)
    fails(SourceUnavailableError, lambda: adapter.read(STAY, "1"))
    # Also of a count, for which a narrower search would not help.
    source.replace("POST", f"{URL}/in", body=requests.Timeout())
    fails(SourceUnavailableError, lambda: adapter.count(ask()))


TOKEN_URL = "http://id.invalid/token"
AS_OAUTH2 = f", {OAUTH2.replace('OPTIONS', '')}"
AWAY = (
    {"body": requests.Timeout()},
    {"status": 500},
    {"json": {}},
    {"body": "x"},
    {"json": {"error": ["no"]}, "status": 400},
)


def test_a_token_server_that_fails(tmp_path, source):
    adapter = opened_at(URL, tmp_path, source=AS_OAUTH2)
    for fault in AWAY:
        source.upsert("POST", TOKEN_URL, **fault)
        fails(SourceUnavailableError, lambda: adapter.read(STAY, "1"))
    # The reason that it gives is part of the error, if it is one line.
    for described in ("AADSTS7000222: The secret has expired.", "a\nb", 7):
        for error, kind in (
            ("invalid_client", SourceDataError),
            ("server_error", SourceUnavailableError),
        ):
            body = {"error": error, "error_description": described}
            source.upsert("POST", TOKEN_URL, json=body, status=401)
            with pytest.raises(kind) as failed:
                adapter.read(STAY, "1")
            assert error in str(failed.value)
            is_shown = str(described) in str(failed.value)
            assert is_shown is str(described).startswith("AADSTS")


def test_a_token_is_renewed_before_it_expires(tmp_path, source, monkeypatch):
    now = [0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=None)
    monkeypatch.setattr(client, "time", clock)
    source.get(ONE, json=STAY_1)
    for life, seconds, logins in (
        *(
            (3600, 3560, 1),
            ("3600", 3580, 2),
            ("0", 0, 2),
            ("soon", 0, 1),
            (None, 0, 1),
        ),
    ):
        body = {"access_token": "a", "expires_in": life}
        tokens = source.upsert("POST", TOKEN_URL, json=body)
        tokens.calls.reset()
        adapter = opened_at(URL, tmp_path, source=AS_OAUTH2)
        for now[0] in (0, seconds):
            adapter.read(STAY, "1")
        assert tokens.call_count == logins, (life, seconds)


TOKENS = (
    # A sign that no header holds, an end of line, no sign, a life without an end.
    {"access_token": "\u20ac"},
    {"access_token": "a\r\nX-Y: b"},
    {"access_token": ""},
    {"access_token": "a", "expires_in": 1e308 * 10},
)


@pytest.mark.parametrize("fields", TOKENS, ids=str)
def test_a_token_that_makes_no_sense(tmp_path, source, fields):
    adapter = opened_at(URL, tmp_path, source=AS_OAUTH2)
    body = json.dumps({**fields, "token_type": "Bearer"})
    source.post(TOKEN_URL, body=body, content_type="application/json")
    fails(SourceUnavailableError, lambda: adapter.read(STAY, "1"))


def test_headers_that_another_request_has_fetched_meanwhile_stay():
    logins, deadline = count(1), client.Deadline(PATIENCE)
    credentials = Credentials(fetch=lambda _: ({"X": str(next(logins))}, math.inf))
    refused = credentials.headers(deadline)
    assert credentials.renew(refused)
    renewed = credentials.headers(deadline)
    assert credentials.renew(refused)
    assert [refused, renewed] == [{"X": "1"}, {"X": "2"}]
    assert credentials.headers(deadline) is renewed
