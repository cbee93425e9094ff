"""Fixtures: the samples of GNU Health in both databases, as they are and with odd rows."""

from collections.abc import Callable, Iterator

import pytest

from adapters.contract import Adapter, EncounterRecord
from tests.app.conftest import keys  # noqa: F401 - pytest finds fixtures by name here
from tests.databases import NewDatabase
from tests.gnuhealth.odd import ODD
from tests.gnuhealth.samples import (
    EVERY,
    Sample,
    postgresql_sample,
    sqlite_sample,
    stays_of,
)
from toolkit.contract.harness import ask

NewSample = Callable[[], Sample]


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def new_sample(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> NewSample:
    """Return what makes tables in each database, which a test may change."""

    def make() -> Sample:
        if request.param == "sqlite":
            return sqlite_sample(tmp_path_factory.mktemp("gnuhealth"))
        new_postgresql: NewDatabase = request.getfixturevalue("new_postgresql")
        return postgresql_sample(new_postgresql)

    return make


@pytest.fixture(scope="session")
def sample(new_sample: NewSample) -> Sample:
    """Return the tables, which no test changes."""
    return new_sample()


@pytest.fixture(scope="session")
def health(sample: Sample) -> Iterator[Adapter]:
    """Return the adapter of the sample."""
    adapter = sample.open()
    yield adapter
    adapter.close()


@pytest.fixture(scope="session")
def stays(health: Adapter) -> dict[str, EncounterRecord]:
    """Return every stay that is served, by id."""
    return stays_of(health, ask(count=EVERY))


@pytest.fixture(scope="session")
def odd_sample(new_sample: NewSample) -> Sample:
    """Return the tables with odd rows, which no test changes either."""
    made = new_sample()
    made.run(ODD)
    return made


@pytest.fixture(scope="session")
def odd(odd_sample: Sample) -> Iterator[Adapter]:
    """Return its adapter."""
    adapter = odd_sample.open()
    yield adapter
    adapter.close()
