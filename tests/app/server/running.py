"""The whole service in processes of its own, and a client with a token."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import psutil
import requests
from werkzeug.wrappers import Request, Response

from tests.app import provider
from tests.canaries import canaries_in
from tests.hospital_http import Api, answer, http_mapping_text, serving
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, ROOT, free_ports, wait_until
from toolkit.contract.hospital import EDGES

PATIENCE = 60.0
STAY = str(EDGES.stays[0].id)
READ = f"Encounter/{STAY}"
SERVE = (
    "-c",
    "import sys; from app.cli import main; sys.exit(main(['serve']))",
)
"""`encounters serve`, of this tree; arguments of Python."""


class Answered(NamedTuple):
    """An answer; the status is 0 where nobody answered in time."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Running:
    """A service that runs: its master process, its two ports, its log."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    def get(self, path: str, token: str | None = None) -> Answered:
        """Send a request as a client, with a signed token unless another is given."""
        path = re.sub("^https://[^/]+/fhir/v3/", "", path)
        headers = {
            "Authorization": provider.bearer(token or provider.sign()),
            "X-Forwarded-Proto": "https",
        }
        url = f"http://{HOST}:{self.port}/fhir/v3/{path}"
        return fetch(url, headers, 2 * PATIENCE)

    def page(self, path: str) -> Answered:
        """Return a page of a search, whenever a busy machine has Redis answer in time."""
        deadline = time.monotonic() + PATIENCE
        answered = self.get(path)
        while answered.status == 503 and time.monotonic() < deadline:
            time.sleep(0.1)
            answered = self.get(path)
        return answered

    def operations(self, path: str, seconds: float = PATIENCE) -> Answered:
        """Send a request to the operations port."""
        answered = fetch(f"http://{HOST}:{self.port + 1}{path}", {}, seconds)
        assert canaries_in(answered.body.decode()) == []
        return answered

    def part(self, name: str) -> Any:
        """Return a part of `/ready`, None as long as it has none."""
        answered = self.operations("/ready")
        return answered.json["parts"].get(name) if answered.status else None

    def metric(self, sample: str) -> float:
        """Return a metric, 0 for one that is not there."""
        text = self.operations("/metrics").body.decode()
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line)
        return float(values.get(sample, 0))

    def lines(self) -> list[dict[str, Any]]:
        """Return what is logged."""
        text = self.log.read_text("utf-8").splitlines()
        return [json.loads(line) for line in text if line.startswith("{")]

    def events(self, event: str) -> list[dict[str, Any]]:
        """Return the log lines of one event."""
        return [line for line in self.lines() if line["event"] == event]

    def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds of a service that has not ended."""

        def runs_and_holds() -> bool:
            assert self.process.poll() is None, self.log.read_text("utf-8")
            return bool(holds())

        wait_until(runs_and_holds, self.log, PATIENCE)

    def workers(self) -> list[psutil.Process]:
        """Return the worker processes."""
        return psutil.Process(self.process.pid).children()

    def reload(self) -> None:
        """Send SIGHUP, and wait until new workers have taken over."""
        before = self.workers()
        self.process.send_signal(signal.SIGHUP)
        self.until(lambda: not any(each.is_running() for each in before))
        self.until(lambda: self.operations("/live").status == 200)


def fetch(url: str, headers: Mapping[str, str], seconds: float) -> Answered:
    """Return what is answered at an address."""
    try:
        response = requests.get(url, headers=headers, timeout=seconds)
    except requests.RequestException:
        return Answered(0)
    return Answered(response.status_code, response.headers, response.content)


@Request.application
def keys(_request: Request) -> Response:
    """Answer as the identity provider does that publishes its keys."""
    return answer(provider.key_set(provider.rsa()))


def edges(directory: Path) -> Path:
    """Return the mapping of the hospital of edge cases, in a SQLite file beside it."""
    url = f"sqlite:///{directory / 'pas.db'}"
    Tables(url, EDGES).close()
    mapping = directory / "mapping.yaml"
    mapping.write_text(mapping_text(EDGES, url), "utf-8")
    return mapping


def service_environ(
    mapping: Path, first: int, environ: Mapping[str, str] = {}, **settings: str
) -> dict[str, str]:
    """Return the environment of a service on two ports from `first` on."""
    chosen = {
        # On loopback: the mapping has identifiers of examples.
        "BASE_URL": f"https://{HOST}:{first}/fhir/v3",
        "BIND": f"{HOST}:{first}",
        "OPERATIONS_BIND": f"{HOST}:{first + 1}",
        "TRUSTED_PROXIES": HOST,
        "WORKERS": "1",
        **settings,
    }
    return {**os.environ, **environ, **provider.environ(mapping, **chosen)}


@contextmanager
def starting(
    directory: Path,
    environ: Mapping[str, str],
    first: int,
    command: Sequence[str] = SERVE,
) -> Iterator[Running]:
    """Start a service with the settings of an environment, on two ports from `first` on."""
    log = directory / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env={**os.environ, **environ},
            stderr=file,
        )
    try:
        yield Running(process, first, log)
    finally:
        process.terminate()
        # By the signal itself before our first line under gunicorn.
        assert process.wait(PATIENCE) in {0, -signal.SIGTERM}, log.read_text("utf-8")


@contextmanager
def running_as(
    directory: Path,
    environ: Mapping[str, str],
    first: int,
    command: Sequence[str] = SERVE,
) -> Iterator[Running]:
    """Run a service until it is stopped; it ends with status 0."""
    with starting(directory, environ, first, command) as service:
        service.until(lambda: service.operations("/live").status == 200)
        yield service
    assert service.process.returncode == 0, service.log.read_text("utf-8")


@contextmanager
def running(
    directory: Path,
    mapping: Path,
    environ: Mapping[str, str] = {},
    command: Sequence[str] = SERVE,
    **settings: str,
) -> Iterator[Running]:
    """Serve a mapping; `environ` is what it names, `settings` are those of the service."""
    first = free_ports(2)
    with serving(keys) as key_set:
        chosen = {"KEY_SET_URL": f"{key_set}/keys", **settings}
        variables = service_environ(mapping, first, environ, **chosen)
        with running_as(directory, variables, first, command) as service:
            yield service


class SlowSource:
    """Holds every read of one stay while `goes_on` is not set."""

    def __init__(self) -> None:
        self.api = Api(EDGES, strange=self._hold)
        self.goes_on = Event()
        self.goes_on.set()
        self.held: list[Request] = []

    def _hold(self, request: Request) -> None:
        if request.path.endswith(f"/{STAY}"):
            self.held.append(request)
            self.goes_on.wait(2 * PATIENCE)
            self.held.remove(request)


@contextmanager
def slowed(
    directory: Path, redis_url: str, **settings: str
) -> Iterator[tuple[SlowSource, Running]]:
    """Serve the hospital by processes of their own."""
    source, mapping = SlowSource(), directory / "hospital.yaml"
    # Its own limits are not what is tested: none of them is reached.
    limits = "url: {env: PAS_URL}, timeout_seconds: 60, connections: 16"
    text = http_mapping_text(EDGES).replace("url: {env: PAS_URL}", limits)
    mapping.write_text(text.replace("timeout_seconds: 2,", ""), "utf-8")
    with ExitStack() as stack:
        environ = {"PAS_URL": stack.enter_context(serving(source.api))}
        started = running(directory, mapping, environ, REDIS_URL=redis_url, **settings)
        service = stack.enter_context(started)
        stack.callback(source.goes_on.set)
        yield source, service
