"""The requests of the interface: search, page, read, and what the deployment offers.

A view shows its stages in order: parse, source, redis, map, write. What the access line
and the audit event need of the request it leaves in its `Call`.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from email.utils import formatdate
from functools import lru_cache, wraps
from hashlib import blake2b, sha256
from http import HTTPStatus
from typing import Concatenate, ParamSpec
from urllib.parse import unquote_to_bytes
from uuid import NAMESPACE_URL, uuid5

import orjson
from flask import Blueprint, Flask, Response, current_app, request
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import NotImplemented as TransferCodingError
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import parse_accept_header, parse_options_header
from werkzeug.routing import BaseConverter
from werkzeug.sansio.http import is_resource_modified

from adapters.contract import Record, ResourceType, RowFault, SourceDataError
from app.auth import Scope, require, scopes_of
from app.call import CALL, Call, Stage
from app.config import BASE_PATH
from app.crypto import is_well_formed
from app.error_responses import CONTENT_TYPE
from app.errors import (
    BadRequestError,
    BadValueError,
    IssueCode,
    NotAcceptableError,
    UnknownResourceError,
    UnsupportedMediaTypeError,
)
from app.fhir.bundle import BUNDLE, SearchSet, entry
from app.fhir.capability import capability_statement
from app.fhir.outcome import OUTCOME, Issue
from app.fhir.resources import Element
from app.fhir.summary import WHOLE, cut
from app.in_process import PERSON
from app.middleware import requester
from app.observability import count_row_fault
from app.openapi import openapi
from app.paging import Direction, PageLink, ResultPage
from app.search.parser import (
    PRESENTATION,
    Parameters,
    Search,
    decode_form,
    parse_search,
    read_presentation,
    read_single_values,
    read_summary,
)
from app.search.types import ID_FORM, bad_value, is_id
from app.service import EXTENSION, Service

SEARCH_SCOPES: Mapping[ResourceType, Scope] = {
    ResourceType.ENCOUNTER: Scope.ENCOUNTER_SEARCH,
    ResourceType.PATIENT: Scope.PATIENT_SEARCH,
    ResourceType.ORGANIZATION: Scope.ORGANIZATION_READ,
}
"""The scope that searching requires (spec 5.2; decision 9 for Organization)."""

READ_SCOPES: Mapping[ResourceType, Scope] = {
    ResourceType.ENCOUNTER: Scope.ENCOUNTER_READ,
    ResourceType.PATIENT: Scope.PATIENT_READ,
    ResourceType.ORGANIZATION: Scope.ORGANIZATION_READ,
}
"""The scope that a resource requires which is read, or included in a page (decision 36)."""

_FORM = "application/x-www-form-urlencoded"
_FHIR_JSON = "application/fhir+json"
_PLAIN_JSON = "application/json;charset=UTF-8"
_FHIR_VERSION = "3.0"
_FHIR_VERSIONS = frozenset({_FHIR_VERSION, "3.0.1", "3.0.2"})
"""One release of FHIR under three names (decision 38)."""
_ASCII_CHARSETS = frozenset(
    {"us-ascii", "ascii", "iso-8859-1", "iso-8859-15", "windows-1252"}
)
"""Charsets in which ASCII text has the same bytes as in UTF-8: such a form is accepted."""
_JSON = frozenset(
    {_FHIR_JSON, "application/json", "application/json+fhir", "text/json"}
)
# A + that was not escaped arrives as a blank.
_FORMATS = _JSON | {"json", "application/fhir json", "application/json fhir"}

_LINKS = {
    Direction.BEFORE: ("previous", "_searchBefore"),
    Direction.AFTER: ("next", "_searchAfter"),
}
"""Relation and cursor of each link of a page (spec 4.3)."""
_CURSORS = {cursor: direction for direction, (_, cursor) in _LINKS.items()}
_WITHOUT_PAGING = ("_id", "_format", "_pretty")
"""The parameters that a deployment without paging lists as offered. It reads cursors all
the same: a client may have invented them, or got them while there was paging.
"""
_PAGE = ("_id", "_index", "_searchAfter", "_searchBefore", "_format", "_pretty")
_INDEX = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)

_CONDITIONS = frozenset(
    f"HTTP_IF_{name}"
    for name in ("MATCH", "NONE_MATCH", "MODIFIED_SINCE", "UNMODIFIED_SINCE")
)
"""The headers of a conditional request (RFC 9110, 13.1), as WSGI names them."""

_P = ParamSpec("_P")

_log = logging.getLogger(__name__)


class PathSegment(BaseConverter):
    """A part of a path that may be an id: any but `_search`, which is only for POST.

    Other methods on `_search` get 405 with `Allow`.
    """

    regex = r"(?!_search\Z)[^/]+"
    part_isolating = True


fhir = Blueprint("fhir", __name__, url_prefix=BASE_PATH)


def register_views(app: Flask) -> None:
    """Add the routes to the service; logs and metrics name requests by them."""
    app.url_map.merge_slashes = False
    app.url_map.converters["default"] = PathSegment
    app.register_blueprint(fhir)


def fhir_view(
    *scopes: Scope, is_open: bool = False
) -> Callable[[Callable[Concatenate[Call, _P], Response]], Callable[_P, Response]]:
    """Pass a view the `Call` of its request, of a client with one of the scopes.

    The client needs a valid token. An open view shows no patient data: everybody may call
    it if a setting allows that (decision 22).
    """

    def decorate(
        view: Callable[Concatenate[Call, _P], Response],
    ) -> Callable[_P, Response]:
        @wraps(view)
        def answer(*args: _P.args, **kwargs: _P.kwargs) -> Response:
            call: Call = request.environ[CALL]
            call.service = current_app.extensions[EXTENSION]
            call.route = str(request.url_rule)
            call.view = view.__name__
            call.resource_id = str(kwargs.get("id", ""))
            if not (is_open and call.service.settings.open_metadata):
                authenticate(call)
                if scopes:
                    require(call.client, *scopes)
            return view(call, *args, **kwargs)

        return answer

    return decorate


def authenticate(call: Call) -> None:
    """Find the client of a call, and count the request once.

    It counts for its client if the token was verified before; else, before anything is
    verified, for the address that it comes from. Raises UnauthenticatedError,
    TooManyRequests, UnavailableError.
    """
    service = call.service
    header = call.header("AUTHORIZATION")
    client = service.authenticator.recall(header)
    if client is not None:
        call.client_id = client.id
        service.throttle.count_client(client.id)
    else:
        address = requester(call.environ, service.settings.trusted_proxies)
        service.throttle.count_address(address)
        client = service.authenticator.authenticate(header)
    person = call.environ.get(PERSON)
    if person and not client.id.endswith(f"/{person}"):
        # Pages belong to the person, and the audit trail names them. Most tokens do, too.
        client = replace(client, id=f"{client.id}/{person}")
    call.client = client
    call.client_id = client.id


# The calls of the interface


@fhir.get("/Encounter")
@fhir.post("/Encounter/_search")
@fhir_view(Scope.ENCOUNTER_SEARCH)
def search_encounters(call: Call) -> Response:
    """Answer a search for encounters (spec 4.1)."""
    return search(call, ResourceType.ENCOUNTER)


@fhir.get("/Patient")
@fhir.post("/Patient/_search")
@fhir_view(Scope.PATIENT_SEARCH)
def search_patients(call: Call) -> Response:
    """Answer a search for patients (spec 4.4, decision 9)."""
    return search(call, ResourceType.PATIENT)


@fhir.get("/Organization")
@fhir.post("/Organization/_search")
@fhir_view(Scope.ORGANIZATION_READ)
def search_organizations(call: Call) -> Response:
    """Answer a search for organizations (decision 9)."""
    return search(call, ResourceType.ORGANIZATION)


@fhir.get("/Encounter/<id>")
@fhir_view(READ_SCOPES[ResourceType.ENCOUNTER])
def read_encounter(call: Call, id: str) -> Response:
    """Answer the read of an encounter (spec 4.2)."""
    return read(call, ResourceType.ENCOUNTER, id)


@fhir.get("/Patient/<id>")
@fhir_view(READ_SCOPES[ResourceType.PATIENT])
def read_patient(call: Call, id: str) -> Response:
    """Answer the read of a patient (decision 9)."""
    return read(call, ResourceType.PATIENT, id)


@fhir.get("/Organization/<id>")
@fhir_view(READ_SCOPES[ResourceType.ORGANIZATION])
def read_organization(call: Call, id: str) -> Response:
    """Answer the read of an organization (decision 9)."""
    return read(call, ResourceType.ORGANIZATION, id)


# Which of the scopes is needed is known only once the page is (decision 32).
@fhir.get("/Bundle")
@fhir_view(*dict.fromkeys(SEARCH_SCOPES.values()))
def page(call: Call) -> Response:
    """Answer the page `_id`, or the page that its link leads to (decisions 10 and 14)."""
    service = call.service
    offered = _PAGE if service.offer.paging else _WITHOUT_PAGING
    single = _single_values(call, _PAGE, offered)
    link = _page_link(single)
    call.enter(Stage.REDIS)
    stored = service.sessions.store.load(single["_id"], call.client.id, link)
    call.page_of = stored.search.resource_type, stored.search.parameters
    require(call.client, SEARCH_SCOPES[stored.search.resource_type])
    call.enter(Stage.PARSE)
    query = service.sessions.parse(stored.search)
    _require_linked(call, query)
    result = service.sessions.resume(call, stored, query)
    ignored = [name for name in dict(call.parameters) if name not in single]
    return _page_response(call, result, single, ignored)


@fhir.get("")
@fhir.get("/.well-known/smart-configuration")
@fhir_view(is_open=True)
def discovery(call: Call) -> Response:
    """Return where tokens and descriptions are (decision 39; SMART App Launch 2, section 8)."""
    single = _single_values(call, ("_format", "_pretty"))
    settings = call.service.settings
    document: Element = {
        "grant_types_supported": ["client_credentials"],
        "scopes_supported": list(scopes_of(settings.scopes)),
        "capabilities": ["client-confidential-symmetric"],
        "capability_statement": f"{settings.base_url}/metadata",
        "openapi": f"{settings.base_url}/openapi.json",
    }
    if settings.token_url:
        document = {"token_endpoint": settings.token_url, **document}
    return Response(_json(document, single), content_type=_PLAIN_JSON)


@fhir.get("/metadata")
@fhir_view(is_open=True)
def metadata(call: Call) -> Response:
    """Return the CapabilityStatement."""
    single = _single_values(call, PRESENTATION)
    # A statement is returned whole, whatever the value.
    read_summary(single)
    service = call.service
    statement = capability_statement(
        service.offer,
        service.settings.base_url,
        service.title,
        service.offered_since,
        zone=str(service.context.zone),
        unit_extension=service.context.functional_unit_extension,
        token_url=service.settings.token_url,
    )
    return Response(_json(statement, single), content_type=CONTENT_TYPE)


@fhir.get("/openapi.json")
@fhir_view(is_open=True)
def description(call: Call) -> Response:
    """Return the OpenAPI description."""
    single = read_single_values(_parameters(call), ("_pretty",))
    service = call.service
    settings = service.settings
    body = openapi(
        service.offer,
        settings.base_url,
        service.title,
        scopes_of(settings.scopes),
        settings.token_url,
    )
    return Response(_json(body, single), content_type=_PLAIN_JSON)


@fhir.get("/<resource_type>/<id>/_history")
@fhir.get("/<resource_type>/<id>/_history/<version>")
def history(resource_type: str, id: str, version: str = "") -> Response:  # noqa: ARG001
    """Refuse: versions are not stored (FHIR STU3 http, vread)."""
    call: Call = request.environ[CALL]
    call.route = str(request.url_rule)
    call.view = "history"
    call.resource_id = id
    raise UnknownResourceError("History is not supported: versions are not stored.")


# Search and read, of any type


def search(call: Call, kind: ResourceType) -> Response:
    """Answer a new search, in either form (spec 4.1, decision 1)."""
    service = call.service
    offer = service.offer.resources.get(kind)
    if offer is None or not offer.searchable:
        raise UnknownResourceError(f"{kind} is not searched here.")
    parameters = _parameters(call)
    lenient = _is_lenient(call)
    query = parse_search(parameters, offer, service.context, lenient=lenient)
    _require_linked(call, query)
    single = dict(parameters)
    _check_format(call, single)
    result = service.sessions.begin(call, query, parameters, lenient=lenient)
    return _page_response(call, result, single)


def read(call: Call, kind: ResourceType, id: str) -> Response:
    """Answer a read, or 304 where nothing has changed (spec 4.2, decision 19)."""
    service = call.service
    single = _single_values(call, PRESENTATION)
    presentation = read_presentation(single, kind)
    if kind not in service.offer.resources:
        raise UnknownResourceError(f"There is no such {kind}.")
    if not is_id(id):
        raise UnknownResourceError(f"There is no such {kind}: {ID_FORM}.")
    call.enter(Stage.SOURCE)
    try:
        record = service.adapter.read(kind, id)
    except SourceDataError as error:
        if error.fault is not None:
            count_row_fault(kind, error.fault)
        raise
    call.rows = (record,)
    call.enter(Stage.MAP)
    resource = service.schemas[kind].dump(record)
    if presentation != WHOLE:
        resource = cut(resource, presentation)
    call.enter(Stage.WRITE)
    body = _json(resource, single)
    response = Response(body, content_type=CONTENT_TYPE)
    changed = record.last_updated if service.offer.resources[kind].dated else None
    if changed is not None:
        response.headers["Last-Modified"] = formatdate(changed.timestamp(), usegmt=True)
    response.headers["ETag"] = f'W/"{sha256(body).hexdigest()[:32]}"'
    if not _CONDITIONS.isdisjoint(call.environ):
        _apply_conditions(response)
    return response


# Parse


def _require_linked(call: Call, search: Search) -> None:
    """Raise InsufficientScopeError unless the client may see the other types of a search.

    These are what is included, and the patients that are searched first.
    """
    if search.patients:
        require(call.client, SEARCH_SCOPES[ResourceType.PATIENT])
    for include in search.includes:
        require(call.client, READ_SCOPES[include.target])


def _parameters(call: Call) -> Parameters:
    """Return the parameters of the query string and, for a POST, of the form after them.

    Raises UnsupportedMediaTypeError for a body that is not a form, BadRequestError for a
    GET with a body: a filter in it would be ignored. A compressed body gets 501
    (RFC 9112, 6.1).
    """
    environ = call.environ
    query = environ.get("QUERY_STRING", "").encode("latin-1")
    parameters = decode_form(query) if query else []
    # Already now: a request that is refused below is audited with them.
    call.parameters = parameters
    coding = environ.get("HTTP_TRANSFER_ENCODING")
    if environ["REQUEST_METHOD"] != "POST":
        if request.content_length or coding is not None:
            raise BadRequestError("A GET has no body: send parameters in the address.")
        return parameters
    if coding is not None and coding.lower() != "chunked":
        # The server undoes chunks and no compression: what is left is no form.
        raise TransferCodingError
    try:
        body = request.get_data(cache=False)
        # Flask silently cuts a body without a length at the limit: filters would be ignored.
        is_full = len(body) == request.max_content_length
        is_cut = is_full and environ["wsgi.input"].read(1)
    except ParseException as error:
        raise BadRequestError("The chunks of the body are malformed.") from error
    if is_cut:
        raise RequestEntityTooLarge
    if body or request.mimetype:
        _check_form(body)
    call.parameters = [*parameters, *decode_form(body)]
    return call.parameters


def _check_form(body: bytes) -> None:
    """Raise UnsupportedMediaTypeError for what is no form, or one in another charset.

    In any charset the same bytes stand for ASCII, which most forms are (decision 38).
    """
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    is_readable = charset in ("utf-8", "utf8") or (
        charset in _ASCII_CHARSETS and unquote_to_bytes(body).isascii()
    )
    if request.mimetype != _FORM or not is_readable:
        raise UnsupportedMediaTypeError(
            f"Post a search as {_FORM} in UTF-8.", "http.Content-Type"
        )
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise UnsupportedMediaTypeError(
            "Post a search without a Content-Encoding.",
            "http.Content-Encoding",
        )


def _single_values(
    call: Call, allowed: Sequence[str], offered: Sequence[str] = ()
) -> Mapping[str, str]:
    """Return the parameters of a request without filters, once JSON is accepted."""
    single = read_single_values(
        _parameters(call), allowed, lenient=_is_lenient(call), offered=offered
    )
    _check_format(call, single)
    return single


def _is_lenient(call: Call) -> bool:
    """Whether the client wants unknown parameters ignored (decision 2)."""
    header = call.header("PREFER")
    if header is None:
        return False
    preferences = re.split("[,;]", re.sub('[ "]', "", header).lower())
    handling = [text for text in preferences if text.startswith("handling=")]
    # The first one counts (RFC 7240, 2).
    return handling[:1] == ["handling=lenient"]


def _check_format(call: Call, single: Mapping[str, str]) -> None:
    """Raise NotAcceptableError unless the client accepts JSON of STU3 (decision 27).

    `_format` wins over `Accept` (FHIR STU3 http).
    """
    if "_format" in single:
        source = "_format"
        name, options = parse_options_header(single["_format"])
        is_accepted = name.lower() in _FORMATS and _is_stu3(options)
    else:
        source = "Accept"
        accept = call.header("ACCEPT")
        is_accepted = not accept or _accepts_json(accept)
    if not is_accepted:
        served = f"Responses are {_FHIR_JSON} of FHIR version {_FHIR_VERSION}."
        raise NotAcceptableError(served, f"http.{source}")


@lru_cache
def _accepts_json(accept: str) -> bool:
    """Return whether the media ranges accept JSON; the narrowest decides (RFC 9110, 12.5.1).

    Other names of JSON count as ours, and so does `text/*`, which includes one. A range of
    another version of FHIR is none of ours.
    """
    ranges = (
        (*parse_options_header(text), weight)
        for text, weight in parse_accept_header(accept)
    )
    accepted = {
        name.lower(): weight > 0
        for name, options, weight in ranges
        if _is_stu3(options)
    }
    if _FHIR_JSON in accepted:
        return accepted[_FHIR_JSON]
    if any(accepted.get(kind) for kind in (*_JSON, "text/*")):
        return True
    return accepted.get("application/*", accepted.get("*/*", False))


def _is_stu3(options: Mapping[str, str]) -> bool:
    return options.get("fhirversion", _FHIR_VERSION) in _FHIR_VERSIONS


def _page_link(single: Mapping[str, str]) -> PageLink | None:
    """Return the link that a request follows, None for a request of a page by its id alone.

    Raises BadRequestError for a parameter that is missing, BadValueError for a bad value.
    """
    cursors = [name for name in _CURSORS if name in single]
    if len(cursors) == 2 and "_id" in single:
        text = "use _searchAfter or _searchBefore, not both"
        raise bad_value("_searchBefore", single["_searchBefore"], text)
    is_link = bool(cursors) or "_index" in single
    cursor = cursors[0] if cursors else "_searchAfter"
    required = ("_id", "_index", cursor) if is_link else ("_id",)
    for name in required:
        if name not in single:
            raise BadRequestError(
                f"Parameter '{name}' is required here.",
                f"http.{name}",
                code=IssueCode.REQUIRED,
            )
    for name in ("_id", *cursors):
        if not is_well_formed(single[name]):
            text = "copy it from a link of a search, unchanged"
            raise bad_value(name, single[name], text)
    if not is_link:
        return None
    if not _INDEX.fullmatch(single["_index"]):
        text = "use the number of a page, from 1"
        raise bad_value("_index", single["_index"], text)
    return PageLink(_CURSORS[cursor], int(single["_index"]), single[cursor])


# Map and write


def _page_response(
    call: Call,
    result: ResultPage,
    single: Mapping[str, str],
    ignored: Sequence[str] = (),
) -> Response:
    """Return the response with a page; `single` are the parameters without filters."""
    call.rows = (*result.page.rows, *result.included.records)
    call.bundle = result.id
    call.enter(Stage.MAP)
    bundle = _searchset(call.service, result, ignored)
    call.enter(Stage.WRITE)
    return Response(_json(bundle, single), content_type=CONTENT_TYPE)


def _searchset(service: Service, result: ResultPage, ignored: Sequence[str]) -> Element:
    """Return the Bundle of a page: links, resources and messages (spec 2.5, 4.3).

    `ignored` names parameters of this request, besides those of the search.
    """
    base_url = service.settings.base_url
    resources = _resources(service, result.search.query.resource_type, result.page.rows)
    if (presentation := result.search.presentation) != WHOLE:
        resources = [cut(resource, presentation) for resource in resources]
    entries = _entries(base_url, resources, "match")
    for kind, rows in result.included.rows.items():
        entries += _entries(base_url, _resources(service, kind, rows), "include")
    if issues := tuple(_issues(service, result, ignored)):
        # Named by the page's own id: its self link returns the same Bundle, and two entries
        # never share a name (bdl-7).
        name = uuid5(NAMESPACE_URL, result.id).urn
        entries.append(entry(name, OUTCOME.dump(issues), "outcome"))
    address = f"{base_url}/Bundle?_id={result.id}"
    links = [("self", address)]
    for link in result.links:
        relation, cursor = _LINKS[link.direction]
        url = f"{address}&_index={link.index}&{cursor}={link.cursor}"
        links.append((relation, url))
    bundle: Element = BUNDLE.dump(SearchSet(result.id, result.total, links, entries))
    return bundle


def _resources(
    service: Service, kind: ResourceType, rows: Sequence[Record | RowFault]
) -> list[Element]:
    records = [row for row in rows if not isinstance(row, RowFault)]
    resources: list[Element] = service.schemas[kind].dump(records, many=True)
    return resources


def _entries(base_url: str, resources: Sequence[Element], mode: str) -> list[Element]:
    return [
        entry(f"{base_url}/{resource['resourceType']}/{resource['id']}", resource, mode)
        for resource in resources
    ]


def _issues(
    service: Service, result: ResultPage, ignored: Sequence[str]
) -> Iterator[Issue]:
    """Yield messages about a page, none of which is an error (decision 2)."""
    for name in dict.fromkeys((*result.search.ignored, *ignored)):
        yield Issue(
            "warning",
            IssueCode.NOT_SUPPORTED,
            f"Parameter '{name}' is not supported here and was ignored.",
            (f"http.{name}",),
        )
    if result.search.capped:
        size = result.search.query.count
        text = f"Parameter '_count' was lowered to {size}, the maximum."
        yield Issue("warning", IssueCode.VALUE, text, ("http._count",))
    matches = {result.search.query.resource_type: result.page.rows}
    for rows_by_type in (matches, result.included.rows):
        for kind, rows in rows_by_type.items():
            for row in rows:
                if isinstance(row, RowFault):
                    yield _invalid_row(service, kind, row)
    for reference in result.included.missing:
        text = f"{reference} is referenced, but does not exist."
        yield Issue("warning", IssueCode.NOT_FOUND, text)
    if result.is_uncounted:
        text = "Counting the matches takes too long: this search has no total."
        if service.offer.resources[result.search.query.resource_type].uncounted:
            text += " With _total=none, nothing is counted."
        yield Issue("information", IssueCode.TOO_COSTLY, text)
    if result.page.incomplete:
        yield Issue(
            "warning",
            IssueCode.INCOMPLETE,
            "The list of the hospital's system ended before its total: resources may be "
            "missing here.",
        )
    if result.cut_short:
        yield Issue(
            "information",
            IssueCode.INCOMPLETE,
            "There are more matches than this page shows, and this deployment has no further "
            "pages: narrow the search.",
        )


def _invalid_row(service: Service, kind: ResourceType, fault: RowFault) -> Issue:
    """Count and log an invalid row; return the issue with its reference (decision 16).

    The reference of a resource and its fault is the same each time.
    """
    count_row_fault(kind, fault)
    name = f"{kind}/{fault.id}" if fault.id else ""
    place = f"{name} {fault.field} {fault.column}".encode()
    reference = blake2b(place, key=service.reference_key, digest_size=6).hexdigest()
    data = {"reference": reference, **fault.described()}
    _log.warning("row cannot be mapped", extra={"data": data})
    return Issue(
        "warning",
        IssueCode.EXCEPTION,
        f"{name or 'One match'} cannot be shown. The operator finds the reason by reference "
        f"{reference}.",
    )


def _json(resource: Element, single: Mapping[str, str]) -> bytes:
    """Return a resource as JSON, indented where `_pretty` is true."""
    is_pretty = single.get("_pretty") == "true"
    return orjson.dumps(resource, option=orjson.OPT_INDENT_2 if is_pretty else 0)


def _apply_conditions(response: Response) -> None:
    """Make the response to a conditional request 304 where nothing has changed.

    Raises BadValueError as RFC 9110 says (13.1.1, 13.1.4). If-Match compares strong ETags,
    and ours are weak: only `*` holds, for what is there.
    """
    if_match = request.headers.get("If-Match")
    since, changed = request.if_unmodified_since, response.last_modified
    if if_match is not None:
        if if_match.strip() != "*":
            raise _precondition("If-Match", ": ETags are weak here, so only * matches")
    elif since and changed and changed > since:
        raise _precondition("If-Unmodified-Since")
    if not is_resource_modified(
        http_if_none_match=request.headers.get("If-None-Match"),
        http_if_modified_since=request.headers.get("If-Modified-Since"),
        etag=response.headers["ETag"],
        last_modified=response.headers.get("Last-Modified"),
    ):
        response.status_code = HTTPStatus.NOT_MODIFIED


def _precondition(name: str, hint: str = "") -> BadValueError:
    text = f"The precondition {name} does not hold{hint}."
    return BadValueError(text, f"http.{name}", code=IssueCode.CONFLICT)
