"""Every secret is replaced by the steps of docs/run/security/keys.md, beside a service that runs.

Of each: clients go on, the old secret is no longer needed, and what it protected can be read.
"""

import shutil
import subprocess
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from werkzeug.wrappers import Response

from app.cli import main
from tests.app import provider
from tests.app.server.running import Running, edges, running
from tests.docs.pages import blocks
from tests.hospital_http import answer, serving
from tests.hospital_sql import Tables
from tests.live import ROOT
from tests.redis_server import RedisServer
from toolkit.contract.hospital import EDGES

pytestmark = pytest.mark.system

PAGE = (ROOT / "docs/run/security/keys.md").read_text("utf-8")
REPLACE = next(blocks(PAGE, "sh")).text
OPAQUE = "an-opaque-token"
RIGHTS = ("~*", "+@read", "+@write", "+@scripting", "+@connection", "+select")


@dataclass
class Provider:
    """An introspection that accepts some secrets of the service."""

    secrets: set[str]

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        given = environ.get("HTTP_AUTHORIZATION", "")
        if given not in {f"Basic {_basic(secret)}" for secret in self.secrets}:
            return Response(status=401)(environ, start_response)
        return answer({"active": True, **provider.claims()})(environ, start_response)


def _basic(secret: str) -> str:
    return b64encode(f"encounters:{secret}".encode()).decode()


@dataclass
class Deployed:
    """A service whose secrets are all in files, and those files."""

    service: Running
    directory: Path
    redis: RedisServer
    introspection: Provider

    def put(self, name: str, text: str) -> None:
        """Replace the file of a secret, with the function of the page."""
        done = subprocess.run(
            ["bash", "-euc", f"{REPLACE}\nreplace {name}"],
            cwd=self.directory,
            input=f"{text}\n",
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0

    def first_page(self) -> Any:
        """Search, and return the first of several pages."""
        return self.service.page("Encounter?_count=2").json

    def follow(self, page: Any, relation: str = "next") -> Any:
        """Follow a link; return the answer."""
        (url,) = [e["url"] for e in page["link"] if e["relation"] == relation]
        return self.service.page(url)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Serve the hospital of edge cases, for all rotations, with every secret in a file."""
    directory, redis = tmp_path_factory.mktemp("deployed"), RedisServer()
    redis.start()
    mapping, url = edges(directory), f"sqlite:///{directory / 'pas.db'}"
    text = mapping.read_text("utf-8")
    mapping.write_text(text.replace(url, "{env: PAS_URL}"), "utf-8")
    introspection = Provider({"o" * 32})
    secrets = {
        "SEAL_KEYS": Fernet.generate_key().decode(),
        "AUDIT_KEY": "o" * 44,
        "REDIS_URL": redis.url,
        "INTROSPECTION_CLIENT_SECRET": "o" * 32,
        "PAS_URL": url,
    }
    files = {name: directory / name.lower() for name in secrets}
    for name, file in files.items():
        file.write_text(secrets[name], "utf-8")
    environ = {"PAS_URL_FILE": str(files.pop("PAS_URL"))}
    settings: dict[str, Any] = {f"{name}_FILE": str(f) for name, f in files.items()}
    with serving(introspection) as address:
        settings |= {
            "SEAL_KEYS": None,
            "REDIS_URL": None,
            "INTROSPECTION_URL": f"{address}/introspect",
            "INTROSPECTION_CLIENT_ID": "encounters",
            "AUDIT": str(directory / "audit.jsonl"),
        }
        with running(directory, mapping, environ, **settings) as service:
            yield Deployed(service, directory, redis, introspection)
    redis.remove()


@pytest.fixture
def audit(
    deployment: Deployed,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., tuple[int, str]]:
    """Return a function that runs `encounters audit` with the present key."""

    def run(*arguments: str) -> tuple[int, str]:
        file = deployment.directory / "audit_key"
        monkeypatch.setenv("ENCOUNTERS_AUDIT_KEY_FILE", str(file))
        status = main(["audit", *arguments, str(deployment.directory / "audit.jsonl")])
        return status, capsys.readouterr().out

    return run


def test_page_keys(deployment: Deployed) -> None:
    old = (deployment.directory / "seal_keys").read_text("utf-8").strip()
    new = Fernet.generate_key().decode()
    first = deployment.first_page()
    deployment.put("seal_keys", f"{old} {new}")
    deployment.service.reload()
    second = deployment.follow(first).json
    deployment.put("seal_keys", f"{new} {old}")
    deployment.service.reload()
    third = deployment.follow(second).json
    fourth = deployment.follow(third).json
    deployment.put("seal_keys", new)
    deployment.service.reload()
    assert deployment.follow(fourth, "self").status == 200
    assert deployment.follow(fourth, "previous").status == 200
    assert deployment.follow(first).status == 404


def rotated(deployment: Deployed, name: str) -> str:
    """Read a patient with the old key and with a new one; return the file of the old."""
    assert deployment.service.get("Patient/1").status == 200
    key = deployment.directory / name
    shutil.copy(key, key.with_suffix(".old"))
    deployment.put(name, "n" * 44)
    deployment.service.reload()
    assert deployment.service.get("Patient/1").status == 200
    return str(key.with_suffix(".old"))


def test_the_key_of_the_audit(
    deployment: Deployed, audit: Callable[..., tuple[int, str]]
) -> None:
    _, before = audit("who", "Patient/1")
    old = rotated(deployment, "audit_key")
    status, table = audit("who", "Patient/1", "--key", old)
    assert (status, table.count("read")) == (0, before.count("read") + 2)
    status, table = audit("who", "Patient/1")
    assert (status, table.count("read")) == (1, 1)


def test_the_address_of_the_database(deployment: Deployed) -> None:
    """Another file stands for another account: SQLite has none."""
    first, other = (deployment.directory / f"{name}.db" for name in ("pas", "other"))
    Tables(f"sqlite:///{other}", replace(EDGES, stays=())).close()
    deployment.put("pas_url", f"sqlite:///{other}")
    deployment.service.reload()
    away = first.rename(first.with_suffix(".away"))
    assert deployment.service.get("Patient/1").status == 200
    assert deployment.service.page("Encounter?_count=1").json["total"] == 0
    away.rename(first)
    deployment.put("pas_url", f"sqlite:///{first}")
    deployment.service.reload()


def test_the_secret_of_the_introspection(deployment: Deployed) -> None:
    assert deployment.service.get("Patient/1", OPAQUE).status == 200
    deployment.introspection.secrets.add("n" * 32)
    deployment.put("introspection_client_secret", "n" * 32)
    deployment.service.reload()
    deployment.introspection.secrets.remove("o" * 32)
    assert deployment.service.get("Patient/1", OPAQUE).status == 200


def test_the_password_of_redis(deployment: Deployed) -> None:
    with deployment.redis.client() as redis:
        redis.execute_command("ACL", "SETUSER", "encounters", "on", ">old", *RIGHTS)
        account = f"{deployment.redis.url}?username=encounters&password="
        deployment.put("redis_url", f"{account}old")
        deployment.service.reload()
        first = deployment.first_page()
        redis.execute_command("ACL", "SETUSER", "encounters", ">new")
        deployment.put("redis_url", f"{account}new")
        deployment.service.reload()
        redis.execute_command("ACL", "SETUSER", "encounters", "<old")
        assert deployment.follow(first).status == 200
        assert "encounters" in {each["user"] for each in redis.client_list()}
