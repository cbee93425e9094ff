"""Encounter, Patient and Organization: search (spec 4.1, 4.4) and read (spec 4.2)."""

import logging
from collections.abc import Iterator, Sequence
from email.utils import formatdate
from functools import partial
from hashlib import blake2b, sha256
from http import HTTPStatus
from uuid import NAMESPACE_URL, uuid5

from flask import Blueprint, Response, g, request
from werkzeug.sansio.http import is_resource_modified

from adapters.contract import Record, ResourceType, RowFault, SourceDataError
from app.audit import note_page, note_record
from app.auth import require
from app.errors import BadValueError, IssueCode, UnknownResourceError
from app.fhir.bundle import Link, match_entries, outcome_entry, searchset
from app.fhir.datatypes import Element
from app.fhir.outcome import Issue
from app.fhir.summary import cut
from app.middleware import check_format
from app.observability import count_row_fault
from app.paging.session import ResultPage
from app.paging.store import Direction
from app.search.parser import (
    ID_FORM,
    PRESENTATION,
    is_id,
    parse_search,
    read_presentation,
    read_single_values,
)
from app.service import Service, current_service
from app.stages import Stage, stage
from app.views import (
    READ_SCOPES,
    SEARCH_SCOPES,
    authenticated,
    fhir_response,
    is_lenient,
    request_parameters,
)

_LINKS = {
    Direction.BEFORE: ("previous", "_searchBefore"),
    Direction.AFTER: ("next", "_searchAfter"),
}

_CONDITIONS = frozenset(
    f"HTTP_IF_{name}"
    for name in ("MATCH", "NONE_MATCH", "MODIFIED_SINCE", "UNMODIFIED_SINCE")
)
"""The headers of a conditional request (RFC 9110, 13.1), as WSGI names them."""

_log = logging.getLogger(__name__)


def blueprints() -> Iterator[Blueprint]:
    """Yield the routes of each resource type; logs and metrics name requests by them."""
    for kind in ResourceType:
        blueprint = Blueprint(kind.lower(), __name__)
        searching, reading = partial(search, kind), partial(read, kind)
        blueprint.get(f"/{kind}", endpoint="search")(searching)
        blueprint.post(f"/{kind}/_search", endpoint="search")(searching)
        blueprint.get(f"/{kind}/<id>", endpoint="read")(reading)
        yield blueprint


@authenticated
def search(kind: ResourceType) -> Response:
    """Answer a new search, in either form (spec 4.1, decision 1)."""
    service = current_service()
    require(g.client, SEARCH_SCOPES[kind])
    offer = service.offer.resources.get(kind)
    if offer is None or not offer.searchable:
        raise UnknownResourceError(f"{kind} is not searched here.")
    with stage(Stage.PARSE):
        parameters, lenient = request_parameters(), is_lenient()
        query = parse_search(parameters, offer, service.context, lenient=lenient)
        single = dict(parameters)
        check_format(single.get("_format"), request.headers.get("Accept"))
    page = service.sessions.begin(query, parameters, g.client.id, lenient=lenient)
    with stage(Stage.MAP):
        bundle = searchset_of(service, page)
    return fhir_response(bundle, single)


@authenticated
def read(kind: ResourceType, id: str) -> Response:
    """Answer a read, or 304 where nothing has changed (spec 4.2, decision 19)."""
    service = current_service()
    require(g.client, READ_SCOPES[kind])
    single = read_single_values(
        request_parameters(), PRESENTATION, lenient=is_lenient()
    )
    presentation = read_presentation(single, kind)
    check_format(single.get("_format"), request.headers.get("Accept"))
    if kind not in service.offer.resources:
        raise UnknownResourceError(f"There is no such {kind}.")
    if not is_id(id):
        raise UnknownResourceError(f"There is no such {kind}: {ID_FORM}.")
    with stage(Stage.SOURCE):
        record = _read_record(service, kind, id)
    note_record(record)
    with stage(Stage.MAP):
        resource = service.writers[kind](record)
        if not presentation.is_whole:
            resource = cut(resource, presentation.summary, presentation.elements)
    response = fhir_response(resource, single)
    changed = record.last_updated if service.offer.resources[kind].dated else None
    if changed is not None:
        response.headers["Last-Modified"] = formatdate(changed.timestamp(), usegmt=True)
    digest = sha256(response.get_data()).hexdigest()[:32]
    response.set_etag(digest, weak=True)
    if not _CONDITIONS.isdisjoint(request.environ):
        _apply_conditions(response)
    return response


def _read_record(service: Service, kind: ResourceType, id: str) -> Record:
    try:
        return service.adapter.read(kind, id)
    except SourceDataError as error:
        if error.fault is not None:
            count_row_fault(kind, error.fault)
        raise


def _apply_conditions(response: Response) -> None:
    """Make the response to a conditional request 304 where nothing has changed."""
    _check_preconditions(response)
    if not is_resource_modified(
        http_if_none_match=request.headers.get("If-None-Match"),
        http_if_modified_since=request.headers.get("If-Modified-Since"),
        etag=response.headers["ETag"],
        last_modified=response.headers.get("Last-Modified"),
    ):
        response.status_code = HTTPStatus.NOT_MODIFIED


def _check_preconditions(response: Response) -> None:
    """Raise BadValueError as RFC 9110 says (13.1.1, 13.1.4).

    If-Match compares strong ETags, and ours are weak: only `*` holds, for what is there.
    """
    if_match = request.headers.get("If-Match")
    if if_match is not None:
        if if_match.strip() != "*":
            raise _precondition("If-Match", ": an ETag is weak here, only * holds")
        return
    since = request.if_unmodified_since
    changed = response.last_modified if since is not None else None
    if changed is not None and since is not None and changed > since:
        raise _precondition("If-Unmodified-Since")


def _precondition(name: str, hint: str = "") -> BadValueError:
    text = f"The precondition {name} does not hold{hint}."
    return BadValueError(text, f"http.{name}", code=IssueCode.CONFLICT)


def searchset_of(
    service: Service, result: ResultPage, ignored: Sequence[str] = ()
) -> Element:
    """Return the Bundle of a page: its links, its resources and messages about them.

    `ignored` names parameters of this request, besides those of the search.
    """
    note_page(result.page.rows, result.id)
    presentation = result.search.presentation
    write = service.writers[result.search.query.resource_type]
    rows = result.page.rows
    resources = [write(row) for row in rows if not isinstance(row, RowFault)]
    if not presentation.is_whole:
        part = presentation.summary, presentation.elements
        resources = [cut(resource, *part) for resource in resources]
    entries = match_entries(service.settings.base_url, resources)
    if issues := tuple(_issues(service, result, ignored)):
        # Named by the page's own id: its self link returns the same Bundle.
        entries.append(outcome_entry(uuid5(NAMESPACE_URL, result.id), issues))
    links = _links(service.settings.base_url, result)
    return searchset(result.id, result.total, links, entries)


def _links(base_url: str, result: ResultPage) -> Iterator[Link]:
    address = f"{base_url}/Bundle?_id={result.id}"
    yield Link("self", address)
    for link in result.links:
        relation, cursor = _LINKS[link.direction]
        yield Link(relation, f"{address}&_index={link.index}&{cursor}={link.cursor}")


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
        text = f"Parameter '_count' was lowered to {size}, the most there is."
        yield Issue("warning", IssueCode.VALUE, text, ("http._count",))
    for row in result.page.rows:
        if isinstance(row, RowFault):
            yield _invalid_row(service, result.search.query.resource_type, row)
    if result.cut_short:
        yield Issue(
            "information",
            IssueCode.INCOMPLETE,
            "More matched than is returned here, and this deployment has no further "
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
        f"{name or 'One match'} cannot be shown. The operator finds why by reference "
        f"{reference}.",
    )
