"""The contract suite in an author's hands: a real package, tested by a real pytest."""

import re

from tests.docs.pages import CHANGE, blocks
from tests.own.conftest import Installed
from tests.own.kestrel.tests.filled import MAPPING


def test_the_suite_runs_with_nothing_but_what_is_installed(kestrel: Installed) -> None:
    done = kestrel.pytest("-q", "-rs")
    assert done.returncode == 0, done.stdout + done.stderr
    counted = re.search(r"(\d+) passed, (\d+) skipped in", done.stdout)
    assert counted, done.stdout
    assert int(counted[1]) > 70
    for reason in ("Patient is not offered", "Encounter by identifier is not offered"):
        assert reason in done.stdout
    assert "Kestrel compares starts" in done.stdout
    assert "site/toolkit/contract/harness.py" in done.stdout


def test_the_suite_finds_a_bound_that_is_off_by_one(kestrel: Installed) -> None:
    module = kestrel.site / "kestrel" / "questions.py"
    whole = module.read_text("utf-8")
    bound = 'case Prefix.LE:\n            return "arrived < ?", [high]'
    assert bound in whole
    module.write_text(whole.replace(bound, bound.replace("<", "<=")), "utf-8")
    try:
        done = kestrel.pytest("-q", "-k", "prefix_table or clock_changes")
    finally:
        module.write_text(whole, "utf-8")
    assert done.returncode == 1, done.stdout
    assert "test_prefix_table[start-le]" in done.stdout
    assert "AssertionError: le2019-03-14" in done.stdout


def test_the_page_shows_the_mapping_of_the_package() -> None:
    (shown,) = blocks((CHANGE / "own-adapter.md").read_text("utf-8"), "yaml")
    assert shown.text == MAPPING
