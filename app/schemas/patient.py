"""Patient: a patient's administrative profile (spec 2 leaves its fields to STU3)."""

from marshmallow import missing

from adapters.contract import PatientRecord, ResourceType
from app.schemas.datatypes import (
    ConstantField,
    EachField,
    ElementField,
    IdentifiersField,
    MetaField,
    ReferenceField,
    ResourceSchema,
    ValueField,
    address,
    contact_point,
    human_name,
    reference,
)


class ActiveField(ElementField):
    """`active`: a patient whose record was merged into another is not (decision 9)."""

    def write(self, record: PatientRecord) -> object:
        """Return what the record says, false for a merged one."""
        if record.replaced_by:
            return False
        return missing if record.active is None else record.active


class DeceasedBooleanField(ElementField):
    """`deceasedBoolean`: left out when the time of death is known."""

    def write(self, record: PatientRecord) -> object:
        """Return whether the patient has died, when only that is known."""
        if record.deceased is None or record.deceased_at is not None:
            return missing
        return record.deceased


class ReplacedByField(ElementField):
    """`link`: where a merged patient's record went."""

    def write(self, record: PatientRecord) -> object:
        """Return a link to the surviving patient."""
        if not record.replaced_by:
            return missing
        survivor = reference(ResourceType.PATIENT, record.replaced_by)
        return [{"other": survivor, "type": "replaced-by"}]


class PatientSchema(ResourceSchema):
    """A patient as an STU3 Patient, in the order of its definition."""

    resource_type = ConstantField("Patient", data_key="resourceType")
    id = ValueField("id")
    meta = MetaField()
    identifier = IdentifiersField("patient_identifier_type_system")
    active = ActiveField()
    name = EachField("names", human_name)
    telecom = EachField("telecoms", contact_point)
    gender = ValueField("gender")
    birth_date = ValueField("birth_date", data_key="birthDate")
    deceased_boolean = DeceasedBooleanField(data_key="deceasedBoolean")
    deceased_date_time = ValueField("deceased_at", data_key="deceasedDateTime")
    address = EachField("addresses", address)
    managing_organization = ReferenceField(
        ResourceType.ORGANIZATION, "organization_id", data_key="managingOrganization"
    )
    link = ReplacedByField()
