"""What tools find in mapping files, and how it is printed."""

import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self, TypeAlias, TypeVar

from adapters.mapping.model import Mark
from adapters.mapping.problems import MappingError, MappingProblem
from adapters.mapping.slots import Place
from app.console import aligned

T = TypeVar("T")

WIDTH = 120
"""How many characters a printed line has at most."""

INDEX = "CREATE INDEX"
"""How a remedy begins that is an index."""


class Severity(StrEnum):
    """How severe a finding is; a note needs nobody to act."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to correct or to know, at the line of the file that a person would edit.

    `line` and `column` count from 1, 0 for the file as a whole; `file` is "" for a finding
    about no file. `element` is the FHIR element or the path of keys, `source` the column or
    table.column that it comes from; both are "" where there is none. `remedy` is an SQL
    statement or lines of the file that would help, `part` the name of the source where
    there are several, `topic` the plural under which notes of one kind are printed together.
    """

    file: str
    line: int
    column: int
    text: str
    element: str = ""
    source: str = ""
    severity: Severity = Severity.ERROR
    remedy: str = ""
    part: str = ""
    topic: str = ""

    @classmethod
    def at(
        cls,
        mark: Mark,
        text: str,
        element: str = "",
        source: str = "",
        severity: Severity = Severity.ERROR,
        remedy: str = "",
        topic: str = "",
    ) -> Self:
        """Return a finding at a place of a file."""
        where = (mark.file, mark.line, mark.column)
        return cls(*where, text, element, source, severity, remedy, topic=topic)

    @classmethod
    def of_file(cls, file: str, text: str, severity: Severity, line: int = 0) -> Self:
        """Return a finding about a file as a whole, or about lines that begin at `line`."""
        return cls(file, line, column=min(line, 1), text=text, severity=severity)

    @classmethod
    def of(cls, problem: MappingProblem) -> Self:
        """Return the finding for a problem of a mapping file."""
        return cls.at(problem.mark, problem.text, problem.element, problem.column)

    @classmethod
    def of_field(
        cls,
        place: Place,
        column: str,
        text: str,
        severity: Severity,
        remedy: str = "",
        topic: str = "",
    ) -> Self:
        """Return the finding of a field."""
        return cls.at(
            place.field.mark,
            text,
            element=place.element,
            source=column,
            severity=severity,
            remedy=remedy,
            topic=topic,
        )

    @property
    def is_wrong(self) -> bool:
        """Whether the finding is an error or a warning, so that somebody has to act."""
        return self.severity in (Severity.ERROR, Severity.WARNING)

    @property
    def is_index(self) -> bool:
        """Whether an index would help."""
        return self.remedy.startswith(INDEX)

    @property
    def headline(self) -> str:
        """Where it is and what it says, without the remedy."""
        is_error = self.severity is Severity.ERROR
        severity = "" if is_error else self.severity
        return ": ".join(filter(None, (*self._where, severity, self.text)))

    @property
    def _where(self) -> tuple[str, str, str]:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        subject = f"{self.element} ← {self.source}" if self.source else self.element
        return place, self.part, subject

    def __str__(self) -> str:
        remedy = self.remedy.replace("\n", "\n    ")
        return f"{self.headline}\n    {remedy}" if remedy else self.headline


@dataclass(frozen=True, slots=True)
class Measurement:
    """One search, sort or count that was run as the service runs it.

    `search` is as clients write it, without its value. `rows` were returned, or counted;
    `read` are the rows that the database read for them, None where it does not report
    them. `indexes` are statements that create the indexes which the search lacks.
    """

    search: str
    milliseconds: float
    rows: int
    read: int | None = None
    indexes: tuple[str, ...] = ()
    part: str = ""


Result: TypeAlias = Finding | Measurement


@dataclass(frozen=True, slots=True)
class Check:
    """One check; `run` reads the source and returns the results.

    It raises SourceUnavailableError when the source is unavailable. A check that `ends_in_time`
    observes the deadline itself, and is run even after it.
    """

    subject: str
    run: Callable[[], Iterable[Result]]
    ends_in_time: bool = False


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """Return what a call returns, and how many milliseconds it took."""
    began = time.perf_counter()
    answer = call()
    return answer, round((time.perf_counter() - began) * 1000, 1)


def findings_of(error: MappingError) -> list[Finding]:
    """Return a finding for each problem of a file."""
    return [Finding.of(problem) for problem in error.problems]


def findings_in(results: Iterable[Result]) -> list[Finding]:
    """Return the findings among results."""
    return [result for result in results if isinstance(result, Finding)]


def measurements_in(results: Iterable[Result]) -> list[Measurement]:
    """Return the measurements among results."""
    return [result for result in results if isinstance(result, Measurement)]


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with errors first, then warnings; in each, missing indexes come last."""
    severities = list(Severity)

    def rank(finding: Finding) -> tuple[int, bool]:
        return severities.index(finding.severity), finding.is_index

    return sorted(findings, key=rank)


def summary(findings: Iterable[Finding]) -> str:
    """Return how many findings there are of each severity, in words."""
    counts = Counter(finding.severity for finding in findings)
    texts = []
    for severity in Severity:
        number = counts[severity]
        if number:
            texts.append(
                f"{number} {severity}" if number == 1 else f"{number} {severity}s"
            )
    return ", ".join(texts)


def brief(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield errors and warnings in up to two lines each, and a line for each kind of note."""
    notes: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        if finding.severity is Severity.NOTE:
            key = finding.file, finding.topic or finding.text
            notes.setdefault(key, []).append(finding)
        else:
            yield _two_lines(finding)
    for (file, topic), alike in notes.items():
        if len(alike) == 1:
            yield _cut(alike[0].headline)
        else:
            about = ", ".join(dict.fromkeys(f.element or f.source for f in alike))
            yield _cut(f"{file}: note: {len(alike)} {topic}: {about} (--verbose)")


def _two_lines(finding: Finding) -> str:
    """Return a finding in up to two lines, with the first line of its remedy."""
    # An index is printed below the table of costs.
    lines = [] if finding.is_index else finding.remedy.splitlines()
    remedy = lines[0] if lines else ""
    if len(lines) > 1:
        remedy += " …"
    if remedy and len(finding.headline) <= WIDTH:
        return f"{finding.headline}\n{_cut(f'    {remedy}')}"
    return textwrap.fill(
        f"{finding.headline} → {remedy}" if remedy else finding.headline,
        WIDTH,
        subsequent_indent="    ",
        max_lines=2,
        placeholder=" …",
        break_on_hyphens=False,
    )


def _cut(line: str) -> str:
    """Return a line that fits into WIDTH; a longer one ends in an ellipsis."""
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 2].rstrip()} …"


HEADINGS = ("search", "ms", "rows", "rows read", "index")
"""What the columns of the costs of searches are called."""


def missing_indexes(results: Iterable[Result]) -> list[str]:
    """Return the indexes that searches lack, each once, in the order of their numbers."""
    results = list(results)
    indexes = [index for cost in measurements_in(results) for index in cost.indexes]
    # A search that timed out has a finding and no measurement.
    indexes += [finding.remedy for finding in findings_in(results) if finding.is_index]
    return list(dict.fromkeys(indexes))


def cost_rows(
    costs: Iterable[Measurement], indexes: Sequence[str]
) -> list[tuple[str, ...]]:
    """Return what each search cost, as texts below `HEADINGS`."""
    return [
        (
            f"{cost.part}: {cost.search}" if cost.part else cost.search,
            f"{cost.milliseconds:,.1f}",
            f"{cost.rows:,}",
            "–" if cost.read is None else f"{cost.read:,}",
            "".join(f"[{indexes.index(index) + 1}]" for index in cost.indexes),
        )
        for cost in costs
    ]


def cost_lines(results: Sequence[Result]) -> Iterator[str]:
    """Yield what each search cost, and the indexes that searches lack, in full."""
    indexes = missing_indexes(results)
    if rows := cost_rows(measurements_in(results), indexes):
        table = aligned([HEADINGS, *rows], has_figures=True)
        yield from (f"  {line}" for line in table)
    for number, index in enumerate(indexes, 1):
        statement = index.replace("\n", "\n      ")
        if len(statement) > WIDTH - len("  [1] "):
            statement = statement.replace(" ON ", "\n        ON ", 1)
        yield f"  [{number}] {statement}"
