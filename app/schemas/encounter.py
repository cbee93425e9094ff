"""Encounter: a stay (spec 2.1 to 2.4)."""

from collections.abc import Mapping
from types import MappingProxyType

from marshmallow import missing

from adapters.contract import EncounterRecord, ResourceType
from adapters.mapping.constants import Constants
from app.schemas.datatypes import (
    ConstantField,
    Element,
    ElementField,
    MetaField,
    ReferenceField,
    ResourceSchema,
    ValueField,
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


class VisitNumberField(ElementField):
    """`identifier`: the visit number, unique within one hospital (spec 2.2)."""

    def prepare(self, constants: Constants) -> None:
        """Build the type once; every visit number shares it."""
        coding = {
            "system": constants.identifier_type_system,
            "version": constants.identifier_type_version,
            "code": "VN",
            "display": constants.identifier_type_display,
        }
        self._type = {"coding": [coding]}

    def write(self, record: EncounterRecord) -> object:
        """Return a list of one Identifier; a system that nobody knows is left out."""
        if not record.visit_number:
            return missing
        identifier: Element = {"use": "official", "type": self._type}
        if record.visit_number_system:
            identifier["system"] = record.visit_number_system
        identifier["value"] = record.visit_number
        if record.organization_id:
            hospital = _ORGANIZATION + record.organization_id
            identifier["assigner"] = {"reference": hospital}
        return [identifier]


class PeriodField(ElementField):
    """`period`: start and end of the stay, with their UTC offsets."""

    def write(self, record: EncounterRecord) -> object:
        """Return the bounds that are known; an open stay has no end."""
        bounds = {"start": record.start, "end": record.end}
        known = {name: at for name, at in bounds.items() if at is not None}
        return known or missing


class ServiceProviderField(ElementField):
    """`serviceProvider`: the hospital, and the functional unit (spec 2.3)."""

    def prepare(self, constants: Constants) -> None:
        """Take the URL that marks a functional unit."""
        self._url = constants.functional_unit_extension

    def write(self, record: EncounterRecord) -> object:
        """Return the organization with the unit in an extension, or what there is."""
        provider: Element = {}
        if self._url and (unit := record.functional_unit):
            provider["extension"] = [{"url": self._url, "valueString": unit}]
        if record.organization_id:
            provider["reference"] = _ORGANIZATION + record.organization_id
        return provider or missing


class ClassField(ElementField):
    """`class`: one Coding, never a list (spec 2.4)."""

    def prepare(self, constants: Constants) -> None:
        """Build the six codings once, each in its own system (decision 18)."""
        named, usual = constants.class_systems, constants.class_code_system
        self._codings = {
            code: {"code": code, "display": label, "system": named.get(code, usual)}
            for code, label in CLASS_LABELS.items()
        }

    def write(self, record: EncounterRecord) -> object:
        """Return the coding of the record's class."""
        code = record.class_code
        return missing if code is None else self._codings[code]


class EncounterSchema(ResourceSchema):
    """A stay as an STU3 Encounter, in the order of spec 2.1."""

    resource_type = ConstantField("Encounter", data_key="resourceType")
    id = ValueField("id")
    meta = MetaField()
    identifier = VisitNumberField()
    status = ValueField("status")
    subject = ReferenceField(ResourceType.PATIENT, "patient_id")
    period = PeriodField()
    service_provider = ServiceProviderField(data_key="serviceProvider")
    class_ = ClassField(data_key="class")
