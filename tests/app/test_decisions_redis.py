"""Decision 11: what Redis holds of a search, and for how long."""

import json
import socket
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import responses

from adapters.contract import Group, Position, ResourceType
from adapters.testing.stays import EDGES
from app.errors import UnavailableError
from app.paging import KeptPage, PageStore
from app.seals import Seals
from app.service import EXTENSION
from app.stored import Start, StoredSearch
from app.timed_redis import connect
from tests.app import provider
from tests.app.answers import pages, parameters, refused
from tests.app.changing import SEAL_KEYS, Changing
from tests.live import HOST
from tests.redis_server import RedisServer
from tests.serving import Served, ids, link, serve


def _kept(redis: RedisServer) -> Mapping[bytes, Mapping[bytes, bytes]]:
    with redis.client() as client:
        return {
            key: client.hgetall(key)
            for key in client.scan_iter()
            if not key.startswith(b"throttle:")
        }


def _counts(redis: RedisServer) -> Mapping[bytes, bytes]:
    with redis.client() as client:
        keys = client.scan_iter("throttle:*")
        return {key: value for key in keys if (value := client.get(key)) is not None}


# -------------------------------------------------------------------- decision 11


def test_11_nothing_that_identifies_a_patient_stands_in_clear(
    own_redis: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> None:
    served = serve(EDGES, tmp_path, own_redis.url).as_client("hopital-nord")
    questions = (
        ("Encounter", {"patient": "9223372036854775807,5", "_count": "2"}),
        ("Encounter", {"identifier": "000123", "_count": "1"}),
        ("Encounter", {"date": "2024-03-14", "_count": "4"}),
        ("Patient", {"name": "éléonore,martin", "_count": "1"}),
        ("Patient", {"birthdate": "ge1900-01-02", "_count": "1"}),
    )
    for kind, params in questions:
        walked = list(pages(served, served.search(kind, params)))
        list(pages(served, walked[-1], "previous"))
    kept = _kept(own_redis)
    assert len(kept) > 20
    counts = _counts(own_redis)
    assert all(value.isdigit() for value in counts.values())
    held = b"\0".join(counts) + b"\0".join(
        piece
        for key, fields in kept.items()
        for piece in (key, *(part for pair in fields.items() for part in pair))
    )
    # None so short that sealed bytes could hold it by chance.
    for text in (
        *("9223372036854775807", "000123", "2024-03-14", "1900-01-02", "hopital-nord"),
        *("éléonore", "%C3%A9l", "martin", "Martin", "Latour", "Patient", "Encounter"),
        *("patient", "identifier", "birthdate", "finished", "_count"),
    ):
        assert text.encode() not in held, text
    # All of it opens with the key, where it stands: nothing else is there.
    seals = Seals(served.app.extensions[EXTENSION].settings.seal_keys)
    for key, fields in kept.items():
        page_id = key.removeprefix(b"page:").decode()
        for name, value in fields.items():
            sealed = value if name == b"page" else value[32:]
            assert json.loads(seals.open(page_id, name, sealed))


def test_11_what_is_moved_in_redis_leads_nowhere(
    own_redis: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> None:
    served = serve(EDGES, tmp_path, own_redis.url)
    theirs = served.as_client("theirs").search("Encounter", {"_count": "1"})
    asking = served.as_client("hopital-nord")
    first = asking.search("Encounter", {"_count": "1"})
    page, other = (f"page:{bundle['id']}" for bundle in (first, theirs))
    with own_redis.client() as client:
        own_link, other_link = (
            next((n, v) for n, v in client.hgetall(key).items() if n != b"page")
            for key in (page, other)
        )
        moved = own_link[1][:32] + other_link[1][32:]
        client.hset(page, own_link[0], moved)
        assert asking.get(link(first, "next")).status_code == 410
        client.hset(page, own_link[0], own_link[1])
        assert asking.get(link(first, "next")).status_code == 200
        client.hset(page, b"page", client.hget(other, b"page"))
        assert asking.get(link(first, "self")).status_code == 410


def test_11_links_that_are_exchanged_in_redis_lead_nowhere(
    own_redis: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> None:
    served = serve(EDGES, tmp_path, own_redis.url).as_client("hopital-nord")
    second = served.follow(served.search("Encounter", {"_count": "1"}), "next")
    key = f"page:{second['id']}"
    with own_redis.client() as client:
        (one, this), (other, that) = (
            each for each in client.hgetall(key).items() if each[0] != b"page"
        )
        client.hset(key, one, that[:32] + this[32:])
        client.hset(key, other, this[:32] + that[32:])
        for relation in ("previous", "next"):
            assert served.get(link(second, relation)).status_code == 410
        client.hset(key, mapping={one: this, other: that})
        for relation in ("previous", "next"):
            assert served.get(link(second, relation)).status_code == 200


def test_11_a_page_is_kept_with_its_end_or_not_at_all(own_redis: RedisServer) -> None:
    sent = _sent_for_a_page()
    path = own_redis.url.removeprefix("unix://")
    for cut in (*range(0, len(sent), 20), len(sent) - 1, len(sent)):
        with socket.socket(socket.AF_UNIX) as broken, own_redis.client() as client:
            broken.connect(path)
            broken.sendall(sent[:cut])
            broken.shutdown(socket.SHUT_WR)
            while broken.recv(65536):
                pass
            kept = list(client.scan_iter("page:*"))
            assert len(kept) == (cut == len(sent))
            assert all(0 < client.ttl(key) <= 60 for key in kept)
            assert all(client.hlen(key) == 3 for key in kept)


def _sent_for_a_page() -> bytes:
    """Return what is sent to Redis so that it keeps a page with two links."""
    born = int(time.time())
    search = StoredSearch("client", ResourceType.ENCOUNTER, (), False, 9, "f", born)
    targets = [Start(index, position=Position(Group.KEYED, 1, "1")) for index in (1, 2)]
    with socket.create_server((HOST, 0)) as deaf:
        url = f"redis://{HOST}:{deaf.getsockname()[1]}"
        with connect(url) as client:
            store = PageStore(client, SEAL_KEYS, idle=60, life=86400)
            page = KeptPage(store.new_id("client"), search, Start())
            with pytest.raises(UnavailableError):
                store.keep(page, targets)
        with deaf.accept()[0] as taken:
            return taken.recv(65536)


def test_11_ids_and_cursors_are_as_long_whatever_the_search(served: Served) -> None:
    found = [
        served.search("Encounter", params)
        for params in (
            {"_count": "1"},
            {"_count": "1", "patient": ",".join(str(n) for n in range(1, 100))},
            {"_count": "1", "identifier": "0" * 500 + ",V1,v1"},
        )
    ]
    carried = [parameters(link(bundle, "next")) for bundle in found]
    assert {len(each["_id"]) for each in carried} == {32}
    assert {len(each["_searchAfter"]) for each in carried} == {32}
    assert len({len(link(bundle, "next")) for bundle in found}) == 1


def test_11_one_search_twice_shares_no_part_of_its_ids(served: Served) -> None:
    first, second = (served.search("Encounter", {"_count": "1"}) for _ in range(2))
    # Ten random bytes are the first sixteen characters.
    assert first["id"][:16] != second["id"][:16]
    assert first["id"][-8:] != second["id"][-8:]


def test_11_the_question_is_kept_and_not_the_answer(own: Changing) -> None:
    first = own.served.search("Encounter", {"_count": "3"})
    own.put(int(ids(first)[1]), state="E")
    again = own.served.follow(first, "self")
    assert [each["resource"]["status"] for each in again["entry"]] == [
        "finished",
        "in-progress",
        "finished",
    ]


def test_11_a_new_mapping_ends_the_walks_on_the_old_one(
    own: Changing, own_redis: RedisServer, tmp_path: Path
) -> None:
    first = own.served.search("Encounter", {"_count": "3"})
    text = (tmp_path / "mapping.yaml").read_text("utf-8")

    def restarted(mapping: str) -> Served:
        return serve(
            EDGES, tmp_path, own_redis.url, mapping=mapping, SEAL_KEYS=SEAL_KEYS[0]
        )

    same = restarted(text.replace("name: Tiny hospital", "name: Renamed"))
    assert same.follow(first, "self")["id"] == first["id"]
    changed = restarted(text.replace("FROM stays s", "FROM stays AS s", 1))
    for relation in ("self", "next"):
        refused(changed.get(link(first, relation)), 410, "not-found")


def _rotated(own: Changing, redis: RedisServer, directory: Path, keys: str) -> Served:
    settings = provider.settings(
        directory / "mapping.yaml", REDIS_URL=redis.url, SEAL_KEYS=keys
    )
    joined = own.served.app.extensions[EXTENSION]
    store = _store(redis.url, settings.seal_keys)
    walks = replace(joined.walks, store=store)
    own.served.app.extensions[EXTENSION] = replace(joined, walks=walks)
    return own.served


def _store(url: str, keys: tuple[str, ...], **changed: Any) -> PageStore:
    return PageStore(connect(url), keys, **{"idle": 1800, "life": 28800, **changed})


def test_11_keys_are_rotated_without_losing_a_walk(
    own: Changing, own_redis: RedisServer, tmp_path: Path
) -> None:
    first = own.served.search("Encounter", {"_count": "3"})
    second = own.served.follow(first, "next")
    old, new = SEAL_KEYS
    served = _rotated(own, own_redis, tmp_path, f"{new} {old}")
    assert ids(served.follow(second, "previous")) == ids(first)
    third = served.follow(second, "next")
    assert served.follow(second, "self")["id"] == second["id"]
    fourth = served.follow(third, "next")
    # What the new key has issued needs no other; the rest goes with the old one.
    served = _rotated(own, own_redis, tmp_path, new)
    assert ids(served.follow(fourth, "self")) == ids(fourth)
    assert len(ids(served.follow(fourth, "next"))) == 3
    refused(served.get(link(first, "self")), 404, "not-found")
    _rotated(own, own_redis, tmp_path, old)
    refused(served.get(link(fourth, "next")), 404, "not-found")


def test_11_a_page_lives_30_minutes_after_its_last_use(
    own: Changing, own_redis: RedisServer
) -> None:
    first = own.served.search("Encounter", {"_count": "3"})
    key = f"page:{first['id']}"
    with own_redis.client() as client:
        assert 1790 < client.ttl(key) <= 1800
        for relation in ("self", "next"):
            client.expire(key, 100)
            own.served.follow(first, relation)
            assert 1790 < client.ttl(key) <= 1800


@pytest.mark.parametrize(("minutes", "seconds"), [(None, 28800), ("60", 3600)])
def test_11_a_search_lives_8_hours_at_most(
    own: Changing, own_redis: RedisServer, minutes: str | None, seconds: int
) -> None:
    clock = provider.Clock()
    joined = own.served.app.extensions[EXTENSION]
    store = _store(own_redis.url, SEAL_KEYS[:1], life=seconds, clock=clock)
    own.served.app.extensions[EXTENSION] = replace(
        joined, walks=replace(joined.walks, store=store)
    )
    first = own.served.search("Encounter", {"_count": "3"})
    second = own.served.follow(first, "next")
    clock.now += seconds - 60
    third = own.served.follow(second, "next")
    with own_redis.client() as client:
        assert 0 < client.ttl(f"page:{third['id']}") <= 61
        # A page that is used does not outlive its search.
        for page in (first, second):
            client.expire(f"page:{page['id']}", 1000)
        own.served.follow(second, "self")
        own.served.follow(first, "next")
        assert 0 < client.ttl(f"page:{second['id']}") <= 61
        assert 0 < client.ttl(f"page:{first['id']}") <= 61
    clock.now += 61
    for page in (first, second, third):
        refused(own.served.get(link(page, "self")), 410, "not-found")
    refused(own.served.get(link(second, "next")), 410, "not-found")
    with own_redis.client() as client:
        assert not client.exists(f"page:{first['id']}", f"page:{second['id']}")


def test_11_a_question_that_is_no_longer_offered_ends_its_walk(
    own: Changing, own_redis: RedisServer, tmp_path: Path
) -> None:
    first = own.served.search("Encounter", {"class": "IMP", "_count": "2"})
    text = (tmp_path / "mapping.yaml").read_text("utf-8")
    narrowed = serve(
        EDGES,
        tmp_path,
        own_redis.url,
        mapping=text,
        profile="group-b",
        SEAL_KEYS=SEAL_KEYS[0],
    )
    for relation in ("self", "next"):
        refused(narrowed.get(link(first, relation)), 410, "not-found")


def test_11_both_lives_are_settings(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("mapping: 1\n")
    default = provider.settings(tmp_path / "m.yaml")
    assert (default.page_idle_minutes, default.page_life_minutes) == (30, 480)
    changed = {"PAGE_IDLE_MINUTES": "5", "PAGE_LIFE_MINUTES": "60"}
    chosen = provider.settings(tmp_path / "m.yaml", **changed)
    assert (chosen.page_idle_minutes, chosen.page_life_minutes) == (5, 60)
