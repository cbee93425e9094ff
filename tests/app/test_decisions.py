"""Every numbered decision is tested: the docstrings of its tests name it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

MODULES = sorted(Path(__file__).parent.rglob("test_*.py"))


def decisions(file: Path) -> Iterator[int]:
    """Yield the decisions that the tests of a file name."""
    module = ast.parse(file.read_text("utf-8"))
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            text = ast.get_docstring(node) or ""
            for numbers in re.findall(r"[Dd]ecisions? (\d+(?:(?:, | and )\d+)*)", text):
                yield from map(int, re.findall(r"\d+", numbers))


TESTED = {number for file in MODULES for number in decisions(file)}


@pytest.mark.parametrize("number", range(1, 27))
def test_every_decision_is_tested(number: int) -> None:
    assert number in TESTED
