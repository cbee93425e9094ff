"""Decisions 1, 2 and 4: the forms of a search, what is refused or ignored, AND and OR."""

import pytest

from tests.app.answers import body, messages, refused
from tests.serving import FORM, ids, issues, link, relations
from toolkit.contract.hospital import UNIT_URL, Hospital, StayRow

LENIENT = {"Prefer": "handling=lenient"}
STRICT = {"Prefer": "handling=strict"}


def _form(served, query, form):
    path = f"Encounter/_search?{query}"
    return served.send("POST", path, data=form, content_type=FORM)


def test_get_and_post_mean_the_same(served):
    """Decision 1: both search forms return the same matches. SRCH-04."""
    for kind, params in (
        ("Encounter", {"patient": "3", "date": "ge2024-10-27T02:00:00+01:00"}),
        ("Encounter", {"service-provider._extension": f"{UNIT_URL}|é"}),
        ("Encounter", {"class": "IMP,UNK", "_sort": "_lastUpdated", "_count": "7"}),
        ("Patient", {"name": "Éléonore"}),
        ("Organization", {"name:contains": "cœur"}),
    ):
        posted = served.search(kind, params)
        got = body(served.send("GET", kind, query_string=params))
        assert ids(got) == ids(posted) != []
        assert got["total"] == posted["total"]


def test_parameters_in_the_query_of_a_post_count_too(served):
    """Decision 1: a name in the query string and in the form is a repetition.

    SRCH-05.
    """
    for query, form, found in (
        ("patient=2", "status=planned", ["27", "42"]),
        ("_id=1", "_id=2", []),
    ):
        assert sorted(ids(body(_form(served, query, form)))) == found
    refused(_form(served, "_count=1", "_count=1"), 412, "value", "_count")


def test_another_content_type_is_415_and_no_result(served):
    """Decision 1. SRCH-03."""
    for sent in (
        {"data": '{"patient": "2"}', "content_type": "application/fhir+json"},
        {"data": {"patient": "2"}, "content_type": "multipart/form-data"},
        {"data": "patient=2"},
        {"data": "patient=2", "content_type": f"{FORM}; charset=utf-16"},
    ):
        answer = served.send("POST", "Encounter/_search", **sent)
        refused(answer, 415, "not-supported", "Content-Type")
    for header, coding, status, name in (
        ("Content-Encoding", "gzip", 415, "Content-Encoding"),
        ("Transfer-Encoding", "gzip, chunked", 501, None),
    ):
        answer = served.send(
            *("POST", "Encounter/_search"),
            data="_id=1",
            content_type=FORM,
            headers={header: coding, **LENIENT},
        )
        refused(answer, status, "not-supported", name)


def test_the_charset_of_a_form_of_ascii_is_ignored(served):
    """Decision 38: Apache's HttpClient names ISO-8859-1 unless it is told otherwise."""
    for charset in ("ISO-8859-1", "us-ascii"):
        sent = {"content_type": f"{FORM}; charset={charset}"}
        answer = served.send("POST", "Encounter/_search", data="patient=2", **sent)
        assert body(answer)["total"] == 2
        for text in ("name=Lef%E8vre", "name=Lef%C3%A8vre"):
            answer = served.send("POST", "Patient/_search", data=text, **sent)
            refused(answer, 415, "not-supported", "Content-Type")
    sent = {"content_type": "Application/X-WWW-Form-URLEncoded; charset=UTF-8"}
    body(served.send("POST", "Patient/_search", data="name=Lef%C3%A8vre", **sent))
    answer = served.send("POST", "Patient/_search", data="name=Lef%E8vre", **sent)
    refused(answer, 400, "structure")
    refused(served.get("Encounter?identifier=%FF"), 400, "structure")


def test_slashes_that_libraries_add_are_removed(served):
    """Decision 38: below the base, before routing, never where one is escaped."""
    for method, path in (("GET", "//Encounter//"), ("POST", "Encounter/_search/")):
        assert body(served.send(method, path))["type"] == "searchset", path
    assert body(served.get("Encounter//1/"))["id"] == "1"
    for path in ("Encounter/1%2F", "%2FEncounter/1/"):
        refused(served.get(path), 404, "not-found")


def test_a_search_needs_no_parameter(served):
    """Decision 1: an empty form is a search for everything; `_count` changes no total.

    SRCH-01 SRCH-02 SRCH-16 SRCH-17.
    """
    for sent in ({"content_type": FORM}, {}):
        bundle = body(served.send("POST", "Encounter/_search", data="", **sent))
        assert (bundle["resourceType"], bundle["type"]) == ("Bundle", "searchset")
        assert len(bundle["entry"]) == 10 < bundle["total"]
    for count in (1, 7):
        few = served.search("Encounter", {"_count": str(count)})
        assert (len(few["entry"]), few["total"]) == (count, bundle["total"])


def test_a_get_with_a_body_is_refused(served):
    """Decision 1: a filter in the body would be ignored."""
    answer = served.send("GET", "Encounter", data="patient=4", content_type=FORM)
    assert answer.status_code == 400


def test_an_unknown_parameter_is_400_and_lists_what_is_offered(served):
    """Decision 2; decision 5: start and end are no parameters.

    SRCH-10 SRCH-22 REF-04.
    """
    stays = "foo episode length _lastUpdated _revinclude Patient patient.name start date-end"
    for kind, names, offered in (
        ("Encounter", stays, "patient"),
        ("Patient", "phonetic _include", "birthdate"),
        ("Organization", "address", "name"),
    ):
        for name in names.split():
            answer = served.post(f"{kind}/_search", {name: "1"}, **STRICT)
            text = refused(answer, 400, "not-supported", name)
            assert name in text
            assert offered in text.partition("Offered are")[2]


def test_lenient_ignores_it_and_one_outcome_entry_says_so(served):
    """Decision 2."""
    plain = served.search("Encounter", {"patient": "2"})
    params = {"patient": "2", "foo": "1", "bar:exact": "", "episode": "Patient/3"}
    lenient = served.search("Encounter", params, **LENIENT)
    assert ids(lenient) == ids(plain)
    assert lenient["total"] == plain["total"]
    assert messages(lenient) == [
        ("warning", "not-supported", f"http.{name}")
        for name in ("foo", "bar:exact", "episode")
    ]
    modes = [each["search"]["mode"] for each in lenient["entry"]]
    assert modes == ["match", "match", "outcome"]


def test_lenient_is_reported_on_every_page_and_with_a_count_alone(served):
    """Decision 2: and a link fails closed too."""
    warning = [("warning", "not-supported", "http.foo")]
    first = served.search("Encounter", {"foo": "1", "_count": "5"}, **LENIENT)
    counted = served.search("Encounter", {"foo": "1", "_summary": "count"}, **LENIENT)
    for bundle in (first, served.follow(first, "next"), counted):
        assert messages(bundle) == warning
        assert bundle["total"] == first["total"]
    address = link(served.search("Encounter", {"patient": "2"}), "self") + "&foo=1"
    refused(served.get(address), 400, "not-supported", "foo")
    assert messages(body(served.get(address, **LENIENT))) == warning


def test_the_first_handling_counts(served):
    """Decision 2; RFC 7240, 2."""
    for prefer, status in (
        ("handling=strict, handling=lenient", 400),
        ("respond-async; handling=lenient, handling=strict", 200),
        ('handling = "lenient"', 200),
    ):
        assert served.get("Encounter?foo=1", Prefer=prefer).status_code == status


def test_an_unsupported_modifier_is_400_whatever_prefer_says(served):
    """Decision 2. SRCH-11."""
    for path, names in (
        (
            "Encounter",
            "patient:Group subject:exact patient.identifier:exact _include:recurse"
            " status:not date:missing _sort:desc _count:foo _id:",
        ),
        ("Patient", "name:phonetic name: name:exact:contains birthdate:exact"),
        ("Organization", "name:text"),
        ("Bundle", "_id:exact"),
        ("Encounter/1", "_elements:foo"),
    ):
        for name in names.split():
            for prefer in ({}, LENIENT):
                answer = served.get(f"{path}?{name}=1", **prefer)
                text = refused(answer, 400, "code-invalid", name)
                assert name.partition(":")[0] in text


def test_presentation_parameters_are_understood_and_filter_nothing(served):
    """Decision 2. HTTP-05."""
    plain = served.search("Encounter", {"patient": "6"})
    for name, value in (
        ("_pretty", "true"),
        ("_summary", "data"),
        ("_elements", "status,subject"),
    ):
        shown = served.search("Encounter", {"patient": "6", name: value})
        assert (ids(shown), shown["total"]) == (ids(plain), plain["total"])
        assert issues(shown) == []


@pytest.mark.parametrize("prefer", [{}, LENIENT], ids=str)
def test_a_token_in_query_or_form_is_refused_and_never_echoed(served, prefer):
    """Decision 2. SRCH-23."""
    answers = [
        served.get(f"{path}?access_token=s3cret-s3cret", **prefer)
        for path in ("Encounter", "Encounter/1", "Bundle", "metadata")
    ]
    params = {"patient": "2", "access_token": "s3cret-s3cret"}
    for answer in (*answers, served.post("Encounter/_search", params, **prefer)):
        refused(answer, 400, "invalid", "access_token")
        assert "s3cret" not in answer.text + str(answer.headers)


def test_characters_that_fhir_forbids_are_not_returned(served):
    """Decision 2."""
    for query, status, text, place in (
        # A FHIR string neither ends in a blank nor holds control characters.
        ("%20=1", 400, "", "http."),
        ("nom%C2%A0=1", 400, "'nom", "http.nom"),
        ("_id=8%00", 412, "'8\ufffd'", "http._id"),
        ("date=20%1b24", 412, "'20\ufffd24'", "http.date"),
        ("%01x=1", 400, "'\ufffdx'", "http.\ufffdx"),
    ):
        (issue,) = body(served.get(f"Encounter?{query}"), status)["issue"]
        assert text in issue["diagnostics"]
        assert issue["location"] == [place]
    bundle = body(served.get("Encounter?a%00b=1", **LENIENT))
    assert messages(bundle) == [("warning", "not-supported", "http.a\ufffdb")]


NUMBERS = ("a,b", "a", "b", "a|b", "a$b", "a\\b", "a\\,b", "+ &=é")
"""Visit numbers with the characters that search values give a meaning to."""


def test_escapes_are_read_after_the_form(make_service):
    """Decision 4. TOK-04."""
    stays = (
        StayRow(id, began="2024-05-01 10:00:00", visit=visit)
        for id, visit in enumerate(NUMBERS, 1)
    )
    served = make_service(hospital=Hospital(tuple(stays)))
    for value, found in (
        ("a,b", {"a", "b"}),
        (r"a\,b", {"a,b"}),
        (r"a\|b", {"a|b"}),
        (r"a\$b", {"a$b"}),
        (r"a\\b", {"a\\b"}),
        (r"a\\\,b", {"a\\,b"}),
        (r"a\\,b", {"b"}),
        ("+ &=é", {"+ &=é"}),
    ):
        bundle = served.search("Encounter", {"identifier": value})
        assert {NUMBERS[int(id) - 1] for id in ids(bundle)} == found, value


def test_comma_is_or_and_repetition_is_and(served):
    """Decision 4. SRCH-14 SRCH-15 DATE-07 DATE-08 TOK-03."""
    for params, found in (
        ([("_id", "1,2,999")], ["1", "2"]),
        ([("_id", "1"), ("_id", "2")], []),
        ([("_id", "1,2"), ("_id", "2,3")], ["2"]),
        ([("status", "planned,in-progress"), ("patient", "2,4")], ["27", "42", "65"]),
        ([("date", "2024-05-01,2024-05-03"), ("patient", "4")], ["60", "62"]),
        ([("date", "ge2024-05-02"), ("date", "lt2024-05-04")], ["61", "62"]),
    ):
        assert sorted(ids(served.search("Encounter", params))) == found


def test_no_match_is_an_empty_searchset(served):
    """A search without matches is 200 (STU3 http, search). SRCH-06 SRCH-07."""
    for params in (
        {"patient": "987654"},
        {"status": "in-progress", "class": "EMER"},
        {"date": "1801"},
    ):
        bundle = served.search("Encounter", params)
        assert bundle.keys() == {"resourceType", "id", "type", "total", "link"}
        assert (bundle["total"], relations(bundle)) == (0, ["self"])
