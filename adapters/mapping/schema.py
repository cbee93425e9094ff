"""The shape of a mapping file.

What a key may hold is said here; what keys say about each other is checked by `rules`.
The slots of a section come from the table in `slots`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from adapters.contract import ResourceType
from adapters.mapping.checks import is_own
from adapters.mapping.file_shapes import (
    NEVER,
    TWICE,
    CodeTableShape,
    ConditionShape,
    ConstantsShape,
    LocalTimesShape,
    SourceShape,
)
from adapters.mapping.http_schema import HttpSourceShape, http_section_shape
from adapters.mapping.model import DateReading
from adapters.mapping.own_schema import OwnSourceShape, own_section_shape
from adapters.mapping.several import SectionPart, one_or_several
from adapters.mapping.shapes import (
    MISSING,
    Columns,
    Entries,
    Listed,
    OneValue,
    Part,
    Shape,
    Text,
    YesNo,
    word,
)
from adapters.mapping.slots import (
    LINES,
    LISTS,
    REFERS,
    REQUIRED,
    SLOTS,
    Kind,
    ListSlot,
    Slot,
)

_TIME_ONLY = dict.fromkeys(
    ("time_zone", "at", "twice", "never", "format"), "is only for times"
)
_TEXT_ONLY = {
    "codes": "is not for times and dates",
    "value": "is not for times and dates: they come from a column",
}
_UPDATED_ONLY = {"covers": "is only for last_updated"}
_PARTS_ONLY = {"split": "is only for given"}
_REFERENCES_ONLY = {"source": "is only for ids of other resources"}


def _elsewhere(*others: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({k: text for other in others for k, text in other.items()})


class TextOptions(Shape):
    """A text, from a column or always the same."""

    elsewhere = _elsewhere(_TIME_ONLY, _UPDATED_ONLY, _PARTS_ONLY, _REFERENCES_ONLY)
    columns = Columns(data_key="from")
    constant = Text(data_key="value")
    codes = Text()
    absent = Listed(Text())
    search_column = Text(data_key="search")


class PartsOptions(TextOptions):
    """A text that may be cut into several."""

    elsewhere = _elsewhere(_TIME_ONLY, _UPDATED_ONLY)
    split = Text()


class ReferenceOptions(TextOptions):
    """The id of another resource, and where that one is when several sources hold such."""

    elsewhere = _elsewhere(_TIME_ONLY, _UPDATED_ONLY, _PARTS_ONLY)
    source = Text()


class DateOptions(Shape):
    """A calendar day, from a column."""

    elsewhere = _elsewhere(_TIME_ONLY, _UPDATED_ONLY, _PARTS_ONLY, _TEXT_ONLY)
    columns = Columns(data_key="from")
    absent = Listed(Text())
    search_column = Text(data_key="search")
    format = Text()


class TimeOptions(DateOptions):
    """An instant, from a column or from one of dates and one of times of day."""

    elsewhere = _elsewhere(_UPDATED_ONLY, _PARTS_ONLY, _TEXT_ONLY)
    columns = Columns(two=True, data_key="from")
    time_zone = Text()
    at = Text()
    twice = word(TWICE, "a way to read an hour that happens twice")
    never = word(NEVER, "a way to read an hour that never happens")


class UpdatedOptions(TimeOptions):
    """The instant of the last change; `covers: all` when no joined table is left out."""

    covers = word(("all",), "what it may cover")


_OPTIONS: Mapping[Kind, type[Shape]] = MappingProxyType(
    {
        Kind.TIME: TimeOptions,
        Kind.DATE: DateOptions,
        Kind.PARTS: PartsOptions,
    }
)


def options(slot: Slot) -> type[Shape]:
    """Return the options that a slot takes."""
    if slot.name == "last_updated":
        return UpdatedOptions
    if slot.name in REFERS:
        return ReferenceOptions
    return _OPTIONS.get(slot.kind, TextOptions)


def _item_shape(listed: ListSlot) -> type[Shape]:
    keys: dict[str, Any] = {
        slot.name: OneValue(options(slot), required=slot.name in listed.required)
        for slot in listed.slots
    }
    if LINES.name in listed.content:
        keys[LINES.name] = Listed(OneValue(TextOptions))
    keys |= {"only_if": Part(ConditionShape), "rows": Text(), "key": Text()}
    return type(f"{listed.name.title()}Item", (Shape,), keys)


def _fields_shape(kind: ResourceType) -> type[Shape]:
    keys: dict[str, Any] = {
        slot.name: OneValue(options(slot), required=slot.name in REQUIRED[kind])
        for slot in SLOTS[kind]
    }
    keys |= {listed.name: Listed(Part(_item_shape(listed))) for listed in LISTS[kind]}
    return type(f"{kind}Fields", (Shape,), keys)


def _section_shape(kind: ResourceType) -> type[Shape]:
    keys = {
        "rows": Text(required=True),
        "fields": Part(_fields_shape(kind), required=True),
        "search": Listed(Text()),
        "sort": Listed(Text()),
        "requires": Listed(Text()),
        "source": Text(),
    }
    return type(f"{kind}Section", (Shape,), keys)


class Section(SectionPart):
    """A section in the shape that the kind of the source gives it."""

    def __init__(self, kind: ResourceType, **kwargs: Any) -> None:
        of_http = http_section_shape(kind, _fields_shape(kind))
        super().__init__(_section_shape(kind), of_http, **kwargs)
        self.of_own = own_section_shape(kind)

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        _, file, *_ = args
        source = file.get("source") if isinstance(file, Mapping) else None
        if isinstance(source, Mapping) and is_own(source.get("kind")):
            return self.of_own().load(value)
        return super()._deserialize(value, *args, **kwargs)


class SqlSource(SourceShape):
    """A database."""

    may_write = YesNo()


SOURCES: Mapping[str, type[Shape]] = MappingProxyType(
    {"sql": SqlSource, "http": HttpSourceShape}
)
_SOURCE_KIND = word((*SOURCES, "package.module:Class"), "a kind of source")


class Source(fields.Field[dict[str, Any]]):
    """The hospital system: `kind` says which keys it takes."""

    default_error_messages = {  # noqa: RUF012
        "required": MISSING,
        "invalid": "expected keys and values here",
    }

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise self.make_error("invalid")
        if is_own(value.get("kind")):
            return dict(OwnSourceShape().load(value))
        try:
            kind = _SOURCE_KIND.deserialize(value.get("kind", "sql"))
        except ValidationError as error:
            raise ValidationError({"kind": error.messages}) from error
        return dict(SOURCES[str(kind)]().load(value))


class MappingShape(Shape):
    """A whole mapping file."""

    mapping = Text(required=True)
    extend = Text()
    without = Listed(Text())
    name = Text(required=True)
    profile = Text(required=True)
    time_zone = Text(required=True)
    local_times = Part(LocalTimesShape)
    date = word(tuple(DateReading), "a reading of the parameter date")
    constants = Part(ConstantsShape)
    source = Source()
    sources = Entries(Source())
    codes = Entries(Part(CodeTableShape))
    encounter = Section(ResourceType.ENCOUNTER, required=True)
    patient = Section(ResourceType.PATIENT)
    organization = Section(ResourceType.ORGANIZATION)

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def refuse_two_or_none(self, _data: Any, original: Any, **_: Any) -> None:
        """Refuse a file without a source, and one that has `source` and `sources`."""
        one_or_several(original)
