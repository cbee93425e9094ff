"""WSGI applications of the demo on loopback, without a line for each request."""

from flask import Flask
from werkzeug.serving import WSGIRequestHandler, make_server

HOST = "127.0.0.1"


class _QuietHandler(WSGIRequestHandler):
    """Say nothing of a request that was answered; faults are still logged."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


def serve(app: Flask, port: int) -> None:
    """Serve until the process is told to stop."""
    make_server(
        HOST, port, app, threaded=True, request_handler=_QuietHandler
    ).serve_forever()
