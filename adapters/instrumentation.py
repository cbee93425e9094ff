"""Instrumentation of outgoing calls: one context manager around each of them.

`observe` counts and times a call (prometheus_client). Within a request that is traced it
makes a span as well (OpenTelemetry). Neither gets an address, a statement, a value or a
message: a call is named in fixed words.
"""

import time
from enum import StrEnum
from functools import lru_cache
from types import TracebackType

from opentelemetry import trace
from prometheus_client import Counter, Gauge, Histogram

from adapters.contract import GoneError, NotFoundError, SourceUnavailableError


class CallKind(StrEnum):
    """What is called."""

    SOURCE = "source"
    """A source of the mapping, by its name; its statements and requests are part of it."""
    STORE = "store"
    """Redis, by its kind."""
    HTTP = "http"
    """The identity provider, by its role."""


BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The limits of all histograms, in seconds."""

SOURCE_SECONDS = Histogram(
    "encounters_source_seconds",
    "Duration of calls to a source, by source, call, and whether it answered.",
    ("source", "call", "answered"),
    buckets=BUCKETS,
)
SOURCE_CALLS = Gauge(
    "encounters_source_calls",
    "Concurrent calls to a source.",
    ("source",),
    multiprocess_mode="livesum",
)
SOURCE_CONNECTIONS = Gauge(
    "encounters_source_connections",
    "Maximum of concurrent calls to a source, without counts.",
    ("source",),
    multiprocess_mode="livesum",
)
SOURCE_HELD_BACK = Gauge(
    "encounters_source_held_back",
    "Processes in which the circuit breaker of a source is open.",
    ("source",),
    multiprocess_mode="livesum",
)
STORE_SECONDS = Histogram(
    "encounters_store_seconds",
    "Duration of calls to Redis, by step.",
    ("step",),
    buckets=BUCKETS,
)
STORE_ERRORS = Counter(
    "encounters_store_errors",
    "Calls to Redis that failed, by step.",
    ("step",),
)

_ATTRIBUTES = {
    CallKind.SOURCE: ("encounters.source", "encounters.call"),
    CallKind.STORE: ("db.system.name", "db.operation.name"),
    CallKind.HTTP: ("peer.service", "http.request.method"),
}
"""The span attributes that hold the name of what is called and the operation."""

_tracer = trace.get_tracer("encounters")


# The library checks the labels of a metric anew each time.


@lru_cache(1024)
def source_seconds(source: str, call: str, answered: str) -> Histogram:
    """Return the metric of how long a call to a source took."""
    return SOURCE_SECONDS.labels(source, call, answered)


@lru_cache(64)
def store_seconds(step: str) -> Histogram:
    """Return the metric of how long a call to Redis took."""
    return STORE_SECONDS.labels(step)


@lru_cache(64)
def source_calls(source: str) -> Gauge:
    """Return the metric of the calls to a source that are under way."""
    return SOURCE_CALLS.labels(source)


class observe:  # noqa: N801 - used as a statement
    """Observes a call for as long as its block lasts.

    `span` is its span; it records nothing outside of a request that is traced.
    """

    def __init__(self, kind: CallKind, name: str, operation: str) -> None:
        self._kind = kind
        self._name = name
        self._operation = operation
        self.span: trace.Span = trace.INVALID_SPAN

    def __enter__(self) -> trace.Span:
        self._began = time.perf_counter()
        if self._kind is CallKind.SOURCE:
            source_calls(self._name).inc()
        if trace.get_current_span().is_recording():
            names = _ATTRIBUTES[self._kind]
            self.span = _tracer.start_span(
                f"{self._operation} {self._name}",
                kind=trace.SpanKind.CLIENT,
                attributes=dict(zip(names, (self._name, self._operation), strict=True)),
            )
        return self.span

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        seconds = time.perf_counter() - self._began
        if self.span.is_recording():
            _end_span(self.span, error)
        if self._kind is CallKind.SOURCE:
            source_calls(self._name).dec()
            answered = "no" if isinstance(error, SourceUnavailableError) else "yes"
            source_seconds(self._name, self._operation, answered).observe(seconds)
        elif self._kind is CallKind.STORE:
            store_seconds(self._operation).observe(seconds)
            if error is not None:
                STORE_ERRORS.labels(self._operation).inc()


def _end_span(span: trace.Span, error: BaseException | None) -> None:
    # A message may hold anything: only the type of an error is recorded.
    if error is not None:
        span.set_attribute("error.type", type(error).__name__)
        if not isinstance(error, NotFoundError | GoneError):
            span.set_status(trace.StatusCode.ERROR)
    span.end()
