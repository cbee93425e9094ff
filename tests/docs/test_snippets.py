"""The programs of docs/clients.md, and the packages for clients, run against the demo."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from encounters_client import Encounters

from tests.clients.cases import COMPLETE
from tests.clients.running import COMMAND, run
from tests.docs.pages import CLIENTS, blocks
from tests.docs.running import Demo


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


def test_copy_copies_the_demo(demo: Demo, tmp_path: Path) -> None:
    out = tmp_path / "stays.ndjson"
    arguments = ("copy", "--to", str(out), "date=ge2024-01-01", "_count=50")
    done = run(COMMAND, demo.client(), *arguments)
    assert done.returncode == COMPLETE, done.stderr
    *warnings, numbers = done.stderr.splitlines()
    rows, invalid, total = (
        int(word.strip(",")) for word in numbers.split() if word.strip(",").isdigit()
    )
    assert rows == len(out.read_text("utf-8").splitlines()) == total - invalid > 100
    assert len(warnings) == invalid > 0


def test_sync_copies_the_demo(demo: Demo, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    done = run(COMMAND, demo.client(), "sync", str(copy))
    assert done.returncode == COMPLETE, done.stderr
    with closing(sqlite3.connect(copy)) as db:
        query = "SELECT type, COUNT(*) FROM resource WHERE body IS NOT NULL GROUP BY 1"
        rows = dict(db.execute(query).fetchall())
    assert rows["Encounter"] > 1500
    assert rows["Patient"] > 100
    assert rows["Organization"] == 4


def test_the_package_for_python_reads_the_demo(demo: Demo) -> None:
    with Encounters.from_environment(demo.client()) as hospital:
        search = hospital.search(patient="Patient/158", _count=4)
        stays = list(search)
        assert search.total == len(stays) == 10
        assert {stay.patient_id for stay in stays} == {"158"}
        assert all(stay.start and stay.functional_unit for stay in stays[:-1])
        patient = hospital.patient(identifier="urn:oid:1.2.250.1.999.2.2|00000158")
        assert patient.id == "158"
        assert patient.family
        assert patient.birth_date
        assert {stay.id for stay in hospital.stays_of(patient)} == {
            stay.id for stay in stays
        }
        assert hospital.organization("2").name
