"""Audit events in two forms: AuditEvent (FHIR STU3), and a compact one of short keys.

Both hold the same facts, and `read_event` reads both. What repeats is written once: one
entity holds the digests of all patients, with the ids of what was shown of each.
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


_SHORT = {
    "recorded": "at",
    "interaction": "do",
    "resource_type": "of",
    "status": "status",
    "client": "client",
    "address": "ip",
    "request_id": "req",
    "bundle": "bundle",
    "key": "key",
    "parameters": "par",
    "reason": "why",
    "returned": "ret",
    "patients": "pat",
    "others": "ref",
}
"""The attributes of AuditedResponse in the compact form; docs/operators.md lists them."""


UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)
"""What the functions below raise that read a JSON value which is no event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedResponse:
    """What an audit event contains about one response.

    `recorded` is in UTC (ISO 8601), `interaction` a code of FHIR's restful-interaction,
    `resource_type` the requested type, `address` the IP address of the client.
    `parameters` holds their names with digests of their values. `patients` has the digest
    or the reference of each patient, with the ids of the returned resources about this
    patient ("8,9"); they are of the type `returned`, and "" if that is Patient. `others`
    are references of resources about no patient. `reason` is what a person gave. Digests
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


class Link(NamedTuple):
    """The place of an event in the chain of its writer.

    `mac` is base64. `previous` is the beginning of the MAC before, "" at the first event.
    """

    writer: str
    number: int
    previous: str
    mac: str = ""


def audit_event(response: AuditedResponse, deployment: Deployment) -> Element:
    """Return an AuditEvent."""
    status, kind, reason = response.status, response.resource_type, response.reason
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
        "detail": [_detail(*each) for each in response.parameters],
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


def compact_event(response: AuditedResponse, deployment: Deployment) -> Element:
    """Return the same facts under short keys."""
    facts = {short: getattr(response, name) for name, short in _SHORT.items()}
    url, site = deployment.base_url, deployment.site
    return filled({**facts, "url": url, "site": site, "map": deployment.mapping})


def link_event(event: Element, link: Link) -> None:
    """Add the place of an event in its chain; its `mac` becomes its last value."""
    id = f"{link.writer}-{link.number}"
    if "resourceType" not in event:
        event |= {"id": id, "prev": link.previous, "mac": link.mac}
        return
    entities = event["entity"]
    assert isinstance(entities, list)
    previous = {"name": link.previous} if link.previous else {}
    entities.append({**previous, "identifier": {"value": link.mac}})
    event["id"] = id


def read_event(event: Mapping[str, Any]) -> AuditedResponse:
    """Return the content of an event of either form. Raises UNREADABLE if it is no event."""
    if "resourceType" in event:
        return _read_fhir(event)
    facts = {name: event[short] for name, short in _SHORT.items() if short in event}
    return AuditedResponse(**facts)


def recorded_time(event: Mapping[str, Any]) -> str:
    """Return when an event was recorded, in UTC (ISO 8601). Raises UNREADABLE."""
    return str(event["recorded" if "resourceType" in event else "at"])


def read_link(event: Mapping[str, Any]) -> Link | None:
    """Return the place of an event in its chain, None without one. Raises UNREADABLE."""
    writer, _, number = event.get("id", "").rpartition("-")
    if not writer:
        return None
    if "resourceType" not in event:
        previous, mac = event["prev"], event["mac"]
    else:
        chain = event["entity"][-1]
        previous, mac = chain.get("name", ""), chain["identifier"]["value"]
    return Link(writer, int(number), str(previous), str(mac))


def _content(response: AuditedResponse) -> Iterator[Element]:
    """Yield the entities of what was returned."""
    if response.bundle:
        yield _referenced(f"Bundle/{response.bundle}")
    digests = {}
    for name, ids in response.patients.items():
        if _is_reference(name):
            text = _listed(response.returned, ids)
            yield {**_referenced(name), "description": text}
        else:
            digests[name] = ids
    if digests:
        text = _listed(response.returned, " ".join(digests.values()).strip())
        yield {"role": _PATIENT, "detail": [_detail(text, "".join(digests))]}
    for each in response.others:
        yield _referenced(each)


def _is_reference(name: str) -> bool:
    return name.startswith("Patient/")


def _listed(kind: str | None, ids: str) -> str:
    """Return Encounter/8,9 for ids, Patient without any."""
    return f"{kind}/{ids}" if ids else f"{kind}"


def _detail(type: str, value: str) -> Element:
    return {"type": type, "value": value}


def _referenced(reference: str) -> Element:
    return {"reference": {"reference": reference}}


def _read_fhir(event: Mapping[str, Any]) -> AuditedResponse:
    (agent,) = event["agent"]
    request, *content = event["entity"]
    returned: str | None = None
    patients: dict[str, str] = {}
    others: list[str] = []
    for entity in content:
        reference = entity.get("reference", {}).get("reference", "")
        if entity.get("role") == _PATIENT:
            (detail,) = entity["detail"]
            returned, _, text = detail["type"].partition("/")
            digests = re.findall(f".{{{DIGEST_CHARACTERS}}}", detail["value"])
            lists = text.split(" ") if text else [""] * len(digests)
            patients |= zip(digests, lists, strict=True)
        elif _is_reference(reference):
            returned, _, patients[reference] = entity["description"].partition("/")
        elif reference:
            others.append(reference)
    bundles = [r for r in others if r.startswith("Bundle/")]
    return AuditedResponse(
        recorded=event["recorded"],
        status=int(event["outcomeDesc"].split()[0]),
        request_id=request["identifier"]["value"],
        interaction=event.get("subtype", [{}])[0].get("code"),
        resource_type=request.get("type", {}).get("code"),
        client=agent.get("userId", {}).get("value"),
        address=agent.get("network", {}).get("address"),
        key=request["name"],
        parameters=[(d["type"], d["value"]) for d in request.get("detail", ())],
        reason=event.get("purposeOfEvent", [{}])[0].get("text"),
        returned=returned,
        patients=patients,
        others=others[len(bundles) :],
        bundle=bundles[0].removeprefix("Bundle/") if bundles else None,
    )
