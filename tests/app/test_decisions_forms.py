"""Decisions 1 and 4: the two forms of a search, comma and repetition."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import responses

from adapters.testing.hospital import UNIT_URL, Hospital, StayRow
from tests.app.answers import body, parameters, raw, refused, told
from tests.redis_server import RedisServer
from tests.serving import FORM, Served, ids, link, relations, serve

QUESTIONS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("Encounter", {}),
    ("Encounter", {"patient": "Patient/3", "date": "ge2024-10-27T02:00:00+01:00"}),
    ("Encounter", {"identifier": "A\\\\B", "status": "finished"}),
    ("Encounter", {"service-provider._extension": f"{UNIT_URL}|é"}),
    ("Encounter", {"class": "IMP,UNK", "_sort": "_lastUpdated", "_count": "7"}),
    ("Patient", {"name": "Éléonore"}),
    ("Organization", {"name:contains": "cœur"}),
)


# --------------------------------------------------------------------- decision 1


@pytest.mark.parametrize(("kind", "params"), QUESTIONS)
def test_01_both_forms_mean_the_same(served: Served, kind, params) -> None:
    posted = served.search(kind, params)
    got = served.http.get(
        f"/fhir/v3/{kind}",
        query_string=params,
        headers=served.headers,
        base_url="https://encounters.example.org",
    ).get_json(force=True)
    assert ids(got) == ids(posted) != []
    assert got["total"] == posted["total"]


def test_01_parameters_in_the_query_of_a_post_count_too(served: Served) -> None:
    path = "Encounter/_search?patient=2"
    answer = raw(served, "POST", path, data="status=planned", content_type=FORM)
    found = answer.get_json(force=True)
    assert sorted(ids(found)) == ["27", "42"]


def test_01_a_name_in_both_places_is_a_repetition(served: Served) -> None:
    def post(query: str, form: str):
        path = f"Encounter/_search?{query}"
        return raw(served, "POST", path, data=form, content_type=FORM)

    assert ids(post("_id=1", "_id=1").get_json(force=True)) == ["1"]
    assert ids(post("_id=1", "_id=2").get_json(force=True)) == []
    refused(post("_count=1", "_count=1"), 412, "value", "_count")


@pytest.mark.parametrize(
    "sent",
    [
        {"data": '{"patient": "2"}', "content_type": "application/json"},
        {"data": '{"patient": "2"}', "content_type": "application/fhir+json"},
        {"data": "patient=2", "content_type": "text/plain"},
        {"data": {"patient": "2"}, "content_type": "multipart/form-data"},
        {"data": "", "content_type": "application/json"},
        {"data": "patient=2"},
        {"data": "patient=2", "content_type": f"{FORM}; charset=utf-16"},
        {"data": "p", "content_type": FORM, "headers": {"Content-Encoding": "gzip"}},
    ],
    ids=str,
)
def test_01_another_content_type_is_415_and_no_result(served: Served, sent) -> None:
    name = "Content-Encoding" if "headers" in sent else "Content-Type"
    answer = raw(served, "POST", "Encounter/_search", **sent)
    refused(answer, 415, "not-supported", name)


def test_01_a_form_is_read_whatever_its_case_and_charset(served: Served) -> None:
    kind = "Application/X-WWW-Form-URLEncoded; charset=UTF-8"
    answer = raw(
        served, "POST", "Encounter/_search", data="patient=2", content_type=kind
    )
    assert answer.get_json(force=True)["total"] == 2


# --------------------------------------------------------------------- decision 4


SIGNS = ("a,b", "a", "b", "a|b", "a$b", "a\\b", "a\\,b", "+ &=é")
"""Visit numbers with the signs that search values give a meaning to."""


@pytest.fixture
def signs(
    redis_server: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> Served:
    """Return a service on stays whose visit numbers are `SIGNS`, ids from 1 on."""
    stays = (
        StayRow(id, began="2024-05-01 10:00:00", visit=visit)
        for id, visit in enumerate(SIGNS, 1)
    )
    return serve(Hospital(tuple(stays)), tmp_path, redis_server.url)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("a,b", {"a", "b"}),
        (r"a\,b", {"a,b"}),
        (r"a\|b", {"a|b"}),
        (r"a\$b", {"a$b"}),
        ("a$b", {"a$b"}),
        (r"a\\b", {"a\\b"}),
        (r"a\\\,b", {"a\\,b"}),
        (r"a\\,b", {"b"}),
        ("+ &=é", {"+ &=é"}),
        (r"a\,b,b", {"a,b", "b"}),
    ],
)
def test_04_escapes_are_read_after_the_form(signs: Served, value, found) -> None:
    bundle = signs.search("Encounter", {"identifier": value})
    assert {SIGNS[int(id) - 1] for id in ids(bundle)} == found


@pytest.mark.parametrize("value", ["a\\", r"a\b", r"\ a"])
def test_04_a_stray_backslash_is_a_bad_value(served: Served, value: str) -> None:
    answer = served.post("Encounter/_search", {"identifier": value})
    assert value in refused(answer, 412, "value", "identifier")


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ([("_id", "1,2")], ["1", "2"]),
        ([("_id", "1,2,999")], ["1", "2"]),
        ([("_id", "1"), ("_id", "2")], []),
        ([("_id", "1,2"), ("_id", "2,3")], ["2"]),
        ([("status", "planned,in-progress"), ("patient", "2,4")], ["27", "42", "65"]),
        ([("status", "planned"), ("status", "in-progress")], []),
        ([("date", "2024-05-01,2024-05-03"), ("patient", "4")], ["60", "62"]),
        ([("date", "ge2024-05-02"), ("date", "lt2024-05-04")], ["61", "62"]),
    ],
    ids=str,
)
def test_04_comma_is_or_and_repetition_is_and(served: Served, params, found) -> None:
    assert sorted(ids(served.search("Encounter", params))) == found


def test_04_a_repetition_goes_with_the_pages(served: Served) -> None:
    params = [("date", "ge2024-05-02"), ("date", "lt2024-05-04"), ("_count", "1")]
    first = served.search("Encounter", params)
    second = served.follow(first, "next")
    assert ids(first) + ids(second) == ["62", "61"]
    assert relations(second) == ["self", "previous"]
    assert list(parameters(link(first, "next"))) == ["_id", "_index", "_searchAfter"]


def test_01_a_get_with_a_body_is_refused(served: Served) -> None:
    answer = served.http.get(
        "/fhir/v3/Encounter",
        data="patient=4",
        content_type=FORM,
        headers=served.headers,
        base_url="https://encounters.example.org",
    )
    assert answer.status_code == 400


def test_02_the_first_handling_counts(served: Served) -> None:
    strict = "handling=strict, handling=lenient"
    assert served.get("Encounter?foo=1", Prefer=strict).status_code == 400
    for lenient in (
        "respond-async; handling=lenient, handling=strict",
        'handling = "lenient"',
    ):
        assert served.get("Encounter?foo=1", Prefer=lenient).status_code == 200


def test_02_a_name_that_ends_in_blanks_is_refused_in_fhirs_words(
    served: Served,
) -> None:
    for path in ("Encounter?%20=1", "Encounter?nom%C2%A0=1", "Encounter?%09=1"):
        answer = served.get(path)
        assert answer.status_code == 400
        (issue,) = answer.get_json(force=True)["issue"]
        assert issue["code"] == "not-supported"


@pytest.mark.parametrize(
    ("path", "status", "told", "place"),
    [
        ("Encounter?_id=8%00", 412, "'8\ufffd'", "http._id"),
        ("Encounter?date=20%1b24", 412, "'20\ufffd24'", "http.date"),
        ("Encounter?%01x=1", 400, "'\ufffdx'", "http.\ufffdx"),
        ("Encounter?date:%0B=1", 400, "':\ufffd'", "http.date:\ufffd"),
    ],
)
def test_02_what_no_text_of_fhir_may_hold_is_not_given_back(
    served: Served, path: str, status: int, told: str, place: str
) -> None:
    (issue,) = body(served.get(path), status)["issue"]
    assert told in issue["diagnostics"]
    assert issue["location"] == [place]


def test_02_nor_is_it_where_a_parameter_is_ignored(served: Served) -> None:
    bundle = body(served.get("Encounter?a%00b=1", Prefer="handling=lenient"))
    assert told(bundle) == [("warning", "not-supported", "http.a\ufffdb")]
