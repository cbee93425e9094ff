"""The request under way: its id, and the stages that its time is spent on.

`enter(Stage.SOURCE)` ends the stage before; the access line, a histogram and the span of
the request report the time of each.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that are named; any other may hold anything."""

PERSON, REASON, TIMES = "encounters.person", "encounters.reason", "encounters.times"
"""What the explorer, in the same process, adds to the environ of a request.

Who looks, why, and a dictionary for the milliseconds of each stage. No client can send
them: every header is named HTTP_….
"""


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


@dataclass(slots=True)
class _Request:
    """A request: its id, the seconds of each stage, and the stage it is in since when."""

    id: str
    seconds: dict[Stage, float] = field(
        default_factory=lambda: dict.fromkeys(Stage, 0.0)
    )
    stage: Stage = Stage.PARSE
    since: float = field(default_factory=perf_counter)


_request: ContextVar[_Request | None] = ContextVar("request", default=None)


def begin_request(id: str) -> None:
    """Begin a request in this context: its id is known, its time runs."""
    _request.set(_Request(id))


def end_request() -> None:
    """End the request of this context."""
    _request.set(None)


def request_id() -> str | None:
    """Return the id of the request of this context, None outside of one."""
    request = _request.get()
    return None if request is None else request.id


def enter(stage: Stage) -> None:
    """Charge what follows to a stage; outside of a request nothing is charged."""
    if (request := _request.get()) is not None:
        now = perf_counter()
        request.seconds[request.stage] += now - request.since
        request.stage, request.since = stage, now


def stage_seconds() -> Mapping[Stage, float]:
    """Return the seconds of each stage of the request so far; empty outside of one.

    Their sum is the whole time.
    """
    request = _request.get()
    if request is None:
        return {}
    enter(request.stage)
    return request.seconds
