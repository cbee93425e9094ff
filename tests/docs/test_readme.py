"""README.md: its first search is real, and its code map has every file."""

import re
from pathlib import Path

from tests.docs import generated
from tests.docs.commands import run_page
from tests.docs.pages import README, blocks, section, written
from tests.docs.running import Demo
from tests.live import ROOT

PAGE = README.read_text("utf-8")


def test_the_first_search_is_answered_so(demo: Demo, tmp_path: Path) -> None:
    (search,) = run_page(README, demo, tmp_path)
    assert search.was == search.says
    assert written(PAGE, "first-answer") == generated.first_answer(demo, tmp_path)


def test_the_code_map_has_every_file() -> None:
    (drawn,) = blocks(section(PAGE, "Code map"), "text")
    mapped = re.findall(r"^  ([a-z_/.]+\.py)\b", drawn.text, re.MULTILINE)
    files = [ROOT / "wsgi.py", ROOT / "gunicorn.conf.py"]
    for folder in ("app", "adapters", "demo", "bench"):
        files += [f for f in (ROOT / folder).rglob("*.py") if f.stat().st_size]
    # What npm installs for the bench is not ours.
    files = [file for file in files if "node_modules" not in file.parts]
    there = {str(file.relative_to(ROOT)) for file in files}
    assert set(mapped) == there
    assert len(mapped) == len(there)


def test_the_two_commands_are_there() -> None:
    (commands,) = blocks(section(PAGE, "Run it"), "console")
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.findall(r"^\$ make ([a-z]+)", commands.text, re.MULTILINE)
    assert named == ["run", "test"]
    assert set(named) <= set(targets)
