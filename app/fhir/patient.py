"""Patient: a patient's administrative profile (spec 2 leaves its fields to STU3)."""

from marshmallow import Schema, fields, missing

from adapters.contract import PatientRecord, ResourceType
from adapters.mapping.model import Constants
from app.fhir.datatypes import (
    address,
    constant_field,
    contact_point,
    human_name,
    identifiers_field,
    list_field,
    meta_field,
    reference,
    reference_field,
    value_field,
)


def patient_schema(constants: Constants) -> Schema:
    """Return the schema of an STU3 Patient, in the order of its definition."""
    organization = reference_field(ResourceType.ORGANIZATION, "organization_id")
    return Schema.from_dict(
        {
            "resourceType": constant_field("Patient"),
            "id": value_field("id"),
            "meta": meta_field(),
            "identifier": identifiers_field(constants.patient_identifier_type_system),
            "active": fields.Function(_active),
            "name": list_field("names", human_name),
            "telecom": list_field("telecoms", contact_point),
            "gender": value_field("gender"),
            "birthDate": value_field("birth_date"),
            "deceasedBoolean": fields.Function(_deceased),
            "deceasedDateTime": value_field("deceased_at"),
            "address": list_field("addresses", address),
            "managingOrganization": organization,
            "link": fields.Function(_link),
        }
    )()


def _active(record: PatientRecord) -> object:
    """Write `active`: false for a merged patient, whatever the record says (decision 9)."""
    if record.replaced_by:
        return False
    return missing if record.active is None else record.active


def _deceased(record: PatientRecord) -> object:
    """Write `deceasedBoolean`, unless the time of death is known: FHIR allows one."""
    if record.deceased is None or record.deceased_at is not None:
        return missing
    return record.deceased


def _link(record: PatientRecord) -> object:
    """Write `link`: the patient into which this one was merged."""
    if not record.replaced_by:
        return missing
    survivor = reference(ResourceType.PATIENT, record.replaced_by)
    return [{"other": survivor, "type": "replaced-by"}]
