"""The programs of docs/clients.md and the reference clients, run against the demo."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.clients.cases import COMPLETE
from tests.clients.running import NEEDED, SYNC, ids, run, walker
from tests.docs.pages import CLIENTS, blocks
from tests.docs.running import Demo


@pytest.fixture(scope="module", params=NEEDED)
def command(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Sequence[str]:
    """Return the command of each walker."""
    return walker(request.param, tmp_path_factory.mktemp("walker"))


@pytest.mark.parametrize(
    ("language", "interpreter", "suffix", "absent"),
    [("python", sys.executable, "py", "None"), ("javascript", "node", "mjs", "null")],
)
def test_programs(
    language: str,
    interpreter: str,
    suffix: str,
    absent: str,
    demo: Demo,
    tmp_path: Path,
) -> None:
    """The blocks of a language are one program: token, first search, error."""
    if shutil.which(interpreter) is None:
        pytest.skip(f"{interpreter} is not installed")
    program = tmp_path / f"program.{suffix}"
    page = CLIENTS.read_text("utf-8")
    program.write_text("".join(b.text for b in blocks(page, language)), "utf-8")
    printed = subprocess.run(
        [interpreter, str(program)],
        env={**os.environ, **demo.client()},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout.splitlines()
    assert printed[0] == "10 stays"
    assert printed[-1] == f"410 not-found {absent}"
    assert len(printed) == 12
    assert {line.split()[1] for line in printed[1:-1]} <= {"finished", "planned"}


def test_walkers_copy_the_demo(
    command: Sequence[str], demo: Demo, tmp_path: Path
) -> None:
    out = tmp_path / "stays.ndjson"
    search = ("Encounter", "date=ge2024-01-01", "_count=50")
    done = run(command, demo.client(), str(out), *search)
    assert done.returncode == COMPLETE, done.stderr
    *warnings, numbers = done.stderr.splitlines()
    rows, different, invalid, total = (
        int(word.strip(",")) for word in numbers.split() if word.strip(",").isdigit()
    )
    assert rows == different == len(ids(out)) == total - invalid > 100
    assert len(warnings) == invalid > 0


def test_sync_copies_the_demo(demo: Demo, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    done = run(SYNC, demo.client(), str(copy))
    assert done.returncode == COMPLETE, done.stderr
    with closing(sqlite3.connect(copy)) as db:
        query = "SELECT type, COUNT(*) FROM resource WHERE body IS NOT NULL GROUP BY 1"
        rows = dict(db.execute(query).fetchall())
    assert rows["Encounter"] > 1500
    assert rows["Patient"] > 100
    assert rows["Organization"] == 4
