"""What the spec and the decisions promise on top of STU3."""

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from tests.validity.rules import nodes

Body: TypeAlias = dict[str, Any]

STATUSES = ("planned", "in-progress", "finished")
CLASSES = ("EMER", "IMP", "PRENC", "AMB", "REC", "UNK")
RELATIONS = ("self", "previous", "next")
RELATIVE = re.compile(r"(Encounter|Patient|Organization)/[A-Za-z0-9\-.]{1,64}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
OID = re.compile(r"urn:oid:[0-2](\.(0|[1-9]\d*))+")


def promise_faults(body: Body) -> Iterator[str]:
    """Yield the promises that a resource breaks, without those within it."""
    promise = PROMISES.get(str(body.get("resourceType")))
    if promise is None:
        yield f"{body.get('resourceType')} is not a resource of this service"
        return
    yield from promise(body)
    for path, node in nodes(body):
        if isinstance(node, str) and node != node.strip():
            yield f"{path}: blank at an end ({node!r})"


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
    if not _cut(body) and not str(_in(body, "subject", "reference")).startswith(
        "Patient/"
    ):
        yield "$.subject: no patient (decision 16)"
    for bound, time in body.get("period", {}).items():
        if not TIME.fullmatch(str(time)):
            yield f"$.period.{bound}: {time} has no time with an offset (spec 2.1)"
    for identifier in body.get("identifier", ()):
        yield from _visit_number(identifier)
    if "class" in body:
        yield from _class(body["class"])
    yield from _provider(body.get("serviceProvider", {}))


def _visit_number(identifier: Body) -> Iterator[str]:
    if identifier.get("use") != "official" or "value" not in identifier:
        yield "$.identifier: not an official one with a value (spec 2.2)"
    codings = identifier.get("type", {}).get("coding", ())
    if [coding.get("code") for coding in codings] != ["VN"]:
        yield "$.identifier.type: not the code VN (spec 2.2)"
    for coding in codings:
        if missing := {"system", "version", "display"} - coding.keys():
            yield f"$.identifier.type.coding: no {sorted(missing)} (spec 2.2)"
    if not OID.fullmatch(identifier.get("system", "urn:oid:1.2")):
        yield f"$.identifier.system: {identifier['system']} is no OID (spec 2.2)"


def _class(coding: Body) -> Iterator[str]:
    if coding.get("code") not in CLASSES:
        yield f"$.class.code: {coding.get('code')!r} is none of spec 2.4"
    if missing := {"system", "display"} - coding.keys():
        yield f"$.class: no {sorted(missing)} (spec 2.4)"


def _provider(provider: Body) -> Iterator[str]:
    for extension in provider.get("extension", ()):
        if extension.keys() != {"url", "valueString"}:
            yield f"$.serviceProvider.extension: {extension} (spec 2.3)"


def _patient(body: Body) -> Iterator[str]:
    yield from _record(body)
    merged = any(link.get("type") == "replaced-by" for link in body.get("link", ()))
    if merged and body.get("active") is not False:
        yield "$.active: a merged patient is not active (decision 9)"


def _bundle(body: Body) -> Iterator[str]:
    if body.get("type") != "searchset":
        yield f"$.type: {body.get('type')} (spec 2.5)"
    total = body.get("total")
    if "total" in body and not isinstance(total, int):
        # None with _total=none (decision 13).
        yield "$.total: no number (spec 2.5)"
    # `_` in an id would not be FHIR; two ids never differ by case alone (decision 10).
    if not re.fullmatch(r"[a-z0-9.\-]{1,64}", str(body.get("id", ""))):
        yield f"$.id: {body.get('id')}"
    relations = [link.get("relation") for link in body.get("link", ())]
    if relations.count("self") != 1 or len(set(relations)) != len(relations):
        yield f"$.link: not one self, or one twice: {relations} (spec 4.3)"
    if strange := set(relations) - set(RELATIONS):
        yield f"$.link: {strange} (spec 4.3)"
    yield from _entries(body.get("entry", ()), total)


def _entries(entries: list[Body], total: object) -> Iterator[str]:
    matches = 0
    for entry in entries:
        resource, mode = entry.get("resource", {}), _in(entry, "search", "mode")
        if (mode == "outcome") != (resource.get("resourceType") == "OperationOutcome"):
            yield f"$.entry: a {resource.get('resourceType')} of mode {mode}"
        elif mode == "outcome":
            yield from _told(entry)
        else:
            matches += mode == "match"
            yield from _resource(entry)
    if isinstance(total, int) and total < matches:
        yield f"$.total: {total} is less than the {matches} matches of the page"


def _resource(entry: Body) -> Iterator[str]:
    resource, url = entry.get("resource", {}), str(entry.get("fullUrl"))
    end = f"/fhir/v3/{resource.get('resourceType')}/{resource.get('id')}"
    if not re.match(r"https?://[^/]", url) or not url.endswith(end):
        yield f"$.entry.fullUrl: {url} is not the address of {end}"
    if _in(entry, "search", "mode") not in ("match", "include"):
        yield f"$.entry.search: {entry.get('search')}"


def _told(entry: Body) -> Iterator[str]:
    if not str(entry.get("fullUrl")).startswith("urn:uuid:"):
        yield f"$.entry.fullUrl: {entry.get('fullUrl')} of an outcome"
    for issue in entry["resource"].get("issue", ()):
        if issue.get("severity") in ("fatal", "error"):
            yield "$.entry: an error within a result that was found"


def _outcome(body: Body) -> Iterator[str]:
    for issue in body.get("issue", ()):
        for place in issue.get("location", ()):
            if not place.startswith("http."):
                yield f"$.issue.location: {place} (decision 3)"


def _capability(body: Body) -> Iterator[str]:
    if body.get("fhirVersion") not in ("3.0.1", "3.0.2"):
        yield f"$.fhirVersion: {body.get('fhirVersion')}"
    for rest in body.get("rest", ()):
        for resource in rest.get("resource", ()):
            offered = {each.get("code") for each in resource.get("interaction", ())}
            if more := offered - {"read", "search-type"}:
                yield f"$.rest.resource: {sorted(map(str, more))} in a read-only service"


def _cut(body: Body) -> bool:
    return any(t.get("code") == "SUBSETTED" for t in _in(body, "meta", "tag") or ())


def _in(body: Body, *path: str) -> Any:
    found: Any = body
    for name in path:
        found = found.get(name, {}) if isinstance(found, dict) else {}
    return found or None


PROMISES: Mapping[str, Callable[[Body], Iterator[str]]] = MappingProxyType(
    {
        "Encounter": _encounter,
        "Patient": _patient,
        "Organization": _record,
        "Bundle": _bundle,
        "OperationOutcome": _outcome,
        "CapabilityStatement": _capability,
    }
)
