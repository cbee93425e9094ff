"""Questions that a record of the source answers: one for each search parameter."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import Any

from adapters.contract import (
    Criterion,
    DateCriterion,
    DateValue,
    IdentifierRecord,
    Prefix,
    Record,
    ReferenceCriterion,
    StringCriterion,
    Token,
    TokenCriterion,
)

_DAY = timedelta(days=1)


def criterion_of(parameter: str, record: Record) -> Criterion | None:
    """Return a criterion that the record meets, None when it lacks what is compared."""
    make = _MAKERS.get(parameter)
    return make(parameter, record) if make else None


def _token(*slots: str) -> Callable[[str, Any], Criterion | None]:
    def make(parameter: str, record: Any) -> Criterion | None:
        value = next((v for s in slots if (v := getattr(record, s, None))), None)
        return value and TokenCriterion(parameter, (Token(None, value),))

    return make


def _identifier(parameter: str, record: Any) -> Criterion | None:
    found = _first_identifier(record)
    if found is None or not found.value:
        return None
    return TokenCriterion(parameter, (Token(found.system, found.value),))


def _first_identifier(record: Any) -> IdentifierRecord | None:
    if hasattr(record, "visit_number"):
        return IdentifierRecord(record.visit_number, record.visit_number_system)
    return next(iter(record.identifiers), None)


def _patient(parameter: str, record: Any) -> Criterion:
    return ReferenceCriterion(parameter, (record.patient_id,))


def _start(parameter: str, record: Any) -> Criterion | None:
    return record.start and _within_day(parameter, record.start)


def _born(parameter: str, record: Any) -> Criterion | None:
    born: date | None = record.birth_date
    if born is None:
        return None
    return _within_day(parameter, datetime(born.year, born.month, born.day, tzinfo=UTC))


def _within_day(parameter: str, moment: datetime) -> Criterion:
    low = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return DateCriterion(parameter, (DateValue(Prefix.EQ, low, low + _DAY),))


def _text(*parts: str) -> Callable[[str, Any], Criterion | None]:
    def make(parameter: str, record: Any) -> Criterion | None:
        texts = _texts(record, parts)
        return StringCriterion(parameter, (texts[0],)) if texts else None

    return make


def _texts(record: Any, parts: tuple[str, ...]) -> list[str]:
    if hasattr(record, "name"):
        return [record.name] if record.name else []
    found = [getattr(name, part) for name in record.names for part in parts]
    # Given names come as several.
    return [text[0] if isinstance(text, tuple) else text for text in found if text]


_MAKERS: Mapping[str, Callable[[str, Any], Criterion | None]] = MappingProxyType(
    {
        "_id": _token("id"),
        "patient": _patient,
        "date": _start,
        "identifier": _identifier,
        "status": _token("status"),
        "class": _token("class_code"),
        "gender": _token("gender"),
        "service-provider._extension": _token("functional_unit"),
        "name": _text("family", "given", "text"),
        "family": _text("family"),
        "given": _text("given"),
        "birthdate": _born,
    }
)
