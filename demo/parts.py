"""The parts of a running demo: what each is started with, and when it answers."""

import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from urllib.request import ProxyHandler, Request, build_opener

from demo.deployments import PROJECT, Deployment
from demo.doors import KEY_HEADER
from demo.http import KEY_VARIABLE
from demo.issuer import AUDIENCE
from demo.loopback import HOST
from demo.processes import Family
from demo.state import DemoDirectory

ANSWER_SECONDS = 1.0

_DIRECT = build_opener(ProxyHandler({}))
"""A proxy of the machine has no business between two processes on it."""

LET_THROUGH = frozenset({"ENCOUNTERS_OPERATIONS_BIND", "ENCOUNTERS_TRACING"})
"""What who starts the demo may set of the service, to look at it: both are off by themselves."""

SEED = 1


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the parts are found; the ports of the others follow the service's."""

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

    @property
    def pas_port(self) -> int:
        """The port of a hospital that is reached over HTTP."""
        return self.port + 2

    @property
    def pas(self) -> str:
        """The address of such a hospital."""
        return f"http://{HOST}:{self.pas_port}"


def start_redis(
    family: Family, directory: DemoDirectory, server: Path, path: Path
) -> None:
    """Start Redis on a socket; what it holds is kept in the directory."""
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
    command += ["--port", str(addresses.issuer_port)]
    log, ready = directory.log("issuer"), lambda: _answers(addresses.key_set)
    family.start("token server", command, _environ({}), log, ready)


def start_pas(
    family: Family, directory: DemoDirectory, addresses: Addresses, stays: int
) -> Mapping[str, str]:
    """Start the hospital's API, the release that cannot page.

    Return the variables that the mapping of such a hospital names.
    """
    key = directory.pas_key()
    command = [sys.executable, "-m", "demo.http", "--no-paging"]
    command += ["--port", str(addresses.pas_port)]
    command += ["--stays", str(stays), "--seed", str(SEED)]
    log, asked = directory.log("pas"), f"{addresses.pas}/etablissements?nb=1"
    family.start(
        "hospital's API",
        command,
        _environ({KEY_VARIABLE: key}),
        log,
        lambda: _answers(asked, {KEY_HEADER: key}),
    )
    return {"PAS_URL": addresses.pas, KEY_VARIABLE: key}


def start_service(
    family: Family,
    directory: DemoDirectory,
    addresses: Addresses,
    deployment: Deployment,
    variables: Mapping[str, str],
) -> None:
    """Start the service; `variables` are Redis's address and those of the mapping."""
    directory.seal_key()
    directory.audit_key()
    environ = _environ(
        {
            "ENCOUNTERS_BASE_URL": addresses.base_url,
            "ENCOUNTERS_BIND": f"{HOST}:{addresses.port}",
            "ENCOUNTERS_ISSUER": addresses.issuer,
            "ENCOUNTERS_KEY_SET_URL": addresses.key_set,
            "ENCOUNTERS_AUDIENCE": AUDIENCE,
            "ENCOUNTERS_PLAIN_HTTP": "loopback",
            "ENCOUNTERS_MAPPING": str(deployment.mapping),
            "ENCOUNTERS_SEAL_KEYS_FILE": str(directory.seal_key_file.resolve()),
            "ENCOUNTERS_AUDIT": str(directory.audit_file.resolve()),
            "ENCOUNTERS_AUDIT_KEY_FILE": str(directory.audit_key_file.resolve()),
            **variables,
        }
    )
    command = [sys.executable, "-m", "app.cli", "serve"]
    log, asked = directory.log("service"), f"{addresses.base_url}/metadata"
    family.start("service", command, environ, log, lambda: _answers(asked))


def _environ(added: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a child: the settings of this demo and no other's."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("ENCOUNTERS_") or name in LET_THROUGH
    }
    paths = [str(PROJECT), *filter(None, [kept.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths)} | dict(added)


def _pings(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as asked, suppress(OSError):
        asked.settimeout(ANSWER_SECONDS)
        asked.connect(str(path))
        asked.sendall(b"PING\r\n")
        return asked.recv(64) == b"+PONG\r\n"
    return False


def _answers(url: str, headers: Mapping[str, str] | None = None) -> bool:
    request = Request(url, headers=dict(headers or {}))  # noqa: S310 - one of ours
    with (
        suppress(OSError, HTTPException),
        _DIRECT.open(request, timeout=ANSWER_SECONDS) as answer,
    ):
        return bool(answer.status == HTTPStatus.OK)
    return False
