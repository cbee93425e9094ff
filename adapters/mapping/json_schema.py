"""JSON Schema (draft 7) of a mapping file, made from the shapes that load it.

Editors read YAML with types: where the format wants a text, a number or a yes is one as
well, because the loader takes every scalar as it is written. What keys say about each
other is checked by `rules`, and is beyond this schema.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from marshmallow import Schema, fields, validate

from adapters.contract import ResourceType
from adapters.mapping.elements import SECTIONS
from adapters.mapping.http_schema import Searches
from adapters.mapping.json_values import (
    TEXT,
    Node,
    coded_node,
    columns_node,
    entries_node,
    given,
    number_node,
    patterned,
    text_node,
)
from adapters.mapping.own_schema import CLASS_PATH, OwnSourceShape
from adapters.mapping.parameters import PARAMETERS, SORTS
from adapters.mapping.profile import ProfileShape
from adapters.mapping.schema import MappingShape, Section
from adapters.mapping.secrets import FromEnvironment, Secret
from adapters.mapping.several import EntryPart, OfKind
from adapters.mapping.shapes import Entries, Shape, YesNo
from adapters.mapping.source_schema import SOURCES, Source
from adapters.mapping.value_shapes import Columns, OneValue

DRAFT = "http://json-schema.org/draft-07/schema#"
"""What editors' YAML servers understand best."""

_LAYER = "Extending"
_LAID_OVER = re.compile(
    r"File|\w+Section(Several|Entry)?|\w+Fields|\w+Source|CodeTable|List|Constants"
)
"""The definitions of tables that are laid over those of a base, key by key."""

_CLASS: Node = {"type": "string", "pattern": CLASS_PATH}

_SAID_AGAIN = ("mapping", "prefix", "extend")
"""What a file that extends another has to say by itself."""


class _Writer:
    """Writes each shape once, under `definitions`, and refers to it from there on."""

    def __init__(self) -> None:
        self.definitions: dict[str, Node] = {}

    def shape(self, shape: type[Schema]) -> Node:
        """Return a reference to the definition of a shape."""
        return {"$ref": f"#/definitions/{self._named(shape)}"}

    def _named(self, shape: type[Schema]) -> str:
        """Return the name of a definition; shapes that say the same share one."""
        if not issubclass(shape, Shape):
            raise TypeError(f"{shape.__name__} is no shape of a mapping file")
        table = self.table(shape.known()) | given(shape)
        name = plain = re.sub(r"(Shape|Options)$", "", shape.__name__)
        number = 1
        while self.definitions.setdefault(name, table) != table:
            number += 1
            name = f"{plain}{number}"
        return name

    def table(self, known: Mapping[str, fields.Field[Any]]) -> Node:
        """Return the schema of a table with these keys and no others."""
        required = [key for key, field in known.items() if field.required]
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": {key: self.field(field) for key, field in known.items()},
        } | ({"required": required} if required else {})

    def field(self, field: fields.Field[Any]) -> Node:
        """Return the schema of one field."""
        writers: Mapping[type, Callable[[Any], Node]] = {
            Section: self._section,
            EntryPart: self._of_kind,
            fields.Nested: lambda part: self.shape(type(part.schema)),
            fields.List: self._listed,
            Entries: lambda e: entries_node(self.field(e.inner), e.keys),
            Columns: columns_node,
            OneValue: self._one_value,
            Secret: lambda secret: {
                "anyOf": [patterned(secret.pattern), self.shape(FromEnvironment)]
            },
            Source: lambda _: self._by_kind(),
            Searches: self._searches,
            YesNo: lambda _: {"enum": [True, False, "true", "false"]},
            fields.Number: number_node,
            fields.String: text_node,
        }
        for kind, write in writers.items():
            if isinstance(field, kind):
                return write(field)
        raise TypeError(f"no JSON Schema is known for {type(field).__name__}")

    def _section(self, part: Section) -> Node:
        several = {"if": {"required": ["sources"]}, "then": self.shape(part.several)}
        return several | {"else": self._of_kind(part)}

    def _of_kind(self, part: OfKind) -> Node:
        # Only an HTTP API is told how to read.
        of_http, own = self.shape(part.of_http), self.shape(type(part.schema))
        return {"if": {"required": ["read"]}, "then": of_http, "else": own}

    def _listed(self, listed: Any) -> Node:
        lengths = [v for v in listed.validators if isinstance(v, validate.Length)]
        least = {"minItems": lengths[0].min} if lengths else {}
        return {"type": "array", "items": self.field(listed.inner), **least}

    def _one_value(self, value: OneValue) -> Node:
        options = self.shape(value.options)
        if "value" not in value.options.known():
            return {"allOf": [options, {"required": ["from"]}]}
        either = {"oneOf": [{"required": ["from"]}, {"required": ["value"]}]}
        table = {"allOf": [options, either]}
        if value.codes:
            return coded_node(table, value.codes)
        return {"if": {"type": "object"}, "then": table, "else": TEXT}

    def _by_kind(self) -> Node:
        first, *others = SOURCES
        node = self.shape(SOURCES[first])
        for kind in others:
            then = self.shape(SOURCES[kind])
            node = {"if": _kind_is({"const": kind}), "then": then, "else": node}
        own = self.shape(OwnSourceShape)
        node = {"if": _kind_is(_CLASS), "then": own, "else": node}
        kinds = {"anyOf": [{"enum": list(SOURCES)}, _CLASS]}
        return {"properties": {"kind": kinds}, "allOf": [node]}

    def _searches(self, searches: Searches) -> Node:
        shapes = {name: self.shape(s) for name, s in searches.shapes.items()}
        return {"type": "object", "additionalProperties": False, "properties": shapes}


def mapping_schema() -> Node:
    """Return the schema of a mapping file, whole or extending another."""
    writer = _Writer()
    writer.definitions["File"] = _file(writer)
    _say_what_is_offered(writer.definitions)
    return {
        "$schema": DRAFT,
        "title": "A mapping file: where the values of a hospital's stays come from",
        "if": {"required": ["extend"]},
        "then": {"$ref": f"#/definitions/{_LAYER}File"},
        "else": {"$ref": "#/definitions/File"},
        "definitions": writer.definitions | _layers(writer.definitions),
    }


def _file(writer: _Writer) -> Node:
    whole = writer.table(MappingShape.known())
    whole["oneOf"] = [{"required": ["source"]}, {"required": ["sources"]}]
    whole["dependencies"] = {"without": ["extend"]}
    sources = whole["properties"]["sources"]
    in_company = {"properties": {"kind": {"enum": list(SOURCES)}}}
    sources["additionalProperties"]["allOf"].append(in_company)
    own = _sections(writer, lambda section: section.of_own)
    of_databases = {"properties": _take_sections(whole["properties"])}
    whole["if"] = _source_is({"const": "http"})
    whole["then"] = _sections(writer, lambda section: section.of_http)
    whole["else"] = {"if": _source_is(_CLASS), "then": own, "else": of_databases}
    return whole


def _layers(definitions: Mapping[str, Node]) -> Node:
    """Return what a file may leave out that extends another: its base says it."""
    laid_over = {
        name: d for name, d in definitions.items() if _LAID_OVER.fullmatch(name)
    }
    text = json.dumps(laid_over)
    for name in laid_over:
        text = text.replace(f'/{name}"', f'/{_LAYER}{name}"')
    layers: Node = {f"{_LAYER}{name}": d for name, d in json.loads(text).items()}
    for layer in layers.values():
        layer["required"] = [
            key for key in layer.get("required", ()) if key in _SAID_AGAIN
        ]
        layer.pop("oneOf", None)
    file = layers[f"{_LAYER}File"]
    either = [file.pop("then"), file.pop("else")]
    layers[f"{_LAYER}File"] = {k: v for k, v in file.items() if k != "if"}
    layers[f"{_LAYER}File"]["anyOf"] = either
    return layers


def profile_schema() -> Node:
    """Return the schema of a profile file."""
    writer = _Writer()
    return {
        "$schema": DRAFT,
        "title": "A profile: what a deployment offers",
        **writer.table(ProfileShape.known()),
        "definitions": writer.definitions,
    }


def _sections(writer: _Writer, shape_of: Callable[[Section], type[Shape]]) -> Node:
    """Return the sections in the shapes of another kind of source."""
    known = MappingShape.known()
    sections = {key: known[key] for key in SECTIONS}
    shapes = {
        key: writer.shape(shape_of(section))
        for key, section in sections.items()
        if isinstance(section, Section)
    }
    return {"properties": shapes}


def _take_sections(properties: Node) -> Node:
    """Move the sections out of what holds for every kind of source."""
    sections = {key: properties[key] for key in SECTIONS}
    properties.update({key: {} for key in SECTIONS})
    return sections


def _source_is(kind: Node) -> Node:
    return {"properties": {"source": _kind_is(kind)}, "required": ["source"]}


def _kind_is(kind: Node) -> Node:
    return {"properties": {"kind": kind}, "required": ["kind"]}


def _say_what_is_offered(definitions: Mapping[str, Node]) -> None:
    """Name the words of `search` and `sort`: an editor completes them."""
    for kind in ResourceType:
        for name, definition in definitions.items():
            listed = definition.get("properties", {})
            if not name.startswith(kind):
                continue
            fields_of = definitions[f"{kind}Fields"]["properties"]
            offered = {"search": PARAMETERS[kind], "sort": SORTS[kind]}
            for key, words in (offered | {"requires": fields_of}).items():
                if listed.get(key, {}).get("type") == "array":
                    listed[key]["items"] = {"enum": list(map(str, words))}
                    listed[key]["uniqueItems"] = True
