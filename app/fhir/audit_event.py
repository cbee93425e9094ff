"""AuditEvents of FHIR STU3: `audit_event` writes one, `read_event` reads it.

What repeats is written once: one entity holds the digests of all patients, with the ids
of what was shown of each.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple

from app.fhir.resources import Element, filled

_REST = {"system": "http://hl7.org/fhir/audit-event-type", "code": "rest"}
_INTERACTIONS = "http://hl7.org/fhir/restful-interaction"
_TYPES = "http://hl7.org/fhir/resource-types"
_ROLES = "http://hl7.org/fhir/object-role"
_PATIENT = {"system": _ROLES, "code": "1"}
_QUERY = {"system": _ROLES, "code": "24"}
_ACTIONS = {"read": "R", "search-type": "E", "capabilities": "R"}

DIGEST_CHARACTERS = 24
"""No padding: a list of digests is base64, too."""


UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)
"""What `read_event` raises for a JSON value that is no event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedResponse:
    """What an audit event contains about one response.

    `recorded` is in UTC (ISO 8601), `interaction` a code of FHIR's restful-interaction,
    `resource_type` the requested type, `address` the IP address of the client.
    `parameters` holds their names with digests of their values. `patients` has the digest
    or the reference of each patient, with the ids of the returned resources about this
    patient ("8,9"); they are of the type `returned`, and "" if that is Patient. `included`
    are the keys of `patients` whose own resource is returned besides. `others` are
    references of resources about no patient. `reason` is what a person gave. Digests
    are base64 of DIGEST_CHARACTERS, `key` is the fingerprint of their key.
    """

    recorded: str
    status: int
    request_id: str
    key: str
    interaction: str | None = None
    resource_type: str | None = None
    client: str | None = None
    address: str | None = None
    bundle: str | None = None
    parameters: Sequence[Sequence[str]] = ()
    reason: str | None = None
    returned: str | None = None
    patients: Mapping[str, str] = field(default_factory=dict)
    included: Sequence[str] = ()
    others: Sequence[str] = ()

    @property
    def is_clear(self) -> bool:
        """Whether no patient is named by a digest."""
        return all(map(_is_reference, self.patients))


class Deployment(NamedTuple):
    """Who writes events; `mapping` is the fingerprint of the mapping in use."""

    mapping: str
    base_url: str
    site: str


def audit_event(response: AuditedResponse, deployment: Deployment) -> Element:
    """Return an AuditEvent."""
    status = response.status
    kind = response.resource_type
    reason = response.reason
    subtype = {"system": _INTERACTIONS, "code": response.interaction}
    agent = {
        "userId": {"value": response.client} if response.client else None,
        "requestor": True,
        "network": {"address": response.address} if response.address else None,
    }
    # Success, an error of the client, an error of the service.
    outcome = {4: "4", 5: "8"}.get(status // 100, "0")
    request = {
        "identifier": {"value": response.request_id},
        "type": {"system": _TYPES, "code": kind} if kind else None,
        "role": _QUERY,
        "name": response.key,
        "description": deployment.mapping,
        "detail": [_detail(name, text) for name, text in response.parameters],
    }
    return filled(
        {
            "resourceType": "AuditEvent",
            "type": _REST,
            "subtype": [subtype] if response.interaction else None,
            "action": _ACTIONS.get(response.interaction or ""),
            "recorded": response.recorded,
            "outcome": outcome,
            "outcomeDesc": f"{status} {HTTPStatus(status).phrase}",
            "purposeOfEvent": [{"text": reason}] if reason else None,
            "agent": [filled(agent)],
            "source": {
                "site": deployment.site,
                "identifier": {"value": deployment.base_url},
            },
            "entity": [filled(request), *_content(response)],
        }
    )


def read_event(event: Mapping[str, Any]) -> AuditedResponse:
    """Return the content of an event. Raises UNREADABLE if it is none."""
    (agent,) = event["agent"]
    request, *content = event["entity"]
    returned: str | None = None
    patients: dict[str, str] = {}
    included: list[str] = []
    bundle: str | None = None
    others: list[str] = []
    for entity in content:
        kind, names = _read_patients(entity)
        if kind is None:
            reference = _reference_of(entity)
            if reference.startswith("Bundle/"):
                bundle = reference.removeprefix("Bundle/")
            elif reference:
                others.append(reference)
        elif returned in (None, kind):
            returned = kind
            patients |= names
        else:
            included += names
    return AuditedResponse(
        recorded=event["recorded"],
        status=int(event["outcomeDesc"].split()[0]),
        request_id=request["identifier"]["value"],
        interaction=event.get("subtype", [{}])[0].get("code"),
        resource_type=request.get("type", {}).get("code"),
        client=agent.get("userId", {}).get("value"),
        address=agent.get("network", {}).get("address"),
        key=request["name"],
        parameters=tuple((d["type"], d["value"]) for d in request.get("detail", ())),
        reason=event.get("purposeOfEvent", [{}])[0].get("text"),
        returned=returned,
        patients=patients,
        included=tuple(included),
        others=tuple(others),
        bundle=bundle,
    )


def _content(response: AuditedResponse) -> Iterator[Element]:
    """Yield the entities of what was returned."""
    if response.bundle:
        yield _referenced(f"Bundle/{response.bundle}")
    yield from _patients(response.returned, response.patients)
    yield from _patients("Patient", dict.fromkeys(response.included, ""))
    for reference in response.others:
        yield _referenced(reference)


def _patients(returned: str | None, patients: Mapping[str, str]) -> Iterator[Element]:
    """Yield the entities of patients, with the ids of what was returned of each."""
    digests = {}
    for name, ids in patients.items():
        if _is_reference(name):
            yield {**_referenced(name), "description": _listed(returned, ids)}
        else:
            digests[name] = ids
    if digests:
        text = _listed(returned, " ".join(digests.values()).strip())
        yield {"role": _PATIENT, "detail": [_detail(text, "".join(digests))]}


def _read_patients(entity: Mapping[str, Any]) -> tuple[str | None, Mapping[str, str]]:
    """Return the type of what an entity lists, and its ids by patient; None for no patients."""
    if entity.get("role") == _PATIENT:
        (detail,) = entity["detail"]
        kind, _, ids = detail["type"].partition("/")
        # The digests of several patients follow one another, without a separator.
        names = re.findall(f".{{{DIGEST_CHARACTERS}}}", detail["value"])
        if not ids:
            return kind, dict.fromkeys(names, "")
        return kind, dict(zip(names, ids.split(" "), strict=True))
    reference = _reference_of(entity)
    if not _is_reference(reference):
        return None, {}
    kind, _, ids = entity["description"].partition("/")
    return kind, {reference: ids}


def _reference_of(entity: Mapping[str, Any]) -> str:
    reference: str = entity.get("reference", {}).get("reference", "")
    return reference


def _is_reference(name: str) -> bool:
    return name.startswith("Patient/")


def _listed(kind: str | None, ids: str) -> str:
    """Return Encounter/8,9 for ids, Patient without any."""
    return f"{kind}/{ids}" if ids else f"{kind}"


def _detail(type: str, value: str) -> Element:
    return {"type": type, "value": value}


def _referenced(reference: str) -> Element:
    return {"reference": {"reference": reference}}
