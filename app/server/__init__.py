"""How the service runs: stock gunicorn with gthread workers, behind a proxy.

Of the threads of a worker, `ENCOUNTERS_THREADS` work on requests. `WAITING_PER_THREAD` more
for each of them hold requests that wait, and `SPARE_THREADS` answer probes meanwhile.
"""

import atexit
import os
import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path
from threading import Event
from typing import Any

EXPLORER = "explorer.explorer"
"""The module that serves pages for people on a listener of their own.

The service does not import it: it is loaded where a deployment has such a listener.
"""

WAITING_PER_THREAD = 3
SPARE_THREADS = 4


STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
_LATER = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH)
"""What gunicorn acts on once it runs; until then each would end the process."""


def ignore_signals() -> None:
    """Ignore what only a running service acts on; programs that are executed inherit it."""
    for number in _LATER:
        signal.signal(number, signal.SIG_IGN)


def begin_start() -> Event:
    """Handle signals until gunicorn does; return an event that SIGHUP sets.

    SIGTERM, SIGINT and SIGQUIT end the start.
    """
    ignore_signals()
    reload = Event()
    signal.signal(signal.SIGHUP, lambda *_: reload.set())
    for number in STOPS:
        signal.signal(number, lambda *_: sys.exit(0))
    return reload


def accepts(address: Any) -> bool:
    """Return whether a process accepts connections at the address of a socket."""
    family = socket.AF_INET
    if isinstance(address, str):
        family = socket.AF_UNIX
    elif ":" in address[0]:
        family = socket.AF_INET6
    with socket.socket(family) as connection:
        connection.settimeout(1)
        try:
            connection.connect(address)
        except (BlockingIOError, TimeoutError):
            # Its queue is full.
            return True
        except OSError:
            return False
    return True


def occupy_closed_streams() -> None:
    """Open the null device in place of standard streams that are closed.

    Else a client's connection or a file of metrics would get their descriptors, and with
    them the lines of the log. Read-only: an audit event that goes nowhere is an error.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # What is opened gets the lowest number that is free.
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)


def share_directory() -> None:
    """Create the directory that all processes of this run share, with one for metrics.

    It is removed when this process ends. To be called before prometheus_client is imported,
    which reads its name once (PROMETHEUS_MULTIPROC_DIR). Raises OSError.
    """
    shared = Path(tempfile.mkdtemp(prefix="encounters-"))
    metrics = shared / "metrics"
    metrics.mkdir()
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)
    atexit.register(_remove, shared, os.getpid())


def forget_process(process: int | None) -> None:
    """Remove the metrics of a process that has ended and served no request."""
    metrics = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
    for file in metrics.glob(f"*_{process}.db"):
        file.unlink()


def _remove(directory: Path, process: int) -> None:
    # Workers inherit what is to be done at the end.
    if os.getpid() == process:
        shutil.rmtree(directory, ignore_errors=True)
