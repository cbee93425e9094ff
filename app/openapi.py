"""An OpenAPI 3.0 description of what a deployment offers, from the tables that it runs on.

For client generators (`encounters mapping explain --openapi`) and for tests that attack the
service. FHIR itself describes the resources; here they are objects with a `resourceType`.
"""

from collections.abc import Iterable

from adapters.contract import ResourceType
from adapters.mapping.checks import FHIR_ID
from app.capabilities import Offer, ResourceOffer
from app.openapi_answers import HEADERS, SCHEMAS, headers_of, responses
from app.openapi_parameters import (
    Node,
    formats,
    header,
    presentation,
    query,
    search_parameters,
    statement_parameters,
)
from app.schemas.capability import FHIR_VERSION

_ID: Node = {"type": "string", "pattern": f"^{FHIR_ID.pattern}$"}
_SEARCH_STATUSES = (400, 401, 403, 406, 412, 422, 429, 502, 503)
_READ_STATUSES = (400, 401, 403, 404, 406, 410, 412, 429, 500, 502, 503)
_PAGE_STATUSES = (400, 401, 403, 404, 406, 410, 412, 429, 502, 503)
_FORM = "application/x-www-form-urlencoded"
_UNCHANGED = "Nothing has changed."
_HANDLING = {"type": "string", "enum": ["handling=strict", "handling=lenient"]}
_PREFER = header("Prefer", _HANDLING)


def openapi(offer: Offer, base_url: str, title: str) -> Node:
    """Return the description of a deployment at `base_url`."""
    paths: Node = {"/metadata": {"get": _metadata()}}
    for each in offer.resources.values():
        paths |= _paths(each)
    if any(each.searchable for each in offer.resources.values()):
        paths["/Bundle"] = {"get": _bundle(paging=offer.paging)}
    return {
        "openapi": "3.0.3",
        "info": {
            "title": title,
            "version": FHIR_VERSION,
            "description": "FHIR STU3, read only.",
        },
        "servers": [{"url": base_url}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "headers": dict(HEADERS),
            "schemas": dict(SCHEMAS),
        },
    }


def _paths(offer: ResourceOffer) -> Node:
    kind = offer.resource_type
    paths: Node = {f"/{kind}/{{id}}": {"get": _read(offer)}}
    if offer.searchable:
        parameters = (*search_parameters(offer), *presentation(kind))
        paths[f"/{kind}"] = {"get": _search(kind, parameters)}
        paths[f"/{kind}/_search"] = {"post": _form_search(kind, parameters)}
    return paths


def _read(offer: ResourceOffer) -> Node:
    kind = offer.resource_type
    id = {"name": "id", "in": "path", "required": True, "schema": _ID}
    conditions = ("If-None-Match", *(("If-Modified-Since",) if offer.dated else ()))
    known = ("ETag", *(("Last-Modified",) if offer.dated else ()))
    taken = [header(name, {"type": "string"}) for name in conditions]
    answers = responses("Resource", _READ_STATUSES, known)
    unchanged = {
        "description": _UNCHANGED,
        "headers": headers_of("X-Request-Id", "ETag"),
    }
    return {
        "operationId": f"read{kind}",
        "summary": f"One {kind}",
        "parameters": [id, *presentation(kind), *taken],
        "responses": {**answers, "304": unchanged},
    }


def _search(kind: ResourceType, parameters: Iterable[Node]) -> Node:
    return {
        "operationId": f"search{kind}",
        "summary": f"Search {kind}",
        "parameters": [*parameters, _PREFER],
        "responses": responses("Bundle", (*_SEARCH_STATUSES, 414)),
    }


def _form_search(kind: ResourceType, parameters: Iterable[Node]) -> Node:
    form = {
        "type": "object",
        "properties": {
            each["name"]: each["schema"]
            | {k: text for k, text in each.items() if k == "description"}
            for each in parameters
        },
        "additionalProperties": False,
    }
    return {
        "operationId": f"search{kind}ByForm",
        "summary": f"Search {kind} by a form",
        "parameters": [_PREFER],
        "requestBody": {"content": {_FORM: {"schema": form}}},
        "responses": responses("Bundle", (*_SEARCH_STATUSES, 413, 415)),
    }


def _bundle(*, paging: bool) -> Node:
    stamp = {"type": "string", "pattern": "^[a-z2-7]{32}$"}
    names = ("_id", "_searchAfter", "_searchBefore") if paging else ("_id",)
    parameters = [query(name, stamp, required=name == "_id") for name in names]
    if paging:
        index = {"type": "integer", "minimum": 1, "maximum": 999_999_999}
        parameters.append(query("_index", index))
    return {
        "operationId": "readPage",
        "summary": "A page of an earlier search: follow its links as they stand",
        "parameters": [*parameters, *formats()],
        "responses": responses("Bundle", _PAGE_STATUSES),
    }


def _metadata() -> Node:
    return {
        "operationId": "readCapabilities",
        "summary": "What this deployment offers",
        "security": [{"bearer": []}, {}],
        "parameters": statement_parameters(),
        "responses": responses("Resource", (400, 406, 412)),
    }
