"""What a tool found in mapping files, for people and for machines."""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Self

from adapters.mapping.problems import MappingError, MappingProblem

FINE, FINDINGS, CANNOT_RUN = 0, 1, 2
"""The exit statuses of every tool."""


class Severity(StrEnum):
    """How much a finding matters; a note alone leaves the exit status at FINE."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to mend or to know, at the line of the file that a person would edit.

    `line` and `column` count from 1, 0 for the file as a whole. `element` is the FHIR
    element or the path of keys, `source` the column or table.column that it comes from;
    both are "" where there is none. `remedy` is what would mend it, when it can be said
    in the words of a machine: an SQL statement, a line of the file.
    """

    file: str
    line: int
    column: int
    text: str
    element: str = ""
    source: str = ""
    severity: Severity = Severity.ERROR
    remedy: str = ""

    @classmethod
    def of(cls, problem: MappingProblem) -> Self:
        """Return the finding for a problem of a mapping file."""
        mark = problem.mark
        place = (mark.file, mark.line, mark.column)
        return cls(*place, problem.text, problem.element, problem.column)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        made = f"{self.element} ← {self.source}" if self.source else self.element
        said = (
            self.text
            if self.severity is Severity.ERROR
            else f"{self.severity}: {self.text}"
        )
        line = ": ".join(part for part in (place, made, said) if part)
        remedy = self.remedy.replace("\n", "\n    ")
        return f"{line}\n    {remedy}" if remedy else line


class CannotRunError(Exception):
    """The tool cannot do its work; the text says what to do about it."""


def findings_of(error: MappingError) -> list[Finding]:
    """Return a finding for each problem of a file."""
    return [Finding.of(problem) for problem in error.problems]


def report(findings: Iterable[Finding], *, as_json: bool, fine: str) -> int:
    """Print findings, or `fine` when there is none, and return the exit status."""
    found = list(findings)
    wrong = any(finding.severity is not Severity.NOTE for finding in found)
    if as_json:
        print_json({"findings": [asdict(finding) for finding in found]})
    else:
        for finding in found:
            print(finding)
        if fine and not wrong:
            print(fine)
    return FINDINGS if wrong else FINE


def print_json(value: object) -> None:
    """Print one JSON document."""
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2)
    print()
