"""Instrumentation of outgoing calls: one context manager around each of them.

`observe` starts a span (OpenTelemetry's API, which does nothing without an SDK) and reports
the call to the recorder of the process, which keeps metrics. Neither gets an address, a
statement, a value or a message: a call is named in fixed words.
"""

import time
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from types import TracebackType
from typing import Self

from opentelemetry import trace

from adapters.contract import GoneError, NotFoundError


class Kind(StrEnum):
    """What is called."""

    SOURCE = "source"
    """A source of the mapping, by its name; calls that this takes are observed too."""
    STORE = "store"
    """A database or Redis, by its kind."""
    HTTP = "http"
    """A server, by its role."""


class Recorder:
    """Keeps metrics of calls; this one keeps none. Safe to share between threads."""

    def started(self, kind: Kind, name: str) -> None:
        """Record that a call has started."""

    def finished(
        self,
        kind: Kind,
        name: str,
        operation: str,
        seconds: float,
        error: BaseException | None,
    ) -> None:
        """Record how long a call took, and the error that it failed with, if any."""

    def breaker_changed(self, source: str, *, is_open: bool) -> None:
        """Record that the circuit breaker of a source has opened or closed."""


_recorders = [Recorder()]
_tracer = trace.get_tracer("encounters")
_ATTRIBUTES = {
    Kind.SOURCE: ("encounters.source", "encounters.call"),
    Kind.STORE: ("db.system.name", "db.operation.name"),
    Kind.HTTP: ("peer.service", "http.request.method"),
}
"""The span attributes that hold the name of what is called and the operation."""


def record_with(recorder: Recorder) -> None:
    """Report all calls of this process to a recorder from now on."""
    _recorders[0] = recorder


def recorder() -> Recorder:
    """Return the recorder of this process."""
    return _recorders[0]


def _current(span: trace.Span) -> AbstractContextManager[object]:
    """Return a context in which a span is the current one; without an SDK there is none."""
    if not span.get_span_context().is_valid:
        return nullcontext()
    # A message may hold anything: only the type of an error is recorded, below.
    return trace.use_span(
        span, end_on_exit=True, record_exception=False, set_status_on_exception=False
    )


class observe:  # noqa: N801 - read as a word: `with observe(Kind.HTTP, …):`
    """Observe a call for as long as the block lasts."""

    __slots__ = ("_began", "_current", "_kind", "_name", "_operation", "_span")

    def __init__(self, kind: Kind, name: str, operation: str) -> None:
        self._kind, self._name, self._operation = kind, name, operation

    def __enter__(self) -> Self:
        """Begin the call."""
        self._began = time.perf_counter()
        recorder().started(self._kind, self._name)
        named = (self._name, self._operation)
        is_source = self._kind is Kind.SOURCE
        self._span = _tracer.start_span(
            f"{self._operation} {self._name}",
            kind=trace.SpanKind.INTERNAL if is_source else trace.SpanKind.CLIENT,
            attributes=dict(zip(_ATTRIBUTES[self._kind], named, strict=True)),
        )
        self._current = _current(self._span)
        self._current.__enter__()
        return self

    def answered(self, status: int) -> None:
        """Record the status of an answer over HTTP."""
        self._span.set_attribute("http.response.status_code", status)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """End it."""
        if kind is not None:
            self._span.set_attribute("error.type", kind.__name__)
            if not issubclass(kind, NotFoundError | GoneError):
                self._span.set_status(trace.StatusCode.ERROR)
        seconds = time.perf_counter() - self._began
        recorder().finished(self._kind, self._name, self._operation, seconds, error)
        self._current.__exit__(None, None, None)
