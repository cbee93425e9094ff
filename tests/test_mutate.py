"""The table of `make mutate` fits the code, and holds every decision and part."""

import re

import yaml

from tests.docs.pages import DECISIONS
from tests.mutate import ROOT, TABLE, Mutation

PARTS = {"sql", "mapping", "http", "sources", "databases"}
"""What rows of code that stands for no decision are named by: parts of adapters/."""


def test_every_decision_is_broken_by_mutations_that_fit_the_code():
    rows = [Mutation(row) for row in yaml.safe_load(TABLE.read_text("utf-8"))]
    for row in rows:
        files = [ROOT / name for name in row.tests if name.startswith("tests/")]
        assert files, row
        assert all(file.is_file() for file in files), row
        assert (ROOT / row.file).read_text("utf-8").count(row.old) == 1, row
        assert row.new != row.old, row
    text = DECISIONS.read_text("utf-8")
    numbers = set(re.findall(r"^(\d+)\. ", text, re.MULTILINE))
    assert numbers | PARTS == {row.decision for row in rows}
