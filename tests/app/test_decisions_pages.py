"""Decisions 10 and 12: pages, their links, and walks in both directions."""

import re
from itertools import pairwise
from typing import Any

import pytest

from tests.app.answers import body, pages, parameters, raw
from tests.app.changing import NEWEST_FIRST, Changing
from tests.serving import BASE_URL, Served, ids, link, relations


def _numbers(bundle: Any) -> list[int]:
    return [int(id) for id in ids(bundle)]


def _first(hospital: Changing, **params: str) -> Any:
    return hospital.served.search("Encounter", {"_count": "7", **params})


# -------------------------------------------------------------------- decision 10


def test_10_every_page_has_an_id_of_its_own(hospital: Changing) -> None:
    walked = list(pages(hospital.served, _first(hospital)))
    found = [page["id"] for page in walked]
    assert len(set(found)) == len(walked) == 5
    assert all(re.fullmatch(r"[a-z2-7]{32}", id) for id in found)


def test_10_a_self_link_answers_that_same_page(hospital: Changing) -> None:
    forwards = list(pages(hospital.served, _first(hospital)))
    backwards = list(pages(hospital.served, forwards[-1], "previous"))
    for page in (*forwards, *backwards):
        assert hospital.served.follow(page, "self") == page
        assert link(page, "self") == f"{BASE_URL}/Bundle?_id={page['id']}"


def test_10_links_say_where_they_stand_and_where_they_lead(hospital: Changing) -> None:
    walked = list(pages(hospital.served, _first(hospital)))
    for number, page in enumerate(walked, 1):
        forwards = {"_id": page["id"], "_index": str(number + 1)}
        backwards = {"_id": page["id"], "_index": str(number - 1)}
        if "next" in relations(page):
            carried = parameters(link(page, "next"))
            cursor = carried.pop("_searchAfter")
            assert carried == forwards
            assert re.fullmatch(r"[a-z2-7]{32}", cursor)
        if "previous" in relations(page):
            carried = parameters(link(page, "previous"))
            assert carried.pop("_searchBefore")
            assert carried == backwards


def test_10_relations_are_there_only_when_their_page_is(hospital: Changing) -> None:
    walked = list(pages(hospital.served, _first(hospital)))
    assert [relations(page) for page in walked] == [
        ["self", "next"],
        *[["self", "previous", "next"]] * 3,
        ["self", "previous"],
    ]
    assert relations(_first(hospital, _count="100")) == ["self"]


@pytest.mark.parametrize("relation", ["next", "previous"])
def test_10_following_one_link_twice_gives_one_page(
    hospital: Changing, relation: str
) -> None:
    second = hospital.served.follow(_first(hospital), "next")
    once, again = (hospital.served.follow(second, relation) for _ in range(2))
    assert once == again
    assert once["id"] != second["id"]


def test_10_previous_leads_to_a_new_page_that_ends_where_it_did(
    hospital: Changing,
) -> None:
    first = _first(hospital)
    second = hospital.served.follow(first, "next")
    back = hospital.served.follow(second, "previous")
    assert ids(back) == ids(first)
    assert back["id"] != first["id"]
    # It goes on to stand before K: what comes in ahead moves it, its end stays.
    hospital.put(90, "2024-06-01 10:00:00")
    again = hospital.served.follow(back, "self")
    assert ids(again) == ids(first)
    assert relations(again) == ["self", "previous", "next"]
    assert ids(hospital.served.follow(again, "previous")) == ["90"]
    assert _numbers(hospital.served.follow(first, "self"))[0] == 90


def test_10_a_self_that_ends_on_the_same_rows_keeps_its_cursors(
    hospital: Changing,
) -> None:
    second = hospital.served.follow(_first(hospital), "next")
    hospital.put(_numbers(second)[3], "2024-05-02 13:30:00")
    hospital.put(91, "2024-06-01 10:00:00")
    hospital.delete(NEWEST_FIRST[-1], NEWEST_FIRST[0])
    assert hospital.served.follow(second, "self")["link"] == second["link"]


def test_10_a_self_that_ends_elsewhere_has_new_cursors_and_the_old_stay_valid(
    hospital: Changing,
) -> None:
    second = hospital.served.follow(_first(hospital), "next")
    third = hospital.served.follow(second, "next")
    hospital.delete(_numbers(second)[-1])
    again = hospital.served.follow(second, "self")
    assert again["id"] == second["id"]
    assert _numbers(again) == [*_numbers(second)[:-1], _numbers(third)[0]]
    assert link(again, "next") != link(second, "next")
    assert link(again, "previous") == link(second, "previous")
    assert hospital.served.follow(second, "next") == third
    assert _numbers(hospital.served.follow(again, "next"))[0] == _numbers(third)[1]


def test_10_backwards_the_number_stops_at_1_and_the_first_page_may_be_short(
    hospital: Changing,
) -> None:
    second = hospital.served.follow(_first(hospital), "next")
    for id in (91, 92, 93):
        hospital.put(id, f"2024-06-01 {id - 80}:00:00")
    walked = list(pages(hospital.served, second, "previous"))
    assert [_numbers(page) for page in walked[1:]] == [NEWEST_FIRST[:7], [93, 92, 91]]
    numbers = [parameters(link(page, "previous"))["_index"] for page in walked[:-1]]
    assert numbers == ["1", "1"]
    assert parameters(link(walked[-1], "next"))["_index"] == "2"
    onwards = list(pages(hospital.served, walked[-1]))
    assert [n for page in onwards for n in _numbers(page)] == [
        93,
        92,
        91,
        *NEWEST_FIRST,
    ]


def test_10_an_emptied_page_keeps_a_link_back(hospital: Changing) -> None:
    first = _first(hospital)
    hospital.delete(*NEWEST_FIRST[7:])
    empty = hospital.served.follow(first, "next")
    assert "entry" not in empty
    assert relations(empty) == ["self", "previous"]
    back = hospital.served.follow(empty, "previous")
    assert ids(back) == ids(first)
    assert hospital.served.follow(empty, "self") == empty


def test_10_an_emptied_page_on_the_way_back_keeps_a_link_on(hospital: Changing) -> None:
    second = hospital.served.follow(_first(hospital), "next")
    hospital.delete(*NEWEST_FIRST[:7])
    empty = hospital.served.follow(second, "previous")
    assert "entry" not in empty
    assert relations(empty) == ["self", "next"]
    assert parameters(link(empty, "next"))["_index"] == "1"
    assert ids(hospital.served.follow(empty, "next")) == ids(second)


def test_10_a_walk_on_nothing_ends(hospital: Changing) -> None:
    first = _first(hospital)
    hospital.delete(*NEWEST_FIRST)
    empty = hospital.served.follow(first, "next")
    back = hospital.served.follow(empty, "previous")
    assert relations(back) == ["self"]
    assert back["total"] == first["total"]


def test_10_links_start_with_the_configured_base_whatever_the_host(
    served: Served,
) -> None:
    answer = raw(
        served,
        "GET",
        "Encounter?_count=3",
        base_url="https://10.0.0.1:8443",
        headers={
            "X-Forwarded-Host": "evil.example.org",
            "X-Forwarded-Prefix": "/evil",
            "Forwarded": "host=evil.example.org",
        },
    )
    bundle = body(answer)
    urls = [each["url"] for each in bundle["link"]]
    urls += [each["fullUrl"] for each in bundle["entry"]]
    assert len(urls) == 5
    assert all(url.startswith(f"{BASE_URL}/") for url in urls)


# -------------------------------------------------------------------- decision 12


@pytest.mark.parametrize("count", ["1", "7", "29", "30", "31"])
@pytest.mark.parametrize("sort", ["date", "-date", "_lastUpdated", "-_lastUpdated"])
def test_12_a_walk_returns_every_stay_once_forwards_and_backwards(
    hospital: Changing, sort: str, count: str
) -> None:
    first = _first(hospital, _sort=sort, _count=count)
    forwards = list(pages(hospital.served, first))
    backwards = list(pages(hospital.served, forwards[-1], "previous"))
    there = [id for page in forwards for id in ids(page)]
    back = [id for page in reversed(backwards) for id in ids(page)]
    assert there == back
    assert sorted(map(int, there)) == sorted(NEWEST_FIRST)
    assert {page["total"] for page in forwards + backwards} == {len(NEWEST_FIRST)}
    assert all(len(ids(page)) == int(count) for page in forwards[:-1])


def test_12_a_stay_that_does_not_change_is_returned_once(hospital: Changing) -> None:
    steady = {25, 24, 20, 15, 11, 6, 5, 1, 30, 27}
    seen = _numbers(page := _first(hospital, _count="4"))
    changes = iter(
        (
            lambda: hospital.delete(23, 22),
            lambda: hospital.put(100, "2024-06-01 10:00:00"),
            lambda: hospital.put(7, "2024-04-01 10:00:00"),
            lambda: hospital.put(101, "2024-05-02 03:30:00"),
            lambda: hospital.put(28, "2024-05-02 10:30:00"),
            lambda: hospital.delete(29),
        )
    )
    while "next" in relations(page):
        next(changes, lambda: None)()
        page = hospital.served.follow(page, "next")
        seen += _numbers(page)
    assert sorted(id for id in seen if id in steady) == sorted(steady)


def test_12_pages_meet_at_rows_that_start_together(served: Served) -> None:
    params = {"patient": "5", "date": "2024-03-14", "_count": "4"}
    walked = list(pages(served, served.search("Encounter", params)))
    found = [int(id) for page in walked for id in ids(page)]
    assert all(before > after for before, after in pairwise(found))
    assert len(found) == walked[0]["total"] > 12


def test_12_the_promise_stands_in_the_capability_statement(served: Served) -> None:
    (rest,) = body(served.get("metadata"))["rest"]
    (encounter,) = [each for each in rest["resource"] if each["type"] == "Encounter"]
    (search,) = [
        each for each in encounter["interaction"] if each["code"] == "search-type"
    ]
    assert "exactly once, forwards and backwards" in search["documentation"]
