"""The demo as processes, on ports and in a place of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
ENCOUNTERS = (sys.executable, "-m", "app.cli")


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
        return self.ending(family)

    def ending(self, family: Sequence[psutil.Process]) -> int:
        """Return the exit status once it has ended; nothing may be left behind."""
        status = self.process.wait(STOP_SECONDS)
        _, alive = psutil.wait_procs(family, timeout=STOP_SECONDS)
        assert alive == []
        assert not any(listens(self.port + place) for place in range(PORTS))
        return status


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Run the demo for the session, as a reader of the docs starts it."""
    folder = tmp_path_factory.mktemp("demo")
    with started(folder / "demo", folder / "log", stays="") as running_demo:
        yield running_demo


def command(directory: Path, port: int, *options: str) -> list[str]:
    options = ("--directory", str(directory), "--port", str(port), *options)
    return [*ENCOUNTERS, "demo", *options]


@contextmanager
def started(
    directory: Path,
    log: Path,
    port: int | None = None,
    stays: str = STAYS,
    group: str = "",
) -> Iterator[Demo]:
    """Start a demo, wait until it is up, and see that it ends with the block."""
    port = port or free_ports(PORTS)
    options = ["--stays", stays] if stays else []
    options += ["--group", group] if group else []
    with running(command(directory, port, *options), directory, port, log) as demo:
        yield demo


@contextmanager
def running(
    arguments: list[str], directory: Path, port: int, log: Path, folder: Path = ROOT
) -> Iterator[Demo]:
    """Run a command in a folder that starts a demo, as the leader of its own group."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    demo = Demo(process, port, directory, log)
    try:
        wait_until(lambda: UP in demo.said() or demo.ended(), log)
        assert UP in demo.said(), demo.said()
        yield demo
    finally:
        if not demo.ended():
            demo.stop()


def offline_token(directory: Path, *arguments: str) -> str:
    command = [*ENCOUNTERS, "token", "--directory", str(directory), *arguments]
    return subprocess.check_output(command, cwd=ROOT, text=True).strip()


def get(url: str, token: str) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        headers = {"Authorization": f"Bearer {token}"}
        return check_response(session.get(url, headers=headers, timeout=60))
