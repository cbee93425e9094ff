"""Log lines: one JSON object each, to stderr, with the request's id and no patient data.

One formatter for every logger of the process keeps them free of data, whoever writes them:

- an exception is written as its type and the places that it went through, never as its
  message: a database driver quotes values in it;
- a line of another library is written as its template, never with its arguments, or not at all
  where the template is filled in already;
- a request is written as the template of its route, never as its path or query.

What our own code adds goes into `extra={"data": {...}}`.
"""

import json
import logging
import logging.config
import os
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from app.call import request_id

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
"""What gunicorn logs about itself: addresses of ours, signals and processes, no request."""
_PLACES = 12
_STDERR = 2

_access = logging.getLogger("app.access")


class RedactingFormatter(logging.Formatter):
    """Writes a log record as one JSON object, without data that may be a patient's."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one JSON object, without arguments and messages of errors."""
        data = getattr(record, "data", None)
        line: dict[str, object] = {**data} if isinstance(data, dict) else {}
        line["time"] = _time(record.created)
        line["level"] = record.levelname.lower()
        line["logger"] = record.name
        line["event"] = _event(record)
        if (current := request_id()) is not None:
            line.setdefault("request_id", current)
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = describe_error(record.exc_info[1])
        return _encode(line)


def write_access_line(data: Mapping[str, object], id: str) -> None:
    """Write the line of a request to stderr, if lines of its level are written.

    It has the form of any other line. `logging` would take a tenth of a read for it.
    """
    if not _access.isEnabledFor(logging.INFO):
        return
    line = {**data, "time": _time(time.time()), "level": "info"}
    line |= {"logger": _access.name, "event": "request", "request_id": id}
    # As for any other line: a stream that cannot be written fails no request.
    with suppress(OSError):
        # In one piece, below the streams of Python: those are not safe to share between threads.
        os.write(_STDERR, f"{_encode(line)}\n".encode())


def logging_config(level: str) -> dict[str, Any]:
    """Return a `logging.config` dictionary, also of use to gunicorn's `logconfig_dict`.

    `level` is for our own lines; of other libraries only warnings are written, and of
    the server what it logs about its workers.
    """
    ours = {"level": level.upper()}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": RedactingFormatter}},
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
            "gunicorn.error": {"level": "INFO", "handlers": [], "propagate": True},
        },
    }


def configure_logs(level: str) -> None:
    """Send every log line of the process to stderr as JSON, ours from `level` up."""
    # What logging itself prints about a line that fails would hold its arguments.
    logging.raiseExceptions = False
    logging.config.dictConfig(logging_config(level))


def describe_error(error: BaseException) -> dict[str, object]:
    """Return the type of an error, where it passed, and its cause; no message."""
    places = [
        f"{frame.f_globals.get('__name__')}:{frame.f_code.co_name}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
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


def _event(record: logging.LogRecord) -> str:
    """Return what a record reports: its text if it is safe, else its template or place."""
    # The logger named just "app" is Flask's own, which quotes the path of a request.
    is_ours = record.name.startswith(_OURS)
    is_server = record.name == "gunicorn.error"
    if is_ours or (is_server and str(record.msg).startswith(_SERVER_SAYS)):
        return record.getMessage()
    if record.args and isinstance(record.msg, str):
        return record.msg
    return f"(withheld) {record.module}:{record.lineno}"


def _type_name(value: object) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


_encode = json.JSONEncoder(default=_type_name).encode
