"""A MariaDB server for a session of tests, on a socket in a directory of its own."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.constants.ER import NO_SUCH_THREAD

SERVER, INSTALLER = "mariadbd", "mariadb-install-db"
"""What Debian's package mariadb-server brings."""

_PATIENCE = 180
_NO_PASSWORD = ("--auth-root-authentication-method=normal",)
_QUICK = (
    "--skip-networking",
    "--skip-log-bin",
    "--skip-name-resolve",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--character-set-server=utf8mb4",
    # What hospitals have: neither case nor accents nor trailing blanks count.
    "--collation-server=utf8mb4_unicode_ci",
)


class MariaServer:
    """A running server; `socket` is where root gets in without a password."""

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "socket"
        self._numbers = count(1)
        user = ("--user=root",) if os.geteuid() == 0 else ()
        data = directory / "data"
        common = ("--no-defaults", f"--datadir={data}", *user)
        subprocess.run(
            [INSTALLER, *common, "--skip-test-db", *_NO_PASSWORD],
            check=True,
            capture_output=True,
        )
        places = (f"--socket={self.socket}", f"--pid-file={directory / 'pid'}")
        with (directory / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [self._found(), *common, *places, *_QUICK], stdout=log, stderr=log
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

    def kill_connections(self) -> None:
        """End the connections that are open, but for its own."""
        with (
            self._connected() as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(
                "SELECT id FROM information_schema.processlist"
                " WHERE id <> CONNECTION_ID() AND user = 'root'"
            )
            for (number,) in cursor.fetchall():
                try:
                    cursor.execute(f"KILL {number}")
                except pymysql.OperationalError as error:
                    # It may have ended by itself meanwhile.
                    if error.args[0] != NO_SUCH_THREAD:
                        raise

    def stop(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.wait(_PATIENCE)

    def _connected(self) -> "pymysql.Connection[Any]":
        # See `tests.databases.writing`.
        return pymysql.connect(
            unix_socket=str(self.socket), user="root", ssl_disabled=True
        )

    def _found(self) -> str:
        found = _server()
        assert found
        return found

    def _wait(self, log: Path) -> None:
        until = time.monotonic() + _PATIENCE
        while not self.socket.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                raise AssertionError(log.read_text("utf-8", "replace"))
            time.sleep(0.05)


def _server() -> str | None:
    # Debian keeps servers where only root looks for commands.
    return shutil.which(SERVER, path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaServer]:
    """Start a MariaDB server that ends with the session; skip where none is installed."""
    if _server() is None or shutil.which(INSTALLER) is None:
        pytest.skip("no MariaDB server is installed here")
    directory = Path(tempfile.mkdtemp(prefix="encounters-maria-"))
    server = MariaServer(directory)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory)
