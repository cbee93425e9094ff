"""A file of tests → cases, each one row or one search and what is expected of it.

What a case holds is kept as nodes, so that every difference is told at its line.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from marshmallow import ValidationError

from adapters.contract import ResourceType
from adapters.mapping.elements import SECTIONS
from adapters.mapping.faults import readable
from adapters.mapping.model import Mark
from adapters.mapping.nodes import Items, KeyPath, Node, Scalar, Table, place, plain
from adapters.mapping.problems import MappingProblem
from adapters.mapping.shapes import KeyFault
from adapters.mapping.text import parse_file
from app.tools.testing.shapes import TestFileShape

OF_ROWS = ("expect", "expect_absent", "expect_error")
OF_SEARCHES = ("expect_found", "expect_request", "expect_refused")

_NOTHING_EXPECTED = "expects nothing: say one of " + ", ".join((*OF_ROWS, *OF_SEARCHES))


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to try; `parts` are its keys, those of the test that it is of too."""

    name: str
    mark: Mark
    kind: ResourceType
    source: str
    parts: Mapping[str, Node]
    keys: Mapping[str, Mark]

    @property
    def is_search(self) -> bool:
        """Whether it searches, rather than maps one row."""
        return "search" in self.parts

    def text(self, key: str) -> str:
        """Return the text behind a key, "" when there is none."""
        node = self.parts.get(key)
        return node.text if isinstance(node, Scalar) else ""

    def texts(self, key: str) -> tuple[Scalar, ...]:
        """Return the texts of a list behind a key."""
        node = self.parts.get(key)
        found = node.items if isinstance(node, Items) else ()
        return tuple(item for item in found if isinstance(item, Scalar))

    def problem(self, key: str, text: str) -> MappingProblem:
        """Return a problem at one of the keys."""
        return MappingProblem(self.keys.get(key, self.mark), "", text)


def mapping_beside(file: Path) -> Path:
    """Return the mapping file that a file is, or that its tests are of."""
    name = file.name.removesuffix(".test.yaml")
    return file if name == file.name else file.with_name(f"{name}.yaml")


def tests_beside(mapping: Path) -> Path:
    """Return the file of tests that stands beside a mapping file."""
    return mapping.with_suffix(".test.yaml")


def read_cases(path: Path) -> tuple[tuple[Case, ...], tuple[MappingProblem, ...]]:
    """Return the cases of a file that have the right shape, and every problem of it.

    Raises MappingError for a file that cannot be read at all.
    """
    root, unread = parse_file(path)
    problems = [*unread]
    refused: set[object] = set()
    try:
        TestFileShape().load(plain(root))
    except ValidationError as error:
        for at, text in readable(error):
            mark = place(root, at, isinstance(text, KeyFault))
            problems.append(MappingProblem(mark, _said(at), text))
            refused.add(at[1] if len(at) > 1 else None)
    tests = root.entries.get("tests")
    cases = [
        case
        for number, test in enumerate(tests.items if isinstance(tests, Items) else ())
        if number not in refused and isinstance(test, Table)
        for case in _cases(test)
    ]
    problems += [problem for case in cases for problem in _faults(case)]
    faulty = {problem.mark for problem in problems}
    return tuple(c for c in cases if not faulty & {c.mark, *c.keys.values()}), tuple(
        problems
    )


def _said(path: KeyPath) -> str:
    return ".".join(step for step in path if isinstance(step, str))


def _cases(test: Table) -> Iterator[Case]:
    cases = test.entries.get("cases")
    if not isinstance(cases, Items):
        yield _case(test, test, test)
        return
    for number, node in enumerate(cases.items, 1):
        assert isinstance(node, Table)
        yield _case(test, node, _over(test, node), number)


def _case(test: Table, own: Table, whole: Table, number: int = 0) -> Case:
    name = plain(test.entries["name"])
    if number:
        name = (
            f"{name}: {plain(own.entries['name']) if 'name' in own.entries else number}"
        )
    of = whole.entries.get("of")
    source = whole.entries.get("source")
    return Case(
        name=name,
        mark=own.mark,
        kind=SECTIONS[plain(of)] if of else ResourceType.ENCOUNTER,
        source=plain(source) if source else "",
        parts=whole.entries,
        keys=whole.keys,
    )


def _over(below: Table, above: Table) -> Table:
    """Lay a case over its test: cells over cells, everything else in place of it."""
    entries: dict[str, Any] = {**below.entries, **above.entries}
    del entries["cases"]
    for key in ("given", "given_items", "search"):
        one, other = below.entries.get(key), above.entries.get(key)
        if isinstance(one, Table) and isinstance(other, Table):
            entries[key] = _merged(one, other)
    keys = {**below.keys, **above.keys}
    return Table(above.mark, MappingProxyType(entries), MappingProxyType(keys))


def _merged(one: Table, other: Table) -> Table:
    entries = {**one.entries, **other.entries}
    keys = {**one.keys, **other.keys}
    return Table(other.mark, MappingProxyType(entries), MappingProxyType(keys))


def _faults(case: Case) -> Iterator[MappingProblem]:
    """Yield what the keys of a case say wrongly about each other."""
    expected = [key for key in (*OF_ROWS, *OF_SEARCHES) if key in case.parts]
    if not expected:
        yield case.problem("name", _NOTHING_EXPECTED)
    other, what = (OF_ROWS, "a search") if case.is_search else (OF_SEARCHES, "a row")
    for key in (key for key in expected if key in other):
        yield case.problem(key, f"'{key}' is not for {what}")
    if case.is_search:
        yield from _search_faults(case, expected)
    else:
        yield from _row_faults(case, expected)


def _row_faults(case: Case, expected: list[str]) -> Iterator[MappingProblem]:
    if not isinstance(case.parts.get("given"), Table):
        yield case.problem("given", "'given' is one row: columns and their values")
    if "expect_error" in expected and len(expected) > 1:
        yield case.problem("expect_error", "a row is a fault, or else a resource")
    expect = case.parts.get("expect")
    words = ("hidden", "removed")
    if isinstance(expect, Table) and not expect.entries and len(expected) == 1:
        yield case.problem("expect", "expects nothing of the resource")
    if isinstance(expect, Items) or (
        isinstance(expect, Scalar) and expect.text not in words
    ):
        text = "expected a part of the resource here, or the word hidden or removed"
        yield case.problem("expect", text)


def _search_faults(case: Case, expected: list[str]) -> Iterator[MappingProblem]:
    if not isinstance(case.parts["search"], Table):
        yield case.problem("search", "expected parameters and their values here")
    if "expect_found" in expected and "given" not in case.parts:
        yield case.problem("expect_found", "needs 'given': the rows to search in")
    if len(expected) > 1:
        yield case.problem(expected[1], f"one of '{expected[0]}' and this, not both")
