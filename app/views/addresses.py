"""Where resources are: `_search` stands where an id would, and is no id."""

from flask import Blueprint
from flask.blueprints import BlueprintSetupState
from werkzeug.routing import BaseConverter


class _Segment(BaseConverter):
    """A part of an address that may be an id; whether it is one, who reads it is told."""

    regex = r"(?!_search\Z)[^/]+"
    part_isolating = True


def resource_blueprint(name: str, module: str) -> Blueprint:
    """Return where the views of a resource are hung in.

    `_search` is POST's alone there: any other method is 405, and `Allow` says so.
    """
    blueprint = Blueprint(name, module)
    blueprint.record(_keep_searches_apart)
    return blueprint


def _keep_searches_apart(state: BlueprintSetupState) -> None:
    # Before the routes are made: the name is that of `<id>` without a converter.
    state.app.url_map.converters["default"] = _Segment
