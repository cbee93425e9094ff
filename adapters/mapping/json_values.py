"""Single values of a mapping file in JSON Schema."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from marshmallow import Schema, fields, validate

from adapters.mapping.shapes import Word
from adapters.mapping.value_shapes import Columns

Node: TypeAlias = dict[str, Any]

TEXT: Node = {"type": ["string", "number", "boolean"], "minLength": 1}


def entries_node(inner: Node, keys: Sequence[str]) -> Node:
    """Return the schema of keys that the integrator chooses, where there is a choice."""
    named = {"propertyNames": {"enum": list(keys)}} if keys else {}
    return {"type": "object", "additionalProperties": inner, **named}


def given(shape: type[Schema]) -> Node:
    """Return which keys of a shape are given together, as far as it says so."""
    made: Node = {}
    for word, key in (("oneOf", "one_of"), ("anyOf", "any_of")):
        if names := getattr(shape, key, ()):
            made[word] = [{"required": [name]} for name in names]
    return made


def patterned(pattern: str) -> Node:
    """Return the schema of a text; a number or a yes is one as it stands."""
    return {**TEXT, "pattern": pattern} if pattern else TEXT


def coded_node(options: Node, codes: Sequence[str]) -> Node:
    """Return the schema of a coded value: a column with a table, or one of the codes."""
    constant = {"properties": {"value": {"enum": list(codes)}}}
    table = {"if": {"required": ["from"]}, "then": {"required": ["codes"]}}
    whole = {"allOf": [options, table | {"else": constant}]}
    return {"if": {"type": "object"}, "then": whole, "else": {"enum": list(codes)}}


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
    return patterned(getattr(text, "pattern", ""))
