"""The operations process beside gunicorn's workers: started with them, ended with them."""

import logging
import signal
import time
from typing import Any, BinaryIO

from app.operations import endpoints
from app.operations.forked import Forked

AGAIN_SECONDS = 2.0
"""The pause before a process that ended by itself is started again."""

STOP_SECONDS = 5.0

_log = logging.getLogger(__name__)


class Beside:
    """Keeps the operations process running until `stop`; gunicorn's arbiter holds it."""

    def __init__(self) -> None:
        self._process: Forked | None = None
        self._again = 0.0

    def attend(self, arbiter: Any) -> None:
        """Start the process after the first workers, and again whenever it has ended."""
        manage_workers = arbiter.manage_workers

        def manage() -> None:
            manage_workers()
            self._look(arbiter)

        # gunicorn has no hook for this: its loop, where there are no threads, comes by here
        # once a second and whenever a child has ended.
        arbiter.manage_workers = manage

    def poke(self) -> None:
        """Let the process look anew, now."""
        if self._process:
            self._process.send(signal.SIGHUP)

    def stop(self) -> None:
        """End the process."""
        if self._process:
            self._process.send(signal.SIGTERM)
            if not self._process.has_ended(STOP_SECONDS):
                self._process.send(signal.SIGKILL)
            self._process.bury()
            self._process = None

    def _look(self, arbiter: Any) -> None:
        if self._process and self._process.has_ended():
            _log.error("operations process ended: it is started again")
            self._process.bury()
            self._process, self._again = None, time.monotonic() + AGAIN_SECONDS
        if self._process is None and time.monotonic() >= self._again:
            try:
                self._process = _started(arbiter)
            except OSError as error:
                # What serves goes on, and room comes.
                self._again = time.monotonic() + AGAIN_SECONDS
                data = {"reason": error.strerror}
                _log.error("operations process not started", extra={"data": data})


def let_go(arbiter: Any) -> None:
    """Close, in a process forked from the arbiter's, what is the arbiter's and its workers'.

    Else it would go on listening while the service stops.
    """
    for listener in arbiter.LISTENERS:
        listener.close()
    for worker in arbiter.WORKERS.values():
        worker.tmp.close()


def _started(arbiter: Any) -> Forked:
    def work(_: BinaryIO) -> int:
        let_go(arbiter)
        return endpoints.main()

    return Forked(work)


operations = Beside()
