"""Encounter: search (spec 4.1) and read (spec 4.2)."""

from flask import Blueprint, Response

from adapters.contract import ResourceType
from app.views.common import authenticated, read_resource, search_resources

blueprint = Blueprint("encounter", __name__)


@blueprint.get("/Encounter")
@blueprint.post("/Encounter/_search")
@authenticated
def search() -> Response:
    """Search stays."""
    return search_resources(ResourceType.ENCOUNTER)


@blueprint.get("/Encounter/<id>")
@authenticated
def read(id: str) -> Response:
    """Read one stay."""
    return read_resource(ResourceType.ENCOUNTER, id)
