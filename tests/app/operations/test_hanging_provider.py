"""An introspection endpoint, and a collector of traces, that hang hold up nobody else."""

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from threading import Event, Lock

import pytest
from werkzeug.wrappers import Request, Response

from adapters.testing.stays import EDGES
from app.errors import RETRY_AFTER_SECONDS
from tests.app import provider
from tests.app.operations.running import PATIENCE, Answered, Running, running
from tests.collector import Collector, collecting
from tests.hospital_http import answer, serving
from tests.hospital_sql import Tables, mapping_text
from tests.redis_server import RedisServer

THREADS, AT_ONCE = 4, 2
READ = f"Encounter/{EDGES.stays[0].id}"


class Introspection:
    """An endpoint that calls every token good, as long as it does not hang."""

    def __init__(self) -> None:
        self.goes_on = Event()
        self.goes_on.set()
        self.at_once = self.most = 0
        self._lock = Lock()

    def answer(self, _request: Request) -> Response:
        with self._lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        self.goes_on.wait(2 * PATIENCE)
        with self._lock:
            self.at_once -= 1
        return answer({"active": True, **provider.claims()})


@pytest.fixture(scope="module")
def endpoint() -> Introspection:
    return Introspection()


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


@pytest.fixture(scope="module")
def service(
    endpoint: Introspection,
    collector: Collector,
    redis_server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Running]:
    """Serve by a few threads, all traced; it ends well though the collector hangs."""
    folder = tmp_path_factory.mktemp("hanging")
    url = f"sqlite:///{folder / 'pas.db'}"
    Tables(url, EDGES).close()
    mapping = folder / "hospital.yaml"
    text = mapping_text(EDGES).replace("connections: 2", f"connections: {THREADS}")
    mapping.write_text(text, "utf-8")
    environ = {
        "PAS_URL": url,
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address,
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    with ExitStack() as stack:
        asked = stack.enter_context(serving(Request.application(endpoint.answer)))
        stack.callback(endpoint.goes_on.set)
        yield stack.enter_context(
            running(
                folder,
                mapping,
                environ,
                THREADS=str(THREADS),
                REDIS_URL=redis_server.url,
                TRACING="true",
                INTROSPECTION_URL=f"{asked}/introspect",
                INTROSPECTION_CLIENT_ID="encounters",
                INTROSPECTION_CLIENT_SECRET="hush",
                IDENTITY_TIMEOUT_SECONDS="30",
            )
        )


def test_others_are_answered_while_introspection_hangs(
    service: Running, endpoint: Introspection, collector: Collector
) -> None:
    assert service.get(READ, "opaque").status == 200
    endpoint.goes_on.clear()
    collector.goes_on.clear()
    with ThreadPoolExecutor(THREADS) as threads:
        asked = {threads.submit(service.get, READ, f"opaque-{n}") for n in range(8)}
        refused = _refused(asked)
        assert service.get(READ).status == 200
        assert service.get("metadata").status == 200
        assert service.operations("/live").status == 200
        assert {each.status for each in refused} == {503}
        assert {each.headers["Retry-After"] for each in refused} == {
            str(RETRY_AFTER_SECONDS)
        }
        endpoint.goes_on.set()
        assert {future.result(PATIENCE).status for future in asked} <= {200, 503}
    assert endpoint.most == AT_ONCE
    assert service.get(READ, "opaque-again").status == 200


def _refused(asked: set[Future[Answered]]) -> list[Answered]:
    """Wait until no more hang than may; return what the others were told."""
    hanging = set(asked)
    while len(hanging) > AT_ONCE:
        done, hanging = wait(hanging, PATIENCE, FIRST_COMPLETED)
        assert done
    return [future.result() for future in asked - hanging]


def test_a_source_that_may_hold_every_thread_is_told_at_the_start(
    service: Running,
) -> None:
    said = "sources may hold every thread: give them fewer connections than threads"
    (line,) = service.events(said)
    assert (line["level"], line["sources"]) == ("warning", ["Tiny hospital"])
