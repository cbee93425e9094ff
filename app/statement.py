"""The facts of the CapabilityStatement, from what the deployment offers."""

from collections.abc import Iterator
from datetime import date
from importlib.metadata import version

from adapters.contract import Limit, ResourceType
from adapters.mapping.profile import MAX_VALUES
from app.capabilities import Offer, OfferedParameter, ResourceOffer
from app.criteria import ParameterType, SearchParameter, modifiers
from app.parameters import SEARCH_PARAMETERS
from app.schemas.capability import (
    CapabilityFacts,
    InteractionFacts,
    ParameterFacts,
    ResourceFacts,
)
from app.values import listed

_SCOPES = (
    "An access token with the scope PATIENT_GAM_SEARCH, or with those of ORGANIZATION_READ, "
    "PATIENT_READ, PATIENT_SEARCH, ENCOUNTER_READ and ENCOUNTER_SEARCH that are needed."
)
_KEYSET = (
    "A resource that exists and does not change during the walk through the pages is "
    "returned exactly once, forwards and backwards."
)
_FIRST_ONLY = "The first page only; total counts all matches."


def capability_facts(
    offer: Offer, base_url: str, title: str, offered_since: date
) -> CapabilityFacts:
    """Return what the statement says; no resource type that is not served is in it."""
    resources = [
        _resource(each, paging=offer.paging) for each in offer.resources.values()
    ]
    if any(each.searchable for each in offer.resources.values()):
        resources.append(_bundle(paging=offer.paging))
    return CapabilityFacts(
        base_url=base_url,
        date=offered_since,
        software_version=version("encounters"),
        description=title,
        resources=tuple(resources),
        security_description=_SCOPES,
    )


def _resource(offer: ResourceOffer, *, paging: bool) -> ResourceFacts:
    interactions = [InteractionFacts("read")]
    if offer.searchable:
        interactions.append(
            InteractionFacts("search-type", _search_text(offer, paging))
        )
    parameters = tuple(
        _parameter(offer.resource_type, each) for each in offer.parameters.values()
    )
    return ResourceFacts(
        offer.resource_type, tuple(interactions), parameters, dated=offer.dated
    )


def _search_text(offer: ResourceOffer, paging: bool) -> str:
    size = f"_count is {offer.count_default} by default and {offer.count_max} at most."
    sorts = ", ".join(f"{key}, -{key}" for key in offer.sorts)
    usual = f"{'-' if offer.default_sort.descending else ''}{offer.default_sort.key}"
    order = f" Results come in the order {usual}."
    if offer.sortable:
        order = f" _sort is one of {sorts}, by default {usual}."
    if offer.order:
        order = f" Results come in the hospital system's own order: {offer.order}."
    promise = "" if not offer.keyset else f" {_KEYSET}"
    return f"{size}{order}{promise if paging else f' {_FIRST_ONLY}'}"


def _parameter(
    resource_type: ResourceType, offered: OfferedParameter
) -> ParameterFacts:
    row = SEARCH_PARAMETERS[resource_type][offered.name]
    text = " ".join(parameter_text(row, offered))
    return ParameterFacts(row.name, row.definition, row.type, text)


def parameter_text(row: SearchParameter, offered: OfferedParameter) -> Iterator[str]:
    """Yield, in sentences, what a parameter finds and what it takes in this deployment."""
    able = offered.capability
    yield row.documentation
    if row.type is ParameterType.DATE:
        if able.period:
            yield "It is compared with the whole stay, from its start to its end."
        yield f"Prefixes {listed(able.prefixes)}."
        if able.finest is Limit.DAY:
            yield "It takes whole days."
    takes = modifiers(able.matches) if row.type is ParameterType.STRING else ()
    if takes:
        yield f"Modifiers {', '.join(takes)}."
    if offered.values < MAX_VALUES:
        one = offered.values == 1
        yield "One value." if one else f"At most {offered.values} values."


def _bundle(*, paging: bool) -> ResourceFacts:
    text = "Pages of earlier searches: follow the links of a result as they stand."
    if not paging:
        text = "An earlier search again: follow the self link of its result."
    return ResourceFacts("Bundle", (InteractionFacts("search-type", text),))
