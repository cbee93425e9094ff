"""Real processes on this machine, for tests: ports nobody has, and patience."""

import os
import random
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
HOST = "127.0.0.1"


_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
# Each worker of pytest-xdist has its own, below what the system hands out for outgoing
# connections: what one has found, nobody may listen on yet.
_OWN = range(20000 + 10 * _WORKER, 32000, 10 * _WORKERS)
_TENS = cycle(random.sample(_OWN, len(_OWN)))


def free_ports(count: int = 1) -> int:
    """Return the first of up to ten ports in a row that nobody has, nor is about to have."""
    for _ in range(100):
        first = next(_TENS)
        if all(_is_free(port) for port in range(first, first + count)):
            return first
    pytest.fail("no free ports")


def listens(port: int) -> bool:
    """Return whether somebody listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def wait_until(
    holds: Callable[[], object], log: Path | None = None, seconds: float = 120
) -> None:
    """Wait until something holds; fail with a log when it does not."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(log.read_text() if log else "waited in vain")
        time.sleep(0.05)


def begin(stack: ExitStack, *command: str, **options: Any) -> "subprocess.Popen[bytes]":
    """Start a process that ends with the stack; `options` are those of Popen."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)
    stack.callback(process.wait, 60)
    stack.callback(process.terminate)
    return process


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a connection that lingers keeps no port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
