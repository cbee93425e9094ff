"""A service that has a bad day: it answers what a test tells it to, in that order."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.live import HOST


class Reply(NamedTuple):
    """What is answered to one request; `{base}` in a body is the server's address."""

    status: int = 200
    body: Any = None
    retry_after: str = ""


@dataclass
class Script:
    """The replies that are left, and what was asked."""

    port: int
    replies: list[Reply]
    asked: list[str] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        """The address of the service."""
        return f"http://{HOST}:{self.port}/fhir/v3"

    def client(self) -> dict[str, str]:
        """Return the variables that the runnable clients want."""
        return {
            "BASE_URL": self.base_url,
            "TOKEN_URL": f"http://{HOST}:{self.port}/token",
            "AUDIENCE": "somebody",
            "CLIENT_ID": "client-1",
            "CLIENT_SECRET": "a secret, with & and =",
        }


def page(ids: Sequence[int], total: int, next_link: str = "") -> dict[str, Any]:
    """Return a page of stays."""
    link = [{"relation": "self", "url": "{base}/Bundle?_id=a"}]
    if next_link:
        link.append({"relation": "next", "url": next_link})
    entry = [
        {
            "resource": {"resourceType": "Encounter", "id": str(id)},
            "search": {"mode": "match"},
        }
        for id in ids
    ]
    return {"resourceType": "Bundle", "total": total, "link": link, "entry": entry}


@contextmanager
def scripted(*replies: Reply) -> Iterator[Script]:
    """Answer requests with `replies`, the last one again and again; tokens are given freely."""
    script = Script(0, list(replies))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._form = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer()

        def _answer(self) -> None:
            if self.path == "/token":
                self._send(Reply(body={"access_token": "a-token"}))
                return
            script.asked.append(f"{self.command} {self.path}")
            more = len(script.replies) > 1
            self._send(script.replies.pop(0) if more else script.replies[0])

        def _send(self, reply: Reply) -> None:
            text = json.dumps(reply.body or {"resourceType": "OperationOutcome"})
            body = text.replace("{base}", script.base_url).encode()
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(body)))
            if reply.retry_after:
                self.send_header("Retry-After", reply.retry_after)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    script.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
