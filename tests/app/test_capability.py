"""The CapabilityStatement: what it lists works, what it leaves out is refused."""

import json
from pathlib import Path

import pytest

from adapters.contract import (
    ResourceType,
)
from adapters.parameters import INCLUDES, SEARCH_PARAMETERS
from app.auth import Scope
from app.config import BASE_PATH
from tests.app.answers import body, refused
from tests.docs.pages import CHANGE, section, table
from tests.serving import HOST, Served, ids, link
from toolkit.contract.hospital import UNIT_URL

SAMPLE = Path(__file__).parents[1] / "stu3/sample-capabilitystatement.json"
PROFILES = ("full", "group-a", "group-b")

SAMPLES = {
    ("Encounter", "_id"): ("60", "60"),
    ("Encounter", "_lastUpdated"): ("lt2024-01-01", "42"),
    ("Encounter", "class"): ("REC", "27"),
    ("Encounter", "date"): ("2024-05-01", "60"),
    ("Encounter", "identifier"): ("V1", "1"),
    ("Encounter", "patient"): ("Patient/4", "65"),
    ("Encounter", "service-provider"): ("Organization/H2", "71"),
    ("Encounter", "service-provider._extension"): (f"{UNIT_URL}|0123", "6"),
    ("Encounter", "status"): ("in-progress", "65"),
    ("Patient", "_id"): ("7", "7"),
    ("Patient", "_lastUpdated"): ("2024", "10"),
    ("Patient", "birthdate"): ("2000-02-29", "3"),
    ("Patient", "family"): ("MART", "1"),
    ("Patient", "gender"): ("male", "1"),
    ("Patient", "given"): ("p j", "1"),
    ("Patient", "identifier"): ("0042", "12"),
    ("Patient", "name"): ("pau mart je", "1"),
    ("Organization", "_id"): ("H1", "H1"),
    ("Organization", "_lastUpdated"): ("2024", "H1"),
    ("Organization", "identifier"): ("0042", "042"),
    ("Organization", "name"): ("hopital", "H1"),
}
"""A value for every parameter of the table, and a resource that it finds."""

READABLE = {"Encounter": "1", "Patient": "1", "Organization": "H1"}


@pytest.fixture(params=PROFILES)
def deployment(request, served, groups):
    """Return the service as each profile offers it."""
    return served if request.param == "full" else groups[request.param]


def _resources(served):
    (rest,) = body(served.get("metadata"))["rest"]
    return {each["type"]: each for each in rest["resource"]}


def _interactions(listed):
    return {each["code"] for each in listed["interaction"]}


def test_there_is_a_sample_of_every_parameter_of_the_table():
    rows = {(str(kind), name) for kind, of in SEARCH_PARAMETERS.items() for name in of}
    assert {*SAMPLES} == rows


def test_parameters_that_are_listed_work_and_others_are_refused(deployment):
    """Decision 2."""
    resources = _resources(deployment)
    works = 0
    for (kind, name), (value, id) in SAMPLES.items():
        answers = (
            deployment.post(f"{kind}/_search", {name: value, "_count": "100"}),
            deployment.get(f"{kind}?{name}={value}&_count=100"),
        )
        listed = {each["name"] for each in resources[kind].get("searchParam", ())}
        works += name in listed
        for answer in answers:
            if name in listed:
                assert id in ids(body(answer)), (kind, name)
                assert body(answer)["total"] < 30, "the parameter was not a filter"
            elif "search-type" in _interactions(resources[kind]):
                refused(answer, 400, "not-supported", name)
            else:
                refused(answer, 404, "not-found")
    assert works >= 5


def test_includes_that_are_listed_work_and_others_are_refused(deployment):
    """Decision 36."""
    listed = _resources(deployment)["Encounter"].get("searchInclude", [])
    for name in (include.name for include in INCLUDES[ResourceType.ENCOUNTER]):
        answer = deployment.post(
            "Encounter/_search", {"_include": name, "_count": "100"}
        )
        if name in listed:
            assert "include" in {e["search"]["mode"] for e in body(answer)["entry"]}
        elif listed:
            refused(answer, 412, "value", "_include")
        else:
            refused(answer, 400, "not-supported", "_include")


def test_interactions_that_are_listed_work(deployment):
    """Decision 19: these mappings do not vouch for the time of the last change."""
    resources = _resources(deployment)
    assert set(resources) == {*READABLE, "Bundle"}
    for kind, id in READABLE.items():
        assert "read" in _interactions(resources[kind])
        assert body(deployment.get(f"{kind}/{id}"))["id"] == id
        assert resources[kind]["conditionalRead"] == "not-match"
    assert _interactions(resources["Bundle"]) == {"search-type"}
    bundle = deployment.search("Encounter", {"_count": "1"})
    assert body(deployment.get(link(bundle, "self"))) == bundle


def test_groups_offer_what_the_table_of_the_spec_says(served, groups):
    """Decision 2; spec 4.1, the columns "Available on group A" and "B"."""
    spec = section((CHANGE / "spec.md").read_text("utf-8"), "4.1 Search encounters")
    values = {name: value for (_, name), (value, _) in SAMPLES.items()}
    values |= {"_sort": "date", "_count": "5", "patient": "4", "_id": "60"}
    values["identifier"] = "V1"
    for name, _, *offered in table(spec, "Parameter"):
        assert ids(served.search("Encounter", {name: values[name]}))
        for group, text in zip(groups.values(), offered, strict=True):
            answer = group.post("Encounter/_search", {name: values[name]})
            if text == "no":
                refused(answer, 400, "not-supported", name)
            else:
                assert ids(body(answer))


def test_parameters_have_the_types_and_definitions_of_stu3(served):
    """CAP-05 CAP-06."""
    listed = {p["name"]: p for p in _resources(served)["Encounter"]["searchParam"]}
    for name, type, definition in (
        ("_id", "token", "Resource-id"),
        ("class", "token", "Encounter-class"),
        ("date", "date", "clinical-date"),
        ("identifier", "token", "clinical-identifier"),
        ("patient", "reference", "clinical-patient"),
        ("status", "token", "Encounter-status"),
    ):
        assert listed[name]["type"] == type
        assert listed[name]["definition"].endswith(f"/SearchParameter/{definition}")


def test_the_statement_is_that_of_a_read_only_stu3_service(served):
    """STU3 CapabilityStatement. CAP-01 CAP-02 CAP-03 CAP-04 CAP-07 CAP-09."""
    statement = body(served.get("metadata"))
    assert statement["resourceType"] == "CapabilityStatement"
    assert {"status", "date", "kind", "format"} <= statement.keys()
    assert statement["fhirVersion"] in ("3.0.1", "3.0.2")
    assert statement["acceptUnknown"] == "no"
    # Decision 12: what pages promise.
    assert "exactly once, forwards and backwards" in str(statement)
    assert _interactions(_resources(served)["Encounter"]) == {"read", "search-type"}
    (documentation,) = [rest["documentation"] for rest in statement["rest"]]
    assert "Europe/Paris" in documentation
    (security,) = [rest["security"] for rest in statement["rest"]]
    assert security["service"][0]["coding"] == [
        {"system": "http://hl7.org/fhir/restful-security-service", "code": "OAuth"}
    ]
    sample = json.loads(SAMPLE.read_text("utf-8"))
    left_to_the_deployment = {"id", "url", "version", "publisher"}
    assert set(sample) - left_to_the_deployment <= set(statement)
    expected = sample["rest"][0]["resource"][0]
    assert set(expected) <= set(_resources(served)["Encounter"])


def test_discovery_names_where_tokens_and_descriptions_are(make_service):
    """Decision 39: at the base URL too, and only what exists; a setting closes it."""
    token_url = "https://auth.example.org/token"
    anonymous = Served(make_service(TOKEN_URL=token_url).app)
    closed = make_service(TOKEN_URL=token_url, OPEN_METADATA="false")
    for path in ("", "/", "/.well-known/smart-configuration"):
        address = f"{BASE_PATH}{path}"
        answer = anonymous.http.get(address, base_url=HOST)
        assert answer.mimetype == "application/json"
        document = body(answer)
        assert document["token_endpoint"] == token_url
        assert document["grant_types_supported"] == ["client_credentials"]
        assert set(document["scopes_supported"]) == {"PATIENT_GAM_SEARCH", *Scope}
        for name in ("capability_statement", "openapi"):
            assert anonymous.http.get(document[name]).status_code == 200
        refused(Served(closed.app).get(path), 401, "login", "Authorization")
        assert closed.get(path).json
    refused(anonymous.get("?_id=1"), 400, "not-supported", "_id")
    statement = body(anonymous.get("metadata"))
    (zone,) = statement["_date"]["extension"]
    assert zone["valueCode"] == "Europe/Paris"
    (uris,) = statement["rest"][0]["security"]["extension"]
    assert uris["extension"] == [{"url": "token", "valueUri": token_url}]
    without = make_service()
    assert "extension" not in body(without.get("metadata"))["rest"][0]["security"]
    assert "token_endpoint" not in without.get("").json
