"""Commands and databases for the tests of the tools."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from app.cli import main
from tests.databases import new_database
from tests.hospital_http import SECRETS, serving
from tests.sets import SERVERS
from tests.toolkit.live_hospital import Findings, checked, fill, written

Capture = pytest.CaptureFixture[str]
NewUrl = Callable[[str], str]


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
def mapping(capsys: Capture) -> Callable[..., Printed]:
    """Return what runs `encounters mapping`."""

    def run(*arguments: object) -> Printed:
        status = main(["mapping", *map(str, arguments)])
        return Printed(status, *capsys.readouterr())

    return run


@pytest.fixture
def check(tmp_path: Path, capsys: Capture) -> Callable[..., Findings]:
    """Return what changes the mapping file and returns the findings about the rows."""
    return lambda *changes: checked(written(tmp_path, *changes), capsys)


@pytest.fixture(params=["sqlite", "postgresql", *SERVERS])
def kind(request: pytest.FixtureRequest) -> str:
    """Return each kind of database."""
    return str(request.param)


@pytest.fixture
def new_url(request: pytest.FixtureRequest) -> NewUrl:
    """Return what makes an empty database of a kind."""
    return partial(new_database, request=request)


@pytest.fixture
def hospital(new_url: NewUrl, monkeypatch: pytest.MonkeyPatch) -> NewUrl:
    """Return what makes a hospital of 120 stays in a kind of database, PAS_URL."""

    def make(kind: str) -> str:
        url = new_url(kind)
        fill(url)
        monkeypatch.setenv("PAS_URL", url)
        return url

    return make


@pytest.fixture
def url(kind: str, hospital: NewUrl) -> str:
    """Return the address of this hospital in each kind of database."""
    return hospital(kind)


@pytest.fixture
def sqlite(hospital: NewUrl) -> str:
    """Return the address of this hospital in SQLite."""
    return hospital("sqlite")


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], Any]]:
    """Return what serves an API, PAS_URL, until the test ends."""
    with ExitStack() as servers:

        def start(api: Any) -> Any:
            url = servers.enter_context(serving(api))
            for name, value in {"PAS_URL": url, **SECRETS}.items():
                monkeypatch.setenv(name, value)
            return api

        yield start
