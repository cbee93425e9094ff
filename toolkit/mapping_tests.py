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
    """What is wrong with the files, and each case with how it differs from what is expected."""

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
    """Return the cases of the tests that have the right shape, and what is wrong with others.

    Raises MappingError for a file that cannot be read at all.
    """
    root = parse_file(path)
    of_shape = problems_of(root, "TestFile")
    refused = {at[1] for _, at in of_shape if len(at) > 1}
    node = root.get("tests")
    cases = [
        case
        for number, test in enumerate(node if isinstance(node, Items) else ())
        if number not in refused and isinstance(test, Table)
        for case in _cases(test)
    ]
    return cases, [Finding.of(problem) for problem, _ in of_shape]


def _cases(test: Table) -> Iterator[Case]:
    """Yield the cases of a test, each laid over it: cells over cells, other keys whole."""
    name = test.text("name")
    if "cases" not in test:
        yield Case(name, test.mark, parts=test, keys=test.key_marks)
        return
    for number, case in enumerate(test.tables("cases"), 1):
        parts = {**test, **case}
        for key in MERGED_KEYS:
            below, above = test.get(key), case.get(key)
            if isinstance(below, Table) and isinstance(above, Table):
                marks = {**below.key_marks, **above.key_marks}
                parts[key] = Table(above.mark, {**below, **above}, marks)
        title = case.text("name", str(number))
        marks = {**test.key_marks, **case.key_marks}
        yield Case(f"{name}: {title}", case.mark, parts=parts, keys=marks)


def _differences(file: MappingFile, case: Case) -> Sequence[Finding]:
    """Return how a case differs from what it expects, or else what is wrong with it."""
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
    """Return what the keys of a case say wrongly about each other."""
    tried = "search" if case.is_search else "given"
    fitting = SEARCH_EXPECTATIONS if case.is_search else ROW_EXPECTATIONS
    expected = [
        key for key in (*ROW_EXPECTATIONS, *SEARCH_EXPECTATIONS) if key in case.parts
    ]
    one_of = f"write what is expected under one of {', '.join(fitting)}"
    if others := [key for key in expected if key not in fitting]:
        return case.finding(others[0], f"not for this test: {one_of}")
    if not expected:
        return case.finding("name", one_of)
    if len(expected) > 1 and {"expect_error", *SEARCH_EXPECTATIONS} & {*expected}:
        return case.finding(expected[-1], one_of)
    if expected == ["expect"] and case.parts["expect"] == {}:
        return case.finding("expect", "names no element of the resource")
    if not isinstance(case.parts.get(tried), Table):
        return case.finding(tried, "expected keys and values here")
    return None


# -------------------------------------------------------------------------- comparison


def compare(
    expected: Node, actual: Any, path: str = ""
) -> Iterator[tuple[str, Mark, str]]:
    """Yield each path where something else is, the place of what is expected, and what is wrong.

    Keys that are not expected do not count; the items of a list do, all of them.
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
    if value is None:
        return "none"
    if isinstance(value, dict):
        return f"keys and values ({', '.join(value)})"
    return (
        f"a list of {len(value)}" if isinstance(value, list) else f"'{written(value)}'"
    )


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

    actual, fault_text = tried.unserved or "a resource", ""
    if isinstance(outcome, RowFault):
        fault_text = _fault_text(case.kind, outcome)
        places = (f"{traced.field.mark}: " for traced in tried.named(outcome.field))
        actual = f"invalid: {next(places, '')}{fault_text}"

    if fault:
        wanted, is_as_expected = f"the error '{fault}'", fault in fault_text
    else:
        wanted = case.text("expect") or "a resource"
        is_as_expected = wanted == actual
    if not is_as_expected:
        mark = next(
            case.parts[key].mark for key in ROW_EXPECTATIONS if key in case.parts
        )
        text = f"expected {wanted}, but the row is {actual}"
        yield Finding.at(mark, text, case.kind)


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
    """Return the finding for an element, with what made it so."""
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
    answer, expected, other = _found, "expect_found", "expect_request"
    if any(section.http for section in sections):
        answer, expected, other = _sent, other, expected
    if other in case.parts:
        # A database is sent no request, and an API searches its rows itself.
        yield case.finding(other, f"not for this source: use {expected}")
        return
    try:
        findings = [*answer(file, case)]
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
    """Return the rows that a search is tried on: those of several sources by their names.

    Raises MappingError.
    """
    rows: WrittenRows = {}
    source, patient = case.text("source"), ResourceType.PATIENT
    for key, kind, only in (
        ("given", case.kind, source),
        ("given_patients", patient, ""),
    ):
        node = case.parts.get(key)
        lists: Mapping[str, Node] = {} if node is None else {only: node}
        if isinstance(node, Table) and len(file.sections(kind)) > 1:
            lists = node
        for name, below in lists.items():
            section = file.section(kind, name)
            rows[section.mark] = [read_cells(section, row) for row in rows_of(below)]
    if (items := case.parts.get("given_items")) is not None:
        section = file.section(case.kind, source)
        for item, cells in read_items(section, items).items():
            rows[item.mark] = cells
    return rows


def _found(file: MappingFile, case: Case) -> Iterator[Finding]:
    """Yield how the rows that are found differ. Raises RefusedError, MappingError."""
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
    """Yield how the request of a first page differs. Raises RefusedError."""
    section = file.section(case.kind, case.text("source"))
    parameters = _parameters(case)
    mapping = file.source_of(section)
    with searching(mapping) as searches:
        query = searches.query(case.kind, parameters)
        # An HTTP source refuses what it cannot ask when it says what it would send.
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
    """Compare what the search itself sends, all of it, and what else is expected."""
    call = question.call((), size)
    named = expected.table("parameters")
    sent_values: dict[str, list[str]] = {}
    for name, value in call.values:
        sent_values.setdefault(name, []).append(value)
    sent = {
        name: values if values[1:] or isinstance(named.get(name), Items) else values[0]
        for name, values in sent_values.items()
    }
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
    # No hospital is waited for: a busy machine fails no test.
    source = replace(
        mapping.source,
        url="sqlite:///:memory:",
        timeout_seconds=_TIMEOUT_SECONDS,
        count_timeout_seconds=_TIMEOUT_SECONDS,
    )
    return replace(mapping, source=source, resources=resources, parts=parts)


def _section_of(section: ResourceMapping, rows: WrittenRows) -> ResourceMapping:
    def with_rows(item: ItemMapping) -> ItemMapping:
        columns = known_item_columns(item)
        return replace(item, rows=_select(columns, rows.get(item.mark, ())))

    items = {
        name: tuple(with_rows(item) if item.rows else item for item in of)
        for name, of in section.items.items()
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
