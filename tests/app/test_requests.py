"""Decisions 1, 2 and 4: the forms of a search, what is refused or ignored, AND and OR."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import responses

from adapters.testing.hospital import UNIT_URL, Hospital, StayRow
from tests.app.answers import body, messages, parameters, raw, refused
from tests.redis_server import RedisServer
from tests.serving import FORM, Served, ids, issues, link, relations, serve

LENIENT = {"Prefer": "handling=lenient"}
STRICT = {"Prefer": "handling=strict"}
GROUPS = pytest.mark.parametrize("group", ["group-a", "group-b"])


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("Encounter", {}),
        ("Encounter", {"patient": "Patient/3", "date": "ge2024-10-27T02:00:00+01:00"}),
        ("Encounter", {"identifier": "A\\\\B", "status": "finished"}),
        ("Encounter", {"service-provider._extension": f"{UNIT_URL}|é"}),
        ("Encounter", {"class": "IMP,UNK", "_sort": "_lastUpdated", "_count": "7"}),
        ("Patient", {"name": "Éléonore"}),
        ("Organization", {"name:contains": "cœur"}),
    ],
)
def test_get_and_post_mean_the_same(
    served: Served, kind: str, params: Mapping[str, str]
) -> None:
    """Decision 1: both search forms return the same matches."""
    posted = served.search(kind, params)
    got = body(raw(served, "GET", kind, query_string=params))
    assert ids(got) == ids(posted) != []
    assert got["total"] == posted["total"]


@pytest.mark.parametrize(
    ("query", "form", "found"),
    [
        ("patient=2", "status=planned", ["27", "42"]),
        ("_id=1", "_id=1", ["1"]),
        ("_id=1", "_id=2", []),
    ],
)
def test_parameters_in_the_query_of_a_post_count_too(
    served: Served, query: str, form: str, found: list[str]
) -> None:
    """Decision 1: a name in the query string and in the form is a repetition."""
    path = f"Encounter/_search?{query}"
    answer = raw(served, "POST", path, data=form, content_type=FORM)
    assert sorted(ids(body(answer))) == found


def test_a_single_parameter_in_both_places_is_repeated(served: Served) -> None:
    """Decision 1."""
    path = "Encounter/_search?_count=1"
    answer = raw(served, "POST", path, data="_count=1", content_type=FORM)
    refused(answer, 412, "value", "_count")


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
def test_another_content_type_is_415_and_no_result(
    served: Served, sent: Mapping[str, Any]
) -> None:
    """Decision 1."""
    name = "Content-Encoding" if "headers" in sent else "Content-Type"
    answer = raw(served, "POST", "Encounter/_search", **sent)
    refused(answer, 415, "not-supported", name)


@pytest.mark.parametrize("coding", ["gzip, chunked", "identity,chunked", "gzip"])
def test_a_transfer_coding_that_is_not_undone_is_501(
    served: Served, coding: str
) -> None:
    sent = {"data": b"_id=1", "content_type": FORM}
    headers = {"Transfer-Encoding": coding, "Prefer": "handling=lenient"}
    answer = raw(served, "POST", "Encounter/_search", headers=headers, **sent)
    refused(answer, 501, "not-supported")


@pytest.mark.parametrize(
    "sent",
    [
        {"content_type": "Application/X-WWW-Form-URLEncoded; charset=UTF-8"},
        {"content_type": FORM},
    ],
    ids=str,
)
def test_a_form_is_read_in_any_case_and_in_utf_8(
    served: Served, sent: Mapping[str, Any]
) -> None:
    """Decision 1."""
    answer = raw(served, "POST", "Encounter/_search", data="patient=2", **sent)
    assert body(answer)["total"] == 2


@pytest.mark.parametrize("sent", [{"content_type": FORM}, {}], ids=str)
def test_a_search_needs_no_parameter(served: Served, sent: Mapping[str, str]) -> None:
    """Decision 1: an empty form is a search for everything."""
    bundle = body(raw(served, "POST", "Encounter/_search", data="", **sent))
    assert (bundle["resourceType"], bundle["type"]) == ("Bundle", "searchset")
    assert len(bundle["entry"]) == 10 < bundle["total"]


def test_a_get_with_a_body_is_refused(served: Served) -> None:
    """Decision 1: a filter in the body would be ignored."""
    answer = raw(served, "GET", "Encounter", data="patient=4", content_type=FORM)
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("kind", "name", "offered"),
    [
        *(
            ("Encounter", name, "patient")
            for name in (
                *("foo", "subject", "length", "_lastUpdated", "_include", "Patient"),
                *("patient.name", "start", "end", "period", "date-start", "date-end"),
            )
        ),
        ("Patient", "phonetic", "birthdate"),
        ("Organization", "address", "name"),
    ],
)
def test_an_unknown_parameter_is_400_and_lists_what_is_offered(
    served: Served, kind: str, name: str, offered: str
) -> None:
    """Decision 2; decision 5: start and end are no parameters."""
    for prefer in ({}, STRICT):
        answer = served.post(f"{kind}/_search", {name: "1"}, **prefer)
        text = refused(answer, 400, "not-supported", name)
        assert name in text
        assert offered in text.partition("Offered are")[2]


@GROUPS
@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("Encounter", "identifier", "V1"),
        ("Encounter", "status", "planned"),
        ("Encounter", "service-provider._extension", f"{UNIT_URL}|0123"),
        ("Encounter", "class", "IMP"),
        ("Encounter", "_sort", "date"),
        ("Patient", "family", "a"),
        ("Patient", "given", "a"),
        ("Patient", "birthdate", "1970"),
        ("Patient", "gender", "male"),
        ("Patient", "identifier", "1"),
        ("Patient", "_sort", "_id"),
    ],
)
def test_a_parameter_this_deployment_does_not_offer_is_400(
    groups: Mapping[str, Served], group: str, kind: str, name: str, value: str
) -> None:
    """Decision 2."""
    answer = groups[group].post(f"{kind}/_search", {name: value})
    offered = refused(answer, 400, "not-supported", name).partition("Offered are: ")[2]
    assert "_id" in offered
    assert name not in offered


@GROUPS
def test_a_deployment_without_paging_offers_no_cursor(
    groups: Mapping[str, Served], group: str
) -> None:
    """Decision 2."""
    address = link(groups[group].search("Encounter", {"_count": "1"}), "self")
    text = refused(groups[group].get(f"{address}&foo=1"), 400, "not-supported", "foo")
    assert text.endswith("Offered are: _id, _format, _pretty.")


def test_lenient_ignores_it_and_one_outcome_entry_says_so(served: Served) -> None:
    """Decision 2."""
    plain = served.search("Encounter", {"patient": "2"})
    params = {"patient": "2", "foo": "1", "bar:exact": "", "subject": "Patient/3"}
    lenient = served.search("Encounter", params, **LENIENT)
    assert ids(lenient) == ids(plain)
    assert lenient["total"] == plain["total"]
    assert messages(lenient) == [
        ("warning", "not-supported", f"http.{name}")
        for name in ("foo", "bar:exact", "subject")
    ]
    modes = [each["search"]["mode"] for each in lenient["entry"]]
    assert modes == ["match", "match", "outcome"]


def test_lenient_is_reported_on_every_page_and_with_a_count_alone(
    served: Served,
) -> None:
    """Decision 2."""
    warning = [("warning", "not-supported", "http.foo")]
    first = served.search("Encounter", {"foo": "1", "_count": "5"}, **LENIENT)
    assert messages(first) == warning
    assert messages(served.follow(first, "next")) == warning
    counted = served.search("Encounter", {"foo": "1", "_summary": "count"}, **LENIENT)
    assert messages(counted) == warning
    assert counted["total"] == first["total"]


def test_a_link_with_an_unknown_parameter_fails_closed_too(served: Served) -> None:
    """Decision 2."""
    address = link(served.search("Encounter", {"patient": "2"}), "self") + "&foo=1"
    refused(served.get(address), 400, "not-supported", "foo")
    lenient = body(served.get(address, **LENIENT))
    assert messages(lenient) == [("warning", "not-supported", "http.foo")]


@pytest.mark.parametrize(
    ("prefer", "status"),
    [
        ("handling=strict, handling=lenient", 400),
        ("respond-async; handling=lenient, handling=strict", 200),
        ('handling = "lenient"', 200),
    ],
)
def test_the_first_handling_counts(served: Served, prefer: str, status: int) -> None:
    """Decision 2; RFC 7240, 2."""
    assert served.get("Encounter?foo=1", Prefer=prefer).status_code == status


@pytest.mark.parametrize(
    ("path", "name"),
    [
        *(
            ("Encounter", name)
            for name in (
                *("patient:foo", "patient:Patient", "status:text", "status:not"),
                *("date:missing", "identifier:exact", "_sort:desc", "_count:foo"),
                "_id:",
            )
        ),
        *(
            ("Patient", name)
            for name in (
                *("name:phonetic", "name:", "name:exact:contains", "birthdate:exact"),
            )
        ),
        ("Organization", "name:text"),
        ("Bundle", "_id:exact"),
        ("Encounter/1", "_elements:foo"),
    ],
)
def test_an_unsupported_modifier_is_400_whatever_prefer_says(
    served: Served, path: str, name: str
) -> None:
    """Decision 2."""
    for prefer in ({}, LENIENT, STRICT):
        answer = served.get(f"{path}?{name}=1", **prefer)
        assert name.partition(":")[0] in refused(answer, 400, "code-invalid", name)


@pytest.mark.parametrize(
    "added",
    [
        {"_format": "json"},
        {"_format": "application/fhir+json"},
        {"_pretty": "true"},
        {"_summary": "true"},
        {"_summary": "data"},
        {"_elements": "status,subject"},
    ],
    ids=str,
)
def test_presentation_parameters_are_understood_and_filter_nothing(
    served: Served, added: Mapping[str, str]
) -> None:
    """Decision 2."""
    plain = served.search("Encounter", {"patient": "6"})
    shown = served.search("Encounter", {"patient": "6", **added})
    assert ids(shown) == ids(plain)
    assert shown["total"] == plain["total"]
    assert issues(shown) == []


@pytest.mark.parametrize("prefer", [{}, LENIENT], ids=str)
@pytest.mark.parametrize("path", ["Encounter", "Encounter/1", "Bundle", "metadata"])
def test_a_token_in_query_or_form_is_refused_and_never_echoed(
    served: Served, path: str, prefer: Mapping[str, str]
) -> None:
    """Decision 2."""
    params = {"patient": "2", "access_token": "s3cret-s3cret"}
    for answer in (
        served.get(f"{path}?access_token=s3cret-s3cret", **prefer),
        served.post("Encounter/_search", params, **prefer),
    ):
        refused(answer, 400, "invalid", "access_token")
        assert "s3cret" not in answer.text + str(answer.headers)


@pytest.mark.parametrize(
    ("path", "status", "text", "place"),
    [
        # A FHIR string neither ends in a blank nor holds control characters.
        ("Encounter?%20=1", 400, "", "http."),
        ("Encounter?nom%C2%A0=1", 400, "'nom", "http.nom"),
        ("Encounter?%09=1", 400, "", "http."),
        ("Encounter?_id=8%00", 412, "'8\ufffd'", "http._id"),
        ("Encounter?date=20%1b24", 412, "'20\ufffd24'", "http.date"),
        ("Encounter?%01x=1", 400, "'\ufffdx'", "http.\ufffdx"),
        ("Encounter?date:%0B=1", 400, "':\ufffd'", "http.date:\ufffd"),
    ],
)
def test_characters_that_fhir_forbids_are_not_returned(
    served: Served, path: str, status: int, text: str, place: str
) -> None:
    """Decision 2."""
    (issue,) = body(served.get(path), status)["issue"]
    assert text in issue["diagnostics"]
    assert issue["location"] == [place]


def test_nor_in_the_name_of_an_ignored_parameter(served: Served) -> None:
    """Decision 2."""
    bundle = body(served.get("Encounter?a%00b=1", **LENIENT))
    assert messages(bundle) == [("warning", "not-supported", "http.a\ufffdb")]


NUMBERS = ("a,b", "a", "b", "a|b", "a$b", "a\\b", "a\\,b", "+ &=é")
"""Visit numbers with the characters that search values give a meaning to."""


@pytest.fixture
def escapes(
    redis_server: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> Served:
    """Return a service on stays whose visit numbers are `NUMBERS`, ids from 1 on."""
    stays = (
        StayRow(id, began="2024-05-01 10:00:00", visit=visit)
        for id, visit in enumerate(NUMBERS, 1)
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
def test_escapes_are_read_after_the_form(
    escapes: Served, value: str, found: set[str]
) -> None:
    """Decision 4."""
    bundle = escapes.search("Encounter", {"identifier": value})
    assert {NUMBERS[int(id) - 1] for id in ids(bundle)} == found


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
def test_comma_is_or_and_repetition_is_and(
    served: Served, params: list[tuple[str, str]], found: list[str]
) -> None:
    """Decision 4."""
    assert sorted(ids(served.search("Encounter", params))) == found


def test_pages_keep_repetitions(served: Served) -> None:
    """Decision 4."""
    params = [("date", "ge2024-05-02"), ("date", "lt2024-05-04"), ("_count", "1")]
    first = served.search("Encounter", params)
    second = served.follow(first, "next")
    assert ids(first) + ids(second) == ["62", "61"]
    assert relations(second) == ["self", "previous"]
    assert list(parameters(link(first, "next"))) == ["_id", "_index", "_searchAfter"]


@pytest.mark.parametrize(
    "params",
    [
        {"patient": "987654"},
        {"identifier": "nobody"},
        {"status": "in-progress", "class": "EMER"},
        {"date": "1801"},
    ],
    ids=str,
)
def test_no_match_is_an_empty_searchset(
    served: Served, params: Mapping[str, str]
) -> None:
    """A search without matches is 200 (STU3 http, search)."""
    bundle = served.search("Encounter", params)
    assert bundle.keys() == {"resourceType", "id", "type", "total", "link"}
    assert (bundle["total"], relations(bundle)) == (0, ["self"])


@pytest.mark.parametrize("count", [1, 3, 50, 100])
def test_count_is_the_size_of_a_page_alone(served: Served, count: int) -> None:
    """`_count` does not change the total (STU3 search, _count)."""
    bundle = served.search("Encounter", {"_count": str(count)})
    assert len(bundle["entry"]) <= count
    assert bundle["total"] == served.search("Encounter")["total"]
