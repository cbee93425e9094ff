"""PatientSchema: the administrative profile."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract import (
    AddressRecord,
    IdentifierRecord,
    NameRecord,
    PatientRecord,
    TelecomRecord,
)
from adapters.mapping.constants import Constants
from app.schemas.patient import PatientSchema
from tests.app.schemas.same import dumped
from tests.validity import validate

TYPES = "https://example.org/fhir/identifier-types"
SCHEMA = PatientSchema(Constants(patient_identifier_type_system=TYPES))

WHOLE = PatientRecord(
    id="p-1",
    active=True,
    identifiers=(
        IdentifierRecord("42", "urn:oid:1.2.250.1", "PI", "usual", "o-1"),
        IdentifierRecord("1840", "urn:oid:1.2.250.1.213.1.4.10", "INS-NIR", "official"),
    ),
    names=(
        NameRecord("official", "Noël", ("Zoé", "Anne"), "Dr"),
        NameRecord(use="usual", text="Zoé N."),
    ),
    telecoms=(TelecomRecord("0102030405", "phone", "home"),),
    gender="female",
    birth_date=date(1984, 2, 29),
    addresses=(
        AddressRecord("home", ("1 rue Haute", "Bât. B"), "Lyon", "69001", "FR"),
    ),
    organization_id="o-1",
    last_updated=datetime(2024, 4, 1, tzinfo=UTC),
)


def written(record: PatientRecord) -> dict[str, object]:
    """The record as a client reads it, held to STU3 and the spec."""
    body: dict[str, object] = orjson.loads(orjson.dumps(dumped(SCHEMA, record)))
    validate(body)
    return body


def test_a_whole_record_is_the_whole_document() -> None:
    assert written(WHOLE) == {
        "resourceType": "Patient",
        "id": "p-1",
        "meta": {"lastUpdated": "2024-04-01T00:00:00+00:00"},
        "identifier": [
            {
                "use": "usual",
                "type": {"coding": [{"system": TYPES, "code": "PI"}]},
                "system": "urn:oid:1.2.250.1",
                "value": "42",
                "assigner": {"reference": "Organization/o-1"},
            },
            {
                "use": "official",
                "type": {"coding": [{"system": TYPES, "code": "INS-NIR"}]},
                "system": "urn:oid:1.2.250.1.213.1.4.10",
                "value": "1840",
            },
        ],
        "active": True,
        "name": [
            {
                "use": "official",
                "family": "Noël",
                "given": ["Zoé", "Anne"],
                "prefix": ["Dr"],
            },
            {"use": "usual", "text": "Zoé N."},
        ],
        "telecom": [{"system": "phone", "value": "0102030405", "use": "home"}],
        "gender": "female",
        "birthDate": "1984-02-29",
        "address": [
            {
                "use": "home",
                "line": ["1 rue Haute", "Bât. B"],
                "city": "Lyon",
                "postalCode": "69001",
                "country": "FR",
            }
        ],
        "managingOrganization": {"reference": "Organization/o-1"},
    }


def test_a_bare_record_is_its_id() -> None:
    assert written(PatientRecord("p-1")) == {"resourceType": "Patient", "id": "p-1"}


def test_an_identifier_without_a_type_has_none() -> None:
    record = PatientRecord("p-1", identifiers=(IdentifierRecord("42"),))
    assert written(record)["identifier"] == [{"value": "42"}]


def test_items_with_nothing_in_them_are_left_out() -> None:
    record = PatientRecord(
        "p-1",
        names=(NameRecord(), NameRecord(family="A", given=("", "B"))),
        addresses=(AddressRecord(lines=("", "")),),
    )
    body = written(record)
    assert body["name"] == [{"family": "A", "given": ["B"]}]
    assert "address" not in body


def test_a_telecom_of_an_unknown_kind_is_other() -> None:
    record = PatientRecord("p-1", telecoms=(TelecomRecord("0102030405"),))
    assert written(record)["telecom"] == [{"system": "other", "value": "0102030405"}]


TIME_OF_DEATH = datetime(2024, 1, 2, 3, 4, 5, tzinfo=ZoneInfo("Europe/Paris"))


@pytest.mark.parametrize(
    ("deceased", "deceased_at", "expected"),
    [
        (None, None, {}),
        (False, None, {"deceasedBoolean": False}),
        (True, None, {"deceasedBoolean": True}),
        (None, TIME_OF_DEATH, {"deceasedDateTime": "2024-01-02T03:04:05+01:00"}),
        (True, TIME_OF_DEATH, {"deceasedDateTime": "2024-01-02T03:04:05+01:00"}),
    ],
)
def test_a_time_of_death_says_more_than_yes(
    deceased: bool | None, deceased_at: datetime | None, expected: dict[str, object]
) -> None:
    body = written(PatientRecord("p-1", deceased=deceased, deceased_at=deceased_at))
    found = {name: body[name] for name in body if name.startswith("deceased")}
    assert found == expected


@pytest.mark.parametrize("active", [None, True, False])
def test_a_merged_patient_is_not_active_and_says_who_is(active: bool | None) -> None:
    body = written(WHOLE._replace(active=active, replaced_by="p-2"))
    assert body["active"] is False
    assert body["link"] == [
        {"other": {"reference": "Patient/p-2"}, "type": "replaced-by"}
    ]


def test_an_inactive_patient_is_told_so() -> None:
    assert written(PatientRecord("p-1", active=False))["active"] is False


TEXTS = st.none() | st.sampled_from(["", "a", "É o"])
NAMES = st.builds(
    NameRecord,
    use=st.sampled_from([None, "official", "old"]),
    family=TEXTS,
    given=st.lists(st.sampled_from(["", "Zoé"])).map(tuple),
    prefix=TEXTS,
    text=TEXTS,
)
ADDRESSES = st.builds(
    AddressRecord,
    use=st.sampled_from([None, "home"]),
    lines=st.lists(st.sampled_from(["", "1 rue"])).map(tuple),
    city=TEXTS,
    postal_code=TEXTS,
    country=TEXTS,
)
TELECOMS = st.builds(
    TelecomRecord,
    value=st.sampled_from(["", "0102030405"]),
    system=st.sampled_from([None, "", "phone"]),
    use=st.sampled_from([None, "home"]),
)
IDENTIFIERS = st.builds(
    IdentifierRecord,
    value=st.just("42"),
    system=TEXTS,
    type=st.sampled_from([None, "", "PI"]),
    use=st.sampled_from([None, "usual"]),
    assigner_id=st.sampled_from([None, "", "o-1"]),
)
RECORDS = st.builds(
    PatientRecord,
    id=st.just("p-1"),
    active=st.sampled_from([None, True, False]),
    identifiers=st.lists(IDENTIFIERS, max_size=3).map(tuple),
    names=st.lists(NAMES, max_size=3).map(tuple),
    telecoms=st.lists(TELECOMS, max_size=2).map(tuple),
    gender=st.sampled_from([None, "male", "unknown"]),
    birth_date=st.none() | st.dates(min_value=date(1900, 1, 1)),
    deceased=st.sampled_from([None, True, False]),
    deceased_at=st.sampled_from([None, TIME_OF_DEATH]),
    addresses=st.lists(ADDRESSES, max_size=2).map(tuple),
    organization_id=st.sampled_from([None, "", "o-1"]),
    replaced_by=st.sampled_from([None, "", "p-2"]),
    last_updated=st.sampled_from([None, TIME_OF_DEATH]),
)


@given(RECORDS)
def test_every_record_is_valid_and_nothing_is_empty(record: PatientRecord) -> None:
    assert written(record)["id"] == "p-1"
