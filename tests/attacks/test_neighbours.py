"""Every fault of every neighbour, in mid-walk: the right page, or an honest refusal."""

import random
import socket
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread

import pytest
import sqlalchemy as sa

from app.service import EXTENSION
from tests.app.changing import NEWEST_FIRST, STAYS
from tests.app.server.running import keys
from tests.hospital_http import SECRETS, Api, http_mapping_text, serving
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST
from tests.serving import Served, ids, link, relations, serve
from toolkit.contract.hospital import Hospital

pytestmark = pytest.mark.system

HOSPITAL = Hospital(STAYS)
WALK = [str(number) for number in NEWEST_FIRST]
COUNT = 7
TRIES = 6
"""Connections that broke unnoticed may still cost some answers afterwards."""
TRIED = {
    "postgresql": ("postgresql", "redis", "key set"),
    "mariadb": ("mariadb",),
    "http": ("http", "token server"),
}
"""The neighbours that fail, by the source of the service."""
LIMITS = "timeout_seconds: 0.5, connections: 2"
LATE_SECONDS = 2


class Fault(StrEnum):
    """What happens to the neighbour's answers, on old connections and new ones."""

    CUT = "connections end, and no new one is taken"
    BREAK_OFF = "an answer ends in its middle"
    LATE = "answers come after everybody's timeout"
    GARBAGE = "answers are bytes without a meaning"


class FaultyProxy(ThreadingTCPServer):
    """Passes bytes between clients and one neighbour, and fails while it has a fault."""

    daemon_threads = True
    block_on_close = False
    fault: Fault | None = None

    def __init__(self, place):
        """Stand before `host:port`, or before the path of a socket."""
        super().__init__((HOST, 0), _Connection)
        self.place = place
        self.open: set[socket.socket] = set()
        Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @contextmanager
    def failing(self, fault):
        self.fault = fault
        if fault is Fault.CUT:
            _hang_up(*self.open)
        try:
            yield
        finally:
            self.fault = None

    def close(self):
        self.shutdown()
        self.server_close()
        _hang_up(*self.open)


class _Connection(BaseRequestHandler):
    server: FaultyProxy

    def handle(self):
        if self.server.fault is Fault.CUT:
            return
        host, _, port = self.server.place.rpartition(":")
        is_path = self.server.place.startswith("/")
        neighbour = socket.socket(socket.AF_UNIX if is_path else socket.AF_INET)
        with neighbour:
            neighbour.connect(self.server.place if is_path else (host, int(port)))
            self.server.open |= {self.request, neighbour}
            back = Thread(target=self._pass_answers, args=(neighbour,))
            back.start()
            with suppress(OSError):
                while data := self.request.recv(65536):
                    neighbour.sendall(data)
            _hang_up(self.request, neighbour)
            back.join()
            self.server.open -= {self.request, neighbour}

    def _pass_answers(self, neighbour):
        with suppress(OSError):
            while data := neighbour.recv(65536):
                end = time.monotonic() + LATE_SECONDS
                while self.server.fault is Fault.LATE and time.monotonic() < end:
                    time.sleep(0.01)
                if self.server.fault is Fault.GARBAGE:
                    data = random.randbytes(len(data))
                if self.server.fault is Fault.BREAK_OFF:
                    self.request.sendall(data[: len(data) // 2])
                    break
                self.request.sendall(data)
        _hang_up(neighbour, self.request)


def _hang_up(*connections):
    """End connections: a thread that waits for bytes of one wakes up."""
    for connection in connections:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True)
class Behind:
    """A service, the proxies that stand before its neighbours, and its source over HTTP."""

    source: str
    served: Served
    proxies: dict[str, FaultyProxy]
    api: Api


@pytest.fixture(scope="module", params=TRIED)
def behind(request, tmp_path_factory, redis_server):
    source, proxies, api = request.param, {}, Api(HOSPITAL)
    with ExitStack() as stack:

        def through(name, place):
            proxies[name] = FaultyProxy(place.removeprefix("http://"))
            stack.callback(proxies[name].close)
            return f"{HOST}:{proxies[name].server_address[1]}"

        if source == "http":
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            patch.setenv("PAS_PASSWORD", SECRETS["PAS_PASSWORD"])
            api.guard = lambda r: r.headers["Authorization"].endswith(api.sessions[-1])
            address = stack.enter_context(serving(api))
            tokens = f"http://{through('token server', address)}/token"
            auth = f"{{oauth2: {{token_url: '{tokens}', client_id: c, "
            auth += "client_secret: {env: PAS_PASSWORD}}}"
            text = http_mapping_text(HOSPITAL, source=f", {LIMITS}, auth: {auth}")
            url = f"http://{through('http', address)}"
            mapping = text.replace("{env: PAS_URL}", f"'{url}'")
        else:
            if source == "postgresql":
                database = request.getfixturevalue("new_postgresql")("unicode")
                url = sa.make_url(database)
                path, query = (
                    f"{url.query['host']}/.s.PGSQL.5432",
                    {"sslmode": "disable"},
                )
            else:
                database = request.getfixturevalue("mariadb_server").new_database()
                url = sa.make_url(database)
                path, query = str(url.query["unix_socket"]), {}
            Tables(database, HOSPITAL).close()
            host, _, port = through(source, path).rpartition(":")
            moved = url.set(host=host, port=int(port), query=query)
            text = f"'{moved.render_as_string(hide_password=False)}'"
            mapping = mapping_text(HOSPITAL, text).replace("connections: 2", LIMITS)
        key_set = through("key set", stack.enter_context(serving(keys)))
        redis = through("redis", redis_server.url.removeprefix("unix://"))
        served = serve(
            HOSPITAL,
            tmp_path_factory.mktemp(source),
            f"redis://{redis}/0",
            mapping=mapping,
            KEY_SET_URL=f"http://{key_set}/keys",
            KEY_SET_RETRY_SECONDS="1",
            IDENTITY_TIMEOUT_SECONDS="0.5",
        )
        stack.callback(served.app.extensions[EXTENSION].adapter.close)
        yield Behind(source, served, proxies, api)


def assert_honest(answer, right):
    """Hold an answer to docs/run/runbook.md: the right page or a refusal."""
    if answer.status_code == 200:
        assert ids(answer.get_json(force=True)) == right
        return
    assert answer.status_code in (502, 503), answer.text
    if answer.status_code == 503:
        assert int(answer.headers["Retry-After"]) > 0
    (issue,) = answer.get_json(force=True)["issue"]
    # An answer that makes no sense is no better at the next try.
    codes = {"transient", "exception"} if answer.status_code == 502 else {"transient"}
    assert issue["severity"] == "error"
    assert issue["code"] in codes


def soon(ask, right):
    """Return the right page, which one of the next answers is."""
    for _ in range(TRIES):
        answer = ask()
        assert_honest(answer, right)
        if answer.status_code == 200:
            return answer.get_json(force=True)
    pytest.fail(f"{TRIES} times not the page")


def test_a_fault_gives_the_right_page_or_an_honest_refusal(behind):
    served = behind.served
    first_ids, second_ids = WALK[:COUNT], WALK[COUNT : 2 * COUNT]
    search = partial(served.post, "Encounter/_search", {"_count": str(COUNT)})
    for name in TRIED[behind.source]:
        for fault in Fault:
            first = soon(search, first_ids)
            follow = partial(served.get, link(first, "next"))
            with behind.proxies[name].failing(fault):
                if name == "token server":
                    behind.api.sessions.append("another")
                assert_honest(follow(), second_ids)
                assert_honest(search(), first_ids)
                if name == "key set":
                    # Known keys serve while nobody can be asked for others.
                    soon(follow, second_ids)
                if name == "redis":
                    find = partial(served.post, "Encounter/_search", {"_id": "1"})
                    soon(find, ["1"])
            page = soon(follow, second_ids)
            walked = [*first_ids, *ids(page)]
            while "next" in relations(page):
                place = len(walked)
                follow = partial(served.get, link(page, "next"))
                page = soon(follow, WALK[place : place + COUNT])
                walked += ids(page)
            assert walked == WALK, (name, fault)
