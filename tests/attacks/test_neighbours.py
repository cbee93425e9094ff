"""Every fault of every neighbour, in mid-walk: the right page, or an honest refusal."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from tests.app import provider
from tests.attacks.faulty_proxy import Fault
from tests.attacks.neighbours import (
    COUNT,
    WALK,
    Behind,
    behind,
    kept_word,
    patiently,
    soon_right,
    walked,
)
from tests.redis_server import RedisServer
from tests.serving import ids, link

SOURCE_OF = {
    "postgresql": "postgresql",
    "mariadb": "mariadb",
    "http": "http",
    "token server": "http",
    "redis": "postgresql",
    "key set": "postgresql",
}
"""The source of the service that each neighbour is tried with."""

Serve = Callable[[str], Behind]


@pytest.fixture(scope="module")
def service_on(
    tmp_path_factory: pytest.TempPathFactory,
    redis_server: RedisServer,
    request: pytest.FixtureRequest,
) -> Iterator[Serve]:
    """Return a function that returns the service on a kind of source, begun once."""
    with ExitStack() as stack:

        @cache
        def begun(source: str) -> Behind:
            database = None
            if source == "postgresql":
                database = request.getfixturevalue("new_postgresql")("unicode")
            elif source == "mariadb":
                database = request.getfixturevalue("mariadb_server").new_database()
            directory = tmp_path_factory.mktemp(source)
            return stack.enter_context(
                behind(source, directory, redis_server, database)
            )

        yield begun


@pytest.fixture(params=SOURCE_OF)
def neighbour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def service(service_on: Serve, neighbour: str) -> Behind:
    return service_on(SOURCE_OF[neighbour])


@pytest.fixture(params=Fault)
def fault(request: pytest.FixtureRequest, neighbour: str) -> Fault:
    """Return a fault that ends in time on this neighbour.

    psycopg has no limit for an answer: TCP's own limits end a PostgreSQL whose host is
    gone, and nothing ends one whose host acknowledges bytes and whose server is silent.
    """
    if neighbour == "postgresql" and request.param is Fault.SILENT:
        pytest.skip("psycopg waits for a silent server (docs/operators.md)")
    return Fault(request.param)


def test_a_fault_in_the_middle_of_a_walk_gives_no_wrong_page(
    service: Behind, neighbour: str, fault: Fault
) -> None:
    served, proxy = service.served, service.proxies[neighbour]
    following = WALK[COUNT : 2 * COUNT]
    first = service.first()
    assert ids(first) == WALK[:COUNT]
    with proxy.failing(fault):
        if neighbour == "token server":
            service.forget_logins()
        answer = served.get(link(first, "next"))
        right = kept_word(answer, following)
        # Keys that we have serve while nobody can be asked for others.
        if neighbour == "key set" and not right:
            assert soon_right(lambda: served.get(link(first, "next")), following)
    assert soon_right(lambda: served.get(link(first, "next")), following)
    assert walked(served, first) == WALK


def test_a_new_search_meanwhile_is_whole_or_refused(
    service: Behind, neighbour: str, fault: Fault
) -> None:
    served = service.served
    service.first()
    with service.proxies[neighbour].failing(fault):
        if neighbour == "token server":
            service.forget_logins()
        answer = served.post("Encounter/_search", {"_count": str(COUNT)})
        kept_word(answer, WALK[:COUNT])
        if neighbour == "redis":
            one = {"_id": "1"}
            assert soon_right(lambda: served.post("Encounter/_search", one), ["1"])
    asked = {"_count": str(COUNT)}
    assert soon_right(lambda: served.post("Encounter/_search", asked), WALK[:COUNT])


@pytest.mark.parametrize("fault", Fault)
def test_a_key_that_cannot_be_fetched_is_503_never_401(
    service_on: Serve, fault: Fault
) -> None:
    service = service_on("postgresql")
    served = service.served
    service.first()
    headers = {
        "Authorization": provider.bearer(provider.sign(provider.ec(fault), "ES256"))
    }
    with service.proxies["key set"].failing(fault):
        answer = served.get("Encounter/1", **headers)
        assert answer.status_code == 503
        assert kept_word(answer, []) is False
        assert patiently(lambda: served.get("Encounter/1"))["id"] == "1"
