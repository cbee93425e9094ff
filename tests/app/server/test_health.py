"""Readiness, the limit on requests, and which address answers what; within this process."""

import sqlite3
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
from prometheus_client import REGISTRY
from werkzeug.test import Client

from adapters import open_adapter
from adapters.instrumentation import SOURCE_HELD_BACK
from adapters.mapping.load import load_mapping
from app import create_app
from app.errors import UnavailableError
from app.middleware import STUCK_SECONDS, RequestLimit
from app.server import health
from app.server.checks import (
    ServiceCheck,
    Status,
    check_room,
    check_source,
    checks_of,
    error,
    warning,
)
from app.server.health import Watch, WorkerApplication
from app.service import EXTENSION
from tests.app import provider
from tests.app.server.running import edges

# ---- readiness


@pytest.fixture(autouse=True)
def no_breaker_is_open():
    """Forget the sources of other tests of this process."""
    SOURCE_HELD_BACK.clear()


@pytest.fixture
def hospital(tmp_path):
    """Return the mapping of a hospital whose tables a test may change."""
    return edges(tmp_path)


def rename_column(hospital, old, new):
    with sqlite3.connect(hospital.with_name("pas.db")) as connection:
        connection.execute(f"ALTER TABLE stays RENAME COLUMN {old} TO {new}")
    connection.close()


def test_a_column_that_goes_turns_readiness_off_and_is_named(hospital, caplog):
    adapter = open_adapter(load_mapping(hospital, {}))
    watch = Watch([ServiceCheck("source", partial(check_source, adapter))])
    assert not watch.body()["ready"], "nothing has been checked"
    assert watch.look()
    rename_column(hospital, "visit", "venue")
    assert not watch.look()
    assert not watch.look()
    events = [r for r in caplog.records if r.getMessage() == "not ready"]
    (problem,) = [r.data["problem"] for r in events]  # type: ignore[attr-defined]
    assert "visit" in problem
    assert str(hospital) in problem
    rename_column(hospital, "venue", "visit")
    assert watch.look()
    assert caplog.records[-1].getMessage() == "ready again"
    assert REGISTRY.get_sample_value("encounters_part_ready", {"part": "source"}) == 1
    adapter.close()


def test_an_adapter_that_raises_is_a_problem_without_its_words():
    def check():
        raise KeyError("CANARY")

    adapter = SimpleNamespace(check=check)
    watch = Watch([ServiceCheck("source", partial(check_source, adapter))])
    assert not watch.look()
    ((problem,),) = watch.problems.values()
    assert "CANARY" not in problem


def test_parts_that_are_optional_are_reported_alone(hospital):
    audit = {"AUDIT": str(hospital.with_name("audit.jsonl")), "AUDIT_KEY": "k" * 44}
    settings = provider.settings(hospital, **audit)
    service = create_app(settings).extensions[EXTENSION]
    checks = {c.name: c for c in health.checks_of_worker(settings, service, ())}
    required = {name for name, check in checks.items() if check.required}
    assert required == {"source", "identity", "audit"}
    assert {*checks} - required == {"redis", "mapping", "guard", "counts"}
    for failed in (None, *checks):
        results = {failed: [error("away")], "counts": [warning("nearly")]}
        watch = Watch(
            replace(check, run=partial(results.get, name, []))
            for name, check in checks.items()
        )
        watch.look()
        body = watch.body()
        assert body["ready"] is (failed not in required), failed
        if failed not in (None, "counts"):
            assert body["parts"][failed] == {"ready": False, "problems": ["away"]}
    counted = provider.settings(hospital, **audit, AUDIT_FAILURE="count")
    (trail,) = [c for c in checks_of(counted, None) if c.name == "audit"]
    assert not trail.required


def test_what_runs_short_is_reported(tmp_path):
    for least, scant, status in (
        (0, 0, "ok"),
        (0, 2**62, "warning"),
        (2**62, 0, "error"),
    ):
        (result,) = check_room(tmp_path, "metrics", least=least, scant=scant)
        assert result.status is Status(status)
    SOURCE_HELD_BACK.labels("south").set(1)
    (breaker,) = health.check_breakers()
    assert "south" in breaker.text
    problems = [result.text for result in health.check_refused(("a.yaml:1:1: wrong",))]
    assert problems[1:] == ["a.yaml:1:1: wrong"]


# ---- the limit on requests


def test_a_worker_is_stuck_when_nothing_ends_for_a_minute(clock):
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


UNIX = "unix:/run/encounters/operations.sock"


ARRIVALS = (
    ("0.0.0.0:9000", ("192.0.2.1", 9000), True),
    (UNIX, UNIX.removeprefix("unix:"), True),
    ("0.0.0.0:9000", ("192.0.2.1", 8000), False),
    (UNIX, ("192.0.2.1", 9000), False),
    (None, ("192.0.2.1", 9000), False),
)


def test_the_address_decides_what_is_answered(hospital):
    for bind, address, is_probe in ARRIVALS:
        settings = provider.settings(hospital, OPERATIONS_BIND=bind)
        connection = SimpleNamespace(getsockname=lambda address=address: address)
        client = Client(WorkerApplication(create_app(settings), settings))
        environ = {"gunicorn.socket": connection, "SERVER_PORT": "9000"}
        live = client.get("/live", environ_overrides=environ).get_json(force=True)
        assert (live == {"live": True}) is is_probe, (bind, address)
        assert (live.get("resourceType") == "OperationOutcome") is not is_probe
        if is_probe:
            assert client.get("/x", environ_overrides=environ).status_code == 404
            ready = client.get("/ready", environ_overrides=environ)
            assert (ready.status_code, ready.get_json()["parts"]) == (503, {})
