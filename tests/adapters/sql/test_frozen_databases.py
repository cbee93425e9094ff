"""A database server that hangs: the driver's read timeout ends the wait (MariaDB)."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa

from adapters.contract import SourceTimedOutError, SourceUnavailableError
from adapters.sql.engine import Database
from tests.mariadb_server import MariaServer

pytestmark = pytest.mark.system

SECONDS = 1.0


@contextmanager
def frozen(server: MariaServer) -> Iterator[None]:
    """Stop the server, as a machine that hangs would."""
    process = psutil.Process(server.process.pid)
    try:
        os.kill(process.pid, signal.SIGSTOP)
        # A thread on another core may go on for a moment, and answer.
        while not _stands_still(process):
            time.sleep(0.001)
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def _stands_still(process: psutil.Process) -> bool:
    states = set()
    for file in Path(f"/proc/{process.pid}/task").glob("*/stat"):
        with suppress(FileNotFoundError):
            states.add(file.read_text().rpartition(") ")[2][0])
    return states <= {"T"}


def _connection_id(database: Database) -> int:
    return int(database.fetch(sa.text("SELECT CONNECTION_ID()"))[0][0])


def test_a_frozen_server_is_away(mariadb_server: MariaServer) -> None:
    with closing(Database(mariadb_server.new_database(), SECONDS, 1)) as database:
        before = _connection_id(database)
        # It goes on only after the error.
        with frozen(mariadb_server), pytest.raises(SourceUnavailableError) as error:
            database.fetch(sa.text("SELECT 2"))
        assert not isinstance(error.value, SourceTimedOutError), (
            "no count is too costly"
        )
        assert _connection_id(database) != before
