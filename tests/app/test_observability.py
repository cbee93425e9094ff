"""Stages, metrics and spans: what they report of a request, and what they never hold."""

from functools import partial
from threading import Event
from types import SimpleNamespace

import pytest
from flask import Flask
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from prometheus_client import REGISTRY

from adapters.instrumentation import CallKind, observe
from app.call import Stage
from app.middleware import Requests, Transport
from app.observability import close_tracing
from tests.canaries import canaries_in
from toolkit.contract.hospital import CANARIES, EDGES

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def exporter():
    """Collect all spans of this process; a provider can be set once."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def served(exporter, make_service):
    """Return a service whose requests are traced."""
    served = make_service()
    plain = partial(Flask.wsgi_app, served.app)
    transport = Transport(on_loopback=True)
    served.app.wsgi_app = Requests(plain, transport, is_traced=True)
    served.get("metadata")  # what the first request alone does
    exporter.clear()
    yield served
    exporter.clear()


def spans(exporter):
    return {span.name: span for span in exporter.get_finished_spans()}


def sample(name, **labels):
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_requests_and_calls_to_sources_are_counted(served):
    route = {"route": "/fhir/v3/Encounter/<id>", "method": "GET", "status": "2xx"}
    requests = sample("encounters_request_seconds_count", **route)
    call = {"source": "Tiny hospital", "call": "read", "answered": "yes"}
    calls = sample("encounters_source_seconds_count", **call)
    assert served.get(f"Encounter/{EDGES.stays[0].id}").status_code == 200
    assert sample("encounters_request_seconds_count", **route) == requests + 1
    assert sample("encounters_source_seconds_count", **call) == calls + 1


def test_a_request_is_a_span_with_its_calls_within(served, exporter):
    read = served.get(f"Encounter/{EDGES.stays[0].id}")
    found = spans(exporter)
    root = found["GET /fhir/v3/Encounter/<id>"]
    attributes = dict(root.attributes)
    assert all(attributes.pop(f"encounters.{name}_ms") >= 0 for name in Stage)
    assert attributes == {
        "http.request.method": "GET",
        "http.route": "/fhir/v3/Encounter/<id>",
        "http.response.status_code": 200,
        "encounters.request_id": read.headers["X-Request-Id"],
    }
    served.search("Encounter", {"_count": "3"})
    calls = [s for s in exporter.get_finished_spans() if s.kind is SpanKind.CLIENT]
    roots = [s for s in exporter.get_finished_spans() if s.kind is SpanKind.SERVER]
    assert len(roots) == 2
    # GET fetches the key set.
    expected = {"GET", "read", "search", "count", "keep"}
    assert {span.name.split()[0] for span in calls} == expected
    for span in calls:
        assert span.parent is not None
        assert span.parent.span_id in {root.context.span_id for root in roots}


def test_calls_outside_of_a_traced_request_are_no_spans(served, exporter):
    with observe(CallKind.SOURCE, "a source", "read") as span:
        assert not span.is_recording()
    served.get("metadata", traceparent=f"00-{TRACE}-{CALLER}-00")
    served.get("Encounter/1", traceparent=f"00-{TRACE}-{CALLER}-00")
    assert exporter.get_finished_spans() == ()


def test_the_trace_of_a_caller_goes_on_without_its_state(served, exporter):
    parent = f"00-{TRACE}-{CALLER}-01"
    served.get("metadata", traceparent=parent, tracestate=f"vendor={CANARIES[0]}")
    (root,) = exporter.get_finished_spans()
    assert format(root.context.trace_id, "032x") == TRACE
    assert root.parent is not None
    assert not root.parent.trace_state


def test_no_span_holds_a_canary(served, exporter):
    served.post("Patient/_search", {"name": CANARIES[0]})
    served.get(f"Encounter/{CANARIES[0]}")
    served.get(f"{CANARIES[0]}?name={CANARIES[0]}")
    text = " ".join(span.to_json() for span in exporter.get_finished_spans())
    assert len(exporter.get_finished_spans()) > 3
    assert canaries_in(text) == []


def test_a_collector_that_hangs_delays_no_stop(monkeypatch):
    goes_on, has_ended = Event(), Event()

    def shutdown():
        goes_on.wait(60)
        has_ended.set()

    hanging = SimpleNamespace(shutdown=shutdown)
    tracing = SimpleNamespace(get_tracer_provider=lambda: hanging)
    monkeypatch.setattr("app.observability.trace", tracing)
    monkeypatch.setattr("app.observability.CLOSE_SECONDS", 0.01)
    close_tracing()
    assert not has_ended.is_set()
    goes_on.set()
