"""What can go wrong, named by what the caller can do about it.

The texts name host, status and issue code. They quote no value, no answer and no token, as
those may hold patient data; the issues of an answer are in `issues`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Issue:
    """An issue of an OperationOutcome.

    Decide by `code`. `diagnostics` is for people, and may quote a value of the request.
    """

    severity: str
    code: str
    diagnostics: str = ""
    location: tuple[str, ...] = ()


def issues_of(outcome: Mapping[str, Any]) -> tuple[Issue, ...]:
    """Return the issues of an OperationOutcome, none if it is another resource."""
    if outcome.get("resourceType") != "OperationOutcome":
        return ()
    return tuple(
        Issue(
            severity=issue["severity"],
            code=issue["code"],
            diagnostics=issue.get("diagnostics", ""),
            location=tuple(issue.get("location", ())),
        )
        for issue in outcome.get("issue", ())
    )


class EncountersError(Exception):
    """The base of all errors of this package."""


class Refused(EncountersError):
    """The request, the credentials or the answer is wrong: repeating does not help.

    Has the host, the status of the answer (None if it is not the status that is wrong), the
    `X-Request-Id` to report to the operator, and the issues of the answer.
    """

    def __init__(
        self,
        host: str,
        reason: str = "",
        *,
        status: int | None = None,
        request_id: str = "",
        issues: Sequence[Issue] = (),
    ) -> None:
        self.host = host
        self.status = status
        self.request_id = request_id
        self.issues = tuple(issues)
        parts = [reason] if reason else []
        if status is not None:
            parts.append(f"status {status}")
        for issue in self.issues:
            parts.append(" ".join((issue.code, *issue.location)))
        if request_id:
            parts.append(f"X-Request-Id {request_id}")
        super().__init__(f"{host}: {', '.join(parts)}")


class NotFound(Refused):
    """There is no such resource: 404, or 410 if it was removed."""


class Unavailable(EncountersError):
    """The service or the identity provider is away, and repeating did not help: try later."""


class ResultExpired(EncountersError):
    """The pages of this search are no longer stored, and the result so far is incomplete.

    Search again, and drop what the first search returned: a second search begins anew.
    """
