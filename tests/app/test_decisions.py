"""Every numbered decision has its tests: their names carry its number."""

import re
from pathlib import Path

import pytest

MODULES = sorted(Path(__file__).parent.glob("test_decisions_*.py"))
TESTS = re.findall(
    r"^def test_(\d\d)_", "\n".join(file.read_text() for file in MODULES), re.MULTILINE
)


@pytest.mark.parametrize("number", range(1, 27))
def test_every_decision_is_tested(number: int) -> None:
    assert f"{number:02}" in TESTS


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.stem)
def test_every_test_of_a_decision_carries_its_number(file: Path) -> None:
    names = re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    assert names
    stray = [name for name in names if not re.match(r"test_(0[1-9]|1\d|2[0-6])_", name)]
    assert stray == []
