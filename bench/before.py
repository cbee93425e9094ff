"""An earlier build of this repository, in a worktree of its own, to compare with."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.live import ROOT


class Build(NamedTuple):
    """A build of the service: where its files are, and the Python that has its packages."""

    root: Path = ROOT
    python: str = sys.executable


@contextmanager
def checked_out(revision: str, scratch: Path) -> Iterator[Build]:
    """Check a revision out as long as it is measured, with what its own lock file names."""
    place = scratch / "before"
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", place, revision], check=True)
    try:
        subprocess.run(["make", "-C", place, ".venv/run.stamp"], check=True)
        yield Build(place, str(place / ".venv/bin/python"))
    finally:
        subprocess.run([*git, "remove", "--force", place], check=True)
