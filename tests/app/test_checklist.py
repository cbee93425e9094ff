"""The 120 statements of the conformance checklist: each is shown, or departed from.

Run with `-rP` to read the figures.
"""

import importlib
import inspect
import json
from collections import Counter
from pathlib import Path

from tests.app.checklist import DEPARTURES, shown

STU3 = Path(__file__).parents[1] / "stu3"
STATEMENTS = json.loads((STU3 / "conformance-checklist.json").read_text("utf-8"))[
    "items"
]
TABLE = [*shown(), *((each.id, list(each.tests)) for each in DEPARTURES)]


def _test(node: str) -> object:
    """Return the function of a test, named as the table does."""
    module, name = node.split(":")
    (file,) = Path(__file__).parent.rglob(f"test_{module}.py")
    path = ".".join(file.relative_to(Path(__file__).parents[2]).with_suffix("").parts)
    return getattr(importlib.import_module(path), f"test_{name}", None)


def test_every_statement_is_in_the_table_once() -> None:
    found = Counter(id for id, _ in TABLE)
    assert found == Counter(each["id"] for each in STATEMENTS)
    assert set(found.values()) == {1}
    assert found.total() == 120


def test_every_test_that_is_named_exists() -> None:
    for id, tests in TABLE:
        assert tests, id
        assert all(inspect.isfunction(_test(node)) for node in tests), id


def test_every_departure_is_tested_as_its_decision() -> None:
    for each in DEPARTURES:
        for node in each.tests:
            docstring = inspect.getdoc(_test(node)) or ""
            assert f"ecision {each.decision}" in docstring, each
        assert each.why


def test_the_figures() -> None:
    print(f"{len(shown())} shown, {len(DEPARTURES)} departed from")
    for number in sorted({each.decision for each in DEPARTURES}):
        ids = [each.id for each in DEPARTURES if each.decision == number]
        print(f"decision {number}: {', '.join(ids)}")
    assert (len(shown()), len(DEPARTURES)) == (109, 11)
