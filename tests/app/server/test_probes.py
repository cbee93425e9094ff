"""Workers answer `/live`, `/ready` and `/metrics`: healthy, busy and stopped ones."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from app.server import WAITING_PER_THREAD
from tests.app.server.running import (
    PATIENCE,
    READ,
    edges,
    running,
    slowed,
)
from toolkit.contract.hospital import EDGES

pytestmark = pytest.mark.system

PROBES = ("/live", "/ready", "/metrics")
THREADS = 2
CONNECTIONS = 'encounters_source_connections{source="Tiny hospital"}'
OF_BOTH = 2 * 2
"""The sum of CONNECTIONS when both workers have loaded the mapping, which sets 2 each."""


@pytest.fixture(scope="module")
def service(tmp_path_factory, redis_server):
    """Serve with two workers."""
    directory = tmp_path_factory.mktemp("probed")
    settings = {"WORKERS": "2", "REDIS_URL": redis_server.url}
    with running(directory, edges(directory), **settings) as started:
        started.until(lambda: len(started.workers()) == 2)
        started.until(lambda: started.operations("/ready").status == 200)
        started.until(lambda: started.metric(CONNECTIONS) == OF_BOTH)
        yield started


def test_metrics_are_those_of_all_workers_and_outlive_them(service):
    sample = (
        'encounters_request_seconds_count{method="GET",route="/fhir/v3/Encounter/<id>"'
        ',status="2xx"}'
    )
    assert service.operations("/live").json == {"live": True}
    assert service.operations("/fhir/v3/metadata").status == 404
    assert service.get("../live").status == 404
    before = service.metric(sample)
    for count in range(1, 7):
        assert service.get(READ).status == 200
        assert service.metric(sample) == before + count
    workers = service.workers()
    workers[0].kill()
    service.until(lambda: len(set(service.workers()) - set(workers)) == 1)
    # It has begun to check its parts: what it counts is there, beside what the dead counted.
    service.until(lambda: all(each.num_threads() > 1 for each in service.workers()))
    service.until(lambda: service.metric(CONNECTIONS) == OF_BOTH)
    assert service.metric(sample) == before + 6
    assert f'"{EDGES.stays[0].id}"' not in service.operations("/metrics").body.decode()


def test_busy_workers_answer_probes_and_refuse_what_finds_no_room(
    tmp_path, redis_server
):
    most = THREADS * (1 + WAITING_PER_THREAD)
    settings = {"THREADS": str(THREADS), "REQUEST_SECONDS": "300"}
    with (
        slowed(tmp_path, redis_server.url, **settings) as (source, service),
        ThreadPoolExecutor(2 * most) as threads,
    ):
        source.goes_on.clear()
        futures = [threads.submit(service.get, READ) for _ in range(2 * most)]
        service.until(lambda: sum(f.done() for f in futures) == most)
        refused = [future.result() for future in futures if future.done()]
        assert {each.status for each in refused} == {503}
        for each in refused:
            assert int(each.headers["Retry-After"]) > 0
            assert each.json["issue"][0]["code"] == "transient"
            assert "busy" in each.json["issue"][0]["diagnostics"]
        # They come to the source later than the others are refused.
        service.until(lambda: len(source.held) == THREADS)
        for path in PROBES:
            assert service.operations(path).status == 200
        source.goes_on.set()
        statuses = [future.result(PATIENCE).status for future in futures]
        assert sorted(statuses) == [200] * most + [503] * most
        assert service.get(READ).status == 200
