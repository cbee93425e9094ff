"""STU3's rules that a JSON schema cannot say: the invariants of the definitions."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeAlias

Body: TypeAlias = dict[str, Any]
Rule: TypeAlias = Callable[[Body], Iterator[str]]

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


def empty_faults(body: Body) -> Iterator[str]:
    """Yield each null and each empty text, list and object."""
    for path, node in nodes(body):
        if node is None or node in ("", [], {}):
            yield f"{path}: empty ({node!r})"


def text_faults(body: Body) -> Iterator[str]:
    """Yield each text with a character that STU3's `string` does not allow."""
    for path, node in nodes(body):
        if isinstance(node, str) and _CONTROL.search(node):
            yield f"{path}: a control character ({node!r})"


def rule_faults(body: Body) -> Iterator[str]:
    """Yield what the invariants have against a resource, without those within it.

    The resource fits the schema; what does not is not looked at again.
    """
    for path, node in nodes(body):
        if isinstance(node, dict):
            for rule in ELEMENT_RULES:
                yield from (f"{path}: {fault}" for fault in rule(node))
    if rule_of_type := RESOURCE_RULES.get(str(body.get("resourceType"))):
        yield from rule_of_type(body)


def nodes(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """Yield each value of a resource with its path, leaving out resources within it."""
    yield path, value
    if isinstance(value, dict):
        for name, child in value.items():
            if not (isinstance(child, dict) and "resourceType" in child):
                yield from nodes(child, f"{path}.{name}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            if not (isinstance(child, dict) and "resourceType" in child):
                yield from nodes(child, f"{path}[{index}]")


def twice(names: list[str]) -> list[str]:
    """Return the names that occur more than once."""
    return sorted({name for name in names if names.count(name) > 1})


# ------------------------------------------------------------------------ elements


def _period(node: Body) -> Iterator[str]:
    start, end = node.get("start"), node.get("end")
    if isinstance(start, str) and isinstance(end, str) and _later(start, end):
        yield f"per-1: {start} is after {end}"


def _later(start: str, end: str) -> bool:
    if "T" in start and "T" in end:
        return datetime.fromisoformat(start) > datetime.fromisoformat(end)
    shared = min(len(start), len(end), len("2024-03-31"))
    return start[:shared] > end[:shared]


def _extensions(node: Body) -> Iterator[str]:
    for name in ("extension", "modifierExtension"):
        for extension in node.get(name, ()):
            values = [key for key in extension if key.startswith("value")]
            if len(values) + ("extension" in extension) != 1:
                yield f"{name} without exactly one value: {extension}"


def _telecom(node: Body) -> Iterator[str]:
    for telecom in node.get("telecom", ()):
        if "value" in telecom and "system" not in telecom:
            yield "cpt-2: a telecom with a value and no system"


ELEMENT_RULES: tuple[Rule, ...] = (_period, _extensions, _telecom)


# ----------------------------------------------------------------------- resources


def _patient(body: Body) -> Iterator[str]:
    for choice in ("deceased", "multipleBirth"):
        if len([name for name in body if name.startswith(choice)]) > 1:
            yield f"$: more than one {choice}[x]"


def _organization(body: Body) -> Iterator[str]:
    if "name" not in body and "identifier" not in body:
        yield "org-1: neither a name nor an identifier"
    for name in ("telecom", "address"):
        if any(each.get("use") == "home" for each in body.get(name, ())):
            yield f"org-2, org-3: a {name} of use home"


def _bundle(body: Body) -> Iterator[str]:
    urls = [entry["fullUrl"] for entry in body.get("entry", ()) if "fullUrl" in entry]
    yield from (f"bdl-7: {url} twice" for url in twice(urls))


def _capability(body: Body) -> Iterator[str]:
    for rest in body.get("rest", ()):
        resources = [each for each in rest.get("resource", ()) if "type" in each]
        types = [each["type"] for each in resources]
        yield from (f"cpb-9: {name} twice" for name in twice(types))
        for resource in resources:
            names = [each.get("name") for each in resource.get("searchParam", ())]
            yield from (f"cpb-12: {name} twice" for name in twice(names))


RESOURCE_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "Patient": _patient,
        "Organization": _organization,
        "Bundle": _bundle,
        "CapabilityStatement": _capability,
    }
)
