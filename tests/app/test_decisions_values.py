"""Decision 3: a bad value is 412 and says what is wrong with which part."""

from collections.abc import Mapping

import pytest

from adapters.testing.hospital import UNIT_URL
from tests.app.answers import body, refused, told
from tests.serving import Served, ids, relations

LENIENT = {"Prefer": "handling=lenient"}

LONG = "urn:oid:1.2.250.1.213.1.4.10.111.222.333.444.555.666.777.888"

BAD = (
    # type, parameter, value, the part that is wrong, what is allowed
    ("Encounter", "date", "2019-02-30", "2019-02-30", "YYYY-MM-DD"),
    ("Encounter", "date", "14/03/2019", "14/03/2019", "YYYY-MM-DD"),
    ("Encounter", "date", "ge2019-13-01", "2019-13-01", "ge"),
    ("Encounter", "date", "2019-03-14T10", "2019-03-14T10", "YYYY-MM-DDThh:mm"),
    ("Encounter", "date", "2019-03-14T25:00", "2019-03-14T25:00", "YYYY-MM-DDThh:mm"),
    ("Encounter", "date", "eq", "eq", "YYYY"),
    ("Encounter", "date", "eq", "eq", "no date stands after the prefix"),
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
)


@pytest.mark.parametrize(("kind", "name", "value", "part", "allowed"), BAD)
def test_03_a_bad_value_names_parameter_part_and_allowed_forms(
    served: Served, kind: str, name: str, value: str, part: str, allowed: str
) -> None:
    text = refused(served.post(f"{kind}/_search", {name: value}), 412, "value", name)
    assert name in text
    assert part in text
    assert allowed in text


@pytest.mark.parametrize(
    "value", ["9" * 60_000, "x" * 60_000, "eq2024-01-01T" + "0" * 60_000]
)
def test_03_a_long_value_is_not_given_back_whole(served: Served, value: str) -> None:
    text = refused(
        served.post("Encounter/_search", {"date": value}), 412, "value", "date"
    )
    assert len(text) < 500


@pytest.mark.parametrize(
    ("name", "value"), [("date", "1" + "T " * 20_000), ("_count", "0" * 60_000 + "x")]
)
def test_03_a_long_value_is_read_once(served: Served, name: str, value: str) -> None:
    # A pattern that tries its text in many ways would be at it for minutes.
    answer = served.post("Encounter/_search", {name: value})
    assert len(refused(answer, 412, "value", name)) < 500


def test_03_a_long_value_that_is_given_twice_is_not_given_back_whole(
    served: Served,
) -> None:
    twice = [("_count", "5"), ("_count", "5" * 60_000)]
    answer = served.post("Encounter/_search", twice)
    assert len(refused(answer, 412, "value", "_count")) < 500


def test_03_a_bar_that_is_escaped_is_a_value(served: Served) -> None:
    assert ids(served.search("Encounter", {"identifier": r"\|"})) == []


@pytest.mark.parametrize(
    ("kind", "name", "value", "allowed"),
    [
        ("Encounter", "status", "arrived", "planned, in-progress, finished"),
        ("Encounter", "status", "Planned", "planned, in-progress, finished"),
        ("Encounter", "status", "planned,foo", "planned, in-progress, finished"),
        ("Encounter", "class", "ZZZ", "EMER, IMP, PRENC, AMB, REC, UNK"),
        ("Encounter", "class", "http://example.org|ZZZ", "EMER, IMP"),
        ("Patient", "gender", "m", "male, female, other, unknown"),
    ],
)
def test_03_a_code_outside_its_list_is_code_invalid(
    served: Served, kind: str, name: str, value: str, allowed: str
) -> None:
    answer = served.post(f"{kind}/_search", {name: value})
    assert allowed in refused(answer, 412, "code-invalid", name)


NAMES = {
    "Encounter": "patient date identifier status service-provider._extension class _sort"
    " _id _count _summary _elements _pretty",
    "Patient": "name family given birthdate gender identifier _id name:exact",
    "Organization": "name identifier _id",
}


@pytest.mark.parametrize("prefer", [{}, LENIENT], ids=str)
@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, names in NAMES.items() for name in names.split()],
)
def test_03_an_empty_value_is_a_bad_value(
    served: Served, kind: str, name: str, prefer: Mapping[str, str]
) -> None:
    answer = served.post(f"{kind}/_search", {name: ""}, **prefer)
    assert name in refused(answer, 412, "value", name)


@pytest.mark.parametrize("value", [",", "a,", ",a", "a,,b", "|"])
def test_03_an_empty_alternative_is_a_bad_value(served: Served, value: str) -> None:
    answer = served.post("Encounter/_search", {"identifier": value})
    assert "empty" in refused(answer, 412, "value", "identifier")


@pytest.mark.parametrize("prefer", [{}, LENIENT], ids=str)
@pytest.mark.parametrize(
    "value",
    # FHIR writes no number with a zero in front of it (STU3 datatypes, positiveInt).
    ["0", "-1", "abc", "1.5", "1e1", "٣", "+5", "00", "010", "0100", "0500"],
)
@pytest.mark.parametrize("kind", NAMES)
def test_03_count_of_zero_negative_or_no_number(
    served: Served, kind: str, value: str, prefer: Mapping[str, str]
) -> None:
    params = {"_count": value, "_id": "1"}
    text = refused(
        served.post(f"{kind}/_search", params, **prefer), 412, "value", "_count"
    )
    assert value in text
    assert "from 1 to 100" in text


@pytest.mark.parametrize("path", ["Encounter/1", "metadata"])
def test_03_a_bad_value_of_a_read_is_told_too(served: Served, path: str) -> None:
    text = refused(served.get(f"{path}?_pretty=yes"), 412, "value", "_pretty")
    assert "true or false" in text


@pytest.mark.parametrize("name", ["_count", "_sort", "_pretty", "_summary"])
def test_03_what_is_given_twice_is_told_so(served: Served, name: str) -> None:
    value = {"_count": "5", "_sort": "date", "_pretty": "true", "_summary": "true"}[
        name
    ]
    answer = served.get(f"Encounter?{name}={value}&{name}={value}")
    text = refused(answer, 412, "value", name)
    assert "more than once" in text
    assert f"'{value}'" in text
    assert "has no value" not in text


def test_03_count_above_100(served: Served) -> None:
    for value in ("101", "1000000000", "9" * 30):
        answer = served.post("Encounter/_search", {"_count": value})
        assert "from 1 to 100" in refused(answer, 412, "value", "_count")
    lenient = served.search("Encounter", {"_count": "101"}, **LENIENT)
    assert ids(lenient) == ids(served.search("Encounter", {"_count": "100"}))
    plain = told(served.search("Encounter", {"_count": "100"}))
    lowered = ("warning", "value", "http._count")
    assert [each for each in told(lenient) if each not in plain] == [lowered]


@pytest.mark.parametrize("count", ["5000", "9" * 30])
def test_03_lenient_caps_a_count_at_100(served: Served, count: str) -> None:
    wide = served.search("Encounter", {"_count": count}, **LENIENT)
    assert len(wide["entry"]) > 50
    assert relations(wide) == ["self"]


ELEVEN = [str(number) for number in range(1, 12)]


@pytest.mark.parametrize("prefer", [{}, LENIENT], ids=str)
@pytest.mark.parametrize("name", ["_id", "date"])
def test_03_more_than_ten_values_of_id_or_date(
    served: Served, name: str, prefer: Mapping[str, str]
) -> None:
    values = ELEVEN if name == "_id" else [f"ge20{n.zfill(2)}" for n in ELEVEN]
    several = (
        [(name, ",".join(values))],
        [(name, value) for value in values],
        [(name, ",".join(values[:6])), (name, ",".join(values[6:]))],
    )
    for params in several:
        answer = served.post("Encounter/_search", params, **prefer)
        assert "at most 10 values" in refused(answer, 412, "value", name)
    body(served.post("Encounter/_search", [(name, ",".join(values[:10]))], **prefer))
    body(served.post("Encounter/_search", [(name, v) for v in values[:10]], **prefer))


@pytest.mark.parametrize("kind", ["Patient", "Organization"])
def test_03_ten_ids_of_other_resources_too(served: Served, kind: str) -> None:
    answer = served.post(f"{kind}/_search", {"_id": ",".join(ELEVEN)})
    refused(answer, 412, "value", "_id")
    body(served.post(f"{kind}/_search", {"_id": ",".join(ELEVEN[:10])}))


@pytest.mark.parametrize("group", ["group-a", "group-b"])
def test_03_one_date_on_groups_a_and_b(
    groups: Mapping[str, Served], group: str
) -> None:
    for params in (
        [("date", "ge2024-01-01"), ("date", "lt2025-01-01")],
        [("date", "2024-01,2024-03")],
    ):
        answer = groups[group].post("Encounter/_search", params)
        assert "at most 1 value," in refused(answer, 412, "value", "date")
    assert ids(groups[group].search("Encounter", {"date": "2024-05-01"})) == ["60"]


@pytest.mark.parametrize("group", ["group-a", "group-b"])
def test_03_ten_ids_on_groups_a_and_b(groups: Mapping[str, Served], group: str) -> None:
    answer = groups[group].post("Encounter/_search", {"_id": ",".join(ELEVEN)})
    refused(answer, 412, "value", "_id")
    found = groups[group].search("Encounter", {"_id": ",".join(ELEVEN[:10])})
    assert {"1", "10"} <= set(ids(found)) <= set(ELEVEN[:10])


@pytest.mark.parametrize("prefix", ["", "ge"])
def test_03_an_unescaped_plus_is_told(served: Served, prefix: str) -> None:
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
def test_03_any_other_parameter_takes_100_values(
    served: Served, kind: str, name: str, value: str
) -> None:
    values = [value.format(number) for number in range(101)]
    answer = served.post(f"{kind}/_search", {name: ",".join(values)})
    assert "at most 100 values" in refused(answer, 412, "too-costly", name)
    halves = [(name, ",".join(values[:51])), (name, ",".join(values[51:]))]
    refused(served.post(f"{kind}/_search", halves), 412, "too-costly", name)
    body(served.post(f"{kind}/_search", {name: ",".join(values[:100])}))


@pytest.mark.parametrize("prefer", [{}, LENIENT], ids=str)
def test_03_a_request_takes_50_parameters(
    served: Served, prefer: Mapping[str, str]
) -> None:
    for number in (51, 101, 2000):
        answer = served.post("Encounter/_search", [("status", "planned")] * number)
        assert "at most 50 parameters" in refused(answer, 412, "too-costly")
    body(served.post("Encounter/_search", [("status", "planned")] * 50, **prefer))
    many = "&".join(["foo=1"] * 51)
    for path in ("Encounter/1", "metadata", "Bundle"):
        refused(served.get(f"{path}?{many}", **LENIENT), 412, "too-costly")
