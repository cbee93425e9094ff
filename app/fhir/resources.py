"""The schemas of a deployment's resources, by type."""

from collections.abc import Mapping

from marshmallow import Schema

from adapters.contract import ResourceType
from adapters.mapping.model import Constants
from app.fhir.encounter import encounter_schema
from app.fhir.organization import organization_schema
from app.fhir.patient import patient_schema


def resource_schemas(constants: Constants) -> Mapping[ResourceType, Schema]:
    """Return the schema of each resource type; build them once per deployment."""
    return {
        ResourceType.ENCOUNTER: encounter_schema(constants),
        ResourceType.PATIENT: patient_schema(constants),
        ResourceType.ORGANIZATION: organization_schema(constants),
    }
