"""Break the code of each decision in turn: `make mutate`. A test has to fail each time.

Each mutation replaces one piece of text in one file of a copy of the project, and runs the
tests that should notice. These have to pass unbroken. A mutation whose text is gone, or that
no test notices, is a fault. Code that stands for no decision is broken too: its rows name the
part of the adapters that it is of.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("mutations.yaml")
COPIED = ("app", "adapters", "toolkit", "explorer", "demo", "mappings", "clients")
COPIED += ("tests", "docs", "bench", "deploy")
COPIED += ("setup.cfg", "pyproject.toml", "wsgi.py", "gunicorn.conf.py")
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")
# A plugin that no test of the table uses, and that takes long to import.
PYTEST += ("-p", "no:faker")


class Mutation:
    """A row of the table: a decision or a part, a broken text, pytest's arguments for its tests."""

    def __init__(self, row: dict[str, str]) -> None:
        self.decision = str(row["decision"])
        self.file, self.old, self.new = row["file"], row["old"], row["new"]
        self.tests = shlex.split(row["tests"])

    def __str__(self) -> str:
        return f"{self.decision}: {self.file}: {self.old!r} → {self.new!r}"

    def is_noticed(self) -> bool:
        """Return whether a test fails with the code broken so; raises LookupError."""
        with copied() as copy:
            broken = copy / self.file
            text = broken.read_text("utf-8")
            if text.count(self.old) != 1:
                raise LookupError(f"{text.count(self.old)} times in the file: {self}")
            broken.write_text(text.replace(self.old, self.new), "utf-8")
            return not passes(copy, self.tests)


@contextmanager
def copied() -> Iterator[Path]:
    """Yield a copy of the project, for as long as it is needed."""
    # Compiled files are copied: Python uses those of all files but the broken one.
    ignored = shutil.ignore_patterns("node_modules", "target")
    with tempfile.TemporaryDirectory(prefix="mutate-") as directory:
        copy = Path(directory)
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name, ignore=ignored)
            else:
                shutil.copy(ROOT / name, copy / name)
        yield copy


def passes(copy: Path, tests: Sequence[str]) -> bool:
    """Return whether tests of a copy pass; raises LookupError if they cannot be run."""
    done = subprocess.run(
        [*PYTEST, *tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise LookupError(f"{' '.join(tests)}: {done.stdout[-2000:]}")
    return done.returncode == 0


def check_unbroken(rows: Sequence[Mutation], pool: ThreadPoolExecutor) -> None:
    """Raise LookupError where tests fail without a mutation: they would notice nothing."""
    every = sorted({tuple(row.tests) for row in rows})
    with copied() as copy:
        passed = pool.map(partial(passes, copy), every)
        for tests, is_passed in zip(every, passed, strict=True):
            if not is_passed:
                raise LookupError(f"fails without a mutation: {shlex.join(tests)}")


def main() -> int:
    """Run the mutations and print each result; return 1 when one is not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("decision", nargs="*", help="a number or a part (default: all)")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    rows = [Mutation(row) for row in yaml.safe_load(TABLE.read_text("utf-8"))]
    chosen = [r for r in rows if not options.decision or r.decision in options.decision]
    missed, began = 0, time.monotonic()
    with ThreadPoolExecutor(options.processes) as pool:
        check_unbroken(chosen, pool)
        results = pool.map(Mutation.is_noticed, chosen)
        for row, noticed in zip(chosen, results, strict=True):
            print("noticed" if noticed else "NOT NOTICED", row, sep="\t", flush=True)
            missed += not noticed
    seconds = round(time.monotonic() - began)
    print(f"{len(chosen) - missed} of {len(chosen)} mutations noticed in {seconds} s")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
