"""Patient: search (spec 4.4; decision 9) and read."""

from flask import Blueprint, Response

from adapters.contract import ResourceType
from app.views.common import authenticated, read_resource, search_resources

blueprint = Blueprint("patient", __name__)


@blueprint.get("/Patient")
@blueprint.post("/Patient/_search")
@authenticated
def search() -> Response:
    """Search patients."""
    return search_resources(ResourceType.PATIENT)


@blueprint.get("/Patient/<id>")
@authenticated
def read(id: str) -> Response:
    """Read one patient."""
    return read_resource(ResourceType.PATIENT, id)
