"""`encounters mapping test`: the tests beside a mapping file, without its hospital.

A file of tests holds cases: a row and what is expected of the resource that it becomes,
or a search and what it finds. Rows go through the service's own mapping and schemas.
Searches go through its own parser and its own SQL, in SQLite, over the written rows as the
results of the SELECTs: codes and search columns are tried as the service filters by them.
Of an HTTP system the request is compared.
What no test touches is reported.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import orjson

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    NotAskableError,
    Page,
    ResourceType,
    RowFault,
    SearchQuery,
    TokenCriterion,
)
from adapters.http.adapter import Question, open_section, questions_of
from adapters.mapping.lineage import TracedField
from adapters.mapping.model import (
    FieldMapping,
    ItemMapping,
    Mark,
    ResourceMapping,
    SourceMapping,
    TimeRule,
)
from adapters.mapping.problems import MappingError, MappingProblem, did_you_mean
from adapters.mapping.profile import profile_of
from adapters.mapping.row_mapper import known_columns
from adapters.mapping.schema import problems_of
from adapters.mapping.slots import (
    SECTIONS,
    UNSERVED,
    Kind,
    field_of,
    places_of,
)
from adapters.mapping.times import read_day, to_instant
from adapters.mapping.yaml import Items, Node, Scalar, Table, parse_file, plain
from adapters.sql.columns import Kind as ColumnKind
from adapters.sql.columns import time_bound
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
    MappedRow,
    code_of,
    collected,
    element_of,
    elements_of,
    in_words,
    is_below,
    known_item_columns,
    leaves,
    read_cells,
    read_items,
    read_row,
    refuse,
    rows_of,
    unnumbered,
)
from app.errors import ServiceError
from app.middleware import outcome_for
from app.offer import compute_offer
from app.search.parser import Parameters, context_of, parse_search

BASE_URL = "https://encounters.example/fhir/v3"
"""The base of a deployment, for searches that name a patient by its whole address."""

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


@dataclass(frozen=True, slots=True)
class Result:
    """The result of the tests of one mapping file.

    `faults` keep them from being run. `tests` are the cases, each with how it differs
    from what is expected. `targets` is all that could be touched, `gaps` what was not.
    """

    file: Path
    faults: Sequence[Finding] = ()
    tests: Sequence[tuple["Case", Sequence[Finding]]] = ()
    targets: Sequence[Target] = ()
    gaps: Sequence[Target] = ()

    @property
    def failed(self) -> int:
        """How many cases did not pass."""
        return sum(bool(findings) for _, findings in self.tests)

    @property
    def coverage(self) -> Mapping[str, tuple[int, int]]:
        """How many targets of each kind were touched, and how many there are."""
        every = Counter(target.kind for target in self.targets)
        left = Counter(gap.kind for gap in self.gaps)
        return {kind: (every[kind] - left[kind], every[kind]) for kind in KINDS}

    def as_text(self, severity: Severity) -> Iterator[str]:
        """Yield the lines for people; `severity` is that of the gaps."""
        if self.faults:
            yield from map(str, self.faults)
            return
        for case, findings in self.tests:
            if findings:
                yield f"FAILED {case.name} ({case.mark})"
                yield from (f"  {finding}" for finding in findings)
        groups: dict[tuple[str, str], list[Target]] = {}
        for gap in self.gaps:
            groups.setdefault((gap.kind, gap.group), []).append(gap)
        for (kind, _), gaps in groups.items():
            names = ", ".join(dict.fromkeys(gap.name for gap in gaps))
            what = f"{kind}{'s' * (len(gaps) > 1)} {names}"
            yield str(gaps[0].finding(severity, what))
        tests = f"{len(self.tests)} test{'s' * (len(self.tests) != 1)}"
        verdict = (
            f"{self.failed} of {tests} failed" if self.failed else f"{tests} passed"
        )
        coverage = ", ".join(
            f"{touched} of {every} {kind}s"
            for kind, (touched, every) in self.coverage.items()
            if every
        )
        yield f"{self.file}: {verdict}; touched {coverage}"

    def as_json(self, severity: Severity) -> dict[str, object]:
        """Return the same for machines."""
        return {
            "file": str(self.file),
            "faults": [asdict(fault) for fault in self.faults],
            "tests": [
                {
                    "name": case.name,
                    "line": case.mark.line,
                    "passed": not findings,
                    "findings": [asdict(finding) for finding in findings],
                }
                for case, findings in self.tests
            ],
            "coverage": {
                kind.replace(" ", "_"): {"touched": touched, "of": every}
                for kind, (touched, every) in self.coverage.items()
            },
            "untouched": [
                asdict(gap.finding(severity, f"{gap.kind} {gap.name}"))
                for gap in self.gaps
            ],
        }


def run(options: SimpleNamespace) -> int:
    """Run the tests beside each file and print their results."""
    results = [try_file(file) for file in options.file]
    severity = Severity.ERROR if options.complete else Severity.NOTE
    if options.json:
        print_json({"mappings": [result.as_json(severity) for result in results]})
    else:
        for result in results:
            print("\n".join(result.as_text(severity)))
    wrong = any(r.faults or r.failed or (options.complete and r.gaps) for r in results)
    return FINDINGS if wrong else FINE


def try_file(named: Path) -> Result:
    """Run the tests beside a mapping file; the file of tests itself may be named too."""
    name = named.name.removesuffix(".test.yaml")
    path = named if name == named.name else named.with_name(f"{name}.yaml")
    beside, problems = tests_beside(path), list[MappingProblem]()
    file, cases, ready = None, list[Case](), list[RowCheck | SearchCheck]()
    with collected(problems):
        file = MappingFile.open(path)
    if beside.exists():
        with collected(problems):
            cases = read_cases(beside, problems)
    elif file:
        text = f"there are no tests: write them into {beside.name}, beside it"
        problems.append(MappingProblem(Mark(str(path), 1, 1), "", text))
    # All that is misspelt is reported at once, before any case is run.
    for case in cases:
        with collected(problems):
            refuse(_faults(case))
            if file:
                ready.append(_prepared(file, case))
    if file is None or problems:
        return Result(path, findings_of(MappingError(problems)))
    touched: set[object] = set()
    tests = [(check.case, list(check.findings(touched))) for check in ready]
    every = targets(file)
    gaps = [target for target in every if target.key not in touched]
    gaps.sort(key=lambda gap: (gap.mark.file, gap.mark.line, gap.mark.column))
    return Result(path, (), tests, every, gaps)


def tests_beside(mapping: Path) -> Path:
    """Return the file of tests of a mapping file."""
    return mapping.with_suffix(".test.yaml")


# ------------------------------------------------------------------------------- cases

OF_ROWS = ("expect", "expect_absent", "expect_error")
OF_SEARCHES = ("expect_found", "expect_request", "expect_refused")
LAID_OVER = ("given", "given_items", "search")
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


def read_cases(path: Path, problems: list[MappingProblem]) -> list[Case]:
    """Return the cases of the tests that have the right shape; adds to the problems.

    Raises MappingError for a file that cannot be read at all.
    """
    root, unread = parse_file(path)
    of_shape = problems_of(root, "TestFile")
    problems += [*unread, *(problem for problem, _ in of_shape)]
    refused = {at[1] for _, at in of_shape if len(at) > 1}
    node = root.entries.get("tests")
    return [
        case
        for number, test in enumerate(node.items if isinstance(node, Items) else ())
        if number not in refused and isinstance(test, Table)
        for case in _cases(test)
    ]


def _cases(test: Table) -> Iterator[Case]:
    """Yield the cases of a test, each laid over it: cells over cells, other keys whole."""
    name, cases = plain(test.entries["name"]), test.entries.get("cases")
    if not isinstance(cases, Items):
        yield Case(name, test.mark, test.entries, test.keys)
        return
    for number, own in enumerate(cases.items, 1):
        assert isinstance(own, Table), "the shape of a file says so"
        parts = {**test.entries, **own.entries}
        for key in LAID_OVER:
            below, above = test.entries.get(key), own.entries.get(key)
            if isinstance(below, Table) and isinstance(above, Table):
                entries = {**below.entries, **above.entries}
                parts[key] = Table(above.mark, entries, {**below.keys, **above.keys})
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


def _prepared(file: MappingFile, case: Case) -> "RowCheck | SearchCheck":
    """Return the check of a case; raises MappingError with all that is misspelt in it."""
    try:
        read = read_search if case.is_search else read_case_row
        return read(file, case)
    except NoSectionError as error:
        raise MappingError([case.problem("source", str(error))]) from error


# -------------------------------------------------------------------------- comparison

Compared: TypeAlias = tuple[str, Mark, str]
"""A path of an expectation, its place, and how the resource differs: "" when it does not."""


def compare(expected: Node, actual: Any, path: str = "") -> Iterator[Compared]:
    """Yield each path that is expected, with what is wrong at it; None is nothing there.

    Keys that are not expected do not count; the items of a list do, all of them.
    """
    match expected, actual:
        case Table(entries=entries), dict() | None if entries or actual is not None:
            for key, below in entries.items():
                inner = f"{path}.{key}" if path else key
                near = "" if key in (actual or ()) else did_you_mean(key, actual or ())
                if near:
                    yield inner, expected.keys[key], f"there is no '{key}'{near}"
                else:
                    yield from compare(below, (actual or {}).get(key), inner)
        case Items(items=items), list() | None if items or actual is not None:
            if actual is not None and len(actual) != len(items):
                count = f"{len(items)} item{'s' * (len(items) != 1)}"
                text = f"expected {count}, and there are {len(actual)}"
                yield path, expected.mark, text
            several = [None] * len(items) if actual is None else actual
            for number, (below, each) in enumerate(zip(items, several, strict=False)):
                yield from compare(below, each, f"{path}[{number}]")
        case Scalar(text=text), _ if _described(actual) == f"it is '{text}'":
            yield path, expected.mark, ""
        case _:
            text = f"expected {_shown(expected)}, and {_described(actual)}"
            yield path, expected.mark, text


def _shown(node: Node) -> str:
    if isinstance(node, Scalar):
        return f"'{node.text}'"
    return "a list" if isinstance(node, Items) else "keys and values"


def _described(actual: Any) -> str:
    if actual is None:
        return "there is none"
    if isinstance(actual, dict):
        return f"it is keys and values: {', '.join(actual)}"
    if isinstance(actual, list):
        return f"it is a list of {len(actual)}: write [ … ]"
    return f"it is '{in_words(actual)}'"


# -------------------------------------------------------------------------------- rows


def read_case_row(file: MappingFile, case: Case) -> "RowCheck":
    """Return the row of a case; raises MappingError with all that is wrong with it."""
    problems: list[MappingProblem] = []
    known = elements_of(case.kind)
    for path in case.texts("expect_absent"):
        wanted = unnumbered(path.text)
        if not any(is_below(wanted, element) for element in known):
            near = did_you_mean(wanted, known)
            text = f"{case.kind} has no element '{wanted}' here{near}"
            problems.append(MappingProblem(path.mark, "", text))
    section = file.section(case.kind, case.text("source"))
    with collected(problems):
        given = case.table("given")
        row = read_row(file, section, given, case.parts.get("given_items"))
    refuse(problems)
    return RowCheck(case, MappedRow.of(file, row))


@dataclass(frozen=True, slots=True)
class RowCheck:
    """What is expected of one row, held against what became of it."""

    case: Case
    row: MappedRow

    @property
    def _mark(self) -> Mark:
        """The place of what is expected."""
        return next(
            self.case.parts[key].mark for key in OF_ROWS if key in self.case.parts
        )

    def findings(self, touched: set[object]) -> Iterator[Finding]:
        """Yield how the row differs from what is expected of it."""
        case, outcome = self.case, self.row.outcome
        fault = case.text("expect_error")
        wanted = (
            f"the fault '{fault}'" if fault else case.text("expect") or "a resource"
        )
        actual = outcome if isinstance(outcome, str) else "a resource"
        if isinstance(outcome, RowFault):
            yield from self._fault(outcome, touched)
        elif actual == wanted == "a resource":
            yield from self._resource(touched)
        else:
            if not fault:
                self._touch_named("status", touched)
            if wanted != actual:
                text = f"expected {wanted}, and the row is {actual}"
                yield Finding.at(self._mark, text, case.kind)

    def _resource(self, touched: set[object]) -> Iterator[Finding]:
        expected, resource = self.case.parts.get("expect"), self.row.outcome
        for path, mark, text in compare(expected, resource) if expected else ():
            if traced := self.row.origin(path).traced:
                _touch(touched, traced)
            if text:
                yield self._finding(mark, path, text)
        for scalar in self.case.texts("expect_absent"):
            yield from self._absent(scalar, touched)

    def _fault(self, fault: RowFault, touched: set[object]) -> Iterator[Finding]:
        kind, wanted = self.case.kind, self.case.text("expect_error")
        text = _fault_text(kind, fault)
        if not wanted:
            marks = (m.field.mark for m in self.row.traced if m.name == fault.field)
            where = next((f" ({mark})" for mark in marks), "")
            text = f"the row is a fault{where}: {fault.rule}"
            yield Finding.at(self._mark, text, element_of(kind, fault), fault.column)
            return
        self._touch_named(fault.field, touched)
        if wanted not in text:
            text = f"expected the fault '{wanted}', and it is '{text}'"
            yield Finding.at(self._mark, text, kind, fault.column)

    def _absent(self, path: Scalar, touched: set[object]) -> Iterator[Finding]:
        for traced in self.row.traced:
            if traced.is_filled and _is_at(traced.element, path.text):
                _touch(touched, traced)
        if any(_is_at(leaf, path.text) for leaf, _ in leaves(self.row.outcome)):
            text = "expected nothing here, and there is something"
            yield self._finding(path.mark, path.text, text)

    def _finding(self, mark: Mark, path: str, text: str) -> Finding:
        origin = self.row.origin(path)
        columns = ", ".join(origin.traced.field.columns) if origin.traced else ""
        rule = ", ".join(filter(None, (origin.rule, origin.place)))
        text = f"{text} ({rule})" if rule else text
        return Finding.at(mark, text, f"{self.case.kind}.{path}", columns)

    def _touch_named(self, name: str, touched: set[object]) -> None:
        for traced in self.row.traced:
            if traced.name == name:
                _touch(touched, traced)


def _is_at(path: str, above: str) -> bool:
    """Whether a path is at another or inside it; items of lists need no number."""
    return is_below(path, above) or is_below(unnumbered(path), above)


def _fault_text(kind: ResourceType, fault: RowFault) -> str:
    """Return a fault as tools print it."""
    column = f" ← {fault.column}" if fault.column else ""
    return f"{element_of(kind, fault)}{column}: {fault.rule}"


# ---------------------------------------------------------------------------- searches

Rows: TypeAlias = dict[Mark, Sequence[Cells]]
"""Rows by the place of the section or the item that they are of."""


def read_search(file: MappingFile, case: Case) -> "SearchCheck":
    """Return the search of a case.

    Raises MappingError with all that is wrong with its rows, and NoSectionError.
    """
    problems: list[MappingProblem] = []
    rows: Rows = {}
    kind, source = case.kind, case.text("source")
    if not file.sections(kind):
        file.section(kind)
    given = [*_lists(file, case, "given", kind, source)]
    given += _lists(file, case, "given_patients", ResourceType.PATIENT, "")
    for of, name, mark, node in given:
        with collected(problems):
            section = _section(file, of, name, mark)
            rows[section.mark] = _read_rows(section, node)
    if "given_items" in case.parts:
        with collected(problems):
            items = read_items(file.section(kind, source), case.parts["given_items"])
            rows |= {item.mark: cells for item, cells in items.items()}
    pairs = []
    for name, node in case.table("search").entries.items():
        for value in node.items if isinstance(node, Items) else (node,):
            if isinstance(value, Scalar):
                pairs.append((name, value.text))
            else:
                text = f"expected a value of '{name}', or a list of values"
                problems.append(MappingProblem(value.mark, "", text))
    refuse(problems)
    return SearchCheck(file, case, pairs, rows)


def _lists(
    file: MappingFile, case: Case, key: str, kind: ResourceType, source: str
) -> Iterator[tuple[ResourceType, str, Mark, Node]]:
    """Yield the lists of rows behind a key: one for each source, or that of the source."""
    node = case.parts.get(key)
    if isinstance(node, Table) and len(file.sections(kind)) > 1:
        for name, below in node.entries.items():
            yield kind, name, node.keys[name], below
    elif node:
        yield kind, source, case.keys.get("source", case.mark), node


def _section(
    file: MappingFile, kind: ResourceType, source: str, mark: Mark
) -> ResourceMapping:
    try:
        return file.section(kind, source)
    except NoSectionError as error:
        raise MappingError([MappingProblem(mark, "", str(error))]) from error


def _read_rows(section: ResourceMapping, node: Node) -> Sequence[Cells]:
    """Return written rows as SQLite compares them: times are texts that sort as times."""
    if section.http is not None:
        text = (
            "an HTTP system searches its rows itself: leave them out, and say"
            " expect_request"
        )
        refuse([MappingProblem(node.mark, "", text)])
    times = {
        column: (place.kind, rule)
        for place in places_of(section)
        if (rule := place.field.time) and rule.format is None
        for column in (*place.field.columns, place.field.search_column)
        if len(place.field.columns) == 1
    }
    return [
        {
            column: _comparable(*times[column], cell) if column in times else cell
            for column, cell in read_cells(section, row).items()
        }
        for row in rows_of(node)
    ]


def _comparable(kind: Kind, rule: TimeRule, cell: str) -> object:
    """Write a time as the SQL adapter compares texts with it; what is none stays."""
    try:
        if kind is Kind.DATE:
            return read_day(cell, rule).isoformat()
        return time_bound(ColumnKind.TEXT, rule, to_instant(cell, rule))
    except ValueError:
        return cell


@dataclass(frozen=True, slots=True)
class SearchCheck:
    """What is expected of a search, held against what it finds, or what it sends.

    `pairs` are the search as a form says it, `rows` the written rows.
    """

    file: MappingFile
    case: Case
    pairs: Parameters
    rows: Rows

    def findings(self, touched: set[object]) -> Iterator[Finding]:
        """Yield how the search differs from what is expected of it."""
        case, wanted = self.case, self.case.text("expect_refused")
        try:
            findings = [*(self._sent if self._is_sent() else self._found)(touched)]
        except (ServiceError, NotAskableError) as error:
            diagnostics = outcome_for(error).text or ""
            if not wanted:
                yield case.finding("search", f"it is refused: {diagnostics}")
            elif wanted not in diagnostics:
                text = f"expected the refusal '{wanted}', and it is '{diagnostics}'"
                yield case.finding("expect_refused", text)
        except NoSectionError as error:
            yield case.finding("source", str(error))
        else:
            if wanted:
                text = "expected a refusal, and the search is answered"
                findings = [case.finding("expect_refused", text)]
            yield from findings

    @property
    def _sections(self) -> Sequence[ResourceMapping]:
        """The sections that are searched and have rows."""
        sections = self.file.sections(self.case.kind)
        return [section for section in sections if self.rows.get(section.mark)]

    def _is_sent(self) -> bool:
        """Whether the search is tried as far as its request to an HTTP system."""
        case, source = self.case, self.case.text("source")
        if "expect_request" in case.parts or "expect_found" in case.parts:
            return "expect_request" in case.parts
        one = [self.file.section(case.kind, source)] if source else None
        return any(s.http for s in one or self.file.sections(case.kind))

    def _query(self, mapping: SourceMapping, adapter: Adapter) -> SearchQuery:
        """Parse the search as the service would; raises ServiceError."""
        profile, kind = profile_of(mapping), self.case.kind
        offer = compute_offer(profile, adapter.capabilities)
        if kind not in offer.resources:
            raise NoSectionError(f"the profile {profile.name} does not offer it")
        context = context_of(BASE_URL, mapping.constants, mapping.time_zone)
        query = parse_search(self.pairs, offer.resources[kind], context).query
        if any(name == "_count" for name, _ in self.pairs):
            return query
        rows = sum(len(self.rows[section.mark]) for section in self._sections)
        return replace(query, count=max(query.count, rows))

    def _found(self, touched: set[object]) -> Iterator[Finding]:
        """Yield how the rows that are found differ."""
        if not all(s.rows for s in self.file.sections(self.case.kind)):
            text = "only the rows of a database can be searched in a test"
            yield self.case.finding("search", text)
            return
        mapping = _stand_in(self.file.mapping, self.rows)
        with closing(open_adapter(mapping)) as adapter:
            query = self._query(mapping, adapter)
            page = adapter.search(query)
        self._touch(touched, query, self._sections)
        yield from self._compare_page(page)

    def _compare_page(self, page: Page) -> Iterator[Finding]:
        case, expected = self.case, self.case.texts("expect_found")
        ids = [row.id for row in page.rows if not isinstance(row, RowFault)]
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
        if sorted(ids) == sorted(wanted) and self._is_sorted and ids != wanted:
            yield case.finding("expect_found", f"the order is {', '.join(ids)}")

    @property
    def _is_sorted(self) -> bool:
        """Whether the search says an order."""
        return any(name == "_sort" for name, _ in self.pairs)

    def _sent(self, touched: set[object]) -> Iterator[Finding]:
        """Yield how the request of a first page differs from `expect_request`."""
        section = self.file.section(self.case.kind, self.case.text("source"))
        if section.http is None:
            text = "a database is sent no request: say expect_found"
            yield self.case.finding("expect_request", text)
            return
        mapping = self.file.source_of(section)
        with closing(open_adapter(mapping)) as adapter:
            query = self._query(mapping, adapter)
        questions = questions_of(open_section(mapping, query.resource_type), query)
        question = next(iter(questions), None)
        self._touch(touched, query, [section])
        expected = self.case.parts.get("expect_request")
        if isinstance(expected, Table) and question is not None:
            yield from _compare_request(expected, question, query.count)
        elif isinstance(expected, Table):
            text = "nothing is sent: nothing can match this search"
            yield Finding.at(expected.mark, text)
        elif expected is not None and question is not None:
            request = question.explained(query.count, hidden=False)
            text = f"expected no request, and it is: {request}"
            yield Finding.at(expected.mark, text)

    def _touch(
        self,
        touched: set[object],
        query: SearchQuery,
        sections: Sequence[ResourceMapping],
    ) -> None:
        """Count the parameters and the order of a search, and the codes that it compares."""
        parameters = {criterion.parameter for criterion in query.criteria}
        for section in sections:
            touched |= {(section.mark, name) for name in parameters}
            if self._is_sorted:
                touched.add((section.mark, "_sort", query.sort.key))
        slots = {field_of(query.resource_type, name) for name in parameters}
        tokens = [c.values for c in query.criteria if isinstance(c, TokenCriterion)]
        if any(token.system for values in tokens for token in values):
            slots.add("visit_number_system")
        for section in self._sections:
            for slot, field in section.fields.items():
                for row in self.rows[section.mark] if field.columns else ():
                    cell = row.get(field.columns[0])
                    if slot in slots or _is_unserved(field, cell):
                        _touch_code(touched, field, cell)


def _is_unserved(field: FieldMapping, cell: object) -> bool:
    return field.codes is not None and field.codes.table.get(str(cell)) in UNSERVED


def _stand_in(mapping: SourceMapping, rows: Rows) -> SourceMapping:
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
    source = replace(mapping.source, url="sqlite:///:memory:")
    return replace(mapping, source=source, resources=resources, parts=parts)


def _section_of(section: ResourceMapping, rows: Rows) -> ResourceMapping:
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


def _compare_request(
    expected: Table, question: Question, size: int
) -> Iterator[Finding]:
    """Compare what the search itself sends, all of it, and what else is expected."""
    call = question.call((), size)
    parameters = expected.entries.get("parameters")
    named = parameters.entries if isinstance(parameters, Table) else {}
    every: dict[str, list[str]] = {}
    for name, value in call.values:
        every.setdefault(name, []).append(value)
    sent = {
        name: values
        if len(values) > 1 or isinstance(named.get(name), Items)
        else values[0]
        for name, values in every.items()
    }
    request = {"path": call.path, "method": call.method.lower(), "parameters": sent}
    for path, mark, text in compare(expected, request):
        if text:
            yield Finding.at(mark, text, path)
    if isinstance(parameters, Table):
        for name in dict.fromkeys(n for n, _ in (*question.criteria, *question.order)):
            if name not in named:
                text = f"the request has '{name}' too: {', '.join(every[name])}"
                yield Finding.at(parameters.mark, text)


# ---------------------------------------------------------------------------- coverage


def targets(file: MappingFile) -> Sequence[Target]:
    """Return everything that a mapping file says and tests can touch, each thing once.

    What a file says that this one extends is for the tests beside that one. A constant
    of the whole file is one field, however many sections have it.
    """
    sections = file.mapping.sections
    every = [target for section in sections for target in _of_section(file, section)]
    coded = (place.field.codes for s in sections for place in places_of(s))
    for name in dict.fromkeys(codes.name for codes in coded if codes):
        codes, group = file.mapping.codes[name], f"codes.{name}"
        for code in (*codes.table, *([] if codes.otherwise is None else [None])):
            mark, word = file.code_mark(name, code), code or "otherwise"
            every.append(Target("code", (name, code), mark, group, word))
    own = file.root.mark.file
    return tuple({t.key: t for t in every if t.mark.file == own}.values())


def _of_section(file: MappingFile, section: ResourceMapping) -> Iterator[Target]:
    kind = section.resource_type
    group = f"{kind}{file.of_source(section)}"
    # What the type of an identifier says by itself has the mark of the item.
    items = {item.mark for of in section.items.values() for item in of}
    for place in places_of(section):
        mark, name = place.field.mark, place.element.removeprefix(f"{kind}.")
        if mark not in items:
            yield Target("field", mark, mark, group, name)
    offered = file.offered(kind)
    for name in (name for name in section.parameters if name in offered):
        mark = file.listed_mark(section, "search", name)
        yield Target("search parameter", (section.mark, name), mark, group, name)
    for sort in section.sorts if "_sort" in offered else ():
        mark = file.listed_mark(section, "sort", sort)
        yield Target("sort key", (section.mark, "_sort", sort), mark, group, sort)


def _touch(touched: set[object], traced: TracedField) -> None:
    """Count a field that an expectation compares, and the code that it read."""
    touched.add(traced.field.mark)
    if traced.fault is None and traced.cells:
        _touch_code(touched, traced.field, traced.cells[0][1])


def _touch_code(touched: set[object], each: FieldMapping, cell: object) -> None:
    """Count the entry of a code table that a cell goes by."""
    if each.codes is not None:
        code = code_of(each, cell)
        touched.add((each.codes.name, code if code in each.codes.table else None))
