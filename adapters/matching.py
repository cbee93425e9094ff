"""Whether a record meets a criterion, and which of two positions comes first, in Python.

The table of search parameters names the slots that a criterion is compared with; no parameter
is named here. Adapters of databases say the same in SQL, and the contract suite compares.
Rows without the sort key follow those with it, in both directions (decision 12).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from adapters.contract import (
    Bound,
    Criterion,
    DateCriterion,
    DateValue,
    EncounterRecord,
    Group,
    OrganizationRecord,
    PatientRecord,
    Position,
    Prefix,
    Record,
    ReferenceCriterion,
    ResourceType,
    Sort,
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from adapters.folding import contains, fold, starts_words
from adapters.mapping.births import days_of
from adapters.mapping.model import DateReading
from adapters.mapping.slots import LISTS, SLOTS
from adapters.parameters import SEARCH_PARAMETERS, ParameterType, SearchParameter

_TYPES: dict[type[Record], ResourceType] = {
    EncounterRecord: ResourceType.ENCOUNTER,
    PatientRecord: ResourceType.PATIENT,
    OrganizationRecord: ResourceType.ORGANIZATION,
}
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)


def resource_type_of(record: Record) -> ResourceType:
    """Return the resource type of a record."""
    return _TYPES[type(record)]


@dataclass(frozen=True, slots=True)
class Matcher:
    """Compares records with criteria, by the zone and the date reading of a deployment."""

    time_zone: ZoneInfo
    date_reading: DateReading

    def matches(self, record: Record, criterion: Criterion) -> bool:
        """Whether the record meets one of the values of the criterion."""
        row = SEARCH_PARAMETERS[resource_type_of(record)][criterion.parameter]
        match criterion:
            case TokenCriterion():  # whole and in their system (decision 6)
                held = tuple(tokens_of(record, row))
                return any(
                    _is_token(token, wanted)
                    for wanted in criterion.values
                    for token in held
                )
            case DateCriterion():  # decision 5
                return any(
                    self._is_in(record, row, value) for value in criterion.values
                )
            case ReferenceCriterion():  # decision 7
                return any(id in criterion.values for id in values_of(record, row))
            case StringCriterion():  # decision 9
                return _matches_texts(tuple(values_of(record, row)), criterion)

    def _is_in(self, record: Record, row: SearchParameter, value: DateValue) -> bool:
        """Whether a time of the record is within an interval."""
        low, high = utc(value.low), utc(value.high)
        is_period = self.date_reading is DateReading.PERIOD and row.slots == ("start",)
        if is_period and isinstance(record, EncounterRecord):
            start = utc(record.start) if record.start else _EARLIEST
            end = utc(record.end) if record.end else _LATEST
            return compares(value.prefix, start, end, low, high)
        for moment in values_of(record, row):
            if isinstance(moment, datetime):
                moment = utc(moment)
                is_in = compares(value.prefix, moment, moment, low, high)
            else:
                first, last = days_of(moment)
                days = _days(value, self.time_zone)
                is_in = compares(value.prefix, first, last, *days)
            if is_in:
                return True
        return False


def criterion_of(parameter: str, record: Record) -> Criterion | None:
    """Return a criterion of a parameter that the record meets, None if it has no value for it."""
    row = SEARCH_PARAMETERS[resource_type_of(record)].get(parameter)
    if row is None:
        return None
    if row.type is ParameterType.TOKEN:
        token = next(tokens_of(record, row), None)
        if token is None:
            return None
        return TokenCriterion(parameter, (Token(token.system or None, token.code),))
    value = next(values_of(record, row), None)
    if value is None:
        return None
    match row.type:
        case ParameterType.REFERENCE:
            return ReferenceCriterion(parameter, (value,))
        case ParameterType.STRING:
            text = value[0] if isinstance(value, tuple) else value
            return StringCriterion(parameter, (text,))
    return DateCriterion(parameter, (_day_of(value),))


def _day_of(moment: date | str) -> DateValue:
    """Return the day of a time; of a birth date without a day, all days that it may be."""
    if isinstance(moment, str):
        first, last = days_of(moment)
        end = _midnight(last) + timedelta(days=1)
        return DateValue(Prefix.EQ, _midnight(first), end)
    zone = moment.tzinfo if isinstance(moment, datetime) else UTC
    low = datetime(moment.year, moment.month, moment.day, tzinfo=zone)
    return DateValue(Prefix.EQ, low, low + timedelta(days=1))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _days(value: DateValue, zone: ZoneInfo) -> tuple[date, date]:
    """Return the calendar days that an interval touches, the last one excluded."""
    low, high = value.low.astimezone(zone), value.high.astimezone(zone)
    last = high.date()
    if high.time() != time.min:
        last += timedelta(days=1)
    return low.date(), last


def _holders(record: Record, slot: str) -> Iterator[tuple[Any, str]]:
    """Yield each object that has the value of a slot, with the name of its attribute.

    The object is the record, or for `names.family` each item of its list of names.
    """
    kind = resource_type_of(record)
    list_name, _, name = slot.rpartition(".")
    if list_name:
        slots = next(listed.slots for listed in LISTS[kind] if listed.name == list_name)
        holders = getattr(record, list_name)
    else:
        slots = SLOTS[kind]
        holders = (record,)
    attribute = next(row.record for row in slots if row.name == name)
    for holder in holders:
        yield holder, attribute


def values_of(record: Record, row: SearchParameter) -> Iterator[Any]:
    """Yield the values of a record that a parameter is compared with."""
    for slot in row.slots:
        for holder, attribute in _holders(record, slot):
            if (value := getattr(holder, attribute)) not in (None, ()):
                yield value


def tokens_of(record: Record, row: SearchParameter) -> Iterator[Token]:
    """Yield the codes of a record that a parameter is compared with.

    The system of a code without one is "".
    """
    for slot in row.slots:
        # A code and its system are attributes of the same record or item of a list.
        codes = _holders(record, slot)
        systems = _holders(record, row.system_slot or slot)
        for (holder, code_name), (_, system_name) in zip(codes, systems, strict=True):
            value = getattr(holder, code_name)
            code = str(value).lower() if isinstance(value, bool) else value
            if not isinstance(code, str):
                continue
            system = getattr(holder, system_name) if row.system_slot else None
            yield Token(system or "", code)


def _is_token(token: Token, wanted: Token) -> bool:
    """Whether a token of a record is the one that a search names (decision 6)."""
    return wanted.system in (None, token.system) and wanted.code in (None, token.code)


def _matches_texts(
    parts: tuple[str | tuple[str, ...], ...], criterion: StringCriterion
) -> bool:
    """Whether a text of a record matches one of the texts of a search."""
    if criterion.match is StringMatch.STARTS_WITH:
        whole = fold(" ".join(map(_joined, parts)))
        return any(starts_words(whole, fold(text)) for text in criterion.values)
    return any(
        _matches_text(part, text, criterion.match)
        for text in criterion.values
        for part in parts
    )


def _matches_text(texts: str | tuple[str, ...], value: str, how: StringMatch) -> bool:
    """Whether a value of a record, one text or several, matches a text of a search.

    CONTAINS compares with all of them, joined by blanks; EXACT with each of them as a whole.
    """
    if how is StringMatch.EXACT:
        return value in ((texts,) if isinstance(texts, str) else texts)
    return contains(fold(_joined(texts)), fold(value))


def _joined(texts: str | tuple[str, ...]) -> str:
    return texts if isinstance(texts, str) else " ".join(texts)


def compares(prefix: Prefix, start: date, end: date, low: date, high: date) -> bool:
    """Compare a period with [low, high), by the wording of STU3's table of prefixes.

    All are days, or instants in UTC. The end belongs to the period; where both ends are the
    same, it is a moment. An unknown bound is the earliest or the latest time there is.
    """
    inside = low <= start and end < high
    return {
        Prefix.EQ: inside,
        Prefix.NE: not inside,
        Prefix.GT: end >= high,
        Prefix.LT: start < low,
        Prefix.GE: inside or end >= high,
        Prefix.LE: inside or start < low,
    }[prefix]


def utc(moment: datetime) -> datetime:
    """Return the instant in UTC. Python compares times of one zone by their clocks alone."""
    return moment.astimezone(UTC)


def in_group(position: Position) -> tuple[Any, Any]:
    """Return the values that order the rows of one group: the sort key, then the id."""
    return (position.key, position.id)


def follows(here: Position, mark: Position | Bound, sort: Sort) -> bool:
    """Whether a row comes after a cursor, in the order of the search."""
    if isinstance(mark, Bound):
        return _beyond(here, mark, descends=sort.descending, group=Group.UNKEYED)
    if here.group is not mark.group:
        return here.group is Group.UNKEYED
    if sort.descending:
        return in_group(here) < in_group(mark)
    return in_group(here) > in_group(mark)


def precedes(here: Position, mark: Position | Bound, sort: Sort) -> bool:
    """Whether a row comes before a cursor, in the order of the search."""
    if isinstance(mark, Bound):
        return _beyond(here, mark, descends=not sort.descending, group=Group.KEYED)
    return follows(mark, here, sort)


def _beyond(here: Position, mark: Bound, *, descends: bool, group: Group) -> bool:
    """Whether a row is beyond an instant; rows of `group` are beyond every instant."""
    if here.group is Group.UNKEYED or mark.moment is None:
        return here.group is group
    assert isinstance(here.key, datetime), "only times have instants"
    if here.key == mark.moment:
        return mark.included
    return (here.key < mark.moment) is descends
