"""The page of the mapping: every trap has a test that is there, or a reason for none."""

import re
from pathlib import Path

import pytest

from adapters.contract import EncounterRecord
from adapters.testing.harness import STAY
from tests.docs.pages import blocks, section
from tests.gnuhealth.samples import HERE, MAPPING, README, Sample

TRAPS = section(README.read_text("utf-8"), "Traps")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TRAPS.splitlines()
    if line.startswith("| ") and not line.startswith("| Trap |")
]
TESTS = {
    name
    for file in HERE.glob("test_*.py")
    for name in re.findall(r"^def (test_\w+)\(", file.read_text("utf-8"), re.MULTILINE)
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_each_trap_has_a_test_or_a_reason(row: list[str]) -> None:
    trap, answer, test = row
    assert trap
    assert answer
    assert test.removeprefix("none: ") if test.startswith("none: ") else test in TESTS


def test_each_test_answers_a_trap_or_holds_a_figure() -> None:
    named = {row[2] for row in ROWS}
    own = {
        f"test_gnuhealth_{of}" for of in ("page", "figures", "indexes", "check", "diff")
    }
    for file in HERE.glob("test_*.py"):
        if file.stem not in own:
            there = re.findall(r"^def (test_\w+)\(", file.read_text("utf-8"), re.M)
            assert set(there) - named <= {"test_each_table_is_read_by_id"}, file.stem


def test_a_hospital_extends_the_mapping(odd_sample: Sample, tmp_path: Path) -> None:
    (block,) = blocks(README.read_text("utf-8"), "yaml")
    (tmp_path / MAPPING.name).write_bytes(MAPPING.read_bytes())
    (file := tmp_path / "hospital.yaml").write_text(block.text, "utf-8")
    adapter = odd_sample.open(file)
    assert list(adapter.check()) == []
    stay = adapter.read(STAY, "inp-9002")
    adapter.close()
    assert isinstance(stay, EncounterRecord)
    assert stay.status == "finished"
    assert stay.start
    assert stay.start.isoformat() == "2026-01-01T07:00:00-03:00"
