"""Readiness: what turns it off, what does not, and that a probe asks nobody anything."""

import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
import responses
import sqlalchemy as sa

from adapters import open_adapter
from adapters.mapping.load import load_mapping
from adapters.testing.stays import EDGES
from app.auth import key_source
from app.operations.audit_sinks import FileSink
from app.operations.readiness import (
    Readiness,
    Watch,
    audit_probe,
    identity_probe,
    redis_probe,
    source_probe,
)
from app.timed_redis import connect
from tests.app import provider
from tests.app.operations.family import beside
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, ROOT, free_ports, wait_until
from tests.redis_server import RedisServer


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
    watch = Watch({"source": source_probe(adapter)}, 60)
    assert watch.look().ready
    change("ALTER TABLE stays RENAME COLUMN visit TO venue")
    assert not watch.look().ready
    assert not watch.look().ready
    told = [r.data["problem"] for r in caplog.records if r.getMessage() == "not ready"]  # type: ignore[attr-defined]
    assert len(told) == 1
    assert "visit" in told[0]
    assert str(hospital) in told[0]
    change("ALTER TABLE stays RENAME COLUMN venue TO visit")
    assert watch.look().ready
    assert caplog.records[-1].getMessage() == "ready again"
    adapter.close()


def test_a_source_that_is_away_is_told_once(hospital: Path) -> None:
    adapter = open_adapter(load_mapping(hospital, os.environ))
    file = Path(os.environ["PAS_URL"].removeprefix("sqlite:///"))
    file.rename(file.with_suffix(".away"))
    (problem,) = source_probe(adapter)()
    assert "connection" in problem
    adapter.close()


def test_before_the_first_look_nothing_is_ready() -> None:
    assert not Watch({"source": lambda: ()}, 60).seen.ready
    assert not Readiness({"redis": ()}).ready


def test_an_audit_file_that_cannot_be_written_turns_readiness_off(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "audit"
    folder.mkdir()
    watch = Watch({"audit": audit_probe(FileSink(folder / "audit.jsonl"))}, 60)
    assert watch.look().ready
    folder.rename(tmp_path / "away")
    assert watch.look().problems["audit"] == (
        "the audit file cannot be written (No such file or directory)",
    )
    assert not watch.seen.ready
    folder.mkdir()
    assert watch.look().ready


def test_redis_away_is_told_and_not_counted() -> None:
    away = connect(f"redis://{HOST}:{free_ports()}/0")
    watch = Watch({"source": lambda: (), "redis": redis_probe(away)}, 60)
    seen = watch.look()
    assert seen.ready
    assert seen.body()["parts"]["redis"] == {  # type: ignore[index]
        "ready": False,
        "problems": ["does not answer (ConnectionError)"],
    }


def test_keys_once_had_are_enough(hospital: Path) -> None:
    settings = provider.settings(mapping=hospital, key_set_seconds="10")
    now = [0.0]
    keys = key_source(settings, lambda: now[0])
    assert keys is not None
    look = identity_probe(keys)
    with responses.RequestsMock() as asked:
        asked.get(provider.KEY_SET_URL, status=503)
        (problem,) = look()
        assert problem == "no key set has been fetched: no token can be checked"
    now[0] += 100
    with responses.RequestsMock() as asked:
        asked.get(provider.KEY_SET_URL, json=provider.key_set(provider.rsa()))
        assert look() == ()
    now[0] += 1000
    with responses.RequestsMock() as asked:
        asked.get(provider.KEY_SET_URL, status=503)
        assert look() == ()
        provider.settle()


# ------------------------------------------------------------------ a real process


class Running(NamedTuple):
    """A service: its process, its operations port, its log."""

    pid: int
    port: int
    log: Path


@pytest.fixture
def served(
    hospital: Path, redis_server: RedisServer, tmp_path: Path
) -> Iterator[Running]:
    """Serve the hospital."""
    first, log = free_ports(2), tmp_path / "log"
    environ = provider.environ(
        hospital,
        BIND=f"{HOST}:{first}",
        OPERATIONS_BIND=f"{HOST}:{first + 1}",
        WATCH_SECONDS="5",
        WORKERS="1",
        REDIS_URL=redis_server.url,
    )
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "serve"],
            cwd=ROOT,
            env={**os.environ, **environ},
            stderr=file,
        )
    try:
        wait_until(lambda: asked(first + 1, "/live")[0] == 200, log)
        yield Running(process.pid, first + 1, log)
    finally:
        children = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        assert process.wait(60) == 0
        _, alive = psutil.wait_procs(children, 60)
        assert not alive


def asked(port: int, path: str) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(
            f"http://{HOST}:{port}{path}", timeout=60
        ) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
    except OSError:
        return 0, {}


def parts_ready(port: int) -> dict[str, float]:
    """Return what `/metrics` says of each part."""
    with urllib.request.urlopen(f"http://{HOST}:{port}/metrics", timeout=60) as answer:
        told = answer.read().decode()
    found = re.findall(r'^encounters_part_ready\{part="(\w+)"\} (\S+)$', told, re.M)
    return {part: float(value) for part, value in found}


def test_the_operations_process_tells_what_it_sees(
    served: Running,
) -> None:
    _, port, log = served
    # The provider of these tests is not there: no token can be checked.
    wait_until(lambda: bool(asked(port, "/ready")[1].get("parts")), log)
    fine = {"source": 1, "redis": 1, "mapping": 1, "guard": 1, "counts": 1}
    assert parts_ready(port) == {**fine, "identity": 0}
    status, body = asked(port, "/ready")
    assert status == 503
    parts = body["parts"]
    assert isinstance(parts, dict)
    assert parts["source"] == parts["redis"] == {"ready": True, "problems": []}
    assert parts["identity"]["ready"] is False
    change("ALTER TABLE stays RENAME COLUMN visit TO venue")

    def told() -> bool:
        found = asked(port, "/ready")[1]["parts"]
        assert isinstance(found, dict)
        return not found["source"]["ready"]

    wait_until(told, log)
    wait_until(lambda: not parts_ready(port)["source"], log)
    assert asked(port, "/live") == (200, {"live": True})
    assert asked(port, "/fhir/v3/metadata")[0] == 404
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert any("visit" in line.get("problem", "") for line in lines)


def test_the_operations_process_is_started_again(served: Running) -> None:
    pid, port, log = served

    (first,) = beside(pid)
    first.kill()
    wait_until(lambda: first not in beside(pid) and len(beside(pid)) == 1, log, 60)
    wait_until(lambda: asked(port, "/live")[0] == 200, log, 60)


def test_an_operations_port_that_is_taken_is_one_line_of_the_log(
    hospital: Path, redis_server: RedisServer
) -> None:
    with socket.create_server((HOST, 0)) as other:
        environ = provider.environ(
            hospital,
            OPERATIONS_BIND=f"{HOST}:{other.getsockname()[1]}",
            REDIS_URL=redis_server.url,
        )
        ended = subprocess.run(
            [sys.executable, "-c", "from app.operations.endpoints import main; main()"],
            cwd=ROOT,
            env={**os.environ, **environ},
            capture_output=True,
            timeout=60,
            check=True,
        )
    (line,) = [json.loads(text) for text in ended.stderr.splitlines()]
    assert (line["logger"], line["event"], line["reason"]) == (
        "app.operations.endpoints",
        "operations port not taken",
        "Address already in use",
    )
