"""The floor: bare Flask with a constant body for each scenario, as large as our answers.

`FLOOR_BODIES` is a directory with one file a scenario.
"""

import os
from pathlib import Path

from flask import Flask, Response

CONTENT_TYPE = "application/fhir+json"


def create_app() -> Flask:
    """Return the application; each scenario has a path of its name."""
    app = Flask(__name__)
    bodies = {
        file.name: file.read_bytes()
        for file in Path(os.environ["FLOOR_BODIES"]).iterdir()
    }

    @app.route("/<scenario>", methods=["GET", "POST"])
    def answer(scenario: str) -> Response:
        return Response(bodies[scenario], content_type=CONTENT_TYPE)

    return app
