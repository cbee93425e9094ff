"""README.md and CONTRIBUTING.md: the first search works, and what they name is there."""

import re
from pathlib import Path

from tests.docs.commands import run_page
from tests.docs.pages import README, blocks, section
from tests.docs.running import Demo
from tests.live import ROOT

PAGE = README.read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_first_search_is_answered(demo: Demo, tmp_path: Path) -> None:
    (search,) = run_page(README, demo, tmp_path)
    assert search.was == search.says


def test_the_two_commands_are_targets() -> None:
    (commands,) = blocks(section(PAGE, "Run it"), "console")
    assert re.findall(r"^\$ make ([a-z]+)", commands.text, re.MULTILINE) == [
        "run",
        "test",
    ]
    assert {"run", "test"} <= TARGETS


def test_targets_that_are_named_are_there() -> None:
    for page in (PAGE, CONTRIBUTING):
        assert set(re.findall(r"`make ([a-z-]+)", page)) <= TARGETS


def test_every_package_is_on_the_code_map() -> None:
    mapped = section(CONTRIBUTING, "Code map")
    for folder in ("app", "adapters"):
        for package in (ROOT / folder).iterdir():
            if (
                package.is_dir()
                and any(package.glob("*.py"))
                and package.name != "testing"
            ):
                assert f"`{folder}/{package.name}/" in mapped, package
