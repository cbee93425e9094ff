"""`encounters mapping test`: the tests beside a mapping file, without its hospital.

A file of tests holds cases: a row and what is expected of the resource that it becomes,
or a search and what it finds. Rows go through the service's own mapping and schemas.
Searches go through its own parser and its own SQL, over a SQLite database that holds the
written rows as the results of the SELECTs; of an HTTP system the request is compared.
What no test touches is reported, with the test to write next.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple

import orjson

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    EncounterRecord,
    NotAskableError,
    Page,
    ResourceType,
    RowFault,
    SearchQuery,
    TokenCriterion,
)
from adapters.http.adapter import Pairs, Question, open_section
from adapters.inspection import SourceRow
from adapters.mapping.lineage import TracedField, trace
from adapters.mapping.model import (
    FieldMapping,
    ItemMapping,
    Mark,
    ResourceMapping,
    SourceMapping,
)
from adapters.mapping.problems import MappingError, MappingProblem, did_you_mean
from adapters.mapping.profile import profile_of
from adapters.mapping.row_mapper import RowMapper, known_columns, own_fields
from adapters.mapping.schema import problems_of
from adapters.mapping.slots import (
    LINES,
    LISTS,
    SECTIONS,
    SLOTS,
    UNSERVED,
    Kind,
    Slot,
    field_of,
)
from adapters.mapping.yaml import Items, Node, Scalar, Table, parse_file, plain
from app.cli.check import (
    FINDINGS,
    FINE,
    Finding,
    MappingFile,
    NoSectionError,
    Severity,
    findings_of,
    print_json,
)
from app.cli.rows import (
    Cells,
    Origin,
    Origins,
    code_of,
    elements_of,
    flag_columns,
    is_below,
    known_item_columns,
    read_cells,
    read_items,
    read_row,
    rows_of,
    unnumbered,
)
from app.errors import ServiceError
from app.fhir.resources import resource_schemas
from app.middleware import outcome_for
from app.offer import compute_offer
from app.search.parser import context_of, parse_search

BASE_URL = "https://encounters.example/fhir/v3"
"""The base of a deployment, for searches that name a patient by its whole address."""


class Tried(NamedTuple):
    """One case, and how it differs from what is expected; nothing when it passed."""

    case: "Case"
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of the tests of one mapping file.

    `faults` keep them from being run. `targets` is all that could be touched, `gaps` what
    was not, and `next_test` the lines of a test for one of them.
    """

    file: Path
    faults: tuple[Finding, ...] = ()
    tried: tuple[Tried, ...] = ()
    targets: tuple["Target", ...] = ()
    gaps: tuple["Target", ...] = ()
    next_test: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Tried, ...]:
        """The cases that did not pass."""
        return tuple(tried for tried in self.tried if tried.findings)

    def counts(self, kind: str) -> tuple[int, int]:
        """Return how many targets of a kind were touched, and how many there are."""
        there = sum(target.kind == kind for target in self.targets)
        return there - sum(gap.kind == kind for gap in self.gaps), there


def run(options: SimpleNamespace) -> int:
    """Run the tests beside each file and print their results."""
    results = [try_file(file) for file in options.file]
    severity = Severity.ERROR if options.complete else Severity.NOTE
    if options.json:
        print_json({"mappings": [_as_json(result, severity) for result in results]})
    else:
        for result in results:
            _print(result, severity)
    wrong = any(r.faults or r.failed or (options.complete and r.gaps) for r in results)
    return FINDINGS if wrong else FINE


def try_file(named: Path) -> Result:
    """Run the tests beside a mapping file; the file of tests itself may be named too."""
    name = named.name.removesuffix(".test.yaml")
    path = named if name == named.name else named.with_name(f"{name}.yaml")
    problems: list[MappingProblem] = []
    file = None
    try:
        file = MappingFile.open(path)
    except MappingError as error:
        problems += error.problems
    cases = _cases_beside(path, problems) if file or _beside(path).exists() else ()
    # All that is misspelt is reported at once, before any case is run.
    ready = list(_ready(file, cases, problems)) if file else []
    if file is None or problems:
        return Result(path, tuple(findings_of(MappingError(problems))))
    touched: set[object] = set()
    tried = tuple(
        Tried(case, tuple(check(file, case, read, touched)))
        for case, check, read in ready
    )
    every = tuple(targets(file))
    gaps = tuple(target for target in every if target.key not in touched)
    gaps = tuple(sorted(gaps, key=lambda t: (t.mark.file, t.mark.line, t.mark.column)))
    return Result(path, (), tried, every, gaps, next_test(file, gaps))


def _beside(mapping: Path) -> Path:
    return mapping.with_suffix(".test.yaml")


def _cases_beside(file: Path, problems: list[MappingProblem]) -> Sequence["Case"]:
    beside = _beside(file)
    if not beside.exists():
        text = f"there are no tests: write them into {beside.name}, beside it"
        problems.append(MappingProblem(Mark(str(file), 1, 1), "", text))
        return ()
    try:
        cases, faults = read_cases(beside)
    except MappingError as error:
        problems += error.problems
        return ()
    problems += faults
    return cases


def _ready(
    file: MappingFile, cases: Iterable["Case"], problems: list[MappingProblem]
) -> Iterator[tuple["Case", Any, Any]]:
    """Yield each case with the function that checks it and what that is given."""
    for case in cases:
        try:
            if case.is_search:
                yield case, check_search, read_search(file, case)
            else:
                yield case, check_row, read_case_row(file, case)
        except MappingError as error:
            problems += error.problems
        except NoSectionError as error:
            problems.append(case.problem("source", str(error)))


def _print(result: Result, severity: Severity) -> None:
    for fault in result.faults:
        print(fault)
    if result.faults:
        return
    for tried in result.failed:
        print(f"FAILED {tried.case.name} ({tried.case.mark})")
        for finding in tried.findings:
            print(f"  {finding}")
    groups: dict[tuple[str, str], list[Target]] = {}
    for gap in result.gaps:
        groups.setdefault((gap.kind, gap.group), []).append(gap)
    for (kind, _), gaps in groups.items():
        names = ", ".join(dict.fromkeys(gap.name for gap in gaps))
        print(gaps[0].finding(severity, f"{kind}{'s' * (len(gaps) > 1)} {names}"))
    if result.next_test and not result.failed:
        name = _beside(result.file).name
        print(f"{name}: next, when it is what the hospital says:")
        print("\n".join(result.next_test))
    failed, tests = len(result.failed), len(result.tried)
    count = "1 test" if tests == 1 else f"{tests} tests"
    verdict = f"{failed} of {count} failed" if failed else f"{count} passed"
    counts = ((kind, *result.counts(kind)) for kind in KINDS)
    coverage = ", ".join(
        f"{n} of {there} {kind}s" for kind, n, there in counts if there
    )
    print(f"{result.file}: {verdict}; touched {coverage}")


def _as_json(result: Result, severity: Severity) -> dict[str, object]:
    counts = {kind.replace(" ", "_"): result.counts(kind) for kind in KINDS}
    return {
        "file": str(result.file),
        "faults": [asdict(fault) for fault in result.faults],
        "tests": [
            {
                "name": tried.case.name,
                "line": tried.case.mark.line,
                "passed": not tried.findings,
                "findings": [asdict(finding) for finding in tried.findings],
            }
            for tried in result.tried
        ],
        "coverage": {
            kind: {"touched": touched, "of": there}
            for kind, (touched, there) in counts.items()
        },
        "untouched": [
            asdict(gap.finding(severity, f"{gap.kind} {gap.name}"))
            for gap in result.gaps
        ],
    }


OF_ROWS = ("expect", "expect_absent", "expect_error")
OF_SEARCHES = ("expect_found", "expect_request", "expect_refused")


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to try; `parts` are its keys, those of the test that it is of too.

    They are kept as nodes, so that every difference is reported at its line.
    """

    name: str
    mark: Mark
    parts: Mapping[str, Node]
    keys: Mapping[str, Mark]

    @property
    def kind(self) -> ResourceType:
        """The type of the resource that is tried."""
        return SECTIONS[self.text("of") or "encounter"]

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
        items = node.items if isinstance(node, Items) else ()
        return tuple(item for item in items if isinstance(item, Scalar))

    def table(self, key: str) -> Table:
        """Return the keys and values behind a key, which the checks of a case found there."""
        node = self.parts[key]
        assert isinstance(node, Table)
        return node

    def problem(self, key: str, text: str) -> MappingProblem:
        """Return a problem at one of the keys."""
        return MappingProblem(self.keys.get(key, self.mark), "", text)

    def finding(self, key: str, text: str) -> Finding:
        """Return a finding at one of the keys."""
        return Finding.of(self.problem(key, text))


def read_cases(path: Path) -> tuple[list[Case], list[MappingProblem]]:
    """Return the cases of a file that have the right shape, and every problem of it.

    Raises MappingError for a file that cannot be read at all.
    """
    root, unread = parse_file(path)
    problems, refused = [*unread], set()
    for problem, at in problems_of(root, "TestFile"):
        problems.append(problem)
        refused.add(at[1] if len(at) > 1 else None)
    node = root.entries.get("tests")
    tests = enumerate(node.items if isinstance(node, Items) else ())
    cases = [
        case
        for number, test in tests
        if number not in refused and isinstance(test, Table)
        for case in _cases(test)
    ]
    problems += [problem for case in cases for problem in _faults(case)]
    faulty = {problem.mark for problem in problems}
    return [c for c in cases if not faulty & {c.mark, *c.keys.values()}], problems


def _cases(test: Table) -> Iterator[Case]:
    """Yield the cases of a test, each laid over it: cells over cells, other keys whole."""
    name, cases = plain(test.entries["name"]), test.entries.get("cases")
    if not isinstance(cases, Items):
        yield Case(name, test.mark, test.entries, test.keys)
        return
    shared = {key: node for key, node in test.entries.items() if key != "cases"}
    for number, own in enumerate(cases.items, 1):
        assert isinstance(own, Table), "the shape of a file says so"
        parts = {**shared, **own.entries}
        for key in ("given", "given_items", "search"):
            below, above = test.entries.get(key), own.entries.get(key)
            if isinstance(below, Table) and isinstance(above, Table):
                entries = {**below.entries, **above.entries}
                keys = {**below.keys, **above.keys}
                parts[key] = Table(above.mark, entries, keys)
        title = plain(own.entries["name"]) if "name" in own.entries else number
        yield Case(f"{name}: {title}", own.mark, parts, {**test.keys, **own.keys})


def _faults(case: Case) -> Iterator[MappingProblem]:
    """Yield what the keys of a case say wrongly about each other."""
    expected = [key for key in (*OF_ROWS, *OF_SEARCHES) if key in case.parts]
    if not expected:
        keys = ", ".join((*OF_ROWS, *OF_SEARCHES))
        yield case.problem("name", f"expects nothing: say one of {keys}")
    other, what = (OF_ROWS, "a search") if case.is_search else (OF_SEARCHES, "a row")
    for key in (key for key in expected if key in other):
        yield case.problem(key, f"'{key}' is not for {what}")
    yield from (_search_faults if case.is_search else _row_faults)(case, expected)


def _row_faults(case: Case, expected: list[str]) -> Iterator[MappingProblem]:
    if not isinstance(case.parts.get("given"), Table):
        yield case.problem("given", "'given' is one row: columns and their values")
    if "expect_error" in expected and len(expected) > 1:
        yield case.problem("expect_error", "a row is a fault, or else a resource")
    expect = case.parts.get("expect")
    if isinstance(expect, Table) and not expect.entries and len(expected) == 1:
        yield case.problem("expect", "expects nothing of the resource")
    if isinstance(expect, Scalar | Items) and case.text("expect") not in UNSERVED:
        text = "expected a part of the resource here, or the word hidden or removed"
        yield case.problem("expect", text)


def _search_faults(case: Case, expected: list[str]) -> Iterator[MappingProblem]:
    if not isinstance(case.parts["search"], Table):
        yield case.problem("search", "expected parameters and their values here")
    if "expect_found" in expected and "given" not in case.parts:
        yield case.problem("expect_found", "needs 'given': the rows to search in")
    if len(expected) > 1:
        yield case.problem(expected[1], f"one of '{expected[0]}' and this, not both")


class Compared(NamedTuple):
    """One path of an expectation; `text` says how the resource differs, "" when not."""

    path: str
    mark: Mark
    text: str = ""


def compare(expected: Node, actual: Any, path: str = "") -> Iterator[Compared]:
    """Yield each path that is expected, with what is wrong at it.

    Keys that are not expected do not count; the items of a list do, all of them.
    """
    match expected:
        case Scalar(text=text) if not isinstance(actual, dict | list):
            is_same = written(actual) == text
            difference = (
                "" if is_same else f"expected '{text}', and it is '{written(actual)}'"
            )
            yield Compared(path, expected.mark, difference)
        case Table() if isinstance(actual, dict):
            for key, below in expected.entries.items():
                inner = f"{path}.{key}" if path else key
                if key in actual:
                    yield from compare(below, actual[key], inner)
                elif near := did_you_mean(key, actual):
                    yield Compared(
                        inner, expected.keys[key], f"there is no '{key}'{near}"
                    )
                else:
                    yield from _missing(below, inner)
        case Items() if isinstance(actual, list):
            yield from _compare_items(expected, actual, path)
        case _:
            text = f"expected {_shown(expected)}, and it is {_described(actual)}"
            yield Compared(path, expected.mark, text)


def _compare_items(expected: Items, actual: list[Any], path: str) -> Iterator[Compared]:
    items = expected.items
    if len(actual) != len(items):
        count = f"{len(items)} item{'s' * (len(items) != 1)}"
        text = f"expected {count}, and there are {len(actual)}"
        yield Compared(path, expected.mark, text)
    for number, below in enumerate(items[: len(actual)]):
        yield from compare(below, actual[number], f"{path}[{number}]")


def _missing(expected: Node, path: str) -> Iterator[Compared]:
    """Yield each value that is expected where there is nothing at all."""
    match expected:
        case Table(entries=entries) if entries:
            for key, below in entries.items():
                yield from _missing(below, f"{path}.{key}")
        case Items(items=items) if items:
            for number, below in enumerate(items):
                yield from _missing(below, f"{path}[{number}]")
        case _:
            text = f"expected {_shown(expected)}, and there is none"
            yield Compared(path, expected.mark, text)


def _shown(node: Node) -> str:
    if isinstance(node, Scalar):
        return f"'{node.text}'"
    return "a list" if isinstance(node, Items) else "keys and values"


def _described(actual: Any) -> str:
    if isinstance(actual, dict):
        return f"keys and values: {', '.join(actual)}"
    if isinstance(actual, list):
        return f"a list of {len(actual)}: write [ … ]"
    return f"'{written(actual)}'"


def holds(value: Any, path: str) -> bool:
    """Tell whether a resource has anything at a path; items of lists need no number."""
    paths = [leaf for leaf, _ in leaves(value)]
    return any(is_below(p, path) or is_below(unnumbered(p), path) for p in paths)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of a resource with its path."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from leaves(below, f"{path}[{number}]")
    else:
        yield path, value


def written(value: Any) -> str:
    """Return a value of a resource as the text that a person writes for it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def outcome_of(file: MappingFile, row: SourceRow) -> Any:
    """Return what clients would get: a resource, a RowFault, or `hidden` or `removed`."""
    mapped = RowMapper(row.section, row.columns)(row.cells, row.items)
    if isinstance(mapped, RowFault):
        return mapped
    if isinstance(mapped, EncounterRecord) and mapped.status in UNSERVED:
        return mapped.status
    schema = resource_schemas(file.mapping.constants)[row.section.resource_type]
    return orjson.loads(orjson.dumps(schema.dump(mapped)))


def element_of(kind: ResourceType, fault: RowFault) -> str:
    """Return the FHIR element of a fault."""
    elements = {slot.name: slot.element for slot in SLOTS[kind]}
    for each in LISTS[kind]:
        for slot in (*each.slots, LINES):
            elements[f"{each.name}.{slot.name}"] = f"{each.element}.{slot.element}"
        elements[each.name] = each.element
    return f"{kind}.{elements.get(fault.field, fault.field)}"


def _fault_text(kind: ResourceType, fault: RowFault) -> str:
    """Return a fault as tools print it."""
    column = f" ← {fault.column}" if fault.column else ""
    return f"{element_of(kind, fault)}{column}: {fault.rule}"


def read_case_row(file: MappingFile, case: Case) -> SourceRow:
    """Return the row of a case; raises MappingError with all that is wrong with it."""
    problems = []
    known = elements_of(case.kind)
    for path in case.texts("expect_absent"):
        wanted = unnumbered(path.text)
        if not any(is_below(wanted, element) for element in known):
            near = did_you_mean(wanted, known)
            text = f"{case.kind} has no element '{wanted}' here{near}"
            problems.append(MappingProblem(path.mark, "", text))
    section = file.section(case.kind, case.text("source"))
    try:
        row = read_row(section, case.table("given"), case.parts.get("given_items"))
    except MappingError as error:
        raise MappingError([*problems, *error.problems]) from error
    if problems:
        raise MappingError(problems)
    return row


def check_row(
    file: MappingFile, case: Case, row: SourceRow, touched: set[object]
) -> Iterator[Finding]:
    """Yield how the row of a case differs from what is expected of it."""
    traced = trace(row.section, row.columns, row.cells, row.items)
    origins = Origins(file, case.kind, traced)
    return _RowCheck(case, traced, origins, touched).findings(outcome_of(file, row))


@dataclass(frozen=True, slots=True)
class _RowCheck:
    """What is expected of one row, held against what became of it."""

    case: Case
    traced: Sequence[TracedField]
    origins: Origins
    touched: set[object]

    def findings(self, outcome: Any) -> Iterator[Finding]:
        """Yield every difference."""
        expected = self.case.parts.get("expect")
        if "expect_error" in self.case.parts:
            yield from self._fault(outcome)
        elif isinstance(outcome, RowFault):
            yield self._unexpected(outcome)
        elif isinstance(outcome, str) or isinstance(expected, Scalar):
            yield from self._unserved(outcome)
        else:
            for each in compare(expected, outcome) if expected else ():
                yield from self._compared(each)
            for path in self.case.texts("expect_absent"):
                yield from self._absent(path, outcome)

    def _fault(self, outcome: Any) -> Iterator[Finding]:
        wanted, kind = self.case.text("expect_error"), self.case.kind
        mark, start = self.case.parts["expect_error"].mark, "expected the fault"
        if not isinstance(outcome, RowFault):
            actual = f"'{outcome}'" if isinstance(outcome, str) else "a resource"
            yield Finding.at(mark, f"{start} '{wanted}', and the row is {actual}", kind)
            return
        self._touch_named(outcome.field)
        text = _fault_text(kind, outcome)
        if wanted not in text:
            message = f"{start} '{wanted}', and it is '{text}'"
            yield Finding.at(mark, message, kind, outcome.column)

    def _unexpected(self, fault: RowFault) -> Finding:
        expected = self.case.parts.get("expect") or self.case.parts["expect_absent"]
        marks = (m.field.mark for m in self.traced if m.name == fault.field)
        where = next((f" ({mark})" for mark in marks), "")
        text = f"the row is a fault{where}: {fault.rule}"
        element = element_of(self.case.kind, fault)
        return Finding.at(expected.mark, text, element, fault.column)

    def _unserved(self, outcome: Any) -> Iterator[Finding]:
        self._touch_named("status")
        expected = self.case.parts.get("expect")
        wanted = self.case.text("expect") or "a resource"
        actual = outcome if isinstance(outcome, str) else "a resource"
        if wanted != actual:
            text = f"expected {wanted}, and the row is {actual}"
            mark = expected.mark if expected else self.case.mark
            yield Finding.at(mark, text, self.case.kind)

    def _compared(self, each: Compared) -> Iterator[Finding]:
        origin = self.origins.of(each.path)
        if origin.traced is not None:
            self._touch(origin.traced)
        if each.text:
            yield self._finding(each.mark, each.path, each.text, origin)

    def _absent(self, path: Scalar, resource: Any) -> Iterator[Finding]:
        for traced in self.traced:
            elements = (traced.element, unnumbered(traced.element))
            if traced.is_filled and any(is_below(e, path.text) for e in elements):
                self._touch(traced)
        if holds(resource, path.text):
            text = "expected nothing here, and there is something"
            origin = self.origins.of(path.text)
            yield self._finding(path.mark, path.text, text, origin)

    def _finding(self, mark: Mark, path: str, text: str, origin: Origin) -> Finding:
        parts = (origin.rule, str(origin.mark) if origin.mark else "")
        origin_text = ", ".join(filter(None, parts))
        message = f"{text} ({origin_text})" if origin_text else text
        return Finding.at(mark, message, f"{self.case.kind}.{path}", origin.columns)

    def _touch_named(self, name: str) -> None:
        for traced in self.traced:
            if traced.name == name:
                self._touch(traced)

    def _touch(self, traced: TracedField) -> None:
        """Count a field that an expectation compares, and the code that it read."""
        self.touched.add(traced.field.mark)
        if traced.fault is None and traced.cells:
            _touch_code(self.touched, traced.field, traced.cells[0][1])


Rows = dict[int, tuple[Cells, ...]]
"""Rows by the id() of the section or the item that they are of."""


@dataclass(slots=True)
class Search:
    """What is searched for, as a form says it, and the written rows.

    `sections` are those that are searched and have rows; `problems` are all that is
    wrong with what is written.
    """

    file: MappingFile
    pairs: list[tuple[str, str]] = field(default_factory=list)
    rows: Rows = field(default_factory=dict)
    sections: list[ResourceMapping] = field(default_factory=list)
    problems: list[MappingProblem] = field(default_factory=list)

    @property
    def is_sorted(self) -> bool:
        """Whether the search says an order."""
        return any(name == "_sort" for name, _ in self.pairs)

    def read_rows(
        self, node: Node, kind: ResourceType, source: str
    ) -> list[ResourceMapping]:
        """Read a list of rows, or one list for each source by its name.

        Returns the sections that have rows; raises NoSectionError.
        """
        if not isinstance(node, Table):
            return self._read(node, self.file.section(kind, source))
        sections = []
        for name, below in node.entries.items():
            try:
                sections += self._read(below, self.file.section(kind, name))
            except NoSectionError as error:
                problem = MappingProblem(node.keys[name], "", str(error))
                self.problems.append(problem)
        return sections

    def _read(self, node: Node, section: ResourceMapping) -> list[ResourceMapping]:
        if section.http is not None:
            text = (
                "an HTTP system searches its rows itself: leave them out, and say"
                " expect_request"
            )
            self.problems.append(MappingProblem(node.mark, "", text))
            return []
        try:
            rows = tuple(read_cells(section, row) for row in rows_of(node))
        except MappingError as error:
            self.problems += error.problems
            return []
        self.rows[id(section)] = rows
        return [section] if rows else []

    def read_items(self, node: Node | None, kind: ResourceType, source: str) -> None:
        """Read the rows of items that have a SELECT of their own."""
        try:
            items = read_items(self.file.section(kind, source), node) if node else {}
        except MappingError as error:
            self.problems += error.problems
        else:
            self.rows |= {id(item): rows for item, rows in items.items()}

    def read_pairs(self, search: Table) -> None:
        """Read the parameters; a list is the parameter several times."""
        for name, node in search.entries.items():
            for value in node.items if isinstance(node, Items) else (node,):
                if isinstance(value, Scalar):
                    self.pairs.append((name, value.text))
                else:
                    text = f"expected a value of '{name}', or a list of values"
                    self.problems.append(MappingProblem(value.mark, "", text))


def read_search(file: MappingFile, case: Case) -> Search:
    """Return the search of a case.

    Raises MappingError with all that is wrong with its rows, and NoSectionError.
    """
    search, source, parts = Search(file), case.text("source"), case.parts
    if not file.sections(case.kind):
        file.section(case.kind)
    if "given" in parts:
        search.sections = search.read_rows(parts["given"], case.kind, source)
    search.read_items(parts.get("given_items"), case.kind, source)
    if "given_patients" in parts:
        search.read_rows(parts["given_patients"], ResourceType.PATIENT, "")
    search.read_pairs(case.table("search"))
    if search.problems:
        raise MappingError(search.problems)
    return search


def check_search(
    file: MappingFile, case: Case, search: Search, touched: set[object]
) -> Iterator[Finding]:
    """Yield how the search of a case differs from what is expected of it."""
    try:
        if _is_sent(file, case):
            findings = list(_check_request(file, case, search, touched))
        else:
            findings = list(_check_rows(file, case, search, touched))
    except (ServiceError, NotAskableError) as error:
        diagnostics = outcome_for(error).issues[0].diagnostics or ""
        wanted = case.text("expect_refused")
        if not wanted:
            yield case.finding("search", f"it is refused: {diagnostics}")
        elif wanted not in diagnostics:
            text = f"expected the refusal '{wanted}', and it is '{diagnostics}'"
            yield case.finding("expect_refused", text)
        return
    except NoSectionError as error:
        yield case.finding("source", str(error))
        return
    if "expect_refused" in case.parts:
        text = "expected a refusal, and the search is answered"
        yield case.finding("expect_refused", text)
    else:
        yield from findings


def _is_sent(file: MappingFile, case: Case) -> bool:
    """Whether the search is tried as far as its request to an HTTP system."""
    if "expect_request" in case.parts or "expect_found" in case.parts:
        return "expect_request" in case.parts
    source = case.text("source")
    sections = [file.section(case.kind, source)] if source else file.sections(case.kind)
    return any(section.http is not None for section in sections)


def _query(
    case: Case, search: Search, mapping: SourceMapping, adapter: Adapter
) -> SearchQuery:
    """Parse the search as the service would; raises ServiceError."""
    profile = profile_of(mapping)
    offer = compute_offer(profile, adapter.capabilities)
    if case.kind not in offer.resources:
        raise NoSectionError(f"the profile {profile.name} does not offer it")
    context = context_of(BASE_URL, mapping.constants, mapping.time_zone)
    query = parse_search(search.pairs, offer.resources[case.kind], context).query
    if any(name == "_count" for name, _ in search.pairs):
        return query
    rows = sum(len(search.rows[id(section)]) for section in search.sections)
    return replace(query, count=max(query.count, rows))


def _check_rows(
    file: MappingFile, case: Case, search: Search, touched: set[object]
) -> Iterator[Finding]:
    """Yield how the rows that are found differ."""
    if not all(s.rows for s in file.sections(case.kind)):
        text = "only the rows of a database can be searched in a test"
        yield case.finding("search", text)
        return
    with TemporaryDirectory() as folder:
        try:
            mapping = _stand_in(file.mapping, search.rows, Path(folder) / "rows.sqlite")
        except _OffsetError as error:
            text = f"a time with an offset cannot be searched here: '{error}'"
            yield case.finding("given", text)
            return
        with closing(open_adapter(mapping)) as adapter:
            query = _query(case, search, mapping, adapter)
            page = adapter.search(query)
    _touch_search(touched, query, search, search.sections)
    yield from _compare_page(case, search, page)


def _compare_page(case: Case, search: Search, page: Page) -> Iterator[Finding]:
    ids = [row.id for row in page.rows if not isinstance(row, RowFault)]
    expected = case.texts("expect_found")
    wanted = [scalar.text for scalar in expected]
    for row in page.rows:
        if isinstance(row, RowFault):
            text = f"a row that is found is a fault: {_fault_text(case.kind, row)}"
            yield case.finding("given", text)
    extra = [id for id in ids if id not in wanted]
    for scalar in (scalar for scalar in expected if scalar.text not in ids):
        others = "" if extra else f"; found are {', '.join(ids) or 'none'}"
        yield Finding.at(scalar.mark, f"'{scalar.text}' is not found{others}")
    for id in extra:
        yield case.finding("expect_found", f"'{id}' is found, and is not expected")
    if sorted(ids) == sorted(wanted) and search.is_sorted and ids != wanted:
        yield case.finding("expect_found", f"the order is {', '.join(ids)}")


class _OffsetError(ValueError):
    """A written time has an offset, which SQLite cannot compare."""


def _stand_in(mapping: SourceMapping, rows: Rows, file: Path) -> SourceMapping:
    """Write the rows into a database file, and return the mapping that reads them there.

    Each SELECT is replaced by a table that holds the written rows as its result. Columns
    hold texts, and times are texts that compare as times do. Parts that are no databases
    are left out. Raises _OffsetError.
    """
    sections: dict[int, ResourceMapping] = {}
    with closing(sqlite3.connect(file)) as database:
        for number, section in enumerate(mapping.sections):
            if section.rows:
                name = f"rows_{number}"
                sections[id(section)] = _write(database, name, section, rows)
        database.commit()

    def reading(own: SourceMapping) -> SourceMapping:
        resources = {kind: sections.get(id(s), s) for kind, s in own.resources.items()}
        source = replace(own.source, url=f"sqlite:///{file}")
        return replace(own, source=source, resources=resources)

    parts = (part for part in mapping.parts if part.section.rows)
    moved = tuple(replace(part, mapping=reading(part.mapping)) for part in parts)
    return replace(reading(mapping), parts=moved)


def _write(
    database: sqlite3.Connection, name: str, section: ResourceMapping, rows: Rows
) -> ResourceMapping:
    """Write the rows of a section and its items; return the section that reads them."""
    flags, times = flag_columns(section), _time_columns(section)
    columns = {c: "INTEGER" if c in flags else "TEXT" for c in known_columns(section)}
    own = [
        {c: _comparable(v, times[c]) if c in times else v for c, v in row.items()}
        for row in rows.get(id(section), ())
    ]
    select = _create(database, name, columns, own)
    items: dict[str, tuple[ItemMapping, ...]] = {}
    for listed, of in section.items.items():
        moved = list(of)
        for number, item in enumerate(of):
            if item.rows:
                texts = dict.fromkeys(known_item_columns(item), "TEXT")
                table = f"{name}_{listed}_{number}"
                of_item = _create(database, table, texts, rows.get(id(item), ()))
                moved[number] = replace(item, rows=of_item)
        items[listed] = tuple(moved)
    return replace(section, rows=select, items=items)


def _create(
    database: sqlite3.Connection,
    name: str,
    columns: Mapping[str, str],
    rows: Sequence[Cells],
) -> str:
    """Create a table with these rows, and return the SELECT that reads it."""
    quoted = {column: '"{}"'.format(column.replace('"', '""')) for column in columns}
    described = ", ".join(f"{quoted[c]} {kind}" for c, kind in columns.items())
    database.execute(f"CREATE TABLE {name} ({described})")
    places = ", ".join("?" * len(columns))
    cells = [tuple(row.get(column) for column in columns) for row in rows]
    database.executemany(f"INSERT INTO {name} VALUES ({places})", cells)
    return f"SELECT * FROM {name}"


def _time_columns(section: ResourceMapping) -> Mapping[str, bool]:
    """Return the columns of times without a format, and whether each holds days alone."""
    days = {s.record for s in SLOTS[section.resource_type] if s.kind is Kind.DATE}
    return {
        column: each.slot in days or each.time.at is not None
        for each in own_fields(section)
        if each.time and each.time.format is None and len(each.columns) == 1
        for column in (*each.columns, each.search_column)
        if column
    }


def _comparable(value: Any, is_day: bool) -> Any:
    """Write a time as the SQL adapter compares texts with it; what is none stays."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    if moment.tzinfo is not None:
        raise _OffsetError(value)
    if is_day:
        return moment.date().isoformat()
    text = moment.isoformat(" ", "microseconds" if moment.microsecond else "seconds")
    return text.rstrip("0") if moment.microsecond else text


def _check_request(
    file: MappingFile, case: Case, search: Search, touched: set[object]
) -> Iterator[Finding]:
    """Yield how the request of a first page differs from `expect_request`."""
    section = file.section(case.kind, case.text("source"))
    if section.http is None:
        text = "a database is sent no request: say expect_found"
        yield case.finding("expect_request", text)
        return
    mapping = file.source_of(section)
    with closing(open_adapter(mapping)) as adapter:
        query = _query(case, search, mapping, adapter)
        question = Question.of(open_section(mapping, query.resource_type), query)
    _touch_search(touched, query, search, [section])
    expected = case.parts.get("expect_request")
    if expected is not None:
        yield from _compare_request(expected, question, query)


def _compare_request(
    expected: Node, question: Question | None, query: SearchQuery
) -> Iterator[Finding]:
    if question is None:
        if isinstance(expected, Table):
            text = "nothing is sent: nothing can match this search"
            yield Finding.at(expected.mark, text)
        return
    call = question.call((), query.count)
    if not isinstance(expected, Table):
        shown = " ".join(f"{name}={value}" for name, value in call.values)
        text = f"expected no request, and it is: {call.method} {call.path} {shown}"
        yield Finding.at(expected.mark, text)
        return
    for key, sent in (("path", call.path), ("method", call.method.lower())):
        node = expected.entries.get(key)
        if isinstance(node, Scalar) and node.text != sent:
            yield Finding.at(node.mark, f"expected '{node.text}', and it is '{sent}'")
    if isinstance(parameters := expected.entries.get("parameters"), Table):
        yield from _compare_parameters(parameters, question, tuple(call.values))


def _compare_parameters(
    expected: Table, question: Question, sent: Pairs
) -> Iterator[Finding]:
    """Compare what the search itself sends, all of it, and what else is expected."""
    values = _by_name(sent)
    for name, node in expected.entries.items():
        nodes = node.items if isinstance(node, Items) else (node,)
        wanted = [each.text for each in nodes if isinstance(each, Scalar)]
        if name not in values:
            near = did_you_mean(name, values)
            text = f"the parameter '{name}' is not sent{near}"
            yield Finding.at(expected.keys[name], text)
        elif wanted != values[name]:
            text = f"expected {_quoted(wanted)}, and it is {_quoted(values[name])}"
            yield Finding.at(node.mark, f"'{name}': {text}")
    for name, also in _by_name((*question.criteria, *question.order)).items():
        if name not in expected.entries:
            text = f"the request has '{name}' too: {_quoted(also)}"
            yield Finding.at(expected.mark, text)


def _by_name(pairs: Pairs) -> Mapping[str, list[str]]:
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return values


def _quoted(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


KINDS = ("field", "code", "search parameter", "sort key")
"""What can be covered."""


class Target(NamedTuple):
    """One thing of a mapping file that a test can touch: `name`, among those of `group`."""

    kind: str
    key: object
    mark: Mark
    group: str
    name: str

    def finding(self, severity: Severity, what: str) -> Finding:
        """Return the finding that says that no test touches it."""
        text = f"no test touches the {what}"
        return Finding.at(self.mark, text, self.group, severity=severity)


def targets(file: MappingFile) -> Iterable[Target]:
    """Return everything that a mapping file says and tests can touch, each thing once.

    What a file says that this one extends is for the tests beside that one. A constant
    of the whole file is one field, however many sections have it.
    """
    every = [t for section in file.mapping.sections for t in _of_section(file, section)]
    coded = (each.codes for s in file.mapping.sections for _, each in _fields(s))
    for name in dict.fromkeys(codes.name for codes in coded if codes):
        codes = file.mapping.codes[name]
        entries = [*codes.table, *([] if codes.otherwise is None else [None])]
        every += [
            Target(
                "code",
                (name, code),
                file.code_mark(name, code),
                f"codes.{name}",
                "otherwise" if code is None else code,
            )
            for code in entries
        ]
    own = file.root.mark.file
    return {target.key: target for target in every if target.mark.file == own}.values()


def _of_section(file: MappingFile, section: ResourceMapping) -> Iterator[Target]:
    group = f"{section.resource_type}{file.of_source(section)}"
    for element, each in _fields(section):
        yield Target("field", each.mark, each.mark, group, element)
    offered = file.offered(section.resource_type)
    for name in (name for name in section.parameters if name in offered):
        mark, key = file.listed_mark(section, "search", name), (id(section), name)
        yield Target("search parameter", key, mark, group, name)
    for sort in section.sorts if "_sort" in offered else ():
        mark = file.listed_mark(section, "sort", sort)
        yield Target("sort key", (id(section), "_sort", sort), mark, group, sort)


def _fields(section: ResourceMapping) -> Iterator[tuple[str, FieldMapping]]:
    """Yield each field that the file writes, with its element."""
    for slot in SLOTS[section.resource_type]:
        if slot.record in section.fields:
            yield slot.element, section.fields[slot.record]
    for listed in LISTS[section.resource_type]:
        for item in section.items.get(listed.name, ()):
            for slot in listed.slots:
                each = item.fields.get(slot.record)
                # What the type of an identifier says by itself has the mark of the item.
                if each is not None and each.mark != item.mark:
                    yield f"{listed.element}.{slot.element}", each
            yield from ((f"{listed.element}.{LINES.element}", f) for f in item.lines)


def _touch_code(touched: set[object], each: FieldMapping, cell: object) -> None:
    """Count the entry of a code table that a cell goes by."""
    if each.codes is not None:
        code = code_of(each, cell)
        touched.add((each.codes.name, code if code in each.codes.table else None))


def _touch_search(
    touched: set[object],
    query: SearchQuery,
    search: Search,
    sections: Iterable[ResourceMapping],
) -> None:
    """Count the parameters and the order of a search, and the codes that it compares."""
    parameters = {criterion.parameter for criterion in query.criteria}
    for section in sections:
        touched |= {(id(section), name) for name in parameters}
        if search.is_sorted:
            touched.add((id(section), "_sort", query.sort.key))
    slots = {field_of(query.resource_type, name) for name in parameters}
    tokens = [c.values for c in query.criteria if isinstance(c, TokenCriterion)]
    if any(token.system for values in tokens for token in values):
        slots.add("visit_number_system")
    for section in search.sections:
        for slot, each in section.fields.items():
            for row in search.rows[id(section)] if each.codes and each.columns else ():
                cell = row.get(each.columns[0])
                traced = each.codes.table.get(str(cell)) if each.codes else None
                if slot in slots or traced in UNSERVED:
                    _touch_code(touched, each, cell)


_SIMPLE = ("status", "class", "gender", "active")
"""Elements that are a code, and nothing else with it."""


def next_test(file: MappingFile, gaps: Sequence[Target]) -> tuple[str, ...]:
    """Return the lines of a test for the first gap that is a code, () where there is none.

    It expects what the file says now: whoever writes it compares that with the hospital's
    word. Codes of items in lists are left to the reader.
    """
    for gap in (gap for gap in gaps if gap.kind == "code"):
        for section in file.mapping.sections:
            for slot in SLOTS[section.resource_type]:
                each = section.fields.get(slot.record)
                if each is None or each.codes is None or slot.element not in _SIMPLE:
                    continue
                if each.columns and gap.group == f"codes.{each.codes.name}":
                    code = None if gap.name == "otherwise" else gap.name
                    return tuple(_test_lines(file, section, slot, each, code))
    return ()


def _test_lines(
    file: MappingFile,
    section: ResourceMapping,
    slot: Slot,
    each: FieldMapping,
    code: str | None,
) -> Iterator[str]:
    assert each.codes is not None, "only coded fields are suggested"
    value = each.codes.otherwise if code is None else each.codes.table[code]
    yield f"  - name: {slot.name} {code or 'that nobody named'}"
    if section.resource_type is not ResourceType.ENCOUNTER:
        yield f"    of: {section.resource_type.lower()}"
    if file.of_source(section):
        yield f"    source: {file.names(section)[0]}"
    cells = {**_required(section), each.columns[0]: code or "a code of no entry"}
    is_nested = file.source_of(section).source.kind == "http"
    yield f"    given: {_flow(_nested(cells) if is_nested else cells)}"
    within = {"code": value} if slot.element == "class" else value
    yield f"    expect: {value if value in UNSERVED else _flow({slot.element: within})}"


def _required(section: ResourceMapping) -> dict[str, str]:
    """Return cells for the slots without which a row is a fault."""
    cells = {}
    for slot in SLOTS[section.resource_type]:
        each = section.fields.get(slot.record)
        if slot.record not in section.required or each is None or not each.columns:
            continue
        table = each.codes.table if each.codes else {}
        served = (code for code, value in table.items() if value not in UNSERVED)
        cells[each.columns[0]] = next(served, "1")
    if section.resource_type is ResourceType.ORGANIZATION and "name" in section.fields:
        cells |= dict.fromkeys(section.fields["name"].columns, "North")
    return cells


def _nested(cells: Mapping[str, str]) -> Mapping[str, object]:
    """Return cells by path as the objects that an API returns."""
    root: dict[str, Any] = {}
    for path, cell in cells.items():
        *above, last = path.split(".")
        holder = root
        for name in above:
            holder = holder.setdefault(name, {})
        holder[last] = cell
    return root


def _flow(value: object) -> str:
    """Return a value as YAML in one line."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_flow(key)}: {_flow(of)}" for key, of in value.items())
        return f"{{{inner}}}"
    text = str(value)
    plain = text.replace("_", "").replace("-", "").isalnum()
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
