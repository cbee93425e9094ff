"""The resources: Encounter (spec 2.1 to 2.4), Patient and Organization, as marshmallow schemas.

Of Patient, the administrative profile. Spec 2 leaves the fields of Patient and Organization
to STU3. One field writes a whole element from the whole record, so a resource needs no
nested schema. Where the record holds nothing it returns `missing`, and the element is left
out: FHIR has no empty elements. Times stay aware datetimes and dates stay dates, which
orjson writes as FHIR requires.
"""

from collections.abc import Callable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeAlias

from marshmallow import Schema, fields, missing

from adapters.contract import (
    AddressRecord,
    EncounterRecord,
    IdentifierRecord,
    NameRecord,
    PatientRecord,
    ResourceType,
    TelecomRecord,
)
from adapters.mapping.model import Constants

Element: TypeAlias = dict[str, object]
Writer: TypeAlias = Callable[[Any], Element]

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


def compiled(schema: Schema) -> Writer:
    """Return a function that writes one record as `schema.dump` does, in half the time."""
    writers = tuple(
        (name, field.serialize_func)
        for name, field in schema.dump_fields.items()
        if isinstance(field, fields.Function) and field.serialize_func is not None
    )
    # The function would silently leave out a field of another kind.
    assert len(writers) == len(schema.dump_fields)

    def write(record: Any) -> Element:
        return {
            name: element
            for name, write_element in writers
            if (element := write_element(record)) is not missing
        }

    return write


def _encounter_schema(constants: Constants) -> Schema:
    """Return the schema of an STU3 Encounter, in the order of spec 2.1."""
    return Schema.from_dict(
        {
            "resourceType": fields.Function(lambda _: "Encounter"),
            "id": value_field("id"),
            "meta": fields.Function(_meta),
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
        # Written out, as `_period` is: `filled` would cost a page 5 % of its time.
        identifier: Element = {"use": "official", "type": type_of_identifier}
        if record.visit_number_system:
            identifier["system"] = record.visit_number_system
        identifier["value"] = record.visit_number
        if id := record.organization_id:
            identifier["assigner"] = {"reference": f"Organization/{id}"}
        return [identifier]

    return write


def _period(record: EncounterRecord) -> object:
    """Write `period`; an open stay has no end."""
    period: Element = {}
    if record.start:
        period["start"] = record.start
    if record.end:
        period["end"] = record.end
    return period or missing


def _service_provider(constants: Constants) -> Callable[[EncounterRecord], object]:
    """Write `serviceProvider`: the hospital, and the functional unit (spec 2.3)."""
    url = constants.functional_unit_extension

    def write(record: EncounterRecord) -> object:
        provider: Element = {}
        if url and (unit := record.functional_unit):
            provider["extension"] = [{"url": url, "valueString": unit}]
        if id := record.organization_id:
            provider["reference"] = f"Organization/{id}"
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
    type_system = constants.patient_identifier_type_system
    organization = reference_field(ResourceType.ORGANIZATION, "organization_id")
    return Schema.from_dict(
        {
            "resourceType": fields.Function(lambda _: "Patient"),
            "id": value_field("id"),
            "meta": fields.Function(_meta),
            "identifier": list_field("identifiers", _identifier(type_system)),
            "active": fields.Function(_active),
            "name": list_field("names", _human_name),
            "telecom": list_field("telecoms", _contact_point),
            "gender": value_field("gender"),
            "birthDate": value_field("birth_date"),
            "deceasedBoolean": fields.Function(_deceased),
            "deceasedDateTime": value_field("deceased_at"),
            "address": list_field("addresses", _address),
            "managingOrganization": organization,
            "link": fields.Function(_link),
        }
    )()


def _active(record: PatientRecord) -> object:
    """Write `active`: false for a merged patient, even if the record is active (decision 9)."""
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
    survivor = _reference(ResourceType.PATIENT, record.replaced_by)
    return [{"other": survivor, "type": "replaced-by"}]


def _organization_schema(constants: Constants) -> Schema:
    """Return the schema of an STU3 Organization, in the order of its definition."""
    type_system = constants.organization_identifier_type_system
    return Schema.from_dict(
        {
            "resourceType": fields.Function(lambda _: "Organization"),
            "id": value_field("id"),
            "meta": fields.Function(_meta),
            "identifier": list_field("identifiers", _identifier(type_system)),
            "active": value_field("active"),
            "name": value_field("name"),
            "telecom": list_field("telecoms", _contact_point),
            "address": list_field("addresses", _address),
            "partOf": reference_field(ResourceType.ORGANIZATION, "part_of"),
        }
    )()


# The elements of several resources, and the FHIR data types that they are made of


def filled(element: Mapping[str, object]) -> Element:
    """Return the element without its empty children; False and 0 are not empty."""
    return {name: child for name, child in element.items() if child or child == 0}


def value_field(attribute: str) -> fields.Function:
    """Return the field of a plain value; None and the empty text are left out."""
    value_of = attrgetter(attribute)

    def write(record: object) -> object:
        value = value_of(record)
        return missing if value is None or value == "" else value

    return fields.Function(write)


def list_field(attribute: str, item: Callable[[Any], Element]) -> fields.Function:
    """Return the field of a list with an item for each of a tuple in the record."""
    values_of = attrgetter(attribute)

    def write(record: object) -> object:
        items = [element for each in values_of(record) if (element := item(each))]
        return items or missing

    return fields.Function(write)


def reference_field(target: ResourceType, attribute: str) -> fields.Function:
    """Return the field of a reference to another resource of this service."""
    id_of = attrgetter(attribute)
    return fields.Function(lambda record: _reference(target, id_of(record)) or missing)


def _meta(record: Any) -> object:
    """Write `meta`: the last change; there is no versionId (decision 19)."""
    changed = record.last_updated
    return missing if changed is None else {"lastUpdated": changed}


def _reference(target: ResourceType, id: str | None) -> Element:
    """Return a Reference to a resource of this service, empty without an id."""
    return {"reference": f"{target}/{id}"} if id else {}


def _identifier(type_system: str) -> Callable[[IdentifierRecord], Element]:
    """Return what writes an Identifier, its type coded in `type_system`."""

    def write(record: IdentifierRecord) -> Element:
        coding = {"system": type_system, "code": record.type}
        return filled(
            {
                "use": record.use,
                "type": {"coding": [coding]} if record.type else None,
                "system": record.system,
                "value": record.value,
                "assigner": _reference(ResourceType.ORGANIZATION, record.assigner_id),
            }
        )

    return write


def _human_name(record: NameRecord) -> Element:
    return filled(
        {
            "use": record.use,
            "text": record.text,
            "family": record.family,
            "given": [given for given in record.given if given],
            "prefix": [record.prefix] if record.prefix else None,
        }
    )


def _contact_point(record: TelecomRecord) -> Element:
    if not record.value:
        return {}
    # STU3 requires a system beside a value (cpt-2).
    system = record.system or "other"
    return filled({"system": system, "value": record.value, "use": record.use})


def _address(record: AddressRecord) -> Element:
    return filled(
        {
            "use": record.use,
            "line": [line for line in record.lines if line],
            "city": record.city,
            "postalCode": record.postal_code,
            "country": record.country,
        }
    )
