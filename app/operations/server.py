"""gunicorn's configuration, for `-c python:app.operations.server`.

Every name below is a setting of gunicorn; those that a deployment chooses come from the
environment, like all others (`app.settings`). A faulty setting ends the start.
"""

import gc
import os
import sys
from collections.abc import Callable
from ssl import SSLContext
from typing import Any

# Read once, before there are workers: each is forked with it, and takes over at once.
import app.application
from app.operations.beside import operations
from app.operations.logs import logging_config
from app.operations.reloading import Reloading
from app.operations.shared import MEMORY, Shared
from app.settings import Settings, SettingsError

try:
    _settings = Settings.from_environ(os.environ)
except SettingsError as error:
    sys.exit(str(error))

_shared = Shared.of(os.environ)
_reloading = Reloading(_shared, operations) if _shared else None
_contexts: list[SSLContext] = []

if _shared is None:
    # `encounters serve` has read what its mapping needs; a bare gunicorn knows of none.
    import adapters.federated
    import adapters.http
    import adapters.sql  # noqa: F401
if _settings.tracing:
    import app.operations.tracing  # noqa: F401

proc_name = "encounters"
bind = _settings.bind

worker_class = "app.operations.worker.OutcomeWorker"
workers = _settings.workers
threads = _settings.threads
# A worker that hangs as a whole; a slow request has time-outs of its own.
timeout = 60
graceful_timeout = 30
# Longer than a proxy keeps an idle connection (60 s), so that the proxy closes first.
keepalive = 75
# Fewer than the file descriptors that a process usually may have (1024).
worker_connections = 512
# Heartbeats on a disk that stalls would have healthy workers killed.
worker_tmp_dir = str(MEMORY) if os.access(MEMORY, os.W_OK) else None

limit_request_line = 8190
limit_request_fields = 64
limit_request_field_size = 8190
# Nobody's X-Forwarded-* is believed here: the application knows its proxies
# (decision 24), gunicorn would trust every client on the loopback interface.
forwarded_allow_ips = ""

# The application writes its own line a request, without paths or queries.
accesslog = None
logger_class = "app.operations.quiet.QuietLogger"
logconfig_dict = logging_config(_settings.log_level)

# No files in the home directory of whoever runs this, no second way in.
control_socket_disable = True


def when_ready(arbiter: Any) -> None:
    """Make ready for the processes to be forked: gunicorn listens now."""
    operations.attend(arbiter)
    # What they are forked with is theirs for good: looking through it for garbage would
    # make each of them write a copy.
    gc.freeze()
    # A page of 100 is some 1,500 objects that are needed to its end, and there are several at
    # once: looked through after every 700, as is usual, they cost a page 4 % more CPU.
    gc.set_threshold(5_000)
    gc.enable()
    if _reloading:
        _reloading.attend(arbiter)


def post_fork(_arbiter: object, worker: Any) -> None:
    """Tell a new worker what it waits for."""
    worker.request_seconds = float(_settings.request_seconds)
    worker.most_body = _settings.max_body_bytes


def ssl_context(_config: object, make: Callable[[], SSLContext]) -> SSLContext:
    """Return what connections are encrypted by, where gunicorn ends TLS.

    A worker makes it once: that reads certificates, and all connections would wait for it.
    """
    if not _contexts:
        _contexts.append(make())
    return _contexts[0]


def on_exit(_arbiter: object) -> None:
    """End it with the workers, and leave nothing behind."""
    operations.stop()
    if _reloading:
        _reloading.stop()
    if _shared:
        _shared.remove()
