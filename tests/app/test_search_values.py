"""Decisions 3, 6 and 7: bad values, tokens, references to patients."""

from collections.abc import Iterator, Mapping

import pytest
import responses

from adapters.testing.hospital import EDGES, UNIT_URL
from app.service import EXTENSION
from tests.app.answers import body, messages, refused
from tests.hospital_sql import Tables, mapping_text
from tests.redis_server import RedisServer
from tests.serving import BASE_URL, Served, ids, relations, serve

LENIENT = {"Prefer": "handling=lenient"}
PREFERENCES = pytest.mark.parametrize("prefer", [{}, LENIENT], ids=str)
GROUPS = pytest.mark.parametrize("group", ["group-a", "group-b"])

LONG = "urn:oid:1.2.250.1.213.1.4.10.111.222.333.444.555.666.777.888"

BAD = (
    # type, parameter, value, the part that is wrong, what is allowed
    ("Encounter", "date", "2019-02-30", "2019-02-30", "YYYY-MM-DD"),
    ("Encounter", "date", "14/03/2019", "14/03/2019", "YYYY-MM-DD"),
    ("Encounter", "date", "ge2019-13-01", "2019-13-01", "ge"),
    ("Encounter", "date", "2019-03-14T10", "2019-03-14T10", "YYYY-MM-DDThh:mm"),
    ("Encounter", "date", "2019-03-14T25:00", "2019-03-14T25:00", "YYYY-MM-DDThh:mm"),
    ("Encounter", "date", "eq", "eq", "YYYY"),
    ("Encounter", "date", "eq", "eq", "no date follows the prefix"),
    ("Encounter", "date", "2024-03-14 08:15", "2024-03-14 08:15' is not", "YYYY"),
    ("Encounter", "date", "sa2024", "sa", "is not supported here; allowed"),
    ("Encounter", "date", "zz2024", "zz", "is not known; allowed"),
    ("Encounter", "date", "2024-03-14T08:15+14:01", "+14:01", "calendar"),
    ("Encounter", "date", "2024-03-14T08:15-15:00", "-15:00", "calendar"),
    ("Encounter", "date", "2024-03-14T08:15+10:60", "+10:60", "calendar"),
    ("Encounter", "date", "lt9999-05-05T99:99", "9999-05-05T99:99", "calendar"),
    ("Encounter", "date", "ge1000-01-01T25:00:00", "1000-01-01T25", "calendar"),
    ("Encounter", "date", "ge0999-01-01T00:00+99:99", "0999-01-01", "calendar"),
    ("Encounter", "date", "xx2019-03-14", "xx", "eq, ne, gt, lt, ge, le"),
    ("Encounter", "date", "GE2019", "GE", "eq, ne, gt, lt, ge, le"),
    ("Encounter", "date", "2024-01-01,hier", "hier", "YYYY"),
    ("Encounter", "patient", "Patient/a b", "Patient/a b", "Patient/<id>"),
    ("Encounter", "patient", "Patient/", "Patient/", "Patient/<id>"),
    ("Encounter", "patient", "42_1", "42_1", "Patient/<id>"),
    ("Encounter", "_id", "a/b", "a/b", "1 to 64"),
    ("Encounter", "_id", "x" * 65, "x" * 60, "1 to 64"),
    ("Encounter", "identifier", "a|b|c", "a|b|c", "system|code"),
    ("Encounter", "service-provider._extension", "0123", "0123", UNIT_URL),
    ("Encounter", "service-provider._extension", f"{UNIT_URL}|", UNIT_URL, UNIT_URL),
    ("Encounter", "identifier", f"{LONG}|V1|2", "|V1|2'", "system|code"),
    ("Encounter", "_sort", "status", "status", "date, -date"),
    ("Encounter", "_sort", "date,_id", "date,_id", "_lastUpdated"),
    ("Encounter", "_sort", "+date", "date", "date, -date"),
    ("Encounter", "_summary", "some", "some", "count"),
    ("Encounter", "_elements", "status,nom", "nom", "Encounter"),
    ("Encounter", "_pretty", "yes", "yes", "true or false"),
    ("Patient", "birthdate", "1950-02-28T10:00", "1950-02-28T10:00", "YYYY-MM-DD"),
    ("Patient", "name", "--", "--", "letter"),
    ("Organization", "_sort", "name", "name", "_id"),
    *(
        ("Encounter", "status", value, value, "planned, in-progress, finished")
        for value in ("arrived", "Planned")
    ),
    ("Encounter", "status", "planned,foo", "foo", "planned, in-progress, finished"),
    ("Encounter", "class", "ZZZ", "ZZZ", "EMER, IMP, PRENC, AMB, REC, UNK"),
    ("Encounter", "class", "http://example.org|ZZZ", "|ZZZ", "EMER, IMP"),
    ("Patient", "gender", "m", "m", "male, female, other, unknown"),
    *(
        ("Encounter", "identifier", value, "empty", "no comma without one beside it")
        for value in (",", "a,", ",a", "a,,b", "|")
    ),
    *(
        ("Encounter", "identifier", value, value, "a backslash is allowed only")
        for value in ("a\\", r"a\b", r"\ a")
    ),
    *(
        ("Encounter", "patient", value, value, "Patient/<id>")
        for path in ("patient/4", "/4", "Patient/", "Patient/4/")
        for value in (path, f"{BASE_URL}/{path}")
    ),
    *(
        ("Encounter", "_sort", value, value, "date, -date")
        for value in ("date,_lastUpdated", "_id", "--date", "-")
    ),
    ("Patient", "_sort", "date", "date", "_id, -_id"),
    ("Patient", "_sort", "name", "name", "_id, -_id"),
    ("Organization", "_sort", "-name", "-name", "_id, -_id"),
)


@pytest.mark.parametrize(("kind", "name", "value", "part", "allowed"), BAD)
def test_a_bad_value_names_parameter_part_and_allowed_forms(
    served: Served, kind: str, name: str, value: str, part: str, allowed: str
) -> None:
    """Decision 3; also decisions 4 (escapes), 5 (dates), 7 (references) and 8 (`_sort`)."""
    is_code = name in ("status", "class", "gender")
    answer = served.post(f"{kind}/_search", {"_id": "1", name: value})
    text = refused(answer, 412, "code-invalid" if is_code else "value", name)
    assert name in text
    assert part in text
    assert allowed in text


@pytest.mark.parametrize(
    "params",
    [
        [("date", "9" * 60_000)],
        [("date", "x" * 60_000)],
        [("date", "eq2024-01-01T" + "0" * 60_000)],
        # A pattern with more than one way to match these would take minutes.
        [("date", "1" + "T " * 20_000)],
        [("_count", "0" * 60_000 + "x")],
        [("_count", "5"), ("_count", "5" * 60_000)],
    ],
    ids=lambda params: f"{params[-1][0]}={params[-1][1][:9]}",
)
def test_a_long_value_is_not_returned_whole(
    served: Served, params: list[tuple[str, str]]
) -> None:
    """Decision 3."""
    answer = served.post("Encounter/_search", params)
    assert len(refused(answer, 412, "value", params[0][0])) < 500


def test_an_escaped_bar_is_a_value(served: Served) -> None:
    """Decision 3."""
    assert ids(served.search("Encounter", {"identifier": r"\|"})) == []


NAMES = {
    "Encounter": "patient date identifier status service-provider._extension class _sort"
    " _id _count _summary _elements _pretty",
    "Patient": "name family given birthdate gender identifier _id name:exact",
    "Organization": "name identifier _id",
}


@PREFERENCES
@pytest.mark.parametrize("kind", NAMES)
def test_an_empty_value_is_a_bad_value(
    served: Served, kind: str, prefer: Mapping[str, str]
) -> None:
    """Decision 3."""
    for name in NAMES[kind].split():
        answer = served.post(f"{kind}/_search", {name: ""}, **prefer)
        assert name in refused(answer, 412, "value", name)


@PREFERENCES
@pytest.mark.parametrize("kind", NAMES)
def test_count_of_zero_negative_or_no_number(
    served: Served, kind: str, prefer: Mapping[str, str]
) -> None:
    """Decision 3; FHIR numbers have no leading zero (STU3 datatypes, positiveInt)."""
    for value in (
        *("0", "-1", "abc", "1.5", "1e1", "٣", "+5"),
        *("00", "010", "0100", "0500"),
    ):
        params = {"_count": value, "_id": "1"}
        answer = served.post(f"{kind}/_search", params, **prefer)
        text = refused(answer, 412, "value", "_count")
        assert value in text
        assert "from 1 to 100" in text


@pytest.mark.parametrize("path", ["Encounter/1", "metadata"])
def test_a_read_reports_bad_values_too(served: Served, path: str) -> None:
    """Decision 3."""
    text = refused(served.get(f"{path}?_pretty=yes"), 412, "value", "_pretty")
    assert "true or false" in text


@pytest.mark.parametrize(
    ("name", "value"),
    [("_count", "5"), ("_sort", "date"), ("_pretty", "true"), ("_summary", "true")],
)
def test_a_repeated_single_parameter_is_a_bad_value(
    served: Served, name: str, value: str
) -> None:
    """Decision 3; decision 8 for `_sort`."""
    answer = served.get(f"Encounter?{name}={value}&{name}={value}")
    text = refused(answer, 412, "value", name)
    assert "more than once" in text
    assert f"'{value}'" in text


@pytest.mark.parametrize("count", ["101", "5000", "1000000000", "9" * 30])
def test_count_above_100_is_a_bad_value_and_lenient_caps_it(
    served: Served, count: str
) -> None:
    """Decision 3."""
    answer = served.post("Encounter/_search", {"_count": count})
    assert "from 1 to 100" in refused(answer, 412, "value", "_count")
    lenient = served.search("Encounter", {"_count": count}, **LENIENT)
    plain = served.search("Encounter", {"_count": "100"})
    assert ids(lenient) == ids(plain)
    assert relations(lenient) == ["self"]
    added = [each for each in messages(lenient) if each not in messages(plain)]
    assert added == [("warning", "value", "http._count")]


ELEVEN = [str(number) for number in range(1, 12)]


@PREFERENCES
@pytest.mark.parametrize(
    ("name", "values"),
    [("_id", ELEVEN), ("date", [f"ge20{n.zfill(2)}" for n in ELEVEN])],
)
def test_more_than_ten_values_of_id_or_date(
    served: Served, name: str, values: list[str], prefer: Mapping[str, str]
) -> None:
    """Decision 3: commas and repetitions count together."""
    for params in (
        [(name, ",".join(values))],
        [(name, value) for value in values],
        [(name, ",".join(values[:6])), (name, ",".join(values[6:]))],
    ):
        answer = served.post("Encounter/_search", params, **prefer)
        assert "at most 10 values" in refused(answer, 412, "value", name)
    body(served.post("Encounter/_search", [(name, ",".join(values[:10]))], **prefer))
    body(served.post("Encounter/_search", [(name, v) for v in values[:10]], **prefer))


@pytest.mark.parametrize("kind", ["Patient", "Organization"])
def test_ten_ids_of_other_resources_too(served: Served, kind: str) -> None:
    """Decision 3."""
    answer = served.post(f"{kind}/_search", {"_id": ",".join(ELEVEN)})
    refused(answer, 412, "value", "_id")
    body(served.post(f"{kind}/_search", {"_id": ",".join(ELEVEN[:10])}))


@GROUPS
def test_groups_a_and_b_take_one_date_and_ten_ids(
    groups: Mapping[str, Served], group: str
) -> None:
    """Decision 3."""
    served = groups[group]
    for params in (
        [("date", "ge2024-01-01"), ("date", "lt2025-01-01")],
        [("date", "2024-01,2024-03")],
    ):
        answer = served.post("Encounter/_search", params)
        assert "at most 1 value," in refused(answer, 412, "value", "date")
    assert ids(served.search("Encounter", {"date": "2024-05-01"})) == ["60"]
    answer = served.post("Encounter/_search", {"_id": ",".join(ELEVEN)})
    refused(answer, 412, "value", "_id")
    some = served.search("Encounter", {"_id": ",".join(ELEVEN[:10])})
    assert {"1", "10"} <= set(ids(some)) <= set(ELEVEN[:10])


@pytest.mark.parametrize("prefix", ["", "ge"])
def test_an_unescaped_plus_gets_a_hint(served: Served, prefix: str) -> None:
    """Decision 3."""
    answer = served.get(f"Encounter?date={prefix}2024-03-14T08:15:00+01:00")
    assert "%2B" in refused(answer, 412, "value", "date")
    body(served.get(f"Encounter?date={prefix}2024-03-14T08:15:00%2B01:00"))


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("Encounter", "identifier", "V{}"),
        ("Encounter", "patient", "{}"),
        ("Encounter", "service-provider._extension", UNIT_URL + "|{}"),
        ("Patient", "name", "n{}"),
        ("Organization", "identifier", "{}"),
    ],
)
def test_any_other_parameter_takes_100_values(
    served: Served, kind: str, name: str, value: str
) -> None:
    """Decision 3."""
    values = [value.format(number) for number in range(101)]
    answer = served.post(f"{kind}/_search", {name: ",".join(values)})
    assert "at most 100 values" in refused(answer, 412, "too-costly", name)
    halves = [(name, ",".join(values[:51])), (name, ",".join(values[51:]))]
    refused(served.post(f"{kind}/_search", halves), 412, "too-costly", name)
    body(served.post(f"{kind}/_search", {name: ",".join(values[:100])}))


@PREFERENCES
def test_a_request_takes_50_parameters(
    served: Served, prefer: Mapping[str, str]
) -> None:
    """Decision 3."""
    for number in (51, 101, 2000):
        answer = served.post("Encounter/_search", [("status", "planned")] * number)
        assert "at most 50 parameters" in refused(answer, 412, "too-costly")
    body(served.post("Encounter/_search", [("status", "planned")] * 50, **prefer))
    many = "&".join(["foo=1"] * 51)
    for path in ("Encounter/1", "metadata", "Bundle"):
        refused(served.get(f"{path}?{many}", **LENIENT), 412, "too-costly")


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
    served = serve(EDGES, directory, redis_server.url, mapping=mapping)
    yield served
    served.app.extensions[EXTENSION].adapter.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def either(
    request: pytest.FixtureRequest, keys: responses.RequestsMock, edges: Served
) -> Served:
    """Return the service on one database, then on the other."""
    if request.param == "sqlite":
        return edges
    served: Served = request.getfixturevalue("postgresql")
    return served


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
def test_tokens(either: Served, name: str, value: str, found: str) -> None:
    """Decision 6."""
    bundle = either.search("Encounter", {name: value, "_count": "100"})
    assert sorted(ids(bundle)) == found.split()
    assert bundle["total"] == len(bundle.get("entry", ()))


def test_a_system_alone_finds_any_of_its_codes(served: Served) -> None:
    """Decision 6."""
    every = served.search("Encounter", {"status": "planned,in-progress,finished"})
    alone = served.search("Encounter", {"status": f"{STATUS}|"})
    assert alone["total"] == every["total"]
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
def test_a_value_the_column_cannot_hold_matches_nothing(
    either: Served, kind: str, name: str, value: str
) -> None:
    """Decision 6."""
    assert either.search(kind, {name: value})["total"] == 0


@pytest.mark.parametrize("date", ["0001-01-01", "9999-12-31", "9999-12-31T23:59:59Z"])
def test_a_date_at_an_end_of_the_calendar_is_no_error(
    either: Served, date: str
) -> None:
    """Decision 6."""
    for prefix in ("", "ne", "gt", "lt", "ge", "le"):
        body(either.post("Encounter/_search", {"date": f"{prefix}{date}"}))
        if "T" not in date:
            body(either.post("Patient/_search", {"birthdate": f"{prefix}{date}"}))


@pytest.mark.parametrize("kind", ["Encounter", "Patient"])
def test_an_id_the_column_cannot_hold_is_not_found(either: Served, kind: str) -> None:
    """Decision 6."""
    for id in ("abc", TOO_LARGE, "9" * 64, "01", "1.0", "-1", "1."):
        refused(either.get(f"{kind}/{id}"), 404, "not-found")


@pytest.mark.parametrize(
    "value", ["4", "Patient/4", f"{BASE_URL}/Patient/4", "999,Patient/4"]
)
def test_a_patient_by_id_reference_and_address(served: Served, value: str) -> None:
    """Decision 7."""
    bundle = served.search("Encounter", {"patient": value})
    assert {"60", "61", "62", "63", "64", "65"} <= set(ids(bundle))
    patients = [each["resource"].get("subject") for each in bundle["entry"]]
    assert patients == [{"reference": "Patient/4"}] * bundle["total"]


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
def test_another_servers_patient_matches_nothing(served: Served, value: str) -> None:
    """Decision 7."""
    bundle = served.search("Encounter", {"patient": value})
    assert bundle["total"] == 0
    assert "entry" not in bundle
