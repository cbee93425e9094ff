"""Fixtures for all tests, and a watch over all that is logged."""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from prometheus_client import REGISTRY

from app.redis_client import close_idle_connections
from tests.canaries import CanaryWatch, canaries_counted
from tests.databases import (  # noqa: F401 - pytest finds fixtures by name here
    new_postgresql,
    postgresql_server,
    postgresql_url,
)
from tests.demo.running import demo  # noqa: F401
from tests.mariadb_server import mariadb_server, mysql_server, server  # noqa: F401
from tests.pgbouncer import pgbouncer  # noqa: F401
from tests.redis_server import redis_server  # noqa: F401
from tests.sets import (  # noqa: F401 - pytest finds hooks by name here
    pytest_addoption,
    pytest_collection_modifyitems,
)

# The same examples each time, however slow the machine is: what fails is what was changed.
# Others, and more of them, with FUZZ_EXAMPLES (`make fuzz`).
settings.register_profile(
    "the same",
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "100")),
    derandomize="FUZZ_EXAMPLES" not in os.environ,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("the same")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """Close connections to Redis while the services of the test still hold them."""
    close_idle_connections()


@pytest.fixture(scope="session", autouse=True)
def canary_watch() -> Iterator[CanaryWatch]:
    """Look through every log line of the run, and at its end through all counts.

    What probes tell and what is traced is looked through where it is asked for
    (`tests.app.server.running`, `tests/demo/test_demo_canaries.py`).
    """
    watch, root = CanaryWatch(), logging.getLogger()
    root.addHandler(watch)
    root.setLevel(logging.INFO)
    # Access lines go to stderr: `demo/test_demo_canaries.py` looks through those of a process.
    logging.getLogger("app.access").setLevel(logging.WARNING)
    yield watch
    root.removeHandler(watch)
    assert canaries_counted(REGISTRY) == []


@pytest.fixture(autouse=True)
def no_canary_is_logged(canary_watch: CanaryWatch) -> Iterator[None]:
    """Fail a test during which a canary was logged."""
    yield
    assert canary_watch.taken() == []
