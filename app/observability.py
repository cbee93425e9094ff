"""What operators see of requests: metrics and spans.

- Metrics (prometheus_client) have one name each, and nobody's data in any label. Every worker
  counts for itself; `PROMETHEUS_MULTIPROC_DIR` names the directory that they share, as the
  library documents.
- Spans (OpenTelemetry): one a request, and one for each call that `adapters.instrumentation`
  observes. Where the extra `tracing` is not installed or not switched on, they cost nothing. A span
  holds the template of a route, words of ours, numbers, the type of an error and the request
  id; never an address, a query, a statement, a value or a message.
"""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from flask import Flask, Response, g, request
from opentelemetry import trace
from opentelemetry.context import attach, detach
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import Counter, Gauge, Histogram

from adapters.contract import ResourceType, RowFault, SourceUnavailableError
from adapters.instrumentation import Kind, Recorder, record_with
from app.config import SettingsError
from app.stages import METHODS, request_id, stage_seconds

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

Metric = TypeVar("Metric", Counter, Gauge, Histogram)

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# From the first quote to the last: a code may hold one.
_QUOTED = re.compile(r"'.*'", re.DOTALL)

REQUESTS = Counter(
    "encounters_requests",
    "Requests answered, by route template, method and class of status.",
    ("route", "method", "status"),
)
REQUEST_SECONDS = Histogram(
    "encounters_request_seconds",
    "How long answers took, by route template and method.",
    ("route", "method"),
    buckets=_SECONDS,
)
PHASE_SECONDS = Histogram(
    "encounters_phase_seconds",
    "How long each phase of a request took, where there was one, by route template.",
    ("route", "phase"),
    buckets=_SECONDS,
)
SOURCE_SECONDS = Histogram(
    "encounters_source_seconds",
    "How long calls to a source took, by source, call, and whether it answered.",
    ("source", "call", "answered"),
    buckets=_SECONDS,
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
    buckets=_SECONDS,
)
STORE_ERRORS = Counter(
    "encounters_store_errors",
    "Calls to Redis that failed, by step.",
    ("step",),
)
ROW_FAULTS = Counter(
    "encounters_row_faults",
    "Rows that could not be mapped, by resource type, field and rule.",
    ("resource_type", "field", "rule"),
)
THROTTLED = Counter(
    "encounters_throttled",
    "Requests refused because too many came, by what was counted.",
    ("by",),
)
AUDIT_EVENTS = Counter("encounters_audit_events", "Audit events written.")
AUDIT_FAILURES = Counter(
    "encounters_audit_failures",
    "Audit events that could not be written.",
)
PART_READY = Gauge(
    "encounters_part_ready",
    "Whether a part that /ready reports was fine when last checked: 1, else 0.",
    ("part",),
    multiprocess_mode="livemin",
)


@lru_cache(1024)
def _labelled(metric: Metric, *labels: str) -> Metric:
    """Return a metric with these labels: `labels` checks them anew each time."""
    return metric.labels(*labels)


class Metrics(Recorder):
    """Counts and times calls to sources and to Redis."""

    def started(self, kind: Kind, name: str) -> None:
        """Count a call to a source as in progress."""
        if kind is Kind.SOURCE:
            _labelled(SOURCE_CALLS, name).inc()

    def finished(
        self,
        kind: Kind,
        name: str,
        operation: str,
        seconds: float,
        error: BaseException | None,
    ) -> None:
        """Count how long a call took, and whether it failed."""
        if kind is Kind.SOURCE:
            _labelled(SOURCE_CALLS, name).dec()
            answered = not isinstance(error, SourceUnavailableError)
            label = "yes" if answered else "no"
            _labelled(SOURCE_SECONDS, name, operation, label).observe(seconds)
        elif name == "redis":
            _labelled(STORE_SECONDS, operation).observe(seconds)
            if error is not None:
                _labelled(STORE_ERRORS, operation).inc()

    def breaker_changed(self, source: str, *, is_open: bool) -> None:
        """Count a breaker that has opened or closed."""
        SOURCE_HELD_BACK.labels(source).set(is_open)


def register_metrics(app: Flask, connections: Mapping[str, int]) -> None:
    """Count every request of `app`, and every call that is observed in this process.

    `connections` is how many calls to each source there may be at once.
    """
    for source, count in connections.items():
        SOURCE_CONNECTIONS.labels(source).set(count)
    record_with(Metrics())
    app.after_request(_count_request)


def count_row_fault(resource_type: ResourceType, fault: RowFault) -> None:
    """Count a row that could not be mapped; codes that its rule quotes are left out."""
    rule = _QUOTED.sub("…", fault.rule)
    ROW_FAULTS.labels(resource_type.value, fault.field, rule).inc()


def _count_request(response: Response) -> Response:
    rule = request.url_rule
    route = rule.rule if rule else "none"
    # A request without a route may have any method; a route allows few.
    method = request.method if rule else "any"
    seconds = stage_seconds()
    _labelled(REQUESTS, route, method, f"{response.status_code // 100}xx").inc()
    _labelled(REQUEST_SECONDS, route, method).observe(sum(seconds.values()))
    for name, took in seconds.items():
        if took:
            _labelled(PHASE_SECONDS, route, name).observe(took)
    return response


_PARENT = "traceparent"
_propagator = TraceContextTextMapPropagator()


def open_tracing() -> "TracerProvider":
    """Send spans to the address in the standard variables (`OTEL_…`) from now on.

    Raises SettingsError for such a variable that cannot be used, and where the extra
    `tracing` is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        fault = "ENCOUNTERS_TRACING needs the extra 'tracing': see docs/operators.md."
        raise SettingsError((fault,)) from error
    os.environ.setdefault("OTEL_SERVICE_NAME", "encounters")
    try:
        provider = TracerProvider(resource=Resource.create())
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    except ValueError as error:
        fault = f"A variable of OpenTelemetry (OTEL_…) cannot be used: {error}"
        raise SettingsError((fault,)) from error
    trace.set_tracer_provider(provider)
    return provider


def register_tracing(app: Flask) -> None:
    """Trace every request of `app`; to be registered after the request log."""
    app.before_request(_begin_span)
    app.after_request(_describe_span)
    app.teardown_request(_end_span)


def _begin_span() -> None:
    # Only the ids of a caller's trace are taken: `tracestate` is free text.
    parent = request.headers.get(_PARENT)
    carrier = {} if parent is None else {_PARENT: parent}
    is_known = request.method in METHODS
    route = request.url_rule.rule if request.url_rule else ""
    span = trace.get_tracer("encounters").start_span(
        f"{request.method if is_known else 'HTTP'} {route}".rstrip(),
        _propagator.extract(carrier),
        trace.SpanKind.SERVER,
        {
            "http.request.method": request.method if is_known else "_OTHER",
            **({"http.route": route} if route else {}),
            "encounters.request_id": request_id() or "",
        },
    )
    g.span = span, attach(trace.set_span_in_context(span))


def _describe_span(response: Response) -> Response:
    span: trace.Span = g.span[0]
    span.set_attribute("http.response.status_code", response.status_code)
    if response.status_code >= 500:
        span.set_status(trace.StatusCode.ERROR)
    for name, took in stage_seconds().items():
        span.set_attribute(f"encounters.{name}_ms", round(took * 1000, 3))
    return response


def _end_span(_: BaseException | None) -> None:
    if (current := g.pop("span", None)) is not None:
        span, token = current
        span.end()
        detach(token)
