"""Every fault of every neighbour, in mid-walk: the right page, or an honest refusal."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial

import pytest
from werkzeug.test import TestResponse

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

pytestmark = pytest.mark.system

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


@pytest.mark.parametrize("neighbour", SOURCE_OF)
def test_a_fault_gives_the_right_page_or_an_honest_refusal(
    service_on: Serve, neighbour: str
) -> None:
    service = service_on(SOURCE_OF[neighbour])
    served, proxy = service.served, service.proxies[neighbour]
    following = WALK[COUNT : 2 * COUNT]

    def search(**asked: str) -> TestResponse:
        return served.post("Encounter/_search", asked)

    for fault in Fault:
        if (neighbour, fault) == ("postgresql", Fault.SILENT):
            # psycopg waits for a silent server (docs/run/capacity.md): TCP's limits end it.
            continue
        first = service.first()
        assert ids(first) == WALK[:COUNT]
        page = partial(served.get, link(first, "next"))
        with proxy.failing(fault):
            if neighbour == "token server":
                service.forget_logins()
            right = kept_word(page(), following)
            # Keys that we have serve while nobody can be asked for others.
            if neighbour == "key set" and not right:
                assert soon_right(page, following)
            kept_word(search(_count=str(COUNT)), WALK[:COUNT])
            if neighbour == "redis":
                assert soon_right(lambda: search(_id="1"), ["1"])
        assert soon_right(page, following), fault
        assert soon_right(lambda: search(_count=str(COUNT)), WALK[:COUNT]), fault
        assert walked(served, first) == WALK


def test_a_key_that_cannot_be_fetched_is_503_never_401(service_on: Serve) -> None:
    service = service_on("postgresql")
    served = service.served
    service.first()
    for fault in Fault:
        bearer = provider.bearer(provider.sign(provider.ec(fault), "ES256"))
        with service.proxies["key set"].failing(fault):
            answer = served.get("Encounter/1", Authorization=bearer)
            assert answer.status_code == 503, fault
            assert kept_word(answer, []) is False
            assert patiently(lambda: served.get("Encounter/1"))["id"] == "1"
