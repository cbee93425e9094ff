"""Whether one record meets one criterion: the meaning of every search parameter, in Python.

Adapters that ask a database say the same in its language; the contract suite compares.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from adapters.contract import (
    Criterion,
    DateCriterion,
    DateValue,
    EncounterRecord,
    OrganizationRecord,
    PatientRecord,
    Prefix,
    Record,
    ReferenceCriterion,
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from adapters.mapping.model import DateReading
from adapters.words import contains, fold, starts_a_word


def moment_compares(prefix: Prefix, value: date, low: date, high: date) -> bool:
    """Compare a point in time with the half-open range [low, high) (decision 5).

    Takes days as well as instants; instants in UTC, where comparing them is safe.
    """
    inside = low <= value < high
    return {
        Prefix.EQ: inside,
        Prefix.NE: not inside,
        Prefix.GT: value >= high,
        Prefix.LT: value < low,
        Prefix.GE: value >= low,
        Prefix.LE: value < high,
    }[prefix]


def period_compares(
    prefix: Prefix, start: datetime, end: datetime, low: datetime, high: datetime
) -> bool:
    """Compare a whole stay with [low, high), word for word as STU3's table of prefixes.

    The end is the last instant of the stay. A bound that is not known is the earliest or
    the latest time there is.
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
    """Return the same instant in UTC: in one zone, Python compares clock faces instead."""
    return moment.astimezone(UTC)


_EARLIEST = datetime.min.replace(tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)
_WHOLE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Matcher:
    """Tells what meets a criterion, on a deployment with this zone and reading of dates."""

    time_zone: ZoneInfo
    date_reading: DateReading

    def matches(self, record: Record, criterion: Criterion) -> bool:
        """Whether `record` meets one of the criterion's values."""
        match criterion:
            case TokenCriterion(parameter, values):
                held = tuple(_tokens(record, parameter))
                return any(_is(token, value) for value in values for token in held)
            case DateCriterion(parameter, values):
                return any(self._at(record, parameter, value) for value in values)
            case StringCriterion(parameter, values, how):
                texts = tuple(_texts(record, parameter))
                return any(_text_matches(t, v, how) for v in values for t in texts)
            case ReferenceCriterion(parameter, values):
                return getattr(record, f"{parameter}_id") in values

    def _at(self, record: Record, parameter: str, value: DateValue) -> bool:
        match parameter, record:
            case "date", EncounterRecord():
                return self._stays_at(record, value)
            case "birthdate", PatientRecord(birth_date=date() as born):
                low, high = self._days(value)
                return moment_compares(value.prefix, born, low, high)
            case _:
                return False

    def _stays_at(self, stay: EncounterRecord, value: DateValue) -> bool:
        low, high = utc(value.low), utc(value.high)
        if self.date_reading is DateReading.PERIOD:
            start = utc(stay.start) if stay.start else _EARLIEST
            end = utc(stay.end) if stay.end else _LATEST
            return period_compares(value.prefix, start, end, low, high)
        if stay.start is None:
            return False
        return moment_compares(value.prefix, utc(stay.start), low, high)

    def _days(self, value: DateValue) -> tuple[date, date]:
        """Return the calendar days that `value` touches, the last one excluded."""
        low = value.low.astimezone(self.time_zone)
        high = value.high.astimezone(self.time_zone)
        ends_within = high.time() != time.min
        return low.date(), high.date() + ends_within * _WHOLE_DAY


def _tokens(record: Record, parameter: str) -> Iterator[Token]:
    match parameter, record:
        case "_id", _:
            yield Token("", record.id)
        case "identifier", EncounterRecord(visit_number=str(number)):
            yield Token(record.visit_number_system or "", number)
        case "identifier", PatientRecord() | OrganizationRecord():
            yield from (Token(i.system or "", i.value) for i in record.identifiers)
        case "status", EncounterRecord(status=str(code)):
            yield Token("", code)
        case "class", EncounterRecord(class_code=str(code)):
            yield Token("", code)
        case "service-provider._extension", EncounterRecord(functional_unit=str(code)):
            yield Token("", code)
        case "gender", PatientRecord(gender=str(code)):
            yield Token("", code)


def _is(held: Token, wanted: Token) -> bool:
    """Whether a token that a record holds is the one asked for (decision 6)."""
    return wanted.system in (None, held.system) and wanted.code in (None, held.code)


def _text_matches(texts: tuple[str, ...], value: str, how: StringMatch) -> bool:
    """Whether one value of a record, given as its parts, meets a searched text.

    A phrase may go across the parts; exact is one part and nothing but it.
    """
    if how is StringMatch.EXACT:
        return value in texts
    compare = starts_a_word if how is StringMatch.STARTS_WITH else contains
    return compare(fold(" ".join(texts)), fold(value))


def _texts(record: Record, parameter: str) -> Iterator[tuple[str, ...]]:
    """Yield what a text parameter compares; a prefix such as Dr names nobody."""
    match record:
        case OrganizationRecord(name=str(title)):
            yield (title,)
        case PatientRecord():
            for name in record.names:
                if parameter in ("name", "family") and name.family:
                    yield (name.family,)
                if parameter in ("name", "given") and name.given:
                    yield name.given
                if parameter == "name" and name.text:
                    yield (name.text,)
