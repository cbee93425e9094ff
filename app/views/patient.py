"""Patient: search (spec 4.4; decision 9) and read."""

from flask import Response

from adapters.contract import ResourceType
from app.views.addresses import resource_blueprint
from app.views.common import authenticated, read_resource, search_resources

blueprint = resource_blueprint("patient", __name__)


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
