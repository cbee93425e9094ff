"""An OpenAPI 3.0 description of what a deployment offers, derived from its tables.

For client generators (`/openapi.json`, `encounters openapi`) and for tests that attack the
service. FHIR itself describes the resources; here they are objects with a
`resourceType`.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Any, TypeAlias

from adapters.parameters import SEARCH_PARAMETERS, ParameterType, SearchParameter
from app.errors import answer_for_status
from app.fhir.capability import FHIR_VERSION, FORMATS, parameter_text
from app.fhir.summary import Summary
from app.middleware import CONTENT_TYPE
from app.offer import Offer, OfferedParameter, ResourceOffer
from app.search.parser import MOST_PARAMETERS, modifiers

Node: TypeAlias = dict[str, Any]

_FORM = "application/x-www-form-urlencoded"
_SEARCH_STATUSES = (400, 401, 403, 406, 412, 422, 429, 502, 503)
_READ_STATUSES = (400, 401, 403, 404, 406, 410, 412, 429, 500, 502, 503)
_PAGE_STATUSES = (400, 401, 403, 404, 406, 410, 412, 429, 502, 503)
_STATUS_TEXTS = {
    412: "A parameter has a bad value, or a precondition does not hold.",
    422: "The deployment forbids this search, or counting would take too long.",
    500: "The service failed to answer.",
}
"""Texts of statuses that stand for more than one case."""


_SOME_TEXT: Node = {"type": "string", "minLength": 1}


def _text(*values: str) -> Node:
    return {"type": "string", "enum": [*values]} if values else {"type": "string"}


def _object(required: Iterable[str], properties: Node) -> Node:
    return {"type": "object", "required": [*required], "properties": properties}


def _list(required: Iterable[str], properties: Node) -> Node:
    return {"type": "array", "minItems": 1, "items": _object(required, properties)}


_HEADERS: Mapping[str, Node] = {
    name: {"description": text, "schema": {"type": kind}}
    for name, kind, text in (
        ("X-Request-Id", "string", "Names the request to the operator."),
        ("WWW-Authenticate", "string", "What is wrong with the token."),
        ("Retry-After", "integer", "How many seconds to wait."),
        ("ETag", "string", "A digest of the body, for If-None-Match."),
        ("Last-Modified", "string", "When it changed, for If-Modified-Since."),
    )
}

_LINK_PARAMETERS = {
    "_id": "every link",
    "_index": "`next` and `previous`",
    "_searchAfter": "`next`",
    "_searchBefore": "`previous`",
}
"""The parameters in the query of a link, and the links that have them."""

_FOLLOW = (
    "GET the address of a link as it stands, with your token. A generated client calls this"
    " operation with all parameters of the link's query, decoded and unchanged, and adds"
    " none of the search: the link stands for them."
)

_LINK = {"relation": _text("self", "previous", "next"), "url": _text()}
_ENTRY = {
    "fullUrl": _text(),
    "resource": {"$ref": "#/components/schemas/Resource"},
    "search": {"type": "object", "properties": {"mode": _text("match", "outcome")}},
}
_ISSUE = {
    "severity": _text("fatal", "error", "warning", "information"),
    "code": _text(),
    "diagnostics": _text(),
    "location": {"type": "array", "items": _text()},
}
_SCHEMAS: Mapping[str, Node] = {
    # Generated clients drop what is not described, unless a schema says that there is more.
    "Resource": {
        **_object(["resourceType"], {"resourceType": _text()}),
        "additionalProperties": True,
    },
    "Bundle": _object(
        ["resourceType", "id", "type", "link"],
        {
            "resourceType": _text(),
            "id": _text(),
            "type": _text("searchset"),
            "total": {"type": "integer", "minimum": 0},
            "link": _list(_LINK, _LINK),
            "entry": _list(_ENTRY, _ENTRY),
        },
    ),
    "OperationOutcome": _object(
        ["resourceType", "issue"],
        {"resourceType": _text(), "issue": _list(["severity", "code"], _ISSUE)},
    ),
}
"""Bodies, as far as following pages requires (spec 2.5 and 2.6)."""


def openapi(
    offer: Offer, base_url: str, title: str, token_url: str | None = None
) -> Node:
    """Return the description of a deployment at `base_url`; tokens come from `token_url`."""
    paths: Node = {"/metadata": {"get": _metadata()}}
    for each in offer.resources.values():
        paths |= _paths(each)
    if any(each.searchable for each in offer.resources.values()):
        paths["/Bundle"] = {"get": _bundle(paging=offer.paging)}
    return {
        "openapi": "3.0.3",
        "info": {
            "title": title,
            "version": version("encounters"),
            "description": f"FHIR {FHIR_VERSION} (STU3), read only.",
        },
        "servers": [{"url": base_url}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": _security_scheme(token_url)},
            "headers": dict(_HEADERS),
            "schemas": dict(_SCHEMAS),
        },
    }


def _security_scheme(token_url: str | None) -> Node:
    if token_url is None:
        return {"type": "http", "scheme": "bearer"}
    scopes = {"PATIENT_GAM_SEARCH": "Search and read all that is offered (spec 5.2)."}
    flow = {"tokenUrl": token_url, "scopes": scopes}
    return {"type": "oauth2", "flows": {"clientCredentials": flow}}


def _paths(offer: ResourceOffer) -> Node:
    kind = offer.resource_type
    paths: Node = {f"/{kind}/{{id}}": {"get": _read(offer)}}
    if offer.searchable:
        parameters = [*search_parameters(offer), *_presentation()]
        handling = _text("handling=strict", "handling=lenient")
        prefer = _parameter("Prefer", handling, place="header")
        get = _operation(
            f"search{kind}",
            f"Search {kind}",
            [*parameters, prefer],
            _responses("Bundle", (*_SEARCH_STATUSES, 414)),
        )
        post = _operation(
            f"search{kind}ByForm",
            f"Search {kind} by a form",
            [prefer],
            _responses("Bundle", (*_SEARCH_STATUSES, 413, 415)),
            requestBody={"content": {_FORM: {"schema": _form(parameters)}}},
        )
        paths |= {f"/{kind}": {"get": get}, f"/{kind}/_search": {"post": post}}
    return paths


def _operation(
    name: str, summary: str, parameters: Iterable[Node], responses: Node, **more: Any
) -> Node:
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [*parameters],
        "responses": responses,
        **more,
    }


def _form(parameters: Iterable[Node]) -> Node:
    properties = {
        each["name"]: {**each["schema"], "description": each.get("description", "")}
        for each in parameters
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _read(offer: ResourceOffer) -> Node:
    kind = offer.resource_type
    conditions = {"If-None-Match": "ETag"}
    if offer.dated:
        conditions["If-Modified-Since"] = "Last-Modified"
    parameters = [
        _parameter("id", _SOME_TEXT, place="path", required=True),
        *_presentation(),
        *(_parameter(name, _text(), place="header") for name in conditions),
    ]
    responses = _responses("Resource", _READ_STATUSES, conditions.values())
    headers = _header_references("X-Request-Id", "ETag")
    responses["304"] = {"description": "Nothing has changed.", "headers": headers}
    return _operation(f"read{kind}", f"One {kind}", parameters, responses)


def _bundle(*, paging: bool) -> Node:
    """Return the operation that follows a link: it has the parameters of the link's query.

    All are texts, so that a client sends them as it reads them.
    """
    parameters = [
        _parameter(
            name,
            _SOME_TEXT,
            f"`{name}` of {links}, as it stands.",
            required=name == "_id",
        )
        for name, links in _LINK_PARAMETERS.items()
        if paging or name == "_id"
    ]
    return _operation(
        "readPage",
        "The page behind a link of a Bundle",
        [*parameters, *_formats()],
        _responses("Bundle", _PAGE_STATUSES),
        description=_FOLLOW,
    )


def _metadata() -> Node:
    return _operation(
        "readCapabilities",
        "What this deployment offers",
        _presentation(),
        _responses("Resource", (400, 406, 412)),
        security=[{"bearer": []}, {}],
    )


def search_parameters(offer: ResourceOffer) -> Iterator[Node]:
    """Yield the parameters of a search; each modifier makes one of its own."""
    for name, offered in offer.parameters.items():
        row = SEARCH_PARAMETERS[offer.resource_type][name]
        schema = _values(row, offered)
        yield _parameter(name, schema, parameter_text(row, offered))
        if row.type is ParameterType.STRING:
            for modifier in modifiers(offered.capability.matches):
                yield _parameter(f"{name}{modifier}", schema)
    size = {"type": "integer", "minimum": 1, "maximum": offer.count_max}
    yield _parameter("_count", {**size, "default": offer.count_default})
    if offer.sortable:
        keys = [f"{sign}{key}" for key in offer.sorts for sign in ("", "-")]
        yield _parameter("_sort", _text(*keys))
    if offer.uncounted:
        yield _parameter("_total", _text("none", "accurate"))


def _presentation() -> Iterator[Node]:
    """Yield `_summary`, `_elements` and the formats."""
    yield _parameter("_summary", _text(*Summary))
    names = "Top-level elements, separated by commas."
    yield _parameter("_elements", _SOME_TEXT, names)
    yield from _formats()


def _formats() -> Iterator[Node]:
    yield _parameter("_format", _text(*FORMATS))
    yield _parameter("_pretty", _text("true", "false"))


def _values(row: SearchParameter, offered: OfferedParameter) -> Node:
    """Return the schema of a parameter's values (decision 4).

    Alternatives are one text with commas. Where several criteria make sense together,
    the bounds of a range or the parts of a name, the schema is an array.
    """
    if row.codes and offered.values == 1:
        return _text(*row.codes)
    is_repeated = row.type in (ParameterType.DATE, ParameterType.STRING)
    if not is_repeated or offered.values == 1:
        return _SOME_TEXT
    most = min(offered.values, MOST_PARAMETERS)
    return {"type": "array", "minItems": 1, "maxItems": most, "items": _SOME_TEXT}


def _parameter(
    name: str,
    schema: Node,
    description: str = "",
    *,
    place: str = "query",
    required: bool = False,
) -> Node:
    node = {"name": name, "in": place, "required": required, "schema": schema}
    return {**node, "description": description} if description else node


def _responses(
    schema: str, statuses: Iterable[int], headers: Iterable[str] = ()
) -> Node:
    """Return the responses of an operation: a `schema` with more `headers`, or a failure."""
    responses = {"200": _response("Success.", schema, *headers)}
    for status in statuses:
        answer = answer_for_status(status)
        text = _STATUS_TEXTS.get(status) or answer.text or ""
        names = (name for name, _ in answer.headers)
        responses[str(status)] = _response(text, "OperationOutcome", *names)
    responses["default"] = _response("Another failure.", "OperationOutcome")
    return responses


def _response(text: str, schema: str, *headers: str) -> Node:
    reference = {"$ref": f"#/components/schemas/{schema}"}
    return {
        "description": text,
        "headers": _header_references("X-Request-Id", *headers),
        "content": {CONTENT_TYPE: {"schema": reference}},
    }


def _header_references(*names: str) -> Node:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
