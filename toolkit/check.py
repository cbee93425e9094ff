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
    """Return the results for a file, and why its source could not be checked."""
    of_file, error = list(check(file, is_live=is_live)), None
    if any(map(_is_error, of_file)):
        return [*ranked(of_file)], None
    results: list[Result] = [*of_file]
    if is_live:
        try:
            results += check_live(file, seconds)
            results += confirm(file, is_wrong=any(map(_is_error, results)))
        except CannotRunError as unavailable:
            error = unavailable
        except MappingError as changed:
            # Somebody saved the file meanwhile.
            error = CannotRunError(str(changed))
    accepted: Sequence[KnownFinding] = ()
    # A profile, or what was read before may be gone: a pipe, a file saved meanwhile.
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

    What a file leaves open is a note, and a warning where it is held against its source.
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
    """Yield each clock of the database in a SELECT: its zone is that of a session."""
    for section in mapping.sections:
        for rows, mark in selects(section):
            bare = _QUOTED.sub(" ", rows)
            for match in {m[0].upper(): m for m in _CLOCK.finditer(bare)}.values():
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
    """Yield each SELECT of resources whose rows depend on the current time."""
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
    """Yield what a section says of a field that cannot be so."""
    for section in mapping.sections:
        fields, element = section.fields, section.resource_type
        for name, other in _DIFFERENT:
            field, same = fields.get(name), fields.get(other)
            if field and same and field.columns and field.columns == same.columns:
                column = ", ".join(field.columns)
                text = f"{other} is read from the same column. Check which of the two it contains"
                place = element_of((element.lower(), "fields", name))
                yield Finding.at(field.mark, text, place, column, Severity.WARNING)
        changed = fields.get("last_updated")
        if changed and changed.covers_all and _BOUND.search(section.rows):
            text = (
                "covers: all is wrong: values that depend on :now or :today change without a"
                " new last_updated, so clients miss the change. Remove covers"
            )
            column, place = ", ".join(changed.columns), f"{element}.meta.lastUpdated"
            yield Finding.at(changed.mark, text, place, column, Severity.WARNING)


def _dangling(mapping: SourceMapping) -> Iterator[Finding]:
    """Yield the first reference to each type of resource that the file has no section for."""
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
    """Return the first place at or after a mark that has these words."""
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
    several = "questions are" if len(marked) > 1 else "question is"
    if marked:
        message = f"{len(marked)} {several} marked '# ?': {lines_of(marked)}"
        yield Finding.of_file(str(file), message, severity, marked[0])
    with suppress(MappingError):
        for mark, lines in example_lines(file):
            message = f"{_EXAMPLE_SYSTEM}: {lines}"
            yield Finding.of_file(mark.file, message, Severity.WARNING, mark.line)


# The source


def check_live(file: Path, seconds: float = CHECK_SECONDS) -> Iterator[Result]:
    """Yield what is wrong with a file for its source, each thing once, then its searches.

    Raises CannotRunError where the environment lacks a variable or the source is away.
    """
    try:
        mapping = load_mapping(file, os.environ)
    except MappingError as error:
        raise CannotRunError(str(error)) from error
    results, late = list[Result](), list[str]()
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
"""A finding that counts so many times as much as its entry is not accepted any more."""


def settle(
    findings: Iterable[Finding], accepted: Sequence[KnownFinding]
) -> Iterator[Finding]:
    """Yield the findings, those that are accepted as notes."""
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
    """Tell whether an entry means a finding: its place and its text, whatever it counts.

    The whole text has to fit: a code that is new beside an accepted one is a new finding.
    What is said of lines of a file, without an element, cannot be accepted.
    """
    both = f"{finding.element} ← {finding.source}"
    places = (finding.source, finding.element, both)
    is_of_file = bool(finding.line) and not (finding.element or finding.source)
    words, text = (
        _COUNT.sub("#", " ".join(text.split())) for text in (entry.says, finding.text)
    )
    is_here = any(_matches(entry.at, place) for place in places)
    return is_here and not is_of_file and _matches(words, text)


def _has_grown(entry: KnownFinding, finding: Finding) -> bool:
    """Tell whether a finding counts many times as many rows as when it was accepted."""
    counts = map(_COUNT.search, (entry.says.partition("…")[0], finding.text))
    before, now = (
        int(numbers[0].replace(",", "")) if numbers else 0 for numbers in counts
    )
    return 0 < _GROWN * before <= now


def _matches(words: str, text: str) -> bool:
    """Tell whether a text is these words, "…" standing for anything."""
    pattern = ".*".join(map(re.escape, words.split("…")))
    return re.fullmatch(pattern, text) is not None
