"""Matching and memory: a new row in the table of search parameters needs no code there."""

from datetime import date, datetime, timedelta
from typing import Any

import pytest

from adapters.contract import (
    Criterion,
    DateCriterion,
    DateValue,
    EncounterRecord,
    IdentifierRecord,
    NameRecord,
    OrganizationRecord,
    PatientRecord,
    Prefix,
    Record,
    ReferenceCriterion,
    ResourceType,
    StringCriterion,
    StringMatch,
    TelecomRecord,
    Token,
    TokenCriterion,
)
from adapters.memory import MemoryAdapter
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
