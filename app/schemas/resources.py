"""How a deployment's resources are written, by type."""

from collections.abc import Mapping

from marshmallow import Schema

from adapters.contract import ResourceType
from adapters.mapping.constants import Constants
from app.schemas.encounter import EncounterSchema
from app.schemas.entries import EncounterEntries, Entries
from app.schemas.organization import OrganizationSchema
from app.schemas.patient import PatientSchema


def resource_schemas(constants: Constants) -> Mapping[ResourceType, Schema]:
    """Return the schema of each resource type; build them once a deployment."""
    return {
        ResourceType.ENCOUNTER: EncounterSchema(constants),
        ResourceType.PATIENT: PatientSchema(constants),
        ResourceType.ORGANIZATION: OrganizationSchema(constants),
    }


def resource_entries(
    schemas: Mapping[ResourceType, Schema], base_url: str
) -> Mapping[ResourceType, Entries]:
    """Return what writes the entries of each resource type."""
    flat = {ResourceType.ENCOUNTER: EncounterEntries}
    return {
        kind: flat.get(kind, Entries)(schema, base_url)
        for kind, schema in schemas.items()
    }
