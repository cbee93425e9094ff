"""EncounterSchema: spec 2.1 to 2.4, from a whole record down to the barest one."""

from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from zoneinfo import ZoneInfo

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract import EncounterRecord
from adapters.mapping.constants import Constants
from app.schemas.encounter import CLASS_LABELS, EncounterSchema
from tests.app.schemas.same import dumped
from tests.validity import validate
from tests.validity.schema import codes

PARIS = ZoneInfo("Europe/Paris")
UNIT_URL = "https://example.org/fhir/StructureDefinition/functional-unit"
CONSTANTS = Constants(functional_unit_extension=UNIT_URL)
SCHEMA = EncounterSchema(CONSTANTS)

BARE = EncounterRecord(id="e-1", status="planned", patient_id="p-1")
WHOLE = EncounterRecord(
    id="e-1",
    status="finished",
    patient_id="p-1",
    visit_number="000123456",
    visit_number_system="urn:oid:1.2.250.1.999.1.1",
    class_code="IMP",
    start=datetime(2024, 3, 30, 8, 15, tzinfo=PARIS),
    end=datetime(2024, 3, 31, 17, 0, tzinfo=PARIS),
    functional_unit="0123",
    organization_id="o-1",
    last_updated=datetime(2024, 4, 1, 6, 0, 0, 120_000, tzinfo=UTC),
)


def written(
    record: EncounterRecord, schema: EncounterSchema = SCHEMA
) -> dict[str, object]:
    """The record as a client reads it, held to STU3 and the spec."""
    body: dict[str, object] = orjson.loads(orjson.dumps(dumped(schema, record)))
    validate(body)
    return body


def test_a_whole_record_is_the_whole_document() -> None:
    body = written(WHOLE)

    assert body == {
        "resourceType": "Encounter",
        "id": "e-1",
        "meta": {"lastUpdated": "2024-04-01T06:00:00.120000+00:00"},
        "identifier": [
            {
                "use": "official",
                "type": {
                    "coding": [
                        {
                            "system": CONSTANTS.identifier_type_system,
                            "version": "3.0.1",
                            "code": "VN",
                            "display": "Visit Number",
                        }
                    ]
                },
                "system": "urn:oid:1.2.250.1.999.1.1",
                "value": "000123456",
                "assigner": {"reference": "Organization/o-1"},
            }
        ],
        "status": "finished",
        "subject": {"reference": "Patient/p-1"},
        "period": {
            "start": "2024-03-30T08:15:00+01:00",
            "end": "2024-03-31T17:00:00+02:00",
        },
        "serviceProvider": {
            "extension": [{"url": UNIT_URL, "valueString": "0123"}],
            "reference": "Organization/o-1",
        },
        "class": {
            "code": "IMP",
            "display": "inpatient encounter",
            "system": "http://hl7.org/fhir/v3/ActCode",
        },
    }
    assert list(body) == [
        *("resourceType", "id", "meta", "identifier", "status", "subject"),
        *("period", "serviceProvider", "class"),
    ]


def test_what_the_record_lacks_is_left_out() -> None:
    assert written(BARE) == {
        "resourceType": "Encounter",
        "id": "e-1",
        "status": "planned",
        "subject": {"reference": "Patient/p-1"},
    }


def test_an_open_stay_has_no_end() -> None:
    assert written(WHOLE._replace(end=None))["period"] == {
        "start": "2024-03-30T08:15:00+01:00"
    }


def test_a_stay_with_an_end_alone_keeps_it() -> None:
    assert written(WHOLE._replace(start=None))["period"] == {
        "end": "2024-03-31T17:00:00+02:00"
    }


def test_a_visit_number_without_a_system_says_none() -> None:
    (identifier,) = SCHEMA.dump(WHOLE._replace(visit_number_system=None))["identifier"]
    assert list(identifier) == ["use", "type", "value", "assigner"]


def test_a_system_without_a_visit_number_is_no_identifier() -> None:
    assert "identifier" not in written(WHOLE._replace(visit_number=None))


def test_a_unit_without_an_organization_is_the_extension_alone() -> None:
    body = written(WHOLE._replace(organization_id=None))
    assert body["serviceProvider"] == {
        "extension": [{"url": UNIT_URL, "valueString": "0123"}]
    }


def test_an_organization_without_a_unit_is_the_reference_alone() -> None:
    body = written(WHOLE._replace(functional_unit=None))
    assert body["serviceProvider"] == {"reference": "Organization/o-1"}


def test_without_an_extension_url_a_unit_cannot_be_said() -> None:
    body = written(WHOLE, EncounterSchema(Constants()))
    assert body["serviceProvider"] == {"reference": "Organization/o-1"}


@pytest.mark.parametrize("code", CLASS_LABELS)
def test_all_six_classes_share_one_system(code: str) -> None:
    assert written(WHOLE._replace(class_code=code))["class"] == {
        "code": code,
        "display": CLASS_LABELS[code],
        "system": "http://hl7.org/fhir/v3/ActCode",
    }


def test_a_class_gets_its_own_system_where_the_mapping_names_one() -> None:
    local = "https://example.org/fhir/class"
    schema = EncounterSchema(Constants(class_systems=MappingProxyType({"REC": local})))
    systems = {
        each["class"]["code"]: each["class"]["system"]
        for each in schema.dump(
            [WHOLE._replace(class_code=code) for code in ("REC", "UNK")], many=True
        )
    }
    assert systems == {"REC": local, "UNK": "http://hl7.org/fhir/v3/ActCode"}


def test_class_labels_are_those_of_the_code_system() -> None:
    known = codes("v3-ActCode")
    assert {code: label for code, label in CLASS_LABELS.items() if code in known} == {
        code: known[code] for code in ("EMER", "IMP", "PRENC", "AMB")
    }


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (datetime(2024, 10, 27, 2, 30, tzinfo=PARIS), "2024-10-27T02:30:00+02:00"),
        (
            datetime(2024, 10, 27, 2, 30, tzinfo=PARIS, fold=1),
            "2024-10-27T02:30:00+01:00",
        ),
        (
            datetime(2024, 1, 1, tzinfo=timezone(-timedelta(hours=3, minutes=30))),
            "2024-01-01T00:00:00-03:30",
        ),
        (
            datetime(2024, 1, 1, microsecond=1, tzinfo=PARIS),
            "2024-01-01T00:00:00.000001+01:00",
        ),
    ],
)
def test_times_keep_their_offset_and_their_fraction(time: datetime, text: str) -> None:
    assert written(BARE._replace(start=time))["period"] == {"start": text}


TEXTS = st.text(
    st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12
).filter(lambda text: text == text.strip())
IDS = st.from_regex(r"[A-Za-z0-9\-.]{1,64}", fullmatch=True)
TIMES = st.datetimes(
    min_value=datetime(1950, 1, 1),  # noqa: DTZ001 - the zone is drawn beside it
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([PARIS, UTC, ZoneInfo("America/Cayenne")]),
)
OPTIONAL_TEXTS = st.none() | st.just("") | TEXTS
RECORDS = st.builds(
    EncounterRecord,
    id=IDS,
    status=st.sampled_from(["planned", "in-progress", "finished"]),
    patient_id=IDS,
    visit_number=OPTIONAL_TEXTS,
    visit_number_system=st.sampled_from([None, "", "urn:oid:1.2.250.1"]),
    class_code=st.none() | st.sampled_from(list(CLASS_LABELS)),
    start=st.none() | TIMES,
    end=st.none(),
    functional_unit=OPTIONAL_TEXTS,
    organization_id=st.none() | st.just("") | IDS,
    last_updated=st.none() | TIMES,
)


@given(RECORDS, st.none() | st.integers(min_value=2, max_value=10_000))
def test_every_record_is_valid_and_nothing_is_empty(
    record: EncounterRecord, hours: int | None
) -> None:
    if record.start and hours:
        record = record._replace(end=record.start + timedelta(hours=hours))
    body = written(record)
    assert body["id"] == record.id
    assert ("identifier" in body) == bool(record.visit_number)


def test_many_records_are_written_as_each_alone() -> None:
    records = [BARE, WHOLE, BARE]
    assert SCHEMA.dump(records, many=True) == [SCHEMA.dump(each) for each in records]
