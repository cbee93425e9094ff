"""`encounters mapping check`: what is wrong with mapping files, all of it at once."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from adapters.mapping.load import ProfileGivenError, load_mapping
from adapters.mapping.model import KnownFinding, ResourceMapping, SourceMapping
from adapters.mapping.parameters import PARAMETERS
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import load_profile, profile_of
from app.tools.known import settle
from app.tools.live import check_live
from app.tools.report import (
    CANNOT_RUN,
    FINDINGS,
    CannotRunError,
    Finding,
    Severity,
    findings_of,
    report,
)
from app.tools.unanswered import left_open
from app.tools.unlike_days import unlike_days

_INDEX = "CREATE INDEX"


def run(options: argparse.Namespace) -> int:
    """Check each file and print what was found."""
    found: list[Finding] = []
    refused: list[CannotRunError] = []
    for file in options.file:
        own = list(check(file, is_live=options.live))
        is_whole = not any(map(_is_error, own))
        if options.live and is_whole:
            try:
                own += check_live(file)
            except CannotRunError as error:
                refused.append(error)
        known = _known(file) if is_whole else ()
        all_told = options.live and not refused
        own = list(settle(own, known, all_told=all_told))
        found += _ranked(own) if options.live else own
    names = ", ".join(map(str, options.file))
    fine = "" if refused else f"{names}: nothing to mend"
    status = report(found, as_json=options.json, fine=fine)
    if options.live and status == FINDINGS and not options.json:
        print(f"{names}: {_summary(found)}")
    for refusal in refused:
        print(refusal, file=sys.stderr)
    return CANNOT_RUN if refused else status


def _known(file: Path) -> tuple[KnownFinding, ...]:
    """Return what a whole file says is known; a profile says nothing of the kind."""
    try:
        return load_mapping(file, None).known
    except MappingError:
        # A profile, or what was read before is there no more: a pipe, a file saved meanwhile.
        return ()


def _summary(found: list[Finding]) -> str:
    counts = Counter(finding.severity for finding in found)
    told = [(counts[severity], severity) for severity in Severity if counts[severity]]
    return ", ".join(f"{n} {word}{'s' * (n > 1)}" for n, word in told)


def _ranked(findings: Iterable[Finding]) -> Iterator[Finding]:
    return _with_each_remedy_once(sorted(findings, key=_rank))


def _rank(finding: Finding) -> tuple[int, bool]:
    """Errors come first, then warnings and notes, those about an index last in each."""
    return list(Severity).index(finding.severity), finding.remedy.startswith(_INDEX)


def _with_each_remedy_once(findings: Iterable[Finding]) -> Iterator[Finding]:
    told: set[str] = set()
    for finding in findings:
        is_again = finding.remedy.startswith(_INDEX) and finding.remedy in told
        told.add(finding.remedy)
        # The text stays as it is: it may be copied into `known`.
        name = finding.remedy.removeprefix(_INDEX).split()[:1]
        again = f"the same index as above: {' '.join(name)}"
        yield replace(finding, remedy=again) if is_again else finding


def _is_error(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR


def check(file: Path, *, is_live: bool = False) -> Iterator[Finding]:
    """Yield what is wrong with a file by itself, without its source or environment.

    What a file leaves open is a note, and a warning where it is to be held against its source.
    """
    try:
        mapping = load_mapping(file, None)
        yield from _not_offered(mapping)
        doubt = Severity.WARNING if is_live else Severity.NOTE
        yield from (replace(each, severity=doubt) for each in unlike_days(mapping))
        yield from left_open(file, doubt)
    except ProfileGivenError as error:
        yield from _of_profile(file, error)
    except MappingError as error:
        yield from findings_of(error)


def _of_profile(file: Path, given: ProfileGivenError) -> Iterator[Finding]:
    """Yield that a file is a profile, and what is wrong with it as one."""
    for finding in findings_of(given):
        yield replace(finding, severity=Severity.NOTE)
    try:
        load_profile(file.name, file.parent)
    except MappingError as error:
        yield from findings_of(error)


def _not_offered(mapping: SourceMapping) -> Iterator[Finding]:
    """Yield a note for each parameter of the profile that the file does not offer."""
    profile = profile_of(mapping)
    for kind, wanted in profile.resources.items():
        sections = [s for s in mapping.sections if s.resource_type is kind]
        listed = {name for section in sections for name in section.parameters}
        for name in PARAMETERS[kind] if sections else ():
            if name in wanted.parameters and name not in listed:
                yield _note(sections[0], name, profile.name)


def _note(section: ResourceMapping, parameter: str, profile: str) -> Finding:
    mark = section.mark
    return Finding(
        mark.file,
        mark.line,
        mark.column,
        f"profile {profile} has the parameter '{parameter}', which is not under search "
        "here: a client that sends it gets 400",
        element=section.resource_type,
        severity=Severity.NOTE,
    )
