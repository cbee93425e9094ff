"""`encounters mapping test`: the tests beside a mapping file, without its hospital.

Rows go through the service's own mapping and schemas. Searches go through its own
reading of a search and its own SQL, over SQLite that holds the rows of the test; for an
HTTP system, as far as the request that would be sent.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from adapters.mapping.model import Mark
from adapters.mapping.problems import MappingError, MappingProblem
from adapters.rows import SourceRow
from app.tools.report import (
    FINDINGS,
    FINE,
    Finding,
    Severity,
    findings_of,
    print_json,
)
from app.tools.sections import MappingFile
from app.tools.testing.cases import Case, mapping_beside, read_cases, tests_beside
from app.tools.testing.coverage import KINDS, Coverage, Target, targets, together
from app.tools.testing.rows import read_case_row, run_row
from app.tools.testing.searched import Searched, read_searched
from app.tools.testing.searches import run_search
from app.tools.testing.suggesting import next_test


@dataclass(frozen=True, slots=True)
class Tried:
    """One case, and how it differs from what is expected; nothing when it passed."""

    case: Case
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What the tests of one mapping file said.

    `faults` keep them from being run. `there` counts what could be touched, by kind;
    `gaps` is what was not, and `next_test` the lines of a test for one of them.
    """

    file: Path
    faults: tuple[Finding, ...]
    tried: tuple[Tried, ...] = ()
    there: Counter[str] | None = None
    gaps: tuple[Target, ...] = ()
    next_test: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Tried, ...]:
        """The cases that did not pass."""
        return tuple(tried for tried in self.tried if tried.findings)


def run(options: argparse.Namespace) -> int:
    """Run the tests beside each file and print what they say."""
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
    file = mapping_beside(named)
    problems: list[MappingProblem] = []
    opened = _open(file, problems)
    can_be_read = opened is not None or tests_beside(file).exists()
    cases = _cases(file, problems) if can_be_read else ()
    ready = _ready(opened, cases, problems) if opened else []
    if opened is None or problems:
        return Result(file, tuple(findings_of(MappingError(problems))))
    coverage = Coverage()
    tried = tuple(
        Tried(case, tuple(_findings(opened, case, read, coverage)))
        for case, read in ready
    )
    there = Counter(target.kind for target in targets(opened))
    gaps = tuple(coverage.gaps(opened))
    return Result(file, (), tried, there, gaps, next_test(opened, gaps))


def _open(file: Path, problems: list[MappingProblem]) -> MappingFile | None:
    try:
        return MappingFile.open(file)
    except MappingError as error:
        problems += error.problems
        return None


def _cases(file: Path, problems: list[MappingProblem]) -> tuple[Case, ...]:
    beside = tests_beside(file)
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
    file: MappingFile, cases: Iterable[Case], problems: list[MappingProblem]
) -> list[tuple[Case, SourceRow | Searched]]:
    """Read what every case is given before any is tried: all that is misspelt is told at once."""
    ready: list[tuple[Case, SourceRow | Searched]] = []
    for case in cases:
        read = read_searched if case.is_search else read_case_row
        try:
            ready.append((case, read(file, case)))
        except MappingError as error:
            problems += error.problems
    return ready


def _findings(
    file: MappingFile, case: Case, read: SourceRow | Searched, coverage: Coverage
) -> Iterable[Finding]:
    if isinstance(read, Searched):
        return run_search(file, case, read, coverage)
    return run_row(file, case, read, coverage)


def _print(result: Result, severity: Severity) -> None:
    for fault in result.faults:
        print(fault)
    if result.there is None:
        return
    for tried in result.failed:
        print(f"FAILED {tried.case.name} ({tried.case.mark})")
        for finding in tried.findings:
            print(f"  {finding}")
    for finding in together(result.gaps, severity):
        print(finding)
    if result.next_test and not result.failed:
        print(
            f"{tests_beside(result.file).name}: next, when it is what the hospital says:"
        )
        print("\n".join(result.next_test))
    failed, tests = len(result.failed), len(result.tried)
    named = "1 test" if tests == 1 else f"{tests} tests"
    verdict = f"{failed} of {named} failed" if failed else f"{named} passed"
    touched = ", ".join(_told(result, kind) for kind in KINDS if result.there[kind])
    print(f"{result.file}: {verdict}; touched {touched}")


def _told(result: Result, kind: str) -> str:
    assert result.there is not None
    touched, there = _counts(result, kind)
    return f"{touched} of {there} {kind}s"


def _counts(result: Result, kind: str) -> tuple[int, int]:
    there = result.there[kind] if result.there else 0
    return there - sum(gap.kind == kind for gap in result.gaps), there


def _as_json(result: Result, severity: Severity) -> dict[str, object]:
    covered = {kind.replace(" ", "_"): _counts(result, kind) for kind in KINDS}
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
            for kind, (touched, there) in covered.items()
        },
        "untouched": [asdict(gap.finding(severity)) for gap in result.gaps],
    }
