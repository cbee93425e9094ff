"""The operations endpoints, in a process of their own: `/live`, `/ready`, `/metrics`.

gunicorn's master forks it beside the workers (`app.operations.beside`), so that neither a
slow source nor busy workers can fail a probe; it looks after readiness and ends with the
process that started it. Its port is not for clients: it takes no token and may be plain
HTTP (decision 24).
"""

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType

import orjson

from adapters import open_adapter
from adapters.contract import Adapter
from adapters.mapping.kept import SUFFIX
from adapters.mapping.load import load_mapping
from adapters.mapping.problems import MappingError
from app.auth import key_source
from app.operations.audit import audit_file
from app.operations.logs import configure_logs
from app.operations.readiness import (
    Probe,
    Watch,
    audit_probe,
    counts_probe,
    guard_probe,
    identity_probe,
    mapping_probe,
    redis_probe,
    source_probe,
)
from app.operations.scrape import CONTENT_TYPE, Scraper
from app.operations.shared import Shared
from app.settings import AuditFailure, Settings, SettingsError
from app.timed_redis import connect

ALONE_SECONDS = 1.0
"""How long this process outlives the one that started it, at most."""

REQUEST_SECONDS = 5

# By its name: this module is also run as a program.
_log = logging.getLogger("app.operations.endpoints")

PATHS = ("/live", "/ready", "/metrics")

NAME = "encounters-ops"
"""What `ps` and `top` call this process where they ask the kernel, which is Linux."""


def main() -> int:
    """Serve until the process that started this one is gone."""
    parent = os.getppid()
    with suppress(OSError):
        Path("/proc/self/comm").write_text(NAME)
    # Ctrl-C reaches every process of the terminal; this one ends with its parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        settings = Settings.from_environ(os.environ)
        shared = Shared.of(os.environ)
        scraper = Scraper(shared.counts) if shared else None
        watch = Watch(_probes(settings, shared, scraper), settings.watch_seconds)
    except (SettingsError, MappingError) as error:
        print(error, file=sys.stderr)
        return 2
    configure_logs(settings.log_level)
    signal.signal(signal.SIGHUP, lambda *_: watch.wake())
    threading.excepthook = _log_fault
    work: list[Callable[[], None]] = [watch.run]
    if settings.operations_bind:
        try:
            server = operations_server(settings.operations_bind, watch, scraper)
        except OSError as error:
            data = {"reason": error.strerror}
            _log.error("operations port not taken", extra={"data": data})
            return 1
        work.append(server.serve_forever)
    threads = [threading.Thread(target=each, daemon=True) for each in work]
    for thread in threads:
        thread.start()
    while os.getppid() == parent:
        if not all(thread.is_alive() for thread in threads):
            # What was seen last would be told for ever: a new process looks again.
            return 1
        time.sleep(ALONE_SECONDS)
    return 0


def _log_fault(fault: threading.ExceptHookArgs) -> None:
    _log.error("operations process fails", exc_info=fault.exc_value)


def _probes(
    settings: Settings, shared: Shared | None, scraper: Scraper | None
) -> Mapping[str, Probe]:
    probes = {
        "source": _Source(settings.mapping).look,
        "redis": redis_probe(connect(settings.redis_url)),
    }
    if shared and scraper:
        probes |= {"mapping": mapping_probe(shared), "guard": guard_probe(scraper)}
        probes["counts"] = counts_probe(shared.counts)
    if keys := key_source(settings, time.monotonic):
        probes["identity"] = identity_probe(keys)
    file = audit_file(settings)
    if file and settings.audit_failure is AuditFailure.REFUSE:
        probes["audit"] = audit_probe(file)
    return MappingProxyType(probes)


class _Source:
    """The source of the mapping that is served, opened anew when that has changed."""

    def __init__(self, mapping: Path) -> None:
        self._mapping = mapping
        self._opened = mapping.stat()
        self._adapter = self._open()

    def look(self) -> tuple[str, ...]:
        """Return what is wrong with it."""
        # Only one that has been checked is kept; a file as it stands may be half written.
        if self._mapping.suffix == SUFFIX:
            now = self._mapping.stat()
            if not os.path.samestat(now, self._opened):
                self._adapter.close()
                self._opened, self._adapter = now, self._open()
        return source_probe(self._adapter)()

    def _open(self) -> Adapter:
        return open_adapter(load_mapping(self._mapping, os.environ))


def operations_server(
    address: str, watch: Watch, scraper: Scraper | None = None
) -> ThreadingHTTPServer:
    """Return a server for the operations endpoints that listens at host:port."""
    host, _, port = address.rpartition(":")
    given = {"watch": watch, "scraper": scraper}
    handler = type("_Handler", (_OperationsHandler,), given)
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    server = type("_Server", (_OperationsServer,), {"address_family": family})
    made: ThreadingHTTPServer = server((bare, int(port)), handler)
    return made


class _OperationsServer(ThreadingHTTPServer):
    daemon_threads = True
    # The library's five are soon full, and who finds no place asks again after a second.
    request_queue_size = 128

    def handle_error(self, _request: object, _client_address: object) -> None:
        """Log a fault as all faults are logged; a client that has gone is none."""
        if not isinstance(sys.exception(), OSError):
            _log.exception("probe not answered")


class _OperationsHandler(BaseHTTPRequestHandler):
    """Answers from memory; nothing here asks anybody anything."""

    watch: Watch
    scraper: Scraper | None
    timeout = REQUEST_SECONDS
    server_version, sys_version = "encounters", ""

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/live":
                self._answer(HTTPStatus.OK, {"live": True})
            case "/ready":
                seen = self.watch.seen
                status = HTTPStatus.OK if seen.ready else HTTPStatus.SERVICE_UNAVAILABLE
                self._answer(status, seen.body())
            case "/metrics" if self.scraper:
                self._write(HTTPStatus.OK, CONTENT_TYPE, self.scraper.text())
            case _:
                self._answer(HTTPStatus.NOT_FOUND, {"paths": PATHS})

    def _answer(self, status: HTTPStatus, body: dict[str, object]) -> None:
        self._write(status, "application/json", orjson.dumps(body))

    def _write(self, status: HTTPStatus, kind: str, written: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(written)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(written)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: probes come every few seconds."""


if __name__ == "__main__":
    sys.exit(main())
