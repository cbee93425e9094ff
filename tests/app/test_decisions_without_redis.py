"""Decision 25: what goes on while Redis is away."""

from pathlib import Path

import pytest
import responses
from prometheus_client import REGISTRY

from adapters.testing.stays import EDGES
from tests.app.answers import body, refused
from tests.app.changing import Changing
from tests.redis_server import RedisServer
from tests.serving import Served, ids, link, relations, serve


@pytest.fixture
def without(own: Changing, own_redis: RedisServer) -> Served:
    """Return a service whose Redis is away."""
    own_redis.stop()
    return own.served


def test_25_reads_go_on_without_redis(without: Served) -> None:
    assert body(without.get("Encounter/1"))["id"] == "1"
    assert without.get("metadata").status_code == 200


def test_25_what_redis_failed_to_do_is_counted(without: Served) -> None:
    def counted() -> float:
        step = {"step": "keep"}
        return REGISTRY.get_sample_value("encounters_store_errors_total", step) or 0.0

    before = counted()
    without.search("Encounter", {"_id": "1"})
    assert counted() == before + 1


def test_25_searches_that_fit_one_page_go_on(without: Served) -> None:
    found = without.search("Encounter", {"_id": "1,2,3"})
    assert found["total"] == 3
    assert relations(found) == ["self"]
    assert without.search("Encounter", {"_id": "99"})["total"] == 0


def test_25_their_self_link_then_answers_410(
    without: Served, own_redis: RedisServer
) -> None:
    found = without.search("Encounter", {"_id": "1,2,3"})
    refused(without.get(link(found, "self")), 503, "transient")
    own_redis.start()
    refused(without.get(link(found, "self")), 410, "not-found")


def test_25_a_search_that_needs_a_second_page_is_503(
    without: Served, own_redis: RedisServer
) -> None:
    answer = without.post("Encounter/_search", {"_count": "3"})
    refused(answer, 503, "transient")
    assert int(answer.headers["Retry-After"]) > 0
    own_redis.start()
    assert relations(without.search("Encounter", {"_count": "3"})) == ["self", "next"]


def test_25_a_link_is_503_while_redis_is_away_and_works_again(
    own: Changing, own_redis: RedisServer
) -> None:
    first = own.served.search("Encounter", {"_count": "3"})
    with own_redis.client() as client:
        client.config_set("save", "1 1")
        client.save()
    own_redis.stop()
    refused(own.served.get(link(first, "next")), 503, "transient")
    own_redis.start()
    assert len(ids(own.served.follow(first, "next"))) == 3


def test_25_groups_cut_a_result_short_without_redis(
    own_redis: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> None:
    served = serve(EDGES, tmp_path, own_redis.url, profile="group-a")
    own_redis.stop()
    assert len(ids(served.search("Encounter", {"_count": "3"}))) == 3
