"""The closed list of slots that a mapping fills: the one table that the rest reads.

A slot has the word of the file, the FHIR element that it becomes, a kind, which decides what
options it takes and how its values are read, and its attribute in the record. Code lists
are the required value sets of STU3 (spec 2.1 and 2.4 for status and class). A new field is
a row here, a line in the FHIR schema, and its test.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from adapters.contract import ResourceType
from adapters.mapping.model import (
    HIDDEN,
    REMOVED,
    FieldMapping,
    ItemCondition,
    ItemMapping,
    ResourceMapping,
)
from adapters.mapping.yaml import KeyPath
from adapters.parameters import SEARCH_PARAMETERS

LONGEST_ID = 64
FHIR_ID = re.compile(rf"[A-Za-z0-9\-.]{{1,{LONGEST_ID}}}")
"""STU3 datatypes, id."""


class SlotKind(StrEnum):
    """How the values of a slot are read and checked."""

    ID = "id"
    """A FHIR id, also of the resource that is referred to."""
    EXACT = "exact"
    """An identifying text: nothing but trailing blanks is taken away."""
    TEXT = "text"
    """A text for people: control characters become blanks."""
    PARTS = "parts"
    """Several texts for people."""
    SYSTEM = "system"
    """An OID URN or an absolute URL."""
    CODE = "code"
    """A code of a closed list."""
    TIME = "time"
    """An instant."""
    DATE = "date"
    """A calendar day."""
    FLAG = "flag"
    """True or false."""


class Slot(NamedTuple):
    """A place that one value goes to.

    `attribute` is its field in the record, if that has another name. A `personal` one tells
    whose row it is: `preview --redact` masks it for patients and stays. `also` is an element
    that it makes besides its own where it has a value.
    """

    name: str
    element: str
    kind: SlotKind
    codes: tuple[str, ...] = ()
    attribute: str = ""
    personal: bool = False
    also: str = ""

    @property
    def record(self) -> str:
        """Its field in the record."""
        return self.attribute or self.name

    @property
    def takes(self) -> tuple[str, ...]:
        """All the words that it can hold, where they are few."""
        return ("true", "false") if self.kind is SlotKind.FLAG else self.codes


class ListSlot(NamedTuple):
    """A slot that holds a list of items.

    An item without a value in any of `content` is left out; `required` are the slots
    without which an item makes no sense.
    """

    name: str
    element: str
    slots: tuple[Slot, ...]
    content: tuple[str, ...]
    required: tuple[str, ...] = ()


UNSERVED = (HIDDEN, REMOVED)
STATUSES = ("planned", "in-progress", "finished", *UNSERVED)
CLASSES = ("EMER", "IMP", "PRENC", "AMB", "REC", "UNK")
GENDERS = ("male", "female", "other", "unknown")
NAME_USES = ("usual", "official", "temp", "nickname", "anonymous", "old", "maiden")
TELECOM_SYSTEMS = ("phone", "fax", "email", "pager", "url", "sms", "other")
USES = ("home", "work", "temp", "old")

SLOTS: Mapping[ResourceType, tuple[Slot, ...]] = {
    ResourceType.ENCOUNTER: (
        Slot("id", "id", SlotKind.ID, personal=True),
        Slot("visit_number", "identifier.value", SlotKind.EXACT, personal=True),
        Slot("visit_number_system", "identifier.system", SlotKind.SYSTEM),
        Slot("patient_id", "subject", SlotKind.ID, personal=True),
        Slot("status", "status", SlotKind.CODE, STATUSES),
        Slot("class", "class", SlotKind.CODE, CLASSES, "class_code"),
        Slot("start", "period.start", SlotKind.TIME),
        Slot("end", "period.end", SlotKind.TIME),
        Slot("functional_unit", "serviceProvider.extension", SlotKind.EXACT),
        Slot("ward", "location.location.display", SlotKind.TEXT),
        Slot(
            "organization_id",
            "serviceProvider",
            SlotKind.ID,
            also="identifier.assigner",
        ),
        Slot("last_updated", "meta.lastUpdated", SlotKind.TIME),
    ),
    ResourceType.PATIENT: (
        Slot("id", "id", SlotKind.ID, personal=True),
        Slot("active", "active", SlotKind.FLAG),
        Slot("gender", "gender", SlotKind.CODE, GENDERS),
        Slot("birth_date", "birthDate", SlotKind.DATE, personal=True),
        Slot("deceased", "deceasedBoolean", SlotKind.FLAG),
        Slot("deceased_at", "deceasedDateTime", SlotKind.TIME, personal=True),
        Slot("organization_id", "managingOrganization", SlotKind.ID),
        Slot("replaced_by", "link.other", SlotKind.ID, personal=True, also="active"),
        Slot("last_updated", "meta.lastUpdated", SlotKind.TIME),
    ),
    ResourceType.ORGANIZATION: (
        Slot("id", "id", SlotKind.ID),
        Slot("active", "active", SlotKind.FLAG),
        Slot("name", "name", SlotKind.TEXT),
        Slot("part_of", "partOf", SlotKind.ID),
        Slot("last_updated", "meta.lastUpdated", SlotKind.TIME),
    ),
}

REQUIRED: Mapping[ResourceType, tuple[str, ...]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: ("id", "status", "patient_id"),
        ResourceType.PATIENT: ("id",),
        ResourceType.ORGANIZATION: ("id",),
    }
)

IDENTIFIERS = ListSlot(
    "identifiers",
    "identifier",
    (
        Slot("type", "type", SlotKind.EXACT),
        Slot("system", "system", SlotKind.SYSTEM),
        Slot("value", "value", SlotKind.EXACT, personal=True),
        Slot("use", "use", SlotKind.CODE, ("usual", "official", "temp", "secondary")),
        Slot("assigner", "assigner", SlotKind.ID, attribute="assigner_id"),
    ),
    content=("value",),
    required=("value",),
)
NAMES = ListSlot(
    "names",
    "name",
    (
        Slot("use", "use", SlotKind.CODE, NAME_USES),
        Slot("family", "family", SlotKind.TEXT, personal=True),
        Slot("given", "given", SlotKind.PARTS, personal=True),
        Slot("prefix", "prefix", SlotKind.TEXT),
        Slot("text", "text", SlotKind.TEXT, personal=True),
    ),
    content=("family", "given", "text"),
)
TELECOMS = ListSlot(
    "telecoms",
    "telecom",
    (
        Slot("system", "system", SlotKind.CODE, TELECOM_SYSTEMS),
        Slot("value", "value", SlotKind.TEXT, personal=True),
        Slot("use", "use", SlotKind.CODE, (*USES, "mobile")),
    ),
    content=("value",),
    required=("value", "system"),
)
LINES = Slot("lines", "line", SlotKind.TEXT, personal=True)
ADDRESSES = ListSlot(
    "addresses",
    "address",
    (
        Slot("use", "use", SlotKind.CODE, USES),
        Slot("city", "city", SlotKind.TEXT, personal=True),
        Slot("postal_code", "postalCode", SlotKind.TEXT, personal=True),
        Slot("country", "country", SlotKind.TEXT),
    ),
    content=("lines", "city", "postal_code", "country"),
)


def _without_home(listed: ListSlot) -> ListSlot:
    """Return the list as an organization has it: at no home (FHIR org-2, org-3)."""
    slots = (
        slot._replace(codes=tuple(code for code in slot.codes if code != "home"))
        for slot in listed.slots
    )
    return listed._replace(slots=tuple(slots))


LISTS: Mapping[ResourceType, tuple[ListSlot, ...]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: (),
        ResourceType.PATIENT: (IDENTIFIERS, NAMES, TELECOMS, ADDRESSES),
        ResourceType.ORGANIZATION: (
            IDENTIFIERS,
            _without_home(TELECOMS),
            _without_home(ADDRESSES),
        ),
    }
)


REFERS: Mapping[str, ResourceType] = MappingProxyType(
    {
        "patient_id": ResourceType.PATIENT,
        "replaced_by": ResourceType.PATIENT,
        "organization_id": ResourceType.ORGANIZATION,
        "part_of": ResourceType.ORGANIZATION,
        "assigner": ResourceType.ORGANIZATION,
    }
)
"""The slots that hold the id of another resource, and its type."""


IMPLIED_BY_TYPE: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "INS-NIR": {"system": "urn:oid:1.2.250.1.213.1.4.8", "use": "official"},
        "INS-NIA": {"system": "urn:oid:1.2.250.1.213.1.4.9", "use": "temp"},
        "INS-NIR-TEST": {"system": "urn:oid:1.2.250.1.213.1.4.10", "use": "official"},
        "INS-NIR-DEMO": {"system": "urn:oid:1.2.250.1.213.1.4.11", "use": "official"},
        "INS-C": {"system": "urn:oid:1.2.250.1.213.1.4.2", "use": "secondary"},
        "NDP": {"system": "urn:oid:1.2.250.1.176.1.2", "use": "secondary"},
        "PI": {"use": "usual"},
        "RRI": {"use": "secondary"},
    }
)
"""By a French identifier type (ANS, CI-SIS), the slots of an identifier that it implies."""


# ------------------------------------------------------------ names of FHIR elements

SECTIONS: Mapping[str, ResourceType] = {kind.lower(): kind for kind in ResourceType}


def named_slots(kind: ResourceType) -> Iterator[tuple[str, Slot]]:
    """Yield every slot with its name in faults (`start`, `names.family`)."""
    yield from ((slot.name, slot) for slot in SLOTS[kind])
    for listed in LISTS[kind]:
        for slot in (*listed.slots, LINES):
            yield f"{listed.name}.{slot.name}", slot


def element(path: KeyPath) -> str:
    """Return the FHIR element that a path of the file makes, else its keys with dots.

    (patient, fields, identifiers, 0, value) makes Patient.identifier.value.
    """
    keys = [step for step in path if isinstance(step, str)]
    if keys[1:2] == ["sources"]:
        del keys[1]
    if keys[:1] == ["codes"]:
        return ".".join(keys[:2])
    if len(keys) < 3 or keys[0] not in SECTIONS or keys[1] != "fields":
        return ".".join(keys)
    kind = SECTIONS[keys[0]]
    name = keys[2]
    for slot in SLOTS[kind]:
        if slot.name == name:
            return f"{kind}.{slot.element}"
    for listed in LISTS[kind]:
        if listed.name == name:
            item_element = f"{kind}.{listed.element}"
            for slot in (*listed.slots, LINES):
                if len(keys) > 3 and slot.name == keys[3]:
                    return f"{item_element}.{slot.element}"
            return item_element
    return ".".join(keys)


def field_of(kind: ResourceType, name: str) -> str:
    """Return the field of a section that a parameter compares, "" where it is of an item."""
    slot = SEARCH_PARAMETERS[kind][name].slots[0]
    return next((row.record for row in SLOTS[kind] if row.name == slot), "")


# --------------------------------------------------- the values of a built section


class Place(NamedTuple):
    """A field of a section: the FHIR element that it makes, and how it is read.

    `slot` is its name in faults (`start`, `names.family`), `item` the item of a list that
    it is in, if any. `takes` are all the words that it can hold, where these are few.
    """

    field: FieldMapping
    slot: str
    element: str
    kind: SlotKind
    item: ItemMapping | None = None
    takes: tuple[str, ...] = ()

    @property
    def rows(self) -> str:
        """The second SELECT that it comes from, "" for the section's own."""
        return (self.item.rows or "") if self.item else ""

    @property
    def only_if(self) -> ItemCondition | None:
        """Which rows its item counts in."""
        return self.item.only_if if self.item else None


def places_of(section: ResourceMapping) -> tuple[Place, ...]:
    """Return the fields of a section in the order of the slots, lines of an address last."""
    kind = section.resource_type
    places = []
    for slot in SLOTS[kind]:
        if field := section.fields.get(slot.record):
            place = Place(
                field,
                slot=slot.name,
                element=f"{kind}.{slot.element}",
                kind=slot.kind,
                takes=slot.takes,
            )
            places.append(place)
    for listed in LISTS[kind]:
        for item in section.items.get(listed.name, ()):
            values = [(slot, item.fields.get(slot.record)) for slot in listed.slots]
            values += [(LINES, line) for line in item.lines]
            for slot, field in values:
                if field is None:
                    continue
                place = Place(
                    field,
                    slot=f"{listed.name}.{slot.name}",
                    element=f"{kind}.{listed.element}.{slot.element}",
                    kind=slot.kind,
                    item=item,
                    takes=slot.takes,
                )
                places.append(place)
    return tuple(places)


def own_places(section: ResourceMapping) -> tuple[Place, ...]:
    """Return the fields that the section's own SELECT fills."""
    return tuple(place for place in places_of(section) if not place.rows)
