"""Decision 14: the answers to ids and cursors that lead nowhere."""

import string
from collections.abc import Mapping
from typing import Any

import pytest

from tests.app.answers import parameters, refused
from tests.redis_server import RedisServer
from tests.serving import Served, link, relations


@pytest.fixture
def two(served: Served) -> tuple[Any, Any]:
    """Return the first two pages of a search."""
    first = served.search("Encounter", {"_count": "5"})
    return first, served.follow(first, "next")


def _changed(text: str) -> list[str]:
    """Return the text with one character changed, at every place."""
    letters = string.ascii_lowercase
    return [
        text[:place] + letters[(letters.find(sign) + 7) % 26] + text[place + 1 :]
        for place, sign in enumerate(text)
    ]


def _bundle(served: Served, **params: str) -> Any:
    query = "&".join(f"{name}={value}" for name, value in params.items())
    return served.get(f"Bundle?{query}")


def test_14_what_was_tampered_with_is_one_and_the_same_404(
    served: Served, two: tuple[Any, Any]
) -> None:
    carried = parameters(link(two[1], "previous"))
    tampered = [{**carried, "_id": id} for id in _changed(carried["_id"])]
    tampered += [
        {**carried, "_searchBefore": cursor}
        for cursor in _changed(carried["_searchBefore"])
    ]
    tampered += [
        {**carried, "_index": "7"},
        {**carried, "_id": two[0]["id"]},
        {"_id": two[1]["id"], "_index": "1", "_searchAfter": carried["_searchBefore"]},
        {"_id": "a" * 32},
        {"_id": carried["_searchBefore"]},
        {**carried, "_searchBefore": carried["_id"]},
    ]
    answers = [_bundle(served, **params) for params in tampered]
    assert {refused(answer, 404, "not-found") for answer in answers} == {
        "There is no such page of a search."
    }


def test_14_another_clients_page_is_that_same_404(
    served: Served, two: tuple[Any, Any]
) -> None:
    other = served.as_client("client-2")
    texts = {
        refused(other.get(link(two[1], relation)), 404, "not-found")
        for relation in relations(two[1])
    }
    assert texts == {"There is no such page of a search."}


def test_14_a_page_that_is_no_longer_kept_is_410(
    served: Served, two: tuple[Any, Any], redis_server: RedisServer
) -> None:
    with redis_server.client() as redis:
        redis.flushall()
    for page in two:
        for relation in relations(page):
            answer = served.get(link(page, relation))
            assert "search again" in refused(answer, 410, "not-found")


def test_14_a_page_of_which_only_the_source_is_kept(
    served: Served, two: tuple[Any, Any], redis_server: RedisServer
) -> None:
    with redis_server.client() as redis:
        redis.delete(f"page:{two[0]['id']}")
    refused(served.get(link(two[0], "next")), 410, "not-found")
    assert served.follow(two[1], "self") == two[1]


CURSOR = "a" * 32


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"_id": "a" * 31}, "_id"),
        ({"_id": "a" * 33}, "_id"),
        ({"_id": "A" * 32}, "_id"),
        ({"_id": "1" * 32}, "_id"),
        ({"_id": "é" * 32}, "_id"),
        ({"_id": ""}, "_id"),
        ({"_id": CURSOR, "_index": "2", "_searchAfter": "a" * 16}, "_searchAfter"),
        (
            {"_id": CURSOR, "_index": "2", "_searchBefore": "a" * 31 + "="},
            "_searchBefore",
        ),
        ({"_id": CURSOR, "_index": "2", "_searchAfter": ""}, "_searchAfter"),
        ({"_id": CURSOR, "_index": "-1", "_searchAfter": CURSOR}, "_index"),
        ({"_id": CURSOR, "_index": "0", "_searchAfter": CURSOR}, "_index"),
        ({"_id": CURSOR, "_index": "x", "_searchAfter": CURSOR}, "_index"),
        ({"_id": CURSOR, "_index": "9" * 10, "_searchAfter": CURSOR}, "_index"),
        (
            {"_id": CURSOR, "_index": "2", "_searchAfter": CURSOR}
            | {"_searchBefore": CURSOR},
            "_searchBefore",
        ),
    ],
    ids=str,
)
def test_14_wrong_length_or_alphabet_or_both_cursors_is_412(
    served: Served, params: Mapping[str, str], name: str
) -> None:
    refused(_bundle(served, **params), 412, "value", name)


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({}, "_id"),
        ({"_index": "2", "_searchAfter": CURSOR}, "_id"),
        ({"_id": CURSOR, "_searchAfter": CURSOR}, "_index"),
        ({"_id": CURSOR, "_index": "2"}, "_searchAfter"),
    ],
    ids=str,
)
def test_14_what_a_link_carries_is_required(
    served: Served, params: Mapping[str, str], name: str
) -> None:
    refused(_bundle(served, **params), 400, "required", name)


@pytest.mark.parametrize(
    ("kind", "scope", "other"),
    [
        ("Encounter", "ENCOUNTER_SEARCH", "PATIENT_SEARCH ENCOUNTER_READ"),
        ("Patient", "PATIENT_SEARCH", "ENCOUNTER_SEARCH PATIENT_READ"),
        ("Organization", "ORGANIZATION_READ", "PATIENT_SEARCH ENCOUNTER_SEARCH"),
    ],
)
def test_14_a_bundle_asks_for_the_scope_of_what_was_searched(
    served: Served, kind: str, scope: str, other: str
) -> None:
    searcher = served.as_client("searcher", scope)
    found = searcher.search(kind, {"_id": "1,2,3,H1,H2", "_count": "1"})
    assert searcher.follow(found, "self") == found
    reduced = served.as_client("searcher", other)
    for relation in ("self", "next"):
        text = refused(
            reduced.get(link(found, relation)), 403, "processing", "Authorization"
        )
        assert scope in text
