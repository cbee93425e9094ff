"""The shape of what several sources hold: a file with `sources`, a section with `sources`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from marshmallow import ValidationError, validate

from adapters.mapping.shapes import MISSING, KeyFault, Listed, Part, Shape, Text

_IN_ENTRIES = "stands in each entry of sources"


def several_shape(single: type[Shape]) -> type[Shape]:
    """Return the shape of a section with `sources`: `single` once for each, with a prefix."""
    entry = type(f"{single.__name__}Entry", (single,), {"prefix": Text(required=True)})
    at_least_one = validate.Length(min=1, error="name at least one source")
    keys: dict[str, Any] = {
        "elsewhere": MappingProxyType(dict.fromkeys(entry().fields, _IN_ENTRIES)),
        "sources": Listed(Part(entry), required=True, validate=at_least_one),
        "search": Listed(Text()),
        "sort": Listed(Text()),
    }
    return type(f"{single.__name__}Several", (Shape,), keys)


class SectionPart(Part):
    """A section: its rows from one source, or from several under `sources`."""

    def __init__(self, single: type[Shape], **kwargs: Any) -> None:
        super().__init__(single, **kwargs)
        self.several = several_shape(single)

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(value, Mapping) and "sources" in value:
            return self.several().load(value)
        return super()._deserialize(value, *args, **kwargs)


def one_or_several(file: Any) -> None:
    """Refuse a file that has both `source` and `sources`, or neither."""
    if not isinstance(file, Mapping):
        return
    if "source" not in file and "sources" not in file:
        raise ValidationError({"source": [MISSING]})
    if "source" in file and "sources" in file:
        text = "'source' and 'sources' cannot both be given"
        raise ValidationError({"source": [KeyFault(text)]})
