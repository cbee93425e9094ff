"""Fixtures for the web side: a service on the edge-case hospital."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import pytest
import responses

from tests.app.changing import SEAL_KEYS, changing
from tests.app.provider import Clock
from tests.redis_server import started_redis
from tests.serving import Served, publish_keys, serve
from toolkit.contract.hospital import EDGES

MakeService: TypeAlias = Callable[..., Served]


@pytest.fixture
def keys():
    """Let the identity provider publish its keys."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        publish_keys(mock)
        yield mock


@pytest.fixture
def clock():
    """Return a clock that stands still until the test moves it."""
    return Clock()


@pytest.fixture(scope="module")
def deployed(redis_server, tmp_path_factory):
    """Return what serves the edge-case hospital with a profile, the same for a module."""

    @cache
    def service(profile: str) -> Served:
        directory = tmp_path_factory.mktemp(profile)
        return serve(EDGES, directory, redis_server.url, profile=profile)

    return service


@pytest.fixture
def served(deployed, keys):
    """Return the service on the edge-case hospital, its provider at hand."""
    return deployed("full")


@pytest.fixture
def groups(deployed, keys):
    """Return the services of groups A and B, their provider at hand."""
    return {name: deployed(name) for name in ("group-a", "group-b")}


@pytest.fixture
def hospital(redis_server, tmp_path, keys):
    """Return a service on a hospital that the test may change."""
    with changing(tmp_path, redis_server) as changing_hospital:
        yield changing_hospital


@pytest.fixture
def own_redis():
    """Return a Redis of the test's own, empty, that it may stop."""
    with started_redis() as server:
        yield server


@pytest.fixture
def own(own_redis, tmp_path, keys):
    """Return a service on that Redis and on a hospital that may change."""
    with changing(tmp_path, own_redis, SEAL_KEYS=SEAL_KEYS[0]) as changing_hospital:
        yield changing_hospital


@pytest.fixture
def make_service(redis_server, tmp_path, keys):
    """Return a function that serves the edge-case hospital, with the options of `serve`."""
    # All of them live until the end of the test, when their connections are closed.
    services = []

    def make(
        *edits: tuple[str, str], hospital=EDGES, redis=redis_server, **options: Any
    ) -> Served:
        services.append(serve(hospital, tmp_path, redis.url, *edits, **options))
        return services[-1]

    return make
