"""While a new mapping is being checked, the service is looked after as at other times."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import NamedTuple, TextIO

import psutil
import pytest
from werkzeug.wrappers import Request

from adapters.testing.stays import EDGES
from tests.app.operations.running import PATIENCE, Running, running
from tests.hospital_http import Api, serving
from tests.hospital_http_mapping import OFFSET, http_mapping_text
from tests.live import listens
from tests.redis_server import RedisServer

STAY = EDGES.stays[0].id


class Slow:
    """An API that answers one read when it is told to."""

    def __init__(self) -> None:
        self.asked, self.goes_on = Event(), Event()

    def __call__(self, request: Request) -> None:
        # Probes ask of stays too, but of none in particular.
        if request.path.endswith(f"/{STAY}"):
            self.asked.set()
            assert self.goes_on.wait(PATIENCE)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def mapping(tmp_path: Path) -> Path:
    text = http_mapping_text(EDGES, paging=OFFSET).replace(
        "url: {env: PAS_URL}", "url: {env: PAS_URL}, timeout_seconds: 60"
    )
    text = text.replace("timeout_seconds: 2", "timeout_seconds: 60")
    (tmp_path / "base.yaml").write_text(text, "utf-8")
    file = tmp_path / "hospital.yaml"
    file.write_text(named("First"), "utf-8")
    return file


@pytest.fixture
def service(
    tmp_path: Path, mapping: Path, slow: Slow, redis_server: RedisServer
) -> Iterator[Running]:
    with (
        serving(Api(EDGES, strange=slow)) as url,
        running(
            tmp_path, mapping, {"PAS_URL": url}, REDIS_URL=redis_server.url
        ) as started,
    ):
        yield started


def named(name: str) -> str:
    return f"mapping: 1\nextend: base.yaml\nname: {name}\n"


def name(service: Running) -> str:
    return str(service.get("metadata").json["implementation"]["description"])


class UnderWay(NamedTuple):
    """A check that goes on until what it reads has been written and closed."""

    process: psutil.Process
    text: TextIO


@pytest.fixture
def check(service: Running, mapping: Path) -> Iterator[UnderWay]:
    """Begin a check, and return when it has the file open."""
    mapping.unlink()
    os.mkfifo(mapping)
    known = set(children(service))
    service.process.send_signal(signal.SIGHUP)
    service.until(lambda: set(children(service)) - known)
    (process,) = set(children(service)) - known
    opened: list[int] = []

    def is_read() -> bool:
        # As long as nobody reads it, nobody may write either.
        with suppress(OSError):
            opened.append(os.open(mapping, os.O_WRONLY | os.O_NONBLOCK))
        return bool(opened)

    service.until(is_read)
    with os.fdopen(opened[0], "w", encoding="utf-8") as text:
        yield UnderWay(process, text)


def children(service: Running) -> list[psutil.Process]:
    return psutil.Process(service.process.pid).children()


def test_the_service_is_stopped_as_at_other_times(
    service: Running, check: UnderWay, slow: Slow
) -> None:
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(service.get, f"Encounter/{STAY}")
        assert slow.asked.wait(PATIENCE)
        service.process.send_signal(signal.SIGTERM)
        # The check, too, has let go of the port.
        service.until(lambda: not listens(service.port))
        assert check.process.is_running()
        slow.goes_on.set()
        assert answer.result(PATIENCE).status == 200
    # A check may go on for as long as we are patient.
    assert service.process.wait(PATIENCE / 2) == 0
    assert not check.process.is_running()


def test_a_worker_that_ends_is_replaced(service: Running, check: UnderWay) -> None:
    (worker,) = set(service.workers()) - {check.process}
    worker.kill()
    service.until(lambda: not worker.is_running())
    service.until(lambda: service.get("metadata").status == 200)
    assert check.process.is_running()
    assert name(service) == "First"


def test_what_was_written_meanwhile_is_checked_too(
    service: Running, mapping: Path, check: UnderWay
) -> None:
    mapping.unlink()
    mapping.write_text(named("Third"), "utf-8")
    for _ in range(3):
        service.process.send_signal(signal.SIGHUP)
    assert check.process.is_running()
    check.text.write(named("Second"))
    check.text.close()
    service.until(lambda: name(service) == "Third")
    service.until(lambda: len(service.events("mapping passed")) == 2)


def test_a_check_that_is_killed_changes_nothing(
    service: Running, check: UnderWay
) -> None:
    check.process.kill()
    service.until(lambda: service.events("mapping refused"))
    (told,) = service.events("mapping refused")[0]["problems"]
    assert told.startswith("the check ended ")
    assert name(service) == "First"
