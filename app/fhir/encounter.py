"""Encounter: a hospital stay (spec 2.1 to 2.4)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from marshmallow import Schema, fields, missing

from adapters.contract import EncounterRecord, ResourceType
from adapters.mapping.model import Constants
from app.fhir.datatypes import (
    Element,
    constant_field,
    meta_field,
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

_ORGANIZATION = f"{ResourceType.ORGANIZATION}/"


def encounter_schema(constants: Constants) -> Schema:
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
            hospital = _ORGANIZATION + record.organization_id
            identifier["assigner"] = {"reference": hospital}
        return [identifier]

    return write


def _period(record: EncounterRecord) -> object:
    """Write `period`; an open stay has no end."""
    period: Element = {}
    if record.start is not None:
        period["start"] = record.start
    if record.end is not None:
        period["end"] = record.end
    return period or missing


def _service_provider(constants: Constants) -> Callable[[EncounterRecord], object]:
    """Write `serviceProvider`: the hospital, and the functional unit (spec 2.3)."""
    url = constants.functional_unit_extension

    def write(record: EncounterRecord) -> object:
        provider: Element = {}
        if url and (unit := record.functional_unit):
            provider["extension"] = [{"url": url, "valueString": unit}]
        if record.organization_id:
            provider["reference"] = _ORGANIZATION + record.organization_id
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
