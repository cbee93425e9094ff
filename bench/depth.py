"""The cost of a page by its depth: one walk through all stays, page after page, by the links.

The service runs in this process with a real PostgreSQL and a real Redis; what is measured is
the WSGI call, so sockets and gunicorn are left out.
"""

import io
import os
import secrets
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import orjson

from app import create_app
from app.config import Settings
from bench.contenders import BASE_URL, ROOT, settings
from bench.tokens import Identity
from tests.redis_server import RedisServer

AROUND = 51
"""How many pages around a depth are asked for again."""


class Cost(NamedTuple):
    """What an answer took, in milliseconds: of time, and of CPU in this thread."""

    time: float
    cpu: float


@contextmanager
def redis_url() -> Iterator[str]:
    """Start a Redis for the run and return its address."""
    server = RedisServer()
    server.start()
    try:
        yield server.url
    finally:
        server.remove()


class Service:
    """The service on the demo's mapping, called without a server."""

    def __init__(self, url: str, redis: str, identity: Identity) -> None:
        os.environ["PAS_URL"] = url
        environ = settings(ROOT, redis, identity)
        self._application = create_app(Settings.from_environ(environ)).wsgi_app
        self._token = identity.token

    def get(self, path: str) -> tuple[Cost, Any]:
        """Return what an answer took, and its body."""
        path, _, query = path.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": f"/fhir/v3/{path}",
            "QUERY_STRING": query,
            "SERVER_NAME": "bench",
            "SERVER_PORT": "443",
            "REMOTE_ADDR": "127.0.0.1",
            "wsgi.url_scheme": "https",
            "wsgi.input": io.BytesIO(),
            "wsgi.errors": sys.stderr,
            "HTTP_AUTHORIZATION": f"Bearer {self._token}",
            "HTTP_X_REQUEST_ID": secrets.token_hex(8),
        }
        statuses: list[str] = []

        def start(status: str, *_: object) -> Any:
            statuses.append(status)

        began, used = time.perf_counter(), time.thread_time()
        body = b"".join(self._application(environ, start))
        took, used = time.perf_counter() - began, time.thread_time() - used
        if not statuses[0].startswith("200"):
            raise SystemExit(f"{statuses[0]} on the way: {body[:200]!r}")
        return Cost(took * 1000, used * 1000), orjson.loads(body)

    def walk(self, first: str, pages: int) -> Iterator[tuple[str, Cost]]:
        """Follow `next` for so many pages; yield the address of each, and its cost."""
        address = first
        for _ in range(pages):
            cost, bundle = self.get(address)
            yield address, cost
            links = {link["relation"]: link["url"] for link in bundle["link"]}
            if "next" not in links:
                break
            address = links["next"].removeprefix(f"{BASE_URL}/")

    def in_turn(
        self, walked: Sequence[str], depths: Sequence[int]
    ) -> Mapping[int, Cost]:
        """Get pages of a walk again, one of each depth in turn; return medians by depth.

        A machine that is faster for a while is so for all of them. The first page is left
        out: it counts.
        """
        around = min(AROUND, len(walked) - 1)
        costs: dict[int, list[Cost]] = {d: [] for d in depths if d <= len(walked)}
        for number in range(around):
            for depth, of_depth in costs.items():
                begins = max(1, min(depth - around // 2, len(walked) - around))
                of_depth.append(self.get(walked[begins + number])[0])
        return {
            depth: Cost(*map(statistics.median, zip(*of_depth, strict=True)))
            for depth, of_depth in costs.items()
        }
