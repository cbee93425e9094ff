"""What answers are, as a description in OpenAPI says it: bodies, headers, failures."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from app.errors import answer_for_status
from app.openapi_parameters import Node
from app.outcomes import CONTENT_TYPE

_TEXTS: Mapping[int | None, str] = MappingProxyType(
    {
        None: "Another failure.",
        412: "A parameter has a bad value, or a precondition does not hold.",
        422: "The deployment forbids this search, or counting would take too long.",
    }
)
"""What a status says of more than one case."""
_TOLD: Mapping[int | None, tuple[str, ...]] = MappingProxyType(
    {
        401: ("WWW-Authenticate",),
        403: ("WWW-Authenticate",),
        429: ("Retry-After",),
        503: ("Retry-After",),
    }
)
"""Headers of failures (decision 21)."""
HEADERS: Mapping[str, Node] = MappingProxyType(
    {
        name: {"description": text, "schema": {"type": kind}}
        for name, kind, text in (
            ("X-Request-Id", "string", "Tells the operator which request it was."),
            ("WWW-Authenticate", "string", "What is wrong with the token."),
            ("Retry-After", "integer", "How many seconds to wait."),
            ("ETag", "string", "A digest of the body, for If-None-Match."),
            ("Last-Modified", "string", "When it changed, for If-Modified-Since."),
        )
    }
)
"""Headers that answers have besides `Content-Type`."""


def responses(kind: str, statuses: Iterable[int], headers: Iterable[str] = ()) -> Node:
    """Return what an operation may answer: `kind` with more `headers`, or a failure."""
    fine = {
        "description": "What was asked for.",
        "headers": headers_of("X-Request-Id", *headers),
        **_content(kind),
    }
    failures = {str(status): _failure(status) for status in statuses}
    return {"200": fine, **failures, "default": _failure(None)}


def _failure(status: int | None) -> Node:
    text = _TEXTS.get(status) or answer_for_status(status or 0).text
    return {
        "description": text,
        "headers": headers_of("X-Request-Id", *_TOLD.get(status, ())),
        **_content("OperationOutcome"),
    }


def headers_of(*names: str) -> Node:
    """Return headers by their names, which `HEADERS` tells of."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


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


def _list(*required: str, **properties: Node) -> Node:
    items = {"type": "object", "required": [*required], "properties": properties}
    return {"type": "array", "minItems": 1, "items": items}


def _choice(*words: str) -> Node:
    return {"type": "string", "enum": [*words]}


_STRING: Node = {"type": "string"}
_MODE: Node = {
    "type": "object",
    "properties": {"mode": _choice("match", "outcome")},
}
SCHEMAS: Mapping[str, Node] = MappingProxyType(
    {
        "Resource": _resource(),
        "Bundle": _resource(
            "id",
            "type",
            "total",
            "link",
            id=_STRING,
            type=_choice("searchset"),
            total={"type": "integer", "minimum": 0},
            link=_list(
                *("relation", "url"),
                relation=_choice("self", "previous", "next"),
                url=_STRING,
            ),
            entry=_list(
                *("fullUrl", "resource", "search"),
                fullUrl=_STRING,
                resource={"$ref": "#/components/schemas/Resource"},
                search=_MODE,
            ),
        ),
        "OperationOutcome": _resource(
            "issue",
            issue=_list(
                *("severity", "code"),
                severity=_choice("fatal", "error", "warning", "information"),
                code=_STRING,
                diagnostics=_STRING,
                location={"type": "array", "items": _STRING},
            ),
        ),
    }
)
"""Bodies, as far as a walk through pages needs to know them (spec 2.5 and 2.6)."""
