"""Instrumentation of outgoing calls: one context manager around each of them.

`observe` starts a span (OpenTelemetry's API, which does nothing without an SDK) and reports
the call to the recorder of the process, which keeps metrics. Neither gets an address, a
statement, a value or a message: a call is named in fixed words.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from opentelemetry import trace

from adapters.contract import GoneError, NotFoundError


class Kind(StrEnum):
    """What is called."""

    SOURCE = "source"
    """A source of the mapping, by its name; calls within it are observed too."""
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


@contextmanager
def observe(kind: Kind, name: str, operation: str) -> Iterator[trace.Span]:
    """Observe a call for as long as the block lasts; yields its span."""
    began = time.perf_counter()
    recorder().started(kind, name)
    is_source = kind is Kind.SOURCE
    span = _tracer.start_span(
        f"{operation} {name}",
        kind=trace.SpanKind.INTERNAL if is_source else trace.SpanKind.CLIENT,
        attributes=dict(zip(_ATTRIBUTES[kind], (name, operation), strict=True)),
    )
    failure: BaseException | None = None
    # A message may hold anything: only the type of an error is recorded.
    with trace.use_span(
        span, end_on_exit=True, record_exception=False, set_status_on_exception=False
    ):
        try:
            yield span
        except BaseException as error:
            failure = error
            span.set_attribute("error.type", type(error).__name__)
            if not isinstance(error, NotFoundError | GoneError):
                span.set_status(trace.StatusCode.ERROR)
            raise
        finally:
            seconds = time.perf_counter() - began
            recorder().finished(kind, name, operation, seconds, failure)
