"""gunicorn's configuration, for `-c python:app.server.config` and `gunicorn.conf.py`.

Every lower-case name below is a setting or a hook of gunicorn, as its documentation
describes them. What a deployment chooses comes from the environment (`app.config`), and
`GUNICORN_CMD_ARGS` overrides it. Invalid settings, and a mapping that cannot be served,
end the start with status 2 before anything listens.
"""

import gc
import logging
import os
import signal
import sys
from typing import Any

from gunicorn.glogging import Logger

from app.server import (
    SPARE_THREADS,
    STOPS,
    WAITING_PER_THREAD,
    begin_start,
    occupy_closed_streams,
    share_directory,
)

try:
    _reload = begin_start()
    occupy_closed_streams()
    share_directory()
except OSError as error:
    print(f"No temporary directory can be created: {error.strerror}", file=sys.stderr)
    sys.exit(2)

# Only now: with these comes prometheus_client. Workers are forked with the code that they
# need, and share its memory.
from prometheus_client import multiprocess

import app.audit
import app.views  # noqa: F401
from adapters import read_in
from app.config import Settings, SettingsError
from app.logging import configure_logs, logging_config
from app.observability import close_tracing
from app.server.reload import RefusedMappingError, served

try:
    _settings = Settings.from_environ(os.environ)
    configure_logs(_settings.log_level)
    # Not in the hook `on_starting`: with `--preload` the application is loaded before it.
    _mapping = served.start()
except (SettingsError, RefusedMappingError) as error:
    print(error, file=sys.stderr)
    sys.exit(2)

read_in(_mapping)
_log = logging.getLogger("app.server.config")


class ServerLogger(Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's logger without lines about requests.

    The service writes its own. Where `logconfig_dict` is set, gunicorn would still collect
    what a line may hold, for each request: 8 % of a busy worker's time.
    """

    access_log_enabled = False


proc_name = "encounters"
wsgi_app = "wsgi:application"
# Workers answer probes themselves, on an address that no client reaches: a probe that
# another process answered would stay green while the workers are dead.
bind = [_settings.bind]
if _settings.operations_bind:
    bind.append(_settings.operations_bind)
if _settings.explorer_bind:
    bind.append(_settings.explorer_bind)
# A unix socket is for the owner and the group: who opens it counts as the proxy.
umask = 0o117

worker_class = "app.server.worker.ClosingWorker"
workers = _settings.workers
threads = _settings.threads * (1 + WAITING_PER_THREAD) + SPARE_THREADS
# A worker that hangs as a whole; a slow request has timeouts of its own.
timeout = 60
graceful_timeout = 30
# Longer than a proxy keeps an idle connection (60 s), so that the proxy closes first.
keepalive = 75
# Fewer than the file descriptors that a process usually may have (1024).
worker_connections = 768
# Heartbeats in memory: on a slow disk they would have healthy workers killed.
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108

# Wider than the proxy's (deploy/compose/nginx.conf), so that it is the proxy who
# refuses: gunicorn's own refusals are HTML.
limit_request_line = 8190
limit_request_fields = 8192
limit_request_field_size = 16384
# gunicorn trusts no X-Forwarded header: the application knows its proxies
# (decision 24), gunicorn would trust every client on the loopback interface.
forwarded_allow_ips = ""

logger_class = ServerLogger
logconfig_dict = logging_config(_settings.log_level)
# No control socket in the home directory of the account.
control_socket_disable = True


def when_ready(_arbiter: object) -> None:
    """Exclude shared memory from garbage collection; reload if SIGHUP came meanwhile."""
    gc.collect()
    gc.freeze()
    if _reload.is_set():
        os.kill(os.getpid(), signal.SIGHUP)


def post_fork(_arbiter: object, _worker: object) -> None:
    """Restore the default for stop signals until a worker handles them itself.

    The handlers that it inherits from the master only put a signal into the master's queue.
    """
    for number in STOPS:
        signal.signal(number, signal.SIG_DFL)


def pre_exec(_arbiter: object) -> None:
    """Refuse SIGUSR2: a second master would not be the process that systemd knows."""
    _log.warning("SIGUSR2 is refused")
    os._exit(0)


def post_worker_init(worker: Any) -> None:
    """Begin to check the parts that the service depends on."""
    worker.wsgi.start([listener.getsockname() for listener in worker.sockets])


def pre_request(_worker: object, request: Any) -> None:
    """Announce that the connection ends if the body may be too long: its rest is not read.

    gunicorn writes the header before it finds that out; the application cannot write it.
    """
    for name, value in request.headers:
        if name == "TRANSFER-ENCODING" or (
            name == "CONTENT-LENGTH" and int(value) > _settings.max_body_bytes
        ):
            request.force_close()


def on_reload(_arbiter: object) -> None:
    """Read the changed mapping: gunicorn replaces the workers afterwards (SIGHUP)."""
    served.renew()


def worker_exit(_arbiter: object, _worker: object) -> None:
    """Send the spans that are left."""
    close_tracing()


def child_exit(_arbiter: object, worker: Any) -> None:
    """Drop the gauges of a worker that has ended."""
    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
