"""Connections to HTTP sources, the identity provider and Redis end (decision 42).

A host that has moved by name goes on answering old connections: only a new one follows it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import orjson
import pytest
import redis

from adapters.http.client import Deadline, HttpCall, HttpClient
from app.jwks import ProviderEndpoint
from app.redis_client import connect, end_connections
from tests.live import HOST, wait_until
from tests.redis_server import RedisServer

pytestmark = pytest.mark.system

SECONDS = 1.0


class PortOfClient(BaseHTTPRequestHandler):
    """Answers with the port of the client, which is another one for each connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = orjson.dumps({"port": self.client_address[1]})
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer((HOST, 0), PortOfClient) as opened:
        Thread(target=opened.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{opened.server_port}"
        opened.shutdown()


def check_lifetime(connection: Callable[[], object]) -> None:
    """Wait until a connection has served twice, and another one has followed."""
    used: list[object] = []

    def another_one_follows() -> bool:
        used.append(connection())
        return {a == b for a, b in pairwise(used)} == {True, False}

    wait_until(another_one_follows, Path(os.devnull))


def test_connections_to_an_http_source_end(server: str) -> None:
    with closing(HttpClient(server, SECONDS)) as client:
        check_lifetime(
            lambda: client.send(HttpCall("GET", "/"), {}, Deadline(30)).json()
        )


def test_connections_to_the_identity_provider_end(server: str) -> None:
    check_lifetime(ProviderEndpoint(server, 30, SECONDS).fetch)


def test_connections_to_redis_end(redis_server: RedisServer) -> None:
    Thread(target=end_connections, args=(SECONDS,), daemon=True).start()
    with connect(redis_server.url) as client:

        def connection() -> object:
            try:
                return client.client_id()
            except redis.TimeoutError:
                # On a busy machine Redis may be late.
                return connection()

        check_lifetime(connection)
