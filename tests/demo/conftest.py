"""The demo hospital, made once in each kind of database; a folder for `make run`."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.mapping.load import load_mapping
from demo.hospital import fill
from tests.databases import NewDatabase
from tests.demo.filled import STAYS, Filled
from tests.sets import SERVERS

MAPPING = Path(__file__).parents[2] / "mappings" / "demo" / "demo.yaml"


@pytest.fixture(scope="session", params=["sqlite", "postgresql", *SERVERS])
def hospital(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Filled]:
    """Return the hospital in each kind of database, to be read only."""
    url = f"sqlite:///{tmp_path_factory.mktemp('pas')}/pas.sqlite"
    if request.param == "postgresql":
        new_database: NewDatabase = request.getfixturevalue("new_postgresql")
        url = new_database("unicode")
    if request.param in SERVERS:
        url = request.getfixturevalue(f"{request.param}_server").new_database()
    summary = fill(url, stays=STAYS)
    engine = sa.create_engine(url)
    mapping = load_mapping(MAPPING, {"PAS_URL": url})
    # Who made the tables may change them.
    mapping = replace(mapping, source=replace(mapping.source, may_write=True))
    adapter = open_adapter(mapping)
    yield Filled(url, summary, engine, adapter)
    adapter.close()
    engine.dispose()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder where make finds a set-up environment; its path is a long one."""
    folder = tmp_path / ("long-" * 20)
    scripts = folder / ".venv" / "bin"
    scripts.mkdir(parents=True)
    script = scripts / "encounters"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m app.cli "$@"\n')
    script.chmod(0o755)
    (folder / "requirements.lock").write_text("")
    (folder / ".venv" / "run.stamp").write_text("")
    return folder
