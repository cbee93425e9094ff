"""The demo as processes, on ports and in a place of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from demo.issuer import AUDIENCE, DEFAULT_CLIENT
from demo.processes import Addresses
from tests.live import ROOT, free_ports, listens, wait_until
from tests.validity.client import check_response

UP = "Ctrl-C stops all of it."
STAYS = "1000"
STOP_SECONDS = 120
PORTS = 4
"""The service's, the token server's, the hospital's where it is an API, and the explorer's."""


@dataclass
class Demo:
    """A started demo: its process, its first port, its directory and what it said."""

    process: "subprocess.Popen[bytes]"
    port: int
    directory: Path
    log: Path

    def __post_init__(self) -> None:
        addresses = Addresses(self.port)
        self.base_url = addresses.base_url
        self.issuer = addresses.issuer
        self.explorer = addresses.explorer

    def client(self) -> Mapping[str, str]:
        """Return the settings of clients."""
        return {
            "BASE": self.base_url,
            "TOKEN_URL": f"{self.issuer}/oauth/token",
            "AUDIENCE": AUDIENCE,
            "CLIENT_ID": DEFAULT_CLIENT,
            "CLIENT_SECRET": (self.directory / "client.secret").read_text(),
        }

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
        _, alive = psutil.wait_procs(family, timeout=STOP_SECONDS)
        assert alive == []
        assert not any(listens(self.port + place) for place in range(PORTS))


def command(
    directory: Path, port: int, stays: str = STAYS, group: str = ""
) -> list[str]:
    arguments = ["--directory", str(directory), "--port", str(port)]
    arguments += ["--stays", stays] if stays else []
    arguments += ["--group", group] if group else []
    return [sys.executable, "-m", "app.cli", "demo", *arguments]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Run the demo for the session, as a reader of the docs starts it."""
    folder = tmp_path_factory.mktemp("demo")
    with started(folder / "demo", folder / "log", stays="") as running_demo:
        yield running_demo


@contextmanager
def started(
    directory: Path,
    log: Path,
    port: int | None = None,
    stays: str = STAYS,
    up: bool = True,
    group: str = "",
) -> Iterator[Demo]:
    """Start a demo, wait until it is up, and see that it ends with the block."""
    port = port or free_ports(PORTS)
    with running(command(directory, port, stays, group), directory, port, log) as demo:
        if up:
            demo.wait_until_up()
        yield demo


@contextmanager
def running(
    arguments: list[str], directory: Path, port: int, log: Path, folder: Path = ROOT
) -> Iterator[Demo]:
    """Run a command in a folder that starts a demo, as the leader of its own group."""
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
    demo = Demo(process, port, directory, log)
    try:
        yield demo
    finally:
        if not demo.ended():
            demo.stop()


def refused(
    directory: Path, port: int, stays: str = STAYS, group: str = ""
) -> tuple[int, str]:
    """Start a demo that cannot start; return its exit status and all that it said."""
    done = subprocess.run(
        command(directory, port, stays, group),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=STOP_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def pasted(demo: Demo) -> list[Any]:
    """Return what the printed lines answer when they are pasted into bash."""
    _, _, lines = demo.said().partition("in this order.\n")
    lines, _, _ = lines.partition("Ctrl-C")
    done = subprocess.run(
        ["bash", "-eu", "-c", lines],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=STOP_SECONDS,
        check=True,
    )
    assert done.stderr == ""
    decoder, text, answers = json.JSONDecoder(), done.stdout.lstrip(), []
    while text:
        answer, end = decoder.raw_decode(text)
        answers.append(answer)
        text = text[end:].lstrip()
    return answers


def offline_token(directory: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "app.cli", "token", "--directory", str(directory)]
    command += arguments
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def get(url: str, token: str) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        headers = {"Authorization": f"Bearer {token}"}
        return check_response(session.get(url, headers=headers, timeout=60))


def make(folder: Path, port: int, log: Path, *arguments: str) -> Any:
    """Return a running `make run` in a folder, as `running` does."""
    command = ["make", "-f", str(ROOT / "Makefile"), "run", f"PORT={port}", *arguments]
    return running(command, folder / ".demo", port, log, folder)
