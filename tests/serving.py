"""A whole service for tests: mapping file, database, Redis, signed tokens, Flask client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import responses
from flask import Flask
from werkzeug.test import TestResponse

from adapters.contract import Adapter
from app import create_app
from app.config import Settings
from explorer.explorer import create_explorer
from tests.app import provider
from tests.hospital_sql import Tables, mapping_text
from tests.validity.client import ValidatingClient
from toolkit.contract.hospital import Hospital

HOST = "https://encounters.example.org"
BASE_URL = f"{HOST}/fhir/v3"
FORM = "application/x-www-form-urlencoded"

Params = Mapping[str, str] | Sequence[tuple[str, str]]


def explorer_of(served: "Served") -> Flask:
    """Return the explorer of a service."""
    settings: Settings = served.app.extensions["encounters"].settings
    return create_explorer(served.app, settings)


@dataclass
class Served:
    """A client of a service: searches and reads as itself, each answer held to the spec."""

    app: Flask
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.app.test_client_class = ValidatingClient
        self.http = self.app.test_client()

    def as_client(self, name: str, scope: str = provider.SCOPE) -> "Served":
        """Return the same service, asked by another client."""
        token = provider.sign(client_id=name, scope=scope)
        return Served(self.app, {"Authorization": provider.bearer(token)})

    def send(self, method: str, path: str, **sent: Any) -> TestResponse:
        """Send anything to a path below the base; `headers` are added to the token."""
        headers = {**self.headers, **sent.pop("headers", {})}
        address = f"/fhir/v3/{path.removeprefix(BASE_URL).lstrip('/')}"
        sent = {"base_url": HOST, **sent}
        return self.http.open(address, method=method, headers=headers, **sent)

    def get(self, path: str, **headers: str) -> TestResponse:
        """GET a path below the base, or a link that starts with the base."""
        return self.send("GET", path, headers=_named(headers))

    def post(self, path: str, params: Params, **headers: str) -> TestResponse:
        """POST a form to a path below the base."""
        form = {"data": urlencode(params), "content_type": FORM}
        return self.send("POST", path, headers=_named(headers), **form)

    def search(self, resource_type: str, params: Params = (), **headers: str) -> Any:
        """Search by POST and return the Bundle."""
        response = self.post(f"{resource_type}/_search", params, **headers)
        assert response.status_code == 200, response.get_json(force=True)
        return response.get_json(force=True)

    def follow(self, bundle: Any, relation: str) -> Any:
        """Follow a link of a Bundle and return the page it leads to."""
        response = self.get(link(bundle, relation))
        assert response.status_code == 200, response.get_json(force=True)
        return response.get_json(force=True)


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): text for name, text in headers.items()}


def link(bundle: Any, relation: str) -> str:
    """Return the address of a link of a Bundle."""
    (url,) = [each["url"] for each in bundle["link"] if each["relation"] == relation]
    return str(url)


def relations(bundle: Any) -> list[str]:
    """Return the relations of a Bundle's links."""
    return [each["relation"] for each in bundle["link"]]


def ids(bundle: Any) -> list[str]:
    """Return the ids of the matches of a Bundle."""
    return [
        each["resource"]["id"]
        for each in bundle.get("entry", ())
        if each["search"]["mode"] == "match"
    ]


def issues(bundle: Any) -> list[Any]:
    """Return the messages in a Bundle, besides its matches."""
    return [
        issue
        for each in bundle.get("entry", ())
        if each["search"]["mode"] == "outcome"
        for issue in each["resource"]["issue"]
    ]


def serve(
    hospital: Hospital,
    directory: Path,
    redis_url: str,
    *edits: tuple[str, str],
    mapping: str | None = None,
    adapter: Adapter | None = None,
    profile: str = "full",
    **settings: str | None,
) -> Served:
    """Return a service on a hospital of the test's in SQLite, asked by client-1.

    `edits` are texts of the mapping and what replaces them, `settings` those of
    `provider.environ`.
    """
    url = f"sqlite:///{directory / 'pas.db'}"
    Tables(url, hospital).close()
    text = mapping or mapping_text(hospital, url)
    if profile != "full":
        edits = (*edits, ("profile: full", f"profile: {profile}"))
    for old, new in edits:
        assert text.count(old) == 1, f"{text.count(old)} times: {old}"
        text = text.replace(old, new)
    file = directory / "mapping.yaml"
    file.write_text(text, "utf-8")
    chosen = {"REDIS_URL": redis_url, "BASE_URL": BASE_URL, **settings}
    app = create_app(provider.settings(file, **chosen), adapter)
    app.testing = False
    return Served(app).as_client("client-1")


def publish_keys(mock: responses.RequestsMock) -> None:
    """Let the identity provider answer."""
    provider.publish(mock, provider.rsa())
