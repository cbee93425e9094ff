"""WSGI applications of the demo on loopback, without a line for each request.

A connection serves one request after another, as those of most hospital systems do:
werkzeug's own handler ends it with each answer.
"""

from io import BytesIO
from typing import TYPE_CHECKING

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Response

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

HOST = "127.0.0.1"
IDLE_SECONDS = 60
"""How long a connection is kept on which nothing comes."""


class _KeepingHandler(WSGIRequestHandler):
    """Keep the connection, and say nothing of a request that was answered."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    wbufsize = -1
    disable_nagle_algorithm = True

    def run_wsgi(self) -> None:
        """Answer one request; what it sent is read whole, or the next would begin in it."""
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal():
            self.send_error(411)
            return
        environ = self.make_environ()
        environ["wsgi.input"] = BytesIO(self.rfile.read(int(length)))
        answer = Response.from_app(self.server.app, environ, buffered=True)
        body = answer.get_data()
        self.send_response(answer.status_code)
        for name, value in answer.get_wsgi_headers(environ).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


def serve(app: "WSGIApplication", port: int, name: str) -> None:
    """Say where the application answers, and serve it until the process is told to stop.

    Port 0 is one that nobody has.
    """
    server = make_server(
        HOST, port, app, threaded=True, request_handler=_KeepingHandler
    )
    print(f"{name} answers at http://{HOST}:{server.port}", flush=True)
    server.serve_forever()
