"""The validator is itself held: official instances pass, each broken body is refused."""

import json
from copy import deepcopy

import pytest

from tests.app.fhir.test_schemas import WHOLE
from tests.validity.client import InvalidBodyError, parse, validate
from tests.validity.stu3 import STU3, fhir_faults

STAY, PATIENT, ORGANIZATION = WHOLE.values()
ERROR = {"severity": "error", "code": "value", "location": ["http.date"]}
OUTCOME = {"resourceType": "OperationOutcome", "issue": [ERROR]}
MERGED = [{"other": {"reference": "Patient/p-2"}, "type": "replaced-by"}]
ENTRY = {
    "fullUrl": "https://example.org/fhir/v3/Encounter/e-1",
    "resource": STAY,
    "search": {"mode": "match"},
}
WARNED = {
    "fullUrl": "urn:uuid:6f1d0a52-2f7b-4c36-9a1f-5d9b6c1e8f10",
    "resource": {**OUTCOME, "issue": [{**ERROR, "severity": "warning"}]},
    "search": {"mode": "outcome"},
}
BUNDLE = {
    "resourceType": "Bundle",
    "id": "abc2",
    "type": "searchset",
    "total": 3,
    "link": [{"relation": "self", "url": "https://example.org/fhir/v3/Bundle?_id=a"}],
    "entry": [ENTRY, WARNED],
}
CAPABILITY = json.loads((STU3 / "sample-capabilitystatement.json").read_text())


def test_official_examples_and_what_the_service_writes_pass():
    for body in (STAY, PATIENT, ORGANIZATION, OUTCOME, BUNDLE, CAPABILITY):
        validate(body)
    for path in sorted((STU3 / "examples").glob("*.json")):
        assert fhir_faults(json.loads(path.read_text())) == [], path


# None removes what a path leads to, `...` is null.
BROKEN = (
    # the schema
    (STAY, "resourceType", "Stay", "no such resource type"),
    (STAY, "status", "open", "is not one of"),
    (STAY, "id", "a_b", "does not match"),
    (PATIENT, "birthDate", "31/12/1999", "does not match"),
    (BUNDLE, "entry.1.resource.issue.0.code", "deleted", "is not one of"),
    (STAY, "period.end", ..., r"\$\.period\.end: empty \(None\)"),
    (STAY, "identifier.0.value", "4\x002", r"\.value: a control character"),
    # invariants
    (STAY, "period.end", "2024-03-30T08:14:59+01:00", "per-1"),
    (PATIENT, "telecom.0.system", None, "cpt-2"),
    (ORGANIZATION, "", {"resourceType": "Organization", "id": "1"}, "org-1"),
    (CAPABILITY, "rest.0.resource.0.searchParam.1.name", "_id", "cpb-12"),
    (BUNDLE, "entry", [ENTRY, ENTRY], "bdl-7"),
    # the spec and the decisions
    (STAY, "status", "cancelled", r"spec 2\.1"),
    (STAY, "id", None, "no id"),
    (STAY, "meta.versionId", "1", "decision 19"),
    (STAY, "subject", None, "no patient"),
    (STAY, "subject.reference", "https://x.org/Patient/1", "not a reference within"),
    (STAY, "period.start", "2024-03-30", "no time with an offset"),
    (STAY, "class.code", "SS", r"spec 2\.4"),
    (STAY, "identifier.0.use", "usual", r"spec 2\.2"),
    (STAY, "identifier.0.value", "42 ", "blank at an end"),
    (STAY, "identifier.0.system", "urn:oid:1.02", "is no OID"),
    (PATIENT, "link", MERGED, "merged patient"),
    (OUTCOME, "issue.0.location", ["date"], "decision 3"),
    (BUNDLE, "total", 0, "less than the 1 matches"),
    (BUNDLE, "link", BUNDLE["link"] * 2, "not one self"),
    (BUNDLE, "link.0.relation", "first", "not one self"),
    (BUNDLE, "entry.0.fullUrl", None, "is not the address"),
    (BUNDLE, "entry.1.resource.issue.0.severity", "error", "an error within"),
    (CAPABILITY, "fhirVersion", "4.0.1", "fhirVersion"),
    (CAPABILITY, "rest.0.resource.0.interaction.0.code", "update", "read-only"),
    (STAY, "", {"resourceType": "Basic", "code": {"text": "x"}}, "not a resource of"),
)


@pytest.mark.parametrize(("body", "path", "value", "fault"), BROKEN)
def test_a_broken_body_is_refused(body, path, value, fault):
    whole = {"body": deepcopy(body)}
    node, last = whole, "body"
    for step in path.split(".") if path else ():
        node, last = node[last], int(step) if step.isdigit() else step
    if value is None:
        del node[last]
    else:
        node[last] = None if value is ... else value
    with pytest.raises(InvalidBodyError, match=fault):
        validate(whole["body"])


@pytest.mark.parametrize("text", ['{"id": "1", "id": "2"}', "[1]"])
def test_text_that_is_no_resource_is_refused(text):
    with pytest.raises(InvalidBodyError):
        parse(text)
