"""The programs of docs/call/packages.md, run against the demo."""

import sys
from pathlib import Path

import pytest

from tests.clients.running import javascript_program, output, run
from tests.demo.running import Demo
from tests.docs.pages import CALL, blocks

pytestmark = pytest.mark.system

PAGE = (CALL / "packages.md").read_text("utf-8")


def test_the_program_in_python(demo: Demo, tmp_path: Path) -> None:
    (block,) = blocks(PAGE, "python")
    program = tmp_path / "program.py"
    program.write_text(block.text, "utf-8")
    done = run((sys.executable, str(program)), demo.client())
    assert done.returncode == 0, done.stderr
    assert_is_shown(done.stdout)


def test_the_program_in_javascript(demo: Demo, tmp_path: Path) -> None:
    folder = javascript_program(tmp_path)
    (block,) = blocks(PAGE, "javascript")
    (folder / "program.mjs").write_text(block.text, "utf-8")
    assert_is_shown(output(["node", "program.mjs"], folder, **demo.client()))


def assert_is_shown(printed: str) -> None:
    """Check what a program prints: ten stays, their number, an error."""
    *stays, total, error = printed.splitlines()
    assert (len(stays), total, error) == (10, "10 stays", "410 not-found")
    assert {line.split()[1] for line in stays} <= {"finished", "planned"}
