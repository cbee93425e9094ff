"""The part of a resource that `_summary` and `_elements` select (decision 19)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from adapters.contract import ResourceType
from app.fhir.resources import Element


class Summary(StrEnum):
    """The values of `_summary`."""

    TRUE = "true"
    TEXT = "text"
    DATA = "data"
    COUNT = "count"
    FALSE = "false"


@dataclass(frozen=True, slots=True)
class Presentation:
    """Which part of a resource is returned; `elements` are names of `ELEMENTS`."""

    summary: Summary = Summary.FALSE
    elements: tuple[str, ...] = ()


WHOLE = Presentation()


class ElementTable(NamedTuple):
    """Top-level elements of a resource type, as STU3 defines them."""

    all: tuple[str, ...]
    summary: tuple[str, ...]
    mandatory: tuple[str, ...]
    modifier: tuple[str, ...]


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_EVERY_RESOURCE = _names(
    "id meta implicitRules language text contained extension modifierExtension"
)

TABLES: Mapping[str, ElementTable] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: ElementTable(
            all=_EVERY_RESOURCE
            + _names(
                """identifier status statusHistory class classHistory type priority
                subject episodeOfCare incomingReferral participant appointment period
                length reason diagnosis account hospitalization location
                serviceProvider partOf"""
            ),
            summary=_names(
                """id meta implicitRules identifier status class type subject
                episodeOfCare participant appointment reason diagnosis"""
            ),
            mandatory=_names("status"),
            modifier=_names("implicitRules modifierExtension status"),
        ),
        ResourceType.PATIENT: ElementTable(
            all=_EVERY_RESOURCE
            + _names(
                """identifier active name telecom gender birthDate deceased address
                maritalStatus multipleBirth photo contact animal communication
                generalPractitioner managingOrganization link"""
            ),
            summary=_names(
                """id meta implicitRules identifier active name telecom gender birthDate
                deceased address animal managingOrganization link"""
            ),
            mandatory=(),
            modifier=_names(
                "implicitRules modifierExtension active deceased animal link"
            ),
        ),
        ResourceType.ORGANIZATION: ElementTable(
            all=_EVERY_RESOURCE
            + _names(
                "identifier active type name alias telecom address partOf contact endpoint"
            ),
            summary=_names("id meta implicitRules identifier active type name partOf"),
            mandatory=(),
            modifier=_names("implicitRules modifierExtension active"),
        ),
    }
)

ELEMENTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {resource_type: frozenset(table.all) for resource_type, table in TABLES.items()}
)
"""The names that `_elements` accepts, by resource type."""

_ALWAYS = ("resourceType", "id", "meta")
_CHOICES = {"deceasedBoolean": "deceased", "deceasedDateTime": "deceased"}
"""The element of each name that ends in its type: `deceased[x]` in FHIR."""
_NEEDED = {"Organization": ("identifier", "name")}
"""Elements of which an invariant requires one (org-1): every part has them."""
_SUBSETTED = {
    "system": "http://hl7.org/fhir/v3/ObservationValue",
    "code": "SUBSETTED",
}


def cut(resource: Element, presentation: Presentation) -> Element:
    """Return the part of a resource that `_summary` and `_elements` select.

    What STU3 makes mandatory stays, by an invariant too, and with `_elements` the modifiers
    as well: a patient who is no longer active is never shown without saying so. A resource
    that lost an element carries the tag SUBSETTED. The argument is not changed.
    """
    kind = str(resource["resourceType"])
    table = TABLES[kind]
    needed = _NEEDED.get(kind, ())
    part = {
        name: value
        for name, value in resource.items()
        if name in needed or _is_selected(_CHOICES.get(name, name), table, presentation)
    }
    return part if len(part) == len(resource) else _tagged(part)


def _is_selected(name: str, table: ElementTable, presentation: Presentation) -> bool:
    if name in _ALWAYS or name in table.mandatory:
        return True
    if presentation.elements:
        return name in presentation.elements or name in table.modifier
    match presentation.summary:
        case Summary.FALSE:
            return True
        case Summary.TRUE:
            return name in table.summary
        case Summary.DATA:
            return name != "text"
        case Summary.TEXT:
            return name == "text"
        case Summary.COUNT:
            return False


def _tagged(part: Element) -> Element:
    meta = part.pop("meta", {})
    assert isinstance(meta, dict)
    head = {name: part.pop(name) for name in ("resourceType", "id")}
    return {**head, "meta": {**meta, "tag": [_SUBSETTED]}, **part}
