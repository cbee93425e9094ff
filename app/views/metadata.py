"""The CapabilityStatement, OpenAPI, and the answer to requests for history (spec 9)."""

from flask import Blueprint, Response, request

from app.errors import UnknownResourceError
from app.fhir.capability import capability_statement
from app.middleware import check_format
from app.openapi import openapi
from app.search.parser import PRESENTATION, read_single_values, read_summary
from app.service import current_service
from app.views import authenticated, fhir_response, is_lenient, request_parameters

blueprint = Blueprint("metadata", __name__)


@blueprint.get("/metadata")
def metadata() -> Response:
    """Return the CapabilityStatement; it holds no patient data (decision 22)."""
    is_open = current_service().settings.open_metadata
    return _statement() if is_open else authenticated(_statement)()


def _statement() -> Response:
    service = current_service()
    single = read_single_values(
        request_parameters(), PRESENTATION, lenient=is_lenient()
    )
    # A statement is returned whole, whatever the value.
    read_summary(single)
    check_format(single.get("_format"), request.headers.get("Accept"))
    statement = capability_statement(
        service.offer, service.settings.base_url, service.title, service.offered_since
    )
    return fhir_response(statement, single)


@blueprint.get("/openapi.json")
def description() -> Response:
    """Return the OpenAPI description; it is as open as the CapabilityStatement."""
    is_open = current_service().settings.open_metadata
    return _description() if is_open else authenticated(_description)()


def _description() -> Response:
    service = current_service()
    single = read_single_values(request_parameters(), ("_pretty",))
    settings = service.settings
    body = openapi(service.offer, settings.base_url, service.title, settings.token_url)
    response = fhir_response(body, single)
    response.content_type = "application/json;charset=UTF-8"
    return response


@blueprint.get("/<resource_type>/<id>/_history")
@blueprint.get("/<resource_type>/<id>/_history/<version>")
def history(resource_type: str, id: str, version: str = "") -> Response:  # noqa: ARG001
    """Refuse: versions are not stored (FHIR STU3 http, vread)."""
    raise UnknownResourceError("History is not supported: versions are not kept.")
