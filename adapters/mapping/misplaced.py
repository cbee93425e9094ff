"""Keys that stand at the wrong level, or under the wrong kind of source, and where they go."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from marshmallow import ValidationError

from adapters.contract import ResourceType
from adapters.mapping.elements import SECTIONS
from adapters.mapping.file_shapes import ConstantsShape
from adapters.mapping.shapes import Entries, KeyFault
from adapters.mapping.slots import LISTS, SLOTS

_OF_SECTIONS = ("rows", "fields", "search", "sort", "requires", "read", "list")

BESIDE_FIELDS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        _OF_SECTIONS, "stands beside fields, not in it: indent it like fields"
    )
)
"""Keys of a section that may be written among its fields."""

INSIDE: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(_OF_SECTIONS, "stands in a section: indent it below encounter, …")
    | dict.fromkeys(
        ("kind", "url", "timeout_seconds", "connections"),
        "stands in source: indent it below that",
    )
    | dict.fromkeys(ConstantsShape.known(), "stands in constants: indent it below that")
)
"""Keys that may be written at the top of a file, and stand further in."""

OF_HTTP: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        ("read", "list", "order"),
        "is for an HTTP API (kind: http): a database is read with rows",
    )
)
OF_DATABASES: Mapping[str, str] = MappingProxyType(
    {"rows": "is for a database (kind: sql): an HTTP API is read with read and list"}
)


class CodeTables(Entries):
    """The code tables by name; a section among them is told as that, once."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        found = value if isinstance(value, Mapping) else {}
        for key, node in found.items():
            table = isinstance(node, Mapping) and "table" in node
            if key in (*SECTIONS, *_OF_SECTIONS) and not table:
                text = (
                    "does not stand in codes: line it up with codes, or begin a section"
                )
                fault = KeyFault(f"'{key}' {text}", meant="encounter")
                raise ValidationError({key: [fault]})
        return super()._deserialize(value, *args, **kwargs)


def under_fields(kind: ResourceType) -> dict[str, str]:
    """Return the fields of a section, which may be written beside `fields`."""
    names = [slot.name for slot in SLOTS[kind]] + [slot.name for slot in LISTS[kind]]
    return dict.fromkeys(names, "stands in fields: indent it below that")
