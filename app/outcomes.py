"""Errors become answers: every status from 400 up is an OperationOutcome (spec 7).

`outcome_for` reads the table in `app.errors`; `register_errors` hangs it into Flask.
"""

import logging
from dataclasses import dataclass
from http import HTTPStatus

import orjson
from flask import Flask, Response
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from adapters.contract import AdapterError, NotAskableError, SourceDataError
from app.current import current_notes
from app.errors import (
    FAULTY_ROW,
    LIMITS,
    OUTCOMES,
    UNEXPECTED,
    Answer,
    Headers,
    ServiceError,
    answer_for_status,
)
from app.schemas.outcome import Issue, outcome_body

CONTENT_TYPE = "application/fhir+json;charset=UTF-8"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a client gets for an error."""

    status: int
    issues: tuple[Issue, ...]
    headers: Headers


def outcome_for(error: Exception) -> Outcome:
    """Return the answer to any error, by the tables of `app.errors` (decision 20)."""
    if isinstance(error, ServiceError):
        return _service_outcome(error)
    if isinstance(error, HTTPException):
        return _http_outcome(error)
    if isinstance(error, SourceDataError) and error.fault is not None:
        return _outcome(FAULTY_ROW)
    if isinstance(error, NotAskableError):
        return _limit_outcome(error)
    return _outcome(_row(type(error)))


def error_response(error: Exception) -> Response:
    """Return the whole answer to an error; the status line decides, never a page."""
    outcome = outcome_for(error)
    # What was refused before its parameters were read has none.
    is_pretty = ("_pretty", "true") in current_notes().get("pairs", ())
    option = orjson.OPT_INDENT_2 if is_pretty else 0
    body = orjson.dumps(outcome_body(outcome.issues), option=option)
    response = Response(body, outcome.status, content_type=CONTENT_TYPE)
    for name, value in outcome.headers:
        response.headers[name] = value
    return response


def register_errors(app: Flask) -> None:
    """Answer every error of `app` with an OperationOutcome, and log what we failed at."""
    app.register_error_handler(Exception, _answer)
    app.register_error_handler(HTTPException, _http_answer)


def _row(kind: type[Exception]) -> Answer:
    return next(
        (OUTCOMES[base] for base in kind.__mro__ if base in OUTCOMES), UNEXPECTED
    )


def _limit_outcome(error: NotAskableError) -> Outcome:
    row = _row(type(error))
    if error.limit is None:
        return _outcome(row)
    text = f"Parameter '{error.parameter}' {LIMITS[error.limit]}."
    return _outcome(row._replace(text=text), (f"http.{error.parameter}",))


def _service_outcome(error: ServiceError) -> Outcome:
    row = _row(type(error))
    row = row._replace(
        code=error.code or row.code,
        text=error.text,
        headers=_merged(row.headers, error.headers),
    )
    return _outcome(row, (error.location,) if error.location else ())


def _http_outcome(error: HTTPException) -> Outcome:
    # The framework's own description may quote the request: it is never passed on.
    row = answer_for_status(error.code or UNEXPECTED.status)
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        allowed = ", ".join(sorted(error.valid_methods))
        text = f"This method is not offered here; {allowed} are."
        row = row._replace(text=text, headers=(("Allow", allowed),))
    retry_after = getattr(error, "retry_after", None)
    if isinstance(retry_after, int):
        row = row._replace(headers=(("Retry-After", str(retry_after)),))
    return _outcome(row)


def _outcome(row: Answer, location: tuple[str, ...] = ()) -> Outcome:
    issue = Issue("error", row.code.value, row.text, location)
    return Outcome(row.status, (issue,), row.headers)


def _merged(first: Headers, second: Headers) -> Headers:
    return tuple({**dict(first), **dict(second)}.items())


def _http_answer(error: HTTPException) -> Response | HTTPException:
    # A redirect or a ready response that somebody raised is no error.
    if error.code is None or error.code < HTTPStatus.BAD_REQUEST:
        return error
    return _answer(error)


def _answer(error: Exception) -> Response:
    response = error_response(error)
    if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log_failure(error, response.status_code)
    return response


def _log_failure(error: Exception, status: int) -> None:
    data: dict[str, object] = {"status": status}
    if isinstance(error, ServiceError):
        data["text"] = error.text
    if isinstance(error, AdapterError) and error.source:
        data["source"] = error.source
    if isinstance(error, SourceDataError) and error.fault is not None:
        data["fault"] = error.fault._asdict()
    # The formatter writes type and place of `exc_info` and never its message: a
    # database driver quotes the values of the row it could not read.
    _log.error("request failed", exc_info=error, extra={"data": data})
