"""The floor: bare Flask with bodies as large as ours."""

from functools import cache

from flask import Flask, Response

CONTENT_TYPE = "application/fhir+json"


def create_app() -> Flask:
    """Return the application; the path is the size of the body."""
    app = Flask(__name__)

    @cache
    def body(size: int) -> bytes:
        return b"x" * size

    @app.route("/<int:size>", methods=["GET", "POST"])
    def answer(size: int) -> Response:
        return Response(body(size), content_type=CONTENT_TYPE)

    return app
