"""The deployments that are replayed: one hospital with other settings and sources."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from flask import Flask
from werkzeug import Response
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from tests.app import provider
from tests.hospital_http import Api, answer, serving
from tests.hospital_http_mapping import http_mapping_text
from tests.hospital_sql import mapping_text
from tests.serving import serve
from toolkit.contract.hospital import EDGES


@dataclass(frozen=True, slots=True)
class Deployment:
    """Where the rows come from, a profile, and what is set otherwise than usual."""

    source: str = "sqlite"
    profile: str = "full"
    settings: Mapping[str, str] = field(default_factory=dict)


DEPLOYMENTS: Mapping[str, Deployment] = {
    "sqlite": Deployment(),
    "http": Deployment("http"),
    "group-a": Deployment("http", "group-a"),
    "group-b": Deployment(profile="group-b"),
    "limited": Deployment(settings={"CLIENT_REQUESTS_PER_MINUTE": "1"}),
    "strict": Deployment(
        settings={
            "MAX_BODY_BYTES": "1024",
            "TRUSTED_PROXIES": "10.1.0.0/16",
            "PLAIN_HTTP": "loopback",
            "SCOPES": "READER=ENCOUNTER_READ ENCOUNTER_SEARCH",
        }
    ),
    "redis-away": Deployment(settings={"REDIS_URL": "unix:///nonexistent/redis.sock"}),
    "database-away": Deployment("away"),
    "http-failing": Deployment("failing"),
    "http-nonsense": Deployment("nonsense"),
}


class Running:
    """The deployments of a session, each made when it is first asked for."""

    def __init__(self, redis_url: str, upstream: str, directory: Path) -> None:
        self._redis_url, self._upstream = redis_url, upstream
        self._directory = directory
        self._made: dict[str, Flask] = {}

    def application(self, name: str) -> Flask:
        """Return the service of a deployment."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Flask:
        deployment, directory = DEPLOYMENTS[name], self._directory / name
        directory.mkdir()
        mapping = None
        if deployment.source == "away":
            mapping = mapping_text(EDGES, f"sqlite:///{directory / 'none.db'}")
        elif deployment.source != "sqlite":
            url = f"{self._upstream}/{deployment.source}"
            mapping = http_mapping_text(EDGES).replace("{env: PAS_URL}", url)
        settings = {
            "KEY_SET_URL": f"{self._upstream}/keys",
            "CLIENT_REQUESTS_PER_MINUTE": "off",
            "ADDRESS_REQUESTS_PER_MINUTE": "off",
            **deployment.settings,
        }
        served = serve(
            EDGES,
            directory,
            self._redis_url,
            mapping=mapping,
            profile=deployment.profile,
            **settings,
        )
        return served.app


@contextmanager
def running(redis_url: str, directory: Path) -> Iterator[Running]:
    """Let deployments run for a while, in a directory that is empty."""
    upstream = {
        "/keys": answer(provider.key_set(provider.rsa())),
        "/http": Api(EDGES),
        "/failing": answer({"erreur": {"code": "PANNE"}}, 500),
        "/nonsense": Response("<html>", mimetype="text/html"),
    }
    with serving(DispatcherMiddleware(Response(status=404), upstream)) as url:
        yield Running(redis_url, url, directory)
