"""`encounters doctor`: each fault of a deployment is found and reported, and no secret."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import requests
import responses

from app.cli import main
from app.cli.doctor import checks_of_deployment, run_at_once
from app.config import Settings
from app.server.checks import CheckResult, Status
from tests.app import provider
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, free_ports
from toolkit.contract.hospital import EDGES

OK, ERROR, WARNING, NOTE = Status.OK, Status.ERROR, Status.WARNING, Status.NOTE
PATIENCE = 60.0
BASE_URL = "https://127.0.0.1:9/fhir/v3"
KEY_SET_URL = "http://127.0.0.1:9/keys"

Deployed = Callable[..., Settings]


@pytest.fixture
def deployed(tmp_path, redis_server, monkeypatch):
    """Return a function that sets a deployment up in the environment."""
    Tables(f"sqlite:///{tmp_path / 'pas.db'}", EDGES).close()
    (tmp_path / "pas.db").chmod(0o440)

    def deploy(pas: str = "", **changed: str) -> Settings:
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
def published() -> Iterator[responses.RequestsMock]:
    """Let the service and the provider answer."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        mock.get(KEY_SET_URL, json=provider.key_set(provider.rsa()))
        mock.get(f"{BASE_URL}/metadata", json={})
        yield mock


def results_of(settings: Settings, name: str) -> list[CheckResult]:
    """Run one check."""
    checks = [c for c in checks_of_deployment(settings) if c.name == name]
    (ended,) = run_at_once(checks, PATIENCE)
    return ended.results


def of(settings: Settings, name: str) -> list[tuple[Status, str]]:
    """Return errors and warnings of one check; each says what to do."""
    wrong = [result for result in results_of(settings, name) if result.is_wrong]
    assert all(result.remedy for result in wrong)
    return [(r.status, r.detail or r.text) for r in wrong]


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

    def found() -> tuple[Status, str]:
        (severity, text), *_ = of(settings, "redis")
        return severity, text

    def refused(error: str) -> bool:
        severity, text = found()
        return severity is ERROR and text.startswith(f"stores no pages ({error})")

    with own_redis.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        assert of(settings, "redis") == []
        client.config_set("maxmemory", "100mb")
        severity, text = found()
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
    first = free_ports(2)
    url = f"redis+sentinel://:canary@{HOST}:{first},{HOST}:{first + 1}/pages"
    (severity, text), *sentinels = of(deployed(REDIS_URL=url), "redis")
    assert severity is ERROR
    assert "(MasterNotFoundError)" in text
    assert [severity for severity, _ in sentinels] == [WARNING, WARNING]


def test_a_token_is_explained_and_not_printed(deployed, tmp_path, capsys):
    deployed(SCOPE_CLAIMS="realm_access.roles", CLIENT_CLAIMS="app.id")
    file = tmp_path / "token"

    def explained(token: str) -> tuple[int, str]:
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


def test_introspection(deployed):
    url = f"http://{HOST}:9/introspect"
    account = {"INTROSPECTION_CLIENT_ID": "us", "INTROSPECTION_CLIENT_SECRET": "hush"}
    settings = deployed(INTROSPECTION_URL=url, **account)
    for status, answer, expected in (
        (200, {"active": False}, []),
        (200, {"active": True}, ["accepts an invented token"]),
        (401, {}, ["tokens cannot be introspected (status 401)"]),
    ):
        with responses.RequestsMock() as mock:
            mock.post(url, json=answer, status=status)
            found = of(settings, "introspection")
        assert [text.split(":")[0] for _, text in found] == expected
        assert all(severity is ERROR for severity, _ in found)


def test_a_mapping_a_source_or_a_provider_that_cannot_serve(deployed):
    exposed = "postgresql://us:hunter2@127.0.0.1:9/pas?hostaddr=0.0.0.0"
    for allowed, expected in (("", ERROR), ("database", WARNING)):
        found = of(deployed(pas=exposed, UNVERIFIED_TLS=allowed), "source")
        assert [severity for severity, text in found if "TLS" in text] == [expected]
        assert "hunter2" not in str(found)
    settings = deployed()
    with responses.RequestsMock() as mock:
        mock.get(KEY_SET_URL, status=500)
        results = results_of(settings, "identity")
    assert [result.status for result in results] == [ERROR, NOTE]
    text = settings.mapping.read_text("utf-8")
    settings.mapping.write_text(text.replace("profile: full", "profile: ful"), "utf-8")
    ((severity, text), *_) = of(settings, "mapping")
    assert severity is ERROR
    assert "'ful' is not a profile" in text


def test_files_that_all_may_read_or_nobody_can_write(deployed, tmp_path, monkeypatch):
    secret, audit = tmp_path / "secret", tmp_path / "audit.jsonl"
    secret.write_text(f"sqlite:///{tmp_path / 'pas.db'}")
    audit.symlink_to(tmp_path / "gone" / "audit.jsonl")
    settings = deployed(AUDIT=str(audit), AUDIT_KEY="k" * 32)
    ((severity, text),) = of(settings, "audit")
    assert severity is ERROR
    assert "(No such file or directory)" in text
    monkeypatch.delenv("PAS_URL")
    monkeypatch.setenv("PAS_URL_FILE", str(secret))
    monkeypatch.setenv("ENCOUNTERS_SEAL_KEYS_FILE", str(secret))
    for mode, expected in ((0o644, [WARNING]), (0o400, [])):
        secret.chmod(mode)
        for check in ("settings", "mapping"):
            assert [severity for severity, _ in of(settings, check)] == expected


def test_the_public_address(deployed):
    settings = deployed()
    for status, severity in ((200, OK), (400, NOTE), (403, ERROR)):
        with responses.RequestsMock() as mock:
            mock.get(f"{BASE_URL}/metadata", status=status)
            (answer,) = results_of(settings, "public address")
        assert answer.status is severity
    with responses.RequestsMock() as mock:
        mock.get(f"{BASE_URL}/metadata", body=requests.exceptions.SSLError())
        (answer,) = results_of(settings, "public address")
    assert answer.status is NOTE
    assert "certificate" in answer.text
    ((severity, text),) = of(deployed(TRUSTED_PROXIES=""), "settings")
    assert severity is ERROR
    assert "403" in text
    ((severity, text),) = of(deployed(PLAIN_HTTP="loopback"), "settings")
    assert severity is WARNING
    assert "ENCOUNTERS_PLAIN_HTTP" in text
