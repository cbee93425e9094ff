"""Fixtures for clients: the service with faults, and a token for the demo."""

from collections.abc import Iterator, Mapping

import pytest

from demo.issuer import issue_token
from demo.state import DemoDirectory
from tests.clients.cases import STAYS
from tests.clients.service import Service, running_service
from tests.demo.running import Demo
from tests.redis_server import RedisServer


@pytest.fixture(scope="module")
def service(
    redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """Return the service, over SQLite."""
    with running_service(tmp_path_factory.mktemp("service"), redis_server) as served:
        yield served


@pytest.fixture
def served(service: Service) -> Service:
    """Return the service with 25 stays and no faults."""
    service.open(STAYS)
    return service


@pytest.fixture(scope="session")
def access(demo: Demo) -> Mapping[str, str]:
    """Return the variables of programs that take a token."""
    token = issue_token(DemoDirectory(demo.directory))
    return {"BASE": demo.base_url, "TOKEN": token}
