"""AuditEvent (FHIR STU3): who received what.

An entity for a resource is only its reference, so that the event of a page of 100
encounters is 10 to 20 KB.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from app.fhir.datatypes import Element, filled

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
    subtype = {"system": _INTERACTIONS, "code": response.interaction}
    return filled(
        {
            "resourceType": "AuditEvent",
            "type": _REST,
            "subtype": [subtype] if response.interaction else None,
            "action": _ACTIONS.get(response.interaction or ""),
            "recorded": response.recorded.isoformat(timespec="milliseconds"),
            "outcome": _outcome(response.status),
            "outcomeDesc": f"{response.status} {HTTPStatus(response.status).phrase}",
            "agent": [_agent(response.client, response.address)],
            "source": {
                "site": site,
                "identifier": {"value": base_url},
                "type": [_SERVER],
            },
            "entity": [
                _identified(response.request_id, type=_REQUEST_ID),
                _identified(mapping, type=_SYSTEM_OBJECT, name="mapping"),
                *_entities(response),
            ],
        }
    )


def _entities(response: AuditedResponse) -> Iterator[Element]:
    kind, parameters = response.resource_type, response.parameters
    if kind or parameters:
        yield filled(
            {
                "role": _QUERY,
                "type": {"system": _TYPES, "code": kind} if kind else None,
                "detail": [{"type": name, "value": text} for name, text in parameters],
            }
        )
    if response.bundle:
        yield _identified(response.bundle, type={"system": _TYPES, "code": "Bundle"})
    for each in response.references:
        yield {"reference": {"reference": each}}
    for each in response.patients:
        if response.clear:
            yield {"reference": {"reference": each}, "role": _PATIENT}
        else:
            yield _identified(each, role=_PATIENT)


def _identified(identifier: str, **more: object) -> Element:
    return {"identifier": {"value": identifier}, **more}


def _agent(client: str | None, address: str | None) -> Element:
    network = {"address": address, "type": _IP_ADDRESS}
    return filled(
        {
            "userId": {"value": client} if client else None,
            "requestor": True,
            "network": network if address else None,
        }
    )


def _outcome(status: int) -> str:
    """Return 0 for success, 4 for an error of the client, 8 for one of the service."""
    if status < HTTPStatus.BAD_REQUEST:
        return "0"
    return "4" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "8"
