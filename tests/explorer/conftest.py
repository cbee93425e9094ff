"""A service, its explorer, and a browser without a network."""

import html
import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import responses
from flask import Flask
from werkzeug.test import Client, TestResponse

from tests.app import provider
from tests.redis_server import RedisServer
from tests.serving import Served, explorer_of, publish_keys, serve
from toolkit.contract.hospital import EDGES, Hospital

HOST = "explorer.example.org"
URL = f"https://{HOST}"
CLIENT_ID = "explorer"
SCOPE = "openid PATIENT_GAM_SEARCH"
COOKIE = "__Host-explorer"
AUTHORIZE = f"{provider.ISSUER}authorize"
TOKEN = f"{provider.ISSUER}token"
SETTINGS = {
    "EXPLORER_BIND": "127.0.0.1:8003",
    "EXPLORER_URL": URL,
    "EXPLORER_CLIENT_ID": CLIENT_ID,
}

_NUMBERS = count()
"""Each browser has an address of its own: logins are limited by address."""


class Browser:
    """A person's browser: it keeps cookies, follows no redirect, and sends forms."""

    def __init__(self, app: Flask, provider: responses.RequestsMock) -> None:
        self.app, self.provider = app, provider
        self.http, self.url = Client(app, TestResponse), URL
        self.address = f"10.{next(_NUMBERS)}.0.1"

    def get(self, path: str) -> TestResponse:
        return self._open(path, "GET", headers={"Accept-Language": "en"})

    def post(self, path: str, csrf: str | None = None, **form: Any) -> TestResponse:
        token = self.csrf() if csrf is None else csrf
        data = {"csrf": token, **{k.replace("_", "."): v for k, v in form.items()}}
        return self._open(path, "POST", data=data)

    def _open(self, path: str, method: str, **more: Any) -> TestResponse:
        peer = {"REMOTE_ADDR": self.address}
        more |= {"base_url": self.url, "environ_base": peer, "buffered": True}
        return self.http.open(path, method=method, **more)

    def csrf(self) -> str:
        match = re.search(r'name="csrf" value="(\w+)"', self.get("/").text)
        return match[1] if match else ""

    def cookie(self) -> str:
        cookie = self.http.get_cookie(COOKIE, HOST)
        return cookie.value if cookie else ""

    def steal(self, cookie: str) -> None:
        self.http.set_cookie(COOKIE, cookie, domain=HOST)

    def begin_login(self) -> dict[str, str]:
        """Begin a login; return what the provider receives."""
        response = self.get("/login/start")
        assert response.status_code == 303, response.text
        assert response.headers["Location"].startswith(AUTHORIZE)
        query = parse_qs(urlsplit(response.headers["Location"]).query)
        return {name: values[0] for name, values in query.items()}

    def end_login(
        self,
        begun: dict[str, str],
        name: str = "camille",
        scope: str = SCOPE,
        id_token: str | None = None,
        more: str = "",
        **claims: Any,
    ) -> TestResponse:
        """Come back from the provider, which answers the code with tokens for a person."""
        about = {"sub": name, "name": name.title(), "aud": CLIENT_ID}
        about |= {"nonce": begun["nonce"], **claims}
        body = {
            "access_token": provider.sign(client_id=CLIENT_ID, sub=name, scope=scope),
            "id_token": id_token or provider.sign(**about),
            "token_type": "Bearer",
            "expires_in": 600,
        }
        self.provider.upsert(responses.POST, TOKEN, json=body)
        return self.get(f"/login/done?code=right&state={begun['state']}{more}")

    def log_in(
        self, name: str = "camille", scope: str = SCOPE, **claims: Any
    ) -> TestResponse:
        return self.end_login(self.begin_login(), name, scope, **claims)

    def is_logged_in(self) -> bool:
        return self.get("/").status_code == 200

    def place(self, kind: str = "Encounter", **form: Any) -> str:
        """Search and return the address of the result's table."""
        response = self.post(f"/search/{kind}", **form)
        assert response.status_code == 303, response.text
        return f"{response.headers['Location']}?tab=table"

    def search(self, kind: str = "Encounter", **form: Any) -> str:
        return self.get(self.place(kind, **form)).text

    def follow(self, address: str) -> str:
        response = self.get(html.unescape(address))
        assert response.status_code == 303, response.text
        return self.get(response.headers["Location"]).text


@pytest.fixture
def identity_provider() -> Iterator[responses.RequestsMock]:
    """Publish metadata and keys of an identity provider."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        publish_keys(mock)
        metadata = {
            "issuer": provider.ISSUER,
            "authorization_endpoint": AUTHORIZE,
            "token_endpoint": TOKEN,
            "jwks_uri": provider.KEY_SET_URL,
        }
        mock.get(f"{provider.ISSUER}.well-known/openid-configuration", json=metadata)
        yield mock


@pytest.fixture(scope="module")
def service(
    redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Served:
    """Return a service on the edge-case hospital with an audit file."""
    folder = tmp_path_factory.mktemp("explored")
    audit = {"AUDIT": str(folder / "audit.jsonl"), "AUDIT_KEY": "k" * 32}
    chosen = {**SETTINGS, **audit, "AUDIT_PATIENTS": "clear"}
    return serve(EDGES, folder, redis_server.url, **chosen)


@pytest.fixture
def visitor(service: Served, identity_provider: responses.RequestsMock) -> Browser:
    """Return a browser that is not logged in."""
    return Browser(explorer_of(service), identity_provider)


@pytest.fixture
def camille(visitor: Browser) -> Browser:
    """Return the browser of a person who has logged in."""
    assert visitor.log_in().status_code == 303
    # What is offered is read once: tests count the events of what they do.
    assert visitor.is_logged_in()
    return visitor


@pytest.fixture
def explore(
    tmp_path: Path,
    redis_server: RedisServer,
    identity_provider: responses.RequestsMock,
) -> Callable[..., Browser]:
    """Return a function that serves a hospital with other settings, and logs in."""

    def made(hospital: Hospital = EDGES, **settings: str) -> Browser:
        chosen = {**SETTINGS, **settings}
        served = serve(hospital, tmp_path, redis_server.url, **chosen)
        browser = Browser(explorer_of(served), identity_provider)
        browser.log_in()
        return browser

    return made
