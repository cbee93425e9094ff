"""The schemas of the resources: Encounter (spec 2.1 to 2.4), Patient and Organization.

Of Patient, the administrative profile. Spec 2 leaves the fields of Patient and Organization
to STU3.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from marshmallow import Schema, fields, missing

from adapters.contract import EncounterRecord, PatientRecord, ResourceType
from adapters.mapping.model import Constants
from app.fhir.datatypes import (
    Element,
    address,
    constant_field,
    contact_point,
    filled,
    human_name,
    identifiers_field,
    list_field,
    meta_field,
    reference,
    reference_field,
    value_field,
)

CLASS_LABELS: Mapping[str, str] = MappingProxyType(
    {
        "EMER": "emergency",
        "IMP": "inpatient encounter",
        "PRENC": "pre-admission",
        "AMB": "ambulatory",
        "REC": "recurring",
        "UNK": "unknown",
    }
)
"""The class codes of spec 2.4; the first four labels are those of v3 ActCode."""


def resource_schemas(constants: Constants) -> Mapping[ResourceType, Schema]:
    """Return the schema of each resource type; build them once per deployment."""
    return {
        ResourceType.ENCOUNTER: _encounter_schema(constants),
        ResourceType.PATIENT: _patient_schema(constants),
        ResourceType.ORGANIZATION: _organization_schema(constants),
    }


def _encounter_schema(constants: Constants) -> Schema:
    """Return the schema of an STU3 Encounter, in the order of spec 2.1."""
    return Schema.from_dict(
        {
            "resourceType": constant_field("Encounter"),
            "id": value_field("id"),
            "meta": meta_field(),
            "identifier": fields.Function(_visit_number(constants)),
            "status": value_field("status"),
            "subject": reference_field(ResourceType.PATIENT, "patient_id"),
            "period": fields.Function(_period),
            "serviceProvider": fields.Function(_service_provider(constants)),
            "class": fields.Function(_class(constants)),
        }
    )()


def _visit_number(constants: Constants) -> Callable[[EncounterRecord], object]:
    """Write `identifier`: the visit number, unique within one hospital (spec 2.2)."""
    coding = {
        "system": constants.identifier_type_system,
        "version": constants.identifier_type_version,
        "code": "VN",
        "display": constants.identifier_type_display,
    }
    # Every visit number shares the one type.
    type_of_identifier = {"coding": [coding]}

    def write(record: EncounterRecord) -> object:
        if not record.visit_number:
            return missing
        identifier: Element = {"use": "official", "type": type_of_identifier}
        if record.visit_number_system:
            identifier["system"] = record.visit_number_system
        identifier["value"] = record.visit_number
        if record.organization_id:
            hospital = reference(ResourceType.ORGANIZATION, record.organization_id)
            identifier["assigner"] = hospital
        return [identifier]

    return write


def _period(record: EncounterRecord) -> object:
    """Write `period`; an open stay has no end."""
    return filled({"start": record.start, "end": record.end}) or missing


def _service_provider(constants: Constants) -> Callable[[EncounterRecord], object]:
    """Write `serviceProvider`: the hospital, and the functional unit (spec 2.3)."""
    url = constants.functional_unit_extension

    def write(record: EncounterRecord) -> object:
        provider = reference(ResourceType.ORGANIZATION, record.organization_id)
        if url and (unit := record.functional_unit):
            provider = {"extension": [{"url": url, "valueString": unit}], **provider}
        return provider or missing

    return write


def _class(constants: Constants) -> Callable[[EncounterRecord], object]:
    """Write `class`: one Coding, never a list, in its own system (spec 2.4, decision 18)."""
    systems, default = constants.class_systems, constants.class_code_system
    codings = {
        code: {"code": code, "display": label, "system": systems.get(code, default)}
        for code, label in CLASS_LABELS.items()
    }

    def write(record: EncounterRecord) -> object:
        code = record.class_code
        return missing if code is None else codings[code]

    return write


def _patient_schema(constants: Constants) -> Schema:
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


def _organization_schema(constants: Constants) -> Schema:
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
