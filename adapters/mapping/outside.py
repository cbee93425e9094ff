"""Lines that are not indented below the key that they belong to."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Holder(Protocol):
    """A field of keys and values, which knows what may stand in it."""

    def takes(self, key: str, value: object) -> bool:
        """Tell whether a key with this value may stand in it."""
        ...


def left_outside(
    original: Mapping[str, Any], known: Mapping[str, Any]
) -> Mapping[str, Sequence[str]]:
    """Return the keys that hold nothing, each with those after it that belong in it.

    `known` are the fields of the keys that may stand here.
    """
    found: dict[str, list[str]] = {}
    holder = ""
    for key, value in original.items():
        if key in known:
            holder = "" if value else key
        elif holder and _takes(known[holder], key, value):
            found.setdefault(holder, []).append(key)
    return found


def _takes(field: object, key: str, value: object) -> bool:
    return isinstance(field, Holder) and field.takes(key, value)


def indent(key: str, below: Sequence[str]) -> str:
    """Return what to say of a key that holds nothing, with the lines after it."""
    named = ", ".join(below[:2]) + (", …" if below[2:] else "")
    return f"holds nothing: indent what belongs to '{key}' below it ({named})"
