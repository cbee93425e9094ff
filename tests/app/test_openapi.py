"""The OpenAPI description: it accepts what the service accepts, and predicts its responses."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy
from jsonschema import Draft4Validator
from openapi_spec_validator import validate
from schemathesis import Case, GenerationMode

from adapters.contract import Limit, ParameterCapability, Prefix, ResourceType
from adapters.mapping.profile import PROFILES, load_profile
from adapters.parameters import SEARCH_PARAMETERS
from app.auth import Scope
from app.error_responses import CONTENT_TYPE
from app.offer import compute_offer
from app.openapi import openapi, search_parameters
from app.service import EXTENSION
from tests.app.answers import refused
from tests.app.conftest import MakeService
from tests.serving import BASE_URL, FORM, Params, Served, link, relations
from toolkit.contract.hospital import EDGES, UNIT_URL

UNIT = "service-provider._extension"
STATUS = "http://hl7.org/fhir/encounter-status"

GOOD: Sequence[tuple[str, Params]] = [
    ("Encounter", {"_id": ",".join("123456789") + ",10"}),
    ("Encounter", {"patient": f"Patient/4,2,{BASE_URL}/Patient/3"}),
    ("Encounter", {"patient": "Group/4,urn:uuid:1,https://else.example/Patient/1"}),
    ("Encounter", [("date", "ge2024-01-01"), ("date", "lt2025")]),
    ("Encounter", {"date": "ge2024-05-01T10:00:00+02:00"}),
    ("Encounter", {"date": "lt2024-05-01T10:00:00.123Z,2024-05"}),
    ("Encounter", {"identifier": r"V1,urn:x|V2,urn:x|,|V\,3"}),
    ("Encounter", {"status": f"planned,{STATUS}|finished,{STATUS}|"}),
    ("Encounter", {"class": "EMER,IMP"}),
    ("Encounter", {UNIT: f"{UNIT_URL}|0123,{UNIT_URL}|0124"}),
    ("Encounter", {"_format": "application/fhir+json", "_sort": "-_lastUpdated"}),
    ("Encounter", {"_sort": "-date,-_id"}),
    ("Patient", {"name:contains": "art", "family": "martin,durand"}),
    ("Patient", [("name", "jean"), ("name", "martin")]),
    ("Patient", {"gender": "female,other", "identifier": "urn:x|1,2"}),
]

BAD: Sequence[tuple[str, Params]] = [
    ("Encounter", {"_id": ",".join(map(str, range(11)))}),
    ("Encounter", {"_id": "a/b"}),
    ("Encounter", [("date", "2024")] * 11),
    ("Encounter", {"patient": "Patient/4/5"}),
    ("Encounter", {"date": "2024-13"}),
    ("Encounter", {"date": "2024-05-01T10"}),
    ("Encounter", {"date": "sa2024"}),
    ("Encounter", {"status": "arrived"}),
    ("Encounter", {"status": "a|b|planned"}),
    ("Encounter", {"class": "emer"}),
    ("Encounter", {UNIT: "0123"}),
    ("Encounter", {"_elements": "start"}),
    ("Encounter", {"_count": "101"}),
    ("Encounter", {"_sort": "date,-_id"}),
    ("Encounter", {"status:not": "planned"}),
    ("Patient", {"birthdate": "1980-01-01T10:00"}),
    ("Patient", {"gender": "M"}),
]

GOOD_OF_GROUPS = [("Encounter", {"date": "ge2024-05"})]
BAD_OF_GROUPS: Sequence[tuple[str, Params]] = [
    ("Encounter", {"date": "2024,2025"}),
    ("Encounter", [("date", "ge2024"), ("date", "lt2025")]),
]


@cache
def described(profile: str) -> Any:
    """Return the description of a deployment of the edge-case hospital."""
    offer = compute_offer(load_profile(profile, Path()), EDGES.model().capabilities)
    return openapi(offer, BASE_URL, "Edge cases", {})


def is_described(description: Any, kind: str, params: Params) -> bool:
    """Whether a description takes a search, by GET and by POST."""
    paths = description["paths"]
    search, form = paths[f"/{kind}"], paths[f"/{kind}/_search"]
    by_form = form["post"]["requestBody"]["content"][FORM]["schema"]
    schemas = {
        each["name"]: each["schema"]
        for each in search["get"]["parameters"]
        if each["in"] == "query"
    }
    values_by_name = _values(schemas, params)
    accepted = values_by_name.keys() <= schemas.keys() and all(
        Draft4Validator(schemas[name]).is_valid(value)
        for name, value in values_by_name.items()
    )
    assert accepted == Draft4Validator(by_form).is_valid(values_by_name)
    return accepted


def _values(schemas: Mapping[str, Any], params: Params) -> dict[str, Any]:
    """Return the values as a generated client holds them."""
    pairs = sorted(params.items() if isinstance(params, Mapping) else params)
    values_by_name: dict[str, Any] = {}
    for name, group in groupby(pairs, lambda pair: pair[0]):
        values = [text for _, text in group]
        match schemas.get(name, {}).get("type"):
            case "array":
                values_by_name[name] = values
            case "integer":
                values_by_name[name] = int(values[0])
            case _:
                values_by_name[name] = values[0] if len(values) == 1 else values
    return values_by_name


def test_what_the_service_accepts_is_described_and_nothing_else(
    served: Served, groups: Mapping[str, Served]
) -> None:
    """Decision 3: groups take one date."""
    for profile, service, searches, accepted in (
        ("full", served, GOOD, True),
        ("full", served, BAD, False),
        *((name, group, GOOD_OF_GROUPS, True) for name, group in groups.items()),
        *((name, group, BAD_OF_GROUPS, False) for name, group in groups.items()),
    ):
        for kind, params in searches:
            status = service.post(f"{kind}/_search", params).status_code
            assert status in ((200,) if accepted else (400, 412)), params
            assert is_described(described(profile), kind, params) == accepted, params


def test_a_source_that_compares_less_is_described_so() -> None:
    """Decision 5."""
    able = ParameterCapability(frozenset({Prefix.EQ, Prefix.GE}), finest=Limit.DAY)
    full = compute_offer(load_profile("full", Path()), EDGES.model().capabilities)
    offer = full.resources[ResourceType.ENCOUNTER]
    date = replace(offer.parameters["date"], capability=able)
    parameters = {**offer.parameters, "date": date}
    described = search_parameters(replace(offer, parameters=parameters))
    schema = next(
        each["schema"]["items"] for each in described if each["name"] == "date"
    )
    for value, accepted in (
        ("2024-05-01", True),
        ("ge2024", True),
        ("ne2024", False),
        ("2024-05-01T10:00", False),
    ):
        assert Draft4Validator(schema).is_valid(value) == accepted


@pytest.mark.parametrize("profile", PROFILES)
def test_the_description_is_openapi_of_what_the_profile_offers(
    profile: str, served: Served, groups: Mapping[str, Served]
) -> None:
    """Decision 2: an error lists the parameters that are described."""
    service = served if profile == "full" else groups[profile]
    offer = service.app.extensions[EXTENSION].offer
    description = openapi(offer, BASE_URL, "Edge cases", {})
    validate(description)
    assert ("/Organization" in description["paths"]) == (profile == "full")
    for path, methods in description["paths"].items():
        for name, operation in methods.items():
            if name == "get":
                names = {
                    p["name"] for p in operation["parameters"] if p["in"] == "query"
                }
                answer = service.get(f"{path.replace('{id}', '1')}?foo=1")
                text = refused(answer, 400, "not-supported", "foo")
                offered = text.partition("Offered are: ")[2].removesuffix(".")
                plain = {name for name in names if ":" not in name}
                assert plain == {*offered.split(", ")}


def test_the_page_operation_takes_each_link_as_it_is(served: Served) -> None:
    paths = described("full")["paths"]
    first = served.search("Encounter", {"_count": "2"})
    second = served.follow(first, "next")
    for bundle in (first, second):
        for relation in relations(bundle):
            path, query = link(bundle, relation).removeprefix(BASE_URL).split("?")
            parameters = {p["name"]: p for p in paths[path]["get"]["parameters"]}
            sent = dict(parse_qsl(query, strict_parsing=True))
            assert sent.keys() <= parameters.keys()
            for name, text in sent.items():
                assert Draft4Validator(parameters[name]["schema"]).is_valid(text)


def test_every_operation_has_a_name_and_describes_failures() -> None:
    """Decision 21."""
    challenge, retry = {"WWW-Authenticate"}, {"Retry-After"}
    named = {"401": challenge, "403": challenge, "429": retry, "503": retry}
    paths = described("full")["paths"]
    operations = [operation for each in paths.values() for operation in each.values()]
    assert len({each["operationId"] for each in operations}) == len(operations)
    for operation in operations:
        assert "OperationOutcome" in str(operation["responses"]["default"])
        for status, response in operation["responses"].items():
            headers = {"X-Request-Id", *named.get(status, ())}
            assert headers <= response["headers"].keys()
    for kind in SEARCH_PARAMETERS:
        read = paths[f"/{kind}/{{id}}"]["get"]
        names = {each["name"] for each in read["parameters"]}
        assert "If-None-Match" in names
        dated = "Last-Modified" in read["responses"]["200"]["headers"]
        assert ("If-Modified-Since" in names) == dated
        assert not read["responses"]["304"].get("content")


def closed(node: Any) -> Any:
    """Return a schema that allows no element but those that it names."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    more = {"additionalProperties": False} if node.get("type") == "object" else {}
    return {**{name: closed(value) for name, value in node.items()}, **more}


@pytest.mark.parametrize("kind", ResourceType)
def test_every_element_that_is_served_is_named(
    kind: ResourceType, served: Served
) -> None:
    description = described("full")
    components = closed(description["components"])

    def check(schema: Any, body: Any) -> None:
        Draft4Validator({**schema, "components": components}).validate(body)

    paths = description["paths"]
    read = paths[f"/{kind}/{{id}}"]["get"]["responses"]
    search = paths[f"/{kind}"]["get"]["responses"]
    # A search of Patient needs a criterion.
    genders = "male,female,other,unknown"
    criteria = {"gender": genders} if kind is ResourceType.PATIENT else {}
    for selection in ({}, {"_summary": "text"}, {"_elements": "id"}):
        query = {"_count": "100", **criteria, **selection}
        bundle = served.search(kind, query)
        check(search["200"]["content"][CONTENT_TYPE]["schema"], bundle)
        resources = [entry["resource"] for entry in bundle["entry"]]
        for resource in resources:
            if resource["resourceType"] == kind:
                check(read["200"]["content"][CONTENT_TYPE]["schema"], resource)
    check(
        read["404"]["content"][CONTENT_TYPE]["schema"], served.get(f"{kind}/none").json
    )


@pytest.mark.parametrize("kind", ResourceType)
def test_the_elements_are_those_of_the_schema_that_writes_them(
    kind: ResourceType, served: Served
) -> None:
    writes = served.app.extensions[EXTENSION].schemas[kind].dump_fields
    described_here = described("full")["components"]["schemas"][kind]["properties"]
    assert described_here.keys() == {f.data_key or name for name, f in writes.items()}


def test_each_parameter_has_an_example() -> None:
    offer = compute_offer(load_profile("full", Path()), EDGES.model().capabilities)
    for offered in offer.resources.values():
        for parameter in search_parameters(offered):
            if parameter["name"].partition(":")[0] in offered.parameters:
                schema = parameter["schema"].get("items", parameter["schema"])
                Draft4Validator(schema).validate(schema["example"])


EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "15"))
"""How many requests each operation gets in each mode (`make fuzz` sets it)."""

generated = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def try_generated(
    strategy: SearchStrategy[Case], check: Callable[[Case], None]
) -> None:
    """Check as many generated requests as `EXAMPLES` says."""

    @generated
    @given(strategy)
    def request(case: Case) -> None:
        check(case)

    request()


REFUSALS = {200, 304, 400, 401, 404, 405, 406, 410, 412, 413, 415, 422}


@pytest.mark.extended
@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_answer_is_one_that_is_described(
    profile: str, mode: GenerationMode, served: Served, groups: Mapping[str, Served]
) -> None:
    """Requests generated from the description, valid and invalid ones."""
    service = served if profile == "full" else groups[profile]
    description = described(profile)
    invalid = mode is GenerationMode.NEGATIVE

    def check(case: Case, known: Mapping[str, Any]) -> None:
        answer = send(service, case, with_its_headers=False)
        # An invalid path or method is another operation's.
        assert invalid or str(answer.status_code) in known
        assert answer.status_code not in (500, 501, 504)
        assert answer.headers["X-Request-Id"]
        if invalid:
            again = send(service, case, with_its_headers=True)
            assert again.status_code in REFUSALS

    for path, methods in description["paths"].items():
        for method, described_operation in methods.items():
            operation = schemathesis.openapi.from_dict(description)[path][method]
            strategy = operation.as_strategy(generation_mode=mode)
            known = described_operation["responses"]
            try_generated(strategy, partial(check, known=known))


def send(service: Served, case: Case, *, with_its_headers: bool) -> Any:
    """Send a generated request; the client validates every response."""
    headers = dict(case.headers or {}) if with_its_headers else {}
    if not all(_is_sendable(name, text) for name, text in headers.items()):
        headers = {}
    is_form = isinstance(case.body, dict)
    return service.http.open(
        f"/fhir/v3{case.formatted_path}",
        method=case.method,
        query_string=_texts(case.query),
        data=_texts(case.body) if is_form else None,
        content_type=case.media_type if is_form else None,
        headers={**service.headers, **headers},
        base_url="https://encounters.example.org",
    )


def _texts(parameters: Any) -> dict[str, Any]:
    return {
        str(name): [*map(str, value)] if isinstance(value, list) else str(value)
        for name, value in dict(parameters or {}).items()
    }


def _is_sendable(name: str, text: object) -> bool:
    """Whether the client can send a header at all."""
    return name.isascii() and f"{name}{text}".isprintable() and ":" not in name


def test_a_deployment_serves_its_description(
    served: Served, make_service: MakeService
) -> None:
    """It is as open as the CapabilityStatement (decision 22)."""
    anonymous = Served(served.app)
    description = anonymous.get("openapi.json").get_json()
    validate(description)
    assert description["servers"] == [{"url": BASE_URL}]
    assert description["info"]["version"] == version("encounters")
    assert description["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    token_url = "https://login.example.org/token"
    closed = make_service(OPEN_METADATA="false", TOKEN_URL=token_url)
    refused(Served(closed.app).get("openapi.json"), 401, "login", "Authorization")
    (scheme,) = (
        closed.get("openapi.json").get_json()["components"]["securitySchemes"].values()
    )
    flow = scheme["flows"]["clientCredentials"]
    assert flow["tokenUrl"] == token_url
    assert flow["scopes"].keys() == {"PATIENT_GAM_SEARCH", *Scope}
