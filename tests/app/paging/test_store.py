"""Decisions 11 and 25: what Redis stores of a search, how long, and what works without it."""

import base64
import json
import logging
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
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
from tests.app.answers import body, messages, pages, parameters, refused
from tests.app.changing import SEAL_KEYS, Changing
from tests.app.conftest import MakeService
from tests.docs.pages import operators, section, table
from tests.hospital_sql import mapping_text
from tests.redis_server import RedisServer
from tests.serving import Served, ids, link, relations
from toolkit.contract.hospital import EDGES

OLD, NEW = SEAL_KEYS
SEARCH = StoredSearch("client-1", ResourceType.ENCOUNTER, (), False, 9, "f", 0)


def page_store(url: str, *keys: str, **changed: Any) -> PageStore:
    """Return a store with the usual lifetimes."""
    lifetimes = {"idle": 1800, "life": 28800}
    return PageStore(connect(url), keys or [OLD], **{**lifetimes, **changed})


def use_store(served: Served, store: PageStore) -> Served:
    """Let a service use another store, as after a restart with other settings."""
    service = served.app.extensions[EXTENSION]
    sessions = replace(service.sessions, store=store)
    served.app.extensions[EXTENSION] = replace(service, sessions=sessions)
    return served


def test_nothing_that_identifies_a_patient_is_in_clear(
    own_redis: RedisServer, make_service: MakeService
) -> None:
    """Decision 11."""
    served = make_service(redis=own_redis).as_client("hopital-nord")
    for kind, params in (
        ("Encounter", {"patient": "9223372036854775807,5", "_count": "2"}),
        ("Encounter", {"identifier": "000123", "_count": "1"}),
        ("Encounter", {"date": "2024-03-14", "_count": "4"}),
        ("Patient", {"name": "éléonore,martin", "_count": "1"}),
        ("Patient", {"birthdate": "ge1900-01-02", "_count": "1"}),
    ):
        forwards = list(pages(served, served.search(kind, params)))
        list(pages(served, forwards[-1], "previous"))
    with own_redis.client() as client:
        # The others are counts of requests: test_rate_limit.py.
        stored = {key: client.hgetall(key) for key in client.scan_iter("page:*")}
    assert len(stored) > 20
    fields = (
        piece for page in stored.values() for pair in page.items() for piece in pair
    )
    everything = b"\0".join([*stored, *fields])
    # None so short that encrypted bytes could hold it by chance.
    for text in (
        *("9223372036854775807", "000123", "2024-03-14", "1900-01-02", "hopital-nord"),
        *("éléonore", "%C3%A9l", "martin", "Martin", "Latour", "Patient", "Encounter"),
        *("patient", "identifier", "birthdate", "finished", "_count"),
    ):
        assert text.encode() not in everything, text


def test_what_is_moved_or_exchanged_leads_nowhere(
    own_redis: RedisServer, make_service: MakeService
) -> None:
    """Decision 11: between pages, and between the links of one."""
    served = make_service(redis=own_redis)
    theirs = served.as_client("theirs").search("Encounter", {"_count": "1"})
    first = served.search("Encounter", {"_count": "1"})
    second = served.follow(first, "next")
    with own_redis.client() as client:

        def links(bundle: Any) -> list[tuple[bytes, bytes]]:
            stored = client.hgetall(f"page:{bundle['id']}")
            return [each for each in stored.items() if each[0] != b"page"]

        def answered(bundle: Any, relation: str, stored: dict[bytes, bytes]) -> int:
            client.hset(f"page:{bundle['id']}", mapping=stored)
            return served.get(link(bundle, relation)).status_code

        ((field, value),), ((_, other_value),) = links(first), links(theirs)
        moved = {field: value[:32] + other_value[32:]}
        assert answered(first, "next", moved) == 410
        assert answered(first, "next", {field: value}) == 200
        (one, this), (other, that) = links(second)
        exchanged = {one: that[:32] + this[32:], other: this[:32] + that[32:]}
        for relation in ("previous", "next"):
            assert answered(second, relation, exchanged) == 410
            assert answered(second, relation, {one: this, other: that}) == 200
        page = client.hget(f"page:{theirs['id']}", b"page")
        assert answered(first, "self", {b"page": page}) == 410


def test_ids_and_cursors_always_have_the_same_length(served: Served) -> None:
    """Decision 11: and two of one search share no part."""
    many = ",".join(map(str, range(1, 100)))
    bundles = [
        served.search("Encounter", {"_count": "1", **params})
        for params in ({}, {}, {"patient": many}, {"identifier": "0" * 500 + ",V1,v1"})
    ]
    links = [parameters(link(bundle, "next")) for bundle in bundles]
    assert {len(each[n]) for each in links for n in ("_id", "_searchAfter")} == {32}
    assert len({len(link(bundle, "next")) for bundle in bundles}) == 1
    # Ten random bytes are the first sixteen characters.
    first, second = (bundle["id"] for bundle in bundles[:2])
    assert first[:16] != second[:16]
    assert first[-8:] != second[-8:]


def test_the_question_is_stored_and_not_the_answer(own: Changing) -> None:
    """Decision 11."""
    first = own.served.search("Encounter", {"_count": "3"})
    own.put(int(ids(first)[1]), state="E")
    again = own.served.follow(first, "self")
    states = [each["resource"]["status"] for each in again["entry"]]
    assert states == ["finished", "in-progress", "finished"]


def test_a_mapping_that_asks_otherwise_ends_the_searches_on_the_old_one(
    make_service: MakeService,
) -> None:
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


def test_keys_are_rotated_without_losing_a_page(
    own: Changing, own_redis: RedisServer
) -> None:
    """Decision 11."""
    first = own.served.search("Encounter", {"_count": "3"})
    second = own.served.follow(first, "next")
    served = use_store(own.served, page_store(own_redis.url, NEW, OLD))
    assert ids(served.follow(second, "previous")) == ids(first)
    third = served.follow(second, "next")
    assert served.follow(second, "self")["id"] == second["id"]
    fourth = served.follow(third, "next")
    # Pages issued with the new key need no other; the rest goes with the old one.
    use_store(served, page_store(own_redis.url, NEW))
    assert ids(served.follow(fourth, "self")) == ids(fourth)
    assert len(ids(served.follow(fourth, "next"))) == 3
    refused(served.get(link(first, "self")), 404, "not-found")
    use_store(served, page_store(own_redis.url, OLD))
    refused(served.get(link(fourth, "next")), 404, "not-found")


def test_a_page_lives_30_minutes_after_its_last_use(
    own: Changing, own_redis: RedisServer
) -> None:
    """Decision 11."""
    first = own.served.search("Encounter", {"_count": "3"})
    key = f"page:{first['id']}"
    with own_redis.client() as client:
        assert 1790 < client.ttl(key) <= 1800
        for relation in ("self", "next"):
            client.expire(key, 100)
            own.served.follow(first, relation)
            assert 1790 < client.ttl(key) <= 1800


def test_a_search_lives_8_hours_at_most(own: Changing, own_redis: RedisServer) -> None:
    """Decision 11."""
    seconds = 28800
    clock = provider.Clock()
    use_store(own.served, page_store(own_redis.url, life=seconds, clock=clock))
    first = own.served.search("Encounter", {"_count": "3"})
    second = own.served.follow(first, "next")
    clock.now += seconds - 60
    third = own.served.follow(second, "next")
    keys = [f"page:{page['id']}" for page in (first, second, third)]
    with own_redis.client() as client:
        assert 0 < client.ttl(keys[2]) <= 61
        # A page that is used does not outlive its search.
        for key in keys[:2]:
            client.expire(key, 1000)
        own.served.follow(second, "self")
        own.served.follow(first, "next")
        assert all(0 < client.ttl(key) <= 61 for key in keys)
    clock.now += 61
    for page in (first, second, third):
        refused(own.served.get(link(page, "self")), 410, "not-found")
    refused(own.served.get(link(second, "next")), 410, "not-found")


AT = datetime(2024, 3, 14, 9, 0, 0, 1, UTC)


def test_positions_are_stored_in_full_precision(redis_server: RedisServer) -> None:
    """Decision 12."""
    store = page_store(redis_server.url)
    search = replace(SEARCH, created=store.now())
    for position in (
        None,
        Position(Group.KEYED, "2024-03-14 10:00:00.000001", 42, AT, 3),
        Position(Group.KEYED, AT, "a", AT),
        Position(Group.KEYED, date(2024, 3, 14), Decimal("4.20"), AT, 1),
        Position(Group.UNKEYED, None, UUID(int=1), None, 2),
        Position(Group.UNKEYED, None, b"\0\xff'", None),
    ):
        start = Start(3, Direction.BEFORE, position)
        page = StoredPage(store.new_id("client-1"), search, start)
        (target,) = store.save(page, [start])
        assert store.load(page.id, "client-1") == page
        assert store.load(page.id, "client-1", target).start == start


SAMPLES = sorted(Path(__file__).parent.glob("format-*.json"))


def test_pages_of_every_known_format_are_read(redis_server: RedisServer) -> None:
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


def test_the_formats_are_those_of_the_documentation() -> None:
    """Decision 11."""
    assert WRITTEN in READ
    assert f"format-{WRITTEN}" in {file.stem for file in SAMPLES}
    releases = table(section(operators(), "Upgrade without downtime"), "Release")
    formats = [(int(row[2]), {int(n) for n in row[3].split(",")}) for row in releases]
    assert formats[-1] == (WRITTEN, READ)
    for (before, could), (after, can) in pairwise(formats):
        assert after in could
        assert before in can


def test_pages_and_links_of_an_unknown_format_are_410(
    own: Changing, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Decision 11."""
    first = own.served.search("Encounter", {"_count": "4"})
    monkeypatch.setattr(stored_format, "WRITTEN", WRITTEN + 1)
    newer = own.served.search("Encounter", {"_count": "4"})
    service = own.served.app.extensions[EXTENSION]
    # The page is stored again by this release, its link is of the newer one.
    monkeypatch.undo()
    page = service.sessions.store.load(first["id"], "client-1")
    service.sessions.store.save(replace(page, id=newer["id"]), ())
    assert own.served.follow(newer, "self")["id"] == newer["id"]
    monkeypatch.setattr(stored_format, "WRITTEN", WRITTEN + 1)
    own.served.follow(first, "self")
    monkeypatch.undo()
    for address in (
        link(newer, "next"),
        *(link(first, relation) for relation in ("self", "next")),
    ):
        text = refused(own.served.get(address), 410, "not-found")
        assert "another version" in text
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert {r.getMessage() for r in warnings} == {"page of another format"}
    data = {"format": WRITTEN + 1, "reads": sorted(READ)}
    assert all(r.data == data for r in warnings)  # type: ignore[attr-defined]


def test_the_fingerprint_of_an_unchanged_mapping_stays(tmp_path: Path) -> None:
    """Decision 11: another one would end every search at an upgrade."""
    file = tmp_path / "hospital.yaml"
    file.write_text(mapping_text(EDGES, "sqlite:///pas.db"), "utf-8")
    assert load_mapping(file, None).fingerprint == "17ebbe027270415c"


def test_pages_are_stored_after_the_scripts_of_redis_were_flushed(
    own: Changing, own_redis: RedisServer
) -> None:
    first = own.served.search("Encounter", {"_count": "3"})
    with own_redis.client() as client:
        client.script_flush()
    second = own.served.follow(first, "next")
    assert own.served.follow(second, "self") == second


def test_reads_and_searches_that_fit_one_page_go_on_without_redis(
    own: Changing, own_redis: RedisServer
) -> None:
    """Decision 25: their self link then is 410; what Redis failed at is counted."""
    own_redis.stop()
    without_redis = own.served

    def count() -> float:
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


def test_a_link_is_503_while_redis_is_away_and_works_again(
    own: Changing, own_redis: RedisServer
) -> None:
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


def test_groups_cut_a_result_short_without_redis(
    own_redis: RedisServer, make_service: MakeService
) -> None:
    """Decision 25."""
    served = make_service(redis=own_redis, profile="group-a")
    own_redis.stop()
    bundle = served.search("Encounter", {"_count": "3"})
    assert len(ids(bundle)) == 3
    assert messages(bundle) == [("information", "incomplete", None)]
