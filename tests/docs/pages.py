"""The project's pages as data: their blocks, their tables, and what is written into them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.live import ROOT

DOCS = ROOT / "docs"
BRING = DOCS / "bring"
README = ROOT / "README.md"
CALL = DOCS / "call"
RUN = DOCS / "run"
GUIDE = tuple(
    BRING / f"{name}.md"
    for name in (
        "index",
        "guide-stay",
        "guide-patient",
        "test",
        "check",
        "confirm",
        "guide-http",
        "several",
    )
)
"""The pages of the guide, in the order in which a reader follows them."""
CHANGE = DOCS / "change"
DECISIONS = CHANGE / "decisions.md"

_BLOCK = re.compile(r"^( *)```([a-z]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_CELL = re.compile(r"(?<!\\)\|")


class Block(NamedTuple):
    """A fenced block; `line` is that of its first line, from 1, `above` what stands before."""

    language: str
    text: str
    line: int
    above: str


def door(folder: Path) -> list[Path]:
    """Return the pages of a door, its first page first."""
    return sorted(folder.glob("*.md"), key=lambda page: (page.name != "index.md", page))


def operators() -> str:
    """Return the pages for operators, one after the other."""
    return "\n".join(page.read_text("utf-8") for page in door(RUN))


def blocks(text: str, language: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page in one language."""
    return (block for block in every_block(text) if block.language == language)


def every_block(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start(3)) + 1
        above = text[: found.start()].rstrip().rpartition("\n")[2]
        # Of a fence that is indented, its indentation alone: lines may have more.
        body = re.sub(f"^{found.group(1)}", "", found.group(3), flags=re.MULTILINE)
        yield Block(found.group(2), body, line, above)


def section(text: str, title: str) -> str:
    """Return what stands under a heading, up to the next of its level."""
    (level,) = re.findall(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    _, _, after = text.partition(f"{level} {title}\n")
    return re.split(rf"^#{{1,{len(level)}}} ", after, maxsplit=1, flags=re.MULTILINE)[0]


def table(text: str, first: str) -> list[list[str]]:
    """Return the rows of the table whose first heading is `first`, without code marks."""
    _, found, after = text.partition(f"| {first} |")
    assert found, f"no table of {first}"
    rows = after.splitlines()[2:]
    cells: list[list[str]] = []
    for row in rows:
        if not row.startswith("|"):
            break
        parts = [part.strip() for part in _CELL.split(row)[1:-1]]
        cells.append([part.replace("`", "").replace("\\|", "|") for part in parts])
    return cells


def rewritten(text: str, name: str, part: str) -> str:
    """Return a page with a generated part in place of the old one."""
    begin = f"<!-- {name}: python -m tests.docs.update -->\n"
    end = f"<!-- /{name} -->\n"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    assert found and closed, f"no marks of {name}"  # noqa: PT018 - one message
    return before + begin + part + end + after
