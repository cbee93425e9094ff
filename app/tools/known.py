"""Findings that are known and meant to stay (`known` in a mapping): notes, with the reason."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from adapters.mapping.model import KnownFinding
from app.tools.report import Finding, Severity

_COUNT = re.compile(r"(?<![\w'])\d[\d,]*(?![\w'])")
_ANYTHING = "…"
_NO_MORE = "nothing says this there any more: take the entry away"
_OF_FILE = (
    "what is said of the whole file (marks '# ?', systems that are nobody's) cannot be"
    " known: mend the lines that it names, and take the entry away"
)


def settle(
    findings: Iterable[Finding], known: Sequence[KnownFinding], *, all_told: bool
) -> Iterator[Finding]:
    """Yield the findings, those that are known as notes.

    With `all_told` an entry that fits no finding is a note too: it may hide the next one.
    """
    found = tuple(findings)
    chosen = _chosen(found, known)
    for number, finding in enumerate(found):
        entry = chosen.get(number)
        if entry is None:
            yield finding
            continue
        text = f"{finding.text} (known: {entry.because})"
        yield replace(finding, text=text, severity=Severity.NOTE, remedy="")
    for entry in known:
        if all_told and not any(_fits(entry, finding) for finding in found):
            mark, note = entry.mark, Severity.NOTE
            place = mark.file, mark.line, mark.column
            of_file = any(_is_of_file(one) and _says(entry, one) for one in found)
            text = _OF_FILE if of_file else _NO_MORE
            yield Finding(*place, text, "known", entry.at, severity=note)


def _chosen(
    findings: Sequence[Finding], known: Sequence[KnownFinding]
) -> dict[int, KnownFinding]:
    """Return the entry of each finding by its number: of several that fit, which one.

    The entry with the same counts comes first, then one that no other finding has.
    """
    chosen: dict[int, KnownFinding] = {}
    fitting = [[entry for entry in known if _fits(entry, one)] for one in findings]
    for number, entries in enumerate(fitting):
        text = _plain(findings[number].text)
        same = (entry for entry in entries if _matches(_plain(entry.says), text))
        if entry := next(same, None):
            chosen[number] = entry
    for number, entries in enumerate(fitting):
        if entries and number not in chosen:
            taken = set(chosen.values())
            free = (entry for entry in entries if entry not in taken)
            chosen[number] = next(free, entries[0])
    return chosen


def _fits(entry: KnownFinding, finding: Finding) -> bool:
    """Tell whether an entry means a finding: its place and its text, whatever it counts.

    The whole text has to fit: a code that is new beside a known one is a new finding.
    """
    both = f"{finding.element} ← {finding.source}"
    places = (finding.source, finding.element, both)
    at = any(_matches(entry.at, place) for place in places)
    return at and not _is_of_file(finding) and _says(entry, finding)


def _is_of_file(finding: Finding) -> bool:
    """Tell whether lines of a file are meant, and no element: what it leaves open."""
    return bool(finding.line) and not (finding.element or finding.source)


def _says(entry: KnownFinding, finding: Finding) -> bool:
    return _matches(_bare(entry.says), _bare(finding.text))


def _matches(said: str, text: str) -> bool:
    """Tell whether a text is what was said, "…" standing for anything."""
    pattern = ".*".join(map(re.escape, said.split(_ANYTHING)))
    return re.fullmatch(pattern, text) is not None


def _bare(text: str) -> str:
    return _COUNT.sub("#", _plain(text))


def _plain(text: str) -> str:
    return " ".join(text.split())
