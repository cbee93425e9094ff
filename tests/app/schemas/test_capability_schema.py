"""CapabilityStatement: all that is offered, and nothing else."""

import dataclasses
import json
from datetime import date
from pathlib import Path
from typing import Any

import orjson

from app.schemas.capability import (
    SEARCHING,
    CapabilityFacts,
    InteractionFacts,
    ParameterFacts,
    ResourceFacts,
    capability_statement,
)
from tests.validity import validate

SAMPLE = Path(__file__).parents[2] / "stu3/sample-capabilitystatement.json"
DEFINITION = "http://hl7.org/fhir/SearchParameter/clinical-date"
FACTS = CapabilityFacts(
    base_url="https://example.org/fhir/v3",
    date=date(2024, 4, 1),
    software_version="0.1.0",
    description="The stays of one hospital",
    resources=(
        ResourceFacts(
            "Encounter",
            (
                InteractionFacts("read"),
                InteractionFacts("search-type", "POST [base]/Encounter/_search"),
            ),
            (
                ParameterFacts("date", DEFINITION, "date", "start of the stay"),
                ParameterFacts("service-provider._extension", None, "token"),
            ),
            dated=True,
        ),
        ResourceFacts("Bundle", (InteractionFacts("search-type"),)),
    ),
    security_description="Scope PATIENT_GAM_SEARCH",
)


def written(facts: CapabilityFacts) -> dict[str, Any]:
    """The statement as a client reads it, held to STU3 and the spec."""
    body: dict[str, Any] = orjson.loads(orjson.dumps(capability_statement(facts)))
    validate(body)
    return body


def test_the_whole_statement() -> None:
    assert written(FACTS) == {
        "resourceType": "CapabilityStatement",
        "name": "Encounter Information Service",
        "status": "active",
        "date": "2024-04-01",
        "kind": "instance",
        "software": {"name": "Encounter Information Service", "version": "0.1.0"},
        "implementation": {
            "description": "The stays of one hospital",
            "url": "https://example.org/fhir/v3",
        },
        "fhirVersion": "3.0.2",
        "acceptUnknown": "no",
        "format": ["application/fhir+json", "application/json", "json"],
        "rest": [
            {
                "mode": "server",
                "documentation": SEARCHING,
                "security": {
                    "cors": False,
                    "service": [
                        {
                            "coding": [
                                {
                                    "system": (
                                        "http://hl7.org/fhir/restful-security-service"
                                    ),
                                    "code": "OAuth",
                                }
                            ],
                            "text": "OAuth 2.0, bearer token",
                        }
                    ],
                    "description": "Scope PATIENT_GAM_SEARCH",
                },
                "resource": [
                    {
                        "type": "Encounter",
                        "profile": {
                            "reference": (
                                "http://hl7.org/fhir/StructureDefinition/Encounter"
                            )
                        },
                        "interaction": [
                            {"code": "read"},
                            {
                                "code": "search-type",
                                "documentation": "POST [base]/Encounter/_search",
                            },
                        ],
                        "versioning": "no-version",
                        "readHistory": False,
                        "updateCreate": False,
                        "conditionalRead": "full-support",
                        "referencePolicy": ["literal", "local"],
                        "searchParam": [
                            {
                                "name": "date",
                                "definition": DEFINITION,
                                "type": "date",
                                "documentation": "start of the stay",
                            },
                            {"name": "service-provider._extension", "type": "token"},
                        ],
                    },
                    {
                        "type": "Bundle",
                        "profile": {
                            "reference": (
                                "http://hl7.org/fhir/StructureDefinition/Bundle"
                            )
                        },
                        "interaction": [{"code": "search-type"}],
                        "versioning": "no-version",
                        "readHistory": False,
                        "updateCreate": False,
                        "conditionalRead": "not-supported",
                        "referencePolicy": ["literal", "local"],
                    },
                ],
            }
        ],
    }


def test_it_says_what_the_sample_statement_says() -> None:
    sample = json.loads(SAMPLE.read_text())
    written_now = written(FACTS)
    left_to_the_deployment = {"id", "url", "version", "publisher"}
    assert set(sample) - left_to_the_deployment <= set(written_now)
    resource, expected = (
        body["rest"][0]["resource"][0] for body in (written_now, sample)
    )
    assert set(expected) <= set(resource)


def test_reads_that_tell_no_time_of_change_take_a_digest_only() -> None:
    read = ResourceFacts("Patient", (InteractionFacts("read"),))
    facts = dataclasses.replace(FACTS, resources=(read,))
    (patient,) = written(facts)["rest"][0]["resource"]
    assert patient["conditionalRead"] == "not-match"
