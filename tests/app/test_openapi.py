"""The OpenAPI description: it takes what the service takes, and says what comes back."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from adapters.contract import Limit, ParameterCapability, Prefix, ResourceType
from adapters.mapping.profile import PROFILES, load_profile
from adapters.testing.hospital import UNIT_URL
from adapters.testing.stays import EDGES
from app.capabilities import OfferedParameter, compute_offer
from app.openapi import openapi
from app.openapi_parameters import search_parameters
from app.parameters import SEARCH_PARAMETERS
from tests.app.answers import refused
from tests.serving import BASE_URL, FORM, Params, Served

UNIT = "service-provider._extension"
STATUS = "http://hl7.org/fhir/encounter-status"

GOOD: Sequence[tuple[str, Params]] = [
    ("Encounter", {"_id": "1,2,6"}),
    ("Encounter", {"_id": ",".join("123456789") + ",10"}),
    ("Encounter", {"patient": f"Patient/4,2,{BASE_URL}/Patient/3"}),
    ("Encounter", {"patient": "Group/4,urn:uuid:1,https://else.example/Patient/1"}),
    ("Encounter", [("date", "ge2024-01-01"), ("date", "lt2025")]),
    ("Encounter", {"date": "2024-05-01T10:00"}),
    ("Encounter", {"date": "ge2024-05-01T10:00:00+02:00"}),
    ("Encounter", {"date": "lt2024-05-01T10:00:00.123Z,2024-05"}),
    ("Encounter", {"identifier": r"V1,urn:x|V2,urn:x|,|V\,3"}),
    ("Encounter", {"status": f"planned,{STATUS}|finished,{STATUS}|"}),
    ("Encounter", {"class": "EMER,IMP"}),
    ("Encounter", {UNIT: f"{UNIT_URL}|0123,{UNIT_URL}|0124"}),
    ("Encounter", {"_elements": "status,period", "_pretty": "true"}),
    ("Encounter", {"_format": "application/fhir+json", "_sort": "-_lastUpdated"}),
    ("Patient", {"name:contains": "art", "family": "martin,durand"}),
    ("Patient", [("name", "jean"), ("name", "martin")]),
    ("Patient", [("birthdate", "ge1980"), ("birthdate", "lt1990-06-02")]),
    ("Patient", {"gender": "female,other", "identifier": "urn:x|1,2"}),
    ("Organization", {"name:exact": "CHU", "_count": "100"}),
]
BAD: Sequence[tuple[str, Params]] = [
    ("Encounter", {"_id": ",".join(map(str, range(11)))}),
    ("Encounter", {"_id": "1,"}),
    ("Encounter", {"_id": "a/b"}),
    ("Encounter", [("date", "2024")] * 11),
    ("Encounter", {"patient": "Patient/4/5"}),
    ("Encounter", {"patient": "patient/4"}),
    ("Encounter", {"patient": "4,"}),
    ("Encounter", {"date": "2024-13"}),
    ("Encounter", {"date": "2024-05-01T10"}),
    ("Encounter", {"date": "2024-05-01T10:00 01:00"}),
    ("Encounter", {"date": "sa2024"}),
    ("Encounter", {"status": "arrived"}),
    ("Encounter", {"status": "planned,"}),
    ("Encounter", {"status": "a|b|planned"}),
    ("Encounter", {"class": "emer"}),
    ("Encounter", {UNIT: "0123"}),
    ("Encounter", {"_elements": "status,"}),
    ("Encounter", {"_elements": "start"}),
    ("Encounter", {"_count": "101"}),
    ("Encounter", {"_sort": "date,_id"}),
    ("Encounter", {"status:not": "planned"}),
    ("Encounter", {"length": "3"}),
    ("Patient", {"birthdate": "1980-01-01T10:00"}),
    ("Patient", {"gender": "M"}),
    ("Patient", {"gender:exact": "male"}),
]


def described(profile: str) -> Any:
    """Return the description of a deployment of the edge-case hospital."""
    offer = compute_offer(load_profile(profile, Path()), EDGES.model().capabilities)
    return openapi(offer, BASE_URL, "Edge cases")


def is_described(told: Any, kind: str, params: Params) -> bool:
    """Whether a description takes a search, by GET and by POST."""
    search, form = told["paths"][f"/{kind}"], told["paths"][f"/{kind}/_search"]
    by_form = form["post"]["requestBody"]["content"][FORM]["schema"]
    taken = {
        each["name"]: each["schema"]
        for each in search["get"]["parameters"]
        if each["in"] == "query"
    }
    asked = _asked(taken, params)
    found = asked.keys() <= taken.keys() and all(
        Draft4Validator(taken[name]).is_valid(value) for name, value in asked.items()
    )
    assert found == Draft4Validator(by_form).is_valid(asked)
    return found


def _asked(taken: Mapping[str, Any], params: Params) -> dict[str, Any]:
    """Return the values as a generated client holds them."""
    pairs = sorted(params.items() if isinstance(params, Mapping) else params)
    asked: dict[str, Any] = {}
    for name, group in groupby(pairs, lambda pair: pair[0]):
        values = [text for _, text in group]
        match taken.get(name, {}).get("type"):
            case "array":
                asked[name] = values
            case "integer":
                asked[name] = int(values[0])
            case _:
                asked[name] = values[0] if len(values) == 1 else values
    return asked


@pytest.mark.parametrize(("kind", "params"), GOOD)
def test_what_the_service_takes_is_described(
    kind: str, params: Params, served: Served
) -> None:
    assert served.search(kind, params)["resourceType"] == "Bundle"
    assert is_described(described("full"), kind, params)


@pytest.mark.parametrize(("kind", "params"), BAD)
def test_what_the_service_refuses_is_not_described(
    kind: str, params: Params, served: Served
) -> None:
    assert served.post(f"{kind}/_search", params).status_code in (400, 412)
    assert not is_described(described("full"), kind, params)


@pytest.mark.parametrize("group", ["a", "b"])
def test_groups_take_one_date(group: str, groups: Mapping[str, Served]) -> None:
    told = described(f"group-{group}")
    for params, fine in (
        ({"date": "ge2024-05"}, True),
        ({"date": "2024,2025"}, False),
        ([("date", "ge2024"), ("date", "lt2025")], False),
    ):
        status = groups[f"group-{group}"].post("Encounter/_search", params).status_code
        assert (status == 200, is_described(told, "Encounter", params)) == (fine, fine)


def test_a_source_that_compares_less_is_described_so() -> None:
    able = ParameterCapability(frozenset({Prefix.EQ, Prefix.GE}), finest=Limit.DAY)
    full = compute_offer(load_profile("full", Path()), EDGES.model().capabilities)
    offer = full.resources[ResourceType.ENCOUNTER]
    changed = {**offer.parameters, "date": OfferedParameter("date", 10, able)}
    (date,) = [
        each["schema"]["items"]
        for each in search_parameters(replace(offer, parameters=changed))
        if each["name"] == "date"
    ]
    takes = Draft4Validator(date).is_valid
    assert takes("2024-05-01")
    assert takes("ge2024")
    assert not takes("ne2024")
    assert not takes("2024-05-01T10:00")


@pytest.mark.parametrize("profile", PROFILES)
def test_what_is_offered_where_something_else_is_asked_is_described(
    profile: str, served: Served, groups: Mapping[str, Served]
) -> None:
    service = served if profile == "full" else groups[profile]
    for path, each in described(profile)["paths"].items():
        if "get" not in each:
            continue
        names = {p["name"] for p in each["get"]["parameters"] if p["in"] == "query"}
        answer = service.get(f"{path.replace('{id}', '1')}?foo=1")
        text = refused(answer, 400, "not-supported", "foo")
        offered = text.partition("Offered are: ")[2].removesuffix(".").split(", ")
        assert {name for name in names if ":" not in name} == {*offered}


def test_every_operation_has_a_name_and_says_what_a_failure_is() -> None:
    told = described("full")
    operations = [op for each in told["paths"].values() for op in each.values()]
    names = [each["operationId"] for each in operations]
    assert len(names) == len({*names}) == len(operations)
    for each in operations:
        assert "OperationOutcome" in str(each["responses"]["default"])
        for status, response in each["responses"].items():
            named = {401: "WWW-Authenticate", 403: "WWW-Authenticate"} | {
                429: "Retry-After",
                503: "Retry-After",
            }
            wanted = {"X-Request-Id"}
            if status.isdigit() and int(status) in named:
                wanted.add(named[int(status)])
            assert wanted <= response["headers"].keys()


def test_what_only_some_reads_have_is_said_of_those() -> None:
    told = described("full")["paths"]
    for kind in SEARCH_PARAMETERS:
        read = told[f"/{kind}/{{id}}"]["get"]
        names = {each["name"] for each in read["parameters"]}
        assert "If-None-Match" in names
        assert ("If-Modified-Since" in names) == (
            "Last-Modified" in read["responses"]["200"]["headers"]
        )
        assert not read["responses"]["304"].get("content")


def test_patterns_are_those_of_every_language() -> None:
    # ECMA 262 knows neither possessive quantifiers nor inline flags nor named groups so.
    for pattern in re.findall(r"'pattern': (['\"])(.*?)\1", str(described("full"))):
        assert not re.search(r"\(\?[^:]|[*+?}]\+", pattern[1])
