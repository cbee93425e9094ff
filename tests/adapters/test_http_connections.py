"""A source that keeps its connections is asked over one, however it frames its answers."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from adapters.http.client import Call, Client, Deadline
from tests.live import HOST

BODY = b'{"resultats": []}' * 9000


class _Keeping(BaseHTTPRequestHandler):
    """Answers as its path says; the server counts the connections that it takes."""

    protocol_version = "HTTP/1.1"
    server: "_Counting"

    def setup(self) -> None:
        self.server.taken += 1
        super().setup()

    def do_GET(self) -> None:
        self.send_response(404 if self.path == "/missing" else 200)
        if self.path == "/chunked":
            self.send_header("Transfer-Encoding", "chunked")
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
        else:
            self.send_header("Content-Length", str(len(BODY)))
            body = BODY
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Counting(ThreadingHTTPServer):
    daemon_threads = True
    taken = 0


@pytest.fixture
def server() -> Iterator[_Counting]:
    with _Counting((HOST, 0), _Keeping) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("path", ["/counted", "/chunked", "/missing"])
def test_one_connection_carries_all_requests(server: _Counting, path: str) -> None:
    client = Client(f"http://{HOST}:{server.server_port}", connections=2, wait=1)
    for _ in range(5):
        assert client.send(Call("GET", path), {}, Deadline(10)).body == BODY
    client.close()
    assert server.taken == 1
