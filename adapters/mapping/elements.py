"""Paths of a mapping file in the words of FHIR."""

from collections.abc import Mapping

from adapters.contract import ResourceType
from adapters.mapping.nodes import KeyPath
from adapters.mapping.slots import LINES, LISTS, SLOTS, ListSlot

SECTIONS: Mapping[str, ResourceType] = {kind.lower(): kind for kind in ResourceType}


def element(path: KeyPath) -> str:
    """Return the FHIR element that a path of the file makes, else its keys with dots."""
    keys = [step for step in path if isinstance(step, str)]
    if keys[1:2] == ["sources"]:
        del keys[1]
    if keys[:1] == ["codes"]:
        return ".".join(keys[:2])
    if len(keys) > 2 and keys[0] in SECTIONS and keys[1] == "fields":
        kind = SECTIONS[keys[0]]
        for slot in SLOTS[kind]:
            if slot.name == keys[2]:
                return f"{kind}.{slot.element}"
        for listed in LISTS[kind]:
            if listed.name == keys[2]:
                return f"{kind}.{listed.element}{_item_element(listed, keys[3:])}"
    return ".".join(keys)


def _item_element(listed: ListSlot, keys: list[str]) -> str:
    for slot in (*listed.slots, LINES):
        if keys[:1] == [slot.name]:
            return f".{slot.element}"
    return ""
