"""A full copy by `encounters-client`: stays a second, memory, share of a client's limit.

Run as `python -m bench.copying` next to a service, with the settings of the client in the
environment. For the figures of docs/clients.md that service is the demo:

    encounters demo --stays 1000000
"""

import argparse
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "clients" / "python"
PAGE_SIZE = 100
LIMIT = 60_000
"""Requests of a client in a minute, unless an operator sets another number."""

_KIB_PER_MB = 1024
_NUMBERS = re.compile(r"(\d+) rows, (\d+) invalid, total (\d+)")


class Copied(NamedTuple):
    """A copy that has ended: its rows, how long it took, and the most memory it held."""

    rows: int
    invalid: int
    seconds: float
    memory_mb: float

    def report(self, limit: int) -> str:
        """Return the figures as a line."""
        stays, requests = self.rows / self.seconds, self._pages() / self.seconds
        return (
            f"{self.rows:,} stays and {self.invalid} invalid rows in {self.seconds:.0f} s:"
            f" {stays:,.0f} stays/s, {requests:.0f} requests/s"
            f" ({60 * requests / limit:.1%} of the limit), {self.memory_mb:.0f} MB"
        )

    def _pages(self) -> int:
        return math.ceil((self.rows + self.invalid) / PAGE_SIZE)


def copy(file: Path) -> Copied:
    """Copy all stays into a file. Raises CalledProcessError if the copy is not complete."""
    command = [sys.executable, "-m", "encounters_client", "copy", "--to", str(file)]
    began = time.monotonic()
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    *_, last = done.stderr.splitlines()
    numbers = _NUMBERS.fullmatch(last)
    if done.returncode or numbers is None:
        raise subprocess.CalledProcessError(done.returncode, command, stderr=last)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / _KIB_PER_MB
    return Copied(int(numbers[1]), int(numbers[2]), seconds, memory)


def main() -> None:
    """Measure one copy and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.copying")
    parser.add_argument("--limit", type=int, default=LIMIT, help="requests a minute")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="copying-") as folder:
        print(copy(Path(folder) / "stays.ndjson").report(options.limit))


if __name__ == "__main__":
    main()
