"""OperationOutcome: what went wrong, or what a client should know (spec 2.6)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from marshmallow import fields

from app.fhir.resources import Element, ResourceSchema, filled

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


def write_issues(issues: Sequence[Issue]) -> list[Element]:
    """Return the issues of an outcome; FHIR requires at least one."""
    return [
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


class OperationOutcomeSchema(ResourceSchema):
    """An STU3 OperationOutcome of a sequence of issues (spec 2.6)."""

    resource_type = fields.Constant("OperationOutcome", data_key="resourceType")
    issue = fields.Function(write_issues)


def _printable(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


OUTCOME = OperationOutcomeSchema()
"""Writes the body of every error, and the messages of a page."""
