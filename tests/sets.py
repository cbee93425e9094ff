"""What pytest is told of all tests: which start a process, and the order of a run.

A test that is marked neither `system` nor `extended` runs within the test process, beside
an embedded Redis and an embedded PostgreSQL.
"""

import random
from collections.abc import Iterator

import pytest

FIXTURES = {"browser", "demo", "mariadb_server", "mysql_server", "pgbouncer"}
"""A test with one of these starts a process, and is `system`."""

SERVERS = ("mariadb", "mysql")
PARAMETERS = {("source", "http"), ("source", "pgbouncer")}
"""So is a test with one of these parameters, or with one that names one of the servers.

A source over HTTP takes long.
"""

LONGEST = ("test_guide.py", "test_run.py")
"""A run begins with these files."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take `--shuffle`."""
    parser.addoption(
        "--shuffle", metavar="SEED", help="run files, and the tests of each, shuffled"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Mark what starts a process, before pytest chooses by marks and groups by fixtures."""
    for item in items:
        if _starts_a_process(item) and not item.get_closest_marker("extended"):
            item.add_marker("system")
    seed = config.getoption("shuffle")
    if seed is not None:
        _shuffle(items, random.Random(seed))
    yield
    if seed is None:
        # A file that begins last is waited for alone.
        items.sort(key=lambda item: item.path.name not in LONGEST)


def _starts_a_process(item: pytest.Item) -> bool:
    if FIXTURES & {*getattr(item, "fixturenames", ())}:
        return True
    callspec = getattr(item, "callspec", None)
    for name, value in (callspec.params if callspec else {}).items():
        first = value[0] if isinstance(value, tuple) and value else value
        if isinstance(first, str) and first in SERVERS:
            return True
        if isinstance(value, str) and (name, value) in PARAMETERS:
            return True
    return False


def _shuffle(items: list[pytest.Item], chance: random.Random) -> None:
    files = sorted({item.path for item in items})
    chance.shuffle(files)
    place = {file: at for at, file in enumerate(files)}
    chance.shuffle(items)
    items.sort(key=lambda item: place[item.path])
