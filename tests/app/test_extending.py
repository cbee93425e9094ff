"""A new search parameter is one row of a table, a new element one line of a schema."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from adapters.contract import (
    ParameterCapability,
    ReferenceCriterion,
    ResourceType,
)
from adapters.federated import Part
from adapters.mapping.model import Constants
from adapters.mapping.profile import load_profile
from adapters.parameters import SEARCH_PARAMETERS, ParameterType, SearchParameter
from app.fhir.capability import capability_statement
from app.offer import Offer, compute_offer
from app.openapi import openapi
from app.search.parser import context_of, parse_search
from tests.serving import BASE_URL
from toolkit.contract.harness import ask, ids_of
from toolkit.contract.hospital import EDGES, PARIS

ENCOUNTER = ResourceType.ENCOUNTER
ROW = SearchParameter(
    "hospital",
    ParameterType.REFERENCE,
    ("organization_id",),
    "The hospital of the stay.",
    "[[`null`, serviceProvider.reference]]",
    target=ResourceType.ORGANIZATION,
)


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Return the offer of a deployment whose table has one more row."""
    rows: Any = SEARCH_PARAMETERS[ENCOUNTER]
    monkeypatch.setitem(rows, ROW.name, ROW)
    profile, capabilities = load_profile("full", Path()), EDGES.model().capabilities
    limits, source = profile.resources[ENCOUNTER], capabilities[ENCOUNTER]
    limits = replace(limits, parameters={**limits.parameters, ROW.name: 100})
    source = replace(
        source, parameters={**source.parameters, ROW.name: ParameterCapability()}
    )
    resources = {**profile.resources, ENCOUNTER: limits}
    return compute_offer(
        replace(profile, resources=resources), {**capabilities, ENCOUNTER: source}
    )


def test_parser_and_adapter_answer_a_new_parameter(offer: Offer) -> None:
    context = context_of(BASE_URL, Constants(), PARIS)
    parameters = [("hospital", "Organization/H2,Patient/1")]
    query = parse_search(parameters, offer.resources[ENCOUNTER], context).query
    assert query.criteria == (ReferenceCriterion("hospital", ("H2",)),)
    matches = [row.id for row in EDGES.records() if getattr(row, "id", None)]
    found = ids_of(EDGES.model().search(replace(query, count=100)))
    assert 0 < len(found) < len(matches)


@pytest.mark.usefixtures("offer")
def test_a_reference_to_no_patient_reaches_every_source_of_a_group() -> None:
    part = Part("pas", ENCOUNTER, EDGES.model(), prefix="a-", patients="b-")
    assert part.can_match(ask(ReferenceCriterion("hospital", ("H2",))))
    assert not part.can_match(ask(ReferenceCriterion("patient", ("a-1",))))


def test_metadata_and_openapi_describe_a_new_parameter(offer: Offer) -> None:
    statement: Any = capability_statement(
        offer, BASE_URL, "Test", date(2024, 1, 1), zone="Europe/Paris"
    )
    resources = statement["rest"][0]["resource"]
    (listed,) = (each for each in resources if each["type"] == ENCOUNTER)
    assert {
        "name": "hospital",
        "type": "reference",
        "documentation": "The hospital of the stay.",
    } in listed["searchParam"]
    described = openapi(offer, BASE_URL, "Test", {})["paths"]["/Encounter"]["get"]
    (parameter,) = (
        each for each in described["parameters"] if each["name"] == "hospital"
    )
    assert parameter["description"] == "The hospital of the stay."
    assert "pattern" in parameter["schema"]
