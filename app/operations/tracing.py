"""Traces (OpenTelemetry, the extra `tracing`): a span a request, and one a call outwards.

No patient data by construction: a span holds the template of a route, words of ours,
numbers, the kind of an error and the request id; never an address, a query, a statement, a
value or a message. Of what a caller sends about its own trace (W3C Trace Context) only the
ids are taken, not its `tracestate`.

Spans wait in a queue of fixed length and are sent by a thread of their own; those that
find no room are lost. `OTEL_…` variables say where to, how many and how long.
"""

import atexit
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import requests
from flask import Flask, Response, g, request
from opentelemetry.context import attach, detach
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from adapters.contract import GoneError, NotFoundError
from adapters.outward import Call, Kind, follow
from app.operations.logs import METHODS, request_id
from app.operations.phases import current_watch
from app.settings import SettingsError

EXTENSION = "tracing"

SEND_SECONDS = 2.0
"""How long the collector may take for one batch, unless the standard variables say."""

_OWN_TIMEOUTS = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
_PARENT = "traceparent"
_NAMES: Mapping[Kind, tuple[str, str]] = {
    Kind.SOURCE: ("encounters.source", "encounters.call"),
    Kind.STORE: ("db.system.name", "db.operation.name"),
    Kind.HTTP: ("peer.service", "http.request.method"),
}
"""Which attributes hold what is called and the operation."""

_log = logging.getLogger(__name__)


class Sender(OTLPSpanExporter):
    """Sends spans to the collector; says once that it is away, and once that it is back."""

    def __init__(self) -> None:
        given = any(os.environ.get(name) for name in _OWN_TIMEOUTS)
        session = requests.Session()
        # Neither a proxy nor a .netrc from the environment of the process counts.
        session.trust_env = False
        super().__init__(timeout=None if given else SEND_SECONDS, session=session)
        self._away = False
        self._ends = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch."""
        if self._ends and self._away:
            return SpanExportResult.FAILURE
        result = super().export(spans)
        away = result is not SpanExportResult.SUCCESS
        if away is not self._away:
            self._away = away
            said = "spans are lost" if away else "spans are sent again"
            _log.warning(said)
        return result

    def end(self) -> None:
        """From now on, let one failure be the last: the process wants to end."""
        self._ends = True


def open_tracing() -> TracerProvider:
    """Return what sends spans to where the standard variables say.

    Raises SettingsError for such a variable that cannot be used.
    """
    named = {SERVICE_NAME: "encounters", **OTELResourceDetector().detect().attributes}
    try:
        provider = TracerProvider(
            resource=Resource.create(named), shutdown_on_exit=False
        )
        sender = Sender()
        provider.add_span_processor(BatchSpanProcessor(sender))
    except ValueError as error:
        fault = f"A variable of OpenTelemetry (OTEL_…) cannot be used: {error}"
        raise SettingsError((fault,)) from error
    # The last one registered is called first: a sender that ends waits for nobody long.
    atexit.register(provider.shutdown)
    atexit.register(sender.end)
    return provider


def register_tracing(app: Flask, provider: TracerProvider) -> None:
    """Trace every request of `app`; to be registered after the request log."""
    app.extensions[EXTENSION] = provider
    tracing = _Tracing(provider.get_tracer("encounters"))
    app.before_request(tracing.begin)
    app.after_request(tracing.describe)
    app.teardown_request(tracing.end)


class _Tracing:
    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._callers = TraceContextTextMapPropagator()

    def begin(self) -> None:
        sent = {_PARENT: told} if (told := request.headers.get(_PARENT)) else {}
        method = request.method if request.method in METHODS else "HTTP"
        route = request.url_rule.rule if request.url_rule else None
        span = self._tracer.start_span(
            f"{method} {route}" if route else method,
            self._callers.extract(sent),
            SpanKind.SERVER,
            {
                "http.request.method": method if method in METHODS else "_OTHER",
                **({"http.route": route} if route else {}),
                "encounters.request_id": request_id() or "",
            },
        )
        g.span = span, attach(set_span_in_context(span))
        follow(self._call)

    def describe(self, response: Response) -> Response:
        span: Span = g.span[0]
        status = response.status_code
        span.set_attribute("http.response.status_code", status)
        if status >= 500:
            span.set_status(StatusCode.ERROR)
        if watch := current_watch():
            for phase, took in watch.spent().items():
                span.set_attribute(f"encounters.{phase}_ms", round(took * 1000, 3))
        return response

    def end(self, _: BaseException | None) -> None:
        if (begun := g.pop("span", None)) is None:
            return
        follow(None)
        span, token = begun
        span.end()
        detach(token)

    @contextmanager
    def _call(self, kind: Kind, name: str, operation: str) -> Iterator[Call]:
        inner = SpanKind.INTERNAL if kind is Kind.SOURCE else SpanKind.CLIENT
        told = dict(zip(_NAMES[kind], (name, operation), strict=True))
        span = self._tracer.start_span(f"{operation} {name}", None, inner, told)
        token = attach(set_span_in_context(span))
        try:
            yield _Call(span)
        except BaseException as error:
            # Its type alone: a message may hold anything.
            span.set_attribute("error.type", type(error).__name__)
            if not isinstance(error, NotFoundError | GoneError):
                span.set_status(StatusCode.ERROR)
            raise
        finally:
            span.end()
            detach(token)


class _Call:
    __slots__ = ("_span",)

    def __init__(self, span: Span) -> None:
        self._span = span

    def answered(self, status: int) -> None:
        self._span.set_attribute("http.response.status_code", status)
