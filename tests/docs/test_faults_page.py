"""docs/run/faults.md: every promise names the tests that show it."""

import re

from tests.docs.pages import RUN
from tests.live import ROOT


def test_each_promise_names_its_tests() -> None:
    page = (RUN / "faults.md").read_text("utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("| ") and not line.startswith(("| Fault", "|---"))
    ]
    assert len(rows) > 20
    for row in rows:
        assert len(row) == 4, row
        assert all(row), row
        files = re.findall(r"`(tests/[\w/]+\.py)`", row[3])
        assert files, row
        assert all((ROOT / file).is_file() for file in files), row
