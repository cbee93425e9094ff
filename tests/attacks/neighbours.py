"""A service in this process that reaches all its neighbours through faulty proxies."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from werkzeug.test import TestResponse

from adapters.testing.hospital import Hospital
from app.service import EXTENSION
from tests.app import provider
from tests.app.changing import NEWEST_FIRST, SEAL_KEYS, STAYS
from tests.app.operations.running import keys
from tests.attacks.faulty_proxy import FaultyProxy
from tests.hospital_http import Api, serving
from tests.hospital_http_mapping import http_mapping_text
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST
from tests.redis_server import RedisServer
from tests.serving import Served, ids, link, relations, serve

HOSPITAL = Hospital(STAYS)
WALK = [str(number) for number in NEWEST_FIRST]
COUNT = 7
STATEMENT_SECONDS = 0.5
IDENTITY_SECONDS = 0.5
RETRY_SECONDS = 1


@dataclass(frozen=True)
class Behind:
    """A service and the proxies that stand before its neighbours, by their names."""

    served: Served
    proxies: Mapping[str, FaultyProxy]

    def first(self) -> Any:
        """Search, and return the first page."""
        return self.served.search("Encounter", {"_count": str(COUNT)})


@contextmanager
def behind(
    source: str, directory: Path, redis: RedisServer, database: str | None = None
) -> Iterator[Behind]:
    """Serve the hospital behind "postgresql" or "http"; `database` is an empty one."""
    with ExitStack() as stack:
        begin = _postgresql if source == "postgresql" else _http
        hospital, mapping = begin(stack, database)
        key_set = stack.enter_context(serving(keys))
        proxies = {
            source: hospital,
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
        served = serve(HOSPITAL, directory, redis_url, mapping=mapping, **settings)
        stack.callback(served.app.extensions[EXTENSION].adapter.close)
        yield Behind(served, proxies)


def _postgresql(stack: ExitStack, database: str | None) -> tuple[FaultyProxy, str]:
    assert database is not None
    Tables(database, HOSPITAL).close()
    url = sa.make_url(database)
    folder = str(url.query.get("host") or url.host)
    assert folder.startswith("/"), "the test's server listens on a socket"
    proxy = _proxy(stack, f"{folder}/.s.PGSQL.{url.port or 5432}")
    moved = url.set(host=HOST, port=proxy.port, query={"sslmode": "disable"})
    told = moved.render_as_string(hide_password=False)
    text = mapping_text(HOSPITAL, f"'{told}'")
    seconds = f"connections: 2, timeout_seconds: {STATEMENT_SECONDS}"
    return proxy, text.replace("connections: 2", seconds)


def _http(stack: ExitStack, _database: str | None) -> tuple[FaultyProxy, str]:
    url = stack.enter_context(serving(Api(HOSPITAL)))
    proxy = _proxy(stack, _place(url))
    seconds = f", timeout_seconds: {STATEMENT_SECONDS}, connections: 2"
    text = http_mapping_text(HOSPITAL, source=seconds)
    return proxy, text.replace("{env: PAS_URL}", f"'http://{HOST}:{proxy.port}'")


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
        page = served.follow(page, "next")
        found += ids(page)
    return found


def kept_word(answer: TestResponse, right: list[str]) -> bool:
    """Hold an answer to docs/faults.md; tell whether it is the right page."""
    if answer.status_code == 200:
        assert ids(answer.get_json(force=True)) == right
        return True
    assert answer.status_code in (502, 503), answer.text
    if answer.status_code == 503:
        assert int(answer.headers["Retry-After"]) > 0
    (issue,) = answer.get_json(force=True)["issue"]
    assert (issue["severity"], issue["code"]) == ("error", "transient")
    return False


def new_client(name: str) -> dict[str, str]:
    """Return the headers of a client whose token is not known yet."""
    return {"Authorization": provider.bearer(provider.sign(client_id=name))}


__all__ = ["COUNT", "WALK", "Behind", "behind", "kept_word", "link", "walked"]
