"""SIGHUP loads a mapping that has passed, and no other; SIGTERM finishes what is under way."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest
from werkzeug.wrappers import Request

from adapters.mapping.kept import SUFFIX
from adapters.testing.stays import EDGES
from tests.app.operations.running import PATIENCE, Running, running
from tests.hospital_http import Api, serving
from tests.hospital_http_mapping import OFFSET, http_mapping_text
from tests.hospital_sql import Tables, mapping_text
from tests.live import listens
from tests.redis_server import RedisServer

SHARED = Path("/dev/shm")
REFUSED = "refused; the one before is served"


@pytest.fixture
def mapping(tmp_path: Path) -> Path:
    """Return a mapping that extends another and names a profile beside it."""
    (tmp_path / "ours.yaml").write_text(
        "profile: ours\npaging: true\nencounter: {patient: {}, _count: {}}\n", "utf-8"
    )
    base = mapping_text(EDGES).replace("profile: full", "profile: ours.yaml")
    (tmp_path / "base.yaml").write_text(base, "utf-8")
    file = tmp_path / "hospital.yaml"
    file.write_text("mapping: 1\nextend: base.yaml\nname: First\n", "utf-8")
    return file


@pytest.fixture
def service(
    mapping: Path, tmp_path: Path, redis_server: RedisServer
) -> Iterator[Running]:
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    with running(
        tmp_path, mapping, {"PAS_URL": url}, REDIS_URL=redis_server.url
    ) as service:
        yield service
    assert not [
        each for each in SHARED.glob("encounters-run-*") if serves(each, mapping)
    ]


def name(service: Running) -> str:
    return str(service.get("metadata").json["implementation"]["description"])


def next_page(service: Running) -> str:
    """Begin a walk and return the link to its second page."""
    bundle: Any = service.get("Encounter?_count=1").json
    (link,) = [each["url"] for each in bundle["link"] if each["relation"] == "next"]
    return str(link)


def hang_up(service: Running) -> None:
    service.process.send_signal(signal.SIGHUP)


def family(service: Running) -> list[psutil.Process]:
    master = psutil.Process(service.process.pid)
    return [master, *service.workers(), *service.beside()]


def commands(service: Running) -> set[tuple[str, ...]]:
    """Return how its processes were started, nothing while one of them ends."""
    try:
        return {tuple(each.cmdline()) for each in family(service)}
    except psutil.NoSuchProcess:
        return set()


def counting(mapping: Path) -> set[int]:
    """Return the processes that have counted for the service of a mapping file."""
    counts = (shared_of(mapping) / "counts").glob("*.db")
    return {int(each.stem.rpartition("_")[2]) for each in counts}


def shared_of(mapping: Path) -> Path:
    (shared,) = (
        each for each in SHARED.glob("encounters-run-*") if serves(each, mapping)
    )
    return shared


def serves(shared: Path, mapping: Path) -> bool:
    # Another test's may be taken away meanwhile.
    with suppress(FileNotFoundError):
        return (shared / "file").read_text("utf-8") == str(mapping)
    return False


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


def test_a_mapping_that_passes_is_loaded_and_walks_go_on(
    service: Running, mapping: Path
) -> None:
    assert name(service) == "First"
    link = next_page(service)
    change(mapping, "First", "Second")
    assert name(service) == "First"
    before = family(service)
    hang_up(service)
    service.until(lambda: name(service) == "Second")
    assert service.events("mapping passed")
    assert service.get(link).status == 200
    # All are forks of the one process that has read the code.
    service.until(lambda: commands(service) == {tuple(service.process.args)})
    # What checked the mapping has left no counts.
    known = {each.pid for each in before + family(service)}
    assert counting(mapping) <= {0, *known}


def test_a_walk_ends_where_its_rows_are_others(service: Running, mapping: Path) -> None:
    link = next_page(service)
    change(mapping.with_name("base.yaml"), "FROM stays s LEFT", "FROM stays s  LEFT")
    change(mapping, "First", "Second")
    hang_up(service)
    service.until(lambda: name(service) == "Second")
    assert service.get(link).status == 410
    assert next_page(service)


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("hospital.yaml", "name:", "nmae:", "'nmae' is not a key"),
        ("base.yaml", "from: began", "from: begun", "begun"),
        ("ours.yaml", "paging: true", "paging: perhaps", "paging"),
    ],
    ids=["the file", "a column of the base", "the profile"],
)
def test_a_mapping_that_is_refused_changes_nothing(
    service: Running, mapping: Path, file: str, old: str, new: str, problem: str
) -> None:
    workers = service.workers()
    link = next_page(service)
    change(mapping.with_name(file), old, new)
    hang_up(service)
    service.until(lambda: service.events("mapping refused"))
    service.until(lambda: not (service.part("mapping") or {"ready": True})["ready"])
    first, *told = service.part("mapping")["problems"]
    assert first == REFUSED
    assert any(problem in text and str(mapping.parent) in text for text in told)
    assert service.events("mapping refused")[0]["problems"] == told
    assert service.workers() == workers
    # A worker that comes new meets the last one that passed.
    for worker in workers:
        worker.kill()
    service.until(lambda: not set(workers) & set(service.workers()))
    service.until(lambda: service.get("metadata").status == 200)
    assert name(service) == "First"
    assert service.get(link).status == 200
    change(mapping.with_name(file), new, old)
    hang_up(service)
    service.until(lambda: service.part("mapping") == {"ready": True, "problems": []})


def test_files_that_go_are_not_missed(service: Running, mapping: Path) -> None:
    for file in mapping.parent.glob("*.yaml"):
        file.unlink()
    (worker,) = service.workers()
    worker.kill()
    service.until(lambda: worker not in service.workers())
    service.until(lambda: service.get("metadata").status == 200)
    assert name(service) == "First"
    hang_up(service)
    service.until(lambda: service.events("mapping refused"))
    assert name(service) == "First"


def test_what_is_under_way_is_finished_and_nothing_new_is_taken(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    asked, goes_on = Event(), Event()
    id = EDGES.stays[0].id

    def slow(request: Request) -> None:
        # Probes ask of stays too, but of none in particular.
        if request.path.endswith(f"/{id}"):
            asked.set()
            assert goes_on.wait(PATIENCE)

    mapping = tmp_path / "hospital.yaml"
    text = http_mapping_text(EDGES, paging=OFFSET).replace(
        "url: {env: PAS_URL}", "url: {env: PAS_URL}, timeout_seconds: 60"
    )
    mapping.write_text(
        text.replace("timeout_seconds: 2", "timeout_seconds: 60"), "utf-8"
    )
    with (
        serving(Api(EDGES, strange=slow)) as url,
        running(
            tmp_path, mapping, {"PAS_URL": url}, REDIS_URL=redis_server.url
        ) as service,
        ThreadPoolExecutor(1) as threads,
    ):
        children = psutil.Process(service.process.pid).children(recursive=True)
        answer = threads.submit(service.get, f"Encounter/{id}")
        assert asked.wait(PATIENCE)
        service.process.send_signal(signal.SIGTERM)
        service.until(lambda: not listens(service.port))
        assert not answer.done()
        goes_on.set()
        assert answer.result(PATIENCE).status == 200
        assert service.process.wait(PATIENCE) == 0
        _, alive = psutil.wait_procs(children, PATIENCE)
        assert not alive


def test_what_looks_after_readiness_is_started_again_when_it_fails(
    service: Running, mapping: Path
) -> None:
    (first,) = service.beside()
    kept = shared_of(mapping) / f"mapping{SUFFIX}"
    service.until(lambda: service.operations("/ready").status == 200)
    away = kept.rename(kept.with_name("away"))
    first.send_signal(signal.SIGHUP)
    service.until(lambda: service.events("operations process fails"))
    assert service.events("operations process fails")[0]["error"]["type"] == (
        "builtins.FileNotFoundError"
    )
    away.rename(kept)
    service.until(lambda: first not in service.beside())
    service.until(lambda: service.operations("/ready").status == 200)
    assert service.events("operations process ended: it is started again")


def test_a_refusal_that_cannot_be_kept_ends_nothing(
    service: Running, mapping: Path
) -> None:
    # As where there is no more room.
    (shared_of(mapping) / "refused").symlink_to("/nowhere/refused")
    change(mapping, "First", "")
    hang_up(service)
    service.until(lambda: service.events("mapping refused"))
    hang_up(service)
    service.until(lambda: len(service.events("mapping refused")) == 2)
    assert name(service) == "First"
