"""WSGI applications of the demo on loopback, without a line for each request."""

from typing import TYPE_CHECKING

from werkzeug.serving import WSGIRequestHandler, make_server

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

HOST = "127.0.0.1"


class _QuietHandler(WSGIRequestHandler):
    """Say nothing of a request that was answered."""

    protocol_version = "HTTP/1.1"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


def serve(app: "WSGIApplication", port: int, name: str) -> None:
    """Say where the application answers, and serve it until the process is told to stop.

    Port 0 is one that nobody has.
    """
    server = make_server(HOST, port, app, threaded=True, request_handler=_QuietHandler)
    print(f"{name} answers at http://{HOST}:{server.port}", flush=True)
    server.serve_forever()
