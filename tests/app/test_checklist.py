"""The conformance checklist and the decisions: tests name what they show in their docstrings."""

import ast
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

STU3 = Path(__file__).parents[1] / "stu3"
STATEMENTS = json.loads((STU3 / "conformance-checklist.json").read_text("utf-8"))[
    "items"
]

DEPARTURES: Mapping[str, tuple[int, str]] = {
    "READ-02": (19, "presentation:last_modified_only_where_the_mapping_vouches_for_it"),
    "SRCH-08": (3, "search_values:a_bad_value_names_parameter_part_and_allowed_forms"),
    "SRCH-09": (2, "requests:an_unknown_parameter_is_400_and_lists_what_is_offered"),
    "SRCH-13": (3, "search_values:an_empty_value_is_a_bad_value"),
    "SRCH-18": (3, "search_values:count_above_100_is_a_bad_value_and_lenient_caps_it"),
    "DATE-02": (5, "dates:dates_compare_the_start_as_precisely_as_the_value_is"),
    "DATE-03": (5, "dates:dates_compare_the_start_as_precisely_as_the_value_is"),
    "DATE-04": (5, "dates:dates_compare_the_start_as_precisely_as_the_value_is"),
    "DATE-06": (5, "dates:dates_compare_the_start_as_precisely_as_the_value_is"),
    "DATE-16": (5, "dates:dates_compare_the_start_as_precisely_as_the_value_is"),
    "ENC-04": (18, "rows:codes_have_the_system_of_the_deployment"),
}
"""Statements that a decision departs from, and a test of what happens instead."""


def _tests():
    """Return the docstrings of all tests beside this one, and of their modules."""
    docstrings = {}
    for file in Path(__file__).parent.rglob("test_*.py"):
        module = ast.parse(file.read_text("utf-8"))
        docstrings[file.stem] = ast.get_docstring(module) or ""
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                name = f"{file.stem}:{node.name}".replace("test_", "")
                docstrings[name] = ast.get_docstring(node) or ""
    return docstrings


def test_every_statement_is_shown_or_departed_from():
    docstrings = _tests()
    named = re.findall(r"\b[A-Z]{2,4}-\d\d\b", " ".join(docstrings.values()))
    found = Counter([*named, *DEPARTURES])
    assert found == Counter(each["id"] for each in STATEMENTS)
    for decision, test in DEPARTURES.values():
        assert f"ecision {decision}" in docstrings[test], test


def test_every_decision_is_tested():
    numbers = r"[Dd]ecisions? (\d+(?:(?:, | and )\d+)*)"
    named = re.findall(numbers, " ".join(_tests().values()))
    assert {int(n) for each in named for n in re.findall(r"\d+", each)} >= {
        *range(1, 27)
    }
