"""gunicorn's configuration for `dutiful`: our worker, which is told what it waits for."""

import gc
from typing import Any

worker_class = "app.operations.worker.OutcomeWorker"
logger_class = "app.operations.quiet.QuietLogger"
forwarded_allow_ips = ""


def when_ready(_arbiter: object) -> None:
    """Keep the collector from what is there for good, as the service does."""
    gc.freeze()
    gc.set_threshold(5_000)


def post_fork(_arbiter: object, worker: Any) -> None:
    """Tell a new worker how long it waits for a request, and for how much."""
    worker.request_seconds = 30.0
    worker.most_body = 65536
