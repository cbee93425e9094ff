"""The watch over the whole run sees what it is there for."""

import json
import logging
from contextlib import nullcontext

import pytest
from prometheus_client import CollectorRegistry, Counter

from tests.canaries import canaries_counted
from tests.validity.client import FHIR_JSON, InvalidBodyError, check_answer
from toolkit.contract.hospital import CANARIES, EDGES


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
    headers = {"X-Request-Id": "1", "Content-Type": FHIR_JSON}
    for text in ("None.", *CANARIES):
        issue = {"severity": "error", "code": "not-found", "diagnostics": text}
        outcome = {"resourceType": "OperationOutcome", "issue": [issue]}
        expected = pytest.raises(InvalidBodyError, match="canary")
        with nullcontext() if text == "None." else expected:
            body = json.dumps(outcome).encode()
            check_answer("GET", "/fhir/v3/Patient/1", 404, headers, body)
