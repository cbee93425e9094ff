"""What FHIR STU3 has against a resource: its strict schema, and rules that no schema can say."""

import gzip
import json
import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from jsonschema import Draft6Validator

Body: TypeAlias = dict[str, Any]

STU3 = Path(__file__).parents[1] / "stu3"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


def fhir_faults(body: Body) -> list[str]:
    """Return what STU3 has against the body and against the resources within it."""
    faults = [*_schema_faults(body), *_value_faults(body)] or [*_rule_faults(body)]
    for resource in resources_within(body):
        faults += _known_faults(json.dumps(resource))
    return faults


# The same stays come back test after test: each is looked at once.
@lru_cache(maxsize=20_000)
def _known_faults(text: str) -> tuple[str, ...]:
    return tuple(fhir_faults(json.loads(text)))


def resources_within(body: Body) -> list[Body]:
    """Return the resources of a Bundle, and those that are contained."""
    entries = [each["resource"] for each in body.get("entry", ()) if "resource" in each]
    return [*body.get("contained", ()), *entries]


def nodes(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """Yield each value of a resource with its path, leaving out resources within it."""
    yield path, value
    parts: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        parts = [(f"{path}.{name}", child) for name, child in value.items()]
    elif isinstance(value, list):
        parts = [(f"{path}[{index}]", child) for index, child in enumerate(value)]
    for place, child in parts:
        if not (isinstance(child, dict) and "resourceType" in child):
            yield from nodes(child, place)


def _value_faults(body: Body) -> Iterator[str]:
    for path, node in nodes(body):
        if node is None or node in ("", [], {}):
            yield f"{path}: empty ({node!r})"
        elif isinstance(node, str) and _CONTROL.search(node):
            yield f"{path}: a control character ({node!r})"


def _rule_faults(body: Body) -> Iterator[str]:
    """Yield what the invariants have against a resource that fits the schema."""
    for path, node in nodes(body):
        if isinstance(node, dict):
            yield from (f"{path}: {fault}" for fault in _element_faults(node))
    if len([name for name in body if name.startswith("deceased")]) > 1:
        yield "$: more than one deceased[x]"
    if body["resourceType"] == "Organization" and not {"name", "identifier"} & {*body}:
        yield "$: org-1: neither a name nor an identifier"
    urls = [entry["fullUrl"] for entry in body.get("entry", ()) if "fullUrl" in entry]
    if len({*urls}) < len(urls):
        yield f"$.entry: bdl-7: a fullUrl twice in {urls}"
    for rest in body.get("rest", ()):
        types = [each["type"] for each in rest.get("resource", ())]
        if len({*types}) < len(types):
            yield f"$.rest: cpb-9: a type twice in {types}"
        for resource in rest.get("resource", ()):
            names = [each["name"] for each in resource.get("searchParam", ())]
            if len({*names}) < len(names):
                yield f"$.rest.resource: cpb-12: a parameter twice in {names}"


def _element_faults(node: Body) -> Iterator[str]:
    times = [str(node.get(name, "")) for name in ("start", "end")]
    if all("T" in time for time in times):
        start, end = map(datetime.fromisoformat, times)
        if start > end:
            yield f"per-1: {start} is after {end}"
    for extension in node.get("extension", ()):
        values = [key for key in extension if key.startswith("value")]
        if len(values) + ("extension" in extension) != 1:
            yield f"an extension without exactly one value: {extension}"
    for telecom in node.get("telecom", ()):
        if "value" in telecom and "system" not in telecom:
            yield "cpt-2: a telecom with a value and no system"


# ------------------------------------------------------------------------- schema


def _schema_faults(body: Body) -> Iterator[str]:
    resource_type = body.get("resourceType")
    if resource_type not in codes("resource-types"):
        yield f"no such resource type: {resource_type!r}"
        return
    for error in _validator(str(resource_type)).iter_errors(body):
        yield f"{error.json_path}: {error.message[:200]}"


@cache
def codes(name: str) -> dict[str, str]:
    """Return the codes of an STU3 code system with their displays."""
    systems = json.loads((STU3 / "codes.json").read_text())
    labels: dict[str, str] = systems[name]["codes"]
    return labels


@cache
def _validator(resource_type: str) -> Draft6Validator:
    return Draft6Validator(_definitions()[resource_type])


@cache
def _definitions() -> dict[str, Any]:
    """Return the schema's definitions, each reference replaced by what it refers to.

    That is three times as fast as following them. Resources within a resource are looked
    at by themselves: the schema's own choice among all types is slow and explains nothing.
    The published schema forgets that an element with properties is an object.
    """
    with gzip.open(STU3 / "fhir.schema.strict.json.gz") as file:
        definitions: dict[str, Any] = json.load(file)["definitions"]
    definitions["ResourceList"] = {"type": "object", "required": ["resourceType"]}
    for definition in list(definitions.values()):
        if "properties" in definition:
            definition["type"] = "object"
        _link(definition, definitions)
    return definitions


def _link(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, dict):
        if "$ref" in node:
            return definitions[node["$ref"].rpartition("/")[2]]
        node.update({name: _link(child, definitions) for name, child in node.items()})
    elif isinstance(node, list):
        node[:] = [_link(child, definitions) for child in node]
    return node
