"""Fixtures for the web side: a service on the edge-case hospital."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import responses

from tests.app.changing import SEAL_KEYS, Changing, changing
from tests.app.provider import Clock
from tests.redis_server import RedisServer, started_redis
from tests.serving import Served, publish_keys, serve
from toolkit.contract.hospital import EDGES, Hospital

MakeService: TypeAlias = Callable[..., Served]


@pytest.fixture
def keys() -> Iterator[responses.RequestsMock]:
    """Let the identity provider publish its keys."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        publish_keys(mock)
        yield mock


@pytest.fixture
def clock() -> Clock:
    """Return a clock that stands still until the test moves it."""
    return Clock()


@pytest.fixture(scope="module")
def edges(
    redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Served:
    """Return a service on the edge-case hospital, the same for a module."""
    return serve(EDGES, tmp_path_factory.mktemp("edges"), redis_server.url)


@pytest.fixture
def served(edges: Served, keys: responses.RequestsMock) -> Served:
    """Return the service on the edge-case hospital, its provider at hand."""
    return edges


@pytest.fixture(scope="module")
def group_services(
    redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Served]:
    """Return services on the edge-case hospital, offered as to groups A and B."""
    return {
        name: serve(
            EDGES, tmp_path_factory.mktemp(name), redis_server.url, profile=name
        )
        for name in ("group-a", "group-b")
    }


@pytest.fixture
def groups(
    group_services: Mapping[str, Served], keys: responses.RequestsMock
) -> Mapping[str, Served]:
    """Return the services of groups A and B, their provider at hand."""
    return group_services


@pytest.fixture
def hospital(
    redis_server: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> Iterator[Changing]:
    """Return a service on a hospital that the test may change."""
    with changing(tmp_path, redis_server) as changing_hospital:
        yield changing_hospital


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """Return a Redis of the test's own, empty, that it may stop."""
    with started_redis() as server:
        yield server


@pytest.fixture
def own(
    own_redis: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> Iterator[Changing]:
    """Return a service on that Redis and on a hospital that may change."""
    with changing(tmp_path, own_redis, SEAL_KEYS=SEAL_KEYS[0]) as changing_hospital:
        yield changing_hospital


@pytest.fixture
def make_service(
    redis_server: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> MakeService:
    """Return a function that serves the edge-case hospital, with the options of `serve`."""
    # All of them live until the end of the test, when their connections are closed.
    services = []

    def make(
        *edits: tuple[str, str],
        hospital: Hospital = EDGES,
        redis: RedisServer = redis_server,
        **options: Any,
    ) -> Served:
        services.append(serve(hospital, tmp_path, redis.url, *edits, **options))
        return services[-1]

    return make
