"""Pages that cannot be shown: the status, what is wrong, and what to do next."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from werkzeug.exceptions import HTTPException

from app.call import request_id

ADVICE: Mapping[int, str] = {
    400: "The search uses something that is not offered here. Change the criterion that "
    "the message names.",
    401: "Your login has ended. Log in again.",
    403: "Your login lacks a scope. Ask the operator for it; repeating does not help.",
    404: "There is no such resource or page, or it belongs to somebody else: the address of a "
    "result works for you alone, for a limited time. Search again, or pass on what the tab "
    "Request shows.",
    410: "A page is stored for a limited time, and a removed stay is gone. Search again.",
    412: "A value cannot be read. Correct the criterion that the message names.",
    422: "The search is too wide. Add a patient, a range of dates or another criterion.",
    429: "You have sent more requests in this minute than the operator allows. Wait a moment.",
    500: "The page cannot be shown. The operator finds the reason by the request id below.",
    502: "The hospital system gave an answer that cannot be read. The operator finds the "
    "reason by the request id below.",
    503: "Something is busy or does not answer. Wait a few seconds and try again.",
}
"""What to do next, as in docs/clients.md, by status."""

_log = logging.getLogger(__name__)


class RefusedError(Exception):
    """The service has refused a call, with the text of its OperationOutcome."""

    def __init__(self, status: int, text: str, request_id: str) -> None:
        super().__init__(text)
        self.status, self.text, self.request_id = status, text, request_id


class LoginError(Exception):
    """A login that failed; the text is for the person."""


class AwayError(Exception):
    """Redis or the identity provider does not answer; the text is for the person."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What a page shows of an error; `text` is "" where nothing is known but the status."""

    status: int
    text: str
    advice: str
    request_id: str


def failure_of(error: Exception) -> Failure:
    """Return what a page shows of an error; log one that is not the person's."""
    status, text, id, advice = 500, "", request_id() or "", ""
    if isinstance(error, RefusedError):
        status, text, id = error.status, error.text, error.request_id
    elif isinstance(error, HTTPException):
        status = error.code or status
    elif isinstance(error, LoginError):
        status, text, advice = 403, str(error), "Log in again."
    else:
        if isinstance(error, AwayError):
            status, text = 503, str(error)
        # The log formatter writes the type and places of the error, never its message.
        _log.error("page failed", exc_info=error, extra={"data": {"status": status}})
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in ADVICE:
        advice = ADVICE[500]
    return Failure(status, text, advice or ADVICE.get(status, ""), id)
