"""docs/run says what the service does with its settings, its database and its log."""

import ast
import json
import re
from contextlib import closing
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
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
from app.config import PREFIX, SETTINGS
from app.redis_client import REDIS_SECONDS
from tests.demo.running import Demo, get, offline_token
from tests.docs.pages import blocks, operators, section, table, words, written
from tests.docs.update import PARTS
from tests.live import ROOT
from tests.mariadb_server import MariaServer
from tests.sets import SERVERS

PAGE = operators()
ACCOUNT = "The database account"


@pytest.mark.system
def test_generated_parts_are_up_to_date() -> None:
    for page, name, part in PARTS:
        assert written(page.read_text("utf-8"), name) == part(), (
            "run: python -m tests.docs.update"
        )


def test_settings_that_the_pages_name_are_there() -> None:
    settings = {setting.name for setting in SETTINGS}
    files = {f"{setting.name}_FILE" for setting in SETTINGS if setting.secret}
    named = set(re.findall(rf"\b{PREFIX}[A-Z_]+", PAGE))
    assert settings <= named <= settings | files | {f"{PREFIX}IMAGE"}


def test_time_outs_are_those_of_the_code() -> None:
    source = SourceConfig("sql", Mark("", 1, 1), ZoneInfo("UTC"))
    (identity,) = [s for s in SETTINGS if s.field == "identity_timeout_seconds"]
    (waiting,) = [s for s in SETTINGS if s.field == "request_seconds"]
    server = _constants(ROOT / "app" / "server" / "config.py")
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
        float(identity.default or 0),
        float(waiting.default or 0),
        server["timeout"],
        server["graceful_timeout"],
    ]
    rows = table(section(PAGE, "Time-outs"), "What")
    assert [float(row[1].split(",")[0]) for row in rows] == seconds
    assert f"the service keeps them for {server['keepalive']}" in words(PAGE)
    each = source.connections + COUNTS
    assert f"2 × ({source.connections} + {COUNTS}) = {2 * each} an instance" in PAGE


def _constants(module: Path) -> dict[str, object]:
    """Read a module that starts a server's configuration when it is imported."""
    return {
        target.id: node.value.value
        for node in ast.parse(module.read_text("utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_an_account_of_mariadb_made_as_the_page_says_only_reads(
    server: MariaServer,
) -> None:
    server.run("CREATE DATABASE pas", "CREATE TABLE pas.sejour (sejour_id INT)")
    _, shown, *_ = blocks(section(PAGE, ACCOUNT), "sql")
    try:
        server.run(*filter(None, shown.text.replace("\n", "").split(";")))
        url = make_url(server.url("pas", "encounters")).set(password="secret")
        address = url.render_as_string(hide_password=False)
        with closing(Database(address, 5, 1)) as database:
            assert database.write_grant() == ""
    finally:
        server.run("DROP DATABASE pas", "DROP USER IF EXISTS encounters")


def test_the_access_line_is_a_real_one(demo: Demo) -> None:
    searched = f"{demo.base_url}/Encounter?patient=5&_count=1"
    assert get(searched, offline_token(demo.directory)).status_code == 200
    log = (demo.directory / "service.log").read_text("utf-8").splitlines()
    written_lines = [json.loads(line) for line in log if line.startswith("{")]
    real = next(line for line in written_lines if line["logger"] == "app.access")
    (access,) = blocks(section(PAGE, "Log lines"), "json")
    assert list(real) == list(json.loads(access.text))


def test_metrics_of_the_table_are_those_of_the_code() -> None:
    rows = table(section(PAGE, "Probes"), "Metric")
    told = {row[0]: tuple(filter(None, row[2].split(", "))) for row in rows}
    kept = [
        m
        for m in {**vars(instrumentation), **vars(observability)}.values()
        if isinstance(m, MetricWrapperBase)
    ]
    assert told == {_name(each): each._labelnames for each in kept}


def _name(metric: MetricWrapperBase) -> str:
    return metric._name + "_total" * isinstance(metric, Counter)


def test_events_of_the_table_are_those_of_the_code() -> None:
    told = {row[0] for row in table(section(PAGE, "Log lines"), "Logger and event")}
    for entry in told - {"app.access request"}:
        logger, event = entry.split(maxsplit=1)
        module = ROOT.joinpath(*logger.split(".")).with_suffix(".py")
        assert f'"{event}"' in module.read_text("utf-8"), entry
    logged = re.compile(r"_log\.(?:info|warning|error)\(\s*\"([^\"]+)\"")
    for module in (ROOT / "app").rglob("*.py"):
        name = ".".join(module.relative_to(ROOT).with_suffix("").parts)
        for event in logged.findall(module.read_text("utf-8")):
            assert f"{name} {event}" in told or f"{name} {event}" == (
                "app.error_responses request failed"
            )
