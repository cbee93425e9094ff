"""The shape of mapping files, profiles and test files: JSON Schema, and its messages.

`schema.json` defines the keys and their values, and describes them. What follows from the
tables of options, slots and search parameters is filled in when it is read; a new slot
only needs its description there. Editors load the same schema (`encounters mapping schema`),
and the tables of keys in the guide are written from it.
jsonschema finds the faults; this module puts them into words for who wrote the file.

Beyond JSON Schema, two annotations are read: `errorMessage` (as in VS Code and ajv: a
text, or one for each keyword) and `elsewhere`, for keys that are right in another place.
A pattern without a message is for editors only: a rule has better words for it.
"""

import codecs
import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypeAlias

import jsonschema
from jsonschema.validators import extend

from adapters.contract import ResourceType
from adapters.mapping.problems import (
    MappingProblem,
    did_you_mean,
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
    ListSlot,
    Slot,
    SlotKind,
    element,
)
from adapters.mapping.template import PLACES, template_fault, template_of
from adapters.mapping.times import format_fault, zone_names
from adapters.mapping.yaml import KeyPath, Scalar, Table, find, place
from adapters.parameters import (
    DERIVED,
    SEARCH_PARAMETERS,
    SORTS,
    ParameterType,
    SearchParameter,
    profile_parameters,
)

SchemaNode: TypeAlias = dict[str, Any]

_LAID_OVER = re.compile(
    r"File|\w*Sections|\w+Section(Several|Entry)?|\w+Fields|\w+Source|Source|CodeTable"
    r"|List|Constants"
)
"""The definitions of tables that are laid over those of a base, key by key."""

_REPEATED = ("mapping", "prefix", "extend")
"""What a file that extends another has to say by itself."""

_OTHER_FILES = re.compile(r"Profile\w+|Test\w*|Confirmed\w+")


# ---------------------------------------------------------------- the whole schema


def editor_schema() -> SchemaNode:
    """Return the schema of a mapping file, whole or extending another, as editors read it.

    In draft 7 a reference hides what is beside it, so it stands alone there. Descriptions
    have no links: the editor does not know where they lead.
    """
    schema = copy.deepcopy(_schema())
    definitions = schema["definitions"]
    for name in filter(_OTHER_FILES.fullmatch, [*definitions]):
        del definitions[name]
    definitions |= _extending(definitions)
    for definition in definitions.values():
        for key, node in definition.get("properties", {}).items():
            if text := node.pop("description", ""):
                shown = {"description": _LINK.sub(r"\1", text)}
                alone = {"allOf": [node]} if "$ref" in node else node
                definition["properties"][key] = {**shown, **alone}
    return schema


_LINK = re.compile(r"\[([^]]+)\]\([^)]*\)")


def all_definitions() -> SchemaNode:
    """Return every definition by its name."""
    definitions: SchemaNode = _schema()["definitions"]
    return definitions


@cache
def _schema() -> SchemaNode:
    """Return the file's content, with the parts that follow from the tables."""
    file = resources.files("adapters.mapping") / "schema.json"
    schema: SchemaNode = json.loads(file.read_text(encoding="utf-8"))
    sections = schema.pop("sections")
    described = schema.pop("slots")
    definitions: SchemaNode = schema["definitions"]
    definitions |= _values(**schema.pop("values"))

    # How a parameter is sent, by its kind.
    searches = schema.pop("searches")
    for name, keys in searches["kinds"].items():
        table = _table({key: searches["options"][key] for key in keys}, ["query"])
        definitions[name] = table | {"errorMessage": searches["errorMessage"]}

    # A case of a test has the keys of a test, without those that hold for all cases.
    test = definitions["Test"]["properties"]
    keys_for_all_cases = ("of", "source", "cases")
    case = {key: node for key, node in test.items() if key not in keys_for_all_cases}
    definitions["TestCase"] = _table(case)

    # An entry of a section with several sources has some keys before those of a section.
    section = sections["Section"]
    keys_of_entry = schema.pop("entry")
    sections["SectionEntry"] = section | {
        "required": [*keys_of_entry, *section["required"]],
        "properties": keys_of_entry | section["properties"],
    }

    systems = definitions["Constants"]["properties"]["class_systems"]
    systems["propertyNames"]["enum"] = list(CLASSES)

    # Each part of a section is defined once for each resource type.
    for kind in ResourceType:
        for name, node in sections.items():
            text = json.dumps(node).replace("{type}", kind)
            definitions[f"{kind}{name}"] = json.loads(text)
        definitions |= _of_type(kind, described)
        sorts = [*SORTS[kind], *map(_other_way, SORTS[kind])]
        by = definitions[f"{kind}Sort"]["properties"]["by"]
        by["propertyNames"]["enum"] = sorts
        by["dependencies"] = {key: [_other_way(key)] for key in sorts}
    return schema


def _values(
    options: SchemaNode, elsewhere: SchemaNode, kinds: SchemaNode, **shapes: SchemaNode
) -> SchemaNode:
    """Return the definition of each kind of value from the options that it takes."""
    definitions: SchemaNode = {}
    for name, keys in kinds.items():
        table = _table({key: options[key] for key in keys})
        if name in ("Time", "Updated"):
            # A date and its time of day.
            table["properties"]["from"] = options["from"] | _ref("columns")
        others = {key: text for key, text in elsewhere.items() if key not in keys}
        shape = shapes["constant or column" if "value" in keys else "column"]
        definitions[name] = table | shape | {"elsewhere": others}
    return definitions


def _of_type(kind: ResourceType, described: SchemaNode) -> SchemaNode:
    """Return the definitions that the tables of slots and parameters give a type.

    `described` holds the descriptions of slots.
    """
    # The fields of a section: single values, and lists of items.
    fields = {slot.name: _value(slot) for slot in SLOTS[kind]}
    items: SchemaNode = {}
    for listed in LISTS[kind]:
        name = f"{kind}{listed.name.title()}Item"
        items[name] = _item(listed)
        _describe(items[name]["properties"], described["Item"])
        message = {"type": "expected a list here: each item begins with '- '"}
        fields[listed.name] = {
            "type": "array",
            "items": _ref(name),
            "errorMessage": message,
        }
    _describe(fields, described[kind])

    # How each parameter is sent, which only APIs need.
    parameters = SEARCH_PARAMETERS[kind]
    searches: SchemaNode = {}
    for name, row in parameters.items():
        text = f"how the parameter is sent: {row.documentation}"
        searches[name] = _ref(_search(row)) | {"description": text}

    # What a profile may limit.
    limits: SchemaNode = {
        name: _ref("ProfileParameter") for name in profile_parameters(kind)
    }
    for name, row in parameters.items():
        limits[name]["description"] = row.documentation
    for derived in DERIVED.get(kind, {}).values():
        limits[derived.name]["description"] = derived.documentation
    more = {"count": _ref("ProfileCount"), "unfiltered_search": {"type": "boolean"}}
    for properties in (limits, more):
        _describe(properties, described["Profile"])

    shown = {"type": "expected keys and values here: {_id: {query: …}}"}
    return items | {
        f"{kind}Fields": _table(fields, REQUIRED[kind]),
        f"{kind}Names": _words(parameters, f"a search parameter of {kind}"),
        f"{kind}Sorts": _words(map(str, SORTS[kind]), f"a sort key of {kind}"),
        f"{kind}Required": _words(fields, "a field of this section"),
        f"{kind}Searches": _table(searches) | {"errorMessage": shown},
        f"Profile{kind}": _table(limits | more),
    }


def _describe(properties: SchemaNode, texts: SchemaNode) -> None:
    """Add descriptions to the properties that they name."""
    for name in properties.keys() & texts.keys():
        properties[name] = {"description": texts[name], **properties[name]}


def _ref(name: str) -> SchemaNode:
    return {"$ref": f"#/definitions/{name}"}


def _table(properties: SchemaNode, required: Sequence[str] = ()) -> SchemaNode:
    table = {"type": "object", "additionalProperties": False, "properties": properties}
    return table | ({"required": list(required)} if required else {})


def _words(words: Iterable[str], title: str) -> SchemaNode:
    items = {"enum": [*words], "title": title}
    return {"type": "array", "uniqueItems": True, "items": items}


def _other_way(key: str) -> str:
    """Return a sort key in the other direction."""
    return key.removeprefix("-") if key.startswith("-") else f"-{key}"


def _search(row: SearchParameter) -> str:
    """Return the definition of how a parameter is sent to an HTTP source."""
    names = {
        ParameterType.DATE: "DateSearch",
        ParameterType.STRING: "TextSearch",
        ParameterType.REFERENCE: "PatientSearch",
    }
    return names.get(row.type, "IdentifierSearch" if row.system_slot else "TokenSearch")


def _value(slot: Slot) -> SchemaNode:
    """Return the schema of one value: options in braces, or a bare constant."""
    if slot.name == "last_updated":
        return _ref("Updated")
    if slot.kind in (SlotKind.TIME, SlotKind.DATE):
        return _ref(slot.kind.title())
    name = "Reference" if slot.name in REFERS else "Text"
    options: SchemaNode = _ref("Parts" if slot.kind is SlotKind.PARTS else name)
    constant = _constant(slot)
    as_table = [options, {"properties": {"value": constant}}]
    if slot.kind is SlotKind.CODE:
        text = (
            f"'{slot.name}' needs a code table (codes: …), even if its column already "
            "has FHIR codes"
        )
        coded = {"required": ["codes"], "errorMessage": text}
        as_table.append({"if": {"required": ["from"]}, "then": coded})
    return {"if": {"type": "object"}, "then": {"allOf": as_table}, "else": constant}


def _constant(slot: Slot) -> SchemaNode:
    """Return the schema of a constant of a slot."""
    match slot.kind:
        case SlotKind.CODE:
            words = [code for code in slot.codes if code not in UNSERVED]
            return {"enum": words, "title": f"a code of '{slot.name}'"}
        case SlotKind.FLAG:
            flags = [True, False, "true", "false"]
            return {"enum": flags, "title": f"a value of '{slot.name}'"}
        case SlotKind.ID:
            return _ref("id")
        case SlotKind.SYSTEM:
            return _ref("system")
    message = "expected {from: column} or a constant here"
    kinds = ["string", "number", "boolean"]
    return {"type": kinds, "minLength": 1, "errorMessage": {"type": message}}


def _item(listed: ListSlot) -> SchemaNode:
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


def _extending(definitions: SchemaNode) -> SchemaNode:
    """Return the definitions for a file that extends another: fewer keys are required."""
    laid_over = {n: node for n, node in definitions.items() if _LAID_OVER.fullmatch(n)}
    text = json.dumps(laid_over)
    for name in laid_over:
        text = text.replace(f'/{name}"', f'/Extending{name}"')
    layers: SchemaNode = {f"Extending{name}": d for name, d in json.loads(text).items()}
    for layer in layers.values():
        required = layer.get("required", ())
        layer["required"] = [key for key in required if key in _REPEATED]
        layer.pop("oneOf", None)
        layer.pop("dependencies", None)
    file = layers["ExtendingFile"]
    del file["allOf"]
    for kind in ResourceType:
        names = ("Section", "HttpSection", "SectionSeveral", "OwnSection")
        shapes = [_ref(f"Extending{kind}{name}") for name in names]
        file["properties"][kind.lower()]["anyOf"] = shapes
    return layers


# -------------------------------------------------------------------------- faults


class Fault(NamedTuple):
    """What is wrong with the value at a path; with its key, or one of its characters."""

    path: KeyPath
    text: str
    at_key: bool = False
    offset: int = -1


def problem_of(root: Table, fault: Fault) -> MappingProblem:
    """Return the problem of a fault: its place and the element."""
    mark = place(root, fault.path, fault.at_key)
    node = find(root, fault.path)
    if fault.offset >= 0 and isinstance(node, Scalar):
        mark = node.at(fault.offset)
    return MappingProblem(mark, element(fault.path), fault.text)


def problems_of(root: Table, name: str) -> tuple[tuple[MappingProblem, KeyPath], ...]:
    """Return each problem of the shape of a file, with its path; `name` is what it is."""
    faults = find_faults(root, name)
    return tuple((problem_of(root, fault), fault.path) for fault in faults)


def find_faults(root: Table, name: str) -> tuple[Fault, ...]:
    """Return what is wrong with the shape of a file, each thing once.

    If a table is refused as a whole, its missing and unknown keys are not reported.
    """
    errors = [*_validator(name).iter_errors(root)]
    refused = {tuple(e.absolute_path) for e in errors if e.validator == "not"}
    faults: dict[Fault, None] = {}
    for error in errors:
        is_key = error.validator in ("required", "additionalProperties")
        if not (is_key and tuple(error.absolute_path) in refused):
            faults |= dict.fromkeys(_faults_of(error))
    return tuple(faults)


def constant_fault(slot: Slot, value: str) -> str:
    """Return what is wrong with a value of a slot, "" when it is one."""
    errors = _constants(slot).iter_errors(value)
    texts = (fault.text for error in errors for fault in _faults_of(error))
    return next(texts, "")


@cache
def _constants(slot: Slot) -> Any:
    """Return the validator of the constants of a slot."""
    return _Validator({**_constant(slot), "definitions": _schema()["definitions"]})


def _is_written(pattern: str) -> Callable[[object, object], bool]:
    """Return a check of jsonschema whether a value is a text that matches a pattern."""

    def is_written(_checker: object, value: object) -> bool:
        return isinstance(value, str) and re.fullmatch(pattern, value) is not None

    return is_written


def _check_range(
    validator: Any, _: Any, value: Any, schema: SchemaNode
) -> Iterator[Any]:
    if not validator.is_type(value, "number"):
        return
    if not schema["minimum"] <= float(value) <= schema["maximum"]:
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
        names = sorted(zone_names())
        zones_by_city = {name.rpartition("/")[2]: name for name in names}
        city = value.title().replace(" ", "_")
        near = did_you_mean(zones_by_city.get(city, value), names)
        remedy = near or ": write Europe/Paris or UTC"
        raise ValueError(f"'{value}' is not a time zone{remedy}")
    return True


@_FORMATS.checks("strptime", ValueError)
def _is_time_format(value: object) -> bool:
    if isinstance(value, str) and value and (text := format_fault(value)):
        raise ValueError(text)
    return True


def _add_template_format(purpose: str) -> None:
    """Add the format `template-…` that checks templates for a purpose."""

    @_FORMATS.checks(f"template-{purpose}", ValueError)
    def is_template(value: object) -> bool:
        if not isinstance(value, str) or not value:
            return True
        faults = [template_fault(value, purpose)]
        if purpose == "time":
            forms = {place.form for place in template_of(value).places if place.form}
            faults += map(format_fault, forms)
        for fault in faults:
            if fault:
                raise ValueError(fault)
        return True


for _purpose in PLACES:
    _add_template_format(_purpose)


@_FORMATS.checks("encoding", LookupError)
def _is_encoding(value: object) -> bool:
    try:
        codecs.lookup(str(value))
    except LookupError as error:
        raise LookupError(f"'{value}' is not the name of an encoding") from error
    return True


def _faults_of(error: Any) -> Iterator[Fault]:
    """Yield the faults that an error of jsonschema means.

    Their text is the `errorMessage` of the schema, else the standard one of the keyword.
    """
    path = tuple(error.absolute_path)
    keyword = error.validator
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
            text = str(message).replace("{value}", str(error.instance))
            yield _of_value(error, path, text or _standard(error))


def _unknown(
    schema: SchemaNode, instance: SchemaNode, path: KeyPath
) -> Iterator[Fault]:
    """Yield the fault of each key that a table cannot have."""
    known = schema["properties"]
    elsewhere = schema.get("elsewhere", {})
    for key in instance:
        if key in known:
            continue
        text = one_of(key, known, "a key here")
        if key in elsewhere:
            text = f"'{key}' {elsewhere[key]}"
        yield Fault((*path, key), text, at_key=True)


def _missing(error: Any, path: KeyPath, message: str) -> Iterator[Fault]:
    """Yield the fault of each key that a table lacks, or that lacks another one beside it."""
    if error.validator == "dependencies":
        for key, wanted in error.validator_value.items():
            if key in error.instance and not {*wanted} <= {*error.instance}:
                yield Fault((*path, key), f"also needs {wanted[0]}", at_key=True)
        return
    for key in error.validator_value:
        if key not in error.instance:
            yield Fault((*path, key), message or f"'{key}' is missing")


def _of_value(error: Any, path: KeyPath, text: str) -> Fault:
    """Return the fault of a value, or of the key that the schema has checked."""
    if "propertyNames" in error.absolute_schema_path:
        return Fault((*path, error.instance), text, at_key=True)
    is_table = isinstance(error.instance, dict)
    is_refused_whole = is_table and error.validator in ("not", "oneOf", "anyOf")
    return Fault(path, text, at_key=is_refused_whole)


def _standard(error: Any) -> str:
    """Return the message of an error for which the schema has none."""
    schema = error.schema
    words = error.validator_value
    match error.validator:
        case "enum":
            texts = [word for word in words if isinstance(word, str)]
            return one_of(str(error.instance), texts, schema.get("title", "allowed"))
        case "format":
            return str(error.cause)
        case "minLength":
            return "has no value"
        case "minimum" | "maximum":
            return f"must be from {schema['minimum']:g} to {schema['maximum']:g}"
    return {
        "object": "expected keys and values here",
        "array": "expected a list here: [a, b]",
        "number": "expected a number here",
        "integer": "expected a whole number here",
        "boolean": "expected true or false here",
    }.get(str(words), "expected a text here")
