"""Errors as a client sees them: the exceptions of the web side and the table of outcomes.

`OUTCOMES` has the status, issue code, headers and text of each exception, of the adapters'
too; `STATUSES` has them for a bare HTTP status of the framework. `app.middleware` turns
both into responses.
"""

from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple, TypeAlias

from adapters import contract

ResponseHeaders: TypeAlias = tuple[tuple[str, str], ...]

REALM = "encounters"
CHALLENGE: ResponseHeaders = (("WWW-Authenticate", f'Bearer realm="{REALM}"'),)
RETRY_AFTER_SECONDS = 5


class IssueCode(StrEnum):
    """The STU3 issue types that this service answers with."""

    INVALID = "invalid"
    STRUCTURE = "structure"
    REQUIRED = "required"
    VALUE = "value"
    CODE_INVALID = "code-invalid"
    SECURITY = "security"
    LOGIN = "login"
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    FORBIDDEN = "forbidden"
    PROCESSING = "processing"
    NOT_SUPPORTED = "not-supported"
    NOT_FOUND = "not-found"
    TOO_LONG = "too-long"
    TOO_COSTLY = "too-costly"
    BUSINESS_RULE = "business-rule"
    CONFLICT = "conflict"
    INCOMPLETE = "incomplete"
    TRANSIENT = "transient"
    EXCEPTION = "exception"
    TIMEOUT = "timeout"
    THROTTLED = "throttled"


class ServiceError(Exception):
    """A request that is refused, in words for the client.

    `text` holds no patient data, no SQL, no host name. `location` is `http.<name>` of
    the parameter or header concerned. `code` takes the place of the table's issue code;
    `headers` are added to the table's, and win where both have one.
    """

    def __init__(
        self,
        text: str,
        location: str | None = None,
        *,
        code: IssueCode | None = None,
        headers: ResponseHeaders = (),
    ) -> None:
        super().__init__(text)
        self.text = text
        self.location = location
        self.code = code
        self.headers = headers


class BadRequestError(ServiceError):
    """The request is malformed, or needs what this deployment does not offer."""


class UnauthenticatedError(ServiceError):
    """The request carries no token, or one that is not valid here."""


class InsufficientScopeError(ServiceError):
    """The token lacks a scope (spec 5.3)."""


class SecurityError(ServiceError):
    """The request came over plain HTTP (decision 24)."""


class UnknownResourceError(ServiceError):
    """There is no such resource, resource type or page."""


class NotAcceptableError(ServiceError):
    """The client accepts no format that is served."""


class GonePageError(ServiceError):
    """The page existed and is no longer stored (decision 14)."""

    def __init__(
        self, text: str = "This page is no longer stored: search again."
    ) -> None:
        super().__init__(text)


class BadValueError(ServiceError):
    """A search value cannot be taken (decision 3)."""


class UnsupportedMediaTypeError(ServiceError):
    """The body is of a kind that is not read (decision 1)."""


class BusinessRuleError(ServiceError):
    """A rule of the deployment forbids the search (decision 9)."""


class UnavailableError(ServiceError):
    """Something that the answer needs is away; `retry_after` is in seconds."""

    def __init__(self, text: str, *, retry_after: int = RETRY_AFTER_SECONDS) -> None:
        super().__init__(text, headers=(("Retry-After", str(retry_after)),))


class Answer(NamedTuple):
    """How an error is answered; without a `text` the client reads the error's own."""

    status: int
    code: IssueCode
    text: str | None = None
    headers: ResponseHeaders = ()
    location: tuple[str, ...] = ()


_RETRY: ResponseHeaders = (("Retry-After", str(RETRY_AFTER_SECONDS)),)
_I = IssueCode

OUTCOMES: Mapping[type[Exception], Answer] = {
    BadRequestError: Answer(400, _I.INVALID),
    UnauthenticatedError: Answer(401, _I.LOGIN, headers=CHALLENGE),
    InsufficientScopeError: Answer(403, _I.PROCESSING, headers=CHALLENGE),
    SecurityError: Answer(403, _I.SECURITY, headers=CHALLENGE),
    UnknownResourceError: Answer(404, _I.NOT_FOUND),
    NotAcceptableError: Answer(406, _I.NOT_SUPPORTED),
    GonePageError: Answer(410, _I.NOT_FOUND),
    BadValueError: Answer(412, _I.VALUE),
    UnsupportedMediaTypeError: Answer(415, _I.NOT_SUPPORTED),
    BusinessRuleError: Answer(422, _I.BUSINESS_RULE),
    UnavailableError: Answer(503, _I.TRANSIENT, headers=_RETRY),
    contract.NotFoundError: Answer(404, _I.NOT_FOUND, "There is no such resource."),
    contract.GoneError: Answer(410, _I.NOT_FOUND, "This resource has been removed."),
    contract.TooCostlyError: Answer(
        422,
        _I.TOO_COSTLY,
        "This search is too wide to be answered in time. Narrow it, for example by "
        "patient or by a range of dates.",
    ),
    contract.NotAskableError: Answer(
        412, _I.VALUE, "The hospital system cannot compare such a value."
    ),
    contract.SourceDataError: Answer(
        502, _I.EXCEPTION, "The hospital system returned an invalid answer."
    ),
    contract.SourceChangedError: Answer(
        502,
        _I.TRANSIENT,
        "The hospital system returned contradictory answers: its data may "
        "have changed in between. Try again.",
    ),
    contract.SourceBusyError: Answer(
        503,
        _I.TRANSIENT,
        "The service is busy: every connection to the hospital system is in use. Try "
        "again later.",
        _RETRY,
    ),
    contract.SourceUnavailableError: Answer(
        503,
        _I.TRANSIENT,
        "The hospital system does not answer at the moment. Try again later.",
        _RETRY,
    ),
}

LIMITS: Mapping[contract.Limit, str] = {
    contract.Limit.ONE_VALUE: "accepts one value in a search here",
    contract.Limit.MOST: "accepts fewer values in a search here",
    contract.Limit.ONCE: "may occur once in a search here",
    contract.Limit.DAY: "compares whole days here: send days, without a time",
    contract.Limit.OTHER_DAYS: "compares whole days of another time zone here, "
    "which differ from those of this service",
    contract.Limit.MINUTE: "compares whole minutes here: send no seconds",
    contract.Limit.SECOND: "compares whole seconds here",
    contract.Limit.PREFIX: "cannot be compared with this prefix here",
    contract.Limit.CODE: "cannot be searched by this code here",
    contract.Limit.SYSTEM: "cannot be searched by this system here: send the value alone",
}
"""What a client reads of a NotAskableError, behind the name of the parameter."""

FAULTY_ROW = Answer(
    500,
    _I.EXCEPTION,
    "The hospital's record of this resource breaks a rule of the mapping and cannot be "
    "shown. The operator finds the reason in the log under this answer's X-Request-Id.",
)
"""A SourceDataError that names the fault of one row (decision 16)."""

UNEXPECTED = Answer(
    500,
    _I.EXCEPTION,
    "The service failed to answer. The operator finds the reason in the log under this "
    "answer's X-Request-Id.",
)
"""Any error that no row of the table foresees."""

STATUSES: Mapping[int, Answer] = {
    answer.status: answer
    for answer in (
        Answer(400, _I.INVALID, "The request is malformed."),
        Answer(401, _I.LOGIN, "An access token is required.", CHALLENGE),
        Answer(403, _I.FORBIDDEN, "This is not allowed.", CHALLENGE),
        Answer(
            404,
            _I.NOT_FOUND,
            "Nothing is served at this address. /fhir/v3/metadata lists what exists; clients "
            "start with docs/call/index.md of the documentation.",
        ),
        Answer(405, _I.NOT_SUPPORTED, "This method is not supported here."),
        Answer(406, _I.NOT_SUPPORTED, "Only JSON is served."),
        Answer(408, _I.TIMEOUT, "The request took too long to arrive."),
        Answer(409, _I.CONFLICT, "The request conflicts with another one."),
        Answer(410, _I.NOT_FOUND, "This resource has been removed."),
        Answer(412, _I.CONFLICT, "A precondition of the request does not hold."),
        Answer(413, _I.TOO_LONG, "The body is too long."),
        Answer(414, _I.TOO_LONG, "The address is too long."),
        Answer(415, _I.NOT_SUPPORTED, "This content type is not supported."),
        Answer(417, _I.INVALID, "The header Expect is not supported."),
        Answer(422, _I.BUSINESS_RULE, "The request breaks a rule."),
        # The rate limit gives its own seconds (app.middleware).
        Answer(429, _I.THROTTLED, "Requests arrive too quickly.", _RETRY),
        Answer(431, _I.TOO_LONG, "The header fields are too long."),
        Answer(501, _I.NOT_SUPPORTED, "This is not implemented."),
        Answer(502, _I.TRANSIENT, "A system behind the service failed."),
        Answer(503, _I.TRANSIENT, "Try again later.", _RETRY),
        Answer(504, _I.TIMEOUT, "A system behind the service took too long."),
    )
}


def answer_for_status(status: int) -> Answer:
    """Return how a bare HTTP status from 400 up is answered."""
    if status in STATUSES:
        return STATUSES[status]
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return STATUSES[400]._replace(status=status)
    return UNEXPECTED._replace(status=status)


def answer_for_error(error: Exception) -> Answer:
    """Return how an exception of ours, or an unexpected one, is answered."""
    if isinstance(error, contract.SourceDataError) and error.fault is not None:
        return FAULTY_ROW
    bases = type(error).__mro__
    answer = next((OUTCOMES[base] for base in bases if base in OUTCOMES), UNEXPECTED)
    if isinstance(error, contract.NotAskableError) and error.limit is not None:
        text = f"Parameter '{error.parameter}' {LIMITS[error.limit]}."
        return answer._replace(text=text, location=(f"http.{error.parameter}",))
    if isinstance(error, ServiceError):
        return answer._replace(
            code=error.code or answer.code,
            text=error.text,
            headers=tuple({**dict(answer.headers), **dict(error.headers)}.items()),
            location=(error.location,) if error.location else (),
        )
    return answer
