"""Settings: what is read, what is refused, what is never shown, and what is shipped."""

import json
import re
from ipaddress import ip_network
from pathlib import Path

import pytest

from adapters.mapping.load import load_mapping
from app.audit import open_trail
from app.cli import main
from app.config import SETTINGS, Settings, SettingsError, read_settings
from tests.app.changing import SEAL_KEYS
from tests.app.provider import environ
from tests.live import ROOT

SAME = object()


@pytest.fixture
def mapping(tmp_path):
    path = tmp_path / "mapping.yaml"
    path.write_text("mapping: 1\n")
    return path


def faults(variables):
    with pytest.raises(SettingsError) as caught:
        Settings.from_environ(variables)
    return caught.value.faults


def faulty(variables):
    """Return the variable that each fault begins with."""
    return [fault.split()[0].removeprefix("ENCOUNTERS_") for fault in faults(variables)]


def test_every_fault_is_reported_at_once(mapping):
    # Compose files write a variable that is not set as an empty one.
    variables = {"ENCOUNTERS_WORKERS": "0", "ENCOUNTERS_ISSUER": "  "}
    names = "BASE_URL ISSUER AUDIENCE MAPPING REDIS_URL SEAL_KEYS WORKERS"
    assert faulty(variables) == names.split()
    missing = [fault for fault in faults(variables) if " is missing: " in fault]
    assert len(missing) == len(names.split()) - 1


ACCOUNT = {"INTROSPECTION_CLIENT_ID": "us", "INTROSPECTION_CLIENT_SECRET": "hush"}
"""An account at the introspection endpoint, whose address the metadata has to name."""

EXPLORER = {
    "EXPLORER_BIND": "10.0.0.1:8003",
    "EXPLORER_URL": "https://e.example",
    "EXPLORER_CLIENT_ID": "explorer",
}
"""An explorer that people of the hospital reach."""

BAD = [
    ("BASE_URL", "http://encounters.example.org/fhir/v3"),
    ("BASE_URL", "https://encounters.example.org/fhir/v3/"),
    ("BASE_URL", "https://user:secret@encounters.example.org/fhir/v3"),
    ("ISSUER", "two words"),
    ("CLIENT_CLAIMS", "azp, client_id"),
    ("SCOPES", "A=B; A=C"),
    ("SCOPES", 'A=B"'),
    ("MAPPING", "/nowhere/mapping.yaml"),
    ("MAPPING", "/" + "a" * 5000),
    ("REDIS_URL", "localhost:6379"),
    ("REDIS_URL", "unix:///run/redis.sock?db=secret"),
    ("REDIS_URL", "redis://user:12/secret@localhost:6379/0"),
    ("REDIS_URL", "rediss://localhost?ssl_cert_reqs=none"),
    ("REDIS_URL", "rediss://localhost?ssl_ca_certs=/nowhere/secret.pem"),
    ("REDIS_URL", "redis+sentinel://one:26379"),
    ("SEAL_KEYS", f"{'A' * 43}= secret"),
    ("AUDIT", "audit.jsonl"),
    ("AUDIT", "/nowhere/audit.jsonl"),
    ("AUDIT", "syslog://syslog.example.org:514"),
    ("AUDIT_KEY", "secret"),
    ("CLIENT_REQUESTS_PER_MINUTE", "0"),
    ("IDENTITY_TIMEOUT_SECONDS", "nan"),
    ("OPEN_METADATA", "secret"),
    ("LOG_LEVEL", "secret"),
    ("TRUSTED_PROXIES", "10.0.0.1/8"),
    ("UNVERIFIED_TLS", "redis and secret"),
    ("BIND", "unix:encounters.sock"),
    ("BIND", "localhost:70000"),
]


def test_an_invalid_value_is_a_fault_and_is_not_quoted(mapping):
    for name, text in BAD:
        (fault,) = faults(environ(mapping, **{"AUDIT_KEY": "k" * 32, name: text}))
        assert fault.startswith(f"ENCOUNTERS_{name} cannot be read: expected "), text
        assert "secret" not in fault


NETWORKS = (ip_network("10.0.0.0/8"), ip_network("::1/128"))
GOOD = [
    ("BASE_URL", "https://h.example.org:8443/group-a/fhir/v3", "base_url", SAME),
    ("REDIS_URL", "unix:///run/redis.sock?db=1", "redis_url", SAME),
    ("REDIS_URL", f"rediss://one/2?ssl_ca_certs={__file__}", "redis_url", SAME),
    ("REDIS_URL", "rediss+sentinel://:pass@one:1,two/pages/1", "redis_url", SAME),
    ("UNVERIFIED_TLS", "Redis, database", "unverified_tls", {"redis", "database"}),
    ("CLIENT_CLAIMS", "a; b && c.d ;", "client_claims", ("a", "b && c.d")),
    ("SCOPES", "A=B C; D=E;", "scopes", {"A": {"B", "C"}, "D": {"E"}}),
    ("BIND", "[::1]:8000", "bind", SAME),
    ("BIND", "unix:/run/encounters/http.sock", "bind", SAME),
    ("CLIENT_REQUESTS_PER_MINUTE", "OFF", "client_requests_per_minute", None),
    ("SEAL_KEYS", ",\n".join(SEAL_KEYS), "seal_keys", SEAL_KEYS),
    ("TRUSTED_PROXIES", "10.0.0.0/8, ::1", "trusted_proxies", NETWORKS),
]


def test_a_valid_value_is_read(mapping):
    for name, text, field, value in GOOD:
        read = Settings.from_environ(environ(mapping, **{name: text}))
        assert getattr(read, field) == (text if value is SAME else value)


def test_a_name_that_is_no_setting_stops_the_start(mapping):
    for name, meant in (
        ("WORKER", "WORKERS"),
        ("AUDIT_KEYS_FILE", "AUDIT_KEY_FILE"),
        ("PROXY", ""),
    ):
        (fault,) = faults(environ(mapping) | {f"ENCOUNTERS_{name}": "x"})
        assert fault.startswith(f"ENCOUNTERS_{name} ")
        assert f"ENCOUNTERS_{meant}?" in fault or not meant
    # Kubernetes adds these for a Service of that name.
    links = ("SERVICE_HOST", "SERVICE_PORT_HTTP", "PORT", "PORT_80_TCP")
    cluster = {f"ENCOUNTERS_{name}": "10.0.0.1" for name in links}
    Settings.from_environ(environ(mapping) | cluster)


EVERY_SECRET = {
    **ACCOUNT,
    "REDIS_URL": "redis://:hunter2@localhost",
    "AUDIT_KEY": "hush" * 8,
    "EXPLORER_CLIENT_SECRET": "hush-explorer",
}


def test_a_secret_may_stand_in_a_file_and_is_not_shown(mapping, tmp_path):
    variables, secret = environ(mapping, **EVERY_SECRET), tmp_path / "secret"
    expected = Settings.from_environ(variables)
    for name in (s.name for s in SETTINGS if s.secret):
        # Some editors begin a file with a mark.
        secret.write_bytes(f"\ufeff {variables[name]}\r\n".encode())
        from_file = {n: t for n, t in variables.items() if n != name}
        from_file[f"{name}_FILE"] = str(secret)
        assert Settings.from_environ(from_file) == expected
        (fault,) = faults(variables | from_file)
        assert fault.startswith(f"{name} and {name}_FILE")
        assert variables[name] not in repr(expected)
    secret.write_bytes(b"\xff\xfe")
    for file in (secret, tmp_path / "none"):
        variables = environ(mapping, SEAL_KEYS=None, SEAL_KEYS_FILE=str(file))
        assert faulty(variables) == ["SEAL_KEYS_FILE"]


CONTRADICTIONS = [
    ({"KEY_SET_URL": None, "ISSUER": "us"}, "KEY_SET_URL"),
    ({"KEY_SET_URL": None, "ISSUER": "http://auth.example.org"}, "ISSUER"),
    ({"KEY_SET_URL": "http://auth.example.org/keys"}, "KEY_SET_URL"),
    ({"INTROSPECTION_CLIENT_ID": "us"}, "INTROSPECTION_CLIENT_SECRET"),
    ({**ACCOUNT, "INTROSPECTION_URL": "http://auth.example.org"}, "INTROSPECTION_URL"),
    ({**ACCOUNT, "ISSUER": "http://auth.example.org"}, "ISSUER"),
    (
        {"INTROSPECTION_URL": "https://auth.example.org/i"},
        "INTROSPECTION_CLIENT_ID INTROSPECTION_CLIENT_SECRET",
    ),
    ({"REDIS_URL": "redis://10.0.0.1"}, "REDIS_URL"),
    ({"REDIS_URL": "redis+sentinel://localhost,10.0.0.1/pages"}, "REDIS_URL"),
    ({"BIND": "0.0.0.0:9", "OPERATIONS_BIND": "127.0.0.1:9"}, "OPERATIONS_BIND"),
    ({"PAGE_IDLE_MINUTES": "60", "PAGE_LIFE_MINUTES": "59"}, "PAGE_IDLE_MINUTES"),
    ({"AUDIT": "stdout"}, "AUDIT_KEY"),
    ({"BASE_URL": "http://127.0.0.1:8000/fhir/v3"}, "BASE_URL"),
    ({**EXPLORER, "EXPLORER_BIND": "127.0.0.1:8000"}, "EXPLORER_BIND"),
    ({**EXPLORER, "EXPLORER_URL": None}, "EXPLORER_URL"),
    ({**EXPLORER, "EXPLORER_CLIENT_ID": None}, "EXPLORER_CLIENT_ID"),
    ({**EXPLORER, "EXPLORER_URL": "https://e.example/explorer"}, "EXPLORER_URL"),
    ({**EXPLORER, "EXPLORER_URL": "http://e.example"}, "EXPLORER_URL"),
    ({**EXPLORER, "ISSUER": "our-issuer"}, "EXPLORER_CLIENT_ID"),
    # An invalid setting is a fault of its own, and no second one as a missing one.
    ({"AUDIT": "stdout", "AUDIT_KEY": "short"}, "AUDIT_KEY"),
]
WITHOUT_TLS = [
    {"REDIS_URL": "redis://10.0.0.1", "UNVERIFIED_TLS": "redis"},
    {"REDIS_URL": "redis+sentinel://localhost,127.0.0.1/pages"},
    {"BASE_URL": "http://[::1]:8000/fhir/v3", "PLAIN_HTTP": "loopback"},
    {"KEY_SET_URL": "http://localhost/keys"},
    {"KEY_SET_URL": "http://h/keys", "UNVERIFIED_TLS": "provider"},
    {"KEY_SET_URL": None},
    # Nothing is fetched from an issuer where settings give the addresses.
    {"ISSUER": "http://auth.example.org"},
]
"""What stays on this machine, or is waived."""


def test_settings_that_contradict_each_other(mapping):
    for changed, expected in CONTRADICTIONS:
        assert faulty(environ(mapping, **changed)) == expected.split(), changed
    for changed in WITHOUT_TLS:
        assert read_settings(environ(mapping, **changed)).faults == (), changed


# `encounters settings`


@pytest.fixture
def settings(monkeypatch, capsys):
    """Return a function that runs the command with variables, and returns its output."""
    for setting in SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)
    monkeypatch.delenv("GUNICORN_CMD_ARGS", raising=False)

    def command(variables, *options):
        for name, text in variables.items():
            monkeypatch.setenv(name, text)
        return main(["settings", *options]), capsys.readouterr().out

    return command


def test_origins_are_shown_and_secrets_hidden(settings, mapping):
    variables = environ(mapping, REDIS_URL="rediss://:hunter2@h", WORKERS="4")
    seal = mapping.with_name("seal_keys")
    seal.write_text(variables.pop("ENCOUNTERS_SEAL_KEYS"))
    variables["ENCOUNTERS_SEAL_KEYS_FILE"] = str(seal)
    status, text = settings(variables)
    assert status == 0
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines()}
    assert list(lines) == [setting.name for setting in SETTINGS]
    assert lines["ENCOUNTERS_WORKERS"] == ["environment", "4"]
    assert lines["ENCOUNTERS_THREADS"] == ["default", "16"]
    assert lines["ENCOUNTERS_REDIS_URL"] == ["environment", "(hidden)"]
    assert lines["ENCOUNTERS_SEAL_KEYS"] == ["file", "(hidden)"]
    assert lines["ENCOUNTERS_OPERATIONS_BIND"] == ["not", "set"]
    shown = settings(variables, "--json")[1]
    rows = {row["name"]: row for row in json.loads(shown)["settings"]}
    assert list(rows) == list(lines)
    row = {"name": "ENCOUNTERS_REDIS_URL", "from": "environment", "value": None}
    assert rows["ENCOUNTERS_REDIS_URL"] == {**row, "secret": True, "fault": None}
    assert rows["ENCOUNTERS_LEEWAY_SECONDS"]["value"] == "30"
    for secret in ("hunter2", seal.read_text()):
        assert secret not in text + shown


def test_faults_are_shown_at_once_and_values_are_not(settings, mapping):
    bad = {"WORKERS": "hunter2", "REDIS_URL": "hunter2", "AUDIT": "stdout"}
    # A mistyped name gets a suggestion, and is no fault.
    others = {"ENCOUNTERS_WORKER": "3", "GUNICORN_CMD_ARGS": "--workers 9"}
    status, text = settings(environ(mapping, **bad) | others)
    assert status == 1
    marked = [line.split()[0] for line in text.splitlines() if "at fault" in line]
    assert marked == ["ENCOUNTERS_REDIS_URL", "ENCOUNTERS_WORKERS"]
    assert "hunter2" not in text
    assert "did you mean ENCOUNTERS_WORKERS?" in text
    assert "GUNICORN_CMD_ARGS" in text
    document = json.loads(settings({}, "--json")[1])
    faulty = [fault.split()[0] for fault in document["faults"]]
    assert faulty == [*marked, "ENCOUNTERS_WORKER", "ENCOUNTERS_AUDIT_KEY"]
    assert set(document) == {"settings", "mapping", "faults"}


def test_the_first_file_has_all_that_a_deployment_needs(settings, mapping, tmp_path):
    source = "{kind: http, url: {env: PAS_URL}, headers: {X: {env: PAS_KEY}}}"
    mapping.write_text(f"mapping: 1\nsource: {source}\n")
    status, text = settings({"ENCOUNTERS_MAPPING": str(mapping)}, "--first")
    assert status == 0
    text = re.sub(r"/(?:etc|var/log)/encounters", str(tmp_path), text)
    (tmp_path / "hospital.yaml").touch()
    secrets = {"redis_url": "redis://127.0.0.1", "audit_key": "k" * 44}
    for name, secret in (secrets | {"seal_keys": SEAL_KEYS[0]}).items():
        (tmp_path / name).write_text(secret)
    lines = [line for line in text.splitlines() if line and line[0] != "#"]
    first = dict(line.split("=", 1) for line in lines)
    assert {"PAS_URL_FILE", "PAS_KEY_FILE"} < first.keys()
    empty = [name for name, value in first.items() if not value]
    assert faulty(first) == ["BASE_URL", "ISSUER", "AUDIENCE"]
    assert empty == [f"ENCOUNTERS_{n}" for n in (*faulty(first), "TOKEN_URL")]
    first |= dict.fromkeys(empty, "https://a.example/fhir/v3")
    assert Settings.from_environ(first).threads == 16


def test_variables_of_the_mapping_are_named_and_never_shown(
    settings, mapping, monkeypatch
):
    source = "{kind: http, url: {env: PAS_URL}, headers: {X: {env: PAS_KEY}}}"
    mapping.write_text(f"mapping: 1\nsource: {source}\nname: {{env: x, y: z}}\n")
    monkeypatch.delenv("PAS_KEY", raising=False)
    secret = mapping.with_name("key")
    secret.write_text("hunter2\n")
    every = {**environ(mapping), "PAS_URL": "https://hunter2.example"}
    for variables, status, last in (
        (every, 1, "PAS_KEY is"),
        ({"PAS_KEY_FILE": str(secret)}, 0, "PAS_KEY file"),
        ({"PAS_KEY": "hunter2"}, 1, "PAS_KEY and"),
    ):
        done, text = settings(variables)
        assert done == status
        assert " ".join(text.splitlines()[-1].split()[:2]) == last
        assert "hunter2" not in text
    assert "PAS_URL environment (hidden)" in " ".join(text.split())
    document = json.loads(settings({}, "--json")[1])
    assert document["mapping"] == {"PAS_URL": True, "PAS_KEY": False}


# The settings of groups A and B

GROUPS, STAGES = ("a", "b"), ("production", "test")
FROM_THE_SECRET_STORE = {
    "a": {"PAS_KEY": "secret"},
    "b": {"PAS_URL": "postgresql://encounters:secret@pas.group-b.example.org/pas"},
}


def shipped(group, stage, etc):
    """Return the variables of a settings file once its folder is copied to `etc`."""
    folder = ROOT / "mappings" / f"group-{group}"
    text = (folder / f"{stage}.env").read_text("utf-8")
    text = text.replace("/etc/encounters", str(etc))
    text = text.replace("/var/log/encounters", str(etc / "log"))
    lines = (line for line in text.splitlines() if line and line[0] != "#")
    variables = dict(line.split("=", 1) for line in lines)
    mapping = Path(variables["ENCOUNTERS_MAPPING"])
    mapping.parent.mkdir()
    mapping.write_bytes((folder / mapping.name).read_bytes())
    Path(variables["ENCOUNTERS_SEAL_KEYS_FILE"]).write_text(SEAL_KEYS[0])
    key = mapping.parent.name.ljust(40, "k")
    Path(variables["ENCOUNTERS_AUDIT_KEY_FILE"]).write_text(key)
    Path(variables["ENCOUNTERS_AUDIT"]).parent.mkdir(parents=True)
    return variables


def test_shipped_settings_are_complete_and_refuse_unaudited_responses(tmp_path):
    read = {}
    for group in GROUPS:
        for stage in STAGES:
            variables = shipped(group, stage, tmp_path)
            settings = read[group, stage] = Settings.from_environ(variables)
            secrets = FROM_THE_SECRET_STORE[group]
            assert not set(secrets) & set(variables)
            mapping = load_mapping(settings.mapping, {**variables, **secrets})
            assert mapping.profile == f"group-{group}"
            assert open_trail(settings, mapping="", site="") is not None
            assert settings.audit_failure == "refuse"
            assert settings.audit_patients == "digest"
    # Each has data of its own.
    for name in (
        *("base_url", "bind", "operations_bind", "mapping", "redis_url"),
        *("audit", "audit_key"),
    ):
        assert len({getattr(each, name) for each in read.values()}) == 4, name
    # Spec 1 and 5: authentication domain and audience are those of an environment.
    for name in ("issuer", "audience", "key_set_url"):
        values = {key: getattr(each, name) for key, each in read.items()}
        assert len(set(values.values())) == 2
        assert all(values["a", stage] == values["b", stage] for stage in STAGES)
