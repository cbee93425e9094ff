"""How the service runs: stock gunicorn with gthread workers, behind a proxy.

Of the threads of a worker, `ENCOUNTERS_THREADS` work on requests. `WAITING_PER_THREAD` more
for each of them hold requests that wait, and `SPARE_THREADS` answer probes meanwhile.
"""

import os
import tempfile
from pathlib import Path

EXPLORER = "explorer.explorer"
"""The module that serves pages for people on a listener of their own.

The service does not import it: it is loaded where a deployment has such a listener.
"""

WAITING_PER_THREAD = 3
SPARE_THREADS = 4


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


def share_directory() -> Path:
    """Create the directory that all processes of this run share, with one for metrics.

    To be called before prometheus_client is imported, which reads its name once
    (PROMETHEUS_MULTIPROC_DIR). Raises OSError.
    """
    shared = Path(tempfile.mkdtemp(prefix="encounters-"))
    metrics = shared / "metrics"
    metrics.mkdir()
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)
    return shared
