"""A demo that really runs, for tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.live import ROOT, free_ports, listens, wait_until

UP = "Ctrl-C stops all of it."
STAYS = "1000"
STOP_SECONDS = 30


@dataclass
class Demo:
    """A started demo: its process, its ports and what it said."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/fhir/v3"

    def said(self) -> str:
        return self.log.read_text()

    def wait_until_up(self) -> None:
        wait_until(lambda: UP in self.said() or self.ended(), self.log)
        assert UP in self.said(), self.said()

    def ended(self) -> bool:
        return self.process.poll() is not None

    def family(self) -> list[psutil.Process]:
        """Return every process that the demo has started, at any depth."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, word: str) -> psutil.Process:
        """Return the child with this word in its command."""
        children = psutil.Process(self.process.pid).children()
        (found,) = [each for each in children if word in " ".join(each.cmdline())]
        return found

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit status; nothing may be left behind."""
        family = self.family()
        self.process.send_signal(number)
        status = self.process.wait(STOP_SECONDS)
        self.assert_gone(family)
        return status

    def assert_gone(self, family: Sequence[psutil.Process]) -> None:
        """Assert that these have ended and that nobody listens any more."""
        _, alive = psutil.wait_procs(family, timeout=10)
        assert alive == []
        assert not listens(self.port)
        assert not listens(self.port + 1)


def command(directory: Path, port: int, stays: str = STAYS) -> list[str]:
    arguments = ["--directory", str(directory), "--port", str(port), "--stays", stays]
    return [sys.executable, "-m", "app.cli", "demo", *arguments]


@contextmanager
def started(
    directory: Path,
    log: Path,
    port: int | None = None,
    stays: str = STAYS,
    up: bool = True,
) -> Iterator[Demo]:
    """Start a demo, wait until it is up, and see that it ends with the block."""
    port = port or free_ports(2)
    with running(command(directory, port, stays), ROOT, port, log) as demo:
        if up:
            demo.wait_until_up()
        yield demo


@contextmanager
def running(arguments: list[str], folder: Path, port: int, log: Path) -> Iterator[Demo]:
    """Run a command that starts a demo, as the leader of its own group."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with log.open("wb") as file:
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            env=environ,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    demo = Demo(process, port, log)
    try:
        yield demo
    finally:
        if not demo.ended():
            demo.stop()


def refused(directory: Path, port: int) -> tuple[int, str]:
    """Start a demo that cannot start; return its exit status and all that it said."""
    done = subprocess.run(
        command(directory, port),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
