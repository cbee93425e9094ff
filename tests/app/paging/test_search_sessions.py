"""Decision 10, where a test names no other: pages, links and cursors in both directions."""

import re
from dataclasses import replace
from urllib.parse import urlencode

import pytest

from adapters.contract import SourceBusyError, TooCostlyError
from adapters.memory import MemoryAdapter
from tests.app.answers import body, messages, pages, parameters, refused
from tests.app.changing import NEWEST_FIRST
from tests.serving import BASE_URL, Served, ids, link, relations
from toolkit.contract.hospital import EDGES, PARIS

UNKNOWN = "There is no such page."


def _numbers(bundle):
    return [int(id) for id in ids(bundle)]


def _first(hospital, **params):
    return hospital.served.search("Encounter", {"_count": "7", **params})


def _second(hospital):
    return hospital.served.follow(_first(hospital), "next")


def test_every_page_has_an_id_and_answers_its_self_link(hospital):
    forwards = list(pages(hospital.served, _first(hospital)))
    backwards = list(pages(hospital.served, forwards[-1], "previous"))
    page_ids = {page["id"] for page in forwards}
    assert len(page_ids) == len(forwards) == 5
    assert all(re.fullmatch(r"[a-z2-7]{32}", id) for id in page_ids)
    for page in (*forwards, *backwards):
        assert hospital.served.follow(page, "self") == page
        for relation in relations(page):
            once, again = (hospital.served.follow(page, relation) for _ in range(2))
            assert once == again
        assert link(page, "self") == f"{BASE_URL}/Bundle?_id={page['id']}"


def test_links_name_their_page_and_the_number_they_lead_to(hospital):
    """Decision 10: there are links only to pages that exist. PAGE-03."""
    every = list(pages(hospital.served, _first(hospital)))
    assert [relations(page) for page in every] == [
        ["self", "next"],
        *[["self", "previous", "next"]] * 3,
        ["self", "previous"],
    ]
    assert relations(_first(hospital, _count="100")) == ["self"]
    for number, page in enumerate(every, 1):
        for relation, name, index in (
            ("next", "_searchAfter", number + 1),
            ("previous", "_searchBefore", number - 1),
        ):
            if relation in relations(page):
                carried = parameters(link(page, relation))
                assert re.fullmatch(r"[a-z2-7]{32}", carried.pop(name))
                assert carried == {"_id": page["id"], "_index": str(index)}


def test_previous_leads_to_a_new_page_that_ends_where_it_did(hospital):
    first = _first(hospital)
    second = hospital.served.follow(first, "next")
    back = hospital.served.follow(second, "previous")
    assert ids(back) == ids(first)
    assert back["id"] != first["id"]
    # It stays "before K": a row that is added ahead of it does not move its end.
    hospital.put(90, "2024-06-01 10:00:00")
    again = hospital.served.follow(back, "self")
    assert ids(again) == ids(first)
    assert relations(again) == ["self", "previous", "next"]
    assert ids(hospital.served.follow(again, "previous")) == ["90"]
    assert _numbers(hospital.served.follow(first, "self"))[0] == 90


def test_a_self_keeps_its_cursors_while_it_ends_on_the_same_rows(hospital):
    """Decision 10: else it has new ones, and the old stay valid."""
    second = _second(hospital)
    third = hospital.served.follow(second, "next")
    hospital.put(_numbers(second)[3], "2024-05-02 13:30:00")
    hospital.put(91, "2024-06-01 10:00:00")
    hospital.delete(NEWEST_FIRST[-1], NEWEST_FIRST[0])
    again = hospital.served.follow(second, "self")
    assert again["link"] == second["link"]
    hospital.delete(_numbers(again)[-1])
    changed = hospital.served.follow(second, "self")
    assert changed["id"] == second["id"]
    assert _numbers(changed) == [*_numbers(again)[:-1], _numbers(third)[0]]
    assert link(changed, "next") != link(second, "next")
    assert link(changed, "previous") == link(second, "previous")
    assert ids(hospital.served.follow(second, "next")) == ids(third)
    assert _numbers(hospital.served.follow(changed, "next"))[0] == _numbers(third)[1]


def test_backwards_the_number_stops_at_1_and_the_first_page_may_be_short(hospital):
    second = _second(hospital)
    for id in (91, 92, 93):
        hospital.put(id, f"2024-06-01 {id - 80}:00:00")
    back = list(pages(hospital.served, second, "previous"))
    assert [_numbers(page) for page in back[1:]] == [NEWEST_FIRST[:7], [93, 92, 91]]
    numbers = [parameters(link(page, "previous"))["_index"] for page in back[:-1]]
    assert numbers == ["1", "1"]
    assert parameters(link(back[-1], "next"))["_index"] == "2"
    onwards = [n for page in pages(hospital.served, back[-1]) for n in _numbers(page)]
    assert onwards == [93, 92, 91, *NEWEST_FIRST]


def test_an_emptied_page_keeps_a_link_back(hospital):
    first = _first(hospital)
    hospital.delete(*NEWEST_FIRST[7:])
    empty = hospital.served.follow(first, "next")
    assert "entry" not in empty
    assert relations(empty) == ["self", "previous"]
    assert ids(hospital.served.follow(empty, "previous")) == ids(first)
    assert hospital.served.follow(empty, "self") == empty
    hospital.delete(*NEWEST_FIRST[:7])
    back = hospital.served.follow(empty, "previous")
    assert relations(back) == ["self"]
    assert back["total"] == first["total"]


def test_an_emptied_page_on_the_way_back_keeps_a_link_on(hospital):
    second = _second(hospital)
    hospital.delete(*NEWEST_FIRST[:7])
    empty = hospital.served.follow(second, "previous")
    assert "entry" not in empty
    assert relations(empty) == ["self", "next"]
    assert parameters(link(empty, "next"))["_index"] == "1"
    assert ids(hospital.served.follow(empty, "next")) == ids(second)


def test_links_start_with_the_configured_base_whatever_the_host(served):
    """Decision 10. BUN-09."""
    headers = {
        "X-Forwarded-Host": "evil.example.org",
        "X-Forwarded-Prefix": "/evil",
        "Forwarded": "host=evil.example.org",
    }
    host = "https://10.0.0.1:8443"
    path = "Encounter?_count=3"
    bundle = body(served.send("GET", path, base_url=host, headers=headers))
    urls = [each["url"] for each in bundle["link"]]
    urls += [each["fullUrl"] for each in bundle["entry"]]
    assert len(urls) == 5
    assert all(url.startswith(f"{BASE_URL}/") for url in urls)


@pytest.mark.parametrize(
    ("sort", "count"),
    [
        ("date", 7),
        ("_lastUpdated", 1),
        ("-date", 1),
        ("-date", 29),
        ("-date", 30),
        ("-_lastUpdated", 7),
    ],
)
def test_pages_return_every_stay_once_forwards_and_backwards(hospital, sort, count):
    """Decision 12. PAGE-01 PAGE-04."""
    first = _first(hospital, _sort=sort, _count=str(count))
    forwards = list(pages(hospital.served, first))
    backwards = list(pages(hospital.served, forwards[-1], "previous"))
    there = [id for page in forwards for id in ids(page)]
    assert there == [id for page in reversed(backwards) for id in ids(page)]
    assert sorted(map(int, there)) == sorted(NEWEST_FIRST)
    assert {page["total"] for page in forwards + backwards} == {len(NEWEST_FIRST)}
    assert all(len(ids(page)) == count for page in forwards[:-1])


def test_pages_at_their_edges(served):
    """Decision 12. PAGE-08."""
    for matches, sizes in ((0, [0]), (3, [3]), (4, [3, 1]), (6, [3, 3])):
        some = ",".join(["999998", *(str(id) for id in range(1, matches + 1))])
        first = served.search("Encounter", {"_id": some, "_count": "3"})
        forwards = list(pages(served, first))
        assert [len(ids(page)) for page in forwards] == sizes
        backwards = list(pages(served, forwards[-1], "previous"))
        assert [ids(page) for page in reversed(backwards)] == [ids(p) for p in forwards]
        assert {page["total"] for page in forwards + backwards} == {matches}


@pytest.fixture
def two(served):
    """Return the first two pages of a search."""
    first = served.search("Encounter", {"_count": "5"})
    return first, served.follow(first, "next")


def test_what_was_tampered_with_is_one_and_the_same_404(served, two):
    """Decision 14. PAGE-07."""
    first, second = two
    carried = parameters(link(second, "previous"))
    tampered = [
        {**carried, "_index": "7"},
        {**carried, "_id": first["id"]},
        {"_id": second["id"], "_index": "1", "_searchAfter": carried["_searchBefore"]},
        {"_id": "a" * 32},
        {"_id": carried["_searchBefore"]},
        {**carried, "_searchBefore": carried["_id"]},
    ]
    for name in ("_id", "_searchBefore"):
        for place, letter in enumerate(text := carried[name]):
            other = "b" if letter == "a" else "a"
            tampered.append({**carried, name: text[:place] + other + text[place + 1 :]})
    answers = [served.get(f"Bundle?{urlencode(params)}") for params in tampered]
    assert {refused(answer, 404, "not-found") for answer in answers} == {UNKNOWN}


def test_a_link_requires_the_token_of_its_client(served, two):
    """Decision 14: another client's page is the same 404. PAGE-02 PAGE-05."""
    for page in two:
        for relation in relations(page):
            address = link(page, relation)
            assert served.get(address).status_code == 200
            anonymous = Served(served.app).get(address)
            refused(anonymous, 401, "login", "Authorization")
            stranger = served.as_client("client-2").get(address)
            assert refused(stranger, 404, "not-found") == UNKNOWN


def test_a_page_that_is_no_longer_stored_is_410(served, two, redis_server):
    """Decision 14. PAGE-06."""
    with redis_server.client() as redis:
        redis.delete(f"page:{two[0]['id']}")
        refused(served.get(link(two[0], "next")), 410, "not-found")
        assert served.follow(two[1], "self") == two[1]
        redis.flushall()
    for page in two:
        for relation in relations(page):
            answer = served.get(link(page, relation))
            assert "search again" in refused(answer, 410, "not-found")


ID = "a" * 32
NEXT = f"_id={ID}&_index=2&_searchAfter="


@pytest.mark.parametrize(
    ("query", "status", "name"),
    [
        *((f"_id={id}", 412, "_id") for id in ("a" * 31, "A" * 32, "1" * 32, "")),
        (f"{NEXT}{'a' * 16}", 412, "_searchAfter"),
        (f"_id={ID}&_index=2&_searchBefore={'a' * 31}=", 412, "_searchBefore"),
        (f"_id={ID}&_index=0&_searchAfter={ID}", 412, "_index"),
        (f"_id={ID}&_index=-1&_searchAfter={ID}", 412, "_index"),
        (f"_id={ID}&_index=9999999999&_searchAfter={ID}", 412, "_index"),
        (f"{NEXT}{ID}&_searchBefore={ID}", 412, "_searchBefore"),
        (f"_index=2&_searchAfter={ID}", 400, "_id"),
        (f"_id={ID}&_searchAfter={ID}", 400, "_index"),
        (f"_id={ID}&_index=2", 400, "_searchAfter"),
    ],
)
def test_wrong_length_or_alphabet_or_both_cursors_is_412(served, query, status, name):
    """Decision 14; what a link carries is required."""
    code = "value" if status == 412 else "required"
    refused(served.get(f"Bundle?{query}"), status, code, name)


def test_the_total_is_counted_once_and_stored(hospital):
    """Decision 13."""
    first = _first(hospital)
    hospital.put(90, "2024-05-01 10:00:00")
    hospital.delete(26, 27)
    second = hospital.served.follow(first, "next")
    again = hospital.served.follow(first, "self")
    back = hospital.served.follow(second, "previous")
    totals = {page["total"] for page in (first, second, again, back)}
    assert totals == {len(NEWEST_FIRST)}
    assert hospital.served.search("Encounter")["total"] == len(NEWEST_FIRST) - 1


def test_a_page_that_has_grown_raises_the_total(hospital):
    """Decision 13."""
    first = hospital.served.search("Encounter", {"date": "2024-05-03"})
    assert first["total"] == len(ids(first)) == 2
    hospital.put(90, "2024-05-03 10:00:00")
    again = hospital.served.follow(first, "self")
    assert (again["total"], len(ids(again))) == (3, 3)


class Uncounted(MemoryAdapter):
    """A hospital whose counts take too long, or wait for a slot too long."""

    error: Exception

    def count(self, query):
        raise self.error


@pytest.fixture(params=[TooCostlyError, SourceBusyError])
def uncounted(request, make_service):
    adapter = Uncounted(EDGES.records(), time_zone=PARIS)
    adapter.error = request.param("no count")
    return make_service(adapter=adapter), request.param


def test_a_count_that_fails_never_costs_the_page(uncounted):
    """Decisions 13 and 34: a page that is not full is not counted."""
    served, _ = uncounted
    bundle = served.search("Encounter", {"date": "2024-05-01", "_count": "1"})
    assert (bundle["total"], ids(bundle), relations(bundle)) == (1, ["60"], ["self"])
    first = served.search("Encounter", {"_count": "1"})
    second = served.follow(first, "next")
    assert ids(second) != ids(first) != []
    for page in (first, second, served.follow(first, "self")):
        assert "total" not in page
        assert messages(page) == [("information", "too-costly", None)]
    without = served.search("Encounter", {"_count": "1", "_total": "none"})
    assert ("total" in without, messages(without)) == (False, [])


def test_a_client_that_insists_on_the_count_is_refused(uncounted):
    """Decision 34."""
    served, error = uncounted
    for params in ({"_count": "1", "_total": "accurate"}, {"_summary": "count"}):
        answer = served.post("Encounter/_search", params)
        if error is TooCostlyError:
            assert "patient" in refused(answer, 422, "too-costly")
        else:
            refused(answer, 503, "transient")
            assert answer.headers["Retry-After"]


@pytest.mark.parametrize("group", ["group-a", "group-b"])
def test_groups_have_a_self_link_that_works_and_no_other(groups, served, group):
    """Decision 15: totals count all, and a message says that more matched."""
    one = groups[group]
    params = {"patient": "6", "_count": "3"}
    bundle = one.search("Encounter", params)
    assert bundle["total"] == served.search("Encounter", params)["total"] > 3
    assert (len(ids(bundle)), relations(bundle)) == (3, ["self"])
    assert messages(bundle) == [("information", "incomplete", None)]
    again = one.follow(bundle, "self")
    assert (again["id"], again["entry"][:3]) == (bundle["id"], bundle["entry"][:3])
    assert messages(again) == messages(bundle)
    refused(one.get(f"Bundle?{NEXT.replace(ID, bundle['id'])}{ID}"), 404, "not-found")
    assert messages(one.search("Encounter", {"patient": "6", "_count": "100"})) == []


class Forwards(MemoryAdapter):
    """A hospital system whose lists go forwards only, and end before their totals."""

    @property
    def capabilities(self):
        return {
            kind: replace(able, keyset=False, backwards=False)
            for kind, able in super().capabilities.items()
        }

    def search(self, query):
        page = super().search(query)
        return replace(page, incomplete=not page.more)


def test_a_source_may_go_forwards_only_and_end_before_its_total(make_service):
    """Decisions 12 and 41."""
    served = make_service(adapter=Forwards(EDGES.records(), time_zone=PARIS))
    assert "exactly once" not in served.get("metadata").text
    every = list(pages(served, served.search("Encounter", {"_count": "20"})))
    assert all("previous" not in relations(page) for page in every)
    incomplete = [("warning", "incomplete", None) in messages(page) for page in every]
    assert incomplete == [False] * (len(every) - 1) + [True]
