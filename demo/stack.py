"""The whole service on one machine: a made-up hospital, Redis, tokens, and ourselves.

`run` is what `make run` and `encounters demo` do: the hospital's database is made once;
Redis, the token server and the service are started, awaited, watched and stopped.
"""

import fcntl
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import redis
import requests

from demo.hospital import fill
from demo.issuer import AUDIENCE
from demo.pastable import pastable
from demo.processes import (
    Family,
    StopRequestedError,
    ignore_stop_signals,
    redis_server,
    stop_signals,
)
from demo.state import DemoDirectory, DemoError

HOST = "127.0.0.1"
PROJECT = Path(__file__).resolve().parent.parent
MAPPING = PROJECT / "mappings" / "demo" / "demo.yaml"
ANSWER_SECONDS = 1.0
SEED = 1


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the service and its token server are found; the second follows the first."""

    port: int

    @property
    def base_url(self) -> str:
        """The service's base URL."""
        return f"http://{HOST}:{self.port}/fhir/v3"

    @property
    def issuer_port(self) -> int:
        """The token server's port."""
        return self.port + 1

    @property
    def issuer(self) -> str:
        """The token server's address."""
        return f"http://{HOST}:{self.issuer_port}"

    @property
    def key_set(self) -> str:
        """Where the token server publishes its key."""
        return f"{self.issuer}/.well-known/jwks.json"


def run(port: int, stays: int, root: Path) -> int:
    """Run the demo until it is told to stop or a part of it ends; return an exit status.

    0: told to stop. 1: it could not start or go on, and stderr says why.
    """
    directory, addresses = DemoDirectory(root), Addresses(port)
    with stop_signals():
        try:
            _run(directory, addresses, stays)
        except StopRequestedError:
            # The terminal may be what went away.
            with suppress(OSError):
                print("Stopped. What it holds is kept; the next start is quick.")
            return 0
        except DemoError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def _run(directory: DemoDirectory, addresses: Addresses, stays: int) -> None:
    server = redis_server()
    directory.prepare()
    with ExitStack() as stack:
        stack.enter_context(_locked(directory))
        _check_ports(addresses)
        hospital = _hospital(directory, stays)
        socket_path = stack.enter_context(_socket_path(directory))
        family = stack.enter_context(Family())
        stack.callback(ignore_stop_signals)
        directory.remember_issuer(addresses.issuer)
        _start_redis(family, directory, server, socket_path)
        _start_issuer(family, directory, addresses)
        _start_service(family, directory, addresses, hospital, socket_path)
        family.wait_until_ready()
        print(pastable(addresses.base_url, addresses.issuer, directory), flush=True)
        family.watch()


@contextmanager
def _locked(directory: DemoDirectory) -> Iterator[None]:
    with directory.lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError(
                f"Another demo is running in {directory.root}: stop it first, or give "
                "this one a directory of its own with --directory."
            ) from None
        yield


def _check_ports(addresses: Addresses) -> None:
    for port in (addresses.port, addresses.issuer_port):
        with socket.socket() as probe:
            # As the servers do it: a port that was just left is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as error:
                raise DemoError(
                    f"Port {port} cannot be used ({error.strerror}): choose another "
                    "one and the one after it, for example 'make run PORT=9000'."
                ) from None


def _hospital(directory: DemoDirectory, stays: int) -> Path:
    """Return the path of the hospital's database, made whole on first use."""
    path = directory.hospital(stays)
    if not path.exists():
        print(f"Making a hospital of {stays:,} stays …", flush=True)
        with TemporaryDirectory(prefix="half-", dir=directory.root) as half:
            fill(f"sqlite:///{half}/{path.name}", stays=stays, seed=SEED)
            Path(half, path.name).replace(path)
    return path


@contextmanager
def _socket_path(directory: DemoDirectory) -> Iterator[Path]:
    folder = directory.socket_directory()
    try:
        yield folder / "redis.sock"
    finally:
        if folder != directory.root.resolve():
            shutil.rmtree(folder, ignore_errors=True)


def _start_redis(
    family: Family, directory: DemoDirectory, server: Path, path: Path
) -> None:
    command = [str(server), "--port", "0"]
    command += ["--unixsocket", str(path), "--unixsocketperm", "700"]
    command += ["--dir", str(directory.root.resolve()), "--appendonly", "yes"]
    command += ["--save", ""]
    log = directory.log("redis")
    family.start("Redis server", command, os.environ, log, lambda: _pings(path))


def _start_issuer(
    family: Family, directory: DemoDirectory, addresses: Addresses
) -> None:
    command = [sys.executable, "-m", "demo.issuer"]
    command += ["--directory", str(directory.root.resolve())]
    command += ["--port", str(addresses.issuer_port)]
    log, ready = directory.log("issuer"), lambda: _answers(addresses.key_set)
    family.start("token server", command, _environ({}), log, ready)


def _start_service(
    family: Family,
    directory: DemoDirectory,
    addresses: Addresses,
    hospital: Path,
    socket_path: Path,
) -> None:
    environ = _environ(
        {
            "ENCOUNTERS_BASE_URL": addresses.base_url,
            "ENCOUNTERS_BIND": f"{HOST}:{addresses.port}",
            "ENCOUNTERS_ISSUER": addresses.issuer,
            "ENCOUNTERS_KEY_SET_URL": addresses.key_set,
            "ENCOUNTERS_AUDIENCE": AUDIENCE,
            "ENCOUNTERS_PLAIN_HTTP": "loopback",
            "ENCOUNTERS_MAPPING": str(MAPPING),
            "ENCOUNTERS_REDIS_URL": f"unix://{socket_path}",
            "ENCOUNTERS_SEAL_KEYS_FILE": str(directory.seal_key_file.resolve()),
            "PAS_URL": f"sqlite:///{hospital.resolve()}",
        }
    )
    directory.seal_key()
    metadata = f"{addresses.base_url}/metadata"
    command = [sys.executable, "-m", "app.cli", "serve"]
    log = directory.log("service")
    family.start("service", command, environ, log, lambda: _answers(metadata))


def _environ(added: dict[str, str]) -> dict[str, str]:
    """Return the environment of a child: the settings of this demo and no other's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ENCOUNTERS_")}
    paths = [str(PROJECT), *filter(None, [kept.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths)} | added


def _pings(path: Path) -> bool:
    with (
        redis.Redis(unix_socket_path=str(path), socket_timeout=ANSWER_SECONDS) as asked,
        suppress(redis.RedisError),
    ):
        return bool(asked.ping())
    return False


def _answers(url: str) -> bool:
    with requests.Session() as session, suppress(requests.RequestException):
        # A proxy of the machine has no business between two processes on it.
        session.trust_env = False
        return session.get(url, timeout=ANSWER_SECONDS).ok
    return False
