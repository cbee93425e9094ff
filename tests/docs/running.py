"""The demo as a reader of the docs starts it, as processes, on ports and in a place of its own."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo.issuer import AUDIENCE, DEFAULT_CLIENT
from tests.live import HOST, ROOT, free_ports, wait_until

OUTPUTS = (
    *("stays.csv", "stays.ndjson", "stays.sqlite", "hospitals.ndjson", "copy.sqlite"),
)
"""Files that the commands of a page write."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A running demo; `port` is the service's, the token server's is the next."""

    port: int
    directory: Path

    @property
    def base_url(self) -> str:
        """The service's base URL."""
        return f"http://{HOST}:{self.port}/fhir/v3"

    @property
    def issuer(self) -> str:
        """The token server's address."""
        return f"http://{HOST}:{self.port + 1}"

    @property
    def explorer(self) -> str:
        """The explorer's address."""
        return f"http://{HOST}:{self.port + 3}"

    def here(self, text: str) -> str:
        """Return commands of a page as they are for this demo."""
        python = shlex.quote(sys.executable)
        script = f"{python} -m app.cli token"
        directory = shlex.quote(str(self.directory))
        for written, meant in (
            # The interpreter first: its own path may hold what is written here.
            (".venv/bin/python", python),
            ("\nencounters-client ", f"\n{python} -m encounters_client "),
            (".venv/bin/encounters token", f"{script} --directory {directory}"),
            (".demo/", f"{directory}/"),
            ("127.0.0.1:8000", f"{HOST}:{self.port}"),
            ("127.0.0.1:8001", f"{HOST}:{self.port + 1}"),
            *((name, f"{directory}/{name}") for name in OUTPUTS),
        ):
            text = text.replace(written, meant)
        return text

    def client(self) -> Mapping[str, str]:
        """Return the settings of clients."""
        return {
            "BASE": self.base_url,
            "TOKEN_URL": f"{self.issuer}/oauth/token",
            "AUDIENCE": AUDIENCE,
            "CLIENT_ID": DEFAULT_CLIENT,
            "CLIENT_SECRET": (self.directory / "client.secret").read_text(),
        }


@contextmanager
def running_demo(directory: Path) -> Iterator[Demo]:
    """Start the demo with its own defaults; it ends with the block."""
    demo = Demo(free_ports(4), directory / "demo")
    log = directory / "log"
    command = [sys.executable, "-m", "app.cli", "demo", "--port", str(demo.port)]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, "--directory", str(demo.directory)],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(
            lambda: process.poll() is not None or b"Ctrl-C" in log.read_bytes(), log
        )
        assert process.poll() is None, log.read_text()
        yield demo
    finally:
        process.terminate()
        process.wait(120)
