"""What the spec and the decisions promise of a resource on top of STU3."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from tests.validity.stu3 import Body, nodes, resources_within

STATUSES = {"planned", "in-progress", "finished"}
CLASSES = {"EMER", "IMP", "PRENC", "AMB", "REC", "UNK"}
RELATIVE = re.compile(r"(Encounter|Patient|Organization)/[A-Za-z0-9\-.]{1,64}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
OID = re.compile(r"urn:oid:[0-2](\.(0|[1-9]\d*))+")


def promise_faults(body: Body) -> list[str]:
    """Return the promises that valid STU3 breaks, also by the resources within it."""
    if body["resourceType"] not in PROMISES:
        return [f"{body['resourceType']} is not a resource of this service"]
    faults = [*PROMISES[body["resourceType"]](body)]
    for path, node in nodes(body):
        if isinstance(node, str) and node != node.strip():
            faults.append(f"{path}: blank at an end ({node!r})")
    for resource in resources_within(body):
        faults += _known_faults(json.dumps(resource))
    return faults


# The same stays come back test after test: each is looked at once.
@lru_cache(maxsize=20_000)
def _known_faults(text: str) -> tuple[str, ...]:
    return tuple(promise_faults(json.loads(text)))


def _record(body: Body) -> Iterator[str]:
    if "id" not in body:
        yield "$: no id"
    if "versionId" in body.get("meta", {}):
        yield "$.meta: a versionId where no versions are kept (decision 19)"
    for path, node in nodes(body):
        if not isinstance(node, dict):
            continue
        target = node.get("reference")
        if isinstance(target, str) and not RELATIVE.fullmatch(target):
            yield f"{path}: not a reference within this service: {target}"


def _encounter(body: Body) -> Iterator[str]:
    yield from _record(body)
    if body.get("status") not in STATUSES:
        yield f"$.status: {body.get('status')!r} is none of spec 2.1"
    tags = {tag.get("code") for tag in body.get("meta", {}).get("tag", ())}
    patient = body.get("subject", {}).get("reference", "")
    if "SUBSETTED" not in tags and not patient.startswith("Patient/"):
        yield "$.subject: no patient (decision 16)"
    for bound, time in body.get("period", {}).items():
        if not TIME.fullmatch(str(time)):
            yield f"$.period.{bound}: {time} has no time with an offset (spec 2.1)"
    for identifier in body.get("identifier", ()):
        yield from _visit_number(identifier)
    if coding := body.get("class"):
        if coding.keys() != {"code", "display", "system"}:
            yield f"$.class: {coding} (spec 2.4)"
        if coding.get("code") not in CLASSES:
            yield f"$.class.code: {coding.get('code')!r} is none of spec 2.4"
    for extension in body.get("serviceProvider", {}).get("extension", ()):
        if extension.keys() != {"url", "valueString"}:
            yield f"$.serviceProvider.extension: {extension} (spec 2.3)"


def _visit_number(identifier: Body) -> Iterator[str]:
    if identifier.get("use") != "official" or "value" not in identifier:
        yield "$.identifier: not an official one with a value (spec 2.2)"
    (coding,) = identifier["type"]["coding"]
    parts = {"system", "version", "code", "display"}
    if coding.keys() != parts or coding["code"] != "VN":
        yield f"$.identifier.type: {coding} (spec 2.2)"
    if not OID.fullmatch(identifier.get("system", "urn:oid:1.2")):
        yield f"$.identifier.system: {identifier['system']} is no OID (spec 2.2)"


def _patient(body: Body) -> Iterator[str]:
    yield from _record(body)
    is_merged = any(link["type"] == "replaced-by" for link in body.get("link", ()))
    if is_merged and body.get("active") is not False:
        yield "$.active: a merged patient is not active (decision 9)"


def _bundle(body: Body) -> Iterator[str]:
    if body["type"] != "searchset":
        yield f"$.type: {body['type']} (spec 2.5)"
    # Two ids never differ by case alone (decision 10).
    if not re.fullmatch(r"[a-z0-9.\-]{1,64}", body.get("id", "")):
        yield f"$.id: {body.get('id')}"
    relations = [link["relation"] for link in body.get("link", ())]
    if sorted({"self", *relations}) != sorted(relations):
        yield f"$.link: not one self, or one twice: {relations} (spec 4.3)"
    if strange := {*relations} - {"self", "previous", "next"}:
        yield f"$.link: {strange} (spec 4.3)"
    modes = []
    for entry in body.get("entry", ()):
        resource, url = entry["resource"], str(entry.get("fullUrl"))
        modes.append(entry["search"]["mode"])
        is_outcome = resource["resourceType"] == "OperationOutcome"
        if (modes[-1] == "outcome") != is_outcome:
            yield f"$.entry: a {resource['resourceType']} of mode {modes[-1]}"
        elif is_outcome:
            if not url.startswith("urn:uuid:"):
                yield f"$.entry.fullUrl: {url} of an outcome"
            severities = {issue["severity"] for issue in resource["issue"]}
            if severities & {"fatal", "error"}:
                yield "$.entry: an error within a result"
        else:
            end = f"/fhir/v3/{resource['resourceType']}/{resource.get('id')}"
            if not re.match(r"https?://[^/]", url) or not url.endswith(end):
                yield f"$.entry.fullUrl: {url} is not the address of {end}"
    matches = modes.count("match")
    # There is none with _total=none (decision 13).
    if body.get("total", matches) < matches:
        yield f"$.total: {body['total']} is less than the {matches} matches of the page"


def _outcome(body: Body) -> Iterator[str]:
    for issue in body["issue"]:
        for place in issue.get("location", ()):
            if not place.startswith("http."):
                yield f"$.issue.location: {place} (decision 3)"


def _capability(body: Body) -> Iterator[str]:
    if body["fhirVersion"] not in ("3.0.1", "3.0.2"):
        yield f"$.fhirVersion: {body['fhirVersion']}"
    for rest in body["rest"]:
        for resource in rest["resource"]:
            offered = {each["code"] for each in resource.get("interaction", ())}
            if more := offered - {"read", "search-type"}:
                yield f"$.rest.resource: {sorted(more)} in a read-only service"


PROMISES: Mapping[str, Callable[[Body], Iterator[str]]] = {
    "Encounter": _encounter,
    "Patient": _patient,
    "Organization": _record,
    "Bundle": _bundle,
    "OperationOutcome": _outcome,
    "CapabilityStatement": _capability,
}
