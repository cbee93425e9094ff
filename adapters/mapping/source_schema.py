"""The shape of a source: `kind` says which."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from marshmallow import ValidationError, fields

from adapters.mapping.checks import ADDRESS_PATTERN, is_own
from adapters.mapping.file_shapes import SourceShape
from adapters.mapping.http_schema import HttpSourceShape
from adapters.mapping.own_schema import OwnSourceShape
from adapters.mapping.secrets import Secret
from adapters.mapping.shapes import (
    MISSING,
    KeyFault,
    Shape,
    YesNo,
    word,
)


class SqlSource(SourceShape):
    """A database."""

    url = Secret(ADDRESS_PATTERN, required=True)
    may_write = YesNo()


SOURCES: Mapping[str, type[Shape]] = MappingProxyType(
    {"sql": SqlSource, "http": HttpSourceShape}
)
_SOURCE_KIND = word(
    (*SOURCES, "package.module:Class"), "a kind of source (any database is sql)"
)


def _is_source(value: object) -> bool:
    return isinstance(value, Mapping) and not value.keys().isdisjoint(("kind", "url"))


class Source(fields.Field[dict[str, Any]]):
    """The hospital system: `kind` says which keys it takes."""

    default_error_messages = {  # noqa: RUF012
        "required": MISSING,
        "invalid": "expected keys and values here",
    }

    def takes(self, key: str, _value: object) -> bool:
        """Tell whether a key may stand in it, whatever its kind."""
        return any(key in shape.known() for shape in SOURCES.values())

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise self.make_error("invalid")
        if value and all(map(_is_source, value.values())):
            text = "sources that have names stand under 'sources', not under 'source'"
            raise ValidationError([KeyFault(text)])
        if is_own(value.get("kind")):
            return dict(OwnSourceShape().load(value))
        try:
            kind = _SOURCE_KIND.deserialize(value.get("kind", "sql"))
        except ValidationError as error:
            raise ValidationError({"kind": error.messages}) from error
        return dict(SOURCES[str(kind)]().load(value))
