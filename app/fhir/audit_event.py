"""AuditEvent (FHIR STU3): who received what.

An entity for a resource is only its reference, so that the event of a page of 100
encounters is 10 to 20 KB.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from app.fhir.datatypes import Element

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
class AuditedResponse:
    """What an audit event says of one response.

    `interaction` is a code of FHIR's restful-interaction, `resource_type` the requested
    type. `parameters` holds their names with digests of their values, `references` those
    of the returned resources; `patients` are references if `clear`, else digests. Digests
    are base64. `address` is the IP address of the client.
    """

    recorded: datetime
    status: int
    request_id: str
    interaction: str | None
    resource_type: str | None
    client: str | None
    address: str | None
    parameters: Sequence[tuple[str, str]]
    references: Sequence[str]
    patients: Sequence[str]
    clear: bool
    bundle: str | None


def audit_event(
    response: AuditedResponse, mapping: str, base_url: str, site: str
) -> Element:
    """Return an AuditEvent; `mapping` is the fingerprint of the mapping in use."""
    subtype = response.interaction and {
        "system": _INTERACTIONS,
        "code": response.interaction,
    }
    event = {
        "resourceType": "AuditEvent",
        "type": _REST,
        "subtype": subtype and [subtype],
        "action": _ACTIONS.get(response.interaction or ""),
        "recorded": response.recorded.isoformat(timespec="milliseconds"),
        "outcome": _outcome(response.status),
        "outcomeDesc": _described(response.status),
        "agent": [_agent(response.client, response.address)],
        "source": {
            "site": site,
            "identifier": {"value": base_url},
            "type": [_SERVER],
        },
        "entity": [
            {"identifier": {"value": response.request_id}, "type": _REQUEST_ID},
            {
                "identifier": {"value": mapping},
                "type": _SYSTEM_OBJECT,
                "name": "mapping",
            },
            *_entities(response),
        ],
    }
    return {name: value for name, value in event.items() if value}


def _entities(response: AuditedResponse) -> list[Element]:
    entities: list[Element] = []
    if response.resource_type or response.parameters:
        entities.append(_query(response.resource_type, response.parameters))
    if response.bundle:
        kind = {"system": _TYPES, "code": "Bundle"}
        entities.append({"identifier": {"value": response.bundle}, "type": kind})
    entities += [{"reference": {"reference": each}} for each in response.references]
    if response.clear:
        patients: Iterable[Element] = (
            {"reference": {"reference": each}} for each in response.patients
        )
    else:
        patients = ({"identifier": {"value": each}} for each in response.patients)
    return entities + [{**each, "role": _PATIENT} for each in patients]


def _query(resource_type: str | None, parameters: Sequence[tuple[str, str]]) -> Element:
    entity: Element = {"role": _QUERY}
    if resource_type:
        entity["type"] = {"system": _TYPES, "code": resource_type}
    if parameters:
        entity["detail"] = [
            {"type": name, "value": digest} for name, digest in parameters
        ]
    return entity


def _agent(client: str | None, address: str | None) -> Element:
    agent: Element = {"requestor": True}
    if client:
        agent = {"userId": {"value": client}, **agent}
    if address:
        agent["network"] = {"address": address, "type": _IP_ADDRESS}
    return agent


def _outcome(status: int) -> str:
    """Return 0 for success, 4 for an error of the client, 8 for one of the service."""
    if status < HTTPStatus.BAD_REQUEST:
        return "0"
    return "4" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "8"


def _described(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}"
