"""The programs of docs/call/packages.md, and the packages for clients, run against the demo."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from encounters_client import Encounters

from tests.clients.cases import COMPLETE
from tests.clients.running import COMMAND, javascript_program, output, run
from tests.demo.running import Demo
from tests.docs.pages import CALL, blocks

pytestmark = pytest.mark.system

PAGE = (CALL / "packages.md").read_text("utf-8")


def test_the_program_in_python(demo: Demo, tmp_path: Path) -> None:
    (block,) = blocks(PAGE, "python")
    program = tmp_path / "program.py"
    program.write_text(block.text, "utf-8")
    done = run((sys.executable, str(program)), demo.client())
    assert done.returncode == 0, done.stderr
    assert_is_shown(done.stdout)


def test_the_program_in_javascript(demo: Demo, tmp_path: Path) -> None:
    folder = javascript_program(tmp_path)
    (block,) = blocks(PAGE, "javascript")
    (folder / "program.mjs").write_text(block.text, "utf-8")
    assert_is_shown(output(["node", "program.mjs"], folder, **demo.client()))


def assert_is_shown(printed: str) -> None:
    """Check what a program prints: ten stays, their number, an error."""
    *stays, total, error = printed.splitlines()
    assert (len(stays), total, error) == (10, "10 stays", "410 not-found")
    assert {line.split()[1] for line in stays} <= {"finished", "planned"}


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
