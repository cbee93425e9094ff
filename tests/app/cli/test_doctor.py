"""`encounters doctor`: each fault of a deployment is found and reported, and no secret."""

import json
import socket
from contextlib import contextmanager

import pytest
import requests
import responses

from app.cli import main
from app.cli.doctor import checks_of_deployment, run_at_once
from app.config import Settings
from app.server.checks import Status
from tests.app import provider
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, free_ports
from toolkit.contract.hospital import EDGES

OK, ERROR, WARNING, NOTE = Status.OK, Status.ERROR, Status.WARNING, Status.NOTE
PATIENCE = 60.0
BASE_URL = "https://127.0.0.1:9/fhir/v3"
KEY_SET_URL = "http://127.0.0.1:9/keys"


@pytest.fixture
def deployed(tmp_path, redis_server, monkeypatch):
    """Return a function that sets a deployment up in the environment."""
    Tables(f"sqlite:///{tmp_path / 'pas.db'}", EDGES).close()
    (tmp_path / "pas.db").chmod(0o440)

    def deploy(pas="", **changed):
        text = mapping_text(EDGES).replace(", may_write: true", "")
        # Those of examples are warnings.
        text = text.replace("1.2.250.1.999", "1.2.250.1.71")
        text = text.replace("//example.org", "//hospital.test")
        text = text.replace("source: {", "source: {timeout_seconds: 60, ")
        file = tmp_path / "hospital.yaml"
        file.write_text(text, "utf-8")
        chosen = {
            "BASE_URL": BASE_URL,
            "KEY_SET_URL": KEY_SET_URL,
            "REDIS_URL": redis_server.url,
            "TRUSTED_PROXIES": "127.0.0.1",
            **changed,
        }
        environ = provider.environ(file, **chosen)
        environ["PAS_URL"] = pas or f"sqlite:///{tmp_path / 'pas.db'}"
        for name, given in environ.items():
            monkeypatch.setenv(name, given)
        return Settings.from_environ(environ)

    return deploy


@contextmanager
def published():
    """Let the service and the provider answer."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        mock.get(KEY_SET_URL, json=provider.key_set(provider.rsa()))
        mock.get(f"{BASE_URL}/metadata", json={})
        yield mock


def results_of(settings, name):
    """Run one check."""
    checks = [c for c in checks_of_deployment(settings) if c.name == name]
    (ended,) = run_at_once(checks, PATIENCE)
    return ended.results


def wrong(settings, name):
    """Return errors and warnings of one check; each says what to do."""
    results = [result for result in results_of(settings, name) if result.is_wrong]
    assert all(result.remedy for result in results)
    return [(r.status, r.detail or r.text) for r in results]


def test_where_all_is_well_it_says_so(deployed, monkeypatch, capsys):
    deployed()
    with published():
        status = main(["doctor", "--seconds", f"{PATIENCE}"])
    text = capsys.readouterr().out
    assert status == 0, text
    subjects = {line.split("  ")[0] for line in text.splitlines() if line[0] != " "}
    wanted = "settings,public address,mapping,source,redis,counts,identity"
    assert subjects == set(wanted.split(","))
    assert "error" not in text
    assert "warning" not in text

    # Invalid settings are reported, and nothing is checked.
    monkeypatch.setenv("ENCOUNTERS_WORKERS", "0")
    assert main(["doctor"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("ENCOUNTERS_WORKERS cannot be read")


def test_one_that_hangs_stops_no_other_and_no_secret_is_printed(deployed, capsys):
    with socket.create_server((HOST, 0)) as mute:
        port = mute.getsockname()[1]
        deployed(
            pas=f"postgresql://canary-user:canary-word@{HOST}:{port}/canary-name",
            REDIS_URL=f"redis://:canary-redis@{HOST}:{free_ports()}/0",
        )
        # On a busy machine another check may be late once.
        for seconds in ("2.5", "20"):
            with published():
                status = main(["doctor", "--seconds", seconds, "--json"])
            text = capsys.readouterr().out
            if text.count("did not finish") == 1:
                break
    assert status == 1
    found = {each["check"]: each["results"] for each in json.loads(text)["checks"]}
    assert set(found["redis"][0]) == {"text", "severity", "remedy"}
    assert found["source"][-1]["severity"] == "error"
    assert "did not finish" in found["source"][-1]["text"]
    assert found["redis"][0]["severity"] == "error"
    assert found["identity"][0]["severity"] == "ok"
    assert "canary" not in text
    assert f"{port}" not in text


def test_redis_that_is_stopped_or_would_lose_or_refuse_pages(deployed, own_redis):
    settings = deployed(REDIS_URL=own_redis.url)

    def first():
        (severity, text), *_ = wrong(settings, "redis")
        return severity, text

    def refused(error):
        severity, text = first()
        return severity is ERROR and text.startswith(f"stores no pages ({error})")

    with own_redis.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        assert wrong(settings, "redis") == []
        client.config_set("maxmemory", "100mb")
        severity, text = first()
        assert severity is WARNING
        assert "(allkeys-lru)" in text
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", "1")
        assert refused("OutOfMemoryError")
        client.config_set("maxmemory", "0")
        client.replicaof(HOST, "9")
        assert refused("ReadOnlyError")
        client.replicaof("NO", "ONE")
    own_redis.stop()
    assert refused("ConnectionError")
    port = free_ports(2)
    url = f"redis+sentinel://:canary@{HOST}:{port},{HOST}:{port + 1}/pages"
    (severity, text), *sentinels = wrong(deployed(REDIS_URL=url), "redis")
    assert severity is ERROR
    assert "(MasterNotFoundError)" in text
    assert [severity for severity, _ in sentinels] == [WARNING, WARNING]


def test_a_token_is_explained_and_not_printed(deployed, tmp_path, capsys):
    deployed(SCOPE_CLAIMS="realm_access.roles", CLIENT_CLAIMS="app.id")
    file = tmp_path / "token"

    def explained(token):
        file.write_text(f"{token}\n")
        with published():
            status = main(["doctor", "--token", str(file)])
        text = capsys.readouterr().out
        # Neither the token nor a part of it.
        assert not any(part in text for part in token.split("."))
        return status, text

    claims = {
        "app": {"id": "app-7"},
        "sub": "camille",
        "realm_access": {"roles": ["ENCOUNTER_READ", "Role-9\x1b"]},
    }
    status, text = explained(provider.sign(**claims))
    assert status == 0
    for shown in ("app-7/camille", "ENCOUNTER_READ", "Role-9", provider.ISSUER):
        assert shown in text
    assert "\x1b" not in text
    for changed, shown in (
        ({"aud": "other-audience"}, "other-audience"),
        ({"exp": 1_000_000_000}, "expired"),
        ({"app": None}, "ENCOUNTERS_CLIENT_CLAIMS"),
        ({"realm_access": None}, "ENCOUNTERS_SCOPE_CLAIMS"),
    ):
        status, text = explained(provider.sign(**claims | changed))
        assert (status, shown in text) == (1, True), text
    stranger = provider.sign(provider.rsa("stranger"), **claims)
    for token in (stranger, "qqqq.qqqq.qqqq", "x" * 9000):
        status, text = explained(token)
        assert (status, "401" in text) == (1, True)
    assert main(["doctor", "--token", str(tmp_path / "none")]) == 2


ACCOUNT = {"INTROSPECTION_CLIENT_ID": "us", "INTROSPECTION_CLIENT_SECRET": "hush"}
INTROSPECTION_URL = f"http://{HOST}:9/introspect"
ADDRESSES = {
    "public address": ("GET", f"{BASE_URL}/metadata"),
    "introspection": ("POST", INTROSPECTION_URL),
    "identity": ("GET", KEY_SET_URL),
}
ANSWERS = [
    ("public address", {"status": 200}, OK, ""),
    ("public address", {"status": 400}, NOTE, ""),
    ("public address", {"status": 403}, ERROR, "(403)"),
    ("public address", {"body": requests.exceptions.SSLError()}, NOTE, "certificate"),
    ("introspection", {"json": {"active": False}}, OK, "rejects an invented token"),
    ("introspection", {"json": {"active": True}}, ERROR, "accepts an invented token"),
    ("introspection", {"status": 401}, ERROR, "(status 401)"),
    ("identity", {"status": 500}, ERROR, ""),
]


def test_what_the_proxy_and_the_provider_answer(deployed):
    settings = deployed(INTROSPECTION_URL=INTROSPECTION_URL, **ACCOUNT)
    for name, answer, severity, text in ANSWERS:
        with responses.RequestsMock() as mock:
            mock.add(*ADDRESSES[name], **answer)
            result, *_ = results_of(settings, name)
        assert (result.status, text in result.text) == (severity, True), result
        assert result.remedy or severity is not ERROR


def test_settings_and_a_mapping_that_cannot_serve(deployed):
    exposed = "postgresql://us:hunter2@127.0.0.1:9/pas?hostaddr=0.0.0.0"
    for name, changed, severity, text in (
        ("settings", {"TRUSTED_PROXIES": ""}, ERROR, "403"),
        ("settings", {"PLAIN_HTTP": "loopback"}, WARNING, "ENCOUNTERS_PLAIN_HTTP"),
        ("source", {"pas": exposed}, ERROR, "TLS"),
        ("source", {"pas": exposed, "UNVERIFIED_TLS": "database"}, WARNING, "TLS"),
    ):
        results = wrong(deployed(**changed), name)
        assert [status for status, said in results if text in said] == [severity]
        assert "hunter2" not in str(results)
    settings = deployed()
    text = settings.mapping.read_text("utf-8")
    settings.mapping.write_text(text.replace("profile: full", "profile: ful"), "utf-8")
    ((severity, text), *_) = wrong(settings, "mapping")
    assert severity is ERROR
    assert "'ful' is not a profile" in text


def test_files_that_all_may_read_or_nobody_can_write(deployed, tmp_path, monkeypatch):
    secret, audit = tmp_path / "secret", tmp_path / "audit.jsonl"
    secret.write_text(f"sqlite:///{tmp_path / 'pas.db'}")
    audit.symlink_to(tmp_path / "gone" / "audit.jsonl")
    settings = deployed(AUDIT=str(audit), AUDIT_KEY="k" * 32)
    ((severity, text),) = wrong(settings, "audit")
    assert severity is ERROR
    assert "(No such file or directory)" in text
    monkeypatch.delenv("PAS_URL")
    monkeypatch.setenv("PAS_URL_FILE", str(secret))
    monkeypatch.setenv("ENCOUNTERS_SEAL_KEYS_FILE", str(secret))
    for mode, expected in ((0o644, [WARNING]), (0o400, [])):
        secret.chmod(mode)
        for check in ("settings", "mapping"):
            assert [severity for severity, _ in wrong(settings, check)] == expected
