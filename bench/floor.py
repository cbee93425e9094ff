"""The floor: bare Flask with a constant body for each scenario, as large as our answers.

`FLOOR_BODIES` is a directory with one file a scenario.
"""

import os
from functools import cache
from pathlib import Path

from flask import Flask, Response

CONTENT_TYPE = "application/fhir+json"


def create_app() -> Flask:
    """Return the application; each scenario has a path of its name."""
    app = Flask(__name__)
    place = Path(os.environ["FLOOR_BODIES"])

    @cache
    def body(scenario: str) -> bytes:
        return (place / scenario).read_bytes()

    @app.route("/<scenario>", methods=["GET", "POST"])
    def answer(scenario: str) -> Response:
        return Response(body(scenario), content_type=CONTENT_TYPE)

    return app
