"""Encounter: a stay (spec 2.1 to 2.4)."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

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
_PATIENT = f"{ResourceType.PATIENT}/"


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
        return self.made(
            record.visit_number, record.visit_number_system, record.organization_id
        )

    def made(self, number: str, system: str | None, hospital: str | None) -> object:
        """Return the list for a number that is there."""
        identifier: Element = {"use": "official", "type": self._type}
        if system:
            identifier["system"] = system
        identifier["value"] = number
        if hospital:
            identifier["assigner"] = {"reference": _ORGANIZATION + hospital}
        return [identifier]


class PeriodField(ElementField):
    """`period`: start and end of the stay, with their UTC offsets."""

    def write(self, record: EncounterRecord) -> object:
        """Return the bounds that are known; an open stay has no end."""
        return self.made(record.start, record.end) or missing

    @staticmethod
    def made(start: datetime | None, end: datetime | None) -> Element:
        """Return the Period, empty where neither is known."""
        if start is None:
            return {} if end is None else {"end": end}
        return {"start": start} if end is None else {"start": start, "end": end}


class ServiceProviderField(ElementField):
    """`serviceProvider`: the hospital, and the functional unit (spec 2.3)."""

    def prepare(self, constants: Constants) -> None:
        """Take the URL that marks a functional unit."""
        self._url = constants.functional_unit_extension

    def write(self, record: EncounterRecord) -> object:
        """Return the organization with the unit in an extension, or what there is."""
        return self.made(record.functional_unit, record.organization_id) or missing

    def made(self, unit: str | None, hospital: str | None) -> Element:
        """Return the Reference, empty where neither is known."""
        provider: Element = {}
        if unit and self._url:
            provider["extension"] = [{"url": self._url, "valueString": unit}]
        if hospital:
            provider["reference"] = _ORGANIZATION + hospital
        return provider


class ClassField(ElementField):
    """`class`: one Coding, never a list (spec 2.4)."""

    def prepare(self, constants: Constants) -> None:
        """Build the six codings once, each in its own system (decision 18)."""
        named, usual = constants.class_systems, constants.class_code_system
        self.codings = {
            code: {"code": code, "display": label, "system": named.get(code, usual)}
            for code, label in CLASS_LABELS.items()
        }

    def write(self, record: EncounterRecord) -> object:
        """Return the coding of the record's class."""
        code = record.class_code
        return missing if code is None else self.codings[code]


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

    def __init__(self, constants: Constants) -> None:
        super().__init__(constants)
        own: Any = self.fields
        self._identifier = own["identifier"].made
        self._period = own["period"].made
        self._provider = own["service_provider"].made
        self._codings = own["class_"].codings

    def _written(self, record: EncounterRecord) -> Element:
        """Write a stay as its fields do, at two thirds of their cost: a page has a hundred."""
        id, status, patient, number, system, code, start, end, unit, house, changed = (
            record
        )
        element: Element = {"resourceType": "Encounter", "id": id}
        if changed is not None:
            element["meta"] = {"lastUpdated": changed}
        if number:
            element["identifier"] = self._identifier(number, system, house)
        if status:
            element["status"] = status
        if patient:
            element["subject"] = {"reference": _PATIENT + patient}
        if period := self._period(start, end):
            element["period"] = period
        if provider := self._provider(unit, house):
            element["serviceProvider"] = provider
        if code is not None:
            element["class"] = self._codings[code]
        return element
