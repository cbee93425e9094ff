"""Every secret is replaced by the steps of docs/run/security/keys.md while the service runs."""

import shutil
import subprocess
from base64 import b64encode
from typing import Any

import pytest
from cryptography.fernet import Fernet
from werkzeug.wrappers import Response

from app.cli import main
from tests.app import provider
from tests.app.server.running import edges, running
from tests.docs.pages import blocks
from tests.hospital_http import answer, serving
from tests.live import ROOT

pytestmark = pytest.mark.system

REPLACE = next(blocks((ROOT / "docs/run/security/keys.md").read_text("utf-8"), "sh"))
OPAQUE = "an-opaque-token"
RIGHTS = ("~*", "+@read", "+@write", "+@scripting", "+@connection", "+select")
OLD, NEW = "o" * 44, "n" * 44


def replace(file, text):
    """Replace the file of a secret, with the function of the page."""
    script = f"{REPLACE.text}\nreplace {file.name}"
    subprocess.run(
        ["bash", "-euc", script], cwd=file.parent, input=text, text=True, check=True
    )


def test_every_secret_is_replaced(tmp_path, own_redis, monkeypatch, capsys):
    """Clients go on, old secrets are not needed, and what they protected can be read."""
    accepted = {OLD}

    def introspection(environ, start_response):
        basic = {b64encode(f"encounters:{each}".encode()).decode() for each in accepted}
        if environ.get("HTTP_AUTHORIZATION", "").removeprefix("Basic ") not in basic:
            return Response(status=401)(environ, start_response)
        claims = {"active": True, **provider.claims()}
        return answer(claims)(environ, start_response)

    def disclosures(*options):
        monkeypatch.setenv("ENCOUNTERS_AUDIT_KEY", files["AUDIT_KEY"].read_text())
        status = main(["audit", "who", "Patient/1", *options, str(events)])
        return status, capsys.readouterr().out.count("read")

    redis = own_redis.client()
    redis.execute_command("ACL", "SETUSER", "encounters", "on", ">old", *RIGHTS)
    account = f"{own_redis.url}?username=encounters&password="
    mapping, events = edges(tmp_path), tmp_path / "audit.jsonl"
    database = tmp_path / "pas.db"
    text = mapping.read_text("utf-8")
    mapping.write_text(text.replace(f"sqlite:///{database}", "{env: PAS_URL}"), "utf-8")
    seals = [Fernet.generate_key().decode() for _ in range(2)]
    secrets = {
        "SEAL_KEYS": seals[0],
        "AUDIT_KEY": OLD,
        "REDIS_URL": f"{account}old",
        "INTROSPECTION_CLIENT_SECRET": OLD,
        "PAS_URL": f"sqlite:///{database}",
    }
    files = {name: tmp_path / name.lower() for name in secrets}
    for name, secret in secrets.items():
        files[name].write_text(secret)
    settings: dict[str, Any] = {f"{n}_FILE": str(file) for n, file in files.items()}
    environ = {"PAS_URL_FILE": settings.pop("PAS_URL_FILE")}
    settings |= {"SEAL_KEYS": None, "REDIS_URL": None, "AUDIT": str(events)}
    with serving(introspection) as address:
        settings["INTROSPECTION_URL"] = f"{address}/introspect"
        settings["INTROSPECTION_CLIENT_ID"] = "encounters"
        with running(tmp_path, mapping, environ, **settings) as service:

            def follow(page, relation):
                (url,) = [e["url"] for e in page["link"] if e["relation"] == relation]
                return service.page(url)

            first = service.page("Encounter?_count=2").json
            assert service.get("Patient/1", OPAQUE).status == 200

            # Both secrets of each are valid for a while.
            accepted.add(NEW)
            redis.execute_command("ACL", "SETUSER", "encounters", ">new")
            replace(files["SEAL_KEYS"], " ".join(seals))
            old_key = shutil.copy(files["AUDIT_KEY"], tmp_path / "audit_key.old")
            replace(files["AUDIT_KEY"], NEW)
            replace(files["REDIS_URL"], f"{account}new")
            replace(files["INTROSPECTION_CLIENT_SECRET"], NEW)
            service.reload()
            accepted.remove(OLD)
            redis.execute_command("ACL", "SETUSER", "encounters", "<old")
            assert service.get("Patient/1", OPAQUE).status == 200
            second = follow(first, "next").json
            assert disclosures() == (1, 1)
            assert disclosures("--key", str(old_key)) == (0, 2)

            replace(files["SEAL_KEYS"], " ".join(seals[::-1]))
            service.reload()
            third = follow(second, "next").json
            fourth = follow(third, "next").json

            replace(files["SEAL_KEYS"], seals[1])
            service.reload()
            assert follow(fourth, "self").status == 200
            assert follow(first, "next").status == 404

            # Another file stands for another account: SQLite has none.
            other = shutil.copy(database, tmp_path / "other.db")
            replace(files["PAS_URL"], f"sqlite:///{other}")
            service.reload()
            database.unlink()
            assert service.get("Patient/1").status == 200
    redis.close()
