"""What STU3 asks of requests and answers, as far as no decision is about it."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.app.answers import body, pages, raw, refused
from tests.serving import Served, ids, link, relations

FHIR_JSON = "application/fhir+json;charset=UTF-8"
OK = ("Encounter/1", "Encounter?_id=1", "Patient/1", "Organization/H1", "metadata")
XML = "application/fhir+xml"


# ------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    "path",
    ["Encounter/1", "Encounter/9223372036854775807", "Patient/12", "Organization/h2"],
)
def test_a_read_answers_the_resource_of_its_address(served: Served, path: str) -> None:
    found = body(served.get(path))
    assert f"{found['resourceType']}/{found['id']}" == path


@pytest.mark.parametrize(
    "id",
    ["a" * 65, "a b", "a%20b", "a%2Fb", "%C3%A9", "_x", "a_b", "%00", "1%0A", "~"],
)
@pytest.mark.parametrize("kind", ["Encounter", "Patient", "Organization"])
def test_what_is_no_id_is_not_found(served: Served, kind: str, id: str) -> None:
    refused(served.get(f"{kind}/{id}"), 404, "not-found")


@pytest.mark.parametrize("id", ["_searches", "_history", "$everything", "a" * 65])
def test_what_an_id_is_is_told_to_who_reads_something_else(
    served: Served, id: str
) -> None:
    text = refused(served.get(f"Encounter/{id}"), 404, "not-found")
    assert "an id is 1 to 64 of A-Z" in text


@pytest.mark.parametrize("kind", ["Encounter", "Patient", "Organization"])
@pytest.mark.parametrize("path", ["_search", "_search?_id=1", "_search?_format=json"])
def test_a_search_by_form_is_no_resource_to_read(
    served: Served, kind: str, path: str
) -> None:
    """FHIR STU3 http, search: GET has the parameters after the type."""
    answer = served.get(f"{kind}/{path}")
    refused(answer, 405, "not-supported")
    assert answer.headers["Allow"] == "OPTIONS, POST"
    assert served.get(f"{kind}/_search/_history").status_code == 404


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("Encounter/_search", {"OPTIONS", "POST"}),
        ("Encounter/1", {"GET", "HEAD", "OPTIONS"}),
        ("Encounter", {"GET", "HEAD", "OPTIONS"}),
    ],
)
def test_options_tells_what_is_offered(
    served: Served, path: str, allowed: set[str]
) -> None:
    answer = raw(served, "OPTIONS", path)
    assert (answer.status_code, answer.get_data()) == (200, b"")
    assert set(answer.allow) == allowed


@pytest.mark.parametrize("path", ["Encounter/1", "Encounter/1/_history/1", "metadata"])
def test_head_has_no_body(served: Served, path: str) -> None:
    got, head = served.get(path), raw(served, "HEAD", path)
    assert head.status_code == got.status_code
    assert head.headers["Content-Type"] == got.headers["Content-Type"]
    assert head.get_data() == b""


def test_history_is_explained(served: Served) -> None:
    for path in ("Encounter/1/_history", "Encounter/1/_history/1"):
        assert "History is not supported" in refused(served.get(path), 404, "not-found")


@pytest.mark.parametrize("id", ["1", "51", "50", "37", "987654"])
def test_a_client_that_may_not_read_learns_nothing(served: Served, id: str) -> None:
    answer = served.as_client("c", "PATIENT_READ").get(f"Encounter/{id}")
    assert answer.status_code == 403
    other = served.as_client("c", "PATIENT_READ").get("Encounter/1")
    assert answer.get_data() == other.get_data()


# ----------------------------------------------------------------- content and formats


@pytest.mark.parametrize("path", OK)
def test_answers_are_fhir_json_in_utf_8(served: Served, path: str) -> None:
    answer = served.get(path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == FHIR_JSON


@pytest.mark.parametrize(
    "accept",
    [
        *("application/fhir+json", "application/json", "application/json+fhir"),
        *("text/json", "*/*", "application/*", "Application/FHIR+JSON"),
        *(
            "application/fhir+json; charset=utf-8",
            "application/fhir+json;q=0.5, */*;q=0",
        ),
        *(f"{XML}, application/fhir+json;q=0.1", "text/html,application/xml,*/*;q=0.8"),
        *("application/fhir+json; fhirVersion=3.0", ""),
        *("application/json;q=0, */*", "text/*", "application/*, */*;q=0"),
    ],
)
@pytest.mark.parametrize("path", OK)
def test_json_is_given_to_all_who_take_it(
    served: Served, path: str, accept: str
) -> None:
    answer = raw(served, "GET", path, headers={"Accept": accept} if accept else {})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == FHIR_JSON


@pytest.mark.parametrize(
    "accept",
    [
        *(XML, "text/html", "application/fhir+json;q=0", "application/fhir+turtle"),
        *("application/fhir+json;q=0, */*", "application/*;q=0.0, */*", "*/*;q=0"),
    ],
)
@pytest.mark.parametrize("path", OK)
def test_what_is_not_served_is_406(served: Served, path: str, accept: str) -> None:
    answer = raw(served, "GET", path, headers={"Accept": accept})
    refused(answer, 406, "not-supported", "Accept")


@pytest.mark.parametrize(
    ("format", "status"),
    [
        *((f, 200) for f in ("json", "application/json", "application/fhir%2Bjson")),
        # A + that nobody escaped is the usual one.
        ("application/fhir+json", 200),
        *((f, 406) for f in ("xml", "application/fhir%2Bxml", "text/turtle", "html")),
    ],
)
@pytest.mark.parametrize("path", OK)
def test_the_format_wins_over_accept(
    served: Served, path: str, format: str, status: int
) -> None:
    accept = XML if status == 200 else "application/fhir+json"
    asked = f"{path}{'&' if '?' in path else '?'}_format={format}"
    answer = raw(served, "GET", asked, headers={"Accept": accept})
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == FHIR_JSON


def test_letters_are_utf_8_and_length_is_in_bytes(served: Served) -> None:
    for path in ("Patient/3", "Organization?name=coeur", "Patient?given=eleonore"):
        answer = served.get(path)
        data = answer.get_data()
        assert int(answer.headers["Content-Length"]) == len(data) > len(data.decode())


def test_pretty_is_the_same_in_more_lines(served: Served) -> None:
    plain, pretty = served.get("Encounter/1"), served.get("Encounter/1?_pretty=true")
    assert json.loads(plain.text) == json.loads(pretty.text)
    assert pretty.text.count("\n") > 10


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("Encounter/987654", 404),
        ("Encounter/51", 410),
        ("Encounter/37", 500),
        ("Encounter?date=x", 412),
        ("Patient?nonsense=1", 400),
        ("Bundle?_id=nosuch", 412),
    ],
)
def test_so_is_an_error(served: Served, path: str, status: int) -> None:
    plain = served.get(path)
    pretty = served.get(f"{path}{'&' if '?' in path else '?'}_pretty=true")
    assert plain.status_code == pretty.status_code == status
    assert json.loads(plain.text)["issue"][0]["code"] in pretty.text
    assert plain.text.count("\n") == 0
    assert pretty.text.count("\n") > 5


def test_so_is_an_error_of_a_form(served: Served) -> None:
    pretty = served.post("Encounter/_search", {"date": "x", "_pretty": "true"})
    assert pretty.status_code == 412
    assert pretty.text.count("\n") > 5


# ------------------------------------------------------------------------- searching


@pytest.mark.parametrize(
    "sent", [{"content_type": "application/x-www-form-urlencoded"}, {}], ids=str
)
def test_a_search_needs_no_parameter(served: Served, sent: Mapping[str, str]) -> None:
    bundle = body(raw(served, "POST", "Encounter/_search", data="", **sent))
    assert (bundle["resourceType"], bundle["type"]) == ("Bundle", "searchset")
    assert len(bundle["entry"]) == 10 < bundle["total"]


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
    found = served.search("Encounter", params)
    assert found.keys() == {"resourceType", "id", "type", "total", "link"}
    assert (found["total"], relations(found)) == (0, ["self"])


def test_strict_handling_names_the_parameter(served: Served) -> None:
    answer = served.post("Encounter/_search", {"foo": "bar"}, Prefer="handling=strict")
    assert "foo" in refused(answer, 400, "not-supported", "foo")


@pytest.mark.parametrize("count", [1, 3, 50, 100])
def test_count_is_the_size_of_a_page_alone(served: Served, count: int) -> None:
    found = served.search("Encounter", {"_count": str(count)})
    assert len(found["entry"]) <= count
    assert found["total"] == served.search("Encounter")["total"]


@pytest.mark.parametrize("sort", ["date", "-date", "_lastUpdated", "-_lastUpdated"])
def test_the_order_is_the_same_twice(served: Served, sort: str) -> None:
    params = {"_sort": sort, "_count": "100"}
    assert ids(served.search("Encounter", params)) == ids(
        served.search("Encounter", params)
    )


# --------------------------------------------------------------------------- paging


@pytest.mark.parametrize(
    ("matches", "sizes"), [(0, [0]), (1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3])]
)
def test_pages_at_their_edges(served: Served, matches: int, sizes: list[int]) -> None:
    some = ",".join(["999998", *(str(id) for id in range(1, matches + 1))])
    first = served.search("Encounter", {"_id": some, "_count": "3"})
    forwards = list(pages(served, first))
    assert [len(ids(page)) for page in forwards] == sizes
    backwards = list(pages(served, forwards[-1], "previous"))
    assert [ids(page) for page in reversed(backwards)] == [ids(p) for p in forwards]
    assert {page["total"] for page in forwards + backwards} == {matches}


def test_a_link_is_a_plain_get_with_a_token(served: Served) -> None:
    first = served.search("Encounter", {"_count": "3"})
    second = served.follow(first, "next")
    for address in (link(first, "next"), link(second, "previous")):
        assert served.get(address).status_code == 200
        anonymous = Served(served.app).get(address)
        refused(anonymous, 401, "login", "Authorization")
        stranger = served.as_client("stranger").get(address)
        refused(stranger, 404, "not-found")


# ----------------------------------------------------------------------- capabilities


def _encounter(served: Served) -> Any:
    (rest,) = body(served.get("metadata"))["rest"]
    return next(each for each in rest["resource"] if each["type"] == "Encounter")


def test_the_statement_is_that_of_a_read_only_stu3_service(served: Served) -> None:
    statement = body(served.get("metadata"))
    assert statement["resourceType"] == "CapabilityStatement"
    assert {"status", "date", "kind", "format"} <= statement.keys()
    assert statement["fhirVersion"] in ("3.0.1", "3.0.2")
    assert statement["acceptUnknown"] == "no"
    codes = [each["code"] for each in _encounter(served)["interaction"]]
    assert codes == ["read", "search-type"]
    (security,) = [rest["security"] for rest in statement["rest"]]
    assert security["service"][0]["coding"] == [
        {"system": "http://hl7.org/fhir/restful-security-service", "code": "OAuth"}
    ]


def test_parameters_have_the_type_and_the_address_of_their_definition(
    served: Served,
) -> None:
    definitions = "http://hl7.org/fhir/SearchParameter/"
    found = {each["name"]: each for each in _encounter(served)["searchParam"]}
    assert len(found) == len(_encounter(served)["searchParam"])
    for name, type, definition in (
        ("_id", "token", "Resource-id"),
        ("patient", "reference", "clinical-patient"),
        ("date", "date", "clinical-date"),
        ("identifier", "token", "clinical-identifier"),
        ("status", "token", "Encounter-status"),
        ("class", "token", "Encounter-class"),
    ):
        assert found[name]["type"] == type
        assert found[name]["definition"] == definitions + definition
