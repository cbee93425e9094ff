"""`encounters mapping test`: the tests beside a mapping file, without its hospital.

A file of tests holds cases: a row and what is expected of the resource that it becomes,
or a search and what it finds. Rows go through the service's own mapping and schemas.
Searches go through its own parser and its own SQL, in SQLite, over the written rows as the
results of the SELECTs: codes and search columns are tried as the service filters by them.
Of an HTTP system the request is compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import orjson

from adapters.contract import (
    ResourceType,
    RowFault,
)
from adapters.http.adapter import Question, open_section, questions_of
from adapters.mapping.model import (
    ItemMapping,
    Mark,
    ResourceMapping,
    SourceMapping,
)
from adapters.mapping.problems import MappingError
from adapters.mapping.row_mapper import known_columns
from adapters.mapping.schema import problems_of
from adapters.mapping.slots import SECTIONS
from adapters.mapping.yaml import Items, Node, Scalar, Table, parse_file
from app.console import FINDINGS, FINE
from toolkit.console import MappingFile, NoSectionError
from toolkit.findings import Finding, findings_of
from toolkit.searches import RefusedSearchError, searching
from toolkit.tried_row import (
    TriedRow,
    element_of,
    is_below,
    leaves,
    unnumbered,
    written,
)
from toolkit.written_rows import (
    Cells,
    known_item_columns,
    read_cells,
    read_items,
    read_row,
    rows_of,
)

WrittenRows: TypeAlias = dict[Mark, Sequence[Cells]]
"""Rows by the place of the section or the item that they are of."""


class FileResult(NamedTuple):
    """The problems of the files, and each case with its differences, none if it passes."""

    faults: Sequence[Finding] = ()
    tests: Sequence[tuple["Case", Sequence[Finding]]] = ()

    @property
    def failed(self) -> int:
        """How many cases did not pass."""
        return sum(1 for _, findings in self.tests if findings)

    @property
    def verdict(self) -> str:
        """How many tests failed or passed."""
        tests = "1 test" if len(self.tests) == 1 else f"{len(self.tests)} tests"
        return f"{self.failed} of {tests} failed" if self.failed else f"{tests} passed"


def run(*, files: Sequence[Path]) -> int:
    """Run the tests beside each file and print their results."""
    is_wrong = False
    for path in files:
        result = try_file(path)
        for fault in result.faults:
            print(fault)
        for case, findings in result.tests:
            if findings:
                print(f"FAILED {case.name} ({case.mark})")
                print(*(f"  {finding}" for finding in findings), sep="\n")
        if not result.faults:
            print(f"{path}: {result.verdict}")
        is_wrong |= bool(result.faults or result.failed)
    return FINDINGS if is_wrong else FINE


def try_file(path: Path) -> FileResult:
    """Run the tests beside a mapping file."""
    try:
        file = MappingFile.open(path)
        cases, faults = read_cases(tests_beside(path))
    except MappingError as error:
        return FileResult(findings_of(error))
    return FileResult(faults, [(case, _differences(file, case)) for case in cases])


def tests_beside(mapping: Path) -> Path:
    """Return the file of tests of a mapping file."""
    return mapping.with_suffix(".test.yaml")


# ------------------------------------------------------------------------------- cases

ROW_EXPECTATIONS = ("expect", "expect_absent", "expect_error")
SEARCH_EXPECTATIONS = ("expect_found", "expect_request", "expect_refused")
_TIMEOUT_SECONDS = 60.0
MERGED_KEYS = ("given", "given_items", "search")
"""The keys of which a case adds to those of its test; its other keys replace them."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row or search to try, and what is expected of it.

    `parts` are the YAML nodes of its keys and of those of its test, `keys` their places.
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
        return str(node) if isinstance(node, Scalar) else ""

    def texts(self, key: str) -> tuple[Scalar, ...]:
        """Return the texts of a list behind a key."""
        node = self.parts.get(key, Items(self.mark))
        assert isinstance(node, Items), "the schema requires a list"
        return tuple(item for item in node if isinstance(item, Scalar))

    def finding(self, key: str, text: str) -> Finding:
        """Return a finding at one of the keys."""
        return Finding.at(self.keys.get(key, self.mark), text)


def read_cases(path: Path) -> tuple[list[Case], list[Finding]]:
    """Return the cases of the tests that fit the schema, and the problems of the others.

    Raises MappingError for a file that is not YAML.
    """
    root = parse_file(path)
    problems = problems_of(root, "TestFile")
    # Each problem has its keys: ("tests", number, …).
    faulty_tests = {keys[1] for _, keys in problems if len(keys) > 1}
    node = root.get("tests")
    tests = node if isinstance(node, Items) else ()
    cases: list[Case] = []
    for number, test in enumerate(tests):
        if number not in faulty_tests and isinstance(test, Table):
            cases.extend(_cases(test))
    return cases, [Finding.of(problem) for problem, _ in problems]


def _cases(test: Table) -> Iterator[Case]:
    """Yield the cases of a test: a case has the keys of the test, and its own replace them.

    Of MERGED_KEYS, a case only replaces the columns or parameters that it names.
    """
    name = test.text("name")
    if "cases" not in test:
        yield Case(name, test.mark, parts=test, keys=test.key_marks)
        return
    for number, case in enumerate(test.tables("cases"), 1):
        parts = {**test, **case}
        for key in MERGED_KEYS:
            of_test, of_case = test.get(key), case.get(key)
            if isinstance(of_test, Table) and isinstance(of_case, Table):
                marks = {**of_test.key_marks, **of_case.key_marks}
                parts[key] = Table(of_case.mark, {**of_test, **of_case}, marks)
        title = case.text("name", str(number))
        marks = {**test.key_marks, **case.key_marks}
        yield Case(f"{name}: {title}", case.mark, parts=parts, keys=marks)


def _differences(file: MappingFile, case: Case) -> Sequence[Finding]:
    """Return how a case differs from what it expects, or what is wrong with the case itself."""
    if fault := _fault(case):
        return [fault]
    try_case = _search if case.is_search else _row
    try:
        return list(try_case(file, case))
    except NoSectionError as error:
        return [case.finding("source", str(error))]
    except MappingError as error:
        return findings_of(error)


def _fault(case: Case) -> Finding | None:
    """Return what is wrong with the keys of a case together, None if nothing is."""
    tried = "search" if case.is_search else "given"
    fitting = SEARCH_EXPECTATIONS if case.is_search else ROW_EXPECTATIONS
    expected = [
        key for key in (*ROW_EXPECTATIONS, *SEARCH_EXPECTATIONS) if key in case.parts
    ]
    advice = f"write what is expected under one of {', '.join(fitting)}"
    if unfit := [key for key in expected if key not in fitting]:
        return case.finding(unfit[0], f"not for this test: {advice}")
    if not expected:
        return case.finding("name", advice)
    # Only `expect` and `expect_absent` go together.
    if len(expected) > 1 and {"expect_error", *SEARCH_EXPECTATIONS} & {*expected}:
        return case.finding(expected[-1], advice)
    if expected == ["expect"] and case.parts["expect"] == {}:
        return case.finding("expect", "names no element of the resource")
    if not isinstance(case.parts.get(tried), Table):
        return case.finding(tried, "expected keys and values here")
    return None


# -------------------------------------------------------------------------- comparison


def compare(
    expected: Node, actual: Any, path: str = ""
) -> Iterator[tuple[str, Mark, str]]:
    """Yield each difference: its path, the place of what is expected, and a text.

    Keys that are not expected are ignored; a list must have no more items than expected.
    """
    if isinstance(expected, Table) and isinstance(actual, dict):
        for key, below in expected.items():
            inner = f"{path}.{key}" if path else key
            yield from compare(below, actual.get(key), inner)
    elif isinstance(expected, Items) and isinstance(actual, list):
        if len(actual) != len(expected):
            text = f"expected {len(expected)} items, but there are {len(actual)}"
            yield path, expected.mark, text
        for number, pair in enumerate(zip(expected, actual, strict=False)):
            yield from compare(*pair, f"{path}[{number}]")
    elif isinstance(expected, Table) and actual is None and expected:
        yield from compare(expected, {}, path)
    else:
        wanted, actual_text = _described(expected), _described(actual)
        if wanted != actual_text:
            text = f"expected {wanted}, but there is {actual_text}"
            yield path, expected.mark, text


def _described(value: Any) -> str:
    """Return in words what a value of a resource or of a test is."""
    if value is None:
        return "none"
    if isinstance(value, dict):
        return f"keys and values ({', '.join(value)})"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return f"'{written(value)}'"


# -------------------------------------------------------------------------------- rows


def _row(file: MappingFile, case: Case) -> Iterator[Finding]:
    """Yield how a row differs from what is expected of it."""
    section = file.section(case.kind, case.text("source"))
    cells, items = case.parts["given"], case.parts.get("given_items")
    assert isinstance(cells, Table), "a faulty case is not tried"
    tried = TriedRow.of(file, read_row(file, section, cells, items))
    outcome, fault = tried.outcome, case.text("expect_error")
    if isinstance(outcome, dict) and not (fault or case.text("expect")):
        yield from _resource(tried, case)
        return

    actual = tried.unserved or "a resource"
    fault_text = ""
    if isinstance(outcome, RowFault):
        fault_text = _fault_text(case.kind, outcome)
        places = [f"{traced.field.mark}: " for traced in tried.named(outcome.field)]
        place = places[0] if places else ""
        actual = f"invalid: {place}{fault_text}"

    if fault:
        wanted = f"the error '{fault}'"
        is_as_expected = fault in fault_text
    else:
        wanted = case.text("expect") or "a resource"
        is_as_expected = wanted == actual
    if not is_as_expected:
        keys = [key for key in ROW_EXPECTATIONS if key in case.parts]
        text = f"expected {wanted}, but the row is {actual}"
        yield Finding.at(case.parts[keys[0]].mark, text, case.kind)


def _resource(tried: TriedRow, case: Case) -> Iterator[Finding]:
    """Yield how a resource differs from what is expected of it."""
    if (expected := case.parts.get("expect")) is not None:
        for path, mark, text in compare(expected, tried.outcome):
            yield _difference(tried, path, mark, text)
    for scalar in case.texts("expect_absent"):
        if any(_is_at(leaf, scalar) for leaf, _ in leaves(tried.outcome)):
            text = "expected no value here, but there is one"
            yield _difference(tried, str(scalar), scalar.mark, text)


def _difference(tried: TriedRow, path: str, mark: Mark, text: str) -> Finding:
    """Return the finding for an element, with the rule and the columns that it comes from."""
    origin = tried.origin(path)
    columns = ", ".join(origin.traced.field.columns) if origin.traced else ""
    rule = ", ".join(filter(None, (origin.rule, origin.place)))
    text = f"{text} ({rule})" if rule else text
    return Finding.at(mark, text, f"{tried.kind}.{path}", columns)


def _is_at(path: str, above: str) -> bool:
    """Whether a path is at another or inside it; items of lists need no number."""
    return is_below(path, above) or is_below(unnumbered(path), above)


def _fault_text(kind: ResourceType, fault: RowFault) -> str:
    """Return a fault as tools print it."""
    column = f" ← {fault.column}" if fault.column else ""
    return f"{element_of(kind, fault)}{column}: {fault.rule}"


# ---------------------------------------------------------------------------- searches


def _search(file: MappingFile, case: Case) -> Iterator[Finding]:
    """Yield how a search differs from what is expected of it."""
    source, refused = case.text("source"), case.text("expect_refused")
    sections = file.sections(case.kind)
    if source or not sections:
        sections = (file.section(case.kind, source),)
    # Rows are searched in a database; of an API, only the request is known.
    is_http = any(section.http for section in sections)
    fitting, unfit = "expect_found", "expect_request"
    if is_http:
        fitting, unfit = "expect_request", "expect_found"
    if unfit in case.parts:
        yield case.finding(unfit, f"not for this source: use {fitting}")
        return
    try:
        differences = _sent(file, case) if is_http else _found(file, case)
        findings = [*differences]
    except RefusedSearchError as error:
        if not refused or refused not in str(error):
            key = "expect_refused" if refused else "search"
            yield case.finding(key, f"the search is refused: {error}")
        return
    if refused:
        findings = [case.finding("expect_refused", "the search succeeds")]
    yield from findings


def _parameters(case: Case) -> list[tuple[str, str]]:
    """Return the parameters of a search as a form has them."""
    search = case.parts["search"]
    assert isinstance(search, Table), "a faulty case is not tried"
    return [
        (name, str(value))
        for name, values in search.items()
        for value in (values if isinstance(values, Items) else [values])
    ]


def _given(file: MappingFile, case: Case) -> WrittenRows:
    """Return the written rows that a search is tried on.

    Of a resource type with several sources, the rows of each are written under its name. Raises
    MappingError.
    """
    rows: WrittenRows = {}
    source = case.text("source")
    for key, kind, source_name in (
        ("given", case.kind, source),
        ("given_patients", ResourceType.PATIENT, ""),
    ):
        node = case.parts.get(key)
        if node is None:
            continue
        lists: Mapping[str, Node] = {source_name: node}
        if isinstance(node, Table) and len(file.sections(kind)) > 1:
            lists = node
        for name, written_rows in lists.items():
            section = file.section(kind, name)
            rows[section.mark] = [
                read_cells(section, row) for row in rows_of(written_rows)
            ]
    if (items := case.parts.get("given_items")) is not None:
        section = file.section(case.kind, source)
        for item, cells in read_items(section, items).items():
            rows[item.mark] = cells
    return rows


def _found(file: MappingFile, case: Case) -> Iterator[Finding]:
    """Yield how the rows that are found differ. Raises RefusedSearchError, MappingError."""
    rows, parameters = _given(file, case), _parameters(case)
    names = {name for name, _ in parameters}
    with searching(_stand_in(file.mapping, rows)) as searches:
        query = searches.query(case.kind, parameters)
        if "_count" not in names:
            query = replace(query, count=max(query.count, sum(map(len, rows.values()))))
        page = searches.page(query)
    for row in page.rows:
        if isinstance(row, RowFault):
            text = f"the search finds an invalid row: {_fault_text(case.kind, row)}"
            yield case.finding("given", text)
    ids = [row.id for row in page.rows if not isinstance(row, RowFault)]
    wanted = {str(scalar): scalar.mark for scalar in case.texts("expect_found")}
    listed = ", ".join(ids) or "none"
    for id, mark in wanted.items():
        if id not in ids:
            yield Finding.at(mark, f"'{id}' is not found; found are {listed}")
    if extra := [id for id in ids if id not in wanted]:
        text = f"found, but not expected: {', '.join(extra)}"
        yield case.finding("expect_found", text)
    if "_sort" in names and sorted(ids) == sorted(wanted) and ids != [*wanted]:
        yield case.finding("expect_found", f"the order is {listed}")


def _sent(file: MappingFile, case: Case) -> Iterator[Finding]:
    """Yield how the request of a first page differs. Raises RefusedSearchError."""
    section = file.section(case.kind, case.text("source"))
    parameters = _parameters(case)
    mapping = file.source_of(section)
    with searching(mapping) as searches:
        query = searches.query(case.kind, parameters)
        # This also raises for a search that the API does not have.
        request = searches.sent(query)
    questions = questions_of(open_section(mapping, query.resource_type), query)
    expected = case.parts.get("expect_request")
    if expected is None:
        return
    if isinstance(expected, Table) and questions:
        yield from _compare_request(expected, questions[0], query.count)
    elif isinstance(expected, Table) or questions:
        yield Finding.at(expected.mark, f"it is: {request}")


def _compare_request(
    expected: Table, question: Question, size: int
) -> Iterator[Finding]:
    """Compare a request with what is expected.

    A parameter that the criteria or the order of the search add must be expected; one that all
    requests have, such as the page size, need not.
    """
    call = question.call((), size)
    named = expected.table("parameters")
    sent_values: dict[str, list[str]] = {}
    for name, value in call.values:
        sent_values.setdefault(name, []).append(value)
    # A parameter with several values, or with a list in the test, is compared as a list.
    sent: dict[str, str | list[str]] = {}
    for name, values in sent_values.items():
        is_list = len(values) > 1 or isinstance(named.get(name), Items)
        sent[name] = values if is_list else values[0]
    request = {"path": call.path, "method": call.method.lower(), "parameters": sent}
    for path, mark, text in compare(expected, request):
        yield Finding.at(mark, text, path)
    for name in dict.fromkeys(n for n, _ in (*question.criteria, *question.order)):
        if "parameters" in expected and name not in named:
            text = f"the request also has '{name}': {', '.join(sent_values[name])}"
            yield Finding.at(expected["parameters"].mark, text)


# ------------------------------------------------------------ SQLite with written rows


def _stand_in(mapping: SourceMapping, rows: WrittenRows) -> SourceMapping:
    """Return the mapping with SELECTs that return the written rows, in any SQLite.

    Parts that are no databases are left out.
    """
    resources = {
        kind: _section_of(section, rows) for kind, section in mapping.resources.items()
    }
    parts = tuple(
        replace(part, mapping=_stand_in(part.mapping, rows))
        for part in mapping.parts
        if part.section.rows
    )
    # A long timeout, so that a busy machine fails no test.
    source = replace(
        mapping.source,
        url="sqlite:///:memory:",
        timeout_seconds=_TIMEOUT_SECONDS,
        count_timeout_seconds=_TIMEOUT_SECONDS,
    )
    return replace(mapping, source=source, resources=resources, parts=parts)


def _section_of(section: ResourceMapping, rows: WrittenRows) -> ResourceMapping:
    """Return a section whose SELECTs return the written rows."""

    def with_rows(item: ItemMapping) -> ItemMapping:
        columns = known_item_columns(item)
        return replace(item, rows=_select(columns, rows.get(item.mark, ())))

    items = {
        name: tuple(with_rows(item) if item.rows else item for item in listed)
        for name, listed in section.items.items()
    }
    select = _select(known_columns(section), rows.get(section.mark, ()))
    return replace(section, rows=select, items=items)


def _select(columns: Sequence[str], rows: Sequence[Cells]) -> str:
    """Return the SELECT whose result is these rows, which stand in it as JSON."""
    cells = orjson.dumps([[row.get(column) for column in columns] for row in rows])
    quoted = (column.replace('"', '""') for column in columns)
    selected = (
        f"json_extract(value, '$[{at}]') AS \"{name}\""
        for at, name in enumerate(quoted)
    )
    literal = cells.decode().replace("'", "''")
    return f"SELECT {', '.join(selected)} FROM json_each('{literal}')"
