"""Connections to HTTP sources, the identity provider and Redis end (decision 42).

A host that has moved by name goes on answering old connections: only a new one follows it.
"""

from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from threading import Thread

import orjson
import pytest
import redis

from adapters.http.client import Deadline, HttpCall, HttpClient
from app.jwks import ProviderEndpoint
from app.redis_client import connect, end_connections
from tests.live import HOST, wait_until

pytestmark = pytest.mark.system

SECONDS = 1.0


class PortOfClient(BaseHTTPRequestHandler):
    """Answers with the port of the client, which is another one for each connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = orjson.dumps({"port": self.client_address[1]})
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        """Write nothing."""


def check_lifetime(connection):
    """Wait until a connection has served twice, and another one has followed."""
    used = []

    def another_one_follows():
        used.append(connection())
        return {a == b for a, b in pairwise(used)} == {True, False}

    wait_until(another_one_follows)


def test_connections_to_http_sources_and_the_identity_provider_end():
    with ThreadingHTTPServer((HOST, 0), PortOfClient) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url, get = f"http://{HOST}:{server.server_port}", HttpCall("GET", "/")
        with closing(HttpClient(url, SECONDS)) as client:
            check_lifetime(lambda: client.send(get, {}, Deadline(30)).json())
        check_lifetime(ProviderEndpoint(url, 30, SECONDS).fetch)
        server.shutdown()


def test_connections_to_redis_end(redis_server):
    Thread(target=end_connections, args=(SECONDS,), daemon=True).start()
    with connect(redis_server.url) as client:

        def connection():
            try:
                return client.client_id()
            except redis.TimeoutError:
                # On a busy machine Redis may be late.
                return connection()

        check_lifetime(connection)
