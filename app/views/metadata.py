"""What the deployment offers, and what it says where there is nothing (spec 9)."""

import orjson
from flask import Blueprint, Response

from app.current import sent
from app.errors import UnknownResourceError
from app.negotiation import check_format
from app.operations.phases import Phase, phase
from app.presentation import PRESENTATION, read_summary
from app.schemas.capability import capability_statement
from app.search import read_single_values
from app.service import service
from app.statement import capability_facts
from app.views.asked import is_lenient, request_pairs
from app.views.common import answer, authenticated

blueprint = Blueprint("metadata", __name__)


@blueprint.get("/metadata")
def metadata() -> Response:
    """Show the CapabilityStatement; it holds no patient data (decision 22)."""
    return _statement() if service().settings.open_metadata else _guarded()


@authenticated
def _guarded() -> Response:
    return _statement()


def _statement() -> Response:
    joined = service()
    single = read_single_values(request_pairs(), PRESENTATION, lenient=is_lenient())
    read_summary(single)  # a statement is shown whole, whatever its value
    check_format(single.get("_format"), sent("HTTP_ACCEPT"))
    facts = capability_facts(
        joined.offer, joined.settings.base_url, joined.title, joined.offered_since
    )
    with phase(Phase.WRITE):
        written = orjson.dumps(capability_statement(facts))
    return answer(written, single)


@blueprint.get("/<resource_type>/<id>/_history")
@blueprint.get("/<resource_type>/<id>/_history/<version>")
def history(resource_type: str, id: str, version: str = "") -> Response:  # noqa: ARG001
    """Tell that versions are not kept (FHIR STU3 http, vread)."""
    raise UnknownResourceError("History is not supported: versions are not kept.")
