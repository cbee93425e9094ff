"""Every fault of every neighbour, in mid-walk: the right page, or an honest refusal."""

import math
import random
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa
from werkzeug.test import TestResponse

from app.service import EXTENSION
from tests.app import provider
from tests.app.changing import NEWEST_FIRST, SEAL_KEYS, STAYS
from tests.app.server.running import keys
from tests.hospital_http import SECRETS, Api, serving
from tests.hospital_http_mapping import http_mapping_text
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST
from tests.redis_server import RedisServer
from tests.serving import Served, ids, link, relations, serve
from toolkit.contract.hospital import Hospital

pytestmark = pytest.mark.system

HOSPITAL = Hospital(STAYS)
WALK = [str(number) for number in NEWEST_FIRST]
COUNT = 7
TRIES = 3
"""A connection that broke unnoticed may still cost an answer or two afterwards."""
STATEMENT_SECONDS = 0.5
IDENTITY_SECONDS = 0.5
RETRY_SECONDS = 1
LATE_SECONDS = 5.0

SOURCE_OF = {
    "postgresql": "postgresql",
    "mariadb": "mariadb",
    "http": "http",
    "token server": "http",
    "redis": "postgresql",
    "key set": "postgresql",
}
"""The source of the service that each neighbour is tried with."""


# ---- a proxy that fails as networks and neighbours fail


class Fault(StrEnum):
    """What happens to the neighbour's answers, on old connections and new ones."""

    CUT = "cut"
    """Connections end, and no new one is taken."""
    BREAK_OFF = "break off"
    """An answer ends in its middle."""
    LATE = "late"
    """Answers come after everybody's timeout."""
    GARBAGE = "garbage"
    """Answers are bytes without a meaning."""
    SILENT = "silent"
    """Nothing is passed on and nothing is closed; what was held comes later."""


Place: TypeAlias = "tuple[str, int] | str"
"""Where the neighbour listens: host and port, or the path of a socket."""


class FaultyProxy(ThreadingTCPServer):
    """Passes bytes between clients and one neighbour, and fails while it has a fault."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, place: Place) -> None:
        super().__init__((HOST, 0), _Connection)
        self.place = place
        self.fault: Fault | None = None
        self.open: set[socket.socket] = set()
        self.port = int(self.server_address[1])
        Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @contextmanager
    def failing(self, fault: Fault) -> Iterator[None]:
        """Fail for as long as the context lasts."""
        self.fault = fault
        if fault is Fault.CUT:
            _hang_up(*self.open)
        try:
            yield
        finally:
            self.fault = None

    def close(self) -> None:
        """End all connections."""
        self.shutdown()
        self.server_close()
        _hang_up(*self.open)


class _Connection(BaseRequestHandler):
    server: FaultyProxy

    def handle(self) -> None:
        if self.server.fault is Fault.CUT:
            return
        with _connect(self.server.place) as neighbour:
            self.server.open |= {self.request, neighbour}
            back = Thread(target=self._pass, args=(neighbour, self.request, True))
            back.start()
            self._pass(self.request, neighbour, False)
            back.join()
            self.server.open -= {self.request, neighbour}

    def _pass(self, source: socket.socket, to: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._hold(Fault.SILENT, math.inf)
                if answers:
                    self._hold(Fault.LATE, LATE_SECONDS)
                    if self.server.fault is Fault.GARBAGE:
                        data = random.randbytes(len(data))
                    if self.server.fault is Fault.BREAK_OFF:
                        to.sendall(data[: len(data) // 2])
                        break
                to.sendall(data)
        _hang_up(source, to)

    def _hold(self, fault: Fault, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self.server.fault is fault and time.monotonic() < end:
            time.sleep(0.01)


def _connect(place: Place) -> socket.socket:
    if isinstance(place, tuple):
        return socket.create_connection(place, 10)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(place)
    return connection


def _hang_up(*connections: socket.socket) -> None:
    """End connections: a thread that waits for bytes of one wakes up."""
    for each in connections:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


# ---- a service that reaches all its neighbours through such proxies


@dataclass(frozen=True)
class Behind:
    """A service and the proxies that stand before its neighbours, by their names."""

    served: Served
    proxies: Mapping[str, FaultyProxy]
    forget_logins: Callable[[], None]
    """Lets the source ask for a new token; databases have none."""


@contextmanager
def behind(
    source: str, directory: Path, redis: RedisServer, database: str
) -> Iterator[Behind]:
    """Serve the hospital from an empty database, or behind "http"."""
    with ExitStack() as stack:
        proxies: dict[str, FaultyProxy] = {}

        def add(name: str, place: Place) -> str:
            proxies[name] = FaultyProxy(place)
            stack.callback(proxies[name].close)
            return f"{HOST}:{proxies[name].port}"

        api = Api(HOSPITAL)
        mapping = _sql(add, source, database) if database else _http(stack, add, api)
        key_set = stack.enter_context(serving(keys))
        settings = {
            "KEY_SET_URL": f"http://{add('key set', _place(key_set))}/keys",
            "KEY_SET_RETRY_SECONDS": str(RETRY_SECONDS),
            "IDENTITY_TIMEOUT_SECONDS": str(IDENTITY_SECONDS),
            "SEAL_KEYS": SEAL_KEYS[0],
        }
        redis_url = f"redis://{add('redis', redis.url.removeprefix('unix://'))}/0"
        served = serve(HOSPITAL, directory, redis_url, mapping=mapping, **settings)
        stack.callback(served.app.extensions[EXTENSION].adapter.close)
        yield Behind(served, proxies, lambda: api.sessions.append("another"))


def _sql(add: Callable[[str, Place], str], source: str, database: str) -> str:
    Tables(database, HOSPITAL).close()
    url = sa.make_url(database)
    place, query = str(url.query.get("unix_socket")), {}
    if source == "postgresql":
        folder = str(url.query.get("host") or url.host)
        assert folder.startswith("/"), "the test's server listens on a socket"
        place, query = f"{folder}/.s.PGSQL.{url.port or 5432}", {"sslmode": "disable"}
    _, _, port = add(source, place).rpartition(":")
    moved = url.set(host=HOST, port=int(port), query=query)
    text = mapping_text(HOSPITAL, f"'{moved.render_as_string(hide_password=False)}'")
    seconds = f"connections: 2, timeout_seconds: {STATEMENT_SECONDS}"
    return text.replace("connections: 2", seconds)


def _http(stack: ExitStack, add: Callable[[str, Place], str], api: Api) -> str:
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    patch.setenv("PAS_PASSWORD", SECRETS["PAS_PASSWORD"])
    api.guard = lambda r: r.headers.get("Authorization") == f"Bearer {api.sessions[-1]}"
    place = _place(stack.enter_context(serving(api)))
    auth = (
        f"auth: {{oauth2: {{token_url: 'http://{add('token server', place)}/token', "
        "client_id: c, client_secret: {env: PAS_PASSWORD}}}"
    )
    limits = f", timeout_seconds: {STATEMENT_SECONDS}, connections: 2, {auth}"
    text = http_mapping_text(HOSPITAL, source=limits)
    return text.replace("{env: PAS_URL}", f"'http://{add('http', place)}'")


def _place(url: str) -> Place:
    parts = urlsplit(url)
    return str(parts.hostname), int(parts.port or 0)


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
            database = ""
            if source == "postgresql":
                database = request.getfixturevalue("new_postgresql")("unicode")
            elif source == "mariadb":
                database = request.getfixturevalue("mariadb_server").new_database()
            directory = tmp_path_factory.mktemp(source)
            return stack.enter_context(
                behind(source, directory, redis_server, database)
            )

        yield begun


# ---- what clients are answered


def walked(served: Served, page: Any) -> list[str]:
    """Return the stays of a walk, from a page to its end."""
    found = ids(page)
    while "next" in relations(page):
        page = patiently(partial(served.get, link(page, "next")))
        found += ids(page)
    return found


def patiently(ask: Callable[[], TestResponse]) -> Any:
    """Return the page that is asked for, when nothing that it needs is at fault.

    A busy machine may still be late for Redis, now and then (docs/run/runbook.md).
    """
    answer = ask()
    for _ in range(TRIES):
        if answer.status_code != 503:
            break
        answer = ask()
    assert answer.status_code == 200, answer.text
    return answer.get_json(force=True)


def kept_word(answer: TestResponse, right: list[str]) -> bool:
    """Hold an answer to docs/run/runbook.md; tell whether it is the right page."""
    if answer.status_code == 200:
        assert ids(answer.get_json(force=True)) == right
        return True
    assert answer.status_code in (502, 503), answer.text
    if answer.status_code == 503:
        assert int(answer.headers["Retry-After"]) > 0
    (issue,) = answer.get_json(force=True)["issue"]
    # An answer that makes no sense is no better at the next try.
    codes = {"transient", "exception"} if answer.status_code == 502 else {"transient"}
    assert issue["severity"] == "error"
    assert issue["code"] in codes
    return False


def soon_right(ask: Callable[[], TestResponse], right: list[str]) -> bool:
    """Tell whether the right page is among the next answers, which all keep their word.

    The last of them may not be it: a busy machine may be late for any.
    """
    rights = [kept_word(ask(), right) for _ in range(TRIES)]
    return any(rights)


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
        first = patiently(partial(search, _count=str(COUNT)))
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
    # The keys are known, and one that is not leads to the key set.
    patiently(lambda: served.get("Encounter/1"))
    for fault in Fault:
        bearer = provider.bearer(provider.sign(provider.ec(fault), "ES256"))
        with service.proxies["key set"].failing(fault):
            answer = served.get("Encounter/1", Authorization=bearer)
            assert answer.status_code == 503, fault
            assert kept_word(answer, []) is False
            assert patiently(lambda: served.get("Encounter/1"))["id"] == "1"
