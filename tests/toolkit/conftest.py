"""Commands and databases for the tests of the tools."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from app.cli import main
from tests.databases import NewDatabase
from tests.mariadb_server import MariaServer
from tests.sets import SERVERS
from tests.toolkit.live_hospital import Findings, checked, fill, written


class Printed(NamedTuple):
    """What a command printed, and its status."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What it printed as JSON."""
        return json.loads(self.out)


@pytest.fixture
def mapping(capsys: pytest.CaptureFixture[str]) -> Callable[..., Printed]:
    """Return what runs `encounters mapping`."""

    def run(*arguments: object) -> Printed:
        status = main(["mapping", *map(str, arguments)])
        return Printed(status, *capsys.readouterr())

    return run


@pytest.fixture
def check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Findings]:
    """Return what changes the mapping file and returns the findings about the rows."""
    return lambda *changes: checked(written(tmp_path, *changes), capsys)


@pytest.fixture(params=["sqlite", "postgresql", *SERVERS])
def kind(request: pytest.FixtureRequest) -> str:
    """Return each kind of database."""
    return str(request.param)


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
        server: MariaServer = request.getfixturevalue(f"{kind}_server")
        return server.new_database()

    return make


@pytest.fixture
def hospital(
    new_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], str]:
    """Return what makes a hospital of 120 stays in a kind of database, PAS_URL."""

    def make(kind: str) -> str:
        url = new_url(kind)
        fill(url)
        monkeypatch.setenv("PAS_URL", url)
        return url

    return make


@pytest.fixture
def url(kind: str, hospital: Callable[[str], str]) -> str:
    """Return the address of this hospital in each kind of database."""
    return hospital(kind)


@pytest.fixture
def sqlite(hospital: Callable[[str], str]) -> str:
    """Return the address of this hospital in SQLite."""
    return hospital("sqlite")
