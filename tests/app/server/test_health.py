"""Readiness, the limit on requests, and which address answers what; within this process."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest
import sqlalchemy as sa
from flask import Flask, request
from prometheus_client import REGISTRY
from werkzeug.test import Client

from adapters import open_adapter
from adapters.contract import SourceUnavailableError
from adapters.instrumentation import SOURCE_HELD_BACK
from adapters.mapping.load import load_mapping
from app import create_app
from app.error_responses import handle_error
from app.errors import UnavailableError
from app.middleware import STUCK_SECONDS, RequestLimit, Requests, Transport
from app.redis_client import connect
from app.server import health
from app.server.checks import (
    Check,
    Result,
    Status,
    check_audit,
    check_redis,
    check_room,
    check_source,
    checks_of,
    error,
    warning,
)
from app.server.health import Watch, Worker
from app.service import EXTENSION
from tests.app import provider
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, free_ports
from toolkit.contract.hospital import EDGES

# ---- readiness


@pytest.fixture(autouse=True)
def no_breaker_is_open() -> None:
    """Forget the sources of other tests of this process."""
    SOURCE_HELD_BACK.clear()


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the mapping of a hospital whose tables a test may change."""
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    monkeypatch.setenv("PAS_URL", url)
    file = tmp_path / "hospital.yaml"
    file.write_text(mapping_text(EDGES), encoding="utf-8")
    return file


def change(statement: str) -> None:
    engine = sa.create_engine(os.environ["PAS_URL"])
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


def test_a_column_that_goes_turns_readiness_off_and_is_named(
    hospital: Path, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = open_adapter(load_mapping(hospital, os.environ))
    watch = Watch([Check("source", partial(check_source, adapter))])
    assert not watch.body()["ready"], "nothing has been checked"
    assert watch.look()
    change("ALTER TABLE stays RENAME COLUMN visit TO venue")
    assert not watch.look()
    assert not watch.look()
    events = [r for r in caplog.records if r.getMessage() == "not ready"]
    (problem,) = [r.data["problem"] for r in events]  # type: ignore[attr-defined]
    assert "visit" in problem
    assert str(hospital) in problem
    change("ALTER TABLE stays RENAME COLUMN venue TO visit")
    assert watch.look()
    assert caplog.records[-1].getMessage() == "ready again"
    assert REGISTRY.get_sample_value("encounters_part_ready", {"part": "source"}) == 1
    adapter.close()
    file = Path(os.environ["PAS_URL"].removeprefix("sqlite:///"))
    file.rename(file.with_suffix(".away"))
    adapter = open_adapter(load_mapping(hospital, os.environ))
    assert len([*check_source(adapter)]) == 1, "not once for each section"
    adapter.close()


@pytest.mark.parametrize(
    "error", [SourceUnavailableError("The source does not answer."), KeyError("CANARY")]
)
def test_an_adapter_that_raises_is_a_problem_and_ends_no_check(
    error: Exception,
) -> None:
    class Raises:
        def check(self) -> NoReturn:
            raise error

    watch = Watch([Check("source", partial(check_source, Raises()))])  # type: ignore[arg-type]
    assert not watch.look()
    ((problem,),) = watch.problems.values()
    assert problem
    assert "CANARY" not in problem


def test_parts_that_are_optional_are_reported_alone(hospital: Path) -> None:
    def looked(checks: Mapping[str, Check], **results: Result) -> Watch:
        found = {name: [results[name]] if name in results else [] for name in checks}
        watch = Watch(
            replace(check, run=partial(list, found[name]))
            for name, check in checks.items()
        )
        watch.look()
        return watch

    audit = {"AUDIT": str(hospital.with_name("audit.jsonl")), "AUDIT_KEY": "k" * 44}
    settings = provider.settings(hospital, **audit)
    service = create_app(settings).extensions[EXTENSION]
    checks = {c.name: c for c in health.checks_of_worker(settings, service, ())}
    optional = {"redis", "mapping", "guard", "counts"}
    assert checks.keys() == {"source", "identity", "audit", *optional}
    assert looked(checks).body()["ready"]
    for name in checks:
        watch = looked(checks, **{name: error("away")})
        assert watch.body()["ready"] is (name in optional), name
        assert watch.body()["parts"][name] == {"ready": False, "problems": ["away"]}
        assert looked(checks, **{name: warning("nearly")}).body()["ready"]
    only = {name: checks[name] for name in optional}
    assert not looked(only).body()["ready"]
    counted = provider.settings(hospital, **audit, AUDIT_FAILURE="count")
    (trail,) = [c for c in checks_of(counted, None) if c.name == "audit"]
    assert not trail.required


def texts(results: Iterable[Result]) -> list[str]:
    """Return the texts of what is wrong."""
    return [result.text for result in results if result.is_wrong]


def test_each_part_is_checked(hospital: Path, tmp_path: Path) -> None:
    away = connect(f"redis://{HOST}:{free_ports()}/0")
    (text,) = texts(check_redis(away))
    assert text.startswith("stores no pages (ConnectionError)")
    assert texts(health.check_refused(())) == []
    refused = texts(health.check_refused(("a.yaml:1:1: wrong", "b")))
    assert refused[1:] == ["a.yaml:1:1: wrong", "b"]
    results = check_room(tmp_path, "metrics", least=0, scant=0)
    assert [each.status for each in results] == [Status.OK]
    results = check_room(tmp_path, "metrics", least=0, scant=2**62)
    assert [each.status for each in results] == [Status.WARNING]
    results = check_room(tmp_path, "metrics", least=2**62, scant=2**62)
    assert [each.status for each in results] == [Status.ERROR]
    assert texts(check_room(tmp_path / "nowhere", "metrics", least=0, scant=0))
    folder = tmp_path / "audit"
    folder.mkdir()
    file = folder / "audit.jsonl"
    assert not any(each.status is Status.ERROR for each in check_audit(file))
    assert not file.exists()
    folder.rename(tmp_path / "elsewhere")
    assert texts(check_audit(file))
    SOURCE_HELD_BACK.labels("south").set(1)
    (text,) = texts(health.check_breakers())
    assert "south" in text
    SOURCE_HELD_BACK.remove("south")
    assert texts(health.check_breakers()) == []


# ---- the limit on requests


@pytest.fixture
def clock() -> provider.Clock:
    return provider.Clock()


@pytest.fixture
def limited(clock: provider.Clock) -> Flask:
    """Return an application of one turn, for which one more request may wait."""
    app = Flask("limited")
    limit = RequestLimit(1, 1, 0, clock)
    local = Transport(on_loopback=True)
    app.wsgi_app = Requests(app.wsgi_app, local, limit=limit)  # type: ignore[method-assign]
    app.register_error_handler(Exception, handle_error)

    @app.get("/nested")
    def nested() -> dict[str, int]:
        """Send another request while this one has the only turn."""
        return {"inner": app.test_client().get("/fails").status_code}

    @app.get("/fails")
    def fails() -> str:
        return request.args["missing"]

    return app


def test_a_turn_is_passed_on_whatever_became_of_a_request(limited: Flask) -> None:
    http = limited.test_client()
    for _ in range(3):
        assert http.get("/fails").status_code == 400
        busy = http.get("/nested")
        assert busy.get_json() == {"inner": 503}


def test_a_worker_is_stuck_when_nothing_ends_for_a_minute(
    clock: provider.Clock,
) -> None:
    limit = RequestLimit(2, 2, 0, clock)
    clock.now += 600
    with limit.turn():
        clock.now += 600
        assert not limit.is_stuck, "a turn is free"
        with limit.turn():
            clock.now += STUCK_SECONDS - 1
            assert not limit.is_stuck
            clock.now += 1
            assert limit.is_stuck
            with pytest.raises(UnavailableError), limit.turn():
                pass
        assert not limit.is_stuck


# ---- which address answers what


class _Connection:
    def __init__(self, address: Any) -> None:
        self._address = address

    def getsockname(self) -> Any:
        return self._address


UNIX = "unix:/run/encounters/operations.sock"


ARRIVALS = (
    ("0.0.0.0:9000", ("192.0.2.1", 9000), True),
    ("[::]:9000", ("2001:db8::1", 9000, 0, 0), True),
    (UNIX, UNIX.removeprefix("unix:"), True),
    ("0.0.0.0:9000", ("192.0.2.1", 8000), False),
    ("0.0.0.0:9000", "/run/encounters/encounters.sock", False),
    (UNIX, ("192.0.2.1", 9000), False),
    (None, ("192.0.2.1", 9000), False),
)


def test_the_address_decides_what_is_answered(hospital: Path) -> None:
    for bind, address, is_probe in ARRIVALS:
        settings = provider.settings(hospital, OPERATIONS_BIND=bind)
        client = Client(Worker(create_app(settings), settings))
        environ = {"gunicorn.socket": _Connection(address), "SERVER_PORT": "9000"}
        live = client.get("/live", environ_overrides=environ).get_json(force=True)
        assert (live == {"live": True}) is is_probe, (bind, address)
        assert (live.get("resourceType") == "OperationOutcome") is not is_probe
        if is_probe:
            assert client.get("/x", environ_overrides=environ).status_code == 404
            ready = client.get("/ready", environ_overrides=environ)
            assert (ready.status_code, ready.get_json()["parts"]) == (503, {})
