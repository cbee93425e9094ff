"""Types of columns that do not fit what the mapping reads from them."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from adapters.inspection import Observation, Weight
from adapters.inspection.zones import has_offset, hidden_zone, hides_its_zone
from adapters.mapping.model import FieldMapping
from adapters.mapping.parameters import PARAMETERS, SORTS
from adapters.mapping.places import Place
from adapters.mapping.slots import Kind as SlotKind
from adapters.mapping.time_rule import TimeRule
from adapters.sql.columns import FOLDS, NUMBERS, TIMES, Kind
from adapters.sql.inspection.rows import Looked
from adapters.sql.statements import Shape

_TEXTS = (Kind.TEXT, Kind.FILLED, Kind.PADDED, Kind.LOOSE, *FOLDS)
_SOME = 200
"""How many texts are looked at to see how times are written."""

_T_PLACE = 10
"""Where ISO 8601 has its T."""


def unfit_kinds(looked: Looked) -> Iterator[Observation]:
    """Tell the columns whose type makes the service fail, err or slow down."""
    kinds = looked.section.filters.columns.kinds
    compared = compared_fields(looked)
    for place in looked.places:
        if place.rows or not place.field.columns:
            continue
        kind = kinds[place.field.filter_column or place.field.columns[0]]
        is_compared = place.field in compared
        if place.field.time is not None and place.kind in (
            SlotKind.TIME,
            SlotKind.DATE,
        ):
            found = _of_time(looked, place, kind, place.field.time, is_compared)
        elif place.kind in _OF_TEXTS:
            found = _OF_TEXTS[place.kind](place, kind, is_compared)
        else:
            continue
        if hides_its_zone(place) and kind is not Kind.INSTANT:
            named = place.field.filter_column
            values = _some_values(looked, place.field) if named else []
            if not any(map(has_offset, values)):
                yield hidden_zone(place, looked.column(place))
        for weight, text, remedy in found:
            yield Observation.at(place, looked.column(place), text, weight, remedy)


_Found = Iterator[tuple[Weight, str, str]]


def _of_time(
    looked: Looked, place: Place, kind: Kind, rule: TimeRule, is_compared: bool
) -> _Found:
    two = len(place.field.columns) > 1
    is_day = kind is Kind.DATE and place.kind is SlotKind.TIME
    if kind in NUMBERS and rule.format is None:
        text = (
            "a column of numbers, without a format: say how they are written, or make a"
            " time of them in the SELECT"
        )
        yield Weight.ERROR, text, 'format: "%Y%m%d%H%M%S"'
    elif kind in NUMBERS and is_compared:
        text = "a column of numbers is searched as text: make a text or a time of it in the SELECT"
        yield Weight.WARNING, text, ""
    elif is_day and is_compared and place.field.search_column:
        text = (
            "compared by a column of days, and has a time of day: searches by the hour and"
            " orders err. Make one column of both in the SELECT, and name that"
        )
        yield Weight.ERROR, text, ""
    elif is_day and not rule.at and not two:
        yield Weight.ERROR, "a column of days: say at what time of day", 'at: "00:00"'
    elif kind in (Kind.OTHER, Kind.BOOLEAN, Kind.UUID):
        text = "not a column of times: make one of it in the SELECT"
        yield Weight.ERROR if kind is not Kind.OTHER else Weight.WARNING, text, ""
    elif (
        kind in _TEXTS
        and rule.format is None
        and is_compared
        and (remedy := _form_with_t(looked, place.field))
    ):
        text = (
            "texts with a T between day and time, which searches compare with texts that"
            " have a blank there: say the format, or make a time of them in the SELECT"
        )
        yield Weight.WARNING, text, remedy


def _form_with_t(looked: Looked, field: FieldMapping) -> str:
    """Return the format of a few texts, "" where none has the T of ISO 8601."""
    texts = [v.strip() for v in _some_values(looked, field) if isinstance(v, str)]
    if not any(text[_T_PLACE : _T_PLACE + 1] == "T" for text in texts):
        return ""
    if all(text.endswith("Z") for text in texts):
        return 'format: "%Y-%m-%dT%H:%M:%SZ", time_zone: UTC'
    return 'format: "%Y-%m-%dT%H:%M:%S"'


def _some_values(looked: Looked, field: FieldMapping) -> list[object]:
    columns = looked.section.filters.columns
    present = columns.key(field).present
    name = field.filter_column or ""
    rows = looked.section.mapping.rows
    shape = Shape(rows, (name,), present.condition, limited=True)
    found = looked.database.fetch(shape, present.values, _SOME)
    return [value for (value,) in found]


def _of_id(place: Place, kind: Kind, is_compared: bool) -> _Found:
    if kind is Kind.NUMBER and place.kind is SlotKind.ID:
        text = "a type with fractions: an id is best an integer or a text (CAST in the SELECT)"
        yield Weight.NOTE, text, ""
    elif kind in TIMES:
        yield Weight.WARNING, "a column of times cannot be an id", ""
    elif kind in FOLDS and is_compared:
        text = (
            "compared by the database without case: the service compares exactly, and"
            " pages in the order of such a column are sorted without an index"
        )
        yield Weight.NOTE, text, ""
    elif kind is Kind.PADDED:
        text = "texts that end in blanks (CHAR): the service takes them away"
        yield Weight.NOTE, text, ""


def _of_parts(_: Place, kind: Kind, is_compared: bool) -> _Found:
    if kind is Kind.OTHER and is_compared:
        text = "a list cannot be searched: name a column of texts with search:"
        yield Weight.ERROR, text, ""


_OF_TEXTS: Mapping[SlotKind, Callable[[Place, Kind, bool], _Found]] = MappingProxyType(
    {SlotKind.ID: _of_id, SlotKind.EXACT: _of_id, SlotKind.PARTS: _of_parts}
)


def compared_fields(looked: Looked) -> tuple[FieldMapping, ...]:
    """Return the fields that searches and sorts compare."""
    section = looked.section.mapping
    slots = {
        slot
        for name in section.parameters
        for slot in PARAMETERS[section.resource_type][name]
    }
    slots |= {SORTS[section.resource_type].get(key, "") for key in section.sorts}
    return tuple(place.field for place in looked.places if place.slot in slots)
