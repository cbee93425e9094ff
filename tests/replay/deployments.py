"""The deployments that are replayed: settings, mapping files, sources."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.fernet import Fernet

from tests.replay import tokens, upstream
from tests.replay.application import PREFIX, make_application
from tests.replay.hospital import fill

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

HOST = "https://encounters.example.org"
BASE_PATH = "/fhir/v3"
MAPPINGS = Path(__file__).parent / "mappings"
WRITTEN_AT = 1_700_000_000
"""When the mapping files were last changed, as the service tells it."""

Environ = dict[str, str]
Redis = Callable[[], str]
"""Returns the address of a Redis."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a deployment stands on: the stub's address, a directory of its own."""

    stub: str
    directory: Path

    def sqlite(self) -> str:
        """Return the address of a filled SQLite database."""
        url = f"sqlite:///{self.directory / 'pas.db'}"
        fill(url)
        return url


@dataclass(frozen=True, slots=True)
class Deployment:
    """A mapping file, where its source is, and what is set otherwise than usual."""

    mapping: str
    source: Callable[[Surroundings], str]
    settings: Mapping[str, str]


def _api(name: str) -> Callable[[Surroundings], str]:
    return lambda around: f"{around.stub}/{name}"


def _made(
    mapping: str, source: Callable[[Surroundings], str], **settings: str
) -> Deployment:
    return Deployment(mapping, source, settings)


_SQLITE = Surroundings.sqlite
_AWAY = "unix:///nonexistent/redis.sock"

DEPLOYMENTS: Mapping[str, Deployment] = {
    "sqlite": _made("sql.yaml", _SQLITE),
    "http": _made("http.yaml", _api(upstream.FULL)),
    "group-a": _made("group-a.yaml", _api(upstream.COARSE)),
    "group-b": _made("group-b.yaml", _SQLITE),
    "limited": _made("sql.yaml", _SQLITE, CLIENT_REQUESTS_PER_MINUTE="2"),
    "strict": _made(
        "sql.yaml",
        _SQLITE,
        OPEN_METADATA="false",
        MAX_BODY_BYTES="1024",
        TRUSTED_PROXIES="10.1.0.0/16",
        PLAIN_HTTP="loopback",
        SCOPES="READER=ENCOUNTER_READ PATIENT_READ",
    ),
    "redis-away": _made("sql.yaml", _SQLITE, REDIS_URL=_AWAY),
    "database-away": _made(
        "sql.yaml", lambda around: f"sqlite:///{around.directory / 'empty.db'}"
    ),
    "http-failing": _made("http.yaml", _api(upstream.FAILING)),
    "http-nonsense": _made("http.yaml", _api(upstream.NONSENSE)),
}


class Running:
    """The deployments of a session, each made when it is first asked for."""

    def __init__(self, redis: Redis, stub: str, directory: Path) -> None:
        self._redis, self._stub, self._directory = redis, stub, directory
        self._seal_key = Fernet.generate_key().decode()
        self._redis_url = ""
        self._made: dict[str, WSGIApplication] = {}

    def application(self, name: str) -> "WSGIApplication":
        """Return the service of a deployment."""
        if name not in self._made:
            self._made[name] = make_application(self._environ(name))
        return self._made[name]

    def _environ(self, name: str) -> Environ:
        deployment = DEPLOYMENTS[name]
        directory = self._directory / name
        directory.mkdir()
        self._redis_url = self._redis_url or self._redis()
        for file in MAPPINGS.iterdir():
            copy = directory / file.name
            copy.write_bytes(file.read_bytes())
            os.utime(copy, (WRITTEN_AT, WRITTEN_AT))
        settings = {
            "BASE_URL": HOST + BASE_PATH,
            "ISSUER": tokens.ISSUER,
            "AUDIENCE": tokens.AUDIENCE,
            "KEY_SET_URL": f"{self._stub}/{upstream.KEYS}",
            "MAPPING": str(directory / deployment.mapping),
            "REDIS_URL": self._redis_url,
            "SEAL_KEYS": self._seal_key,
            "CLIENT_REQUESTS_PER_MINUTE": "off",
            "ADDRESS_REQUESTS_PER_MINUTE": "off",
            **deployment.settings,
        }
        around = Surroundings(self._stub, directory)
        source = {"PAS_URL": deployment.source(around), "PAS_KEY": upstream.KEY}
        return {**{PREFIX + n: text for n, text in settings.items()}, **source}


@contextmanager
def running(redis: Redis, directory: Path) -> Iterator[Running]:
    """Let deployments run for a while, in a directory that is empty."""
    with upstream.serving(tokens.key_set()) as stub:
        yield Running(redis, stub, directory)
