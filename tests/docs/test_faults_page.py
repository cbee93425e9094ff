"""docs/faults.md: every promise has the test that shows it."""

import re

import pytest

from tests.docs.pages import DOCS
from tests.live import ROOT

PAGE = (DOCS / "faults.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| Fault", "|---"))
]


def _names() -> frozenset[str]:
    """Return the names of all tests of the project."""
    return frozenset(
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(
            r"^def (test_\w+)", file.read_text("utf-8"), re.MULTILINE
        )
    )


def test_rows_are_whole() -> None:
    assert len(ROWS) > 20
    assert {len(row) for row in ROWS} == {4}
    assert all(all(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_promise_is_shown(row: list[str]) -> None:
    named = re.findall(r"`(test_\w+)`", row[3])
    assert named
    assert set(named) <= _names()
