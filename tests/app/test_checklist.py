"""The 120 statements of the conformance checklist: each is shown, or departed from.

Run with `-rP` to read the figures.
"""

import importlib
import inspect
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.app.checklist import DEPARTURES, shown

STU3 = Path(__file__).parents[1] / "stu3"
STATEMENTS = json.loads((STU3 / "conformance-checklist.json").read_text("utf-8"))[
    "items"
]
TABLE = [*shown(), *((each.id, list(each.tests)) for each in DEPARTURES)]


def test_every_statement_is_in_the_table_once() -> None:
    found = Counter(id for id, _ in TABLE)
    assert found == Counter(each["id"] for each in STATEMENTS)
    assert set(found.values()) == {1}
    assert found.total() == 120


@pytest.mark.parametrize(("id", "tests"), TABLE, ids=[id for id, _ in TABLE])
def test_every_test_that_is_named_exists(id: str, tests: list[str]) -> None:
    assert tests
    for node in tests:
        module, name = node.split(":")
        found = importlib.import_module(f"tests.app.test_{module}")
        assert inspect.isfunction(getattr(found, f"test_{name}", None)), node


def test_every_departure_is_tested_as_its_decision() -> None:
    for each in DEPARTURES:
        names = [node.partition(":")[2] for node in each.tests]
        assert all(name.startswith(f"{each.decision:02}_") for name in names), each
        assert each.why


def test_the_figures() -> None:
    print(f"{len(shown())} shown, {len(DEPARTURES)} departed from")
    for number in sorted({each.decision for each in DEPARTURES}):
        ids = [each.id for each in DEPARTURES if each.decision == number]
        print(f"decision {number}: {', '.join(ids)}")
    assert (len(shown()), len(DEPARTURES)) == (109, 11)
