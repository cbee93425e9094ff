"""The OpenAPI description: it accepts what the service accepts, and predicts its responses."""

import json
from collections.abc import Sequence
from importlib.metadata import version

import pytest
from jsonschema import Draft4Validator
from openapi_spec_validator import validate
from werkzeug.datastructures import MultiDict

from adapters.contract import ResourceType
from adapters.mapping.profile import PROFILES
from app.auth import Scope
from app.cli import main
from app.error_responses import CONTENT_TYPE
from tests.app.answers import refused
from tests.hospital_sql import mapping_text
from tests.serving import BASE_URL, FORM, Params, Served
from toolkit.contract.hospital import EDGES, UNIT_URL

UNIT = "service-provider._extension"
STATUS = "http://hl7.org/fhir/encounter-status"

GOOD: Sequence[tuple[str, Params]] = [
    ("Encounter", {"patient": f"Patient/4,2,{BASE_URL}/Patient/3"}),
    ("Encounter", [("date", "ge2024-01-01"), ("date", "lt2025")]),
    ("Encounter", {"date": "lt2024-05-01T10:00:00.123Z,2024-05"}),
    ("Encounter", {"identifier": r"V1,urn:x|V2,urn:x|,|V\,3"}),
    ("Encounter", {"status": f"planned,{STATUS}|finished,{STATUS}|"}),
    ("Encounter", {UNIT: f"{UNIT_URL}|0123,{UNIT_URL}|0124"}),
    ("Encounter", {"_sort": "-date,-_id"}),
    ("Patient", {"name:contains": "art", "family": "martin,durand"}),
    ("Patient", {"gender": "female,other", "identifier": "urn:x|1,2"}),
]

BAD: Sequence[tuple[str, Params]] = [
    ("Encounter", {"_id": ",".join(map(str, range(11)))}),
    ("Encounter", [("date", "2024")] * 11),
    ("Encounter", {"patient": "Patient/4/5"}),
    ("Encounter", {"date": "2024-13"}),
    ("Encounter", {UNIT: "0123"}),
    ("Encounter", {"_sort": "date,-_id"}),
    ("Encounter", {"status:not": "planned"}),
    ("Patient", {"birthdate": "1980-01-01T10:00"}),
    ("Patient", {"gender": "M"}),
]

OF_GROUPS: Sequence[tuple[str, Params]] = [
    ("Encounter", {"date": "2024,2025"}),
    ("Encounter", [("date", "ge2024"), ("date", "lt2025")]),
]


def described(service):
    """Return the description that a service serves."""
    return service.get("openapi.json").get_json()


def is_described(description, kind, params):
    """Whether a description takes a search, by GET and by POST."""
    paths = description["paths"]
    form = paths[f"/{kind}/_search"]["post"]["requestBody"]["content"][FORM]["schema"]
    listed = paths[f"/{kind}"]["get"]["parameters"]
    query = {each["name"]: each["schema"] for each in listed if each["in"] == "query"}
    assert query.keys() == form["properties"].keys()
    for name, schema in query.items():
        assert schema.items() <= form["properties"][name].items()
    # As a generated client holds them.
    values = {}
    for name, texts in MultiDict(params).to_dict(flat=False).items():
        is_list = len(texts) > 1 or query.get(name, {}).get("type") == "array"
        values[name] = texts if is_list else texts[0]
    return Draft4Validator(form).is_valid(values)


def test_what_the_service_accepts_is_described_and_nothing_else(served, groups):
    """Decision 3: groups take one date."""
    for service, searches, accepted in (
        (served, GOOD, True),
        (served, BAD, False),
        (groups["group-a"], OF_GROUPS, False),
    ):
        description = described(service)
        for kind, params in searches:
            status = service.post(f"{kind}/_search", params).status_code
            assert status in ((200,) if accepted else (400, 412)), params
            assert is_described(description, kind, params) == accepted, params


@pytest.mark.parametrize("profile", PROFILES)
def test_the_description_is_openapi_of_what_the_profile_offers(profile, served, groups):
    """Decisions 2 and 21: an error lists the parameters that are described."""
    service = served if profile == "full" else groups[profile]
    description = described(service)
    validate(description)
    assert ("/Organization" in description["paths"]) == (profile == "full")
    challenge, retry = {"WWW-Authenticate"}, {"Retry-After"}
    named = {"401": challenge, "403": challenge, "429": retry, "503": retry}
    for path, methods in description["paths"].items():
        if get := methods.get("get"):
            answer = service.get(f"{path.replace('{id}', '1')}?foo=1")
            text = refused(answer, 400, "not-supported", "foo")
            offered = text.partition("Offered are: ")[2].removesuffix(".")
            names = {p["name"] for p in get["parameters"] if p["in"] == "query"}
            assert {n for n in names if ":" not in n} == {*offered.split(", ")}
        for operation in methods.values():
            assert "OperationOutcome" in str(operation["responses"]["default"])
            for status, response in operation["responses"].items():
                headers = {"X-Request-Id", *named.get(status, ())}
                assert headers <= response["headers"].keys()


def closed(node):
    """Return a schema that allows no element but those that it names."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    more = {"additionalProperties": False} if node.get("type") == "object" else {}
    return {**{name: closed(value) for name, value in node.items()}, **more}


@pytest.mark.parametrize("kind", ResourceType)
def test_every_element_that_is_served_is_named(kind, served):
    description = described(served)
    components = closed(description["components"])

    def check(response, body):
        schema = response["content"][CONTENT_TYPE]["schema"]
        Draft4Validator({**schema, "components": components}).validate(body)

    paths = description["paths"]
    read = paths[f"/{kind}/{{id}}"]["get"]["responses"]
    # A search of Patient needs a criterion.
    criteria = {"gender": "male,female"} if kind is ResourceType.PATIENT else {}
    for selection in ({}, {"_summary": "text"}):
        bundle = served.search(kind, {"_count": "100", **criteria, **selection})
        check(paths[f"/{kind}"]["get"]["responses"]["200"], bundle)
        for entry in bundle["entry"]:
            if entry["resource"]["resourceType"] == kind:
                check(read["200"], entry["resource"])
    check(read["404"], served.get(f"{kind}/none").json)


def test_a_deployment_serves_its_description(served, make_service):
    """It is as open as the CapabilityStatement (decision 22)."""
    anonymous = Served(served.app)
    description = described(anonymous)
    validate(description)
    assert description["servers"] == [{"url": BASE_URL}]
    assert description["info"]["version"] == version("encounters")
    assert description["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    token_url = "https://login.example.org/token"
    closed = make_service(OPEN_METADATA="false", TOKEN_URL=token_url)
    refused(Served(closed.app).get("openapi.json"), 401, "login", "Authorization")
    (scheme,) = described(closed)["components"]["securitySchemes"].values()
    flow = scheme["flows"]["clientCredentials"]
    assert flow["tokenUrl"] == token_url
    assert flow["scopes"].keys() == {"PATIENT_GAM_SEARCH", *Scope}


def test_the_command_prints_what_a_deployment_serves_without_its_source(
    served, tmp_path, monkeypatch, capsys
):
    monkeypatch.delenv("PAS_URL", raising=False)
    monkeypatch.setenv("ENCOUNTERS_BASE_URL", BASE_URL)
    file = tmp_path / "without-address.yaml"
    file.write_text(mapping_text(EDGES), "utf-8")
    monkeypatch.setenv("ENCOUNTERS_MAPPING", str(file))
    assert main(["openapi"]) == 0
    assert json.loads(capsys.readouterr().out) == described(served)
    monkeypatch.setenv("ENCOUNTERS_BASE_URL", "nonsense")
    assert main(["openapi"]) == 2
    assert "ENCOUNTERS_BASE_URL" in capsys.readouterr().err
