"""The strict STU3 JSON schema: elements, types, cardinalities and required codes."""

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft6Validator

STU3 = Path(__file__).parents[1] / "stu3"


@cache
def definitions() -> dict[str, Any]:
    """Return the schema's definitions, each reference replaced by what it refers to.

    That is three times as fast as following them. Resources within a resource are only
    seen as objects: the schema's own choice among all types is slow and explains nothing,
    so that the validator looks at each of them by itself. The published schema forgets to
    say that an element with properties is an object; without that a list would do.
    """
    with gzip.open(STU3 / "fhir.schema.strict.json.gz") as file:
        found: dict[str, Any] = json.load(file)["definitions"]
    found["ResourceList"] = {"type": "object", "required": ["resourceType"]}
    for definition in list(found.values()):
        if "properties" in definition:
            definition["type"] = "object"
        _link(definition, found)
    return found


def _link(node: Any, found: dict[str, Any]) -> Any:
    if isinstance(node, dict):
        if "$ref" in node:
            return found[node["$ref"].rpartition("/")[2]]
        node.update({name: _link(child, found) for name, child in node.items()})
    elif isinstance(node, list):
        node[:] = [_link(child, found) for child in node]
    return node


@cache
def codes(name: str) -> dict[str, str]:
    """Return the codes of an STU3 code system with their displays."""
    systems = json.loads((STU3 / "codes.json").read_text())
    found: dict[str, str] = systems[name]["codes"]
    return found


@cache
def _validator(resource_type: str) -> Draft6Validator:
    return Draft6Validator(definitions()[resource_type])


def schema_faults(body: dict[str, Any]) -> Iterator[str]:
    """Yield what the schema has against a resource."""
    resource_type = body.get("resourceType")
    if resource_type not in codes("resource-types"):
        yield f"no such resource type: {resource_type!r}"
        return
    for error in _validator(str(resource_type)).iter_errors(body):
        yield f"{error.json_path}: {error.message[:200]}"
