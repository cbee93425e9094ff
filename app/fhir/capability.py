"""CapabilityStatement: what a deployment offers, derived from its `Offer`."""

from collections.abc import Iterator, Sequence
from datetime import date
from importlib.metadata import version

from adapters.mapping.profile import MAX_VALUES
from app.fhir.resources import Element, filled
from app.offer import Offer, OfferedParameter, ResourceOffer
from app.search.types import TYPES

FHIR_VERSION = "3.0.2"
FORMATS = ("application/fhir+json", "application/json", "json")
SOFTWARE = "Encounter Information Service"
SEARCHING = (
    "Search by POST [type]/_search with a form, or by GET [type]; its pages, Bundles, are "
    "GET only. A parameter that is not offered is refused; with Prefer: "
    "handling=lenient it is ignored, and the Bundle reports it. Searches and reads accept "
    "_summary and _elements, and pages repeat those of their search; _format and _pretty "
    "are accepted everywhere."
)
_SCOPES = (
    "An access token with the scope PATIENT_GAM_SEARCH, or with the scopes of the requests: "
    "ORGANIZATION_READ, PATIENT_READ, PATIENT_SEARCH, ENCOUNTER_READ, ENCOUNTER_SEARCH."
)
_OAUTH_URIS = "http://fhir-registry.smarthealthit.org/StructureDefinition/oauth-uris"
_TIME_ZONE = "http://hl7.org/fhir/StructureDefinition/tz-code"
"""Extension of the date of the statement, where STU3 allows it: the deployment's zone."""
_OAUTH = {"system": "http://hl7.org/fhir/restful-security-service", "code": "OAuth"}
_SECURITY_SERVICE = {"coding": [_OAUTH], "text": "OAuth 2.0, bearer token"}
_KEYSET = (
    "A resource that exists and does not change while a client follows the pages is "
    "returned exactly once, forwards and backwards."
)


def capability_statement(
    offer: Offer,
    base_url: str,
    title: str,
    offered_since: date,
    *,
    zone: str,
    unit_extension: str | None = None,
    token_url: str | None = None,
) -> Element:
    """Return the STU3 CapabilityStatement of a deployment, in the order of its definition.

    `offered_since` is the day on which the offer last changed, `zone` the time zone of times
    without an offset, `unit_extension` the url of the extension for functional units.
    Clients get tokens at `token_url`. Resource types that are not served are not in it.
    """
    resources = [
        _resource(resource, paging=offer.paging, unit_extension=unit_extension)
        for resource in offer.resources.values()
    ]
    if any(resource.searchable for resource in offer.resources.values()):
        text = "To repeat an earlier search, follow the self link of its result."
        if offer.paging:
            text = "For further pages, follow the links of a result unchanged."
        search: Element = {"code": "search-type", "documentation": text}
        resources.append(
            _element(
                "Bundle", [search], conditional_read="not-supported", parameters=[]
            )
        )
    security = {"cors": False, "service": [_SECURITY_SERVICE], "description": _SCOPES}
    if token_url:
        token = {"url": "token", "valueUri": token_url}
        security = {
            "extension": [{"url": _OAUTH_URIS, "extension": [token]}],
            **security,
        }
    rest = {
        "mode": "server",
        "documentation": f"{SEARCHING} A time without an offset is in {zone}.",
        "security": security,
        "resource": resources,
    }
    return {
        "resourceType": "CapabilityStatement",
        "name": SOFTWARE,
        "status": "active",
        "date": offered_since,
        "_date": {"extension": [{"url": _TIME_ZONE, "valueCode": zone}]},
        "kind": "instance",
        "software": {"name": SOFTWARE, "version": version("encounters")},
        "implementation": {"description": title, "url": base_url},
        "fhirVersion": FHIR_VERSION,
        "acceptUnknown": "no",
        "format": list(FORMATS),
        "rest": [rest],
    }


def _resource(
    offer: ResourceOffer, *, paging: bool, unit_extension: str | None
) -> Element:
    """Return the `resource` of a type: its interactions and its search parameters."""
    interactions: list[Element] = [{"code": "read"}]
    if offer.searchable:
        text = _search_text(offer, paging)
        interactions.append({"code": "search-type", "documentation": text})
    parameters = []
    for name, offered in offer.parameters.items():
        row = offered.row
        element = {"name": name, "definition": row.definition, "type": row.type}
        text = parameter_text(offered)
        if row.extension and unit_extension:
            text = f"{text} The extension url is {unit_extension}."
        parameters.append(filled({**element, "documentation": text}))
    return _element(
        offer.resource_type,
        interactions,
        conditional_read="full-support" if offer.dated else "not-match",
        parameters=parameters,
        includes=[*offer.includes],
    )


def _element(
    kind: str,
    interactions: list[Element],
    *,
    conditional_read: str,
    parameters: list[Element],
    includes: Sequence[str] = (),
) -> Element:
    profile = f"http://hl7.org/fhir/StructureDefinition/{kind}"
    return filled(
        {
            "type": kind,
            "profile": {"reference": profile},
            "interaction": interactions,
            "versioning": "no-version",
            "readHistory": False,
            "updateCreate": False,
            "conditionalRead": conditional_read,
            "referencePolicy": ["literal", "local"],
            "searchInclude": includes,
            "searchParam": parameters,
        }
    )


def _search_text(offer: ResourceOffer, paging: bool) -> str:
    size = f"_count is {offer.count_default} by default and {offer.count_max} at most."
    default = str(offer.default_sort)
    if offer.order:
        order = f"Results come in the hospital system's own order: {offer.order}."
    elif offer.sortable:
        keys = ", ".join(f"{key}, -{key}" for key in offer.sorts)
        order = f"_sort is one of {keys}, by default {default}."
        if offer.keyset:
            order += " The last key is always _id, in the same direction."
    else:
        order = f"Results come in the order {default}."
    if offer.uncounted:
        order += " With _total=none nothing is counted, and pages have no total."
    if not paging:
        return f"{size} {order} The first page only; total counts all matches."
    return f"{size} {order} {_KEYSET}" if offer.keyset else f"{size} {order}"


def parameter_text(offered: OfferedParameter) -> str:
    """Return what a parameter finds and which values it takes in this deployment."""
    return " ".join(_sentences(offered))


def _sentences(offered: OfferedParameter) -> Iterator[str]:
    row = offered.row
    yield row.documentation
    yield from TYPES[row.type].sentences(row, offered.capability)
    if offered.values == 1:
        yield "One value."
    elif offered.values < MAX_VALUES:
        yield f"At most {offered.values} values."
