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
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Semaphore, Thread
from typing import Any, NoReturn

import orjson
import redis
from flask import Flask, Request, Response, g
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    generate_latest,
    multiprocess,
)

from adapters.contract import Adapter
from adapters.instrumentation import SOURCE_HELD_BACK
from adapters.registry import problems_of
from app.audit import FileSink, audit_file
from app.config import Settings
from app.errors import UnavailableError
from app.observability import PART_READY
from app.redis_client import REDIS_ERRORS, connect
from app.server import WAITING_PER_THREAD
from app.service import EXTENSION, Service

PATHS = ("/live", "/ready", "/metrics")

STUCK_SECONDS = 60.0
"""How long all threads may work without one that finishes: then `/live` fails."""

LEAST_ROOM = 1024 * 1024
"""With fewer bytes left, metrics of a new process may find no room."""

OPTIONAL = frozenset({"redis", "mapping", "guard", "counts"})
"""Parts that `/ready` reports but does not depend on.

Without Redis reads go on (decision 25); a source whose breaker is open has a part itself.
"""

Check = Callable[[], tuple[str, ...]]
"""Checks one part; returns its problems, in words for an operator."""

_log = logging.getLogger(__name__)


class Worker:
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
        threads, waiting = settings.threads, settings.threads * WAITING_PER_THREAD
        self._limit = RequestLimit(threads, waiting, settings.request_seconds)
        self._limit.register(app)
        self.watch = Watch(checks(settings, app.extensions[EXTENSION], refused))
        self._seconds = settings.watch_seconds

    def start(self) -> None:
        """Begin to check the parts, in a thread of this process.

        Not before the fork: a child has no such thread, and the locks that it held stay
        locked there.
        """
        Thread(target=self.watch.run, args=(self._seconds,), daemon=True).start()

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
                is_live = not self._limit.is_stuck
                return _json({"live": is_live}, 200 if is_live else 503)
            case "/ready":
                body = self.watch.body()
                return _json(body, 200 if body["ready"] else 503)
            case "/metrics":
                return Response(metrics(), content_type=CONTENT_TYPE_LATEST)
        return _json({"paths": PATHS}, 404)


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


class RequestLimit:
    """Limits how many requests a worker works on, and how many wait for their turn."""

    def __init__(
        self,
        running: int,
        waiting: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._places = Semaphore(running + waiting)
        self._turns = Semaphore(running)
        self._seconds = seconds
        self._clock = clock
        self._progress = clock()

    def register(self, app: Flask) -> None:
        """Apply the limit to every request of `app`."""
        app.before_request(self.enter)
        app.teardown_request(self.leave)

    def enter(self) -> None:
        """Wait for a turn. Raises UnavailableError (503) if none comes in time."""
        has_place = self._places.acquire(blocking=False)
        if not has_place or not self._turns.acquire(timeout=self._seconds):
            if has_place:
                self._places.release()
            raise UnavailableError("The service is busy. Try again later.")
        self._progress = self._clock()
        g.has_turn = True

    def leave(self, _: BaseException | None = None) -> None:
        """Pass the turn on, if the request had one."""
        if g.pop("has_turn", False):
            self._progress = self._clock()
            self._turns.release()
            self._places.release()

    @property
    def is_stuck(self) -> bool:
        """Whether every turn is taken, and none has been passed on for a long time."""
        if self._turns.acquire(blocking=False):
            self._turns.release()
            return False
        return self._clock() - self._progress >= STUCK_SECONDS


class Watch:
    """Runs the checks again and again, and logs what changes.

    `problems` are those of each part at the last look, none where it is fine.
    """

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks = checks
        self.problems: Mapping[str, tuple[str, ...]] = {}

    def body(self) -> dict[str, Any]:
        """Return the body of `/ready`: ready is where every required part is fine."""
        parts = {
            name: {"ready": not problems, "problems": list(problems)}
            for name, problems in self.problems.items()
        }
        required = parts.keys() - OPTIONAL
        is_ready = bool(required) and all(parts[name]["ready"] for name in required)
        return {"ready": is_ready, "parts": parts}

    def look(self) -> bool:
        """Run every check now; return whether all that is required is fine."""
        problems = {name: check() for name, check in self._checks.items()}
        for name, now in problems.items():
            before = self.problems.get(name, ())
            for problem in sorted(set(now) - set(before)):
                data = {"part": name, "problem": problem}
                _log.error("not ready", extra={"data": data})
            if before and not now:
                _log.warning("ready again", extra={"data": {"part": name}})
            PART_READY.labels(name).set(not now)
        self.problems = problems
        return bool(self.body()["ready"])

    def run(self, seconds: float) -> NoReturn:
        """Run every check each so many seconds."""
        while True:
            self.look()
            time.sleep(seconds)


def checks(
    settings: Settings, service: Service, refused: Sequence[str]
) -> Mapping[str, Check]:
    """Return the checks of a deployment, by the part that they check."""
    parts: dict[str, Check] = {
        "source": lambda: check_source(service.adapter),
        "redis": lambda: check_redis(client),
        "guard": check_breakers,
        "mapping": lambda: check_refused(refused),
    }
    client = connect(settings.redis_url)
    if directory := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        parts["counts"] = lambda: check_room(Path(directory))
    if keys := service.authenticator.keys:
        missing = ("the key set cannot be fetched: no token can be checked",)
        parts["identity"] = lambda: () if keys.current() else missing
    file = audit_file(settings)
    if file and settings.audit_failure == "refuse":
        parts["audit"] = lambda: check_audit(file)
    return parts


def check_source(adapter: Adapter) -> tuple[str, ...]:
    """Check that the source answers and still has what the mapping names."""
    texts = [problem.text for problem in problems_of(adapter) if problem.serious]
    # Where nobody answers, each section reports the same.
    return tuple(dict.fromkeys(texts))


def check_breakers() -> tuple[str, ...]:
    """Check whether the circuit breaker of a source is open in this process."""
    return tuple(
        f"source {sample.labels['source']} did not answer: its breaker is open"
        for metric in SOURCE_HELD_BACK.collect()
        for sample in metric.samples
        if sample.value
    )


def check_refused(findings: Sequence[str]) -> tuple[str, ...]:
    """Check whether the last mapping that was to be served has been refused."""
    return ("refused; the one before is served", *findings) if findings else ()


def check_room(directory: Path) -> tuple[str, ...]:
    """Check that there is room for metrics."""
    try:
        left = shutil.disk_usage(directory).free
    except OSError as error:
        return (f"metrics cannot be written ({error.strerror})",)
    if left < LEAST_ROOM:
        # Without the number: whenever it changed, the log would report it anew.
        room = LEAST_ROOM // 1024
        return (f"less than {room} KiB left for metrics: some may be missing",)
    return ()


def check_redis(client: redis.Redis) -> tuple[str, ...]:
    """Check that Redis answers."""
    try:
        client.ping()
    except REDIS_ERRORS as error:
        return (f"does not answer ({type(error).__name__})",)
    return ()


def check_audit(file: FileSink) -> tuple[str, ...]:
    """Check that audit events can be written: else every request is refused."""
    try:
        file.check()
    except OSError as error:
        return (f"the audit file cannot be written ({error.strerror})",)
    return ()
