"""Organization: a healthcare structure (spec 2 leaves its fields to STU3)."""

from marshmallow import Schema

from adapters.contract import ResourceType
from adapters.mapping.model import Constants
from app.fhir.datatypes import (
    address,
    constant_field,
    contact_point,
    identifiers_field,
    list_field,
    meta_field,
    reference_field,
    value_field,
)


def organization_schema(constants: Constants) -> Schema:
    """Return the schema of an STU3 Organization, in the order of its definition."""
    type_system = constants.organization_identifier_type_system
    return Schema.from_dict(
        {
            "resourceType": constant_field("Organization"),
            "id": value_field("id"),
            "meta": meta_field(),
            "identifier": identifiers_field(type_system),
            "active": value_field("active"),
            "name": value_field("name"),
            "telecom": list_field("telecoms", contact_point),
            "address": list_field("addresses", address),
            "partOf": reference_field(ResourceType.ORGANIZATION, "part_of"),
        }
    )()
