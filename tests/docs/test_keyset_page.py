"""docs/decisions/keyset-paging.md shows what is really sent."""

from pathlib import Path

from tests.docs.explained import statements
from tests.docs.pages import DOCS, blocks


def test_the_statements_are_those_of_the_adapter(tmp_path: Path) -> None:
    page = (DOCS / "decisions" / "keyset-paging.md").read_text("utf-8")
    (shown,) = blocks(page, "sql")
    on_one_line = [" ".join(part.split()) for part in shown.text.split("\n\n")]
    assert on_one_line == statements(tmp_path)
