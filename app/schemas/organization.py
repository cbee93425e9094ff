"""Organization: a healthcare structure (spec 2 leaves its fields to STU3)."""

from adapters.contract import ResourceType
from app.schemas.datatypes import (
    ConstantField,
    EachField,
    IdentifiersField,
    MetaField,
    ReferenceField,
    ResourceSchema,
    ValueField,
    address,
    contact_point,
)


class OrganizationSchema(ResourceSchema):
    """A healthcare structure as an STU3 Organization, in the order of its definition."""

    resource_type = ConstantField("Organization", data_key="resourceType")
    id = ValueField("id")
    meta = MetaField()
    identifier = IdentifiersField("organization_identifier_type_system")
    active = ValueField("active")
    name = ValueField("name")
    telecom = EachField("telecoms", contact_point)
    address = EachField("addresses", address)
    part_of = ReferenceField(ResourceType.ORGANIZATION, "part_of", data_key="partOf")
