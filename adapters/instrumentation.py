"""Instrumentation of outgoing calls: one context manager around each of them.

`observe` counts and times a call (prometheus_client). Within a request that is traced it
makes a span as well (OpenTelemetry). Neither gets an address, a statement, a value or a
message: a call is named in fixed words.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from opentelemetry import trace
from prometheus_client import Counter, Gauge, Histogram

from adapters.contract import GoneError, NotFoundError, SourceUnavailableError

Metric = TypeVar("Metric", Counter, Gauge, Histogram)


class Kind(StrEnum):
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
    "How long calls to a source took, by source, call, and whether it answered.",
    ("source", "call", "answered"),
    buckets=BUCKETS,
)
SOURCE_CALLS = Gauge(
    "encounters_source_calls",
    "Calls to a source under way.",
    ("source",),
    multiprocess_mode="livesum",
)
SOURCE_CONNECTIONS = Gauge(
    "encounters_source_connections",
    "How many calls to a source, counts aside, there may be under way.",
    ("source",),
    multiprocess_mode="livesum",
)
SOURCE_HELD_BACK = Gauge(
    "encounters_source_held_back",
    "In how many processes the circuit breaker of a source is open.",
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

_tracer = trace.get_tracer("encounters")
_ATTRIBUTES = {
    Kind.SOURCE: ("encounters.source", "encounters.call"),
    Kind.STORE: ("db.system.name", "db.operation.name"),
    Kind.HTTP: ("peer.service", "http.request.method"),
}
"""The span attributes that hold the name of what is called and the operation."""


@lru_cache(1024)
def labelled(metric: Metric, *labels: str) -> Metric:
    """Return a metric with these labels: `labels` checks them anew each time."""
    return metric.labels(*labels)


@contextmanager
def observe(kind: Kind, name: str, operation: str) -> Iterator[trace.Span]:
    """Observe a call for as long as the block lasts; yields its span."""
    began = time.perf_counter()
    if kind is Kind.SOURCE:
        labelled(SOURCE_CALLS, name).inc()
    span = _begin_span(kind, name, operation)
    failure: BaseException | None = None
    try:
        yield span
    except BaseException as error:
        failure = error
        raise
    finally:
        seconds = time.perf_counter() - began
        _end_span(span, failure)
        if kind is Kind.SOURCE:
            labelled(SOURCE_CALLS, name).dec()
            is_away = isinstance(failure, SourceUnavailableError)
            answered = "no" if is_away else "yes"
            labelled(SOURCE_SECONDS, name, operation, answered).observe(seconds)
        elif kind is Kind.STORE:
            labelled(STORE_SECONDS, operation).observe(seconds)
            if failure is not None:
                labelled(STORE_ERRORS, operation).inc()


def _begin_span(kind: Kind, name: str, operation: str) -> trace.Span:
    """Begin a span within that of the request, if the request is traced."""
    if not trace.get_current_span().is_recording():
        return trace.INVALID_SPAN
    return _tracer.start_span(
        f"{operation} {name}",
        kind=trace.SpanKind.CLIENT,
        attributes=dict(zip(_ATTRIBUTES[kind], (name, operation), strict=True)),
    )


def _end_span(span: trace.Span, failure: BaseException | None) -> None:
    # A message may hold anything: only the type of an error is recorded.
    if failure is not None:
        span.set_attribute("error.type", type(failure).__name__)
        if not isinstance(failure, NotFoundError | GoneError):
            span.set_status(trace.StatusCode.ERROR)
    span.end()
