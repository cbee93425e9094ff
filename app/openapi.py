"""An OpenAPI 3.0 description of what a deployment offers, derived from its tables.

For client generators (`/openapi.json`, `encounters openapi`) and for tests that attack the
service. The resources and their data types have the elements that this service writes: those
of `adapters.mapping.slots`.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any, TypeAlias

from adapters.contract import ResourceType
from adapters.mapping.slots import (
    ADDRESSES,
    FHIR_ID,
    IDENTIFIERS,
    LISTS,
    NAMES,
    SLOTS,
    TELECOMS,
    UNSERVED,
    Slot,
    SlotKind,
)
from app.error_responses import CONTENT_TYPE
from app.errors import answer_for_status
from app.fhir.capability import FHIR_VERSION, FORMATS, parameter_text
from app.fhir.summary import ELEMENTS, Summary
from app.offer import Offer, OfferedParameter, ResourceOffer
from app.search.parser import MOST_PARAMETERS
from app.search.types import TYPES

JsonObject: TypeAlias = dict[str, Any]

_TAGS: Mapping[str, str] = {
    "Encounter": "Hospital stays.",
    "Patient": "The patients of the stays.",
    "Organization": "The hospitals.",
    "Bundle": "Further pages of a search.",
    "CapabilityStatement": "What this deployment offers.",
}
_FORM = "application/x-www-form-urlencoded"
_MOST_COUNTED = 10
"""A pattern with a longer counted repetition is slow wherever it is read."""

_SEARCH_STATUSES = (400, 401, 403, 406, 412, 422, 429, 502, 503)
_READ_STATUSES = (400, 401, 403, 404, 406, 410, 412, 429, 500, 502, 503)
_PAGE_STATUSES = (400, 401, 403, 404, 406, 410, 412, 429, 502, 503)
_STATUS_TEXTS = {
    412: "A parameter has a bad value, or a precondition does not hold.",
    422: "The deployment forbids this search, or counting would take too long.",
    500: "The service failed to answer.",
}
"""Texts of statuses with more than one cause."""

_ANY: JsonObject = {"type": "string", "minLength": 1}


def _text(*values: str) -> JsonObject:
    return {"type": "string", "enum": [*values]} if values else {"type": "string"}


def _object(required: Iterable[str], properties: JsonObject) -> JsonObject:
    """Return the schema of an object; OpenAPI allows no empty list of what is required."""
    schema: JsonObject = {"type": "object", "properties": properties}
    names = [*required]
    if names:
        schema["required"] = names
    return schema


def _list(items: JsonObject) -> JsonObject:
    return {"type": "array", "minItems": 1, "items": items}


def _named(schema: str) -> JsonObject:
    return {"$ref": f"#/components/schemas/{schema}"}


def _parameter(
    name: str, schema: JsonObject, *, place: str = "query", required: bool = False
) -> JsonObject:
    return {"name": name, "in": place, "required": required, "schema": schema}


_FORMATS = (
    _parameter("_format", _text(*FORMATS)),
    _parameter("_pretty", _text("true", "false")),
)
_HEADERS: Mapping[str, JsonObject] = {
    name: {"description": text, "schema": {"type": kind}}
    for name, kind, text in (
        ("X-Request-Id", "string", "The id of the request, for the operator."),
        ("WWW-Authenticate", "string", "What is wrong with the token."),
        ("Retry-After", "integer", "Seconds to wait."),
        ("ETag", "string", "A digest of the body, for If-None-Match."),
        ("Last-Modified", "string", "When it changed, for If-Modified-Since."),
    )
}

_SIGNED_ID = "[a-z2-7]{32}"
_LINK_PARAMETERS = (
    ("_id", _SIGNED_ID, "every link"),
    ("_index", "[1-9][0-9]{0,8}", "`next` and `previous`"),
    ("_searchAfter", _SIGNED_ID, "`next`"),
    ("_searchBefore", _SIGNED_ID, "`previous`"),
)
"""The parameters in the query of a link: name, pattern, and the links that have it."""

_FOLLOW = (
    "GET the address of a link unchanged, with your token. A generated client calls this"
    " operation with all parameters of the link's query, decoded, and with none of the"
    " search."
)

_KINDS: Mapping[SlotKind, JsonObject] = {
    SlotKind.FLAG: {"type": "boolean"},
    SlotKind.ID: _named("Reference"),
    SlotKind.PARTS: _list(_text()),
}
"""The schema of an element by the kind of its slot; the others are texts."""

_ELEMENTS: Mapping[str, JsonObject] = {
    "id": _text(),
    "meta": _named("Meta"),
    "identifier": _list(_named("Identifier")),
    "type": _named("CodeableConcept"),
    "prefix": _list(_text()),
    "class": _named("Coding"),
    "period": _named("Period"),
    "location": _list(_named("EncounterLocation")),
    "serviceProvider": _named("Reference"),
    "link": _list(_named("PatientLink")),
}
"""Elements that are more than the value of a slot."""

_LISTS: Mapping[str, JsonObject] = {
    "identifier": _list(_named("Identifier")),
    "name": _list(_named("HumanName")),
    "telecom": _list(_named("ContactPoint")),
    "address": _list(_named("Address")),
}


def _elements(slots: Iterable[Slot]) -> JsonObject:
    """Return the schema of each element that some slots make."""
    elements: JsonObject = {}
    for slot in slots:
        name = slot.element.partition(".")[0]
        codes = [code for code in slot.codes if code not in UNSERVED]
        elements[name] = _ELEMENTS.get(name) or _KINDS.get(slot.kind) or _text(*codes)
    return elements


def _resource(kind: str, required: Iterable[str], properties: JsonObject) -> JsonObject:
    properties = {"resourceType": _text(kind), **properties}
    return _object(["resourceType", *required], properties)


def _served(kind: ResourceType, *required: str) -> JsonObject:
    """Return the schema of a resource; `_elements` may leave out what is not required."""
    elements = _elements(SLOTS[kind])
    elements |= {listed.element: _LISTS[listed.element] for listed in LISTS[kind]}
    return _resource(kind, ["id", *required], elements)


_EXAMPLES: Mapping[str, object] = {
    "_id": "8,9",
    "_lastUpdated": "ge2024-03-01",
    "patient": "Patient/158",
    "subject": "Patient/158",
    "patient.identifier": "urn:oid:1.2.250.1.999.2.2|00000158",
    "date": "ge2024-03-01",
    "identifier": "urn:oid:1.2.250.1.999.1.2|000000007",
    "status": "planned,in-progress",
    "class": "EMER",
    "service-provider": "Organization/2",
    "service-provider._extension": "https://example.org/functional-unit|0123",
    "name": "martin",
    "family": "martin",
    "given": "camille",
    "birthdate": "1980-05-17",
    "gender": "female",
}
"""A value of each search parameter."""

_type = partial(_object, ())
"""A data type, whose elements are all optional."""

_CODING = ("system", "version", "code", "display")
_IN_BUNDLE = (*ResourceType, "OperationOutcome")
_LINK = {"relation": _text("self", "previous", "next"), "url": _text()}
_ENTRY = {
    "fullUrl": _text(),
    "resource": {
        "oneOf": [_named(name) for name in _IN_BUNDLE],
        "discriminator": {"propertyName": "resourceType"},
    },
    "search": _object(["mode"], {"mode": _text("match", "include", "outcome")}),
}
_ISSUE = {
    "severity": _text("fatal", "error", "warning", "information"),
    "code": _text(),
    "diagnostics": _text(),
    "location": _list(_text()),
}
_SCHEMAS: Mapping[str, JsonObject] = {
    "Encounter": _served(ResourceType.ENCOUNTER, "status"),
    "Patient": _served(ResourceType.PATIENT),
    "Organization": _served(ResourceType.ORGANIZATION),
    "Bundle": _resource(
        "Bundle",
        ["id", "type", "link"],
        {
            "id": _text(),
            "type": _text("searchset"),
            "total": {"type": "integer", "minimum": 0},
            "link": _list(_named("BundleLink")),
            "entry": _list(_named("BundleEntry")),
        },
    ),
    "BundleLink": _object(_LINK, _LINK),
    "BundleEntry": _object(_ENTRY, _ENTRY),
    "OperationOutcome": _resource(
        "OperationOutcome", ["issue"], {"issue": _list(_named("OperationOutcomeIssue"))}
    ),
    "OperationOutcomeIssue": _object(["severity", "code"], _ISSUE),
    "CapabilityStatement": _resource("CapabilityStatement", [], {}),
    "Address": _type({**_elements(ADDRESSES.slots), "line": _list(_text())}),
    "CodeableConcept": _type({"coding": _list(_named("Coding"))}),
    "Coding": _type({name: _text() for name in _CODING}),
    "ContactPoint": _type(_elements(TELECOMS.slots)),
    "EncounterLocation": _object(["location"], {"location": _named("Reference")}),
    "Extension": _type({"url": _text(), "valueString": _text()}),
    "HumanName": _type(_elements(NAMES.slots)),
    "Identifier": _type(_elements(IDENTIFIERS.slots)),
    "Meta": _type({"lastUpdated": _text(), "tag": _list(_named("Coding"))}),
    "PatientLink": _type({"other": _named("Reference"), "type": _text("replaced-by")}),
    "Period": _type({"start": _text(), "end": _text()}),
    "Reference": _type(
        {
            "reference": _text(),
            "display": _text(),
            "extension": _list(_named("Extension")),
        }
    ),
}
"""Bodies, and the data types of their elements (spec 2).

None has `additionalProperties`, which OpenAPI allows by default: a Java class that
openapi-generator makes of a schema that says so is a map whose getters return nothing.
"""


def openapi(
    offer: Offer,
    base_url: str,
    title: str,
    scopes: Mapping[str, frozenset[str]],
    token_url: str | None = None,
) -> JsonObject:
    """Return the description of a deployment at `base_url`.

    Tokens come from `token_url`; `scopes` has what each scope grants.
    """
    metadata = {
        "operationId": "readCapabilities",
        "tags": ["CapabilityStatement"],
        "summary": "What this deployment offers",
        "security": [{"bearer": []}, {}],
        # A statement is returned whole, with or without `_elements`.
        "parameters": [*_presentation(None)],
        "responses": _responses("CapabilityStatement", (400, 406, 412)),
    }
    paths: JsonObject = {"/metadata": {"get": metadata}}
    for resource in offer.resources.values():
        paths[f"/{resource.resource_type}/{{id}}"] = {"get": _read(resource)}
        if resource.searchable:
            paths |= _searches(resource)
    if any(resource.searchable for resource in offer.resources.values()):
        paths["/Bundle"] = {"get": _bundle(paging=offer.paging)}
    operations = (operation for path in paths.values() for operation in path.values())
    names = {tag for operation in operations for tag in operation["tags"]}
    security: JsonObject = {"type": "http", "scheme": "bearer"}
    if token_url:
        texts = {name: f"Grants {', '.join(sorted(scopes[name]))}." for name in scopes}
        flow = {"tokenUrl": token_url, "scopes": texts}
        security = {"type": "oauth2", "flows": {"clientCredentials": flow}}
    return {
        "openapi": "3.0.3",
        "info": {
            "title": title,
            "version": version("encounters"),
            "description": f"FHIR {FHIR_VERSION} (STU3), read only.",
        },
        "servers": [{"url": base_url}],
        "tags": [{"name": name, "description": _TAGS[name]} for name in sorted(names)],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": security},
            "headers": dict(_HEADERS),
            "schemas": dict(_SCHEMAS),
        },
    }


def _searches(offer: ResourceOffer) -> JsonObject:
    """Return a search as GET and as a form, which has its parameters as properties."""
    kind = offer.resource_type
    parameters = [*search_parameters(offer), *_presentation(kind)]
    properties = {}
    for parameter in parameters:
        schema = dict(parameter["schema"])
        if "description" in parameter:
            schema["description"] = parameter["description"]
        properties[parameter["name"]] = schema
    form = {"type": "object", "properties": properties, "additionalProperties": False}
    handling = _text("handling=strict", "handling=lenient")
    prefer = _parameter("Prefer", handling, place="header")
    get = {
        "operationId": f"search{kind}",
        "tags": [kind],
        "summary": f"Search {kind}",
        "parameters": [*parameters, prefer],
        "responses": _responses("Bundle", (*_SEARCH_STATUSES, 414)),
    }
    post = {
        "operationId": f"search{kind}ByForm",
        "tags": [kind],
        "summary": f"Search {kind} by a form",
        "parameters": [prefer],
        "requestBody": {"content": {_FORM: {"schema": form}}},
        "responses": _responses("Bundle", (*_SEARCH_STATUSES, 413, 415)),
    }
    return {f"/{kind}": {"get": get}, f"/{kind}/_search": {"post": post}}


def _read(offer: ResourceOffer) -> JsonObject:
    kind = offer.resource_type
    schema = {"type": "string", "pattern": f"^{FHIR_ID.pattern}$"}
    id = _parameter("id", schema, place="path", required=True)
    conditions = ["If-None-Match"]
    headers = ["ETag"]
    if offer.dated:
        conditions.append("If-Modified-Since")
        headers.append("Last-Modified")
    unchanged = {
        "description": "Nothing has changed.",
        "headers": _header_references("X-Request-Id", "ETag"),
    }
    return {
        "operationId": f"read{kind}",
        "tags": [kind],
        "summary": f"One {kind}",
        "parameters": [
            id,
            *_presentation(kind),
            *(_parameter(name, _text(), place="header") for name in conditions),
        ],
        "responses": {
            **_responses(kind, _READ_STATUSES, headers),
            "304": unchanged,
        },
    }


def _bundle(*, paging: bool) -> JsonObject:
    """Return the operation that follows a link: it has the parameters of the link's query.

    All are texts, so that a client sends them as it reads them.
    """
    rows = _LINK_PARAMETERS if paging else _LINK_PARAMETERS[:1]
    parameters = [
        {
            **_parameter(name, _alternatives(pattern, 1), required=name == "_id"),
            "description": f"`{name}` of {links}, unchanged.",
        }
        for name, pattern, links in rows
    ]
    return {
        "operationId": "readPage",
        "tags": ["Bundle"],
        "summary": "The page behind a link of a Bundle",
        "description": _FOLLOW,
        "parameters": [*parameters, *_FORMATS],
        "responses": _responses("Bundle", _PAGE_STATUSES),
    }


def search_parameters(offer: ResourceOffer) -> Iterator[JsonObject]:
    """Yield the parameters of a search; each modifier makes one of its own."""
    for name, offered in offer.parameters.items():
        row = offered.row
        schema = _values(offered)
        yield {**_parameter(name, schema), "description": parameter_text(offered)}
        for modifier in TYPES[row.type].modifiers(row, offered.capability):
            yield _parameter(f"{name}{modifier}", schema)
    size = {"type": "integer", "minimum": 1, "maximum": offer.count_max}
    yield _parameter("_count", {**size, "default": offer.count_default})
    if offer.sortable:
        yield _parameter("_sort", _text(*offer.sort_values))
    if offer.uncounted:
        yield _parameter("_total", _text("none", "accurate"))
    if offer.includes:
        most = len(offer.includes)
        names = {**_list(_text(*offer.includes)), "maxItems": most}
        yield _parameter("_include", names)


def _presentation(kind: ResourceType | None) -> Iterator[JsonObject]:
    """Yield `_summary`, `_elements` and the formats; without a type any elements."""
    yield _parameter("_summary", _text(*Summary))
    names = sorted(ELEMENTS[kind]) if kind else []
    elements = _alternatives("|".join(names), len(names)) if kind else _ANY
    yield _parameter("_elements", elements)
    yield from _FORMATS


def _values(offered: OfferedParameter) -> JsonObject:
    """Return the schema of a parameter's values, with an example of one (decision 4).

    Alternatives are one text with commas. Where several criteria make sense together,
    the bounds of a range or the parts of a name, the schema is an array.
    """
    type_ = TYPES[offered.row.type]
    pattern = type_.pattern(offered.row, offered.capability)
    one = _alternatives(pattern, offered.values) if pattern else _ANY
    if offered.row.name in _EXAMPLES:
        one = {**one, "example": _EXAMPLES[offered.row.name]}
    if not type_.is_repeated or offered.values == 1:
        return one
    most = min(offered.values, MOST_PARAMETERS)
    return {"type": "array", "minItems": 1, "maxItems": most, "items": one}


def _alternatives(pattern: str, most: int) -> JsonObject:
    """Return the schema of up to `most` values of a pattern, with commas between them."""
    number = f"{{0,{most - 1}}}" if most <= _MOST_COUNTED else "*"
    more = f"(?:,(?:{pattern})){number}" if most > 1 else ""
    return {"type": "string", "pattern": f"^(?:{pattern}){more}$"}


def _responses(
    schema: str, statuses: Iterable[int], headers: Iterable[str] = ()
) -> JsonObject:
    """Return the responses of an operation: a `schema` with more `headers`, or a failure."""
    responses = {"200": _response("Success.", schema, *headers)}
    for status in statuses:
        answer = answer_for_status(status)
        text = _STATUS_TEXTS.get(status) or answer.text or ""
        names = (name for name, _ in answer.headers)
        responses[str(status)] = _response(text, "OperationOutcome", *names)
    responses["default"] = _response("Another failure.", "OperationOutcome")
    return responses


def _response(text: str, schema: str, *headers: str) -> JsonObject:
    content = {CONTENT_TYPE: {"schema": _named(schema)}}
    named = _header_references("X-Request-Id", *headers)
    return {"description": text, "headers": named, "content": content}


def _header_references(*names: str) -> JsonObject:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
