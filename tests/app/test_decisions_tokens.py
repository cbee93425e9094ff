"""Decisions 6 and 7: tokens and patients."""

from collections.abc import Iterator

import pytest
import responses

from adapters.testing.hospital import UNIT_URL
from adapters.testing.stays import EDGES
from app.service import EXTENSION
from tests.app.answers import body, refused
from tests.hospital_sql import Tables, mapping_text
from tests.redis_server import RedisServer
from tests.serving import BASE_URL, Served, ids, serve

H1, H2 = "urn:oid:1.2.250.1.999.1.1", "urn:oid:1.2.250.1.999.1.2"
STATUS = "http://hl7.org/fhir/encounter-status"
ACT_CODE = "http://hl7.org/fhir/v3/ActCode"
GENDER = "http://hl7.org/fhir/administrative-gender"
TOO_LARGE = str(2**63)


@pytest.fixture(scope="module")
def postgresql(
    redis_server: RedisServer,
    postgresql_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Served]:
    """Return a service on the edge-case hospital in PostgreSQL."""
    Tables(postgresql_url, EDGES).close()
    mapping = mapping_text(EDGES, f"'{postgresql_url}'")
    directory = tmp_path_factory.mktemp("postgresql")
    found = serve(EDGES, directory, redis_server.url, mapping=mapping)
    yield found
    found.app.extensions[EXTENSION].adapter.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def either(
    request: pytest.FixtureRequest, keys: responses.RequestsMock, edges: Served
) -> Served:
    """Return the service on one database, then on the other."""
    if request.param == "sqlite":
        return edges
    found: Served = request.getfixturevalue("postgresql")
    return found


# --------------------------------------------------------------------- decision 6


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        # any system, both, none
        ("identifier", "000123", "70 71 72"),
        ("identifier", f"{H1}|000123", "70"),
        ("identifier", f"{H2}|000123", "71"),
        ("identifier", "|000123", "72"),
        ("identifier", f"{H2}|", "71"),
        ("identifier", "urn:oid:1.2.3|000123", ""),
        ("identifier", f"{H1}|000123,{H2}|000123", "70 71"),
        # whole, exact, binary
        ("identifier", "123", "73"),
        ("identifier", "00012", ""),
        ("identifier", "0001234", ""),
        ("identifier", "V1", "1"),
        ("identifier", "v1", "2"),
        ("identifier", "A_B", "75"),
        ("identifier", "100%", "74"),
        ("identifier", "%", ""),
        ("identifier", " V1", ""),
        ("identifier", "V1 ", ""),
        ("service-provider._extension", f"{UNIT_URL}|0123", "6"),
        ("service-provider._extension", f"{UNIT_URL}|123", "7"),
        ("service-provider._extension", f"{UNIT_URL}|É", "76"),
        ("service-provider._extension", f"{UNIT_URL}|e", ""),
        ("service-provider._extension", f"{UNIT_URL}|_", "75"),
        ("service-provider._extension", "https://example.org/other|0123", ""),
        # codes with their system
        ("class", "REC", "27"),
        ("class", f"{ACT_CODE}|REC", "27"),
        ("class", "http://example.org|REC", ""),
        ("class", "|REC", ""),
        ("status", f"{STATUS}|in-progress", "22 65"),
        ("status", "in-progress", "22 65"),
        ("status", "http://example.org|in-progress", ""),
        ("status", "|in-progress", ""),
    ],
)
def test_06_tokens(either: Served, name: str, value: str, found: str) -> None:
    bundle = either.search("Encounter", {name: value, "_count": "100"})
    assert sorted(ids(bundle)) == found.split()
    assert bundle["total"] == len(bundle.get("entry", ()))


def test_06_a_system_alone_asks_for_any_of_its_codes(served: Served) -> None:
    every = served.search("Encounter", {"status": "planned,in-progress,finished"})
    assert (
        served.search("Encounter", {"status": f"{STATUS}|"})["total"] == every["total"]
    )
    assert served.search("Patient", {"gender": f"{GENDER}|female"})["total"] > 0
    assert served.search("Patient", {"gender": "urn:oid:1.2|female"})["total"] == 0


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("Encounter", "_id", "abc"),
        ("Encounter", "_id", TOO_LARGE),
        ("Encounter", "_id", "9" * 64),
        ("Encounter", "_id", f"-{TOO_LARGE}9"),
        ("Encounter", "_id", "01"),
        ("Encounter", "_id", "1.0"),
        ("Encounter", "_id", "-1"),
        ("Encounter", "patient", "abc"),
        ("Encounter", "patient", TOO_LARGE),
        ("Encounter", "patient", "Patient/01"),
        ("Encounter", "identifier", "\x00"),
        ("Encounter", "identifier", "V1\x00"),
        ("Encounter", "service-provider._extension", f"{UNIT_URL}|\x000123"),
        ("Patient", "_id", "abc"),
        ("Patient", "_id", TOO_LARGE),
        ("Patient", "identifier", "\x00"),
        ("Patient", "name", "x\x00"),
        ("Patient", "name:exact", "\x00X"),
        ("Patient", "birthdate", "0001"),
        ("Organization", "_id", "9" * 64),
        ("Organization", "name:contains", "\x00a"),
    ],
)
def test_06_a_value_the_column_cannot_hold_matches_nothing(
    either: Served, kind: str, name: str, value: str
) -> None:
    assert either.search(kind, {name: value})["total"] == 0


@pytest.mark.parametrize("prefix", ["", "ne", "gt", "lt", "ge", "le"])
@pytest.mark.parametrize("date", ["0001-01-01", "9999-12-31", "9999-12-31T23:59:59Z"])
def test_06_a_date_at_an_end_of_the_calendar_is_no_error(
    either: Served, date: str, prefix: str
) -> None:
    body(either.post("Encounter/_search", {"date": f"{prefix}{date}"}))
    if "T" not in date:
        body(either.post("Patient/_search", {"birthdate": f"{prefix}{date}"}))


@pytest.mark.parametrize("id", ["abc", TOO_LARGE, "9" * 64, "01", "1.0", "-1", "1."])
@pytest.mark.parametrize("kind", ["Encounter", "Patient"])
def test_06_an_id_the_column_cannot_hold_is_not_found(
    either: Served, kind: str, id: str
) -> None:
    refused(either.get(f"{kind}/{id}"), 404, "not-found")


# --------------------------------------------------------------------- decision 7


@pytest.mark.parametrize(
    "value", ["4", "Patient/4", f"{BASE_URL}/Patient/4", "999,Patient/4"]
)
def test_07_a_patient_by_id_reference_and_address(served: Served, value: str) -> None:
    found = served.search("Encounter", {"patient": value})
    assert {"60", "61", "62", "63", "64", "65"} <= set(ids(found))
    patients = [each["resource"].get("subject") for each in found["entry"]]
    assert patients == [{"reference": "Patient/4"}] * found["total"]


@pytest.mark.parametrize(
    "value",
    [
        "https://other.example.org/fhir/v3/Patient/4",
        f"{BASE_URL}0/Patient/4",
        f"{BASE_URL}/Encounter/4",
        BASE_URL.replace("https:", "http:") + "/Patient/4",
        "urn:uuid:c757873d-ec9a-4326-a141-556f43239520",
        "Encounter/60",
        "Organization/4",
    ],
)
def test_07_another_servers_patient_matches_nothing(served: Served, value: str) -> None:
    found = served.search("Encounter", {"patient": value})
    assert found["total"] == 0
    assert "entry" not in found


@pytest.mark.parametrize("value", ["patient/4", "/4", "Patient/", "Patient/4/"])
def test_07_what_is_no_reference_is_412(served: Served, value: str) -> None:
    for text in (value, f"{BASE_URL}/{value}"):
        answer = served.post("Encounter/_search", {"patient": text})
        assert answer.status_code == 412
