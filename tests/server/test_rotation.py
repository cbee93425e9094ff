"""Every secret is replaced by the steps of docs/security/keys.md, beside a service that runs.

Of each: clients go on, the old secret is no longer needed, and what it protected can be read.
"""

import shutil
import signal
import subprocess
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from werkzeug.wrappers import Response

from adapters.testing.hospital import EDGES
from app.cli import main
from tests.app import provider
from tests.docs.pages import blocks
from tests.hospital_http import answer, serving
from tests.hospital_sql import Tables
from tests.live import ROOT
from tests.redis_server import RedisServer
from tests.server.running import Running, edges, running

PAGE = (ROOT / "docs/security/keys.md").read_text("utf-8")
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

    def reload(self) -> None:
        """Reload the service, as `systemctl reload` does."""
        before = self.service.workers()
        self.service.process.send_signal(signal.SIGHUP)
        self.service.until(lambda: not any(each.is_running() for each in before))
        self.service.until(lambda: self.service.operations("/live").status == 200)

    def first_page(self) -> Any:
        """Search, and return the first of several pages."""
        return self.service.page("Encounter?_count=2").json

    def follow(self, page: Any, relation: str = "next") -> Any:
        """Follow a link; return the answer."""
        (url,) = [e["url"] for e in page["link"] if e["relation"] == relation]
        return self.service.page(url)


@contextmanager
def deployed(directory: Path, redis: RedisServer) -> Iterator[Deployed]:
    """Serve the hospital of edge cases with every secret in a file."""
    mapping = edges(directory)
    url = f"sqlite:///{directory / 'pas.db'}"
    text = mapping.read_text("utf-8")
    mapping.write_text(text.replace(url, "{env: PAS_URL}"), "utf-8")
    introspection = Provider({"o" * 32})
    secrets = {
        "SEAL_KEYS": Fernet.generate_key().decode(),
        "AUDIT_KEY": "o" * 44,
        "AUDIT_CHAIN_KEY": "p" * 44,
        "REDIS_URL": redis.url,
        "INTROSPECTION_CLIENT_SECRET": "o" * 32,
    }
    files = {name: directory / name.lower() for name in secrets}
    settings: dict[str, Any] = {f"{name}_FILE": str(f) for name, f in files.items()}
    for name, file in files.items():
        file.write_text(secrets[name], "utf-8")
    (directory / "pas_url").write_text(url, "utf-8")
    with serving(introspection) as address:
        settings |= {
            "SEAL_KEYS": None,
            "REDIS_URL": None,
            "INTROSPECTION_URL": f"{address}/introspect",
            "INTROSPECTION_CLIENT_ID": "encounters",
            "AUDIT": str(directory / "audit.jsonl"),
            "STATE_DIRECTORY": str(directory / "state"),
        }
        environ = {"PAS_URL_FILE": str(directory / "pas_url")}
        with running(directory, mapping, environ, **settings) as service:
            yield Deployed(service, directory, redis, introspection)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployed]:
    redis = RedisServer()
    redis.start()
    with deployed(tmp_path, redis) as started:
        yield started
    redis.remove()


@pytest.fixture
def audit(
    deployment: Deployed,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., tuple[int, str]]:
    """Return a function that runs `encounters audit` with the present keys."""

    def run(*arguments: str) -> tuple[int, str]:
        for name in ("AUDIT_KEY", "AUDIT_CHAIN_KEY"):
            file = deployment.directory / name.lower()
            monkeypatch.setenv(f"ENCOUNTERS_{name}_FILE", str(file))
        status = main(["audit", *arguments, str(deployment.directory / "audit.jsonl")])
        return status, capsys.readouterr().out

    return run


def test_page_keys(deployment: Deployed) -> None:
    old = (deployment.directory / "seal_keys").read_text("utf-8").strip()
    new = Fernet.generate_key().decode()
    first = deployment.first_page()
    deployment.put("seal_keys", f"{old} {new}")
    deployment.reload()
    second = deployment.follow(first).json
    deployment.put("seal_keys", f"{new} {old}")
    deployment.reload()
    third = deployment.follow(second).json
    fourth = deployment.follow(third).json
    deployment.put("seal_keys", new)
    deployment.reload()
    assert deployment.follow(fourth, "self").status == 200
    assert deployment.follow(fourth, "previous").status == 200
    assert deployment.follow(first).status == 404


def test_the_key_of_the_audit(
    deployment: Deployed, audit: Callable[..., tuple[int, str]]
) -> None:
    assert deployment.service.get("Patient/1").status == 200
    key = deployment.directory / "audit_key"
    shutil.copy(key, key.with_suffix(".old"))
    deployment.put("audit_key", "n" * 44)
    deployment.reload()
    assert deployment.service.get("Patient/1").status == 200
    old = str(key.with_suffix(".old"))
    status, table = audit("who", "Patient/1", "--key", old)
    assert (status, table.count("read")) == (0, 2)
    status, table = audit("who", "Patient/1")
    assert (status, table.count("read")) == (1, 1)


def test_the_key_of_the_chain(
    deployment: Deployed, audit: Callable[..., tuple[int, str]]
) -> None:
    assert deployment.service.get("Patient/1").status == 200
    key = deployment.directory / "audit_chain_key"
    shutil.copy(key, key.with_suffix(".old"))
    deployment.put("audit_chain_key", "n" * 44)
    deployment.reload()
    assert deployment.service.get("Patient/1").status == 200
    assert audit("verify", "--key", str(key.with_suffix(".old")))[0] == 0
    assert audit("verify")[0] == 1


def test_the_address_of_the_database(deployment: Deployed) -> None:
    """Another file stands for another account: SQLite has none."""
    assert deployment.service.get("Patient/1").status == 200
    other = deployment.directory / "other.db"
    Tables(f"sqlite:///{other}", replace(EDGES, stays=())).close()
    deployment.put("pas_url", f"sqlite:///{other}")
    deployment.reload()
    (deployment.directory / "pas.db").unlink()
    assert deployment.service.get("Patient/1").status == 200
    assert deployment.service.page("Encounter?_count=1").json["total"] == 0


def test_the_secret_of_the_introspection(deployment: Deployed) -> None:
    assert deployment.service.get("Patient/1", OPAQUE).status == 200
    deployment.introspection.secrets.add("n" * 32)
    deployment.put("introspection_client_secret", "n" * 32)
    deployment.reload()
    deployment.introspection.secrets.remove("o" * 32)
    assert deployment.service.get("Patient/1", OPAQUE).status == 200


def test_the_password_of_redis(deployment: Deployed) -> None:
    with deployment.redis.client() as redis:
        redis.execute_command("ACL", "SETUSER", "encounters", "on", ">old", *RIGHTS)
        account = f"{deployment.redis.url}?username=encounters&password="
        deployment.put("redis_url", f"{account}old")
        deployment.reload()
        first = deployment.first_page()
        redis.execute_command("ACL", "SETUSER", "encounters", ">new")
        deployment.put("redis_url", f"{account}new")
        deployment.reload()
        redis.execute_command("ACL", "SETUSER", "encounters", "<old")
        assert deployment.follow(first).status == 200
        assert "encounters" in {each["user"] for each in redis.client_list()}
