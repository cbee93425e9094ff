"""An earlier build of this repository, in a worktree of its own, to compare with."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = "requirements.lock"


@dataclass(frozen=True, slots=True)
class Build:
    """A build of the service: where its files are, and the Python that has its packages."""

    root: Path
    python: str = sys.executable


@contextmanager
def checked_out(revision: str, scratch: Path) -> Iterator[Build]:
    """Check a revision out as long as it is measured.

    It runs in our environment, or in one made from its own lock file where that differs.
    """
    place = scratch / "before"
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", place, revision], check=True)
    try:
        if (place / LOCK).read_bytes() == (ROOT / LOCK).read_bytes():
            yield Build(place)
        else:
            subprocess.run(["make", "-C", place, ".venv/run.stamp"], check=True)
            yield Build(place, str(place / ".venv/bin/python"))
    finally:
        subprocess.run([*git, "remove", "--force", place], check=True)
