"""docs/run says what the service does with its settings, its database, its log and its audit."""

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import closing
from zoneinfo import ZoneInfo

import click
import pytest
import responses
import yaml
from prometheus_client import Counter
from prometheus_client.metrics import MetricWrapperBase
from sqlalchemy.engine import make_url

from adapters import instrumentation
from adapters.http.client import _CONNECT_SECONDS
from adapters.mapping.model import Mark, SourceConfig
from adapters.resilience import PAUSE_SECONDS
from adapters.sql.dialects.base import CONNECT_SECONDS
from adapters.sql.engine import COUNTS, Database
from app import observability
from app.audit import TURN_SECONDS
from app.cli import cli
from app.config import PREFIX, SETTINGS
from app.redis_client import REDIS_SECONDS
from tests.demo.running import get, offline_token
from tests.docs.pages import RUN, blocks, operators, section, table
from tests.live import ROOT
from tests.serving import publish_keys, serve
from tests.sets import SERVERS
from toolkit.contract.hospital import EDGES

PAGE = operators()
SECURITY = RUN / "security"


def test_settings_that_the_pages_name_are_there():
    settings = {setting.name for setting in SETTINGS}
    secrets = {setting.name for setting in SETTINGS if setting.secret}
    files = {f"{name}_FILE" for name in secrets}
    named = set(re.findall(rf"\b{PREFIX}[A-Z_]+", PAGE))
    assert settings <= named <= settings | files | {f"{PREFIX}IMAGE"}
    rows = table((SECURITY / "keys.md").read_text("utf-8"), "Secret")
    assert all(any(name in row[0] for row in rows) for name in secrets)


def test_time_outs_are_those_of_the_code():
    source = SourceConfig("sql", Mark("", 1, 1), ZoneInfo("UTC"))
    defaults = {setting.field: setting.default for setting in SETTINGS}
    config = (ROOT / "app" / "server" / "config.py").read_text("utf-8")
    server = dict(re.findall(r"^([a-z_]+) = (\d+)$", config, re.MULTILINE))
    seconds = [
        source.timeout_seconds,
        source.count_timeout_seconds,
        source.wait_seconds,
        CONNECT_SECONDS,
        _CONNECT_SECONDS,
        source.lifetime_seconds,
        PAUSE_SECONDS,
        REDIS_SECONDS,
        TURN_SECONDS,
        defaults["identity_timeout_seconds"],
        defaults["request_seconds"],
        server["timeout"],
        server["graceful_timeout"],
    ]
    rows = table(section(PAGE, "Time-outs"), "What")
    assert [float(row[1].split(",")[0]) for row in rows] == [*map(float, seconds)]
    assert f"the service keeps them for {server['keepalive']}" in " ".join(PAGE.split())
    each = source.connections + COUNTS
    assert f"2 × ({source.connections} + {COUNTS}) = {2 * each} an instance" in PAGE


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_an_account_of_mariadb_made_as_the_page_says_only_reads(server):
    server.run("CREATE DATABASE pas", "CREATE TABLE pas.sejour (sejour_id INT)")
    _, shown, *_ = blocks(section(PAGE, "The database account"), "sql")
    try:
        server.run(*filter(None, shown.text.replace("\n", "").split(";")))
        url = make_url(server.url("pas", "encounters")).set(password="secret")
        address = url.render_as_string(hide_password=False)
        with closing(Database(address, 5, 1)) as database:
            assert database.write_grant() == ""
    finally:
        server.run("DROP DATABASE pas", "DROP USER IF EXISTS encounters")


def test_the_access_line_is_a_real_one(demo):
    searched = f"{demo.base_url}/Encounter?patient=5&_count=1"
    assert get(searched, offline_token(demo.directory)).status_code == 200
    log = (demo.directory / "service.log").read_text("utf-8").splitlines()
    lines = [json.loads(line) for line in log if line.startswith("{")]
    real = next(line for line in lines if line["logger"] == "app.access")
    (access,) = blocks(section(PAGE, "Log lines"), "json")
    assert list(real) == list(json.loads(access.text))


def test_metrics_of_the_table_are_those_of_the_code():
    rows = table(section(PAGE, "Probes"), "Metric")
    metrics = {}
    for metric in {**vars(instrumentation), **vars(observability)}.values():
        if isinstance(metric, MetricWrapperBase):
            ending = "_total" if isinstance(metric, Counter) else ""
            metrics[metric._name + ending] = ", ".join(metric._labelnames)
    assert {row[0]: row[2] for row in rows} == metrics


def test_events_of_the_table_are_those_of_the_code():
    events = {row[0] for row in table(section(PAGE, "Log lines"), "Logger and event")}
    for entry in events - {"app.access request"}:
        logger, event = entry.split(maxsplit=1)
        module = ROOT.joinpath(*logger.split(".")).with_suffix(".py")
        assert f'"{event}"' in module.read_text("utf-8"), entry
    events.add("app.error_responses request failed")
    logged = re.compile(r"_log\.(?:info|warning|error)\(\s*\"([^\"]+)\"")
    for module in (ROOT / "app").rglob("*.py"):
        name = ".".join(module.relative_to(ROOT).with_suffix("").parts)
        for event in logged.findall(module.read_text("utf-8")):
            assert f"{name} {event}" in events


def test_the_runbook_has_every_alert_and_commands_that_can_be_typed():
    runbook = (RUN / "runbook.md").read_text("utf-8")
    alerts = (ROOT / "deploy" / "monitoring" / "alerts.yaml").read_text("utf-8")
    (group,) = yaml.safe_load(alerts)["groups"]
    named = re.findall(r"`(Encounters[A-Z]\w+)`", runbook)
    assert set(named) == {rule["alert"] for rule in group["rules"]}
    commands = re.findall(r"^ *encounters (.*)$", runbook, re.MULTILINE)
    assert len(commands) > 2
    for line in commands:
        typed = shlex.split(line, comments=True)
        command, context = cli, None
        while isinstance(command, click.Group):
            context = click.Context(command, context, **command.context_settings)
            command = command.get_command(context, typed.pop(0))
        command.make_context(line, typed, context)


# ---- docs/run/security


def test_each_flow_has_tests_for_every_kind_of_threat():
    model = (SECURITY / "threat-model.md").read_text("utf-8")
    tests = yaml.safe_load((ROOT / "tests/docs/threats.yaml").read_text("utf-8"))
    assert {row[0].split(":")[0] for row in table(model, "Flow")} == set(tests)
    kinds = ["Spoofing", "Tampering", "Repudiation", "Disclosure"]
    kinds += ["Denial of service", "Elevation"]
    for flow, by_kind in tests.items():
        assert list(by_kind) == kinds, flow
        for kind, files in by_kind.items():
            assert files, (flow, kind)
            for file, names in files.items():
                code = (ROOT / file).read_text("utf-8")
                gone = [name for name in names if f"def {name}(" not in code]
                assert not gone, f"tests/docs/threats.yaml: {flow}, {kind}, {file}"


@pytest.mark.system
@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")
def test_the_commands_find_who_saw_whom(redis_server, tmp_path):
    """The blocks of the page, typed as they stand but for directories and the patient."""
    audit = tmp_path / "audit.jsonl"
    (tmp_path / "audit_key").write_text("a" * 44 + "\n")
    settings = {"AUDIT": str(audit), "AUDIT_KEY": "a" * 44}
    served = serve(EDGES, tmp_path, redis_server.url, **settings)
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        publish_keys(mock)
        ward, reporting = (served.as_client(name) for name in ("ward", "reporting"))
        ward.get("Patient/12")
        (tmp_path / "audit.jsonl.1.gz").write_bytes(gzip.compress(audit.read_bytes()))
        audit.unlink()
        first = reporting.search("Encounter", {"_count": "5"})
        pages = [first, reporting.follow(first, "next")]
    shown = {
        entry["resource"]["subject"]["reference"]
        for page in pages
        for entry in page["entry"]
        if entry["search"]["mode"] == "match"
    }
    assert len(shown) > 2
    (tmp_path / "ids").write_text("".join(f"{n}\n" for n in range(100)))
    page = (SECURITY / "breach.md").read_text("utf-8")
    script = "\n".join(block.text for block in blocks(page, "sh"))
    for written, meant in (
        ("/var/log/encounters", str(tmp_path)),
        ("/etc/encounters", str(tmp_path)),
        ("/opt/encounters/bin/python", sys.executable),
        ("Patient/170", "Patient/12"),
        ("encounters audit", f"{sys.executable} -m app.cli audit"),
    ):
        script = script.replace(written, meant)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    patients = (tmp_path / "patients").read_text().split()
    assert {f"Patient/{id}" for id in patients} == shown
    assert re.search(r"^ *2\t?.*reporting", done.stdout, re.MULTILINE)
    assert re.search(r" ward .* Patient/12 ", done.stdout)
