"""`encounters doctor`: each fault of a deployment is found, told, and no secret with it."""

import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psycopg
import pytest
import responses

from adapters.testing.stays import EDGES
from app.cli import main
from app.operations.endpoints import operations_server
from app.operations.readiness import Watch
from app.settings import Settings
from app.tools.doctor.certificates import certificate
from app.tools.doctor.identity import identity_checks
from app.tools.doctor.rounds import Seen, look
from app.tools.doctor.sources import mapping_checks
from app.tools.doctor.store import store_checks
from app.tools.report import Severity
from tests.app import provider
from tests.databases import NewDatabase
from tests.docs.pages import OPERATORS, section, table
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, free_ports
from tests.redis_server import RedisServer
from tests.tls import certificate_for

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
PATIENCE = 60.0
BASE_URL = "https://127.0.0.1:9/fhir/v3"
KEY_SET_URL = "http://127.0.0.1:9/keys"

Deployed = Callable[..., Settings]


@pytest.fixture
def deployed(
    tmp_path: Path, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> Deployed:
    """Return a function that sets a deployment up in the environment."""
    Tables(f"sqlite:///{tmp_path / 'pas.db'}", EDGES).close()
    (tmp_path / "pas.db").chmod(0o440)

    def deploy(*edits: tuple[str, str], pas: str = "", **changed: str) -> Settings:
        text = mapping_text(EDGES).replace(", may_write: true", "")
        for old, new in edits:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
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
def published(behind: float | None = None) -> Iterator[responses.RequestsMock]:
    """Let the provider answer, and the service behind its proxy.

    The provider tells its time, so many seconds behind ours, unless that is None.
    """
    keys = json.dumps(provider.key_set(provider.rsa()))

    def answer(_: object) -> tuple[int, dict[str, str], str]:
        told = (
            {}
            if behind is None
            else {"Date": formatdate(time.time() - behind, usegmt=True)}
        )
        return 200, told, keys

    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        mock.add_callback(responses.GET, KEY_SET_URL, answer)
        mock.get(f"{BASE_URL}/metadata", json={})
        yield mock


def wrong(seen: tuple[Seen, ...]) -> list[tuple[Severity, str]]:
    """Return what is not as it should be; all of it says what to do."""
    found = [(each.severity, each.text) for each in seen if each.severity]
    assert all(s.remedy for s in seen if s.severity in {ERROR, WARNING})
    return found


def of_redis(settings: Settings, **changed: object) -> list[tuple[Severity, str]]:
    """Return what is told of Redis, but for notes."""
    (looked,) = look(list(store_checks(settings, **changed)), PATIENCE)  # type: ignore[arg-type]
    return [each for each in wrong(looked.seen) if each[0] is not NOTE]


def of_source(settings: Settings, **changed: object) -> list[tuple[Severity, str]]:
    """Return what is told of the source."""
    checks = list(mapping_checks(settings, **changed))  # type: ignore[arg-type]
    return wrong(look(checks, PATIENCE)[-1].seen)


# --------------------------------------------------------------------------- the whole


def test_where_all_is_well_it_says_so(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed()
    with published(behind=0):
        status = main(["doctor", "--seconds", f"{PATIENCE}"])
    told = capsys.readouterr().out
    assert status == 0, told
    for text in (
        "settings        ok       can be started with",
        "public address  ok       is answered by the service",
        "source          ok       answers, and has all that the mapping names",
        "redis           ok       takes pages and gives them back",
        "key set         ok       1 key that can be used",
        "key set         ok       its clock agrees with ours",
    ):
        assert text in told
    assert "error" not in told
    assert "warning" not in told


def test_settings_at_fault_are_told_and_nothing_is_looked_at(
    deployed: Deployed,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    deployed()
    monkeypatch.setenv("ENCOUNTERS_WORKERS", "0")
    assert main(["doctor"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "ENCOUNTERS_WORKERS cannot be read: expected 1 to 64 (whole number).",
        "Nothing was looked at.",
    ]


def test_one_that_hangs_stops_no_other_and_no_secret_is_told(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server((HOST, 0)) as mute:
        port = mute.getsockname()[1]
        deployed(
            ("source: {", "source: {timeout_seconds: 60, "),
            pas=f"postgresql://canary-user:canary-word@{HOST}:{port}/canary-name",
            REDIS_URL=f"redis://:canary-redis@{HOST}:{free_ports()}/0",
            OPERATIONS_BIND=f"{HOST}:{free_ports()}",
        )
        # What does not hang may be late for once, on a busy machine.
        for seconds in ("2.5", "20"):
            with published():
                status = main(["doctor", "--seconds", seconds, "--json"])
            text = capsys.readouterr().out
            if text.count("did not end") == 1:
                break
    assert status == 1
    found = {each["check"]: each["seen"] for each in json.loads(text)["checks"]}
    page = section(OPERATORS.read_text("utf-8"), "Looking at a deployment")
    rows = table(page, "Check")
    told = {name for row in rows for name in row[0].split(", ")}
    assert set(found) == told - {"one for each", "introspection"}
    late = found["source"][-1]
    assert late["text"] == f"did not end within {seconds} seconds"
    assert late["severity"] == "error"
    assert found["redis"][-1]["text"].startswith("does not answer (ConnectionError)")
    assert found["key set"][1]["text"] == "1 key that can be used"
    assert found["operations port"][0]["severity"] == "note"
    assert "canary" not in text
    assert f"{port}" not in text


# ------------------------------------------------------------------------------ Redis


def test_redis_that_is_stopped(deployed: Deployed) -> None:
    server = RedisServer()
    server.start()
    settings = deployed(REDIS_URL=server.url)
    assert of_redis(settings) == []
    server.stop()
    told = "does not answer (ConnectionError): further pages are 503"
    assert of_redis(settings) == [(ERROR, told)]
    server.remove()


def test_redis_that_would_lose_or_refuse_pages(
    deployed: Deployed, own_redis: RedisServer
) -> None:
    settings = deployed(REDIS_URL=own_redis.url)
    with own_redis.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        assert of_redis(settings) == []
        client.config_set("maxmemory", "100mb")
        lost = (
            "drops pages that are in use when it is full (allkeys-lru): walks end (410)"
        )
        assert of_redis(settings) == [(WARNING, lost)]
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", "1")
        ((severity, text),) = of_redis(settings)
        assert (severity, text.split(":")[0]) == (ERROR, "is full and takes no page")
        client.config_set("maxmemory", "0")
        client.replicaof(HOST, "9")
        assert of_redis(settings) == [(ERROR, "is a replica: it takes no pages")]
        client.replicaof("NO", "ONE")
        client.config_set("requirepass", "hush")
        assert of_redis(settings)[0][0] is ERROR
        client.execute_command("AUTH", "hush")
        client.config_set("requirepass", "")


def test_sentinels_that_are_too_few_and_away(deployed: Deployed) -> None:
    first = free_ports(2)
    url = f"redis+sentinel://:canary@{HOST}:{first},{HOST}:{first + 1}/pages"
    few, away = of_redis(deployed(REDIS_URL=url))
    assert few == (
        WARNING,
        "2 sentinels are named: fewer than 3 choose no master safely",
    )
    assert away[0] is ERROR
    assert away[1].startswith("its sentinels name no master, or none of them answers")


def about(text: str, template: str, seconds: int) -> bool:
    """Whether a text tells so many seconds, the time of a busy machine aside."""
    found = re.fullmatch(re.escape(template).replace(r"\{\}", r"(\d+)"), text)
    return found is not None and abs(int(found[1]) - seconds) <= 5


def test_a_clock_that_is_wrong(deployed: Deployed) -> None:
    settings = deployed()
    slow = of_redis(settings, clock=lambda: time.time() - 100)
    ((severity, text),) = slow
    assert severity is WARNING
    assert about(text, "its clock is {} seconds ahead of ours", 100)
    with published(behind=20):
        (near,) = look(list(identity_checks(settings)), PATIENCE)
        far_off = identity_checks(settings, clock=lambda: time.time() + 100)
        (far,) = look(list(far_off), PATIENCE)
    ((severity, text),) = wrong(near.seen)
    assert severity is WARNING
    assert text.endswith("seconds behind ours")
    ((severity, text),) = wrong(far.seen)
    assert severity is ERROR
    assert "more than ENCOUNTERS_LEEWAY_SECONDS (30): tokens may be refused" in text


# ----------------------------------------------------------------------------- sources


def test_a_file_that_the_account_may_change(deployed: Deployed, tmp_path: Path) -> None:
    settings = deployed()
    (tmp_path / "pas.db").chmod(0o600)
    assert of_source(settings) == [
        (NOTE, "this account may change the file, which is opened for reading only")
    ]


def test_a_column_that_has_gone(deployed: Deployed) -> None:
    settings = deployed(("s.visit,", "s.visit AS venue,"))
    severities, texts = zip(*of_source(settings), strict=True)
    assert severities[0] is ERROR
    assert "visit" in texts[0]


def test_a_source_that_may_hold_every_thread(deployed: Deployed) -> None:
    settings = deployed(THREADS="3")
    hangs = "may hold every thread of a worker when it hangs"
    assert (WARNING, hangs) in of_source(settings)


def test_a_mapping_that_is_refused(deployed: Deployed) -> None:
    settings = deployed(("profile: full", "profile: ful"))
    ((severity, text),) = of_source(settings)
    assert severity is ERROR
    assert "'ful' is not a profile" in text


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "601", "x"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["doctor", "--seconds", text])
    assert refused.value.code == 2


@pytest.fixture(scope="module")
def pas(new_postgresql: NewDatabase) -> str:
    """Return a hospital in PostgreSQL, as its owner."""
    url = new_postgresql("unicode")
    Tables(url, EDGES).close()
    plain = url.replace("postgresql+psycopg:", "postgresql:")
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute("CREATE ROLE doctored LOGIN CONNECTION LIMIT 5")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO doctored")
    return plain


def test_an_account_of_a_database_that_may_write(deployed: Deployed, pas: str) -> None:
    ((severity, text),) = of_source(deployed(pas=pas, WORKERS="1"))
    assert severity is ERROR
    assert "the account of the source may change tables" in text
    seen = look(list(mapping_checks(deployed(pas=pas, WORKERS="1"))), PATIENCE)[-1].seen
    assert not any("only read" in each.text for each in seen if each.text != text)


def test_a_mapping_that_lets_a_writer_in(deployed: Deployed, pas: str) -> None:
    lets = ("connections: 2", "connections: 2, may_write: true")
    text = "the account may change tables, and the mapping lets it (may_write)"
    assert of_source(deployed(lets, pas=pas, WORKERS="1")) == [(WARNING, text)]
    only_reads = pas.replace("postgres:@", "doctored:@")
    ((severity, text),) = of_source(deployed(lets, pas=only_reads, WORKERS="1"))
    assert severity is NOTE
    assert text.endswith("the account only reads: may_write can be taken away")


def test_an_account_with_fewer_connections_than_we_may_want(
    deployed: Deployed, pas: str
) -> None:
    only_reads = pas.replace("postgres:@", "doctored:@")
    assert only_reads != pas
    assert of_source(deployed(pas=only_reads, WORKERS="1")) == []
    assert of_source(deployed(pas=only_reads, WORKERS="2")) == [
        (ERROR, "the account may have 5 connections, this instance may want 8")
    ]
    many = of_source(deployed(pas=only_reads, WORKERS="64"))
    assert [text.split(",")[0] for _, text in many] == [
        "the account may have 5 connections",
        "takes 97 connections",
    ]


def test_a_database_whose_clock_is_wrong(deployed: Deployed, pas: str) -> None:
    settings = deployed(pas=pas.replace("postgres:@", "doctored:@"), WORKERS="1")
    ((severity, text),) = of_source(settings, clock=lambda: time.time() + 60)
    assert severity is WARNING
    assert about(text, "its clock is {} seconds behind ours", 60)


# ----------------------------------------------------------- the site, and certificates


def told(
    capsys: pytest.CaptureFixture[str], *replaced: tuple[str, int]
) -> dict[str, list[tuple[Severity, str]]]:
    """Run the command; return what is wrong, by check."""
    with published() as mock:
        mock.add_passthru(f"http://{HOST}:2")
        mock.add_passthru(f"http://{HOST}:3")
        for url, status in replaced:
            mock.replace(responses.GET, url, status=status)
        main(["doctor", "--seconds", f"{PATIENCE}", "--json"])
    return {
        each["check"]: [
            (Severity(seen["severity"]), seen["text"])
            for seen in each["seen"]
            if seen["severity"] in {"error", "warning"}
        ]
        for each in json.loads(capsys.readouterr().out)["checks"]
    }


def test_files_that_all_may_read_or_nobody_can_write(
    deployed: Deployed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    secret, audit = tmp_path / "seal_keys", tmp_path / "audit.jsonl"
    secret.write_text("A" * 43 + "=")
    secret.chmod(0o644)
    audit.symlink_to(tmp_path / "gone" / "audit.jsonl")
    deployed(AUDIT=str(audit), AUDIT_KEY="k" * 32, PLAIN_HTTP="loopback")
    monkeypatch.delenv("ENCOUNTERS_SEAL_KEYS")
    monkeypatch.setenv("ENCOUNTERS_SEAL_KEYS_FILE", str(secret))
    found = told(capsys)
    assert found["disk"] == [
        (ERROR, "the audit file cannot be written (No such file or directory)")
    ]
    assert found["settings"] == [
        (
            WARNING,
            "ENCOUNTERS_PLAIN_HTTP lets requests of this machine in without TLS",
        ),
        (
            WARNING,
            "everybody on this machine may read ENCOUNTERS_SEAL_KEYS_FILE",
        ),
    ]


def test_somebody_else_has_the_operations_port(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_ports()
    deployed(OPERATIONS_BIND=f"{HOST}:{port}")
    with ThreadingHTTPServer((HOST, port), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (other,) = told(capsys)["operations port"]
        server.shutdown()
    assert other == (ERROR, "is answered by somebody else (status 501)")


def test_a_proxy_that_is_not_trusted_and_a_service_that_is_not_ready(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_ports()
    deployed(OPERATIONS_BIND=f"{HOST}:{port}", TRUSTED_PROXIES="")
    watch = Watch({"source": lambda: ("a column has gone",)}, 60)
    watch.look()
    server = operations_server(f"{HOST}:{port}", watch)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        found = told(capsys, (f"{BASE_URL}/metadata", 403))
        assert found["operations port"] == [(ERROR, "source: a column has gone")]
        (refuses,) = found["public address"]
        assert refuses[0] is ERROR
        assert refuses[1].startswith("refuses what its proxy passes on (403)")
        assert found["settings"][0][0] is ERROR
        (away,) = told(capsys, (f"{BASE_URL}/metadata", 502))["public address"]
        assert away == (ERROR, "is answered by the proxy alone (status 502)")
        # A proxy that wants certificates of clients has none of ours.
        assert told(capsys, (f"{BASE_URL}/metadata", 400))["public address"] == []
        (keys,) = told(capsys, (KEY_SET_URL, 500))["key set"]
        assert keys[1].startswith("cannot be had (status 500)")
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "answer", "says"),
    [
        (200, {"active": False}, None),
        (200, {"active": True}, "takes a made-up token for a good one"),
        (401, {}, "refuses us (status 401)"),
        (500, {}, "cannot be asked (status 500): opaque tokens are 503"),
    ],
)
def test_introspection(
    deployed: Deployed, status: int, answer: dict[str, object], says: str | None
) -> None:
    url = f"http://{HOST}:9/introspect"
    settings = deployed(
        INTROSPECTION_URL=url,
        INTROSPECTION_CLIENT_ID="us",
        INTROSPECTION_CLIENT_SECRET="hush",
    )
    with published() as mock:
        mock.post(url, json=answer, status=status)
        looked = look(list(identity_checks(settings)), PATIENCE)
    assert wrong(looked[1].seen) == ([] if says is None else [(ERROR, says)])


def test_a_certificate_is_told_by_its_days(tmp_path: Path) -> None:
    for days, severity, says in (
        (100, None, "its certificate is good for 99 days"),
        (5, WARNING, "its certificate ends in 4 days"),
        (-1, ERROR, "its certificate has expired"),
    ):
        file = certificate_for(tmp_path, days)
        with serving_tls(file) as port:
            (seen,) = certificate(f"https://{HOST}:{port}", str(file))
            assert (seen.severity, seen.text) == (severity, says)
            (unknown,) = certificate(f"https://{HOST}:{port}")
            assert unknown.severity is ERROR
            (theirs,) = certificate(f"https://{HOST}:{port}", for_us=False)
            assert theirs.severity is NOTE
            (other,) = certificate(f"https://localhost:{port}", str(file))
            assert other.severity is ERROR
            assert "localhost" not in other.text + unknown.text


@contextmanager
def serving_tls(file: Path) -> Iterator[int]:
    """Show a certificate to whoever comes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, file.with_name("key.pem"))
    with socket.create_server((HOST, 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    accepted, _ = listening.accept()
                except OSError:
                    return
                try:
                    context.wrap_socket(accepted, server_side=True).close()
                except OSError:
                    accepted.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)
