"""The shape of what several sources hold: a file with `sources`, a section with `sources`."""

from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Any

from marshmallow import ValidationError, validate

from adapters.mapping.checks import PREFIX_PATTERN
from adapters.mapping.problems import nearest
from adapters.mapping.shapes import MISSING, KeyFault, Listed, Part, Shape, Text

_NO_KINDS: Mapping[str, str] = MappingProxyType({})
_IN_ENTRIES = "stands in each entry of sources"


def several_shape(
    single: type[Shape], of_http: type[Shape], kinds: Mapping[str, str] = _NO_KINDS
) -> type[Shape]:
    """Return the shape of a section with `sources`: one of the two for each, with a prefix.

    `kinds` holds the kinds of the file's sources by name.
    """
    entry = EntryPart(_entry(single), _entry(of_http), kinds)
    at_least_one = validate.Length(min=1, error="name at least one source")
    own = {**_entry(of_http)().fields, **_entry(single)().fields}
    keys: dict[str, Any] = {
        "elsewhere": MappingProxyType(dict.fromkeys(own, _IN_ENTRIES)),
        "sources": Listed(entry, required=True, validate=at_least_one),
        "search": Listed(Text()),
        "sort": Listed(Text()),
    }
    return type(f"{single.__name__}Several", (Shape,), keys)


def _entry(shape: type[Shape]) -> type[Shape]:
    return type(
        f"{shape.__name__}Entry",
        (shape,),
        {"prefix": Text(PREFIX_PATTERN, required=True)},
    )


class OfKind(Part):
    """Keys and values in the shape that the kind of the source gives them."""

    def __init__(
        self, single: type[Shape], of_http: type[Shape], **kwargs: Any
    ) -> None:
        super().__init__(single, **kwargs)
        self.of_http = of_http

    def loaded(
        self, value: Any, kinds: Mapping[str, str], *args: Any, **kwargs: Any
    ) -> Any:
        """Return the value, read as the kind of the source that it names wants it."""
        named = value.get("source", "") if isinstance(value, Mapping) else ""
        kind = kinds.get(named, "") if isinstance(named, str) else ""
        if kind == "http" or (kind != "sql" and "read" in value):
            return self.of_http().load(value)
        return super()._deserialize(value, *args, **kwargs)


class EntryPart(OfKind):
    """One of several sources of a section."""

    def __init__(
        self, single: type[Shape], of_http: type[Shape], kinds: Mapping[str, str]
    ) -> None:
        super().__init__(single, of_http)
        self._kinds = kinds

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return self.loaded(value, self._kinds, *args, **kwargs)


class SectionPart(OfKind):
    """A section: its rows from one source, or from several under `sources`."""

    def __init__(
        self, single: type[Shape], of_http: type[Shape], **kwargs: Any
    ) -> None:
        super().__init__(single, of_http, **kwargs)
        self.single = single
        self.several = several_shape(single, of_http)

    def takes(self, key: str, _value: object) -> bool:
        """Tell whether a key may stand in it, whatever the kind of the source."""
        shapes = (self.single, self.of_http, self.several)
        return any(key in shape.known() for shape in shapes)

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        _, file, *_ = args
        kinds = _kinds(file)
        if isinstance(value, Mapping) and "sources" in value:
            return several_shape(self.single, self.of_http, kinds)().load(value)
        return self.loaded(value, kinds, *args, **kwargs)


def _kinds(file: Any) -> Mapping[str, str]:
    """Return the kind of each source by its name, "" for one that stands alone."""
    if not isinstance(file, Mapping):
        return _NO_KINDS
    several = file.get("sources")
    sources = {"": file.get("source")}
    sources |= several if isinstance(several, Mapping) else {}
    return {
        name: str(source.get("kind", "sql"))
        for name, source in sources.items()
        if isinstance(source, Mapping)
    }


def one_or_several(file: Any, known: Container[str]) -> None:
    """Refuse a file that has both `source` and `sources`, or neither.

    A misspelt one is told as that: it is a key that is not known.
    """
    if not isinstance(file, Mapping):
        return
    names = ("source", "sources")
    meant = any(nearest(key, names) for key in file if key not in known)
    if not meant and "source" not in file and "sources" not in file:
        raise ValidationError({"source": [MISSING]})
    if "source" in file and "sources" in file:
        text = "'source' and 'sources' cannot both be given"
        raise ValidationError({"source": [KeyFault(text)]})
