"""An OpenAPI 3.0 description of what a deployment offers, from the tables that it runs on.

For client generators (`encounters mapping explain --openapi`) and for tests that attack the
service. FHIR itself describes the
resources; here they are objects with a `resourceType`.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from adapters.contract import ResourceType
from adapters.mapping.checks import FHIR_ID
from app.capabilities import Offer, ResourceOffer
from app.criteria import ParameterType, SearchParameter
from app.errors import STATUSES
from app.outcomes import CONTENT_TYPE
from app.parameters import SEARCH_PARAMETERS
from app.schemas.summary import ELEMENTS, Summary
from app.statement import parameter_text

Node: TypeAlias = dict[str, Any]

_TEXT: Node = {"type": "string", "minLength": 1, "maxLength": 200}
_ID: Node = {"type": "string", "pattern": f"^{FHIR_ID.pattern}$"}
_DATE: Node = {
    "type": "string",
    "pattern": r"^(eq|ne|gt|lt|ge|le)?[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?$",
}
_SEARCH_STATUSES = (400, 401, 403, 406, 412, 422, 429, 502, 503)
_READ_STATUSES = (400, 401, 403, 404, 406, 410, 412, 429, 500, 502, 503)
_PAGE_STATUSES = (400, 401, 403, 404, 406, 410, 412, 429, 502, 503)
_FORM = "application/x-www-form-urlencoded"


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
            "version": "3.0.2",
            "description": "FHIR STU3, read only.",
        },
        "servers": [{"url": base_url}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": dict(_SCHEMAS),
        },
    }


def _paths(offer: ResourceOffer) -> Node:
    kind = offer.resource_type
    paths: Node = {f"/{kind}/{{id}}": {"get": _read(kind)}}
    if offer.searchable:
        parameters = tuple(_search_parameters(offer))
        paths[f"/{kind}"] = {"get": _search(kind, parameters)}
        paths[f"/{kind}/_search"] = {"post": _form_search(kind, parameters)}
    return paths


def _read(kind: ResourceType) -> Node:
    id = {"name": "id", "in": "path", "required": True, "schema": _ID}
    return {
        "summary": f"One {kind}",
        "parameters": [id, *_presentation(kind)],
        "responses": _responses(kind, _READ_STATUSES),
    }


def _search(kind: ResourceType, parameters: Iterable[Node]) -> Node:
    return {
        "summary": f"Search {kind}",
        "parameters": [*parameters, *_presentation(kind)],
        "responses": _responses("Bundle", _SEARCH_STATUSES),
    }


def _form_search(kind: ResourceType, parameters: Iterable[Node]) -> Node:
    taken = [*parameters, *_presentation(kind)]
    form = {
        "type": "object",
        "properties": {each["name"]: each["schema"] for each in taken},
        "additionalProperties": False,
    }
    return {
        "summary": f"Search {kind} by a form",
        "requestBody": {"content": {_FORM: {"schema": form}}},
        "responses": _responses("Bundle", (*_SEARCH_STATUSES, 413, 415)),
    }


def _bundle(*, paging: bool) -> Node:
    stamp = {"type": "string", "pattern": "^[a-z2-7]{32}$"}
    names = ("_id", "_searchAfter", "_searchBefore") if paging else ("_id",)
    parameters = [_query(name, stamp, required=name == "_id") for name in names]
    if paging:
        index = {"type": "integer", "minimum": 1, "maximum": 999_999_999}
        parameters.append(_query("_index", index))
    return {
        "summary": "A page of an earlier search: follow its links as they stand",
        "parameters": parameters,
        "responses": _responses("Bundle", _PAGE_STATUSES),
    }


def _metadata() -> Node:
    return {
        "summary": "What this deployment offers",
        "security": [{"bearer": []}, {}],
        "parameters": _formats(),
        "responses": _responses("CapabilityStatement", (400, 406, 412)),
    }


def _search_parameters(offer: ResourceOffer) -> Iterable[Node]:
    rows = SEARCH_PARAMETERS[offer.resource_type]
    for name, offered in offer.parameters.items():
        text = " ".join(parameter_text(rows[name], offered))
        yield _query(name, _schema(rows[name]), description=text)
    yield _query(
        "_count", {"type": "integer", "minimum": 1, "maximum": offer.count_max}
    )
    if offer.sortable:
        keys = [f"{sign}{key}" for key in offer.sorts for sign in ("", "-")]
        yield _query("_sort", {"type": "string", "enum": keys})


def _schema(row: SearchParameter) -> Node:
    if row.codes:
        return {"type": "string", "enum": list(row.codes)}
    if row.name == "_id":
        return _ID
    return _DATE if row.type is ParameterType.DATE else _TEXT


def _presentation(kind: ResourceType) -> list[Node]:
    elements = sorted(ELEMENTS[kind])
    return [
        _query("_summary", {"type": "string", "enum": [*map(str, Summary)]}),
        _query("_elements", {"type": "string", "enum": elements}),
        *_formats(),
    ]


def _formats() -> list[Node]:
    return [
        _query("_format", {"type": "string", "enum": ["json", CONTENT_TYPE]}),
        _query("_pretty", {"type": "string", "enum": ["true", "false"]}),
    ]


def _query(
    name: str, schema: Node, *, required: bool = False, description: str = ""
) -> Node:
    node: Node = {"name": name, "in": "query", "required": required, "schema": schema}
    return node | ({"description": description} if description else {})


def _responses(kind: str, statuses: Iterable[int]) -> Node:
    fine = _content(kind if kind == "Bundle" else "Resource")
    return {"200": {"description": str(kind), **fine}} | {
        str(status): {
            "description": STATUSES[status].text
            if status in STATUSES
            else "A failure.",
            **_content("OperationOutcome"),
        }
        for status in statuses
    }


def _content(schema: str) -> Node:
    return {
        "content": {
            CONTENT_TYPE: {"schema": {"$ref": f"#/components/schemas/{schema}"}}
        }
    }


def _resource(*required: str, **properties: Node) -> Node:
    return {
        "type": "object",
        "required": ["resourceType", *required],
        "properties": {"resourceType": {"type": "string"}, **properties},
    }


_SCHEMAS: Mapping[str, Node] = MappingProxyType(
    {
        "Resource": _resource(),
        "Bundle": _resource(
            "type",
            "total",
            type={"type": "string", "enum": ["searchset"]},
            total={"type": "integer", "minimum": 0},
            entry={"type": "array", "items": {"type": "object"}},
            link={"type": "array", "items": {"type": "object"}},
        ),
        "OperationOutcome": _resource(
            "issue", issue={"type": "array", "minItems": 1, "items": {"type": "object"}}
        ),
    }
)
