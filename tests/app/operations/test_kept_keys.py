"""The keys of the identity provider outlive the workers that fetched them."""

import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from werkzeug.wrappers import Request, Response

from adapters.testing.stays import EDGES
from tests.app import provider
from tests.app.operations.running import Running, running
from tests.hospital_http import answer, serving
from tests.hospital_sql import Tables, mapping_text
from tests.redis_server import RedisServer

READ = f"Encounter/{EDGES.stays[0].id}"


@pytest.fixture
def away() -> Event:
    return Event()


@pytest.fixture
def service(
    away: Event, redis_server: RedisServer, tmp_path: Path
) -> Iterator[Running]:
    """Serve with one worker, and keys of a provider that may be away."""

    @Request.application
    def keys(_request: Request) -> Response:
        if away.is_set():
            return Response(status=503)
        return answer(provider.key_set(provider.rsa()))

    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    mapping = tmp_path / "hospital.yaml"
    mapping.write_text(mapping_text(EDGES), "utf-8")
    with (
        serving(keys) as address,
        running(
            tmp_path,
            mapping,
            {"PAS_URL": url},
            REDIS_URL=redis_server.url,
            KEY_SET_URL=f"{address}/keys",
        ) as service,
    ):
        yield service


def test_workers_that_begin_while_the_provider_is_away_let_good_tokens_in(
    service: Running, away: Event
) -> None:
    assert service.get(READ).status == 200
    away.set()
    (killed,) = service.workers()
    killed.kill()
    service.until(lambda: {w.pid for w in service.workers()} - {killed.pid})
    service.until(lambda: service.get("metadata").status == 200)
    assert service.get(READ).status == 200
    before = service.workers()
    service.process.send_signal(signal.SIGHUP)
    service.until(lambda: service.events("mapping passed"))
    service.until(lambda: not any(worker.is_running() for worker in before))
    service.until(lambda: service.get("metadata").status == 200)
    assert service.get(READ).status == 200
    assert service.get(READ, provider.sign(provider.rsa("new"))).status == 503
