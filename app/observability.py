"""What operators see of requests: metrics and spans.

- Metrics (prometheus_client) have one name each, and nobody's data in any label. Every worker
  counts for itself; `PROMETHEUS_MULTIPROC_DIR` names the directory that they share, as the
  library documents. `adapters.instrumentation` has those of calls.
- Spans (OpenTelemetry), where tracing is on: one a request, and within it one for each call that
  `adapters.instrumentation` observes. A span holds the template of a route, words of ours,
  numbers, the type of an error and the request id; never an address, a query, a statement, a
  value or a message.
"""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from threading import Thread
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import attach, detach
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import Counter, Gauge, Histogram

from adapters.contract import ResourceType, RowFault
from adapters.instrumentation import BUCKETS, SOURCE_CONNECTIONS
from app.call import Call
from app.config import SettingsError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that metrics and spans name; another one is any text of a client."""

CLOSE_SECONDS = 2.0

# From the first quote to the last: a code may hold one.
_QUOTED = re.compile(r"'.*'", re.DOTALL)

REQUEST_SECONDS = Histogram(
    "encounters_request_seconds",
    "Duration of requests, by route, method and class of status.",
    ("route", "method", "status"),
    buckets=BUCKETS,
)
PHASE_SECONDS = Counter(
    "encounters_phase_seconds",
    "Seconds spent in each phase of requests, by route.",
    ("route", "phase"),
)
ROW_FAULTS = Counter(
    "encounters_row_faults",
    "Rows that could not be mapped, by resource type, field and rule.",
    ("resource_type", "field", "rule"),
)
THROTTLED = Counter(
    "encounters_throttled",
    "Requests over a rate limit (429), by client or address.",
    ("by",),
)
AUDIT_EVENTS = Counter("encounters_audit_events", "Audit events written.")
AUDIT_FAILURES = Counter(
    "encounters_audit_failures",
    "Audit events that could not be written.",
)
AUDIT_FREE = Gauge(
    "encounters_audit_free_bytes",
    "Free bytes on the disk of the audit file at the last check.",
    multiprocess_mode="livemin",
)
PART_READY = Gauge(
    "encounters_part_ready",
    "1 if a part of /ready passed its last check, else 0.",
    ("part",),
    multiprocess_mode="livemin",
)


def count_row_fault(resource_type: ResourceType, fault: RowFault) -> None:
    """Count a row that could not be mapped; codes that its rule quotes are left out."""
    rule = _QUOTED.sub("…", fault.rule)
    ROW_FAULTS.labels(resource_type.value, fault.field, rule).inc()


def count_connections(connections: Mapping[str, int]) -> None:
    """Record how many calls to each source there may be at once."""
    for source, count in connections.items():
        SOURCE_CONNECTIONS.labels(source).set(count)


def count_request(call: Call, method: str, status: int) -> None:
    """Count a request and the time of its stages."""
    route = call.route or "none"
    # A request without a route may have any method; a route allows few.
    named = method if call.route else "any"
    whole = _request_seconds(route, named, f"{status // 100}xx")
    whole.observe(sum(call.seconds.values()))
    for stage, seconds in call.seconds.items():
        if seconds:
            _phase_seconds(route, stage).inc(seconds)


# The library checks the labels of a metric anew each time.


@lru_cache(1024)
def _request_seconds(route: str, method: str, status: str) -> Histogram:
    return REQUEST_SECONDS.labels(route, method, status)


@lru_cache(1024)
def _phase_seconds(route: str, phase: str) -> Counter:
    return PHASE_SECONDS.labels(route, phase)


_PARENT = "HTTP_TRACEPARENT"
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
        fault = "ENCOUNTERS_TRACING requires the extra 'tracing': see docs/run/logs.md, Traces."
        raise SettingsError((fault,)) from error
    os.environ.setdefault("OTEL_SERVICE_NAME", "encounters")
    try:
        provider = TracerProvider(resource=Resource.create(), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    except ValueError as error:
        fault = f"A variable of OpenTelemetry (OTEL_…) cannot be used: {error}"
        raise SettingsError((fault,)) from error
    trace.set_tracer_provider(provider)
    return provider


def close_tracing() -> None:
    """Send the spans that are left; a collector that hangs delays it by two seconds."""
    shutdown = getattr(trace.get_tracer_provider(), "shutdown", None)
    if shutdown is not None:
        thread = Thread(target=shutdown, daemon=True)
        thread.start()
        thread.join(CLOSE_SECONDS)


class RequestSpan:
    """The span of one request, current until it is closed."""

    def __init__(self, call: Call) -> None:
        self._call = call
        # Only the ids of a caller's trace are taken: `tracestate` is free text.
        parent = call.environ.get(_PARENT)
        carrier = {} if parent is None else {"traceparent": parent}
        self._method = call.environ["REQUEST_METHOD"]
        self._is_known = self._method in METHODS
        self._span = trace.get_tracer("encounters").start_span(
            self._name(),
            _propagator.extract(carrier),
            trace.SpanKind.SERVER,
            {
                "http.request.method": self._method if self._is_known else "_OTHER",
                "encounters.request_id": call.id,
            },
        )
        self._token = attach(trace.set_span_in_context(self._span))

    def end(self, status: int) -> None:
        """Describe the response: its route, status, and the time of each stage."""
        if self._call.route:
            self._span.update_name(self._name())
            self._span.set_attribute("http.route", self._call.route)
        self._span.set_attribute("http.response.status_code", status)
        if status >= 500:
            self._span.set_status(trace.StatusCode.ERROR)
        for name, took in self._call.seconds.items():
            self._span.set_attribute(f"encounters.{name}_ms", round(took * 1000, 3))

    def close(self) -> None:
        """End the span."""
        self._span.end()
        detach(self._token)

    def _name(self) -> str:
        method = self._method if self._is_known else "HTTP"
        return f"{method} {self._call.route}".rstrip()
