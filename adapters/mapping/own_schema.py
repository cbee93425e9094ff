"""The shape of a mapping whose source is a class of the hospital's own."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from adapters.contract import ResourceType
from adapters.mapping.secrets import Secret
from adapters.mapping.shapes import Entries, Listed, Number, Shape, Text, Whole

CLASS_PATH = r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*$"
"""The path of a class as a pattern: package.module:Class."""

_READS = "is not for a class of your own: the class reads its rows itself"
_ALONE = "cannot be given: a class of your own stands alone, under source"

_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("rows", "fields", "requires", "read", "list", "order"), _READS)
    | dict.fromkeys(("source", "sources"), _ALONE)
)


class OwnSourceShape(Shape):
    """A class of an installed package; `options` are its own."""

    kind = Text(required=True)
    url = Secret()
    timeout_seconds = Number(0.1, 60)
    count_timeout_seconds = Number(0.1, 60)
    connections = Whole(1, 100)
    options = Entries(Secret())


def own_section_shape(kind: ResourceType) -> type[Shape]:
    """Return the shape of a section whose records a class returns."""
    keys: dict[str, Any] = {
        "elsewhere": _ELSEWHERE,
        "search": Listed(Text()),
        "sort": Listed(Text()),
    }
    return type(f"{kind}OwnSection", (Shape,), keys)
