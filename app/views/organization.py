"""Organization: search and read (decision 9)."""

from flask import Blueprint, Response

from adapters.contract import ResourceType
from app.views.common import authenticated, read_resource, search_resources

blueprint = Blueprint("organization", __name__)


@blueprint.get("/Organization")
@blueprint.post("/Organization/_search")
@authenticated
def search() -> Response:
    """Search healthcare structures."""
    return search_resources(ResourceType.ORGANIZATION)


@blueprint.get("/Organization/<id>")
@authenticated
def read(id: str) -> Response:
    """Read one healthcare structure."""
    return read_resource(ResourceType.ORGANIZATION, id)
