"""The FHIR data types that resources are made of, one marshmallow field each.

A field writes its whole element from the whole record, so a resource needs no nested
schema. Where the record holds nothing it returns `missing`, and the element is left out:
FHIR has no empty elements. Times stay aware datetimes and dates stay dates, which orjson
writes as FHIR requires.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeAlias

from marshmallow import Schema, fields, missing

from adapters.contract import (
    AddressRecord,
    IdentifierRecord,
    NameRecord,
    ResourceType,
    TelecomRecord,
)

Element: TypeAlias = dict[str, object]
Writer: TypeAlias = Callable[[Any], Element]


def filled(element: Mapping[str, object]) -> Element:
    """Return the element without its empty children; False and 0 are not empty."""
    return {name: child for name, child in element.items() if child or child == 0}


def compiled(schema: Schema) -> Writer:
    """Return a function that writes one record as `schema.dump` does, in half the time."""
    writers = tuple(
        (name, field.serialize_func)
        for name, field in schema.dump_fields.items()
        if isinstance(field, fields.Function) and field.serialize_func is not None
    )
    # The function would silently leave out a field of another kind.
    assert len(writers) == len(schema.dump_fields)

    def write(record: Any) -> Element:
        return {
            name: element
            for name, write_element in writers
            if (element := write_element(record)) is not missing
        }

    return write


def constant_field(text: str) -> fields.Function:
    """Return the field of a text that is the same in every resource."""
    return fields.Function(lambda _record: text)


def value_field(attribute: str) -> fields.Function:
    """Return the field of a plain value; None and the empty text are left out."""
    value_of = attrgetter(attribute)

    def write(record: object) -> object:
        value = value_of(record)
        return missing if value is None or value == "" else value

    return fields.Function(write)


def list_field(attribute: str, item: Callable[[Any], Element]) -> fields.Function:
    """Return the field of a list with an item for each of a tuple in the record."""
    values_of = attrgetter(attribute)

    def write(record: object) -> object:
        items = [element for each in values_of(record) if (element := item(each))]
        return items or missing

    return fields.Function(write)


def identifiers_field(type_system: str) -> fields.Function:
    """Return the field of identifiers whose types are coded in `type_system`."""
    return list_field("identifiers", lambda each: identifier(each, type_system))


def meta_field() -> fields.Function:
    """Return the field of `meta`: the last change; there is no versionId (decision 19)."""

    def write(record: Any) -> object:
        changed: datetime | None = record.last_updated
        return missing if changed is None else {"lastUpdated": changed}

    return fields.Function(write)


def reference_field(target: ResourceType, attribute: str) -> fields.Function:
    """Return the field of a reference to another resource of this service."""
    id_of = attrgetter(attribute)
    return fields.Function(lambda record: reference(target, id_of(record)) or missing)


def reference(target: ResourceType, id: str | None) -> Element:
    """Return a Reference to a resource of this service, empty without an id."""
    return {"reference": f"{target}/{id}"} if id else {}


def identifier(record: IdentifierRecord, type_system: str) -> Element:
    """Return an Identifier, its type coded in `type_system`."""
    coding = {"system": type_system, "code": record.type}
    return filled(
        {
            "use": record.use,
            "type": {"coding": [coding]} if record.type else None,
            "system": record.system,
            "value": record.value,
            "assigner": reference(ResourceType.ORGANIZATION, record.assigner_id),
        }
    )


def human_name(record: NameRecord) -> Element:
    """Return a HumanName."""
    return filled(
        {
            "use": record.use,
            "text": record.text,
            "family": record.family,
            "given": [given for given in record.given if given],
            "prefix": [record.prefix] if record.prefix else None,
        }
    )


def contact_point(record: TelecomRecord) -> Element:
    """Return a ContactPoint; STU3 requires a system beside a value (cpt-2)."""
    if not record.value:
        return {}
    system = record.system or "other"
    return filled({"system": system, "value": record.value, "use": record.use})


def address(record: AddressRecord) -> Element:
    """Return an Address."""
    return filled(
        {
            "use": record.use,
            "line": [line for line in record.lines if line],
            "city": record.city,
            "postalCode": record.postal_code,
            "country": record.country,
        }
    )
