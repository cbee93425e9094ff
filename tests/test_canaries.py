"""The watch over the whole run sees what it is there for."""

import logging

import pytest
from prometheus_client import CollectorRegistry, Counter

from tests.canaries import canaries_counted
from tests.validity.client import InvalidBodyError, check_answer
from toolkit.contract.hospital import CANARIES, EDGES

OUTCOME = (
    b'{"resourceType":"OperationOutcome","issue":[{"severity":"error",'
    b'"code":"not-found","diagnostics":"%s"}]}'
)
HEADERS = {
    "X-Request-Id": "1",
    "Content-Type": "application/fhir+json;charset=UTF-8",
}


def test_a_canary_of_our_own_lines_is_found(canary_watch):
    for canary in CANARIES:
        assert canary in repr(EDGES)
        data = {"data": {"name": canary.upper()}}
        logging.getLogger("app.views").info("seen", extra=data)
        logging.getLogger("adapters.sql.adapter").warning("seen %s", canary)
        assert len(canary_watch.taken()) == 2
    # What the service would not write is none.
    logging.getLogger("urllib3").warning("asked for %s", CANARIES[0])
    try:
        raise ValueError(CANARIES[0])
    except ValueError:
        logging.getLogger("app.views").exception("failed")
    assert canary_watch.taken() == []


def test_a_canary_in_a_label_is_found():
    registry = CollectorRegistry()
    counter = Counter("seen", "What was seen.", ("what",), registry=registry)
    counter.labels("nobody").inc()
    assert canaries_counted(registry) == []
    for canary in CANARIES:
        counter.labels(canary.upper()).inc()
        assert canary.lower() in canaries_counted(registry)


def test_a_canary_in_an_error_is_found():
    path = "/fhir/v3/Patient/1"
    check_answer("GET", path, 404, HEADERS, OUTCOME % b"None.")
    for canary in CANARIES:
        with pytest.raises(InvalidBodyError, match="canary"):
            check_answer("GET", path, 404, HEADERS, OUTCOME % canary.encode())
