"""The operations process beside gunicorn's workers: started with them, ended with them."""

import logging
import signal
import subprocess
import sys
import threading

AGAIN_SECONDS = 2.0
"""The pause before a process that ended by itself is started again."""

STOP_SECONDS = 5.0

_log = logging.getLogger(__name__)


class Beside:
    """Keeps one process running until `stop`; gunicorn's arbiter holds it."""

    def __init__(self, *command: str) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start the process, and again whenever it ends."""
        threading.Thread(target=self._run, daemon=True).start()

    def poke(self) -> None:
        """Let the process look anew, now."""
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        """End the process."""
        self._stopped.set()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def _run(self) -> None:
        while not self._stopped.is_set():
            # Spawned, not forked: a worker that gunicorn forks at the same moment would
            # keep open the pipe that a forking Popen waits for. Ours are closed on exec.
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                self._command, stdin=subprocess.DEVNULL, close_fds=False
            )
            self._process.wait()
            if self._stopped.wait(AGAIN_SECONDS):
                return
            _log.error("operations process ended: it is started again")


operations = Beside(sys.executable, "-m", "app.operations.endpoints")
