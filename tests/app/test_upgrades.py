"""Workers of two releases side by side: what one has kept, the other goes on with."""

import base64
import json
import logging
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
import responses

from adapters.contract import Group, Position
from adapters.mapping.load import load_mapping
from adapters.testing.stays import EDGES
from app.paging import KeptPage, PageLink, PageStore
from app.service import EXTENSION, Service
from app.stored import READ, WRITTEN, Direction, Start
from app.timed_redis import connect
from tests.app.changing import DATED, NEWEST_FIRST, Changing
from tests.docs.pages import OPERATORS, section, table
from tests.hospital_sql import mapping_text
from tests.redis_server import RedisServer
from tests.serving import Served, ids, link, relations

KEPT = sorted((Path(__file__).parent / "kept").glob("*.json"))
COMING = max(READ)
UNKNOWN = COMING + 1


@pytest.mark.parametrize("file", KEPT, ids=[file.stem for file in KEPT])
def test_what_a_release_has_kept_is_read(file: Path, redis_server: RedisServer) -> None:
    kept = json.loads(file.read_text("utf-8"))
    store = PageStore(
        connect(redis_server.url),
        [kept["seal_key"]],
        idle=1800,
        life=28800,
        clock=lambda: kept["now"],
    )
    fields = {
        base64.b64decode(name): base64.b64decode(held)
        for name, held in kept["fields"].items()
    }
    at = Position(Group.KEYED, datetime(2024, 3, 14, 9, 0, 0, 1, UTC), 42)
    leads = Start(2, Direction.AFTER, at)
    with redis_server.client() as client:
        client.hset(f"page:{kept['page']}", mapping=fields)  # type: ignore[arg-type]
    page = store.load(kept["page"], "client-1")
    assert page.search.pairs == (("patient", "Patient/42"), ("_count", "2"))
    assert page.start == Start()
    # The same link, whoever writes it again, and it leads where it led.
    (again,) = store.keep(page, [leads])
    assert again == PageLink(Direction.AFTER, 2, kept["cursor"])
    found = store.follow(kept["page"], "client-1", again)
    assert (found.start, found.search) == (leads, page.search)


def test_every_format_that_is_read_or_written_is_known() -> None:
    assert WRITTEN in READ
    assert f"format-{WRITTEN}" in {file.stem for file in KEPT}
    releases = table(section(OPERATORS.read_text("utf-8"), "Upgrading"), "Release")
    told = [(int(row[2]), {int(n) for n in row[3].split(",")}) for row in releases]
    assert told[-1] == (WRITTEN, READ)
    for (before, could), (after, can) in pairwise(told):
        assert after in could
        assert before in can


def writing(served: Served, url: str, version: int) -> Served:
    """Return the same service as a worker of a release that writes another format."""
    service: Service = served.app.extensions[EXTENSION]
    store = PageStore(
        connect(url), service.settings.seal_keys, idle=1800, life=28800, version=version
    )
    walks = replace(service.walks, store=store)
    served.app.extensions[EXTENSION] = replace(service, walks=walks)
    return served


def test_a_walk_goes_on_through_workers_of_two_releases(
    own: Changing, own_redis: RedisServer
) -> None:
    versions = [WRITTEN, COMING]
    bundle = own.served.search("Encounter", {"_count": "4"})
    found, numbered = ids(bundle), 1
    while "next" in relations(bundle):
        worker = writing(own.served, own_redis.url, versions[numbered % 2])
        again = worker.follow(bundle, "self")
        assert link(again, "next") == link(bundle, "next")
        bundle = worker.follow(bundle, "next")
        found += ids(bundle)
        numbered += 1
        assert numbered < DATED, "the walk does not end"
    assert found == [str(id) for id in NEWEST_FIRST]
    back = ids(bundle)
    while "previous" in relations(bundle):
        worker = writing(own.served, own_redis.url, versions[numbered % 2])
        bundle = worker.follow(bundle, "previous")
        back = ids(bundle) + back
        numbered += 1
    assert back == found


def test_a_page_of_an_unknown_format_is_gone_and_says_so(
    own: Changing, own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    first = own.served.search("Encounter", {"_count": "4"})
    writing(own.served, own_redis.url, UNKNOWN)
    own.served.follow(first, "self")
    for relation in ("self", "next"):
        answer = own.served.get(link(first, relation))
        assert answer.status_code == 410
        (issue,) = answer.get_json(force=True)["issue"]
        assert issue["diagnostics"] == (
            "This page was kept by another version of the service: search again."
        )
    told = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert {r.getMessage() for r in told} == {"page of another format"}
    assert told[0].data == {"format": UNKNOWN, "reads": sorted(READ)}  # type: ignore[attr-defined]


def test_a_link_of_an_unknown_format_is_gone(
    own: Changing, own_redis: RedisServer
) -> None:
    url = own_redis.url
    writing(own.served, url, UNKNOWN)
    first = own.served.search("Encounter", {"_count": "4"})
    writing(own.served, url, WRITTEN)
    # A worker of this release has written the page anew: only the link is unknown.
    service: Service = own.served.app.extensions[EXTENSION]
    store = service.walks.store
    known = own.served.search("Encounter", {"_count": "4"})
    page = store.load(known["id"], "client-1")
    store.keep(KeptPage(first["id"], page.search, page.start), ())
    assert own.served.follow(first, "self")["id"] == first["id"]
    assert own.served.get(link(first, "next")).status_code == 410


def test_what_a_walk_goes_by_is_the_same_in_every_release(tmp_path: Path) -> None:
    """Another fingerprint of an unchanged mapping would end every walk at an upgrade."""
    file = tmp_path / "hospital.yaml"
    file.write_text(mapping_text(EDGES, "sqlite:///pas.db"), "utf-8")
    assert load_mapping(file, None).fingerprint == "07c1724294e042a0"


@pytest.fixture(autouse=True)
def _provider(keys: responses.RequestsMock) -> None:
    """Let the identity provider answer."""
