"""A service in this process that reaches all its neighbours through faulty proxies."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa
from werkzeug.test import TestResponse

from app.service import EXTENSION
from tests.app.changing import NEWEST_FIRST, SEAL_KEYS, STAYS
from tests.app.server.running import keys
from tests.attacks.faulty_proxy import FaultyProxy
from tests.hospital_http import SECRETS, Api, serving
from tests.hospital_http_mapping import http_mapping_text
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST
from tests.redis_server import RedisServer
from tests.serving import Served, ids, link, relations, serve
from toolkit.contract.hospital import Hospital

HOSPITAL = Hospital(STAYS)
WALK = [str(number) for number in NEWEST_FIRST]
COUNT = 7
TRIES = 3
"""A connection that broke unnoticed may still cost an answer or two afterwards."""
STATEMENT_SECONDS = 0.5
IDENTITY_SECONDS = 0.5
RETRY_SECONDS = 1


@dataclass(frozen=True)
class Behind:
    """A service and the proxies that stand before its neighbours, by their names."""

    served: Served
    proxies: Mapping[str, FaultyProxy]
    forget_logins: Callable[[], None] = lambda: None
    """Lets the source ask for a new token; databases have none."""

    def first(self) -> Any:
        """Search, and return the first page."""
        asked = {"_count": str(COUNT)}
        return patiently(lambda: self.served.post("Encounter/_search", asked))


@dataclass(frozen=True)
class _Begun:
    """A source that is there: its proxies, its mapping file, how its tokens end."""

    proxies: Mapping[str, FaultyProxy]
    mapping: str
    forget_logins: Callable[[], None] = lambda: None


@contextmanager
def behind(
    source: str, directory: Path, redis: RedisServer, database: str | None = None
) -> Iterator[Behind]:
    """Serve the hospital behind "http" or an empty database of the kind of `source`."""
    with ExitStack() as stack:
        begun = _sql(stack, source, database) if database else _http(stack)
        key_set = stack.enter_context(serving(keys))
        proxies = {
            **begun.proxies,
            "redis": _proxy(stack, redis.url.removeprefix("unix://")),
            "key set": _proxy(stack, _place(key_set)),
        }
        settings = {
            "KEY_SET_URL": f"http://{HOST}:{proxies['key set'].port}/keys",
            "KEY_SET_RETRY_SECONDS": str(RETRY_SECONDS),
            "IDENTITY_TIMEOUT_SECONDS": str(IDENTITY_SECONDS),
            "SEAL_KEYS": SEAL_KEYS[0],
        }
        redis_url = f"redis://{HOST}:{proxies['redis'].port}/0"
        mapping = begun.mapping
        served = serve(HOSPITAL, directory, redis_url, mapping=mapping, **settings)
        stack.callback(served.app.extensions[EXTENSION].adapter.close)
        yield Behind(served, proxies, begun.forget_logins)


def _sql(stack: ExitStack, source: str, database: str) -> _Begun:
    Tables(database, HOSPITAL).close()
    url = sa.make_url(database)
    if source == "mariadb":
        socket, plain = str(url.query["unix_socket"]), {}
    else:
        folder = str(url.query.get("host") or url.host)
        assert folder.startswith("/"), "the test's server listens on a socket"
        socket, plain = f"{folder}/.s.PGSQL.{url.port or 5432}", {"sslmode": "disable"}
    proxy = _proxy(stack, socket)
    moved = url.set(host=HOST, port=proxy.port, query=plain)
    told = moved.render_as_string(hide_password=False)
    text = mapping_text(HOSPITAL, f"'{told}'")
    seconds = f"connections: 2, timeout_seconds: {STATEMENT_SECONDS}"
    return _Begun({source: proxy}, text.replace("connections: 2", seconds))


def _http(stack: ExitStack) -> _Begun:
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    patch.setenv("PAS_PASSWORD", SECRETS["PAS_PASSWORD"])
    api = Api(HOSPITAL)
    api.guard = lambda r: r.headers.get("Authorization") == f"Bearer {api.sessions[-1]}"
    place = _place(stack.enter_context(serving(api)))
    source, tokens = _proxy(stack, place), _proxy(stack, place)
    auth = (
        f"auth: {{oauth2: {{token_url: 'http://{HOST}:{tokens.port}/token', "
        "client_id: c, client_secret: {env: PAS_PASSWORD}}}"
    )
    limits = f", timeout_seconds: {STATEMENT_SECONDS}, connections: 2, {auth}"
    text = http_mapping_text(HOSPITAL, source=limits)
    text = text.replace("{env: PAS_URL}", f"'http://{HOST}:{source.port}'")
    proxies = {"http": source, "token server": tokens}
    return _Begun(proxies, text, lambda: api.sessions.append("another"))


def _proxy(stack: ExitStack, place: Any) -> FaultyProxy:
    proxy = FaultyProxy(place)
    stack.callback(proxy.close)
    return proxy


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return str(parts.hostname), int(parts.port or 0)


def walked(served: Served, page: Any) -> list[str]:
    """Return the stays of a walk, from a page to its end."""
    found = ids(page)
    while "next" in relations(page):
        following = link(page, "next")
        page = patiently(lambda url=following: served.get(url))
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
