"""A collector of traces for tests: OTLP over HTTP, on a port of this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any, NamedTuple

from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from werkzeug.wrappers import Request, Response

from tests.canaries import canaries_in
from tests.hospital_http import serving

PATIENCE = 60.0


class Span(NamedTuple):
    """A span as it came; ids are hexadecimal, `parent` is empty for a first one."""

    name: str
    trace: str
    id: str
    parent: str
    state: str
    failed: bool
    attributes: dict[str, Any]


@dataclass
class Collector:
    """Takes spans in; it can hang, or be out of order."""

    address: str = ""
    spans: list[Span] = field(default_factory=list)
    bodies: list[ExportTraceServiceRequest] = field(default_factory=list)
    status: int = 200
    asked: int = 0
    goes_on: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.goes_on.set()

    def take(self, request: Request) -> Response:
        """Take in what is sent to the one address that the protocol has."""
        assert request.path == "/v1/traces"
        self.asked += 1
        body = request.get_data()
        self.goes_on.wait(PATIENCE)
        if self.status == 200:
            sent = ExportTraceServiceRequest.FromString(body)
            self.bodies.append(sent)
            self.spans += _spans(sent)
        return Response(status=self.status)

    def text(self) -> str:
        """Return all that came, as text: what it holds can be looked for in it."""
        return " ".join(map(MessageToJson, self.bodies))

    def canaries(self) -> list[str]:
        """Return the canaries that came."""
        return canaries_in(self.text())

    def taken(self) -> list[Span]:
        """Return the spans since the last time."""
        taken, self.spans = self.spans, []
        return taken


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector for as long as it is wanted."""
    collector = Collector()
    with serving(Request.application(collector.take)) as address:
        collector.address = address
        try:
            yield collector
        finally:
            collector.goes_on.set()
        assert collector.canaries() == []


def _spans(sent: ExportTraceServiceRequest) -> Iterator[Span]:
    for resource in sent.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.trace_state,
                    span.status.code == span.status.STATUS_CODE_ERROR,
                    {each.key: _value(each.value) for each in span.attributes},
                )


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))
