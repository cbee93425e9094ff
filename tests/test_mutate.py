"""The table of `make mutate` fits the code, and holds every decision."""

import re

import pytest
import yaml

from tests.mutate import ROOT, TABLE, Mutation

ROWS = [Mutation(row) for row in yaml.safe_load(TABLE.read_text("utf-8"))]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_mutation_fits_the_code(row: Mutation) -> None:
    files = [ROOT / name for name in row.tests if name.startswith("tests/")]
    assert files
    assert all(file.is_file() for file in files)
    assert (ROOT / row.file).read_text("utf-8").count(row.old) == 1
    assert row.new != row.old


def test_every_decision_is_broken() -> None:
    text = (ROOT / "docs" / "decisions.md").read_text("utf-8")
    assert set(re.findall(r"^(\d+)\. ", text, re.MULTILINE)) == {
        row.decision for row in ROWS
    }
