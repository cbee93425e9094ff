"""What search parameters and sort keys compare (spec 4.1, decisions 8 and 9)."""

from collections.abc import Mapping
from types import MappingProxyType

from adapters.contract import ResourceType, SortKey
from adapters.mapping.slots import SLOTS

PARAMETERS: Mapping[ResourceType, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: {
            "_id": ("id",),
            "patient": ("patient_id",),
            "date": ("start",),
            "identifier": ("visit_number",),
            "status": ("status",),
            "class": ("class",),
            "service-provider._extension": ("functional_unit",),
        },
        ResourceType.PATIENT: {
            "_id": ("id",),
            "name": ("names.family", "names.given", "names.text"),
            "family": ("names.family",),
            "given": ("names.given",),
            "birthdate": ("birth_date",),
            "gender": ("gender",),
            "identifier": ("identifiers.value",),
        },
        ResourceType.ORGANIZATION: {
            "_id": ("id",),
            "name": ("name",),
            "identifier": ("identifiers.value",),
        },
    }
)
"""For each search parameter the slots of which at least one is compared."""

_FIELDS = {kind: {s.name: s.record for s in slots} for kind, slots in SLOTS.items()}

COMPARED: Mapping[ResourceType, Mapping[str, str]] = MappingProxyType(
    {
        kind: {name: _FIELDS[kind].get(slot, "") for name, (slot, *_) in of.items()}
        for kind, of in PARAMETERS.items()
    }
)
"""The field of a section that a parameter compares, "" where it is of the section's items."""

SORTS: Mapping[ResourceType, Mapping[str, str]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: {
            SortKey.DATE: "start",
            SortKey.LAST_UPDATED: "last_updated",
            SortKey.ID: "id",
        },
        ResourceType.PATIENT: {SortKey.LAST_UPDATED: "last_updated", SortKey.ID: "id"},
        ResourceType.ORGANIZATION: {
            SortKey.LAST_UPDATED: "last_updated",
            SortKey.ID: "id",
        },
    }
)
"""For each sort key the slot whose column gives the order."""
