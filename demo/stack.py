"""The whole service on one machine: a made-up hospital, Redis, tokens, and ourselves.

`run` is what `make run` and `encounters demo` do: the hospital is made; it, Redis, the
token server and the service are started, awaited, watched and stopped.
"""

import fcntl
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from demo.deployments import Deployment
from demo.loopback import HOST
from demo.parts import (
    SEED,
    Addresses,
    start_issuer,
    start_pas,
    start_redis,
    start_service,
)
from demo.pastable import pastable
from demo.processes import (
    Family,
    StopRequestedError,
    ignore_stop_signals,
    redis_server,
    stop_signals,
)
from demo.state import DemoDirectory, DemoError

MOST_STAYS_OVER_HTTP = 100_000
"""The hospital's API goes through all of them at each request."""


def run(deployment: Deployment, port: int, stays: int, root: Path) -> int:
    """Run the demo until it is told to stop or a part of it ends; return an exit status.

    0: told to stop. 1: it could not start or go on, and stderr says why.
    """
    with stop_signals():
        try:
            _run(deployment, Addresses(port), stays, root)
        except StopRequestedError:
            # The terminal may be what went away.
            with suppress(OSError):
                print("Stopped. What it holds is kept; the next start is quick.")
            return 0
        except DemoError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def _run(deployment: Deployment, addresses: Addresses, stays: int, root: Path) -> None:
    server, directory = redis_server(), deployment.directory(root)
    if deployment.over_http and stays > MOST_STAYS_OVER_HTTP:
        raise DemoError(
            f"A hospital behind an API has {MOST_STAYS_OVER_HTTP:,} stays at most here."
        )
    directory.prepare()
    with ExitStack() as stack:
        stack.enter_context(_locked(directory))
        _check_ports(deployment, addresses)
        has_none = deployment.over_http or deployment.own
        pas = {} if has_none else _database(directory, stays)
        socket_path = stack.enter_context(_socket_path(directory))
        family = stack.enter_context(Family())
        stack.callback(ignore_stop_signals)
        directory.remember_issuer(addresses.issuer)
        start_redis(family, directory, server, socket_path)
        start_issuer(family, directory, addresses)
        if deployment.over_http:
            pas = start_pas(family, directory, addresses, stays)
        variables = {"ENCOUNTERS_REDIS_URL": f"unix://{socket_path}", **pas}
        start_service(family, directory, addresses, deployment, variables)
        family.wait_until_ready()
        print(pastable(deployment, addresses, root), flush=True)
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


def _check_ports(deployment: Deployment, addresses: Addresses) -> None:
    ports = [addresses.port, addresses.issuer_port]
    if deployment.over_http:
        ports.append(addresses.pas_port)
    for port in ports:
        with socket.socket() as probe:
            # As the servers do it: a port that was just left is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as error:
                raise DemoError(
                    f"Port {port} cannot be used ({error.strerror}): choose others, "
                    f"{len(ports)} in a row, for example '{deployment.command} PORT=9000'."
                ) from None


def _database(directory: DemoDirectory, stays: int) -> Mapping[str, str]:
    """Return where the hospital's database is, made whole on first use."""
    path = directory.hospital(stays)
    if not path.exists():
        # Here: the next start finds it made.
        from demo.hospital import fill

        print(f"Making a hospital of {stays:,} stays …", flush=True)
        with TemporaryDirectory(prefix="half-", dir=directory.root) as half:
            fill(f"sqlite:///{half}/{path.name}", stays=stays, seed=SEED)
            Path(half, path.name).replace(path)
    return {"PAS_URL": f"sqlite:///{path.resolve()}"}


@contextmanager
def _socket_path(directory: DemoDirectory) -> Iterator[Path]:
    folder = directory.socket_directory()
    try:
        yield folder / "redis.sock"
    finally:
        if folder != directory.root.resolve():
            shutil.rmtree(folder, ignore_errors=True)
