"""What keeps a worker observable: probes, metrics, and threads that are free for them.

`/live`, `/ready` and `/metrics` are answered by the workers themselves, on a second bind
that only orchestrators and Prometheus reach: no token, plain HTTP (decisions 24 and 31).
Clients of the service never reach these paths, and probes never reach the service.

A worker answers a limited number of requests at a time and queues a limited number;
further ones get 503 "busy". So threads are left for probes however many clients come.

Each part that the service depends on is checked in the background, and `/ready` reports
the last results: a slow source does not delay a probe.
"""

import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from threading import Thread
from typing import Any, NoReturn

import orjson
from flask import Flask, Request, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    generate_latest,
    multiprocess,
)

from adapters.instrumentation import SOURCE_HELD_BACK
from app.config import Settings
from app.observability import PART_READY
from app.redis_client import end_connections
from app.server import accepts
from app.server.checks import (
    Results,
    ServiceCheck,
    Status,
    check_source,
    checks_of,
    error,
)
from app.service import EXTENSION, Service

PATHS = ("/live", "/ready", "/metrics")

_log = logging.getLogger(__name__)


class WorkerApplication:
    """The WSGI application of a worker: the service; probes and explorer on binds of theirs."""

    def __init__(
        self,
        app: Flask,
        settings: Settings,
        explorer: Flask | None = None,
        refused: Sequence[str] = (),
    ) -> None:
        """`refused` are the findings of a mapping that is not served (`app.server.reload`)."""
        self._app = app
        self._explorer = explorer
        self._operations_bind = settings.operations_bind
        self._explorer_bind = settings.explorer_bind
        service: Service = app.extensions[EXTENSION]
        self._limit = service.limit
        self.watch = Watch(checks_of_worker(settings, service, refused))
        self._seconds = settings.watch_seconds
        self._lifetime = settings.connection_lifetime_seconds
        self._addresses: Sequence[Any] = ()

    def start(self, addresses: Iterable[Any]) -> None:
        """Begin to check the parts and to end old connections, in threads of this process.

        `addresses` are those that it listens on.

        Not before the fork: a child has no such thread, and the locks that it held stay
        locked there.
        """
        self._addresses = tuple(addresses)
        Thread(target=self.watch.run, args=(self._seconds,), daemon=True).start()
        Thread(target=end_connections, args=(self._lifetime,), daemon=True).start()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request by the address that it arrived on."""
        if self._explorer and _arrived_on(self._explorer_bind, environ):
            return self._explorer(environ, start_response)
        if not _arrived_on(self._operations_bind, environ):
            return self._app(environ, start_response)
        response = self._probe(Request(environ).path)
        response.headers["Cache-Control"] = "no-store"
        return response(environ, start_response)

    def _probe(self, path: str) -> Response:
        match path:
            case "/live":
                is_live = not self._limit.is_stuck and self._is_reached()
                return _json({"live": is_live}, 200 if is_live else 503)
            case "/ready":
                body = self.watch.body()
                body["ready"] = body["ready"] and self._is_reached()
                return _json(body, 200 if body["ready"] else 503)
            case "/metrics":
                return Response(metrics(), content_type=CONTENT_TYPE_LATEST)
        return _json({"paths": PATHS}, 404)

    def _is_reached(self) -> bool:
        """Return whether clients can connect: nobody has removed the file of a socket."""
        return all(map(accepts, self._addresses))


def _json(body: object, status: int) -> Response:
    return Response(orjson.dumps(body), status, content_type="application/json")


def metrics() -> bytes:
    """Return the metrics of all workers, in the format of Prometheus."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def _arrived_on(bind: str | None, environ: Mapping[str, Any]) -> bool:
    """Return whether a request arrived on this listener."""
    # Not SERVER_PORT: on a unix socket gunicorn takes it from the Host header.
    connection = environ.get("gunicorn.socket")
    if connection is None or not bind:
        return False
    address = connection.getsockname()
    if isinstance(address, tuple):
        return str(address[1]) == bind.rpartition(":")[2]
    return f"unix:{address}" == bind


class Watch:
    """Runs the checks again and again, and logs what changes.

    `problems` are those of each part at the last look, none where it is fine.
    """

    def __init__(self, checks: Iterable[ServiceCheck]) -> None:
        self._checks = tuple(checks)
        self.problems: Mapping[str, tuple[str, ...]] = {}

    def body(self) -> dict[str, Any]:
        """Return the body of `/ready`: ready is where every required part is fine."""
        parts = {
            name: {"ready": not problems, "problems": list(problems)}
            for name, problems in self.problems.items()
        }
        required = [c.name for c in self._checks if c.required and c.name in parts]
        is_ready = bool(required) and all(parts[name]["ready"] for name in required)
        return {"ready": is_ready, "parts": parts}

    def look(self) -> bool:
        """Run every check now; return whether all that is required is fine."""
        problems = {
            check.name: tuple(r.text for r in check.run() if r.status is Status.ERROR)
            for check in self._checks
        }
        for name, present in problems.items():
            earlier = self.problems.get(name, ())
            for problem in sorted(set(present) - set(earlier)):
                data = {"part": name, "problem": problem}
                _log.error("not ready", extra={"data": data})
            if earlier and not present:
                _log.warning("ready again", extra={"data": {"part": name}})
            PART_READY.labels(name).set(not present)
        self.problems = problems
        return bool(self.body()["ready"])

    def run(self, seconds: float) -> NoReturn:
        """Run every check each so many seconds."""
        while True:
            self.look()
            time.sleep(seconds)


def checks_of_worker(
    settings: Settings, service: Service, refused: Sequence[str]
) -> Iterator[ServiceCheck]:
    """Yield the checks of a worker: those of the deployment, and those of its own state."""
    yield ServiceCheck("source", partial(check_source, service.adapter))
    yield from checks_of(settings, service.authenticator.keys)
    # A source whose breaker is open has a part itself.
    yield ServiceCheck("guard", check_breakers, required=False)
    yield ServiceCheck("mapping", partial(check_refused, refused), required=False)


def check_breakers() -> Results:
    """Check whether the circuit breaker of a source is open in this process."""
    for metric in SOURCE_HELD_BACK.collect():
        for sample in metric.samples:
            if sample.value:
                source = sample.labels["source"]
                yield error(f"source {source} failed: its circuit breaker is open")


def check_refused(findings: Sequence[str]) -> Results:
    """Check whether the last mapping that was to be served has been refused."""
    if findings:
        yield from map(error, ("refused; the earlier one is served", *findings))
