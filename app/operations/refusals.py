"""What gunicorn refuses, answered in FHIR's words (decision 20).

The log line of a refusal never shows what was sent: it may name a patient.
"""

import logging
import secrets
import socket
from http import HTTPStatus

import orjson
from gunicorn import util
from gunicorn.http import errors

from app.errors import UNEXPECTED, Answer, IssueCode, answer_for_status
from app.operations.logs import REQUEST_ID_HEADER
from app.outcomes import CONTENT_TYPE
from app.schemas.outcome import Issue, outcome_body
from app.transport import SECURITY_HEADERS


class LateRequestError(errors.ParseException):
    """A request that did not arrive in time."""


class BrokenOffError(errors.ParseException):
    """A request whose rest never comes."""


REFUSALS: tuple[tuple[type[Exception], Answer], ...] = (
    # The application's own faults, though gunicorn derives them from a client's.
    (errors.InvalidResponseHeader, UNEXPECTED),
    (errors.InvalidResponseHeaderName, UNEXPECTED),
    (errors.ConfigurationProblem, UNEXPECTED),
    (errors.ForbiddenProxyRequest, answer_for_status(403)),
    (errors.LimitRequestLine, answer_for_status(414)),
    (errors.LimitRequestHeaders, answer_for_status(431)),
    (errors.ExpectationFailed, answer_for_status(417)),
    (errors.UnsupportedTransferCoding, answer_for_status(501)),
    (LateRequestError, answer_for_status(408)),
    (
        errors.ParseException,
        Answer(400, IssueCode.STRUCTURE, "This is not a well-formed HTTP request."),
    ),
)
"""What gunicorn raises and how it is answered; the first line that fits decides."""

_log = logging.getLogger(__name__)


def refuse(
    client: socket.socket, exc: Exception, seconds: float, *, is_head: bool
) -> None:
    """Answer an error raised before or around the application, within so many seconds.

    The answer to a HEAD request has no content (RFC 9110, 9.3.2).
    """
    answer, request_id = refusal_of(exc), secrets.token_hex(16)
    data = {"request_id": request_id, "status": answer.status}
    if answer is UNEXPECTED:
        _log.error("request failed", exc_info=exc, extra={"data": data})
    else:
        data["reason"] = type(exc).__name__
        _log.warning("request refused", extra={"data": data})
    try:
        client.settimeout(seconds)
        util.write(client, refusal_bytes(answer, request_id, is_head=is_head))
    except OSError:
        _log.debug("refusal not sent", extra={"data": data})


def refusal_of(error: Exception) -> Answer:
    """Return how an error raised before or around the application is answered."""
    fitting = (answer for kind, answer in REFUSALS if isinstance(error, kind))
    return next(fitting, UNEXPECTED)


def refusal_bytes(answer: Answer, request_id: str, *, is_head: bool) -> bytes:
    """Return a whole HTTP answer that closes the connection."""
    body = orjson.dumps(outcome_body([Issue("error", answer.code, answer.text)]))
    headers = (
        ("Date", util.http_date()),
        ("Connection", "close"),
        ("Content-Type", CONTENT_TYPE),
        ("Content-Length", str(len(body))),
        (REQUEST_ID_HEADER, request_id),
        *SECURITY_HEADERS,
        *answer.headers,
    )
    head = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    head += [f"{name}: {value}" for name, value in headers]
    told = "\r\n".join([*head, "", ""]).encode("ascii")
    return told if is_head else told + body
