"""docs/run says what the service does with its settings, its database and its log."""

import ast
import json
import re
from collections.abc import Iterator
from configparser import ConfigParser
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
from adapters.sql.dialects import MODULES
from adapters.sql.dialects.base import CONNECT_SECONDS
from adapters.sql.engine import COUNTS, Database
from app import auth as introspection
from app import observability
from app.audit import TURN_SECONDS
from app.config import PREFIX, SETTINGS, Need
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


def test_settings_of_the_page_are_those_of_the_service() -> None:
    text = section(PAGE, "Settings")
    rows = [
        row
        for need in Need
        for row in table(text.partition(f"## {need}")[2], "Variable")
    ]
    settings = {setting.name: setting.secret for setting in SETTINGS}
    assert {row[0]: row[1].startswith("Secret. ") for row in rows} == settings
    files = {f"{name}_FILE" for name, is_secret in settings.items() if is_secret}
    compose = {f"{PREFIX}IMAGE"}
    named = set(re.findall(rf"\b{PREFIX}[A-Z_]+", PAGE))
    assert named <= settings.keys() | files | compose


def test_every_kind_of_database_is_in_the_table_and_has_its_extra() -> None:
    addresses = [row[1] for row in table(PAGE, "Database")]
    assert {address.partition(":")[0] for address in addresses} == set(MODULES)
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    # The driver of SQLite is part of Python.
    drivers = set(MODULES.values()) - {"sqlite"}
    assert drivers <= set(setup["options.extras_require"])


def test_every_variable_that_the_code_reads_by_its_name_is_on_the_page() -> None:
    modules = [m for name in ("app", "adapters") for m in (ROOT / name).rglob("*.py")]
    read = {
        name for module in modules for name in _variables(module.read_text("utf-8"))
    }
    assert {"GUNICORN_CMD_ARGS", "PROMETHEUS_MULTIPROC_DIR"} <= read
    assert {name for name in read if f"`{name}`" not in PAGE} == set()


def _variables(code: str) -> Iterator[str]:
    """Yield the names of variables that are read or set by a text or a constant."""
    for key in re.findall(r"os\.environ(?:\.get\(|\[)\s*([^,\])]+)", code):
        constant = re.search(rf"^{re.escape(key)}\b.*? = (.+)$", code, re.MULTILINE)
        text = (constant[1] if constant else key).replace("{PREFIX}", PREFIX)
        yield from re.findall(r'"([A-Z]+_[A-Z_]+)"', text)


def test_the_scopes_of_the_example_are_read() -> None:
    (shown,) = blocks(section(PAGE, "Tokens, scopes and rate limits"), "ini")
    _, _, text = shown.text.strip().partition("=")
    (scopes,) = [setting for setting in SETTINGS if setting.field == "scopes"]
    read = scopes.kind.read(text)
    assert isinstance(read, dict)
    assert read["STAY_READER"] == {"ENCOUNTER_READ"}
    assert len(read["PATIENT_GAM_SEARCH"]) == 5


def test_time_outs_are_those_of_the_code() -> None:
    source = SourceConfig("sql", Mark("", 1, 1), ZoneInfo("UTC"))
    (identity,) = [s for s in SETTINGS if s.field == "identity_timeout_seconds"]
    (waiting,) = [s for s in SETTINGS if s.field == "request_seconds"]
    server = _constants(ROOT / "app" / "server" / "config.py")
    seconds = [
        source.timeout_seconds,
        source.count_timeout_seconds,
        source.timeout_seconds,
        source.count_timeout_seconds,
        CONNECT_SECONDS,
        source.lifetime_seconds,
        _CONNECT_SECONDS,
        source.wait_seconds,
        PAUSE_SECONDS,
        REDIS_SECONDS,
        TURN_SECONDS,
        float(identity.default or 0),
        introspection.WAIT_SECONDS,
        server["timeout"],
        server["graceful_timeout"],
        float(waiting.default or 0),
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


def test_accounts_of_the_page_may_read_what_the_mappings_name_and_no_more() -> None:
    for title, mapping in (
        (ACCOUNT, "demo/demo.yaml"),
        ("Groups A and B", "group-b/group-b.yaml"),
    ):
        shown, *_ = blocks(section(PAGE, title), "sql")
        granted = re.findall(r"GRANT SELECT ON (.*?) TO", shown.text, re.DOTALL)[0]
        text = (ROOT / "mappings" / mapping).read_text("utf-8")
        named = re.findall(r"\b(?:FROM|JOIN) (\w+)", text)
        assert set(re.findall(r"\w+", granted)) == set(named)
    texts = [block.text for block in blocks(section(PAGE, ACCOUNT), "sql")]
    given = {
        right for text in texts for right in re.findall(r"GRANT (.+?) (?:ON|TO) ", text)
    }
    assert given == {"USAGE", "SELECT", "CREATE SESSION", "READ"}


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


def test_what_is_a_groups_own_is_in_its_files() -> None:
    rows = table(section(PAGE, "Groups A and B"), "What")
    told = {name for row in rows for name in re.findall(rf"{PREFIX}[A-Z_]+", row[0])}
    for file in (ROOT / "mappings").glob("group-*/*.env"):
        given = re.findall(rf"^({PREFIX}\w+)=", file.read_text("utf-8"), re.MULTILINE)
        assert set(given) == told | {f"{PREFIX}TRUSTED_PROXIES"}, file


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
