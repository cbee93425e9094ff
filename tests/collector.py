"""A collector of traces for tests: OTLP over HTTP, on a port of this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from werkzeug.wrappers import Request, Response

from tests.canaries import canaries_in
from tests.hospital_http import serving


class Span(NamedTuple):
    """A span as it came."""

    name: str
    attributes: dict[str, Any]


@dataclass
class Collector:
    """Takes spans in."""

    address: str = ""
    spans: list[Span] = field(default_factory=list)
    bodies: list[ExportTraceServiceRequest] = field(default_factory=list)

    def take(self, request: Request) -> Response:
        """Take in what is sent to the one address that the protocol has."""
        assert request.path == "/v1/traces"
        sent = ExportTraceServiceRequest.FromString(request.get_data())
        self.bodies.append(sent)
        self.spans += _spans(sent)
        return Response()

    def text(self) -> str:
        """Return all that came, as text: what it holds can be looked for in it."""
        return " ".join(map(MessageToJson, self.bodies))


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector; no canary comes to it."""
    collector = Collector()
    with serving(Request.application(collector.take)) as address:
        collector.address = address
        yield collector
        assert canaries_in(collector.text()) == []


def _spans(sent: ExportTraceServiceRequest) -> Iterator[Span]:
    for resource in sent.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                values = {each.key: _value(each.value) for each in span.attributes}
                yield Span(span.name, values)


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))
