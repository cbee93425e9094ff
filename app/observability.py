"""What operators see of a request: its id, its stages, its access line, metrics and spans.

- `enter(Stage.SOURCE)` ends the stage before; the access line, a histogram and the span of
  the request report the time of each.
- Metrics (prometheus_client) have one name each, and nobody's data in any label. Every worker
  counts for itself; `PROMETHEUS_MULTIPROC_DIR` names the directory that they share, as the
  library documents. `adapters.instrumentation` has those of calls.
- Spans (OpenTelemetry), where tracing is on: one a request, and within it one for each call
  that `adapters.instrumentation` observes. A span holds the template of a route, words of
  ours, numbers, the type of an error and the request id; never an address, a query, a
  statement, a value or a message.
"""

import logging
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter
from typing import TYPE_CHECKING

from flask import Flask, Response, g, request
from opentelemetry import trace
from opentelemetry.context import attach, detach
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import Counter, Gauge, Histogram

from adapters.contract import Record, ResourceType, RowFault
from adapters.instrumentation import BUCKETS, SOURCE_CONNECTIONS, labelled
from app.config import SettingsError
from app.search.parser import Parameters

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

REQUEST_ID_HEADER = "X-Request-Id"

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that are named; any other may hold anything."""

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


# Metrics


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
    buckets=BUCKETS,
)
PHASE_SECONDS = Histogram(
    "encounters_phase_seconds",
    "How long each phase of a request took, where there was one, by route template.",
    ("route", "phase"),
    buckets=BUCKETS,
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


def register_metrics(app: Flask, connections: Mapping[str, int]) -> None:
    """Count every request of `app`.

    `connections` is how many calls to each source there may be at once.
    """
    for source, count in connections.items():
        SOURCE_CONNECTIONS.labels(source).set(count)
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
    labelled(REQUESTS, route, method, f"{response.status_code // 100}xx").inc()
    labelled(REQUEST_SECONDS, route, method).observe(sum(seconds.values()))
    for name, took in seconds.items():
        if took:
            labelled(PHASE_SECONDS, route, name).observe(took)
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
    caller = {_PARENT: request.headers.get(_PARENT, "")}
    is_known = request.method in METHODS
    name = request.method if is_known else "HTTP"
    attributes = {
        "http.request.method": request.method if is_known else "_OTHER",
        "encounters.request_id": request_id() or "",
    }
    if request.url_rule:
        attributes["http.route"] = request.url_rule.rule
        name = f"{name} {request.url_rule.rule}"
    span = trace.get_tracer("encounters").start_span(
        name,
        context=_propagator.extract(caller),
        kind=trace.SpanKind.SERVER,
        attributes=attributes,
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
