"""Decision 3, where a test names no other: bad values; tokens, references to patients."""

import pytest

from app.service import EXTENSION
from tests.app.answers import body, messages, refused
from tests.hospital_sql import Tables, mapping_text
from tests.serving import BASE_URL, ids
from toolkit.contract.hospital import EDGES, UNIT_URL

LENIENT = {"Prefer": "handling=lenient"}

BAD = (
    # type, parameter, value, the part that is wrong, what is allowed
    ("Encounter", "date", "2019-02-30", "2019-02-30", "YYYY-MM-DD"),
    ("Encounter", "date", "ge2019-13-01", "2019-13-01", "ge"),
    ("Encounter", "date", "14/03/2019", "14/03/2019", "YYYY"),
    ("Encounter", "date", "xx2024", "xx", "is not known; use"),
    ("Encounter", "date", "2019-03-14T10", "2019-03-14T10", "YYYY-MM-DDThh:mm"),
    ("Encounter", "date", "eq", "eq", "no date follows the prefix"),
    *(
        ("Encounter", "date", f"{prefix}2024", prefix, "is not supported here; use")
        for prefix in ("sa", "eb", "ap")
    ),
    ("Encounter", "date", "GE2019", "GE", "use the prefixes eq, ne"),
    ("Encounter", "date", "2024-03-14T08:15+14:01", "+14:01", "calendar"),
    ("Encounter", "date", "2024-01-01,hier", "hier", "YYYY"),
    ("Encounter", "patient", "Patient/a b", "Patient/a b", "Patient/<id>"),
    ("Encounter", "patient", "patient/4", "patient/4", "Patient/<id>"),
    ("Encounter", "patient", f"{BASE_URL}/Patient/", "Patient/", "Patient/<id>"),
    ("Encounter", "_id", "a/b", "a/b", "1 to 64"),
    ("Encounter", "_id", "x" * 65, "x" * 60, "1 to 64"),
    ("Encounter", "identifier", "a|b|c", "a|b|c", "system|code"),
    ("Encounter", "identifier", ",a", "empty", "between commas"),
    ("Encounter", "identifier", "|", "empty", "between commas"),
    ("Encounter", "identifier", r"a\b", r"a\b", "a backslash is allowed only"),
    ("Encounter", "identifier", "a\\", "a\\", "a backslash is allowed only"),
    ("Encounter", "service-provider._extension", "0123", "0123", UNIT_URL),
    ("Encounter", "service-provider._extension", f"{UNIT_URL}|", UNIT_URL, UNIT_URL),
    ("Encounter", "status", "Planned", "Planned", "planned, in-progress, finished"),
    ("Encounter", "class", "http://example.org|ZZZ", "|ZZZ", "EMER, IMP"),
    ("Encounter", "_summary", "some", "some", "count"),
    ("Encounter", "_elements", "status,nom", "nom", "Encounter"),
    ("Encounter", "_pretty", "yes", "yes", "true or false"),
    ("Encounter", "_include", "Encounter:location", "location", "Encounter:patient"),
    *(
        ("Encounter", "_sort", value, value, "date, -date")
        for value in ("status", "date,_lastUpdated", "date,-_id", "-date,_id", "--date")
    ),
    ("Patient", "birthdate", "1950-02-28T10:00", "1950-02-28T10:00", "YYYY-MM-DD"),
    ("Patient", "name", "--", "--", "letter"),
    ("Patient", "given", "a." * 11, "a.a", "at most 10 words"),
    ("Patient", "gender", "m", "m", "male, female, other, unknown"),
    ("Organization", "_sort", "-name", "-name", "_id, -_id"),
)


def test_a_bad_value_names_parameter_part_and_allowed_forms(served):
    """Decision 3; also decisions 4 (escapes), 5 (dates), 7 (references), 8 and 36.

    SRCH-12 DATE-11 DATE-12 DATE-15.
    """
    for kind, name, value, part, allowed in BAD:
        is_code = name in ("status", "class", "gender")
        answer = served.post(f"{kind}/_search", {"_id": "1", name: value})
        text = refused(answer, 412, "code-invalid" if is_code else "value", name)
        for words in (name, part, allowed):
            assert words in text, value


def test_a_long_value_is_not_returned_whole(served):
    # A pattern with more than one way to match the second would take minutes.
    for value in ("9" * 60_000, "1" + "T " * 20_000):
        answer = served.post("Encounter/_search", {"date": value})
        assert len(refused(answer, 412, "value", "date")) < 500


@pytest.mark.parametrize("prefer", [{}, LENIENT])
def test_an_empty_value_is_a_bad_value(served, prefer):
    """Decision 3."""
    for kind, name in (
        *(("Encounter", name) for name in ("patient", "date", "status", "_sort")),
        *(("Encounter", name) for name in ("_id", "_count", "_summary", "_include")),
        *(("Patient", name) for name in ("name", "birthdate", "name:exact")),
    ):
        answer = served.post(f"{kind}/_search", {name: ""}, **prefer)
        assert name in refused(answer, 412, "value", name)


def test_count_of_zero_negative_or_no_number(served):
    """Decision 3; FHIR numbers have no leading zero. SRCH-19."""
    for value in ("0", "-1", "abc", "1.5", "٣", "+5", "010"):
        params = {"_count": value, "_id": "1"}
        for kind, prefer in (("Encounter", {}), ("Organization", LENIENT)):
            answer = served.post(f"{kind}/_search", params, **prefer)
            text = refused(answer, 412, "value", "_count")
            assert value in text
            assert "from 1 to 100" in text


def test_a_single_parameter_cannot_be_repeated(served):
    """Decision 3; decision 8 for `_sort`."""
    for name, value in (("_count", "5"), ("_sort", "date"), ("_summary", "true")):
        answer = served.get(f"Encounter?{name}={value}&{name}={value}")
        text = refused(answer, 412, "value", name)
        assert "more than once" in text
        assert f"'{value}'" in text
    for path in ("Encounter/1", "metadata"):
        refused(served.get(f"{path}?_pretty=yes"), 412, "value", "_pretty")


def test_count_above_100_is_a_bad_value_and_lenient_caps_it(served):
    """Decision 3."""
    plain = served.search("Encounter", {"_count": "100"})
    for count in ("101", "9" * 30):
        answer = served.post("Encounter/_search", {"_count": count})
        assert "from 1 to 100" in refused(answer, 412, "value", "_count")
        lenient = served.search("Encounter", {"_count": count}, **LENIENT)
        assert ids(lenient) == ids(plain)
        added = [each for each in messages(lenient) if each not in messages(plain)]
        assert added == [("warning", "value", "http._count")]


ELEVEN = [str(number) for number in range(1, 12)]


@pytest.mark.parametrize(
    ("name", "values"),
    [("_id", ELEVEN), ("date", [f"ge20{n.zfill(2)}" for n in ELEVEN])],
)
def test_more_than_ten_values_of_id_or_date(served, name, values):
    """Decision 3: commas and repetitions count together."""
    for params in (
        [(name, ",".join(values))],
        [(name, value) for value in values],
        [(name, ",".join(values[:6])), (name, ",".join(values[6:]))],
    ):
        for prefer in ({}, LENIENT):
            answer = served.post("Encounter/_search", params, **prefer)
            assert "at most 10 values" in refused(answer, 412, "value", name)
    body(served.post("Encounter/_search", {name: ",".join(values[:10])}))
    body(served.post("Encounter/_search", [(name, value) for value in values[:10]]))


@pytest.mark.parametrize("group", ["group-a", "group-b"])
def test_groups_a_and_b_take_one_date_and_ten_ids(groups, group):
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
    assert "10" in ids(served.search("Encounter", {"_id": ",".join(ELEVEN[:10])}))


def test_an_unescaped_plus_gets_a_hint(served):
    """Decision 3. DATE-14."""
    answer = served.get("Encounter?date=ge2024-03-14T08:15:00+01:00")
    assert "%2B" in refused(answer, 412, "value", "date")
    body(served.get("Encounter?date=ge2024-03-14T08:15:00%2B01:00"))


def test_any_other_parameter_takes_100_values_and_a_request_50(served):
    values = [f"V{number}" for number in range(101)]
    for params in (
        [("identifier", ",".join(values))],
        [("identifier", ",".join(half)) for half in (values[:51], values[51:])],
    ):
        answer = served.post("Encounter/_search", params)
        text = refused(answer, 412, "too-costly", "identifier")
        assert "at most 100 values" in text
    body(served.post("Encounter/_search", {"identifier": ",".join(values[:100])}))
    status = ("status", "planned")
    answer = served.post("Encounter/_search", [status] * 51)
    assert "at most 50 parameters" in refused(answer, 412, "too-costly")
    body(served.post("Encounter/_search", [status] * 50))
    many = "&".join(["foo=1"] * 51)
    for path in ("Encounter/1", "metadata", "Bundle"):
        refused(served.get(f"{path}?{many}", **LENIENT), 412, "too-costly")


H1, H2 = "urn:oid:1.2.250.1.999.1.1", "urn:oid:1.2.250.1.999.1.2"
STATUS = "http://hl7.org/fhir/encounter-status"
ACT_CODE = "http://hl7.org/fhir/v3/ActCode"


@pytest.fixture
def postgresql(make_service, postgresql_url):
    """Return a service on the edge-case hospital in PostgreSQL, which is strict of types."""
    Tables(postgresql_url, EDGES).close()
    mapping = mapping_text(EDGES, f"'{postgresql_url}'")
    served = make_service(mapping=mapping)
    yield served
    served.app.extensions[EXTENSION].adapter.close()


TOKENS = (
    # any system, both, none
    ("identifier", "000123", "70 71 72"),
    ("identifier", f"{H1}|000123", "70"),
    ("identifier", "|000123", "72"),
    ("identifier", f"{H2}|", "71"),
    # whole, exact, binary
    ("identifier", "123", "73"),
    ("identifier", "V1", "1"),
    ("identifier", "V1 ", ""),
    ("service-provider._extension", f"{UNIT_URL}|0123", "6"),
    # codes with their system
    ("class", f"{ACT_CODE}|REC", "27"),
    ("class", "http://example.org|REC", ""),
    ("class", "|REC", ""),
    ("status", "in-progress", "22 65"),
)


def test_tokens(served):
    """Decision 6. TOK-01 TOK-02 TOK-05."""
    for name, value, found in TOKENS:
        bundle = served.search("Encounter", {name: value, "_count": "100"})
        assert sorted(ids(bundle)) == found.split(), value
        assert bundle["total"] == len(bundle.get("entry", ()))


def test_a_system_alone_finds_any_of_its_codes(served):
    """Decision 6."""
    every = served.search("Encounter", {"status": "planned,in-progress,finished"})
    alone = served.search("Encounter", {"status": f"{STATUS}|"})
    assert alone["total"] == every["total"]


def test_a_value_the_column_cannot_hold_matches_nothing(postgresql):
    """Decision 6; ids: toolkit/contract. Nor is a date at an end of the calendar an error."""
    for kind, name, value in (
        ("Encounter", "patient", "abc"),
        ("Encounter", "patient", str(2**63)),
        ("Encounter", "identifier", "V1\x00"),
        ("Patient", "birthdate", "0001"),
        ("Organization", "name:contains", "\x00a"),
    ):
        assert postgresql.search(kind, {name: value})["total"] == 0, value
    for date in ("0001-01-01", "9999-12-31", "9999-12-31T23:59:59Z"):
        for prefix in ("ne", "gt", "le"):
            postgresql.search("Encounter", {"date": f"{prefix}{date}"})


def test_a_patient_by_id_reference_and_address(served):
    """Decision 7. REF-01 REF-02."""
    for value in ("4", "Patient/4", f"{BASE_URL}/Patient/4", "999,Patient/4"):
        bundle = served.search("Encounter", {"patient": value})
        assert {"60", "61", "62", "63", "64", "65"} <= set(ids(bundle))
        patients = [each["resource"].get("subject") for each in bundle["entry"]]
        assert patients == [{"reference": "Patient/4"}] * bundle["total"]


def test_another_servers_patient_matches_nothing(served):
    """Decision 7. REF-03."""
    for value in (
        "https://other.example.org/fhir/v3/Patient/4",
        f"{BASE_URL}/Encounter/4",
        BASE_URL.replace("https:", "http:") + "/Patient/4",
        "Encounter/60",
    ):
        assert served.search("Encounter", {"patient": value})["total"] == 0, value
