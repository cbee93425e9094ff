"""OperationOutcome: what went wrong, or what a client should know (spec 2.6)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.schemas.datatypes import (
    ConstantField,
    EachField,
    Element,
    ElementSchema,
    filled,
)

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""What no text of FHIR may hold (STU3, `string`)."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing to tell a client; it never holds patient data, SQL or a host name.

    `severity` and `code` are STU3 codes (issue-severity, issue-type). `location` holds
    `http.<name>` of each parameter or header concerned.
    """

    severity: str
    code: str
    diagnostics: str | None = None
    location: tuple[str, ...] = ()


def _issue(issue: Issue) -> Element:
    return filled(
        {
            "severity": issue.severity,
            "code": issue.code,
            "diagnostics": _shown(issue.diagnostics or ""),
            # A name that a client made up may end in blanks, which no text of FHIR does.
            "location": [_shown(place).strip() for place in issue.location],
        }
    )


def _shown(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


@dataclass(frozen=True, slots=True)
class _Outcome:
    issues: Sequence[Issue]


class OutcomeSchema(ElementSchema):
    """An OperationOutcome, in the order of spec 2.6."""

    resource_type = ConstantField("OperationOutcome", data_key="resourceType")
    issue = EachField("issues", _issue)


_SCHEMA = OutcomeSchema()


def outcome_body(issues: Sequence[Issue]) -> Element:
    """Return an OperationOutcome with these issues; FHIR asks for at least one."""
    body: Element = _SCHEMA.dump(_Outcome(issues))
    return body
