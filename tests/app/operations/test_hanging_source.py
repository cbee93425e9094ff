"""A source that hangs or is away holds up nobody who asks another (decision 23)."""

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from threading import Event

import pytest
from werkzeug.wrappers import Request, Response

from adapters.guarded import FAILURES, PAUSE_SECONDS
from adapters.testing.stays import EDGES
from app.errors import RETRY_AFTER_SECONDS
from tests.adapters.test_federated_http import SOUTH as SOUTH_ROWS
from tests.adapters.test_federated_http import group_text
from tests.app.operations.running import PATIENCE, Answered, Running, running
from tests.hospital_http import Api, answer, serving
from tests.hospital_http_mapping import OFFSET
from tests.hospital_sql import Tables
from tests.redis_server import RedisServer

CONNECTIONS, THREADS = 2, 4
NORTH = f"Encounter/n-{EDGES.stays[0].id}"
STAY = f"/{SOUTH_ROWS.stays[0].id}"
SOUTH = f"Encounter/s-{STAY[1:]}"


class South:
    """A hospital behind an API that can hang, or answer every request with an error."""

    def __init__(self) -> None:
        self.api = Api(SOUTH_ROWS, strange=self._disturbed)
        self.goes_on = Event()
        self.goes_on.set()
        self.error = 0

    def reads(self) -> int:
        """Return how often a stay was asked for; probes ask of none in particular."""
        return sum(request.path.endswith(STAY) for request in self.api.requests)

    def _disturbed(self, _request: Request) -> Response | None:
        self.goes_on.wait(2 * PATIENCE)
        return answer({}, self.error) if self.error else None


@pytest.fixture(scope="module")
def south() -> South:
    return South()


@pytest.fixture(scope="module")
def service(
    south: South, redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """Serve a north in a database and the south, by a few threads."""
    folder = tmp_path_factory.mktemp("hanging")
    url = f"sqlite:///{folder / 'north.db'}"
    Tables(url, EDGES).close()
    mapping = folder / "two.yaml"
    text = group_text(EDGES, OFFSET).replace(
        "timeout_seconds: '30'", "timeout_seconds: '60'"
    )
    mapping.write_text(text, "utf-8")
    with ExitStack() as stack:
        environ = {
            "NORTH_URL": url,
            "SOUTH_URL": stack.enter_context(serving(south.api)),
        }
        started = running(
            folder,
            mapping,
            environ,
            THREADS=str(THREADS),
            REDIS_URL=redis_server.url,
            WATCH_SECONDS="5",
        )
        service = stack.enter_context(started)
        stack.callback(south.goes_on.set)
        yield service


def test_others_are_answered_while_a_source_hangs(
    service: Running, south: South
) -> None:
    south.goes_on.clear()
    with ThreadPoolExecutor(THREADS) as threads:
        asked = {threads.submit(service.get, SOUTH) for _ in range(THREADS)}
        hanging, refused = _settled(asked)
        for future in refused:
            answered = future.result()
            assert answered.status == 503
            assert answered.headers["Retry-After"] == str(RETRY_AFTER_SECONDS)
        assert service.get(NORTH).status == 200
        assert service.get("metadata").status == 200
        assert service.operations("/live").status == 200
        under_way = service.metric('encounters_source_calls{source="south"}')
        assert under_way == CONNECTIONS
        pool = service.metric('encounters_source_connections{source="south"}')
        assert pool == CONNECTIONS
        assert not any(future.done() for future in hanging)
        south.goes_on.set()
        assert {future.result(PATIENCE).status for future in hanging} == {200}
    assert service.metric('encounters_source_calls{source="south"}') == 0


def _settled(
    asked: set[Future[Answered]],
) -> tuple[set[Future[Answered]], set[Future[Answered]]]:
    """Wait until as many hang as there are connections; return them and the others."""
    hanging = set(asked)
    while len(hanging) > CONNECTIONS:
        done, hanging = wait(hanging, PATIENCE, FIRST_COMPLETED)
        assert done
    return hanging, asked - hanging


def test_a_source_that_is_away_is_left_alone_until_it_is_back(
    service: Running, south: South
) -> None:
    south.error = 501
    assert {service.get(SOUTH).status for _ in range(FAILURES)} == {503}
    assert service.events("source is left alone")[0]["source"] == "south"
    before = south.reads()
    answered = service.get(SOUTH)
    # The pause may be over on a machine that is slow: then one call more was made.
    assert (answered.status, south.reads() - before in (0, 1)) == (503, True)
    assert int(answered.headers["Retry-After"]) >= PAUSE_SECONDS
    assert service.metric('encounters_source_held_back{source="south"}') == 1
    assert service.get(NORTH).status == 200
    told = "source south did not answer: it is left alone for a while"
    service.until(
        lambda: told in (service.part("guard") or {"problems": ()})["problems"]
    )
    south.error = 0
    service.until(lambda: service.get(SOUTH).status == 200)
    assert service.events("source is asked again")
    assert service.metric('encounters_source_held_back{source="south"}') == 0
    service.until(lambda: service.part("guard") == {"ready": True, "problems": []})


def test_requests_are_counted_and_go_on_being_when_a_worker_ends(
    service: Running,
) -> None:
    sample = (
        'encounters_requests_total{method="GET",route="/fhir/v3/Encounter/<id>"'
        ',status="2xx"}'
    )
    before = service.metric(sample)
    for count in (1, 2):
        assert service.get(NORTH).status == 200
        assert service.metric(sample) == before + count
    (worker,) = service.workers()
    worker.kill()
    service.until(lambda: service.workers() not in ([], [worker]))
    service.until(lambda: service.get("metadata").status == 200)
    assert service.get(NORTH).status == 200
    assert service.metric(sample) == before + 3
    text = service.operations("/metrics").body.decode()
    assert str(EDGES.stays[0].id) not in {
        part for line in text.splitlines() for part in line.split('"')
    }
