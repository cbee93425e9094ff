"""OperationOutcome: what went wrong, or what a client should know (spec 2.6)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.fhir.resources import Element, filled

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Characters that no FHIR string may hold (STU3, `string`)."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One message for a client; it never holds patient data, SQL or a host name.

    `severity` and `code` are STU3 codes (issue-severity, issue-type). `location` holds
    `http.<name>` of each parameter or header concerned.
    """

    severity: str
    code: str
    diagnostics: str | None = None
    location: tuple[str, ...] = ()


def outcome_body(issues: Sequence[Issue]) -> Element:
    """Return an OperationOutcome with these issues; FHIR requires at least one."""
    written = [
        filled(
            {
                "severity": issue.severity,
                "code": issue.code,
                "diagnostics": _printable(issue.diagnostics or ""),
                # A client's own parameter name may end in blanks, a FHIR string may not.
                "location": [_printable(place).strip() for place in issue.location],
            }
        )
        for issue in issues
    ]
    return {"resourceType": "OperationOutcome", "issue": written}


def _printable(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
