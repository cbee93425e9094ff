"""What a worker takes to its first answer: as when one was ended, and begins anew."""

import os
import signal
import time
from collections.abc import Iterator, Sequence

from bench.contenders import Running
from bench.load import Load
from bench.scenarios import Call

BETWEEN_SECONDS = 1.0
"""How long others have to begin, before they are ended."""


def restarts(
    load: Load, running: Running, calls: Sequence[Call], times: int
) -> Iterator[float]:
    """End all workers of a contender, so often; yield the seconds to the next answer.

    They are killed: gunicorn begins others at once, and who asks meanwhile waits for them.
    """
    for call in calls[:times]:
        time.sleep(BETWEEN_SECONDS)
        began = time.monotonic()
        for worker in running.workers():
            os.kill(worker.pid, signal.SIGKILL)
        while not _answers(load, running, call):
            pass
        yield time.monotonic() - began


def _answers(load: Load, running: Running, call: Call) -> bool:
    try:
        status, _ = load.ask(running, call)
    except OSError:
        # It had been let in by one that was ended.
        return False
    if status != 200:
        raise SystemExit(f"{running.contender.name}: {status}")
    return True
