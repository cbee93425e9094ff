"""What a deployment offers: its profile, of what its mapping and its source can do.

Computed once, at start; searching, error texts, paging and the CapabilityStatement all
read the same `Offer`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from adapters.contract import (
    Capabilities,
    ParameterCapability,
    ResourceCapabilities,
    ResourceType,
    Sort,
    SortKey,
)
from adapters.mapping.profile import Profile, ResourceProfile

_SORTS: Mapping[ResourceType, tuple[SortKey, ...]] = {
    ResourceType.ENCOUNTER: (SortKey.DATE, SortKey.LAST_UPDATED),
    ResourceType.PATIENT: (SortKey.ID, SortKey.LAST_UPDATED),
    ResourceType.ORGANIZATION: (SortKey.ID, SortKey.LAST_UPDATED),
}
"""What `_sort` takes; the default first (decision 8)."""


@dataclass(frozen=True, slots=True)
class OfferedParameter:
    """A search parameter that works here, with at most `values` values."""

    name: str
    values: int
    capability: ParameterCapability


@dataclass(frozen=True, slots=True)
class ResourceOffer:
    """What one resource type offers here; `parameters` are filters, by FHIR name.

    `backwards` says that pages lead to earlier ones too; `order` tells the source's own
    order where it sorts by nothing.
    """

    resource_type: ResourceType
    parameters: Mapping[str, OfferedParameter]
    sorts: tuple[SortKey, ...]
    default_sort: Sort
    sortable: bool
    searchable: bool
    count_default: int
    count_max: int
    unfiltered: bool
    keyset: bool
    dated: bool
    backwards: bool
    order: str


@dataclass(frozen=True, slots=True)
class Offer:
    """What the deployment offers; `paging` says whether results have further pages."""

    resources: Mapping[ResourceType, ResourceOffer]
    paging: bool


def compute_offer(profile: Profile, capabilities: Capabilities) -> Offer:
    """Return what profile, mapping and source have in common."""
    resources = {
        kind: _resource_offer(kind, wanted, capabilities[kind])
        for kind, wanted in profile.resources.items()
        if kind in capabilities
    }
    return Offer(resources, profile.paging)


def _resource_offer(
    kind: ResourceType, profile: ResourceProfile, source: ResourceCapabilities
) -> ResourceOffer:
    sorts = tuple(key for key in _SORTS[kind] if key in source.sorts)
    default = sorts[0] if sorts else SortKey.ID
    parameters = {
        name: OfferedParameter(name, limits.values, source.parameters[name])
        for name, limits in profile.parameters.items()
        if name in source.parameters
    }
    return ResourceOffer(
        resource_type=kind,
        parameters=parameters,
        sorts=sorts,
        default_sort=Sort(default, descending=default is not SortKey.ID),
        sortable="_sort" in profile.parameters and bool(sorts),
        searchable=bool(profile.parameters),
        count_default=profile.count_default,
        count_max=profile.count_max,
        unfiltered=profile.unfiltered_search,
        keyset=source.keyset,
        dated=source.dated,
        backwards=source.backwards,
        order=source.order,
    )
