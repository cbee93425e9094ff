"""Decision 11, where a test names no other: what Redis stores of a search, and how long."""

import base64
import json
import logging
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from prometheus_client import REGISTRY

import app.paging as stored_format
from adapters.contract import Group, Position, ResourceType
from adapters.mapping.load import load_mapping
from app.paging import (
    READ,
    WRITTEN,
    Direction,
    PageLink,
    PageStore,
    Start,
    StoredPage,
    StoredSearch,
)
from app.redis_client import connect
from app.service import EXTENSION
from tests.app import provider
from tests.app.answers import body, messages, pages, refused
from tests.app.changing import SEAL_KEYS
from tests.docs.pages import operators, section, table
from tests.hospital_sql import mapping_text
from tests.serving import ids, link, relations
from toolkit.contract.hospital import EDGES

OLD, NEW = SEAL_KEYS
SEARCH = StoredSearch("client-1", ResourceType.ENCOUNTER, (), False, 9, "f", 0)


def page_store(url, *keys, **changed):
    """Return a store with the usual lifetimes."""
    lifetimes = {"idle": 1800, "life": 28800}
    return PageStore(connect(url), keys or [OLD], **{**lifetimes, **changed})


def test_nothing_that_identifies_a_patient_is_in_clear(own_redis, make_service):
    served = make_service(redis=own_redis).as_client("hopital-nord")
    for kind, params in (
        ("Encounter", {"patient": "9223372036854775807,5", "_count": "2"}),
        ("Encounter", {"identifier": "000123", "_count": "1"}),
        ("Patient", {"name": "éléonore,martin", "_count": "1"}),
        ("Patient", {"birthdate": "ge1900-01-02", "_count": "1"}),
    ):
        forwards = list(pages(served, served.search(kind, params)))
        list(pages(served, forwards[-1], "previous"))
    with own_redis.client() as client:
        # The others are counts of requests: test_rate_limit.py.
        stored = {key: client.hgetall(key) for key in client.scan_iter("page:*")}
    assert len(stored) > 10
    fields = (
        piece for page in stored.values() for pair in page.items() for piece in pair
    )
    everything = b"\0".join([*stored, *fields])
    # None so short that encrypted bytes could hold it by chance.
    for text in (
        *("9223372036854775807", "000123", "1900-01-02", "hopital-nord"),
        *("éléonore", "%C3%A9l", "martin", "Martin", "Latour", "Patient", "Encounter"),
        *("patient", "identifier", "birthdate", "finished", "_count"),
    ):
        assert text.encode() not in everything, text


def test_what_is_moved_or_exchanged_leads_nowhere(own_redis, make_service):
    """Decision 11: between pages, and between the links of one."""
    served = make_service(redis=own_redis)
    theirs = served.as_client("theirs").search("Encounter", {"_count": "1"})
    first = served.search("Encounter", {"_count": "1"})
    second = served.follow(first, "next")
    with own_redis.client() as client:

        def links(bundle):
            stored = client.hgetall(f"page:{bundle['id']}")
            return [each for each in stored.items() if each[0] != b"page"]

        def is_gone(bundle, relation, stored):
            client.hset(f"page:{bundle['id']}", mapping=stored)
            return served.get(link(bundle, relation)).status_code == 410

        ((field, value),), ((_, their_value),) = links(first), links(theirs)
        assert is_gone(first, "next", {field: value[:32] + their_value[32:]})
        (one, this), (other, that) = links(second)
        exchanged = {one: that[:32] + this[32:], other: this[:32] + that[32:]}
        for relation in ("previous", "next"):
            assert is_gone(second, relation, exchanged)
            assert not is_gone(second, relation, {one: this, other: that})
        page = client.hget(f"page:{theirs['id']}", b"page")
        assert is_gone(first, "self", {b"page": page})


def test_ids_and_cursors_always_have_the_same_length(served):
    """Decision 11: and two of one search share no part."""
    first, again, longer = (
        served.search("Encounter", {"_count": "1", **params})
        for params in ({}, {}, {"identifier": "0" * 500 + ",V1,v1"})
    )
    assert len({len(link(bundle, "next")) for bundle in (first, again, longer)}) == 1
    # Ten random bytes are the first sixteen characters.
    assert first["id"][:16] != again["id"][:16]
    assert first["id"][-8:] != again["id"][-8:]


def test_the_question_is_stored_and_not_the_answer(own):
    first = own.served.search("Encounter", {"_count": "3"})
    own.put(int(ids(first)[1]), state="E")
    again = own.served.follow(first, "self")
    states = [each["resource"]["status"] for each in again["entry"]]
    assert states == ["finished", "in-progress", "finished"]


def test_a_mapping_that_asks_otherwise_ends_the_searches_on_the_old_one(make_service):
    """Decision 11: so does a profile that no longer offers the search."""
    old = make_service(SEAL_KEYS=OLD)
    first = old.search("Encounter", {"class": "IMP,AMB,UNK", "_count": "2"})
    for edits, profile, status in (
        ([("name: Tiny hospital", "name: Renamed")], "full", 200),
        ([("FROM stays s", "FROM stays AS s")], "full", 410),
        ([], "group-b", 410),
    ):
        restarted = make_service(*edits, profile=profile, SEAL_KEYS=OLD)
        for relation in ("self", "next"):
            assert restarted.get(link(first, relation)).status_code == status


def test_a_page_lives_30_minutes_after_its_last_use(own, own_redis):
    first = own.served.search("Encounter", {"_count": "3"})
    key = f"page:{first['id']}"
    with own_redis.client() as client:
        assert 1790 < client.ttl(key) <= 1800
        for relation in ("self", "next"):
            client.expire(key, 100)
            own.served.follow(first, relation)
            assert 1790 < client.ttl(key) <= 1800


def test_a_search_lives_8_hours_at_most(own, own_redis):
    clock = provider.Clock()
    service = own.served.app.extensions[EXTENSION]
    store = page_store(own_redis.url, clock=clock)
    sessions = replace(service.sessions, store=store)
    own.served.app.extensions[EXTENSION] = replace(service, sessions=sessions)
    first = own.served.search("Encounter", {"_count": "3"})
    clock.now += 28800 - 60
    second = own.served.follow(first, "next")
    with own_redis.client() as client:
        # A page that is used does not outlive its search.
        client.expire(f"page:{first['id']}", 1000)
        own.served.follow(first, "self")
        for page in (first, second):
            assert 0 < client.ttl(f"page:{page['id']}") <= 61
    clock.now += 61
    for relation in ("self", "next"):
        refused(own.served.get(link(first, relation)), 410, "not-found")


AT = datetime(2024, 3, 14, 9, 0, 0, 1, UTC)


@pytest.mark.parametrize(
    "position",
    [
        None,
        Position(Group.KEYED, "2024-03-14 10:00:00.000001", 42, AT, 3),
        Position(Group.KEYED, AT, "a", AT),
        Position(Group.KEYED, date(2024, 3, 14), Decimal("4.20"), AT, 1),
        Position(Group.UNKEYED, None, UUID(int=1), None, 2),
        Position(Group.UNKEYED, None, b"\0\xff'", None),
    ],
)
def test_positions_are_stored_in_full_precision(redis_server, position):
    """Decision 12."""
    store = page_store(redis_server.url)
    search = replace(SEARCH, created=store.now())
    start = Start(3, Direction.BEFORE, position)
    page = StoredPage(store.new_id("client-1"), search, start)
    (target,) = store.save(page, [start])
    assert store.load(page.id, "client-1") == page
    assert store.load(page.id, "client-1", target).start == start


SAMPLES = sorted(Path(__file__).parent.glob("format-*.json"))


def test_pages_of_every_known_format_are_read(redis_server):
    """Decision 11: two releases share one Redis."""
    for file in SAMPLES:
        sample = json.loads(file.read_text("utf-8"))
        now = {"clock": lambda sample=sample: sample["now"]}
        store = page_store(redis_server.url, sample["seal_key"], **now)
        fields = {
            base64.b64decode(name): base64.b64decode(value)
            for name, value in sample["fields"].items()
        }
        with redis_server.client() as client:
            client.hset(f"page:{sample['page']}", mapping=fields)  # type: ignore[arg-type]
        page = store.load(sample["page"], "client-1")
        assert page.search.parameters == (("patient", "Patient/42"), ("_count", "2"))
        assert page.start == Start()
        # The same link, whichever release writes it again, leads to the same page.
        start = Start(2, Direction.AFTER, Position(Group.KEYED, AT, 42))
        (again,) = store.save(page, [start])
        assert again == PageLink(Direction.AFTER, 2, sample["cursor"])
        target = store.load(sample["page"], "client-1", again)
        assert (target.start, target.search) == (start, page.search)


def test_the_formats_are_those_of_the_documentation():
    assert WRITTEN in READ
    assert f"format-{WRITTEN}" in {file.stem for file in SAMPLES}
    releases = table(section(operators(), "Upgrade without downtime"), "Release")
    formats = [(int(row[2]), {int(n) for n in row[3].split(",")}) for row in releases]
    assert formats[-1] == (WRITTEN, READ)
    for (before, could), (after, can) in pairwise(formats):
        assert after in could
        assert before in can


def test_pages_and_links_of_an_unknown_format_are_410(own, monkeypatch, caplog):
    monkeypatch.setattr(stored_format, "WRITTEN", WRITTEN + 1)
    newer = own.served.search("Encounter", {"_count": "4"})
    monkeypatch.undo()
    for relation in ("self", "next"):
        text = refused(own.served.get(link(newer, relation)), 410, "not-found")
        assert "another version" in text
    (warning, _) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert warning.data == {"format": WRITTEN + 1, "reads": sorted(READ)}


def test_the_fingerprint_of_an_unchanged_mapping_stays(tmp_path):
    """Decision 11: another one would end every search at an upgrade."""
    file = tmp_path / "hospital.yaml"
    file.write_text(mapping_text(EDGES, "sqlite:///pas.db"), "utf-8")
    assert load_mapping(file, None).fingerprint == "17ebbe027270415c"


def test_pages_are_stored_after_the_scripts_of_redis_were_flushed(own, own_redis):
    first = own.served.search("Encounter", {"_count": "3"})
    with own_redis.client() as client:
        client.script_flush()
    second = own.served.follow(first, "next")
    assert own.served.follow(second, "self") == second


def test_reads_and_searches_that_fit_one_page_go_on_without_redis(own, own_redis):
    """Decision 25: their self link then is 410; what Redis failed at is counted."""
    own_redis.stop()
    without_redis = own.served

    def count():
        step = {"step": "keep"}
        return REGISTRY.get_sample_value("encounters_store_errors_total", step) or 0.0

    before = count()
    assert body(without_redis.get("Encounter/1"))["id"] == "1"
    assert without_redis.get("metadata").status_code == 200
    assert without_redis.search("Encounter", {"_id": "99"})["total"] == 0
    bundle = without_redis.search("Encounter", {"_id": "1,2,3"})
    assert (bundle["total"], relations(bundle)) == (3, ["self"])
    assert count() == before + 2
    refused(without_redis.get(link(bundle, "self")), 503, "transient")
    own_redis.start()
    refused(without_redis.get(link(bundle, "self")), 410, "not-found")


def test_a_link_is_503_while_redis_is_away_and_works_again(own, own_redis):
    """Decision 25: so is a search that needs a second page."""
    first = own.served.search("Encounter", {"_count": "3"})
    with own_redis.client() as client:
        client.config_set("save", "1 1")
        client.save()
        client.config_set("maxmemory", 1)
    whole = own.served.search("Encounter", {"_id": "1,2,3"})
    assert relations(whole) == ["self"], "a full Redis is away too"
    refused(own.served.get(link(first, "next")), 503, "transient")
    own_redis.stop()
    refused(own.served.get(link(first, "next")), 503, "transient")
    answer = own.served.post("Encounter/_search", {"_count": "3"})
    refused(answer, 503, "transient")
    assert int(answer.headers["Retry-After"]) > 0
    own_redis.start()
    assert len(ids(own.served.follow(first, "next"))) == 3
    bundle = own.served.search("Encounter", {"_count": "3"})
    assert relations(bundle) == ["self", "next"]


def test_groups_cut_a_result_short_without_redis(own_redis, make_service):
    """Decision 25."""
    served = make_service(redis=own_redis, profile="group-a")
    own_redis.stop()
    bundle = served.search("Encounter", {"_count": "3"})
    assert len(ids(bundle)) == 3
    assert messages(bundle) == [("information", "incomplete", None)]
