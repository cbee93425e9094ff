"""README.md and docs/change: the first search works, and what they name is there."""

import re
from pathlib import Path

from tests.demo.running import Demo
from tests.docs.commands import run_pages
from tests.docs.pages import CHANGE, README, blocks, door, section
from tests.live import ROOT

PAGE = README.read_text("utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_first_search_is_answered(demo: Demo, tmp_path: Path) -> None:
    (search,) = run_pages([README], demo, tmp_path)
    assert search.was == search.says


def test_targets_and_packages_that_are_named_are_there() -> None:
    (commands,) = blocks(section(PAGE, "Run it"), "console")
    typed = re.findall(r"^\$ make ([a-z]+)", commands.text, re.MULTILINE)
    assert typed == ["run", "test"]
    for page in (README, *door(CHANGE)):
        named = re.findall(r"`make ([a-z-]+)", page.read_text("utf-8"))
        assert {*typed, *named} <= TARGETS, page
    mapped = section(
        (CHANGE / "code.md").read_text("utf-8"), "Architecture and import rules"
    )
    for folder in ("app", "adapters"):
        for package in {file.parent for file in (ROOT / folder).glob("*/*.py")}:
            shown = f"`{folder}/{package.name}/" in mapped
            assert shown or package.name == "testing", package
