"""Errors as responses: every one is an OperationOutcome, by the tables in `app.errors`.

Spec 7, decision 20. Those from status 500 up are logged, without their message.
"""

import logging
from http import HTTPStatus

import orjson
from flask import Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from adapters.contract import AdapterError, RowFault
from app.call import CALL, Call, Stage
from app.errors import (
    UNEXPECTED,
    Answer,
    ServiceError,
    answer_for_error,
    answer_for_status,
)
from app.fhir.outcome import OUTCOME, Issue

CONTENT_TYPE = "application/fhir+json;charset=UTF-8"

_log = logging.getLogger(__name__)


def handle_error(error: Exception) -> Response | HTTPException:
    """Answer an error of a view or of the framework."""
    if isinstance(error, HTTPException) and (error.code or 0) < HTTPStatus.BAD_REQUEST:
        # A redirect or a ready response is no error.
        return error
    response = error_response(error, request.environ[CALL])
    if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log_failure(error, response.status_code)
    return response


def error_response(error: Exception, call: Call) -> Response:
    """Return the response to any error."""
    call.enter(Stage.WRITE)
    answer = outcome_for(error)
    issue = Issue("error", answer.code, answer.text, answer.location)
    # A request that is refused before its parameters are read has none.
    option = orjson.OPT_INDENT_2 if call.is_pretty else 0
    body = orjson.dumps(OUTCOME.dump((issue,)), option=option)
    return Response(body, answer.status, answer.headers, content_type=CONTENT_TYPE)


def outcome_for(error: Exception) -> Answer:
    """Return how any error is answered, by the tables of `app.errors`."""
    if isinstance(error, HTTPException):
        return _http_answer(error)
    return answer_for_error(error)


def _http_answer(error: HTTPException) -> Answer:
    # The framework's own description may quote the request: it is never passed on.
    answer = answer_for_status(error.code or UNEXPECTED.status)
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        allowed = ", ".join(sorted(error.valid_methods))
        text = f"This method is not supported here; use {allowed}."
        answer = answer._replace(text=text, headers=(("Allow", allowed),))
    retry_after = getattr(error, "retry_after", None)
    if isinstance(retry_after, int):
        answer = answer._replace(headers=(("Retry-After", str(retry_after)),))
    return answer


def log_failure(error: Exception, status: int) -> None:
    """Log an error that is the service's own, without its message."""
    fault = getattr(error, "fault", None)
    details = {
        "text": error.text if isinstance(error, ServiceError) else None,
        "source": error.source if isinstance(error, AdapterError) else None,
        "reason": error.reason if isinstance(error, AdapterError) else None,
        "fault": fault.described() if isinstance(fault, RowFault) else None,
    }
    data = {"status": status, **{name: text for name, text in details.items() if text}}
    # The log formatter writes the type and places of `exc_info`, never the message: a
    # database driver quotes values of the row that it could not read.
    _log.error("request failed", exc_info=error, extra={"data": data})
