"""Settings: what is read, what is refused, what is never shown."""

import os
import re
import shutil
import sys
from dataclasses import fields
from decimal import Decimal
from ipaddress import ip_network
from pathlib import Path
from subprocess import run
from tempfile import mkdtemp

import pytest
from cryptography.fernet import Fernet

from app.settings import (
    SETTINGS,
    AuditFailure,
    AuditPatients,
    LogLevel,
    PlainHttp,
    Settings,
    SettingsError,
)
from tests.app.provider import environ
from tests.live import ROOT

NAMES = {setting.name for setting in SETTINGS}


@pytest.fixture
def mapping(tmp_path: Path) -> Path:
    path = tmp_path / "mapping.yaml"
    path.write_text("mapping: 1\n")
    return path


def faults(variables: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environ(variables)
    return caught.value.faults


def test_every_setting_is_a_field_and_every_field_a_setting():
    assert {s.field for s in SETTINGS} == {f.name for f in fields(Settings)}


def test_every_secret_and_nothing_else_is_left_out_of_repr():
    hidden = {f.name for f in fields(Settings) if not f.repr}
    assert hidden == {s.field for s in SETTINGS if s.secret}


def test_defaults(mapping):
    read = Settings.from_environ(environ(mapping))
    assert read.scopes == {
        "PATIENT_GAM_SEARCH": {
            "ORGANIZATION_READ",
            "PATIENT_READ",
            "PATIENT_SEARCH",
            "ENCOUNTER_READ",
            "ENCOUNTER_SEARCH",
        }
    }
    assert read.mapping == mapping
    assert (read.leeway_seconds, read.identity_timeout_seconds) == (30, 2.0)
    assert (read.page_idle_minutes, read.page_life_minutes) == (30, 480)
    limits = (read.client_requests_per_minute, read.address_requests_per_minute)
    assert limits == (60000, 6000)
    assert (read.max_body_bytes, read.open_metadata) == (65536, True)
    assert (read.plain_http, read.log_level) == (PlainHttp.REFUSE, LogLevel.INFO)
    assert (read.trusted_proxies, read.introspection_url) == ((), None)
    assert (read.audit, read.audit_key) == ("off", None)
    assert read.audit_patients is AuditPatients.DIGEST
    assert read.audit_failure is AuditFailure.REFUSE
    assert (read.audit_addresses, read.tracing) == (True, False)


def test_every_fault_is_told_at_once(mapping):
    told = faults({"ENCOUNTERS_WORKERS": "0", "ENCOUNTERS_OPEN_METADATA": "maybe"})
    assert [fault.split()[0] for fault in told] == [
        "ENCOUNTERS_BASE_URL",
        "ENCOUNTERS_ISSUER",
        "ENCOUNTERS_AUDIENCE",
        "ENCOUNTERS_OPEN_METADATA",
        "ENCOUNTERS_MAPPING",
        "ENCOUNTERS_REDIS_URL",
        "ENCOUNTERS_SEAL_KEYS",
        "ENCOUNTERS_WORKERS",
        "ENCOUNTERS_KEY_SET_URL",
    ]
    assert all(fault.endswith(".") and "\n" not in fault for fault in told)


@pytest.mark.parametrize("name", sorted(s.name for s in SETTINGS if s.required))
@pytest.mark.parametrize("text", [None, "", "  "])
def test_a_required_setting_that_is_absent_or_empty_is_missing(mapping, name, text):
    bare = name.removeprefix("ENCOUNTERS_")
    (fault,) = faults(environ(mapping, **{bare: text}))
    assert fault.startswith(f"{name} is missing: ")


BAD = [
    ("BASE_URL", "http://encounters.example.org/fhir/v3"),
    ("BASE_URL", "https://encounters.example.org/fhir/v3/"),
    ("BASE_URL", "https://encounters.example.org/fhir"),
    ("BASE_URL", "https://encounters.example.org/fhir/v3?"),
    ("BASE_URL", "https://encounters.example.org?/fhir/v3"),
    ("BASE_URL", "https://encounters.example.org/#/fhir/v3"),
    ("BASE_URL", "https://user:secret@encounters.example.org/fhir/v3"),
    ("BASE_URL", "https://encounters.example.org:99999/fhir/v3"),
    ("BASE_URL", "encounters.example.org/fhir/v3"),
    ("BASE_URL", "https:///fhir/v3"),
    ("BASE_URL", "ftp://encounters.example.org/fhir/v3"),
    ("BASE_URL", "https://encounters example.org/fhir/v3"),
    ("ISSUER", "two words"),
    ("AUDIENCE", "two words"),
    ("KEY_SET_URL", "http://auth.example.org/keys"),
    ("KEY_SET_URL", "https://user:secret@auth.example.org/keys"),
    ("KEY_SET_URL", "/keys"),
    ("KEY_SET_SECONDS", "9"),
    ("KEY_SET_SECONDS", "86401"),
    ("KEY_SET_RETRY_SECONDS", "0"),
    ("IDENTITY_TIMEOUT_SECONDS", "0"),
    ("IDENTITY_TIMEOUT_SECONDS", "31"),
    ("IDENTITY_TIMEOUT_SECONDS", "nan"),
    ("LEEWAY_SECONDS", "-1"),
    ("LEEWAY_SECONDS", "301"),
    ("LEEWAY_SECONDS", "30s"),
    ("LEEWAY_SECONDS", "1_0"),
    ("LEEWAY_SECONDS", "٣"),
    ("SCOPES", "A"),
    ("SCOPES", "A="),
    ("SCOPES", "=B"),
    ("SCOPES", ";"),
    ("SCOPES", "A=B; A=C"),
    ("SCOPES", "A B=C"),
    ("SCOPES", 'A=B"'),
    ("OPEN_METADATA", "yes"),
    ("MAPPING", "/nowhere/mapping.yaml"),
    ("REDIS_URL", "localhost:6379"),
    ("REDIS_URL", "http://localhost:6379"),
    ("REDIS_URL", "redis://"),
    ("REDIS_URL", "unix://"),
    ("REDIS_URL", "unix:///run/redis.sock?db=secret"),
    ("REDIS_URL", "redis://localhost/pages"),
    ("REDIS_URL", "redis://localhost/-1"),
    ("REDIS_URL", "redis://user:12/secret@localhost:6379/0"),
    ("REDIS_URL", "redis://localhost?secret=1"),
    ("REDIS_URL", "redis://localhost?socket_timeout=60"),
    ("REDIS_URL", "redis://localhost?socket_timeout=secret"),
    ("REDIS_URL", "rediss://localhost?ssl_cert_reqs=none"),
    ("REDIS_URL", "rediss://localhost?ssl_ca_certs=/nowhere/secret.pem"),
    ("REDIS_URL", "redis+sentinel://one/pages/-1"),
    ("REDIS_URL", "redis+sentinel://one:26379"),
    ("REDIS_URL", "redis+sentinel://one:0/pages"),
    ("REDIS_URL", "redis+sentinel://one,/pages"),
    ("REDIS_URL", "redis+sentinel://one/pages/x"),
    ("SEAL_KEYS", "secret"),
    ("SEAL_KEYS", f"{'A' * 43}= secret"),
    ("SEAL_KEYS", ","),
    ("PAGE_IDLE_MINUTES", "0"),
    ("PAGE_LIFE_MINUTES", "1441"),
    ("MAX_BODY_BYTES", "1023"),
    ("MAX_BODY_BYTES", "1048577"),
    ("REQUEST_SECONDS", "0"),
    ("REQUEST_SECONDS", "301"),
    ("AUDIT", "audit.jsonl"),
    ("AUDIT", "/nowhere/audit.jsonl"),
    ("AUDIT", "/"),
    ("AUDIT_KEY", "secret"),
    ("AUDIT_KEY", f"secret{'A' * 59}"),
    ("AUDIT_KEY", f"secret {'A' * 32}"),
    ("AUDIT_PATIENTS", "names"),
    ("AUDIT_FAILURE", "ignore"),
    ("AUDIT_ADDRESSES", "hashed"),
    ("CLIENT_REQUESTS_PER_MINUTE", "0"),
    ("CLIENT_REQUESTS_PER_MINUTE", "none"),
    ("ADDRESS_REQUESTS_PER_MINUTE", "100000001"),
    ("PLAIN_HTTP", "allow"),
    ("TRUSTED_PROXIES", "10.0.0.1/8"),
    ("TRUSTED_PROXIES", "proxy.example.org"),
    ("BIND", "8000"),
    ("BIND", "localhost"),
    ("BIND", ":8000"),
    ("BIND", "localhost:70000"),
    ("BIND", "localhost:8000/x"),
    ("OPERATIONS_BIND", "8001"),
    ("WATCH_SECONDS", "4"),
    ("WATCH_SECONDS", "3601"),
    ("WORKERS", "65"),
    ("THREADS", "129"),
    ("THREADS", "x"),
    ("LOG_LEVEL", "loud"),
    ("TRACING", "otlp"),
]


@pytest.mark.parametrize(("name", "text"), BAD)
def test_a_bad_value_stops_the_start_and_is_not_quoted(mapping, name, text):
    (fault,) = faults(environ(mapping, **{name: text}))
    assert fault.startswith(f"ENCOUNTERS_{name} cannot be read: expected ")
    assert "secret" not in fault


def test_every_setting_that_can_be_bad_is_tried():
    tried = {f"ENCOUNTERS_{name}" for name, _ in BAD}
    words = {s.name for s in SETTINGS if s.kind.name in {"text", "URL"}}
    assert tried | words == NAMES, "BAD lacks one, or has one that is none"


def test_every_setting_is_read():
    code = "\n".join(file.read_text("utf-8") for file in (ROOT / "app").rglob("*.py"))
    unread = [s.field for s in SETTINGS if not re.search(rf"\.{s.field}\b", code)]
    assert unread == []


RANGES = [
    (setting, *re.findall(r"[0-9.]+", setting.kind.takes))
    for setting in SETTINGS
    if setting.kind.name in {"number", "whole number"}
]


@pytest.mark.parametrize(
    ("setting", "low", "high"), RANGES, ids=[setting.field for setting, *_ in RANGES]
)
def test_a_range_holds_both_its_ends_and_nothing_beyond(mapping, setting, low, high):
    short = setting.name.removeprefix("ENCOUNTERS_")
    step = Decimal(1 if setting.kind.name == "whole number" else "0.001")
    wide = {"PAGE_IDLE_MINUTES": "1", "PAGE_LIFE_MINUTES": "1440"}
    for end in (low, high):
        read = Settings.from_environ(environ(mapping, **{**wide, short: end}))
        assert getattr(read, setting.field) == float(end)
    for beyond in (Decimal(low) - step, Decimal(high) + step):
        (fault,) = faults(environ(mapping, **{short: str(beyond)}))
        assert fault.startswith(f"{setting.name} cannot be read: expected {low} to ")


GOOD = [
    ("BASE_URL", "https://h.example.org:8443/group-a/fhir/v3", "base_url", None),
    ("REDIS_URL", "unix:///run/redis.sock?db=1", "redis_url", None),
    ("REDIS_URL", "rediss://:pass@redis.example.org", "redis_url", None),
    ("REDIS_URL", "redis://localhost/", "redis_url", None),
    ("REDIS_URL", f"rediss://one/2?ssl_ca_certs={__file__}", "redis_url", None),
    ("REDIS_URL", "redis+sentinel://:pass@one:1,two/pages/1", "redis_url", None),
    ("SCOPES", "A=B C; D=E;", "scopes", {"A": {"B", "C"}, "D": {"E"}}),
    ("OPEN_METADATA", "False", "open_metadata", False),
    ("IDENTITY_TIMEOUT_SECONDS", "0.5", "identity_timeout_seconds", 0.5),
    ("CLIENT_REQUESTS_PER_MINUTE", "5", "client_requests_per_minute", 5),
    ("BIND", "[::1]:8000", "bind", None),
    ("BIND", "0.0.0.0:80", "bind", None),
    ("LOG_LEVEL", "DEBUG", "log_level", LogLevel.DEBUG),
    (
        "TRUSTED_PROXIES",
        "10.0.0.0/8, 192.0.2.7 2001:db8::/32",
        "trusted_proxies",
        (
            ip_network("10.0.0.0/8"),
            ip_network("192.0.2.7/32"),
            ip_network("2001:db8::/32"),
        ),
    ),
]


@pytest.mark.parametrize(("name", "text", "field", "value"), GOOD)
def test_a_good_value_is_read(mapping, name, text, field, value):
    read = Settings.from_environ(environ(mapping, **{name: text}))
    assert getattr(read, field) == (text if value is None else value)


@pytest.mark.parametrize("text", ["off", "OFF"])
def test_a_limit_can_be_off(mapping, text):
    given = environ(mapping, CLIENT_REQUESTS_PER_MINUTE=text)
    assert Settings.from_environ(given).client_requests_per_minute is None


def test_an_empty_value_is_the_default(mapping):
    assert Settings.from_environ(environ(mapping, WORKERS=" ")).workers == 2


def test_names_that_we_do_not_know_are_let_be(mapping):
    cluster = {"ENCOUNTERS_SERVICE_HOST": "10.0.0.1", "ENCOUNTERS_PORT": "tcp://x"}
    Settings.from_environ(environ(mapping) | cluster)


@pytest.mark.parametrize("name", sorted(s.name for s in SETTINGS if s.secret))
def test_a_secret_may_stand_in_a_file(mapping, tmp_path, name):
    given = environ(
        mapping,
        INTROSPECTION_URL="https://auth.example.org/i",
        INTROSPECTION_CLIENT_ID="us",
        INTROSPECTION_CLIENT_SECRET="hush",
        AUDIT_KEY="k" * 32,
    )
    secret = tmp_path / "secret"
    secret.write_text(f" {given[name]}\n")
    from_file = {n: t for n, t in given.items() if n != name}
    from_file[f"{name}_FILE"] = str(secret)
    assert Settings.from_environ(from_file) == Settings.from_environ(given)
    assert faults(given | from_file) == (f"{name} and {name}_FILE are both given.",)


def test_the_mark_that_editors_put_before_a_file_does_not_count(mapping, tmp_path):
    secret = tmp_path / "secret"
    key = Fernet.generate_key()
    secret.write_bytes(b"\xef\xbb\xbf" + key + b"\r\n")
    given = environ(mapping, SEAL_KEYS=None, SEAL_KEYS_FILE=str(secret))
    assert Settings.from_environ(given).seal_keys == (key.decode(),)


@pytest.mark.parametrize("name", ["MAPPING", "AUDIT"])
@pytest.mark.parametrize("place", ["/" + "a" * 300, "/" + "a" * 5000], ids=len)
def test_a_path_that_no_file_can_have_is_a_fault(mapping, name, place):
    (fault,) = faults(environ(mapping, AUDIT_KEY="k" * 32, **{name: place}))
    assert fault.startswith(f"ENCOUNTERS_{name} cannot be read: expected ")


_ANOTHERS = """
import os, sys
from app.settings import Settings, SettingsError

if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    Settings.from_environ(os.environ)
except SettingsError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize(("directory", "file"), [(0o000, 0o644), (0o755, 0o000)])
def test_files_that_the_account_may_not_reach_are_told_by_name(
    mapping, directory, file
):
    # Not in pytest's own directory, which nobody else may enter.
    kept = Path(mkdtemp())
    mine, audit = kept / "mapping.yaml", kept / "audit.jsonl"
    for each in (mine, audit):
        each.touch()
        each.chmod(file)
    kept.chmod(directory)
    given = environ(mapping, MAPPING=str(mine), AUDIT=str(audit), AUDIT_KEY="k" * 32)
    try:
        told = run(
            [sys.executable, "-c", _ANOTHERS],
            cwd=ROOT,
            env=os.environ | given,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        kept.chmod(0o700)
        shutil.rmtree(kept)
    assert [line.split(":")[0] for line in told.stderr.splitlines()] == [
        "ENCOUNTERS_MAPPING cannot be read",
        "ENCOUNTERS_AUDIT cannot be read",
    ]


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_secret_file_that_cannot_be_read_is_a_fault(mapping, tmp_path, content):
    secret = tmp_path / "secret"
    if content is not None:
        secret.write_bytes(content)
    given = environ(mapping, SEAL_KEYS=None, SEAL_KEYS_FILE=str(secret))
    assert faults(given) == ("ENCOUNTERS_SEAL_KEYS_FILE names no file to be read.",)


def test_what_is_no_secret_is_not_read_from_a_file(mapping):
    given = environ(mapping, AUDIENCE=None, AUDIENCE_FILE=str(mapping))
    assert faults(given)[0].startswith("ENCOUNTERS_AUDIENCE is missing")


def test_several_seal_keys_keep_their_order(mapping):
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    read = Settings.from_environ(environ(mapping, SEAL_KEYS=f"{new},\n{old}"))
    assert read.seal_keys == (new, old)


def test_no_secret_is_shown(mapping):
    seal = Fernet.generate_key().decode()
    read = Settings.from_environ(
        environ(
            mapping,
            SEAL_KEYS=seal,
            REDIS_URL="redis://:hunter2@localhost",
            INTROSPECTION_URL="https://auth.example.org/i",
            INTROSPECTION_CLIENT_ID="us",
            INTROSPECTION_CLIENT_SECRET="hush-hush",
            AUDIT_KEY="hush" * 8,
        )
    )
    for secret in (seal, "hunter2", "hush-hush", "hush" * 8):
        assert secret not in repr(read) + str(read)


def test_a_key_set_is_needed_unless_tokens_are_introspected(mapping):
    assert faults(environ(mapping, KEY_SET_URL=None)) == (
        "ENCOUNTERS_KEY_SET_URL is missing: it can be left out only where "
        "ENCOUNTERS_INTROSPECTION_URL is given.",
    )
    assert faults(environ(mapping, INTROSPECTION_URL="https://a.example.org/i")) == (
        "ENCOUNTERS_INTROSPECTION_CLIENT_ID is missing: "
        "ENCOUNTERS_INTROSPECTION_URL needs it.",
        "ENCOUNTERS_INTROSPECTION_CLIENT_SECRET is missing: "
        "ENCOUNTERS_INTROSPECTION_URL needs it.",
    )


def test_the_operations_port_is_one_of_its_own(mapping):
    taken = "127.0.0.1:9000"
    assert faults(environ(mapping, BIND=taken, OPERATIONS_BIND=taken)) == (
        "ENCOUNTERS_OPERATIONS_BIND needs a port of its own, not that of "
        "ENCOUNTERS_BIND.",
    )


def test_a_page_does_not_idle_longer_than_it_lives(mapping):
    given = environ(mapping, PAGE_IDLE_MINUTES="60", PAGE_LIFE_MINUTES="59")
    assert faults(given) == (
        "ENCOUNTERS_PAGE_IDLE_MINUTES is longer than ENCOUNTERS_PAGE_LIFE_MINUTES.",
    )


@pytest.mark.parametrize("target", ["stdout", "/dev/full"])
def test_an_audit_needs_its_key(mapping, target):
    assert faults(environ(mapping, AUDIT=target)) == (
        "ENCOUNTERS_AUDIT_KEY is missing: ENCOUNTERS_AUDIT needs it.",
    )
    read = Settings.from_environ(environ(mapping, AUDIT=target, AUDIT_KEY="k" * 32))
    assert (read.audit, read.audit_key) == (target, "k" * 32)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_plain_http_is_for_loopback_and_by_the_switch_alone(mapping, host):
    base = f"http://{host}:8000/fhir/v3"
    assert faults(environ(mapping, BASE_URL=base)) == (
        "ENCOUNTERS_BASE_URL is plain HTTP, which ENCOUNTERS_PLAIN_HTTP refuses.",
    )
    read = Settings.from_environ(environ(mapping, BASE_URL=base, PLAIN_HTTP="loopback"))
    assert read.base_url == base
