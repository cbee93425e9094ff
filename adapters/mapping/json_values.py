"""Single values of a mapping file in JSON Schema."""

from typing import Any, TypeAlias

from marshmallow import fields, validate

from adapters.mapping.shapes import Columns, Word

Node: TypeAlias = dict[str, Any]

TEXT: Node = {"type": ["string", "number", "boolean"], "minLength": 1}


def entries_node(inner: Node) -> Node:
    """Return the schema of keys that the integrator chooses."""
    return {"type": "object", "additionalProperties": inner}


def columns_node(columns: Columns) -> Node:
    """Return the schema of the name of a column, or of two."""
    if not columns.two:
        return TEXT
    two = {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 2}
    return {"anyOf": [TEXT, two]}


def number_node(number: fields.Number[Any]) -> Node:
    """Return the schema of a number, which may stand as text."""
    whole = isinstance(number, fields.Integer)
    bounds = next(v for v in number.validators if isinstance(v, validate.Range))
    written = r"^[0-9]+$" if whole else r"^[0-9]*\.?[0-9]+$"
    limits = {"minimum": bounds.min, "maximum": bounds.max}
    kind = "integer" if whole else "number"
    return {"anyOf": [{"type": kind, **limits}, {"type": "string", "pattern": written}]}


def text_node(text: fields.String) -> Node:
    """Return the schema of a text, or of one of some words."""
    for check in text.validators:
        if isinstance(check, Word):
            return {"enum": list(map(str, check.choices))}
    return TEXT
