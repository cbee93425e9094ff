"""Log lines: one JSON object each, to stderr, with the request's id and no patient data.

No patient data by construction: an exception is written as its type and the places it
went through, never as its message; a line of another library is written as its
template, never with its arguments; a request is written as the template of its route,
never as its path or query. What our own code adds goes into `extra={"data": {...}}`.
"""

import json
import logging
import logging.config
import re
import secrets
import traceback
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson
from flask import Flask, Response

from app.current import current_notes, current_request, sent
from app.operations.phases import Phase, current_watch, start_watch, stop_watch

REQUEST_ID_HEADER = "X-Request-Id"

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that are named; any other may hold anything."""

_OURS = ("app.", "adapters.", "demo.")
_SERVER_SAYS = (
    "Starting gunicorn",
    "Listening at",
    "Using worker",
    "Booting worker",
    "Connection in use",
    "Invalid address",
    # Of our own address, as a tuple: drivers have such a sentence for others.
    "connection to ('",
    "Can't connect to",
    "Hang up",
    "Handling signal",
    "Shutting down",
    "Worker exiting",
    "Worker (pid:%s) was sent",
    "Worker (pid:%s) exited",
    "WORKER TIMEOUT",
)
"""What gunicorn tells of itself: addresses of ours, signals and processes, no request."""
_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PLACES = 12
_SPENT = {phase: f"{phase}_ms" for phase in Phase}

_request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
_access = logging.getLogger("app.access")


def request_id() -> str | None:
    """Return the id of the request under way in this context, None outside of one."""
    return _request_id.get()


def logging_config(level: str) -> dict[str, Any]:
    """Return a `logging.config` dictionary, also of use to gunicorn's `logconfig_dict`.

    `level` is for our own lines; of other libraries only warnings are written, and of
    the server what it has to say about its workers.
    """
    ours = {"level": level.upper()}
    server = {"level": "INFO", "handlers": [], "propagate": True}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonFormatter}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "json",
                "stream": "ext://sys.stderr",
            }
        },
        "root": {"level": "WARNING", "handlers": ["stderr"]},
        "loggers": {
            **{prefix.rstrip("."): ours for prefix in _OURS},
            "gunicorn.error": server,
            # What it says of each batch is said once by `app.operations.tracing`.
            "opentelemetry": {"level": "CRITICAL"},
        },
    }


def configure_logs(level: str) -> None:
    """Send every log line of the process to stderr as JSON, ours from `level` up."""
    logging.config.dictConfig(logging_config(level))


class JsonFormatter(logging.Formatter):
    """A log record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "time": _time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _event(record),
        }
        if (current := request_id()) is not None:
            line["request_id"] = current
        if isinstance(data := getattr(record, "data", None), dict):
            line = {**data, **line}
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = describe_error(record.exc_info[1])
        return write_line(line)


def describe_error(error: BaseException) -> dict[str, object]:
    """Return the type of an error, where it passed, and what it came from; no message."""
    frames = traceback.walk_tb(error.__traceback__)
    places = [
        f"{frame.f_globals.get('__name__')}:{frame.f_code.co_name}:{line}"
        for frame, line in frames
    ]
    described: dict[str, object] = {
        "type": _type_name(error),
        "places": places[-_PLACES:],
    }
    hidden = error.__suppress_context__
    cause = error.__cause__ or (None if hidden else error.__context__)
    if cause is not None:
        described["cause"] = _type_name(cause)
    return described


def register_request_log(app: Flask) -> None:
    """Give every request an id and every answer that id and one access line.

    To be registered before everything else, so that the id is there for all of it.
    A view that knows its client leaves it in `flask.g.client`; the line names its id.
    """
    app.before_request(_begin)
    app.after_request(_end)
    app.teardown_request(_forget)


def _begin() -> None:
    given = sent("HTTP_X_REQUEST_ID") or ""
    known = _WELL_FORMED.fullmatch(given)
    _request_id.set(given if known else secrets.token_hex(16))
    start_watch()


def _end(response: Response) -> Response:
    current = request_id()
    if current is not None:
        response.headers.add(REQUEST_ID_HEADER, current)
    if _access.isEnabledFor(logging.INFO):
        _access.handle(_AccessRecord(_access_data(response)))
    return response


class _AccessRecord(logging.LogRecord):
    """What `_access.info` would make, without its search for who called."""

    def __init__(self, data: Mapping[str, object]) -> None:
        super().__init__(_access.name, logging.INFO, __file__, 0, "request", (), None)
        self.data = data


def _access_data(response: Response) -> dict[str, object]:
    asked, watch = current_request(), current_watch()
    client = current_notes().get("client")
    spent = {} if watch is None else watch.spent()
    return {
        "method": asked.method if asked.method in METHODS else "other",
        "route": asked.url_rule.rule if asked.url_rule else None,
        "status": response.status_code,
        "duration_ms": round(sum(spent.values()) * 1000, 1),
        **{_SPENT[phase]: round(took * 1000, 1) for phase, took in spent.items()},
        "client": None if client is None else client.id,
    }


def _forget(_: BaseException | None) -> None:
    _request_id.set(None)
    stop_watch()


def _event(record: logging.LogRecord) -> str:
    # The logger named just "app" is Flask's own, which quotes the path of a request.
    if record.name.startswith(_OURS) or str(record.msg).startswith(_SERVER_SAYS):
        return record.getMessage()
    if record.args and isinstance(record.msg, str):
        return record.msg
    return f"(withheld) {record.module}:{record.lineno}"


def _time(seconds: float) -> str:
    whole = int(seconds)
    return f"{_second(whole)}.{int((seconds - whole) * 1000):03}+00:00"


@lru_cache(1)
def _second(whole: int) -> str:
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _type_name(value: object) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


_encode = json.JSONEncoder(default=_type_name).encode
"""The standard library's writer takes any text, half characters included."""

_PLAIN = frozenset({str, int, float, bool, type(None)})


def write_line(line: Mapping[str, object]) -> str:
    """Return a line as the standard library writes it: a plain one at a tenth of the cost."""
    if not _PLAIN.issuperset(map(type, line.values())):
        return _encode(line)
    try:
        # A member a line; within one there is no end of line, which JSON escapes.
        text = orjson.dumps(line, option=orjson.OPT_INDENT_2).decode("ascii")
    except (TypeError, UnicodeDecodeError):
        return _encode(line)
    return "{" + text[4:-2].replace(",\n  ", ", ") + "}"
