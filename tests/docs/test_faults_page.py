"""docs/faults.md: every promise names the tests that show it."""

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


def test_rows_are_whole() -> None:
    assert len(ROWS) > 20
    assert {len(row) for row in ROWS} == {4}
    assert all(all(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_promise_names_its_tests(row: list[str]) -> None:
    files = re.findall(r"`(tests/[\w/]+\.py)`", row[3])
    assert files
    assert all((ROOT / file).is_file() for file in files)
