"""AuditEvent (FHIR STU3): who was answered what.

Compact: an entity for a resource is its reference and no more, so that an event of a
page of 100 stays is 10 to 20 KB.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from app.schemas.datatypes import Element

_REST = {
    "system": "http://hl7.org/fhir/audit-event-type",
    "code": "rest",
    "display": "RESTful Operation",
}
_INTERACTIONS = "http://hl7.org/fhir/restful-interaction"
_SERVER = {
    "system": "http://hl7.org/fhir/security-source-type",
    "code": "3",
    "display": "Web Server",
}
_TYPES = "http://hl7.org/fhir/resource-types"
_SYSTEM_OBJECT = {"system": "http://hl7.org/fhir/audit-entity-type", "code": "2"}
_ROLES = "http://hl7.org/fhir/object-role"
_PATIENT = {"system": _ROLES, "code": "1", "display": "Patient"}
_QUERY = {"system": _ROLES, "code": "24", "display": "Query"}
_REQUEST_ID = {
    # STU3 has no place for it; this code is IHE's (Basic Audit Log Patterns).
    "system": "https://profiles.ihe.net/ITI/BALP/CodeSystem/BasicAuditEntityType",
    "code": "XrequestId",
}
_IP_ADDRESS = "2"
"""Of the codes of network-type."""

_ACTIONS = {"read": "R", "search-type": "E", "capabilities": "R"}


@dataclass(frozen=True, slots=True)
class Reported:
    """What an audit event tells of one answer.

    `interaction` is a code of FHIR's restful-interaction, `resource_type` what was asked
    for. `asked` holds names of parameters with digests of their values, `shown` the
    references of what was returned; `patients` are references where `clear`, digests
    otherwise. Digests are base64. `address` is the IP address of who asked.
    """

    recorded: datetime
    status: int
    request_id: str
    interaction: str | None
    resource_type: str | None
    client: str | None
    address: str | None
    asked: Sequence[tuple[str, str]]
    shown: Sequence[str]
    patients: Sequence[str]
    clear: bool
    bundle: str | None


def audit_event(told: Reported, mapping: str, base_url: str, site: str) -> Element:
    """Return an AuditEvent; `mapping` is the fingerprint of the mapping in use."""
    subtype = told.interaction and {"system": _INTERACTIONS, "code": told.interaction}
    event = {
        "resourceType": "AuditEvent",
        "type": _REST,
        "subtype": subtype and [subtype],
        "action": _ACTIONS.get(told.interaction or ""),
        "recorded": told.recorded.isoformat(timespec="milliseconds"),
        "outcome": _outcome(told.status),
        "outcomeDesc": _described(told.status),
        "agent": [_agent(told.client, told.address)],
        "source": {
            "site": site,
            "identifier": {"value": base_url},
            "type": [_SERVER],
        },
        "entity": [
            {"identifier": {"value": told.request_id}, "type": _REQUEST_ID},
            {
                "identifier": {"value": mapping},
                "type": _SYSTEM_OBJECT,
                "name": "mapping",
            },
            *_entities(told),
        ],
    }
    return {name: value for name, value in event.items() if value}


def _entities(told: Reported) -> list[Element]:
    found: list[Element] = []
    if told.resource_type or told.asked:
        found.append(_asked(told.resource_type, told.asked))
    if told.bundle:
        kind = {"system": _TYPES, "code": "Bundle"}
        found.append({"identifier": {"value": told.bundle}, "type": kind})
    found += [{"reference": {"reference": each}} for each in told.shown]
    if told.clear:
        known = ({"reference": {"reference": each}} for each in told.patients)
    else:
        known = ({"identifier": {"value": each}} for each in told.patients)
    return found + [{**each, "role": _PATIENT} for each in known]


def _asked(resource_type: str | None, asked: Sequence[tuple[str, str]]) -> Element:
    entity: Element = {"role": _QUERY}
    if resource_type:
        entity["type"] = {"system": _TYPES, "code": resource_type}
    if asked:
        entity["detail"] = [{"type": name, "value": digest} for name, digest in asked]
    return entity


def _agent(client: str | None, address: str | None) -> Element:
    agent: Element = {"requestor": True}
    if client:
        agent = {"userId": {"value": client}, **agent}
    if address:
        agent["network"] = {"address": address, "type": _IP_ADDRESS}
    return agent


def _outcome(status: int) -> str:
    """Return 0 for success, 4 for what the client did, 8 for what failed here."""
    if status < HTTPStatus.BAD_REQUEST:
        return "0"
    return "4" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "8"


def _described(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}"
