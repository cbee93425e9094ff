"""Traces: what spans tell, what they never hold, and a collector that fails."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import responses
from opentelemetry.sdk.trace.export import SpanExportResult

from adapters.testing.stays import CANARIES, EDGES
from app.operations.candidate import RefusedError, pass_candidate
from app.operations.phases import Phase
from app.operations.shared import Shared
from app.operations.tracing import EXTENSION, Sender
from app.settings import SettingsError
from tests.adapters.test_federated_http import group_text
from tests.app import provider
from tests.collector import Collector, Span, collecting
from tests.hospital_http import Api, answer, serving
from tests.hospital_http_mapping import OFFSET
from tests.hospital_sql import Tables, mapping_text
from tests.redis_server import RedisServer
from tests.serving import Served, serve

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
QUEUE = 8
FAMILY = CANARIES[0]
NORTH, SOUTH = (f"Encounter/{at}-{EDGES.stays[0].id}" for at in "ns")

Traced = Callable[[], list[Span]]


@contextmanager
def traced_service(
    folder: Path, redis: RedisServer, collector: Collector, api: Api, **standard: str
) -> Iterator[Served]:
    """Serve a database and an API as one list, every request traced."""
    with pytest.MonkeyPatch.context() as patch, serving(api) as south:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        # No batch is given up, however busy the machine is.
        patch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")
        for name, value in standard.items():
            patch.setenv(f"OTEL_{name}", value)
        patch.setenv("NORTH_URL", f"sqlite:///{folder / 'pas.db'}")
        patch.setenv("SOUTH_URL", south)
        text = group_text(EDGES, OFFSET)
        served = serve(EDGES, folder, redis.url, mapping=text, TRACING="true")
        yield served
        collector.goes_on.set()
        served.app.extensions[EXTENSION].shutdown()


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


@pytest.fixture(scope="module")
def api() -> Api:
    return Api(EDGES)


@pytest.fixture(scope="module")
def service(
    collector: Collector,
    api: Api,
    redis_server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("traced")
    with traced_service(
        folder,
        redis_server,
        collector,
        api,
        # Spans are sent when a test asks for them.
        BSP_SCHEDULE_DELAY="3600000",
        RESOURCE_ATTRIBUTES="deployment.environment.name=trial",
    ) as served:
        yield served


@pytest.fixture
def served(
    service: Served, collector: Collector, keys: responses.RequestsMock
) -> Served:
    keys.add_passthru("http://127.0.0.1")
    collector.taken()
    return service


@pytest.fixture
def spans(served: Served, collector: Collector) -> Traced:
    """Return the spans since the last time, the request's own last."""

    def sent() -> list[Span]:
        assert served.app.extensions[EXTENSION].force_flush()
        return collector.taken()

    return sent


def test_a_request_is_one_span(served: Served, spans: Traced) -> None:
    read = served.get(NORTH)
    *_, span = spans()
    assert span.name == "GET /fhir/v3/Encounter/<id>"
    told = dict(span.attributes)
    took = [told.pop(f"encounters.{phase}_ms") for phase in Phase]
    assert min(took) >= 0
    assert took[list(Phase).index(Phase.SOURCE)] > 0
    assert told == {
        "http.request.method": "GET",
        "http.route": "/fhir/v3/Encounter/<id>",
        "http.response.status_code": 200,
        "encounters.request_id": read.headers["X-Request-Id"],
    }
    assert (span.parent, span.failed) == ("", False)


def test_each_call_outwards_is_a_span_within(served: Served, spans: Traced) -> None:
    served.search("Encounter", {"_count": "30"})
    found = spans()
    root = found[-1]
    assert {span.trace for span in found} == {root.trace}
    told = {span.name: span for span in found}
    assert {"SELECT sqlite", "GET source", "keep redis"} <= set(told)
    assert {"search north", "search south", "count north"} <= set(told)
    for call in ("search north", "search south", "keep redis"):
        assert told[call].parent == root.id
    sources = {
        span.id: span for span in found if "encounters.source" in span.attributes
    }
    for span in found:
        if span.name == "SELECT sqlite":
            assert sources[span.parent].attributes["encounters.source"] == "north"
            assert span.attributes == {
                "db.system.name": "sqlite",
                "db.operation.name": "SELECT",
            }
        if span.name == "GET source":
            assert sources[span.parent].attributes["encounters.source"] == "south"
            assert span.attributes == {
                "peer.service": "source",
                "http.request.method": "GET",
                "http.response.status_code": 200,
            }


def test_the_trace_of_a_caller_goes_on(served: Served, spans: Traced) -> None:
    served.get(
        NORTH, traceparent=f"00-{TRACE}-{CALLER}-01", tracestate=f"vendor={FAMILY}"
    )
    found = spans()
    assert {span.trace for span in found} == {TRACE}
    assert found[-1].parent == CALLER
    assert {span.state for span in found} == {""}


@pytest.mark.parametrize(
    "sent", ["", "00", f"00-{FAMILY}-{CALLER}-01", f"00-{'0' * 32}-{CALLER}-01"]
)
def test_a_parent_that_is_none_begins_a_trace(
    served: Served, spans: Traced, sent: str
) -> None:
    assert served.get(NORTH, traceparent=sent).status_code == 200
    assert spans()[-1].parent == ""


def test_a_caller_that_does_not_want_to_be_traced_is_not(
    served: Served, spans: Traced
) -> None:
    served.get(NORTH, traceparent=f"00-{TRACE}-{CALLER}-00")
    assert spans() == []


def test_a_failure_is_told_by_its_kind_alone(
    served: Served, spans: Traced, api: Api
) -> None:
    usual, api.strange = api.strange, lambda _: answer({"erreur": FAMILY}, 501)
    try:
        assert served.get(SOUTH).status_code == 503
    finally:
        api.strange = usual
    found = {span.name: span for span in spans()}
    call, source = found["GET source"], found["read south"]
    assert call.attributes["http.response.status_code"] == 501
    assert source.attributes["error.type"] == "SourceUnavailableError"
    root = found["GET /fhir/v3/Encounter/<id>"]
    assert root.attributes["http.response.status_code"] == 503
    assert (call.failed, source.failed, root.failed) == (False, True, True)


def test_what_is_not_there_is_no_failure(served: Served, spans: Traced) -> None:
    assert served.get("Encounter/n-999999").status_code == 404
    assert [span.name for span in spans() if span.failed] == []


def test_no_span_holds_what_was_asked(
    served: Served, spans: Traced, collector: Collector
) -> None:
    token = served.headers["Authorization"].rpartition(".")[2]
    served.search("Encounter", {"patient": "n-1"})
    served.post("Patient/_search", {"name": FAMILY})
    served.get(f"Patient?name={FAMILY}&_id={CANARIES[-1]}")
    for path in (f"Patient/{FAMILY}", FAMILY, f"Encounter?date={FAMILY}"):
        assert served.get(path).status_code in {404, 412}
    served.get(NORTH, Authorization=f"Bearer {FAMILY}", Accept=f"text/{FAMILY}")
    served.get(NORTH, User_Agent=FAMILY, X_Forwarded_For=FAMILY)
    served.http.open(f"/fhir/v3/{FAMILY}", method=FAMILY.upper()[:8])
    assert len(spans()) > 20
    sent = collector.text().lower()
    assert collector.canaries() == []
    assert "deployment.environment.name" in sent
    for secret in (token, "n-1", "pas.db", "127.0.0.1", " from ", "?", "localhost"):
        assert secret.lower() not in sent, secret


def test_a_collector_that_hangs_costs_no_answer(
    collector: Collector,
    api: Api,
    redis_server: RedisServer,
    tmp_path: Path,
    keys: responses.RequestsMock,
) -> None:
    keys.add_passthru("http://127.0.0.1")
    sizes = {"BSP_MAX_QUEUE_SIZE": str(QUEUE), "BSP_MAX_EXPORT_BATCH_SIZE": str(QUEUE)}
    collector.taken()
    with traced_service(tmp_path, redis_server, collector, api, **sizes) as served:
        collector.goes_on.clear()
        before = collector.asked
        while collector.asked == before:
            assert served.get(NORTH).status_code == 200
        # The one batch that hangs is not given up before all of these are answered.
        answers = [served.get(NORTH).status_code for _ in range(5 * QUEUE)]
        assert answers == [200] * 5 * QUEUE
    # What found no room in the queue is lost: no more was kept than it holds.
    assert len(collector.taken()) <= 5 * QUEUE


def test_a_collector_that_is_out_of_order_is_said_once(
    served: Served,
    spans: Traced,
    collector: Collector,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "app.operations")
    collector.status = 400
    for _ in range(3):
        assert served.get(NORTH).status_code == 200
        assert spans() == []
    collector.status = 200
    served.get(NORTH)
    assert spans()
    said = [r.getMessage() for r in caplog.records if r.name.endswith("tracing")]
    assert said == ["spans are lost", "spans are sent again"]


def test_without_its_packages_tracing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapping = tmp_path / "mapping.yaml"
    mapping.touch()
    assert provider.settings(mapping, TRACING="true").tracing
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    for name in [name for name in sys.modules if name.startswith("opentelemetry.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SettingsError) as refused:
        provider.settings(mapping, TRACING="true")
    assert refused.value.faults == (
        "ENCOUNTERS_TRACING needs the extra 'tracing', which is not installed: see "
        "docs/operators.md.",
    )
    assert not provider.settings(mapping).tracing


def test_a_standard_variable_that_cannot_be_used_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(mapping_text(EDGES, url), "utf-8")
    settings = provider.settings(mapping, TRACING="true")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "0")
    shared = Shared.made(mapping)
    with pytest.raises(RefusedError, match=r"OTEL_….* cannot be used: max_queue"):
        pass_candidate(shared, settings, {})
    shared.remove()


def test_who_wants_to_end_tries_a_collector_that_is_away_no_more(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
    sender = Sender()
    collector.status, before = 400, collector.asked
    try:
        assert sender.export(()) is SpanExportResult.FAILURE
        assert sender.export(()) is SpanExportResult.FAILURE
        assert collector.asked == before + 2
        sender.end()
        assert sender.export(()) is SpanExportResult.FAILURE
        assert collector.asked == before + 2
    finally:
        collector.status = 200
    sender.shutdown()
