"""What the views share: the client known, the resources found, the answer written."""

from collections.abc import Callable, Iterable, Mapping
from email.utils import formatdate
from functools import wraps
from hashlib import sha256
from http import HTTPStatus
from typing import Any, ParamSpec

import orjson
from flask import Response, request

from adapters.contract import Adapter, Record, ResourceType, SourceDataError
from app.auth import Client, require
from app.current import current_notes, current_request, sent
from app.errors import (
    BadValueError,
    IssueCode,
    UnknownResourceError,
)
from app.negotiation import check_format
from app.operations.audit import note_record
from app.operations.metrics import count_row_fault
from app.operations.phases import Phase, phase
from app.outcomes import CONTENT_TYPE
from app.presentation import PRESENTATION, read_presentation
from app.schemas.datatypes import Element
from app.schemas.summary import cut
from app.search import parse_search, read_single_values
from app.service import service
from app.transport import requester
from app.values import ID_FORM, is_id
from app.views.asked import is_lenient, request_pairs
from app.views.bundles import present

READ_SCOPES: Mapping[ResourceType, str] = {
    ResourceType.ENCOUNTER: "ENCOUNTER_READ",
    ResourceType.PATIENT: "PATIENT_READ",
    ResourceType.ORGANIZATION: "ORGANIZATION_READ",
}
"""The scope that reading needs (spec 5.2)."""

SEARCH_SCOPES: Mapping[ResourceType, str] = {
    ResourceType.ENCOUNTER: "ENCOUNTER_SEARCH",
    ResourceType.PATIENT: "PATIENT_SEARCH",
    ResourceType.ORGANIZATION: "ORGANIZATION_READ",
}
"""The scope that searching needs (spec 5.2; decision 9 for Organization)."""

_CONDITIONS = frozenset(
    {
        "HTTP_IF_MATCH",
        "HTTP_IF_NONE_MATCH",
        "HTTP_IF_MODIFIED_SINCE",
        "HTTP_IF_UNMODIFIED_SINCE",
    }
)
"""Headers of a conditional read, as WSGI names them."""

_NO_PRECONDITIONS = {"HTTP_IF_MATCH": "", "HTTP_IF_UNMODIFIED_SINCE": ""}

_P = ParamSpec("_P")


def authenticated(view: Callable[_P, Response]) -> Callable[_P, Response]:
    """Let a view run only for a client with a valid token, which it finds as `client()`."""

    @wraps(view)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> Response:
        _let_in()
        return view(*args, **kwargs)

    return checked


def _let_in() -> None:
    # Each request is counted once: under its client where the token was verified before,
    # else, before anything is verified, under the address that it comes from.
    joined = service()
    header = sent("HTTP_AUTHORIZATION")
    if (known := joined.authenticator.recall(header)) is not None:
        current_notes().client = known
        joined.throttle.count_client(known.id)
    else:
        joined.throttle.count_address(requester(joined.settings.trusted_proxies))
        current_notes().client = joined.authenticator.authenticate(header)


def client() -> Client:
    """Return the client of this request."""
    found: Client = current_notes().client
    return found


def search_resources(resource_type: ResourceType) -> Response:
    """Answer a new search of one resource type, in either form (decision 1)."""
    joined = service()
    require(client(), SEARCH_SCOPES[resource_type])
    offer = joined.offer.resources.get(resource_type)
    if offer is None or not offer.searchable:
        raise UnknownResourceError(f"{resource_type} is not searched here.")
    pairs = request_pairs()
    lenient = is_lenient()
    search = parse_search(pairs, offer, joined.context, lenient=lenient)
    asked = dict(pairs)
    check_format(asked.get("_format"), sent("HTTP_ACCEPT"))
    result = joined.walks.begin(search, pairs, client().id, lenient=lenient)
    return answer(present(joined, result), asked)


def read_resource(resource_type: ResourceType, id: str) -> Response:
    """Answer a read, or tell that nothing has changed (decision 19)."""
    joined = service()
    require(client(), READ_SCOPES[resource_type])
    single = read_single_values(request_pairs(), PRESENTATION, lenient=is_lenient())
    shown = read_presentation(single, resource_type)
    check_format(single.get("_format"), sent("HTTP_ACCEPT"))
    if resource_type not in joined.offer.resources:
        raise UnknownResourceError(f"There is no such {resource_type}.")
    if not is_id(id):
        raise UnknownResourceError(f"There is no such {resource_type}: {ID_FORM}.")
    with phase(Phase.SOURCE):
        record = _record(joined.adapter, resource_type, id)
    note_record(record)
    with phase(Phase.MAP):
        resource: Element = joined.schemas[resource_type].dump(record)
        if not shown.is_whole:
            resource = cut(resource, shown.summary, shown.elements)
    with phase(Phase.WRITE):
        written = orjson.dumps(resource)
    response = answer(written, single)
    digest = sha256(response.get_data()).hexdigest()[:32]
    response.headers.add("ETag", f'W/"{digest}"')
    if joined.offer.resources[resource_type].dated and record.last_updated:
        changed = formatdate(record.last_updated.timestamp(), usegmt=True)
        response.headers.add("Last-Modified", changed)
    environ = current_request().environ
    if not _CONDITIONS.isdisjoint(environ):
        _check_preconditions(response)
        response.make_conditional(environ | _NO_PRECONDITIONS)
    return response


def _check_preconditions(response: Response) -> None:
    """Raise BadValueError as RFC 9110 says (13.1.1, 13.1.4).

    If-Match compares strong tags, which ours are not: only `*` holds, for what is there.
    """
    told = request.headers.get("If-Match")
    if told is not None:
        if told.strip() != "*":
            raise _precondition("If-Match", ": an ETag is weak here, only * holds")
        return
    changed, since = response.last_modified, request.if_unmodified_since
    if changed is not None and since is not None and changed > since:
        raise _precondition("If-Unmodified-Since")


def _precondition(name: str, hint: str = "") -> BadValueError:
    text = f"The precondition {name} does not hold{hint}."
    return BadValueError(text, f"http.{name}", code=IssueCode.CONFLICT)


def _record(adapter: Adapter, resource_type: ResourceType, id: str) -> Record:
    try:
        return adapter.read(resource_type, id)
    except SourceDataError as error:
        if error.fault is not None:
            count_row_fault(resource_type, error.fault)
        raise


def answer(written: bytes, asked: Mapping[str, str]) -> Response:
    """Return a FHIR answer that is written in JSON; `asked` may want it `_pretty`."""
    if asked.get("_pretty") == "true":
        with phase(Phase.WRITE):
            written = orjson.dumps(orjson.loads(written), option=orjson.OPT_INDENT_2)
    return _Whole(written, content_type=CONTENT_TYPE)


class _Whole(Response):
    """An answer that leaves as it is: it is whole, and leads nowhere else.

    The framework would look through its headers, and copy them, for what none of ours has.
    """

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if self.status_code != HTTPStatus.OK or current_request().method == "HEAD":
            return super().__call__(environ, start_response)
        start_response(self.status, self.headers.to_wsgi_list())
        return [self.get_data()]
