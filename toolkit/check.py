"""`encounters mapping check`: everything that is wrong with mapping files."""

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from adapters.contract import AdapterError, ResourceType
from adapters.mapping.examples import example_lines, lines_of
from adapters.mapping.load import load_mapping
from adapters.mapping.model import KnownFinding, Mark, SourceMapping
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import profile_of
from adapters.mapping.slots import REFERS, places_of
from adapters.mapping.slots import element as element_of
from adapters.transport import WITHOUT_TLS, exposed_sources
from app.console import CANNOT_RUN, FINDINGS, FINE, CannotRunError, print_json
from toolkit.checks.rows import selects
from toolkit.checks.runner import open_sources
from toolkit.confirm import confirm
from toolkit.console import marked_lines, show_progress, write_text
from toolkit.findings import (
    HEADINGS,
    Finding,
    Result,
    Severity,
    brief,
    cost_lines,
    cost_rows,
    findings_in,
    findings_of,
    measurements_in,
    missing_indexes,
    ranked,
    summary,
)

CHECK_SECONDS = 40.0
"""How many seconds the checks of the source of one file may take, but for the last statement."""


def run(
    *,
    files: Sequence[Path],
    live: bool,
    verbose: bool,
    seconds: float,
    html: Path | None,
    as_json: bool,
) -> int:
    """Check each file and print the findings, and what searches cost."""
    checked = [check_file(file, is_live=live, seconds=seconds) for file in files]
    results = [result for of_file, _ in checked for result in of_file]
    unavailable = [error for _, error in checked if error]
    findings, costs = findings_in(results), measurements_in(results)
    is_wrong = any(finding.is_wrong for finding in findings)
    names = ", ".join(map(str, files))
    if html:
        write_text(html, page(names, results, list(map(str, unavailable))))
    if as_json:
        print_json(
            {
                "findings": [asdict(finding) for finding in findings],
                "measurements": [asdict(cost) for cost in costs],
            }
        )
    else:
        lines = [*(map(str, findings) if verbose else brief(findings))]
        lines += cost_lines(results)
        if not (is_wrong or unavailable):
            lines.append(f"{names}: no findings")
        elif is_wrong and live:
            lines.append(f"{names}: {summary(findings)}")
        for line in lines:
            print(line)
    for refusal in unavailable:
        print(refusal, file=sys.stderr)
    if unavailable:
        return CANNOT_RUN
    return FINDINGS if is_wrong else FINE


def page(names: str, results: Sequence[Result], unavailable: Sequence[str]) -> str:
    """Return the results as an HTML page: counts, codes and columns, nothing of a person."""
    environment = Environment(
        loader=PackageLoader("toolkit"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    findings, indexes = findings_in(results), missing_indexes(results)
    return environment.get_template("check.html").render(
        names=names,
        created=datetime.now(UTC),
        unavailable=unavailable,
        summary=summary(findings),
        findings=findings,
        headings=HEADINGS,
        costs=cost_rows(measurements_in(results), indexes),
        indexes=indexes,
    )


def check_file(
    file: Path, *, is_live: bool, seconds: float = CHECK_SECONDS
) -> tuple[list[Result], CannotRunError | None]:
    """Return the results for a file, and the error if its source could not be checked."""
    of_file = list(check(file, is_live=is_live))
    if any(map(_is_error, of_file)):
        return [*ranked(of_file)], None
    results: list[Result] = [*of_file]
    error: CannotRunError | None = None
    if is_live:
        try:
            results += check_live(file, seconds)
            results += confirm(file, is_wrong=any(map(_is_error, results)))
        except CannotRunError as unavailable:
            error = unavailable
        except MappingError as problem:
            # The file was changed during the check.
            error = CannotRunError(str(problem))
    accepted: Sequence[KnownFinding] = ()
    # The file may not be readable again: it is a pipe, or was changed during the check.
    with suppress(MappingError):
        accepted = load_mapping(file, None).known
    settled = list(settle(findings_in(results), accepted))
    # An index that is accepted as missing is not suggested.
    remedies = {finding.remedy for finding in settled}
    suggested = [
        replace(cost, indexes=tuple(i for i in cost.indexes if i in remedies))
        for cost in measurements_in(results)
    ]
    return [*ranked(settled), *suggested], error


def _is_error(result: Result) -> bool:
    return isinstance(result, Finding) and result.severity is Severity.ERROR


# What a file says by itself


def check(file: Path, *, is_live: bool = False) -> Iterator[Finding]:
    """Yield what is wrong with a file by itself, without its source or environment.

    Open questions of the file are a note, and a warning with `is_live`.
    """
    try:
        mapping = load_mapping(file, None)
        # Its profile may be faulty, too.
        profile_of(mapping)
        severity = Severity.WARNING if is_live else Severity.NOTE
        yield from _clocks(mapping)
        yield from _left_out_by_the_clock(mapping)
        yield from _contradictions(mapping)
        yield from _left_open(file, severity)
        yield from _dangling(mapping) if is_live else ()
    except MappingError as error:
        yield from findings_of(error)


_QUOTED = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?!now')(?:[^']|'')*'|"[^"]*"|`[^`]*`""", re.DOTALL | re.I
)
"""Comments, texts and quoted names of a SELECT."""

_CLOCK = re.compile(
    r"""(?<![.\w:])(?:
      (?P<day>CURRENT_DATE\b|(?:CURDATE|UTC_DATE)\s*\(|DATE\s*\(\s*'now')
      |(?:CURRENT_TIMESTAMP|CURRENT_TIME|LOCALTIMESTAMP|LOCALTIME|SYSDATE|SYSTIMESTAMP)\b
      |(?:NOW|GETDATE|GETUTCDATE|SYSDATETIME|SYSUTCDATETIME|SYSDATETIMEOFFSET|CURTIME)\s*\(
      |(?:UTC_TIMESTAMP|UTC_TIME)\b|(?:CLOCK|STATEMENT|TRANSACTION)_TIMESTAMP\s*\(
      |(?:TIME|DATETIME|JULIANDAY|STRFTIME|UNIXEPOCH)\s*\([^()]*'now'
    )""",
    re.VERBOSE | re.IGNORECASE,
)


def _clocks(mapping: SourceMapping) -> Iterator[Finding]:
    """Report each function of a SELECT that reads the database's clock."""
    for section in mapping.sections:
        for rows, mark in selects(section):
            bare = _QUOTED.sub(" ", rows)
            # Each function once.
            matches = {match[0].upper(): match for match in _CLOCK.finditer(bare)}
            for match in matches.values():
                word = match[0].partition("(")[0].strip()
                bound = ":today" if match["day"] else ":now"
                text = (
                    f"{word} is the clock of the database, whose time zone depends on the"
                    f" session. Use {bound}, which the service sets"
                )
                element = f"{section.resource_type}.rows"
                place = _line_of(mark, match[0])
                yield Finding.at(place, text, element, severity=Severity.WARNING)


_IN_CONDITION = re.compile(
    r"\b(?:WHERE|HAVING|ON)\b(?:(?!\bSELECT\b).)*?(?<![\w:])(:now|:today)\b",
    re.DOTALL | re.IGNORECASE,
)


def _left_out_by_the_clock(mapping: SourceMapping) -> Iterator[Finding]:
    """Report each SELECT of resources with a condition on the current time."""
    for section in mapping.sections:
        if match := _IN_CONDITION.search(_QUOTED.sub(" ", section.rows)):
            text = (
                f"a condition compares with {match[1]}, so rows disappear as time passes: later"
                " pages omit them, and reading them fails with 404"
            )
            place = _line_of(section.mark, match[1])
            element = f"{section.resource_type}.rows"
            yield Finding.at(place, text, element, severity=Severity.NOTE)


_DIFFERENT = (
    ("visit_number", "patient_id"),
    ("start", "end"),
    ("end", "last_updated"),
)
"""Fields of a stay that no hospital has in one column."""


def _contradictions(mapping: SourceMapping) -> Iterator[Finding]:
    """Report two fields with the same column, and `covers: all` that cannot be true."""
    for section in mapping.sections:
        fields, kind = section.fields, section.resource_type
        for name, other_name in _DIFFERENT:
            field, other = fields.get(name), fields.get(other_name)
            if field and other and field.columns and field.columns == other.columns:
                text = (
                    f"{other_name} is read from the same column. Check which of the two it"
                    " contains"
                )
                element = element_of((kind.lower(), "fields", name))
                column = ", ".join(field.columns)
                yield Finding.at(field.mark, text, element, column, Severity.WARNING)
        changed = fields.get("last_updated")
        if changed and changed.covers_all and _BOUND.search(section.rows):
            text = (
                "covers: all is wrong: values that depend on :now or :today change without a"
                " new last_updated, so clients miss the change. Remove covers"
            )
            element = f"{kind}.meta.lastUpdated"
            column = ", ".join(changed.columns)
            yield Finding.at(changed.mark, text, element, column, Severity.WARNING)


def _dangling(mapping: SourceMapping) -> Iterator[Finding]:
    """Report the first reference to each type of resource that the file has no section for."""
    sections = mapping.sections
    lacking = {*ResourceType} - {section.resource_type for section in sections}
    for place in chain.from_iterable(map(places_of, sections)):
        kind = REFERS.get(place.slot.rpartition(".")[2])
        if kind and kind in lacking:
            lacking.remove(kind)
            text = (
                f"refers to the section '{kind.lower()}', which the file does not have"
            )
            column = ", ".join(place.field.columns)
            yield Finding.of_field(place, column, text, Severity.WARNING)


_BOUND = re.compile(r"(?<![\w:]):(?:now|today)\b")


def _line_of(mark: Mark, words: str) -> Mark:
    """Return the place of the first line at or after a mark with these words, else the mark."""
    lines = Path(mark.file).read_text(encoding="utf-8-sig").splitlines()
    for number, line in enumerate(lines[mark.line - 1 :], mark.line):
        if words in line:
            return Mark(mark.file, number, line.index(words) + 1)
    return mark


_EXAMPLE_SYSTEM = (
    "an example of an identifier (urn:oid:1.2.250.1.999…, example.org): "
    "write the hospital's own"
)


def _left_open(file: Path, severity: Severity) -> Iterator[Finding]:
    """Yield findings of whole files: for the marked lines, and for identifiers of examples."""
    text = file.read_text(encoding="utf-8-sig")
    marked = [number for number, _ in marked_lines(text)]
    if marked:
        questions = "questions are" if len(marked) > 1 else "question is"
        message = f"{len(marked)} {questions} marked '# ?': {lines_of(marked)}"
        yield Finding.of_file(str(file), message, severity, marked[0])
    with suppress(MappingError):
        for mark, lines in example_lines(file):
            message = f"{_EXAMPLE_SYSTEM}: {lines}"
            yield Finding.of_file(mark.file, message, Severity.WARNING, mark.line)


# The source


def check_live(file: Path, seconds: float = CHECK_SECONDS) -> Iterator[Result]:
    """Yield the findings of the checks of a source, each once, then the costs of searches.

    No check is started after so many seconds. Raises CannotRunError where the environment
    lacks a variable or the source is unavailable.
    """
    try:
        mapping = load_mapping(file, os.environ)
    except MappingError as error:
        raise CannotRunError(str(error)) from error
    results: list[Result] = []
    late: list[str] = []
    try:
        with open_sources(mapping) as sources:
            deadline = time.monotonic() + seconds
            for check in chain.from_iterable(s.checks(deadline) for s in sources):
                if time.monotonic() > deadline and not check.ends_in_time:
                    late.append(check.subject)
                    continue
                show_progress(f"{check.subject} …")
                results.extend(check.run())
        if late:
            text = (
                f"the check is not complete: it ended after {seconds:g} seconds (--seconds) and"
                f" did not examine {', '.join(late)}"
            )
            results.append(Finding.of_file(str(file), text, Severity.WARNING))
    except MappingError as error:
        results += findings_of(error)
    except AdapterError as error:
        text = f"{file}: the source cannot be checked: {error}"
        question = "check that it runs, and its address and account"
        raise CannotRunError(f"{text}; {question}") from error
    finally:
        show_progress("")
    for exposed in exposed_sources(mapping):
        finding = Finding.at(exposed.mark, WITHOUT_TLS, "source.url")
        remedy, severity = exposed.remedy, Severity.WARNING
        results.append(replace(finding, severity=severity, remedy=remedy))
    findings = dict.fromkeys(findings_in(results))
    yield from sorted(findings, key=lambda f: (f.file, f.line, f.column))
    yield from measurements_in(results)


_COUNT = re.compile(r"(?<![\w'])\d[\d,]*(?![\w'])")
_GROWN = 10
"""An entry does not accept a finding with at least so many times its number of rows."""


def settle(
    findings: Iterable[Finding], accepted: Sequence[KnownFinding]
) -> Iterator[Finding]:
    """Yield the findings; those that an entry of `known` in the file accepts become notes."""
    for finding in findings:
        entry = next((entry for entry in accepted if _fits(entry, finding)), None)
        if entry is None:
            yield finding
        elif _has_grown(entry, finding):
            yield replace(finding, text=f"{finding.text} (known: {entry.says})")
        else:
            text = f"{finding.text} (known: {entry.because})"
            note = replace(finding, text=text, severity=Severity.NOTE, remedy="")
            yield replace(note, topic="findings that the file accepts")


def _fits(entry: KnownFinding, finding: Finding) -> bool:
    """Whether an entry means a finding: its place, and its whole text but for the numbers.

    A code that is new beside an accepted one is a new finding. A finding about lines of a file,
    without an element, cannot be accepted.
    """
    if finding.line and not (finding.element or finding.source):
        return False
    both = f"{finding.element} ← {finding.source}"
    places = (finding.source, finding.element, both)
    if not any(_matches(entry.at, place) for place in places):
        return False
    return _matches(_without_counts(entry.says), _without_counts(finding.text))


def _without_counts(text: str) -> str:
    """Return a text in one line, with "#" for each number."""
    return _COUNT.sub("#", " ".join(text.split()))


def _has_grown(entry: KnownFinding, finding: Finding) -> bool:
    """Whether a finding counts many times as many rows as when it was accepted."""
    before = _first_count(entry.says.partition("…")[0])
    now = _first_count(finding.text)
    return 0 < _GROWN * before <= now


def _first_count(text: str) -> int:
    """Return the first number in a text, 0 for none."""
    match = _COUNT.search(text)
    return int(match[0].replace(",", "")) if match else 0


def _matches(words: str, text: str) -> bool:
    """Whether a text is these words, in which "…" stands for anything."""
    pattern = ".*".join(map(re.escape, words.split("…")))
    return re.fullmatch(pattern, text) is not None
