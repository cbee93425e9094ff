"""The resources: Encounter (spec 2.1 to 2.4), Patient and Organization, as marshmallow schemas.

A schema declares the elements of a resource in their order: one field writes a whole element
from the whole record. Where the record holds nothing it returns `missing`, and the element is
left out: FHIR has no empty elements. Times stay aware datetimes and dates stay dates, which
orjson writes as FHIR requires.

Of Patient it is the administrative profile. Spec 2 leaves the fields of Patient and Organization
to STU3.
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
    OrganizationRecord,
    PatientRecord,
    ResourceType,
    TelecomRecord,
)
from adapters.mapping.model import Constants

Element: TypeAlias = dict[str, object]

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


class ResourceSchema(Schema):
    """A resource whose fields are functions of a whole record.

    Each field is a `Constant`, a `Function` or a `Method`.
    """

    def __init__(self) -> None:
        super().__init__()
        # `Schema.dump` finds key, value and function of every field again for each record.
        self._writers = tuple(
            (field.data_key or name, self._function_of(field))
            for name, field in self.dump_fields.items()
        )

    def dump(self, obj: Any, *, many: bool | None = None) -> Any:
        """Return the resource of a record, or those of several, as `Schema.dump` does."""
        if many:
            return [self.dump(record) for record in obj]
        resource: Element = {}
        for name, write in self._writers:
            element = write(obj)
            if element is not missing:
                resource[name] = element
        return resource

    def _function_of(self, field: fields.Field[Any]) -> Callable[[Any], object]:
        """Return what writes the element of a field."""
        if isinstance(field, fields.Constant):
            constant: object = field.constant
            return lambda _: constant
        if isinstance(field, fields.Method) and field.serialize_method_name:
            method: Callable[[Any], object] = getattr(self, field.serialize_method_name)
            return method
        if isinstance(field, fields.Function) and field.serialize_func is not None:
            function: Callable[[Any], object] = field.serialize_func
            return function
        raise TypeError(f"{field.name}: a field of a resource is a function")


class RecordSchema(ResourceSchema):
    """A resource of the hospital; `constants` are the identifiers of the deployment."""

    def __init__(self, constants: Constants) -> None:
        super().__init__()
        self.constants = constants


def required(attribute: str) -> fields.Function:
    """Return the field of a plain value that no record lacks."""
    return fields.Function(attrgetter(attribute))


def value(attribute: str, data_key: str | None = None) -> fields.Function:
    """Return the field of a plain value; None and the empty text are left out."""
    value_of = attrgetter(attribute)

    def write(record: object) -> object:
        content = value_of(record)
        return missing if content is None or content == "" else content

    return fields.Function(write, data_key=data_key)


def items(
    attribute: str, item: Callable[[Any], Element], data_key: str | None = None
) -> fields.Function:
    """Return the field of a list: `item` writes an element for each record of a tuple.

    Empty elements are left out.
    """
    records_of = attrgetter(attribute)

    def write(record: object) -> object:
        elements = [item(part) for part in records_of(record)]
        return [element for element in elements if element] or missing

    return fields.Function(write, data_key=data_key)


def reference_to(
    target: ResourceType, attribute: str, data_key: str | None = None
) -> fields.Function:
    """Return the field of a reference to another resource of this service."""
    id_of, path = attrgetter(attribute), f"{target}/"

    def write(record: object) -> object:
        id = id_of(record)
        return {"reference": path + id} if id else missing

    return fields.Function(write, data_key=data_key)


# The FHIR data types that elements are made of


def filled(element: Mapping[str, object]) -> Element:
    """Return the element without its empty children; False and 0 are not empty."""
    return {name: child for name, child in element.items() if child or child == 0}


def write_meta(record: Any) -> object:
    """Write `meta`: the last change; there is no versionId (decision 19)."""
    changed = record.last_updated
    return missing if changed is None else {"lastUpdated": changed}


def reference(target: ResourceType, id: str | None) -> Element:
    """Return a Reference to a resource of this service, empty without an id."""
    return {"reference": f"{target}/{id}"} if id else {}


def write_identifier(record: IdentifierRecord, type_system: str) -> Element:
    """Return an Identifier, its type coded in `type_system`."""
    # Written out: a page of patients has hundreds.
    element: Element = {}
    if record.use:
        element["use"] = record.use
    if record.type:
        element["type"] = {"coding": [{"system": type_system, "code": record.type}]}
    if record.system:
        element["system"] = record.system
    if record.value:
        element["value"] = record.value
    if record.assigner_id:
        element["assigner"] = {"reference": f"Organization/{record.assigner_id}"}
    return element


def write_human_name(record: NameRecord) -> Element:
    """Return a HumanName."""
    return filled(
        {
            "use": record.use,
            "text": record.text,
            "family": record.family,
            "given": [given for given in record.given if given],
            "prefix": [record.prefix] if record.prefix else None,
        }
    )


def write_contact_point(record: TelecomRecord) -> Element:
    """Return a ContactPoint, empty without a value."""
    if not record.value:
        return {}
    # STU3 requires a system beside a value (cpt-2).
    system = record.system or "other"
    return filled({"system": system, "value": record.value, "use": record.use})


def write_address(record: AddressRecord) -> Element:
    """Return an Address."""
    return filled(
        {
            "use": record.use,
            "line": [line for line in record.lines if line],
            "city": record.city,
            "postalCode": record.postal_code,
            "country": record.country,
        }
    )


# The resources


class EncounterSchema(RecordSchema):
    """An STU3 Encounter, in the order of spec 2.1."""

    resource_type = fields.Constant("Encounter", data_key="resourceType")
    id = required("id")
    meta = fields.Function(write_meta)
    identifier = fields.Method("visit_number")
    status = required("status")
    subject = reference_to(ResourceType.PATIENT, "patient_id")
    period = fields.Method("start_and_end")
    location = fields.Method("ward")
    service_provider = fields.Method("hospital_and_unit", data_key="serviceProvider")
    class_ = fields.Method("class_coding", data_key="class")

    def __init__(self, constants: Constants) -> None:
        super().__init__(constants)
        visit_number_type = {
            "system": constants.identifier_type_system,
            "version": constants.identifier_type_version,
            "code": "VN",
            "display": constants.identifier_type_display,
        }
        # Every visit number shares the one type, every stay of a class the one Coding.
        self._visit_number_type = {"coding": [visit_number_type]}
        systems, default = constants.class_systems, constants.class_code_system
        self._codings = {
            code: {"code": code, "display": label, "system": systems.get(code, default)}
            for code, label in CLASS_LABELS.items()
        }

    def visit_number(self, record: EncounterRecord) -> object:
        """Return `identifier`: the visit number, unique within one hospital (spec 2.2)."""
        if not record.visit_number:
            return missing
        # Written out, as below: `filled` would cost a page 5 % of its time.
        element: Element = {"use": "official", "type": self._visit_number_type}
        if record.visit_number_system:
            element["system"] = record.visit_number_system
        element["value"] = record.visit_number
        if id := record.organization_id:
            element["assigner"] = {"reference": f"Organization/{id}"}
        return [element]

    def start_and_end(self, record: EncounterRecord) -> object:
        """Return `period`; an open stay has no end."""
        element: Element = {}
        if record.start:
            element["start"] = record.start
        if record.end:
            element["end"] = record.end
        return element or missing

    def ward(self, record: EncounterRecord) -> object:
        """Return `location`: the ward by its name; wards are no resources here."""
        ward = record.ward
        return [{"location": {"display": ward}}] if ward else missing

    def hospital_and_unit(self, record: EncounterRecord) -> object:
        """Return `serviceProvider`: the hospital, and the functional unit (spec 2.3)."""
        element: Element = {}
        url = self.constants.functional_unit_extension
        if url and (unit := record.functional_unit):
            element["extension"] = [{"url": url, "valueString": unit}]
        if id := record.organization_id:
            element["reference"] = f"Organization/{id}"
        return element or missing

    def class_coding(self, record: EncounterRecord) -> object:
        """Return `class`: one Coding, never a list, in its system (spec 2.4, decision 18)."""
        code = record.class_code
        return missing if code is None else self._codings[code]


class PatientSchema(RecordSchema):
    """An STU3 Patient, in the order of its definition."""

    resource_type = fields.Constant("Patient", data_key="resourceType")
    id = required("id")
    meta = fields.Function(write_meta)
    identifier = fields.Method("identifiers")
    active = fields.Method("active_unless_merged")
    name = items("names", write_human_name)
    telecom = items("telecoms", write_contact_point)
    gender = value("gender")
    birth_date = value("birth_date", "birthDate")
    deceased_boolean = fields.Method("deceased", data_key="deceasedBoolean")
    deceased_date_time = value("deceased_at", "deceasedDateTime")
    address = items("addresses", write_address)
    managing_organization = reference_to(
        ResourceType.ORGANIZATION, "organization_id", "managingOrganization"
    )
    link = fields.Method("survivor")

    def identifiers(self, record: PatientRecord) -> object:
        """Return `identifier`: the patient's numbers."""
        system = self.constants.patient_identifier_type_system
        return [
            write_identifier(part, system) for part in record.identifiers
        ] or missing

    def active_unless_merged(self, record: PatientRecord) -> object:
        """Return `active`: false for a merged patient, whatever its record says (decision 9)."""
        if record.replaced_by:
            return False
        return missing if record.active is None else record.active

    def deceased(self, record: PatientRecord) -> object:
        """Return `deceasedBoolean`, unless the time of death is known: FHIR allows one."""
        if record.deceased is None or record.deceased_at is not None:
            return missing
        return record.deceased

    def survivor(self, record: PatientRecord) -> object:
        """Return `link`: the patient into which this one was merged."""
        if not record.replaced_by:
            return missing
        other = reference(ResourceType.PATIENT, record.replaced_by)
        return [{"other": other, "type": "replaced-by"}]


class OrganizationSchema(RecordSchema):
    """An STU3 Organization, in the order of its definition."""

    resource_type = fields.Constant("Organization", data_key="resourceType")
    id = required("id")
    meta = fields.Function(write_meta)
    identifier = fields.Method("identifiers")
    active = value("active")
    name = value("name")
    telecom = items("telecoms", write_contact_point)
    address = items("addresses", write_address)
    part_of = reference_to(ResourceType.ORGANIZATION, "part_of", "partOf")

    def identifiers(self, record: OrganizationRecord) -> object:
        """Return `identifier`: the numbers of the hospital."""
        system = self.constants.organization_identifier_type_system
        return [
            write_identifier(part, system) for part in record.identifiers
        ] or missing


SCHEMAS: Mapping[ResourceType, type[RecordSchema]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: EncounterSchema,
        ResourceType.PATIENT: PatientSchema,
        ResourceType.ORGANIZATION: OrganizationSchema,
    }
)
"""The schema of each resource type; a deployment builds each once, with its constants."""
