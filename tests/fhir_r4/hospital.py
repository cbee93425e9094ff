"""The hospital of edge cases as FHIR R4 resources."""

from datetime import datetime
from typing import Any

from adapters.contract import (
    EncounterRecord,
    IdentifierRecord,
    OrganizationRecord,
    Record,
)
from adapters.matching import resource_type_of
from adapters.memory import FaultyRow
from toolkit.contract.hospital import EDGES

Json = dict[str, Any]
CLASSES = ("EMER", "IMP", "AMB")
R4_STATUS = {"hidden": "entered-in-error", "removed": "cancelled"}


def records() -> list[Record]:
    """Return what an R4 server can hold, as it is served: times end at milliseconds."""
    rows = [row for row in EDGES.records() if not isinstance(row, FaultyRow)]
    return [_of_r4(row) for row in rows if not _has_microseconds(row)]


def _has_microseconds(record: Record) -> bool:
    return any(isinstance(v, datetime) and v.microsecond % 1000 for v in record)


def _of_r4(record: Record) -> Record:
    if isinstance(record, EncounterRecord):
        return record._replace(
            class_code=record.class_code if record.class_code in CLASSES else "UNK",
            functional_unit=None,
            visit_number_system=record.visit_number and record.visit_number_system,
        )
    numbers = (IdentifierRecord(each.value, each.system) for each in record.identifiers)
    return record._replace(identifiers=tuple(numbers))


def bundle() -> Json:
    """Return all resources as a Bundle."""
    entries = [{"resource": _filled(_resource(record))} for record in records()]
    return {"resourceType": "Bundle", "type": "collection", "entry": entries}


def _resource(record: Record) -> Json:
    """Return a record as a resource, in which empty values still stand."""
    resource: Json = {
        "resourceType": str(resource_type_of(record)),
        "id": record.id,
        "meta": {"lastUpdated": _moment(record.last_updated)},
    }
    if isinstance(record, EncounterRecord):
        unit = record.organization_id
        return resource | {
            "status": R4_STATUS.get(record.status, record.status),
            "class": {
                "system": "http://terminology.hl7.org/CodeSystem/v3-ActCode",
                "code": None if record.class_code == "UNK" else record.class_code,
            },
            "subject": {"reference": f"Patient/{record.patient_id}"},
            "identifier": [
                {"value": record.visit_number, "system": record.visit_number_system}
            ],
            "period": {"start": _moment(record.start), "end": _moment(record.end)},
            "serviceProvider": {"reference": unit and f"Organization/{unit}"},
        }
    resource["identifier"] = [
        {"system": number.system, "value": number.value}
        for number in record.identifiers
    ]
    if isinstance(record, OrganizationRecord):
        return resource | {"name": record.name}
    survivor = record.replaced_by and f"Patient/{record.replaced_by}"
    return resource | {
        "active": record.active,
        "name": [
            {"use": name.use, "family": name.family, "given": [*name.given]}
            for name in record.names
        ],
        "gender": record.gender,
        "birthDate": record.birth_date and record.birth_date.isoformat(),
        "link": [
            {"other": {"reference": survivor}, "type": survivor and "replaced-by"}
        ],
    }


def _moment(moment: datetime | None) -> str | None:
    return moment and moment.isoformat(timespec="milliseconds")


def _filled(value: Any) -> Any:
    """Return a value without what is empty in it, which FHIR does not allow."""
    if isinstance(value, dict):
        pairs = ((key, _filled(each)) for key, each in value.items())
        return {key: each for key, each in pairs if each not in (None, "", [], {})}
    if isinstance(value, list):
        return [each for each in map(_filled, value) if each not in (None, "", [], {})]
    return value
