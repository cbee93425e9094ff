"""Fixtures: the samples of GNU Health in both databases, as they are and with odd rows."""

from collections.abc import Iterator

import pytest

from adapters.contract import Adapter, EncounterRecord, PatientRecord
from adapters.testing.harness import PATIENT, ask
from tests.app.conftest import keys  # noqa: F401 - pytest finds fixtures by name here
from tests.databases import NewDatabase
from tests.gnuhealth.odd import ODD
from tests.gnuhealth.samples import (
    EVERY,
    Sample,
    people_of,
    postgresql_sample,
    sqlite_sample,
    stays_of,
)

BOTH = ("sqlite", "postgresql")


def _sample(
    request: pytest.FixtureRequest, directories: pytest.TempPathFactory
) -> Sample:
    if request.param == "sqlite":
        return sqlite_sample(directories.mktemp("gnuhealth"))
    new_postgresql: NewDatabase = request.getfixturevalue("new_postgresql")
    return postgresql_sample(new_postgresql)


@pytest.fixture(scope="session", params=BOTH)
def sample(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Sample:
    """Return the tables, which no test changes."""
    return _sample(request, tmp_path_factory)


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
def people(health: Adapter) -> dict[str, PatientRecord]:
    """Return every patient, by id."""
    return people_of(health, ask(of=PATIENT, count=EVERY))


@pytest.fixture(scope="session", params=BOTH)
def odd_sample(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Sample:
    """Return the tables with odd rows, which no test changes either."""
    made = _sample(request, tmp_path_factory)
    made.run(ODD)
    return made


@pytest.fixture(scope="session")
def odd(odd_sample: Sample) -> Iterator[Adapter]:
    """Return its adapter."""
    adapter = odd_sample.open()
    yield adapter
    adapter.close()


@pytest.fixture(params=BOTH)
def own(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Sample:
    """Return tables that the test may change."""
    return _sample(request, tmp_path_factory)
