"""The request under way: its id, and the stages that its time is spent on.

`with stage(Stage.SOURCE): …` charges the time of a block to a stage; the access line, a
histogram and the span of the request report them.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from enum import StrEnum
from time import perf_counter
from types import TracebackType

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
    """The token, the parameters, and all that is none of the others."""
    SOURCE = "source"
    """The hospital system: calls to it, its rows read as records."""
    REDIS = "redis"
    """Pages stored and found again."""
    MAP = "map"
    """Records made into FHIR resources."""
    WRITE = "write"
    """The answer as bytes, and its audit event."""


_NO_SECONDS = dict.fromkeys(Stage, 0.0)


class RequestTime:
    """Charges the time of a request to one stage at a time, beginning with `parse`."""

    __slots__ = ("_seconds", "_since", "_stage")

    def __init__(self) -> None:
        self._seconds = _NO_SECONDS.copy()
        self._stage = Stage.PARSE
        self._since = perf_counter()

    def enter(self, stage: Stage) -> Stage:
        """Charge what follows to `stage`; return the stage before."""
        now, before = perf_counter(), self._stage
        self._seconds[before] += now - self._since
        self._stage, self._since = stage, now
        return before

    def seconds(self) -> Mapping[Stage, float]:
        """Return the seconds of every stage so far; their sum is the whole time."""
        self.enter(self._stage)
        return self._seconds


_request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
_request_time: ContextVar[RequestTime | None] = ContextVar("request_time", default=None)


def begin_request(id: str) -> None:
    """Begin a request in this context: its id is known, its time runs."""
    _request_id.set(id)
    _request_time.set(RequestTime())


def end_request() -> None:
    """End the request of this context."""
    _request_id.set(None)
    _request_time.set(None)


def request_id() -> str | None:
    """Return the id of the request of this context, None outside of one."""
    return _request_id.get()


def stage_seconds() -> Mapping[Stage, float]:
    """Return the seconds of each stage of the request so far; empty outside of one."""
    time = _request_time.get()
    return {} if time is None else time.seconds()


class stage:  # noqa: N801 - read as a word: `with stage(Stage.MAP):`
    """Charge the time of a block to a stage; outside of a request nothing is charged."""

    __slots__ = ("_before", "_stage", "_time")

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __enter__(self) -> None:
        """Begin the block."""
        self._time = _request_time.get()
        if self._time is not None:
            self._before = self._time.enter(self._stage)

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """End it; what goes on is charged as before."""
        if self._time is not None:
            self._time.enter(self._before)
