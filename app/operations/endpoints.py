"""The operations endpoints, in a process of their own: `/live` and `/ready`.

`encounters serve` starts it beside the workers (`app.operations.server`), so that
neither a slow source nor busy workers can fail a probe; it looks after readiness and
ends with the process that started it. Its port is not for clients: it takes no token and
may be plain HTTP (decision 24).
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType

import orjson

from adapters import open_adapter
from adapters.mapping.load import load_mapping
from adapters.mapping.problems import MappingError
from app.auth import key_source
from app.operations.audit import audit_file
from app.operations.logs import configure_logs
from app.operations.readiness import (
    Probe,
    Watch,
    audit_probe,
    identity_probe,
    redis_probe,
    source_probe,
)
from app.paging import connect
from app.settings import AuditFailure, Settings, SettingsError

ALONE_SECONDS = 1.0
"""How long this process outlives the one that started it, at most."""

REQUEST_SECONDS = 5


def main() -> int:
    """Serve until the process that started this one is gone."""
    parent = os.getppid()
    # Ctrl-C reaches every process of the terminal; this one ends with its parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        settings = Settings.from_environ(os.environ)
        probes = _probes(settings)
    except (SettingsError, MappingError) as error:
        print(error, file=sys.stderr)
        return 2
    configure_logs(settings.log_level)
    watch = Watch(probes, settings.watch_seconds)
    threading.Thread(target=watch.run, daemon=True).start()
    if settings.operations_bind:
        server = operations_server(settings.operations_bind, watch)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    while os.getppid() == parent:
        time.sleep(ALONE_SECONDS)
    return 0


def _probes(settings: Settings) -> Mapping[str, Probe]:
    mapping = load_mapping(settings.mapping, os.environ)
    probes = {
        "source": source_probe(open_adapter(mapping)),
        "redis": redis_probe(connect(settings.redis_url)),
    }
    if keys := key_source(settings, time.monotonic):
        probes["identity"] = identity_probe(keys)
    file = audit_file(settings)
    if file and settings.audit_failure is AuditFailure.REFUSE:
        probes["audit"] = audit_probe(file)
    return MappingProxyType(probes)


def operations_server(address: str, watch: Watch) -> ThreadingHTTPServer:
    """Return a server for `/live` and `/ready` that listens at host:port."""
    host, _, port = address.rpartition(":")
    handler = type("_Handler", (_OperationsHandler,), {"watch": watch})
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    server = type("_Server", (_OperationsServer,), {"address_family": family})
    made: ThreadingHTTPServer = server((bare, int(port)), handler)
    return made


class _OperationsServer(ThreadingHTTPServer):
    daemon_threads = True


class _OperationsHandler(BaseHTTPRequestHandler):
    """Answers from memory; nothing here asks anybody anything."""

    watch: Watch
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
            case _:
                self._answer(HTTPStatus.NOT_FOUND, {"paths": ["/live", "/ready"]})

    def _answer(self, status: HTTPStatus, body: dict[str, object]) -> None:
        written = orjson.dumps(body)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(written)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(written)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: probes come every few seconds."""


if __name__ == "__main__":
    sys.exit(main())
