"""Findings that are known and meant to stay (`known` in a mapping): notes, with the reason."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from adapters.mapping.model import KnownFinding
from app.tools.report import Finding, Severity

_COUNT = re.compile(r"(?<![\w'])\d[\d,]*(?![\w'])")
_ANYTHING = "…"
_NO_MORE = "nothing says this there any more: take the entry away"


def settle(
    findings: Iterable[Finding], known: Sequence[KnownFinding], *, all_told: bool
) -> Iterator[Finding]:
    """Yield the findings, those that are known as notes.

    With `all_told` an entry that fits no finding is a note too: it may hide the next one.
    """
    fitted: set[KnownFinding] = set()
    for finding in findings:
        entry = next((of for of in known if _fits(of, finding)), None)
        if entry is None:
            yield finding
            continue
        fitted.add(entry)
        text = f"known, {entry.because}: {finding.text}"
        yield replace(finding, text=text, severity=Severity.NOTE, remedy="")
    for entry in known:
        if all_told and entry not in fitted:
            mark, note = entry.mark, Severity.NOTE
            place = mark.file, mark.line, mark.column
            yield Finding(*place, _NO_MORE, "known", entry.at, severity=note)


def _fits(entry: KnownFinding, finding: Finding) -> bool:
    """Tell whether an entry means a finding: its place and its text, whatever it counts.

    The whole text has to fit: a code that is new beside a known one is a new finding.
    """
    both = f"{finding.element} ← {finding.source}"
    places = (finding.source, finding.element, both)
    at = any(_matches(entry.at, place) for place in places)
    return at and _matches(_bare(entry.says), _bare(finding.text))


def _matches(said: str, text: str) -> bool:
    """Tell whether a text is what was said, "…" standing for anything."""
    pattern = ".*".join(map(re.escape, said.split(_ANYTHING)))
    return re.fullmatch(pattern, text) is not None


def _bare(text: str) -> str:
    return _COUNT.sub("#", " ".join(text.split()))
