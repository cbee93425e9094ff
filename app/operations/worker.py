"""gunicorn's worker, taught to refuse in FHIR's words (decision 20).

What gunicorn refuses never reaches the application: a request line that is too long, a
header that cannot be read. Here such an answer becomes an OperationOutcome, and the log
line loses the bytes that were sent, which may name a patient.
"""

import logging
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any, TypeAlias

import orjson
from gunicorn import util
from gunicorn.http import errors
from gunicorn.workers.gthread import ThreadWorker
from werkzeug.exceptions import BadRequest, ClientDisconnected

from app.errors import UNEXPECTED, Answer, IssueCode, answer_for_status
from app.operations.logs import REQUEST_ID_HEADER
from app.outcomes import CONTENT_TYPE
from app.schemas.outcome import Issue, outcome_body
from app.transport import SECURITY_HEADERS

Application: TypeAlias = Callable[[dict[str, Any], Any], Iterable[bytes]]

SEND_SECONDS = 5.0

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
    (
        errors.ParseException,
        Answer(400, IssueCode.STRUCTURE, "This is not a well-formed HTTP request."),
    ),
)
"""What gunicorn raises and how it is answered; the first line that fits decides."""

_log = logging.getLogger(__name__)


class OutcomeWorker(ThreadWorker):
    """A gthread worker whose own errors are OperationOutcomes."""

    def load_wsgi(self) -> None:
        """Load the application, the bodies of its requests guarded."""
        super().load_wsgi()
        self.wsgi: Application = guard_bodies(self.wsgi)

    def set_accept_enabled(self, enabled: bool) -> None:
        """Take connections or not; a worker that stops refuses them at once."""
        super().set_accept_enabled(enabled)
        if not self.alive:
            for listener in self.sockets:
                listener.close()

    def handle_error(
        self, _req: object, client: socket.socket, _addr: object, exc: Exception
    ) -> None:
        """Answer what the application could not; the log never shows what was sent."""
        answer, request_id = refusal_of(exc), secrets.token_hex(16)
        data = {"request_id": request_id, "status": answer.status}
        if answer is UNEXPECTED:
            _log.error("request failed", exc_info=exc, extra={"data": data})
        else:
            data["reason"] = type(exc).__name__
            _log.warning("request refused", extra={"data": data})
        try:
            client.settimeout(SEND_SECONDS)
            util.write(client, refusal_bytes(answer, request_id))
        except OSError:
            _log.debug("refusal not sent", extra={"data": data})


def refusal_of(error: Exception) -> Answer:
    """Return how an error raised before or around the application is answered."""
    fitting = (answer for kind, answer in REFUSALS if isinstance(error, kind))
    return next(fitting, UNEXPECTED)


def refusal_bytes(answer: Answer, request_id: str) -> bytes:
    """Return a whole HTTP answer that closes the connection."""
    body = orjson.dumps(outcome_body([Issue("error", answer.code, answer.text)]))
    headers = (
        ("Connection", "close"),
        ("Content-Type", CONTENT_TYPE),
        ("Content-Length", str(len(body))),
        (REQUEST_ID_HEADER, request_id),
        *SECURITY_HEADERS,
        *answer.headers,
    )
    head = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    head += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*head, "", ""]).encode("ascii") + body


def guard_bodies(application: Application) -> Application:
    """Return the application; a body that gunicorn cannot read is a 400 to it.

    A broken chunk comes to light while the application reads the body, as an error of
    gunicorn's that the framework would take for a bug and answer with 500.
    """

    def guarded(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ["wsgi.input"] = _GuardedBody(environ["wsgi.input"])
        return application(environ, start_response)

    return guarded


class _GuardedBody:
    """A request body that fails in the framework's words."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def read(self, size: int | None = None) -> bytes:
        return self._guarded(self._body.read, size)

    def readline(self, size: int | None = None) -> bytes:
        return self._guarded(self._body.readline, size)

    def readlines(self, _hint: int | None = None) -> list[bytes]:
        return list(self)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")

    @staticmethod
    def _guarded(read: Callable[[int | None], bytes], size: int | None) -> bytes:
        try:
            return read(size)
        except errors.ParseException as error:
            raise BadRequest from error
        except OSError as error:
            raise ClientDisconnected from error
