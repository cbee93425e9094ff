"""Every fault of every neighbour, in mid-walk: the right page, or an honest refusal."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from tests.app import provider
from tests.attacks.faulty_proxy import Fault
from tests.attacks.neighbours import COUNT, WALK, Behind, behind, kept_word, walked
from tests.databases import NewDatabase
from tests.redis_server import RedisServer
from tests.serving import ids, link

LONGEST = 20.0
"""No answer takes so long, however loaded the machine: drip by drip it would be minutes."""

TRIES = 3
"""A connection that broke unnoticed may still cost an answer or two afterwards."""

SOURCES = ("postgresql", "http")
NEIGHBOURS = (*SOURCES, "redis", "key set")


@pytest.fixture(scope="module")
def services(
    tmp_path_factory: pytest.TempPathFactory,
    redis_server: RedisServer,
    new_postgresql: NewDatabase,
) -> Iterator[Mapping[str, Behind]]:
    with ExitStack() as stack:
        yield {
            source: stack.enter_context(
                behind(
                    source,
                    tmp_path_factory.mktemp(source),
                    redis_server,
                    new_postgresql("unicode") if source == "postgresql" else None,
                )
            )
            for source in SOURCES
        }


@pytest.fixture(params=NEIGHBOURS)
def neighbour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def service(services: Mapping[str, Behind], neighbour: str) -> Behind:
    return services[neighbour if neighbour in SOURCES else "postgresql"]


@pytest.mark.parametrize("fault", Fault)
def test_a_fault_in_the_middle_of_a_walk_gives_no_wrong_page(
    service: Behind, neighbour: str, fault: Fault
) -> None:
    served, proxy = service.served, service.proxies[neighbour]
    first = service.first()
    assert ids(first) == WALK[:COUNT]
    began = time.monotonic()
    with proxy.failing(fault):
        answer = served.get(link(first, "next"))
        took = time.monotonic() - began
        right = kept_word(answer, WALK[COUNT : 2 * COUNT])
    assert took < LONGEST
    # Keys that we have serve while nobody can be asked for others.
    assert right or neighbour != "key set"
    answers = [served.get(link(first, "next")) for _ in range(TRIES)]
    rights = [kept_word(each, WALK[COUNT : 2 * COUNT]) for each in answers]
    assert rights[-1]
    assert walked(served, first) == WALK


@pytest.mark.parametrize("fault", Fault)
def test_a_new_search_meanwhile_is_whole_or_refused(
    service: Behind, neighbour: str, fault: Fault
) -> None:
    served = service.served
    service.first()
    with service.proxies[neighbour].failing(fault):
        answer = served.post("Encounter/_search", {"_count": str(COUNT)})
        kept_word(answer, WALK[:COUNT])
        if neighbour == "redis":
            one = served.post("Encounter/_search", {"_id": "1"})
            assert kept_word(one, ["1"])
    for _ in range(TRIES):
        answer = served.post("Encounter/_search", {"_count": str(COUNT)})
        right = kept_word(answer, WALK[:COUNT])
    assert right


@pytest.mark.parametrize("fault", Fault)
def test_a_key_that_cannot_be_fetched_is_503_never_401(
    services: Mapping[str, Behind], fault: Fault
) -> None:
    service = services["postgresql"]
    served = service.served
    service.first()
    headers = {
        "Authorization": provider.bearer(provider.sign(provider.ec(fault), "ES256"))
    }
    with service.proxies["key set"].failing(fault):
        answer = served.get("Encounter/1", **headers)
        assert answer.status_code == 503
        assert kept_word(answer, []) is False
        assert served.get("Encounter/1").status_code == 200
