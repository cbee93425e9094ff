"""The shape of a mapping file.

What a key may hold is said here; what keys say about each other is checked by `rules`.
The slots of a section come from the table in `slots`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from marshmallow import validates_schema

from adapters.contract import ResourceType
from adapters.mapping.checks import (
    DAY_PATTERN,
    SELECT_PATTERN,
    TIME_OF_DAY_PATTERN,
    is_own,
)
from adapters.mapping.file_shapes import (
    NEVER,
    TWICE,
    CodeTable,
    CodeTableShape,
    ConditionShape,
    ConstantsShape,
    KnownShape,
    LocalTimesShape,
)
from adapters.mapping.http_schema import http_section_shape
from adapters.mapping.misplaced import (
    BESIDE_FIELDS,
    INSIDE,
    OF_HTTP,
    CodeTables,
    under_fields,
)
from adapters.mapping.model import DateReading
from adapters.mapping.own_schema import own_section_shape
from adapters.mapping.several import SectionPart, one_or_several
from adapters.mapping.shapes import (
    Entries,
    Listed,
    Part,
    Shape,
    Text,
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
from adapters.mapping.source_schema import SOURCES, Source
from adapters.mapping.value_shapes import Columns, OneValue

_TIME_ONLY = dict.fromkeys(
    ("time_zone", "at", "twice", "never", "format"), "is only for times"
)
_TEXT_ONLY = {
    "codes": "is not for times and dates",
    "value": "is not for times and dates: they come from a column",
}
_UPDATED_ONLY = {"covers": "is only for last_updated"}
_NAME_OF_TABLE = "expected the name of a code table here: the table stands under codes"
_PARTS_ONLY = {"split": "is only for given"}
_REFERENCES_ONLY = {"source": "is only for ids of other resources"}


def _elsewhere(*others: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({k: text for other in others for k, text in other.items()})


class TextOptions(Shape):
    """A text, from a column or always the same."""

    elsewhere = _elsewhere(_TIME_ONLY, _UPDATED_ONLY, _PARTS_ONLY, _REFERENCES_ONLY)
    columns = Columns(data_key="from")
    constant = Text(data_key="value")
    codes = Text(error_messages={"invalid": _NAME_OF_TABLE})
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
    format = Text(DAY_PATTERN)


class TimeOptions(DateOptions):
    """An instant, from a column or from one of dates and one of times of day."""

    elsewhere = _elsewhere(_UPDATED_ONLY, _PARTS_ONLY, _TEXT_ONLY)
    columns = Columns(two=True, data_key="from")
    time_zone = Text()
    at = Text(TIME_OF_DAY_PATTERN)
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
        slot.name: OneValue(
            options(slot), slot.codes, required=slot.name in listed.required
        )
        for slot in listed.slots
    }
    if LINES.name in listed.content:
        keys[LINES.name] = Listed(OneValue(TextOptions))
    keys |= {"only_if": Part(ConditionShape), "rows": Text(), "key": Text()}
    keys["any_of"] = listed.content
    return type(f"{listed.name.title()}Item", (Shape,), keys)


def _fields_shape(kind: ResourceType) -> type[Shape]:
    keys: dict[str, Any] = {
        slot.name: OneValue(
            options(slot), slot.codes, required=slot.name in REQUIRED[kind]
        )
        for slot in SLOTS[kind]
    }
    keys |= {listed.name: Listed(Part(_item_shape(listed))) for listed in LISTS[kind]}
    keys["elsewhere"] = BESIDE_FIELDS
    return type(f"{kind}Fields", (Shape,), keys)


def _section_shape(kind: ResourceType) -> type[Shape]:
    keys = {
        "rows": Text(SELECT_PATTERN, required=True),
        "fields": Part(_fields_shape(kind), required=True),
        "search": Listed(Text()),
        "sort": Listed(Text()),
        "requires": Listed(Text()),
        "source": Text(),
        "elsewhere": {**under_fields(kind), **OF_HTTP},
        "instead": dict.fromkeys(OF_HTTP, "rows"),
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
        kind = source.get("kind", "sql") if isinstance(source, Mapping) else "sql"
        if is_own(kind) or (str(kind) not in SOURCES and not self._reads(value)):
            return self.of_own().load(value)
        return super()._deserialize(value, *args, **kwargs)

    def _reads(self, value: Any) -> bool:
        """Whether rows are described, as for any source but a class of one's own."""
        return not self.of_own.known().keys() >= set(value)


class MappingShape(Shape):
    """A whole mapping file."""

    elsewhere = INSIDE
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
    codes = CodeTables(CodeTable(CodeTableShape))
    encounter = Section(ResourceType.ENCOUNTER, required=True)
    patient = Section(ResourceType.PATIENT)
    organization = Section(ResourceType.ORGANIZATION)
    accepted = Listed(Part(KnownShape), data_key="known")

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def refuse_two_or_none(self, _data: Any, original: Any, **_: Any) -> None:
        """Refuse a file without a source, and one that has `source` and `sources`."""
        one_or_several(original, self.known())
