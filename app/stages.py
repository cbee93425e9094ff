"""The request under way: its id, its stages, what is known of it, its access line.

`enter(Stage.SOURCE)` ends the stage before; the access line, a histogram and the span of
the request report the time of each.
"""

import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter

from flask import Flask, Response, request

from adapters.contract import Record, ResourceType, RowFault
from app.search.parser import Parameters

REQUEST_ID_HEADER = "X-Request-Id"

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that are named; any other may hold anything."""

PERSON, REASON, TIMES = "encounters.person", "encounters.reason", "encounters.times"
"""What the explorer, in the same process, adds to the environ of a request.

Who looks, why, and a dictionary for the milliseconds of each stage. No client can send
them: every header is named HTTP_….
"""

_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,64}")

_access = logging.getLogger("app.access")


class Stage(StrEnum):
    """What a request spends its time on."""

    PARSE = "parse"
    """The token and the parameters; every request begins here."""
    SOURCE = "source"
    """The hospital system: calls to it, its rows read as records."""
    REDIS = "redis"
    """Pages stored and found again."""
    MAP = "map"
    """Records made into FHIR resources."""
    WRITE = "write"
    """The answer as bytes, its audit event, and what reports it."""


_NO_SECONDS = dict.fromkeys(Stage, 0.0)


@dataclass(slots=True)
class Facts:
    """What the views know of a request, for its access line, audit event and error.

    `parameters` are as they came; `page_of` is the search of a page; `rows` and `bundle`,
    the id of their Bundle, are what is returned if nothing fails.
    """

    client: str | None = None
    parameters: Parameters = ()
    page_of: tuple[ResourceType, Parameters] | None = None
    rows: Sequence[Record | RowFault] = ()
    bundle: str | None = None


@dataclass(slots=True)
class _Request:
    """A request: its id, the seconds of each stage, and the stage it is in since when."""

    id: str
    facts: Facts = field(default_factory=Facts)
    seconds: dict[Stage, float] = field(default_factory=_NO_SECONDS.copy)
    stage: Stage = Stage.PARSE
    since: float = field(default_factory=perf_counter)


_current: ContextVar[_Request | None] = ContextVar("request", default=None)


def begin_request(id: str) -> None:
    """Begin a request in this context: its id is known, its time runs."""
    _current.set(_Request(id))


def end_request(_: BaseException | None = None) -> None:
    """End the request of this context."""
    _current.set(None)


def request_id() -> str | None:
    """Return the id of the request of this context, None outside of one."""
    current = _current.get()
    return None if current is None else current.id


def facts() -> Facts:
    """Return what is known of the request of this context, nothing outside of one."""
    current = _current.get()
    return Facts() if current is None else current.facts


def enter(stage: Stage) -> None:
    """Charge what follows to a stage; outside of a request nothing is charged."""
    if (current := _current.get()) is not None:
        now = perf_counter()
        current.seconds[current.stage] += now - current.since
        current.stage, current.since = stage, now


def stage_seconds() -> Mapping[Stage, float]:
    """Return the seconds of each stage of the request so far; empty outside of one.

    Their sum is the whole time.
    """
    current = _current.get()
    if current is None:
        return {}
    enter(current.stage)
    return current.seconds


def register_request_log(app: Flask) -> None:
    """Give every request an id and every answer that id and one access line.

    To be registered before everything else, so that the id is there for all of it.
    """
    app.before_request(_begin)
    app.after_request(_end)
    app.teardown_request(end_request)


def _begin() -> None:
    sent = request.headers.get(REQUEST_ID_HEADER, "")
    begin_request(sent if _WELL_FORMED.fullmatch(sent) else secrets.token_hex(16))


def _end(response: Response) -> Response:
    response.headers.add(REQUEST_ID_HEADER, request_id() or "")
    if (times := request.environ.get(TIMES)) is not None:
        times.update({name: took * 1000 for name, took in stage_seconds().items()})
    if _access.isEnabledFor(logging.INFO):
        _access.info("request", extra={"data": _access_data(response)})
    return response


def _access_data(response: Response) -> dict[str, object]:
    seconds = stage_seconds()
    return {
        "method": request.method if request.method in METHODS else "other",
        "route": request.url_rule.rule if request.url_rule else None,
        "status": response.status_code,
        "duration_ms": round(sum(seconds.values()) * 1000, 1),
        **{f"{name}_ms": round(took * 1000, 1) for name, took in seconds.items()},
        "client": facts().client,
    }
