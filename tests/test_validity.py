"""The validator is itself held: official instances pass, each broken body is refused."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.validity import InvalidBodyError, fhir_faults, parse, validate
from tests.validity.samples import (
    SYSTEM,
    Body,
    bundle,
    capability,
    encounter,
    organization,
    outcome,
    patient,
    put,
)
from tests.validity.schema import STU3

EXAMPLES = sorted((STU3 / "examples").glob("*.json"))

BODIES: tuple[Callable[[], Body], ...] = (
    *(encounter, patient, organization, outcome, bundle, capability),
)


def test_official_examples_of_every_type_pass_and_what_the_service_writes() -> None:
    for body in BODIES:
        validate(body())
    for path in EXAMPLES:
        assert fhir_faults(json.loads(path.read_text())) == [], path
    types = {path.stem.partition("-")[0] for path in EXAMPLES}
    assert types == {body.__name__ for body in BODIES} - {"outcome", "capability"} | {
        *("capabilitystatement", "operationoutcome"),
    }


BROKEN: tuple[tuple[Callable[[], Body], str, Any, str], ...] = (
    # the schema
    (encounter, "resourceType", "Stay", "no such resource type"),
    (encounter, "status", "open", "is not one of"),
    (encounter, "id", "a_b", "does not match"),
    (patient, "birthDate", "31/12/1999", "does not match"),
    (bundle, "entry.1.resource.issue.0.code", "deleted", "is not one of"),
    # nothing empty, anywhere
    (encounter, "period.end", ..., r"\$\.period\.end: empty \(None\)"),
    (patient, "name.0.given", ["Zoé", ...], r"given\[1\]: empty"),
    # no text with what STU3's string does not allow
    (encounter, "identifier.0.value", "4\x002", r"\.value: a control character"),
    # invariants
    (encounter, "period.end", "2024-03-30T08:14:59+01:00", "per-1"),
    (patient, "telecom.0.system", None, "cpt-2"),
    (organization, "name", None, "org-1"),
    (capability, "rest.0.resource.0.searchParam.1.name", "_id", "cpb-12"),
    # the spec and the decisions
    (encounter, "status", "cancelled", r"spec 2\.1"),
    (encounter, "id", None, "no id"),
    (encounter, "meta.versionId", "1", "decision 19"),
    (encounter, "subject", None, "no patient"),
    (encounter, "subject.reference", f"{SYSTEM}/Patient/1", "not a reference within"),
    (encounter, "period.start", "2024-03-30", "no time with an offset"),
    (encounter, "class.code", "SS", r"spec 2\.4"),
    (encounter, "identifier.0.use", "usual", r"spec 2\.2"),
    (encounter, "identifier.0.value", "42 ", "blank at an end"),
    (encounter, "identifier.0.system", "urn:oid:1.02", "is no OID"),
    (patient, "active", True, "merged patient"),
    (outcome, "issue.0.location", ["date"], "decision 3"),
    (bundle, "total", 0, "less than the 1 matches"),
    (bundle, "link.0.relation", "first", "not one self"),
    (bundle, "entry.0.fullUrl", None, "is not the address"),
    (bundle, "entry.1.resource.issue.0.severity", "error", "an error within"),
    (capability, "fhirVersion", "4.0.1", "fhirVersion"),
    (capability, "rest.0.resource.0.interaction.0.code", "update", "read-only"),
)


def test_a_broken_body_is_refused() -> None:
    for body, path, value, fault in BROKEN:
        with pytest.raises(InvalidBodyError, match=fault):
            validate(put(body(), path, value))
    twice = bundle()
    twice["entry"].append(deepcopy(twice["entry"][0]))
    with pytest.raises(InvalidBodyError, match="bdl-7"):
        validate(twice)
    links = bundle()
    links["link"] *= 2
    with pytest.raises(InvalidBodyError, match="not one self"):
        validate(links)
    with pytest.raises(InvalidBodyError, match="not a resource of this service"):
        validate({"resourceType": "Basic", "id": "1", "code": {"text": "x"}})
    for text in ('{"id": "1", "id": "2"}', "[1]"):
        with pytest.raises(InvalidBodyError):
            parse(text)
