"""The views, and what they share: authentication, parameters, responses."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import ParamSpec

import orjson
from flask import Response, g, request
from werkzeug.exceptions import NotImplemented as TransferCodingError
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.routing import BaseConverter

from adapters.contract import ResourceType
from app.audit import note_pairs
from app.errors import BadRequestError, UnsupportedMediaTypeError
from app.fhir.datatypes import Element
from app.middleware import CONTENT_TYPE, requester
from app.search.parser import Parameters, decode_form
from app.service import current_service
from app.stages import PERSON, Stage, stage

READ_SCOPES: Mapping[ResourceType, str] = {
    ResourceType.ENCOUNTER: "ENCOUNTER_READ",
    ResourceType.PATIENT: "PATIENT_READ",
    ResourceType.ORGANIZATION: "ORGANIZATION_READ",
}
"""The scope that reading requires (spec 5.2)."""

SEARCH_SCOPES: Mapping[ResourceType, str] = {
    ResourceType.ENCOUNTER: "ENCOUNTER_SEARCH",
    ResourceType.PATIENT: "PATIENT_SEARCH",
    ResourceType.ORGANIZATION: "ORGANIZATION_READ",
}
"""The scope that searching requires (spec 5.2; decision 9 for Organization)."""

_FORM = "application/x-www-form-urlencoded"

_P = ParamSpec("_P")


class Segment(BaseConverter):
    """A part of a path that may be an id: any but `_search`, which is only for POST.

    Other methods on `_search` get 405, and `Allow` says so.
    """

    regex = r"(?!_search\Z)[^/]+"
    part_isolating = True


def authenticated(view: Callable[_P, Response]) -> Callable[_P, Response]:
    """Run a view only for a client with a valid token, which becomes `g.client`.

    The rate limit counts each request once: for its client if the token was verified
    before, else, before anything is verified, for the address that it comes from.
    """

    @wraps(view)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> Response:
        service = current_service()
        header = request.headers.get("Authorization")
        client = service.authenticator.recall(header)
        if client is not None:
            g.client = client
            service.throttle.count_client(client.id)
        else:
            address = requester(service.settings.trusted_proxies)
            service.throttle.count_address(address)
            g.client = service.authenticator.authenticate(header)
        if person := request.environ.get(PERSON):
            # Pages belong to the person, and the audit trail names them.
            g.client = replace(g.client, id=f"{g.client.id}/{person}")
        return view(*args, **kwargs)

    return wrapped


def request_parameters() -> Parameters:
    """Return the parameters of the query string and, for a POST, of the form after them.

    Raises UnsupportedMediaTypeError for a body that is not a form, BadRequestError for a
    GET with a body: a filter in it would be ignored. A compressed body gets 501
    (RFC 9112, 6.1).
    """
    parameters = decode_form(request.query_string)
    note_pairs(parameters)
    if request.method != "POST":
        if request.content_length or "Transfer-Encoding" in request.headers:
            raise BadRequestError(
                "A GET has no body: its parameters are in the address."
            )
        return parameters
    if request.headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
        # The server undoes chunks and no compression: what is left is no form.
        raise TransferCodingError
    body = request.get_data(cache=False)
    # Flask silently cuts a body without a length at the limit: filters would be ignored.
    stream = request.environ["wsgi.input"]
    if len(body) == request.max_content_length and stream.read(1):
        raise RequestEntityTooLarge
    if body or request.mimetype:
        _check_form()
    parameters = [*parameters, *decode_form(body)]
    note_pairs(parameters)
    return parameters


def _check_form() -> None:
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    if (request.mimetype, charset) != (_FORM, "utf-8"):
        raise UnsupportedMediaTypeError(
            f"A search is posted as {_FORM} in UTF-8.", "http.Content-Type"
        )
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise UnsupportedMediaTypeError(
            "A search is posted as it is, without a Content-Encoding.",
            "http.Content-Encoding",
        )


def is_lenient() -> bool:
    """Whether the client wants unknown parameters ignored (decision 2)."""
    header = request.headers.get("Prefer")
    if header is None:
        return False
    preferences = re.split("[,;]", re.sub('[ "]', "", header).lower())
    handling = [each for each in preferences if each.startswith("handling=")]
    # The first one counts (RFC 7240, 2).
    return handling[:1] == ["handling=lenient"]


def fhir_response(resource: Element, parameters: Mapping[str, str]) -> Response:
    """Return a resource as JSON, indented where `_pretty` is true."""
    with stage(Stage.WRITE):
        pretty = parameters.get("_pretty") == "true"
        body = orjson.dumps(resource, option=orjson.OPT_INDENT_2 if pretty else 0)
    return Response(body, content_type=CONTENT_TYPE)
