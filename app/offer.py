"""What a deployment offers: its profile, limited to what mapping and source can do.

Computed once, at start. Parser, error texts, paging and CapabilityStatement read the same
`Offer`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from adapters.contract import (
    Capabilities,
    ParameterCapability,
    ResourceType,
    Sort,
    SortKey,
)
from adapters.mapping.profile import Profile, ResourceProfile
from adapters.parameters import (
    DERIVED,
    INCLUDES,
    SEARCH_PARAMETERS,
    SORTS,
    Include,
    SearchParameter,
)


@dataclass(frozen=True, slots=True)
class OfferedParameter:
    """A search parameter that this deployment offers, with at most `values` values.

    `row` is the parameter that the values are compared as: a derived parameter has another
    `name`. With `is_linked`, `row` belongs to another resource type than the one searched.
    """

    name: str
    values: int
    capability: ParameterCapability
    row: SearchParameter
    is_linked: bool = False


@dataclass(frozen=True, slots=True)
class ResourceOffer:
    """What one resource type offers here; `parameters` are filters, by FHIR name.

    `uncounted` means that a search may go without a total (`_total=none`), `backwards` that
    pages have a `previous` link; `order` describes the source's own order where it cannot
    sort. `includes` are the values of `_include`, by their text.
    """

    resource_type: ResourceType
    parameters: Mapping[str, OfferedParameter]
    includes: Mapping[str, Include]
    sorts: tuple[SortKey, ...]
    default_sort: Sort
    sortable: bool
    uncounted: bool
    searchable: bool
    count_default: int
    count_max: int
    unfiltered: bool
    keyset: bool
    dated: bool
    backwards: bool
    order: str

    @property
    def sort_values(self) -> tuple[str, ...]:
        """The values of `_sort`; with keyset paging also those that end with the id.

        The id sorts in the direction of the key before it (decision 36).
        """
        signed = [f"{sign}{key}" for key in self.sorts for sign in ("", "-")]
        if not self.keyset:
            return tuple(signed)
        pairs = []
        for key in signed:
            id = "-_id" if key.startswith("-") else "_id"
            if key != id:
                pairs.append(f"{key},{id}")
        return (*signed, *pairs)


@dataclass(frozen=True, slots=True)
class Offer:
    """What the deployment offers; `paging`: whether results have further pages."""

    resources: Mapping[ResourceType, ResourceOffer]
    paging: bool


def compute_offer(profile: Profile, capabilities: Capabilities) -> Offer:
    """Return what profile, mapping and source have in common."""
    served = {
        kind: capabilities[kind] for kind in profile.resources if kind in capabilities
    }
    resources = {
        kind: _resource_offer(kind, profile.resources[kind], served) for kind in served
    }
    return Offer(resources, profile.paging)


def _resource_offer(
    kind: ResourceType, profile: ResourceProfile, served: Capabilities
) -> ResourceOffer:
    source = served[kind]
    sorts = tuple(SortKey(key) for key in SORTS[kind] if key in source.sorts)
    default = sorts[0] if sorts else SortKey.ID
    parameters = {}
    for name, values in profile.parameters.items():
        parameter = _offered(kind, name, values=values, served=served)
        if parameter is not None:
            parameters[name] = parameter
    includes = {
        include.name: include
        for include in INCLUDES.get(kind, ())
        if "_include" in profile.parameters and finds_several(served, include.target)
    }
    return ResourceOffer(
        resource_type=kind,
        parameters=parameters,
        includes=includes,
        sorts=sorts,
        default_sort=Sort(default, descending=default is not SortKey.ID),
        sortable="_sort" in profile.parameters and bool(sorts),
        uncounted="_total" in profile.parameters,
        searchable=bool(profile.parameters) and source.listed,
        count_default=profile.count_default,
        count_max=profile.count_max,
        unfiltered=profile.unfiltered_search,
        keyset=source.keyset,
        dated=source.dated,
        backwards=source.backwards,
        order=source.order,
    )


def finds_several(served: Capabilities, target: ResourceType) -> bool:
    """Whether resources of a type are served, and several found by their ids at once."""
    if target not in served or not served[target].listed:
        return False
    ids = served[target].parameters.get("_id")
    return ids is not None and (ids.most is None or ids.most > 1)


def _offered(
    kind: ResourceType, name: str, *, values: int, served: Capabilities
) -> OfferedParameter | None:
    """Return a parameter, None where the source cannot answer it or it filters nothing."""
    derived = DERIVED.get(kind, {}).get(name)
    if derived is None:
        if name not in served[kind].parameters:
            return None
        row = SEARCH_PARAMETERS[kind][name]
        return OfferedParameter(name, values, served[kind].parameters[name], row)
    is_linked = derived.kind is not kind
    source = served.get(derived.kind)
    if source is None or derived.parameter not in source.parameters:
        return None
    if is_linked and not (source.listed and "patient" in served[kind].parameters):
        return None
    row = replace(
        SEARCH_PARAMETERS[derived.kind][derived.parameter],
        documentation=derived.documentation,
        definition=derived.definition,
    )
    capability = source.parameters[derived.parameter]
    return OfferedParameter(name, values, capability, row, is_linked)
