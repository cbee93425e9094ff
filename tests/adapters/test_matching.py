"""Matching and memory: a new row in the table of search parameters needs no code there."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from adapters.contract import (
    Bound,
    Criterion,
    DateCriterion,
    DateValue,
    EncounterRecord,
    GoneError,
    Group,
    IdentifierRecord,
    NameRecord,
    NotFoundError,
    OrganizationRecord,
    PatientRecord,
    Position,
    Prefix,
    Record,
    ReferenceCriterion,
    ResourceType,
    RowFault,
    Sort,
    SortKey,
    SourceDataError,
    StringCriterion,
    StringMatch,
    TelecomRecord,
    Token,
    TokenCriterion,
)
from adapters.mapping.model import DateReading
from adapters.matching import Matcher, follows, precedes
from adapters.memory import FaultyRow, MemoryAdapter
from adapters.parameters import SEARCH_PARAMETERS, ParameterType, SearchParameter
from adapters.testing.harness import ask, ids_of
from adapters.testing.hospital import PARIS

NOON = datetime(2024, 3, 14, 12, tzinfo=PARIS)
STAY = EncounterRecord(
    "s1", "finished", "p1", "V1", "urn:v", "IMP", NOON, NOON, "U1", "o1", NOON
)
PATIENT = PatientRecord(
    "p1",
    active=True,
    identifiers=(IdentifierRecord("1", "urn:a"), IdentifierRecord("2", "urn:b")),
    names=(NameRecord(family="Duprès", given=("Jean", "Paul"), text="J. Duprès"),),
    telecoms=(TelecomRecord("01 23", "phone"),),
    gender="male",
    birth_date=date(1950, 2, 28),
    deceased_at=NOON,
    organization_id="o1",
    replaced_by="p2",
    last_updated=NOON,
)
ORGANIZATION = OrganizationRecord("o1", name="Hôpital de l'Île", part_of="o2")


def token(code: str | None, system: str | None = None) -> TokenCriterion:
    return TokenCriterion("new", (Token(system, code),))


def reference(id: str) -> ReferenceCriterion:
    return ReferenceCriterion("new", (id,))


def string(text: str, match: StringMatch = StringMatch.STARTS_WITH) -> StringCriterion:
    return StringCriterion("new", (text,), match)


def day(of: date, prefix: Prefix = Prefix.EQ) -> DateCriterion:
    low = datetime(of.year, of.month, of.day, tzinfo=PARIS)
    return DateCriterion("new", (DateValue(prefix, low, low + timedelta(days=1)),))


@pytest.mark.parametrize(
    ("record", "slot", "system_slot", "match", "other"),
    [
        (STAY, "id", None, token("s1"), token("S1")),
        (STAY, "class", None, token("IMP"), token("AMB")),
        (STAY, "functional_unit", None, token("U1"), token("U")),
        (STAY, "visit_number", "visit_number_system", token("V1", "urn:v"), token("V1", "")),
        (STAY, "visit_number", "visit_number_system", token(None, "urn:v"), token("V2")),
        (STAY, "visit_number", None, token("V1", ""), token("V1", "urn:v")),
        (STAY, "organization_id", None, reference("o1"), reference("o2")),
        (STAY, "end", None, day(NOON), day(NOON, Prefix.GT)),
        (STAY, "last_updated", None, day(NOON, Prefix.LE), day(NOON, Prefix.NE)),
        (PATIENT, "active", None, token("true"), token("false")),
        (PATIENT, "identifiers.value", "identifiers.system", token("2", "urn:b"),
         token("2", "urn:a")),
        (PATIENT, "telecoms.value", "telecoms.system", token("01 23", "phone"),
         token("01 23", "email")),
        (PATIENT, "names.family", None, string("dupres"), string("jean")),
        (PATIENT, "names.given", None, string("jean p"), string("paul jean")),
        (PATIENT, "names.given", None, string("Paul", StringMatch.EXACT),
         string("Jean Paul", StringMatch.EXACT)),
        (PATIENT, "birth_date", None, day(date(1950, 2, 28)), day(date(1950, 3, 1))),
        (PATIENT, "deceased_at", None, day(NOON), day(date(2024, 3, 15))),
        (PATIENT, "replaced_by", None, reference("p2"), reference("p1")),
        (ORGANIZATION, "name", None, string("ile"), string("opital")),
        (ORGANIZATION, "part_of", None, reference("o2"), reference("o1")),
        (ORGANIZATION, "last_updated", None, None, day(NOON, Prefix.NE)),
        (ORGANIZATION, "identifiers.value", None, None, token(None)),
    ],
)  # fmt: skip
def test_a_parameter_on_any_slot(
    monkeypatch: pytest.MonkeyPatch,
    record: Record,
    slot: str,
    system_slot: str | None,
    match: Criterion | None,
    other: Criterion,
) -> None:
    kind = ResourceType(type(record).__name__.removesuffix("Record"))
    types: dict[Any, ParameterType] = {
        TokenCriterion: ParameterType.TOKEN,
        ReferenceCriterion: ParameterType.REFERENCE,
        StringCriterion: ParameterType.STRING,
        DateCriterion: ParameterType.DATE,
    }
    row = SearchParameter(
        "new", types[type(other)], (slot,), "", system_slot=system_slot
    )
    monkeypatch.setitem(SEARCH_PARAMETERS[kind], "new", row)  # type: ignore[arg-type]
    adapter = MemoryAdapter([record], time_zone=PARIS)
    if match is not None:
        assert ids_of(adapter.search(ask(match, of=kind))) == [record.id]
    assert ids_of(adapter.search(ask(other, of=kind))) == []


@pytest.mark.parametrize(
    ("prefix", "start", "period"),
    [
        (Prefix.EQ, False, True),
        (Prefix.NE, True, False),
        (Prefix.GT, False, False),
        (Prefix.GE, False, True),
        (Prefix.LT, True, False),
        (Prefix.LE, True, True),
    ],
)
def test_the_two_readings_of_dates(prefix: Prefix, start: bool, period: bool) -> None:
    """A stay of two days, compared with both of them from its second hour on."""
    record = STAY._replace(start=NOON, end=NOON + timedelta(days=1))
    low, high = NOON + timedelta(hours=1), NOON + timedelta(days=2)
    value = DateCriterion("date", (DateValue(prefix, low, high),))
    whole = DateCriterion("date", (DateValue(prefix, NOON, high),))
    by_start = Matcher(PARIS, DateReading.START)
    by_period = Matcher(PARIS, DateReading.PERIOD)
    assert by_start.matches(record, value) is start
    assert by_period.matches(record, whole) is period


UNKEYED = Position(Group.UNKEYED, None, "9")


def at(hour: int, id: str = "1") -> Position:
    return Position(Group.KEYED, datetime(2024, 3, 14, hour, tzinfo=UTC), id)


@pytest.mark.parametrize(
    ("here", "mark", "descending", "after", "before"),
    [
        (at(2), at(1), False, True, False),
        (at(2), at(1), True, False, True),
        (at(1, "2"), at(1, "1"), False, True, False),
        (at(1), at(1), False, False, False),
        (UNKEYED, at(1), False, True, False),
        (UNKEYED, at(1), True, True, False),
        (at(2), Bound(at(1).key), False, True, False),  # type: ignore[arg-type]
        (at(1), Bound(at(1).key, included=True), False, True, True),  # type: ignore[arg-type]
        (at(1), Bound(at(1).key), False, False, False),  # type: ignore[arg-type]
        (UNKEYED, Bound(at(1).key), True, True, False),  # type: ignore[arg-type]
        (at(1), Bound(), False, False, True),
        (UNKEYED, Bound(), False, True, False),
    ],
)
def test_rows_and_cursors(
    here: Position, mark: Any, descending: bool, after: bool, before: bool
) -> None:
    sort = Sort(SortKey.DATE, descending)
    assert follows(here, mark, sort) is after
    assert precedes(here, mark, sort) is before


def test_rows_that_are_not_served() -> None:
    kind = ResourceType.ENCOUNTER
    fault = RowFault("status", "state", "no entry")
    adapter = MemoryAdapter(
        [
            STAY._replace(id="hidden", status="hidden"),
            STAY._replace(id="removed", status="removed"),
            FaultyRow(STAY._replace(id="faulty"), fault),
        ],
        time_zone=PARIS,
    )
    for id, error in (
        ("none", NotFoundError),
        ("hidden", NotFoundError),
        ("removed", GoneError),
        ("faulty", SourceDataError),
    ):
        with pytest.raises(error):
            adapter.read(kind, id)
    assert adapter.search(ask()).rows == (fault,)
    adapter.delete(kind, "faulty")
    assert adapter.count(ask()) == 0
    adapter.put(STAY)
    assert adapter.search(ask()).rows == (STAY,)
