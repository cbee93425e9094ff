"""The shape of mapping files, profiles and test files: JSON Schema, and its messages.

`schema.json` defines the keys and their values. The parts that follow from
the tables of slots and of search parameters are filled in when it is read, so that a new
row needs no edit there. Editors load the same schema (`encounters mapping schema`).
jsonschema finds the faults; this module puts them into words for who wrote the file.

Beyond JSON Schema, two annotations are read: `errorMessage` (as in VS Code and ajv: a
text, or one for each keyword) and `elsewhere`, for keys that are right in another place.
A pattern without a message is for editors only: a rule has better words for it.
"""

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypeAlias

import jsonschema
from jsonschema.validators import extend

from adapters.contract import ResourceType
from adapters.mapping.problems import (
    MappingProblem,
    did_you_mean,
    nearest,
    one_of,
)
from adapters.mapping.slots import (
    CLASSES,
    LINES,
    LISTS,
    REFERS,
    REQUIRED,
    SLOTS,
    UNSERVED,
    Kind,
    ListSlot,
    Slot,
)
from adapters.mapping.times import format_fault, zone_names
from adapters.mapping.yaml import KeyPath, Table, place, plain
from adapters.parameters import (
    RESULT_PARAMETERS,
    SEARCH_PARAMETERS,
    SORTS,
    ParameterType,
    SearchParameter,
)

Node: TypeAlias = dict[str, Any]

_LAID_OVER = re.compile(
    r"File|\w*Sections|\w+Section(Several|Entry)?|\w+Fields|\w+Source|Source|CodeTable"
    r"|List|Constants"
)
"""The definitions of tables that are laid over those of a base, key by key."""

_REPEATED = ("mapping", "prefix", "extend")
"""What a file that extends another has to say by itself."""

_LISTS_OF_WORDS = ("search", "sort", "requires")

_FEW = 3
"""How many keys can be named as places where another one belongs."""

_OTHER_FILES = re.compile(r"Profile\w+|Test\w*")


# ---------------------------------------------------------------- the whole schema


def mapping_schema() -> Node:
    """Return the schema of a mapping file, whole or extending another."""
    schema = copy.deepcopy(_schema())
    definitions = _definitions(lambda name: not _OTHER_FILES.fullmatch(name))
    return {**schema, "definitions": definitions | _extending(definitions)}


def profile_schema() -> Node:
    """Return the schema of a profile file."""
    names = re.compile(r"Profile\w+|text|connections")
    definitions = _definitions(lambda name: bool(names.fullmatch(name)))
    root = definitions.pop("ProfileFile")
    return {"$schema": _schema()["$schema"], **root, "definitions": definitions}


def _definitions(is_used: Callable[[str], bool]) -> Node:
    definitions = copy.deepcopy(_schema()["definitions"])
    return {name: node for name, node in definitions.items() if is_used(name)}


@cache
def _schema() -> Node:
    """Return the file's content, with the parts that follow from the tables."""
    file = resources.files("adapters.mapping") / "schema.json"
    schema: Node = json.loads(file.read_text(encoding="utf-8"))
    sections = schema.pop("sections")
    definitions: Node = schema["definitions"]
    definitions["Constants"]["properties"]["class_systems"]["propertyNames"]["enum"] = (
        CLASSES.split()
    )
    for kind in ResourceType:
        for name, node in sections.items():
            text = json.dumps(node).replace("{type}", kind)
            definitions[f"{kind}{name}"] = json.loads(text)
        definitions |= _of_type(kind)
        sorts = [*SORTS[kind], *map(_other_way, SORTS[kind])]
        by = definitions[f"{kind}Sort"]["properties"]["by"]
        by["propertyNames"]["enum"] = sorts
        by["dependencies"] = {key: [_other_way(key)] for key in sorts}
    return schema


def _of_type(kind: ResourceType) -> Node:
    """Return the definitions that the tables of slots and parameters give a type."""
    fields = {slot.name: _value(slot) for slot in SLOTS[kind]}
    items: Node = {}
    for listed in LISTS[kind]:
        name = f"{kind}{listed.name.title()}Item"
        items[name] = _item(listed)
        message = {"type": "expected a list here: each item begins with '- '"}
        fields[listed.name] = {
            "type": "array",
            "items": _ref(name),
            "errorMessage": message,
        }
    parameters = SEARCH_PARAMETERS[kind]
    searches = {name: _ref(_search(row)) for name, row in parameters.items()}
    limits = dict.fromkeys((*parameters, *RESULT_PARAMETERS), _ref("ProfileParameter"))
    more = {"count": _ref("ProfileCount"), "unfiltered_search": {"type": "boolean"}}
    shown = {"type": "expected keys and values here: {_id: {send: …}}"}
    return items | {
        f"{kind}Fields": _table(fields, REQUIRED[kind]),
        f"{kind}Names": _words(parameters, f"a search parameter of {kind}"),
        f"{kind}Sorts": _words(map(str, SORTS[kind]), f"a sort key of {kind}"),
        f"{kind}Required": _words(fields, "a field of this section"),
        f"{kind}Searches": _table(searches) | {"errorMessage": shown},
        f"Profile{kind}": _table(limits | more),
    }


def _ref(name: str) -> Node:
    return {"$ref": f"#/definitions/{name}"}


def _table(properties: Node, required: Sequence[str] = ()) -> Node:
    table = {"type": "object", "additionalProperties": False, "properties": properties}
    return table | ({"required": list(required)} if required else {})


def _words(words: Iterable[str], title: str) -> Node:
    items = {"enum": [*words], "title": title}
    return {"type": "array", "uniqueItems": True, "items": items}


def _other_way(key: str) -> str:
    return key.removeprefix("-") if key.startswith("-") else f"-{key}"


def _search(row: SearchParameter) -> str:
    """Return the definition of how a parameter is sent to an HTTP source."""
    names = {
        ParameterType.DATE: "DateSearch",
        ParameterType.STRING: "TextSearch",
        ParameterType.REFERENCE: "PatientSearch",
    }
    return names.get(row.type, "IdentifierSearch" if row.system_slot else "TokenSearch")


def _value(slot: Slot) -> Node:
    """Return the schema of one value: options in braces, or a bare constant."""
    if slot.name == "last_updated":
        return _ref("Updated")
    if slot.kind in (Kind.TIME, Kind.DATE):
        return _ref(slot.kind.title())
    name = "Reference" if slot.name in REFERS else "Text"
    options: Node = _ref("Parts" if slot.kind is Kind.PARTS else name)
    constant = _constant(slot)
    whole = [options, {"properties": {"value": constant}}]
    if slot.kind is Kind.CODE:
        text = (
            f"'{slot.name}' needs a code table (codes: …) that defines what each code "
            "becomes, even when the column already holds FHIR's codes"
        )
        coded = {"required": ["codes"], "errorMessage": text}
        whole.append({"if": {"required": ["from"]}, "then": coded})
    return {"if": {"type": "object"}, "then": {"allOf": whole}, "else": constant}


def _constant(slot: Slot) -> Node:
    match slot.kind:
        case Kind.CODE:
            words = [code for code in slot.codes if code not in UNSERVED]
            return {"enum": words, "title": f"a code of '{slot.name}'"}
        case Kind.FLAG:
            flags = [True, False, "true", "false"]
            return {"enum": flags, "title": f"a value of '{slot.name}'"}
        case Kind.ID:
            return _ref("id")
        case Kind.SYSTEM:
            return _ref("system")
    message = "expected {from: column} or a constant here"
    kinds = ["string", "number", "boolean"]
    return {"type": kinds, "minLength": 1, "errorMessage": {"type": message}}


def _item(listed: ListSlot) -> Node:
    """Return the schema of one item of a list."""
    properties = {slot.name: _value(slot) for slot in listed.slots}
    if LINES.name in listed.content:
        properties[LINES.name] = {"type": "array", "items": _value(LINES)}
    properties |= {"only_if": _ref("Condition"), "rows": _ref("text")}
    item = _table(properties | {"key": _ref("text")}, listed.required)
    item["dependencies"] = {"key": ["rows"]}
    if not listed.required:
        item["anyOf"] = [{"required": [name]} for name in listed.content]
        wanted = " or ".join(listed.content)
        item["errorMessage"] = {"anyOf": f"an item of '{listed.name}' needs {wanted}"}
    return item


def _extending(definitions: Node) -> Node:
    """Return what a file that extends another may leave out: its base has it."""
    laid_over = {n: node for n, node in definitions.items() if _LAID_OVER.fullmatch(n)}
    text = json.dumps(laid_over)
    for name in laid_over:
        text = text.replace(f'/{name}"', f'/Extending{name}"')
    layers: Node = {f"Extending{name}": d for name, d in json.loads(text).items()}
    for layer in layers.values():
        required = layer.get("required", ())
        layer["required"] = [key for key in required if key in _REPEATED]
        layer.pop("oneOf", None)
    file = layers["ExtendingFile"]
    del file["allOf"]
    for kind in ResourceType:
        names = ("Section", "HttpSection", "SectionSeveral", "OwnSection")
        shapes = [_ref(f"Extending{kind}{name}") for name in names]
        file["properties"][kind.lower()] = {"anyOf": shapes}
    return layers


# -------------------------------------------------------------------------- faults


class Fault(NamedTuple):
    """What is wrong with the value at a path; with its key, or one of its characters.

    Where a key is misspelt, `meant` is the one that it looks like.
    """

    path: KeyPath
    text: str
    at_key: bool = False
    offset: int = -1
    meant: str = ""
    keyword: str = ""


def problems_of(root: Table, name: str) -> tuple[tuple[MappingProblem, KeyPath], ...]:
    """Return each problem of the shape of a file, with its path; `name` is what it is."""
    problems = []
    for path, text, at_key, *_ in root_causes(find_faults(plain(root), name)):
        keys = ".".join(step for step in path if isinstance(step, str))
        problems.append((MappingProblem(place(root, path, at_key), keys, text), path))
    return tuple(problems)


def find_faults(data: Any, name: str) -> tuple[Fault, ...]:
    """Return what is wrong with the data of a file, each thing once."""
    errors = _validator(name).iter_errors(data)
    return tuple(dict.fromkeys(fault for error in errors for fault in _of(error)))


def constant_fault(slot: Slot, value: str) -> str:
    """Return what is wrong with a value of a slot, "" when it is one."""
    errors = _constants(slot).iter_errors(value)
    return next((fault.text for error in errors for fault in _of(error)), "")


@cache
def _constants(slot: Slot) -> Any:
    return _Validator({**_constant(slot), "definitions": _schema()["definitions"]})


def root_causes(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """Return the faults without those that only follow from another one."""
    return tuple(
        fault
        for fault in faults
        if not any(_leads_to(other, fault) for other in faults if other is not fault)
    )


def without_faults(data: Any, faults: Iterable[Fault]) -> Any:
    """Return the data without each value, or key, that is at fault.

    A word of a list of words becomes "", so that the others keep their places.
    """
    for fault in faults:
        steps = [*fault.path]
        is_word = steps[-2:-1] and steps[-2] in _LISTS_OF_WORDS
        while steps and not is_word and not isinstance(steps[-1], str):
            steps.pop()
        holder = data
        for step in steps[:-1]:
            inside = isinstance(holder, list) and isinstance(step, int)
            there = inside or (isinstance(holder, dict) and step in holder)
            holder = holder[step] if there else None
        if isinstance(holder, list) and isinstance(steps[-1], int):
            holder[steps[-1]] = ""
        elif steps and isinstance(holder, dict) and fault.keyword != "required":
            holder.pop(steps[-1], None)
    return data


def _is_written(form: str) -> Callable[[object, object], bool]:
    return lambda _, value: isinstance(value, str) and bool(re.fullmatch(form, value))


def _check_range(validator: Any, _: Any, value: Any, schema: Node) -> Iterator[Any]:
    limits = schema["minimum"], schema["maximum"]
    is_number = validator.is_type(value, "number")
    if is_number and not limits[0] <= float(value) <= limits[1]:
        yield jsonschema.ValidationError("beyond the range")


_Validator = extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft7Validator,
    {"minimum": _check_range, "maximum": _check_range},
    type_checker=jsonschema.Draft7Validator.TYPE_CHECKER.redefine_many(
        {
            "number": _is_written(r"[0-9]*\.?[0-9]+"),
            "integer": _is_written("[0-9]+"),
            "boolean": _is_written("true|false"),
        }
    ),
)
"""Every scalar of a file is text: one that reads as a number counts as one."""


@cache
def _validator(name: str) -> Any:
    schema = {**_ref(name), "definitions": _schema()["definitions"]}
    return _Validator(schema, format_checker=_FORMATS)


_FORMATS = jsonschema.FormatChecker(())
"""What no pattern can say: each raises ValueError with what is wrong."""


@_FORMATS.checks("time-zone", ValueError)
def _is_zone(value: object) -> bool:
    if isinstance(value, str) and value and value not in zone_names():
        near = did_you_mean(value, sorted(zone_names()))
        near = near or ": write Europe/Paris or UTC"
        raise ValueError(f"'{value}' is not a time zone{near}")
    return True


@_FORMATS.checks("strptime", ValueError)
def _is_time_format(value: object) -> bool:
    if isinstance(value, str) and value and (text := format_fault(value)):
        raise ValueError(text)
    return True


def _of(error: Any) -> Iterator[Fault]:
    """Yield the faults that an error of jsonschema means."""
    path, keyword = tuple(error.absolute_path), error.validator
    message = error.schema.get("errorMessage", "")
    if isinstance(message, dict):
        message = message.get(keyword, "")
    match keyword:
        case "additionalProperties":
            yield from _unknown(error.schema, error.instance, path)
        case "required" | "dependencies":
            yield from _missing(error, path, message)
        case "uniqueItems":
            for index, word in enumerate(error.instance):
                if word in error.instance[:index]:
                    yield Fault((*path, index), f"'{word}' is listed twice")
        case _ if keyword != "pattern" or message:
            yield _of_value(error, path, str(message or _standard(error)))


def _of_value(error: Any, path: KeyPath, text: str) -> Fault:
    """Return the fault of a value, or of the key that the schema has checked."""
    in_names = "propertyNames" in error.absolute_schema_path
    is_whole = error.validator in ("not", "oneOf", "anyOf")
    at_key = in_names or (is_whole and isinstance(error.instance, dict))
    path = (*path, error.instance) if in_names else path
    text = text.replace("{value}", str(error.instance))
    return Fault(path, text, at_key, keyword=error.validator)


def _missing(error: Any, path: KeyPath, message: str) -> Iterator[Fault]:
    if error.validator == "dependencies":
        for key, wanted in error.validator_value.items():
            if key in error.instance and not {*wanted} <= {*error.instance}:
                text = f"needs {wanted[0]} beside it"
                yield Fault((*path, key), text, at_key=True, keyword="dependencies")
        return
    for key in error.validator_value:
        if key not in error.instance:
            text = message or f"'{key}' is missing"
            yield Fault((*path, key), text, keyword="required")


def _standard(error: Any) -> str:
    """Return the message of a keyword that has none of its own."""
    schema, words = error.schema, error.validator_value
    match error.validator:
        case "enum":
            texts = [word for word in words if isinstance(word, str)]
            if isinstance(error.instance, str):
                return one_of(error.instance, texts, schema.get("title", "allowed"))
            return f"expected one of {', '.join(texts)} here"
        case "format":
            return str(error.cause)
        case "minLength":
            return "nothing is written here"
        case "minimum" | "maximum":
            return f"must be from {schema['minimum']:g} to {schema['maximum']:g}"
    return {
        "object": "expected keys and values here",
        "array": "expected a list here: [a, b]",
        "number": "expected a number here",
        "integer": "expected a whole number here",
        "boolean": "expected true or false here",
    }.get(str(words), "expected a text here")


# -------------------------------------------------------------------- unknown keys


def _unknown(
    schema: Node, instance: Mapping[str, Any], path: KeyPath
) -> Iterator[Fault]:
    """Yield the keys that do not belong here, each with where it may belong."""
    known = _properties(schema)
    for key in (key for key in instance if key not in known):
        text, meant = _refusal(schema, known, key)
        yield Fault((*path, key), text, True, meant=meant, keyword="unknown")


def _refusal(
    schema: Node, known: Mapping[str, Sequence[Node]], key: str
) -> tuple[str, str]:
    """Return the message for an unknown key, and the key that it should be."""
    first = re.split("[: ]", key)[0]
    holders = [
        k for k, nodes in known.items() if any(key in _properties(n) for n in nodes)
    ]
    if key in schema.get("elsewhere", {}):
        return f"'{key}' {schema['elsewhere'][key]}", key
    if first != key:
        text = f"'{key}': a key ends in ': ', and a text with a ',' or ':' needs quotes"
        return text, first
    if 0 < len(holders) <= _FEW:
        return f"'{key}' belongs in {' or '.join(holders)}: indent it below that", key
    return one_of(key, known, "a key here"), nearest(key, known)


def _properties(schema: Node) -> dict[str, list[Node]]:
    """Return the schemas of each key that a schema names, whichever of its ways is taken."""
    properties: dict[str, list[Node]] = {}
    for node in _ways(schema):
        for key, value in node.get("properties", {}).items():
            properties.setdefault(key, []).append(value)
    return properties


def _ways(schema: Node) -> Iterator[Node]:
    """Yield a schema and those that it consists of; of a list, those of its items."""
    yield schema
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/definitions/")
        yield from _ways(_schema()["definitions"][name])
    more = (schema.get(key) for key in ("then", "else", "items"))
    for below in (*schema.get("allOf", ()), *filter(None, more)):
        yield from _ways(below)


def _leads_to(other: Fault, fault: Fault) -> bool:
    path, keyword, holder = fault.path, fault.keyword, other.path[:-1]
    match other.keyword:
        case "enum" if other.path[-1] == "kind":
            in_section = keyword == "required" and path[0] not in ("source", "sources")
            return in_section or (keyword != "enum" and path[: len(holder)] == holder)
        case "not" if keyword in ("unknown", "required"):
            return path[:-1] == other.path
        case "unknown" if keyword in ("oneOf", "anyOf"):
            return holder == path
        case "unknown" if other.meant == "extend":
            return keyword in ("required", "dependencies")
        case "unknown" if keyword == "required":
            return _stands_for(other, path)
    return False


def _stands_for(unknown: Fault, missing: KeyPath) -> bool:
    """Return whether an unknown key is the missing one: misspelt, or a level too far in or out."""
    wrong, key = str(unknown.path[-1]), str(missing[-1])
    if unknown.path[:-1] == missing[:-1]:
        return unknown.meant in (wrong, key) or bool(nearest(wrong, [key]))
    one_level = (unknown.path[:-1] == missing[:-2], unknown.path[:-2] == missing[:-1])
    return wrong == key and any(one_level)
