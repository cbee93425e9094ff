"""The FHIR data types that resources are made of, one marshmallow field each.

A field writes its whole element from the whole record, so that a resource costs one
call an element and no nested schema. Where the record holds nothing it answers
`missing`, and marshmallow leaves the element out: nothing empty is ever written. Times
stay aware datetimes and dates stay dates, which orjson writes as FHIR asks for.
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
from adapters.mapping.constants import Constants

Element: TypeAlias = dict[str, object]


def filled(element: Mapping[str, object]) -> Element:
    """Return the element without its empty children; False and 0 are not empty."""
    return {name: child for name, child in element.items() if child or child == 0}


class ElementField(fields.Field[Any]):
    """An element of a resource, written from the whole record."""

    def __init__(self, data_key: str | None = None) -> None:
        super().__init__(data_key=data_key, dump_only=True)

    def prepare(self, constants: Constants) -> None:
        """Take what the deployment fixes; called once, when a schema is built."""

    def write(self, record: Any) -> object:
        """Return the element, or `missing` when the record holds nothing for it."""
        raise NotImplementedError

    def serialize(
        self,
        attr: str,  # noqa: ARG002
        obj: Any,
        accessor: object = None,  # noqa: ARG002
        **_: object,
    ) -> object:
        """Write the element for marshmallow's own `dump`; that of ElementSchema does without."""
        return self.write(obj)


class ElementSchema(Schema):
    """A resource made of element fields. Build it once."""

    def __init__(self) -> None:
        super().__init__()
        self._writers = tuple(
            (field.data_key or name, field.write)
            for name, field in self.dump_fields.items()
            if isinstance(field, ElementField)
        )

    def dump(self, obj: Any, *, many: bool | None = None) -> Any:
        """Write one record, or each of many, as marshmallow would, in half its time."""
        return [self._written(each) for each in obj] if many else self._written(obj)

    def _written(self, record: Any) -> Element:
        element: Element = {}
        for name, write in self._writers:
            value = write(record)
            if value is not missing:
                element[name] = value
        return element


class ResourceSchema(ElementSchema):
    """A resource whose fields know the constants of the deployment."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        super().__init__()

    def on_bind_field(self, _name: str, field_obj: fields.Field[Any]) -> None:
        """Hand the constants to a field; marshmallow calls this while it is built."""
        if isinstance(field_obj, ElementField):
            field_obj.prepare(self._constants)


class ConstantField(ElementField):
    """The same text on every record."""

    def __init__(self, text: str, data_key: str | None = None) -> None:
        super().__init__(data_key)
        self._text = text

    def write(self, _record: object) -> object:
        """Return the text."""
        return self._text


class ValueField(ElementField):
    """A value as the record holds it: a code, a text, a date, true or false."""

    def __init__(self, source: str, data_key: str | None = None) -> None:
        super().__init__(data_key)
        self._source = attrgetter(source)

    def write(self, record: object) -> object:
        """Return the value; None and the empty text are nothing, false is something."""
        value = self._source(record)
        return missing if value is None or value == "" else value


class EachField(ElementField):
    """A list with one item for each of a tuple in the record."""

    def __init__(self, source: str, item: Callable[[Any], Element]) -> None:
        super().__init__()
        self._source = attrgetter(source)
        self._item = item

    def write(self, record: object) -> object:
        """Return the items, without those that have nothing in them."""
        items = [item for each in self._source(record) if (item := self._item(each))]
        return items or missing


class IdentifiersField(ElementField):
    """`identifier`: a list of Identifiers, their types coded in the deployment's system."""

    def __init__(self, type_system: str) -> None:
        super().__init__()
        self._constant = attrgetter(type_system)

    def prepare(self, constants: Constants) -> None:
        """Take the code system of the types."""
        self._type_system: str = self._constant(constants)

    def write(self, record: Any) -> object:
        """Return the identifiers in the order of the mapping."""
        found: tuple[IdentifierRecord, ...] = record.identifiers
        return [identifier(each, self._type_system) for each in found] or missing


class MetaField(ElementField):
    """`meta`: when the resource last changed. There is no versionId (decision 19)."""

    def write(self, record: Any) -> object:
        """Return the time of the last change, when the source knows it."""
        changed: datetime | None = record.last_updated
        return missing if changed is None else {"lastUpdated": changed}


class ReferenceField(ElementField):
    """A reference to another resource of this service, by its relative URL."""

    def __init__(
        self, target: ResourceType, source: str, data_key: str | None = None
    ) -> None:
        super().__init__(data_key)
        self._prefix = f"{target}/"
        self._source = attrgetter(source)

    def write(self, record: object) -> object:
        """Return the reference, when the record names a target."""
        id = self._source(record)
        return {"reference": self._prefix + id} if id else missing


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
    """Return a ContactPoint; one of an unknown kind is `other`.

    STU3 takes no value without a system (cpt-2).
    """
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
