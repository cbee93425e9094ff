"""Databases for the tests of the tools."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.databases import NewDatabase
from tests.mariadb_server import MariaServer


@pytest.fixture
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Return what makes an empty database of a kind."""
    numbers = iter(range(1_000))

    def make(kind: str) -> str:
        if kind == "sqlite":
            return f"sqlite:///{tmp_path}/pas{next(numbers)}.sqlite"
        if kind == "postgresql":
            new: NewDatabase = request.getfixturevalue("new_postgresql")
            return new("unicode")
        server: MariaServer = request.getfixturevalue("mariadb_server")
        return server.new_database()

    return make
