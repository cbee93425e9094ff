"""Decision 2: what is not understood or not offered is refused, or told."""

from collections.abc import Mapping

import pytest

from adapters.testing.hospital import UNIT_URL
from tests.app.answers import refused, told
from tests.serving import Served, ids, issues, link

LENIENT = {"Prefer": "handling=lenient"}
STRICT = {"Prefer": "handling=strict"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Encounter", "foo"),
        ("Encounter", "subject"),
        ("Encounter", "length"),
        ("Encounter", "_lastUpdated"),
        ("Encounter", "_include"),
        ("Encounter", "patient.name"),
        ("Encounter", "Patient"),
        ("Patient", "phonetic"),
        ("Organization", "address"),
    ],
)
def test_02_an_unknown_parameter_is_400_and_told_what_is_offered(
    served: Served, kind: str, name: str
) -> None:
    text = refused(
        served.post(f"{kind}/_search", {name: "1"}), 400, "not-supported", name
    )
    offered = {"Encounter": "patient", "Patient": "birthdate", "Organization": "name"}
    assert name in text
    assert offered[kind] in text.partition("Offered are")[2]


NOT_IN_GROUPS = [
    ("Encounter", name, value)
    for name, value in (
        ("identifier", "V1"),
        ("status", "planned"),
        ("service-provider._extension", f"{UNIT_URL}|0123"),
        ("class", "IMP"),
        ("_sort", "date"),
    )
] + [
    ("Patient", name, value)
    for name, value in (
        ("family", "a"),
        ("given", "a"),
        ("birthdate", "1970"),
        ("gender", "male"),
        ("identifier", "1"),
        ("_sort", "_id"),
    )
]


@pytest.mark.parametrize("group", ["group-a", "group-b"])
@pytest.mark.parametrize(("kind", "name", "value"), NOT_IN_GROUPS)
def test_02_a_parameter_this_deployment_does_not_offer_is_400(
    groups: Mapping[str, Served], group: str, kind: str, name: str, value: str
) -> None:
    answer = groups[group].post(f"{kind}/_search", {name: value})
    text = refused(answer, 400, "not-supported", name)
    offered = text.partition("Offered are: ")[2]
    assert "_id" in offered
    assert name not in offered


@pytest.mark.parametrize("group", ["group-a", "group-b"])
def test_02_where_nothing_is_paged_no_cursor_is_offered(
    groups: Mapping[str, Served], group: str
) -> None:
    service = groups[group]
    address = link(service.search("Encounter", {"_count": "1"}), "self")
    text = refused(service.get(f"{address}&foo=1"), 400, "not-supported", "foo")
    assert text.endswith("Offered are: _id, _format, _pretty.")


def test_02_lenient_ignores_it_and_one_outcome_entry_says_so(served: Served) -> None:
    plain = served.search("Encounter", {"patient": "2"})
    asked = {"patient": "2", "foo": "1", "bar:exact": "", "subject": "Patient/3"}
    found = served.search("Encounter", asked, **LENIENT)
    assert ids(found) == ids(plain)
    assert found["total"] == plain["total"]
    assert told(found) == [
        ("warning", "not-supported", "http.foo"),
        ("warning", "not-supported", "http.bar:exact"),
        ("warning", "not-supported", "http.subject"),
    ]
    modes = [each["search"]["mode"] for each in found["entry"]]
    assert modes == ["match", "match", "outcome"]


def test_02_lenient_is_told_on_every_page_and_with_a_count_alone(
    served: Served,
) -> None:
    warning = [("warning", "not-supported", "http.foo")]
    first = served.search("Encounter", {"foo": "1", "_count": "5"}, **LENIENT)
    assert told(first) == warning
    assert told(served.follow(first, "next")) == warning
    counted = served.search("Encounter", {"foo": "1", "_summary": "count"}, **LENIENT)
    assert told(counted) == warning
    assert counted["total"] == first["total"]


def test_02_a_link_with_an_unknown_parameter_fails_closed_too(served: Served) -> None:
    address = link(served.search("Encounter", {"patient": "2"}), "self") + "&foo=1"
    refused(served.get(address), 400, "not-supported", "foo")
    lenient = served.get(address, **LENIENT).get_json(force=True)
    assert told(lenient) == [("warning", "not-supported", "http.foo")]


@pytest.mark.parametrize("prefer", [{}, LENIENT, STRICT], ids=str)
@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Encounter", "patient:foo"),
        ("Encounter", "patient:Patient"),
        ("Encounter", "status:text"),
        ("Encounter", "status:not"),
        ("Encounter", "date:missing"),
        ("Encounter", "identifier:exact"),
        ("Encounter", "_sort:desc"),
        ("Encounter", "_count:foo"),
        ("Encounter", "_id:"),
        ("Patient", "name:phonetic"),
        ("Patient", "name:"),
        ("Patient", "name:exact:contains"),
        ("Patient", "birthdate:exact"),
        ("Organization", "name:text"),
        ("Bundle", "_id:exact"),
        ("Encounter/1", "_elements:foo"),
    ],
)
def test_02_an_unsupported_modifier_is_400_whatever_prefer_says(
    served: Served, prefer: Mapping[str, str], path: str, name: str
) -> None:
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
def test_02_how_to_show_a_result_is_understood_and_no_filter(
    served: Served, added: Mapping[str, str]
) -> None:
    plain = served.search("Encounter", {"patient": "6"})
    shown = served.search("Encounter", {"patient": "6", **added})
    assert ids(shown) == ids(plain)
    assert shown["total"] == plain["total"]
    assert issues(shown) == []


@pytest.mark.parametrize("prefer", [{}, LENIENT], ids=str)
@pytest.mark.parametrize("path", ["Encounter", "Encounter/1", "Bundle", "metadata"])
def test_02_a_token_in_the_query_is_refused_and_never_echoed(
    served: Served, path: str, prefer: Mapping[str, str]
) -> None:
    answer = served.get(f"{path}?access_token=s3cret-s3cret", **prefer)
    refused(answer, 400, "invalid", "access_token")
    assert "s3cret" not in answer.text + str(answer.headers)


def test_02_a_token_in_a_form_is_refused_and_never_echoed(served: Served) -> None:
    sent = {"patient": "2", "access_token": "s3cret-s3cret"}
    answer = served.post("Encounter/_search", sent)
    refused(answer, 400, "invalid", "access_token")
    assert "s3cret" not in answer.text + str(answer.headers)
