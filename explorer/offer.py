"""What the service offers, as its CapabilityStatement describes it; forms are made of it.

STU3 has elements for names, types and documentation. The limits of a deployment are
sentences of the documentation (`app.fhir.capability`): a form uses those that it finds here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.words import RESOURCES

_PREFIXES = re.compile(r"Prefixes ([a-z, ]+)\. ?")
_MODIFIERS = re.compile(r"Modifiers ([:a-z, ]+)\. ?")
_VALUES = re.compile(r"(?:One value|At most (\d+) values)\. ?")
_DAYS = re.compile(r"It takes whole days\. ?")
_EXTENSION = re.compile(r"The extension url is (\S+)\.(?: |$)")
_SIZES = re.compile(r"_count is (\d+) by default and (\d+) at most\.")
_SORTS = re.compile(r"_sort is one of ([^.]+), by default (-?\w+)\.")
_UNCOUNTED = "_total=none"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A search parameter; `text` is its documentation without its limits.

    Without `prefixes` or `modifiers` none are offered; `most` is the number of values, None
    for any. `extension` is what stands before the bar of a value.
    """

    name: str
    type: str
    text: str
    prefixes: Sequence[str]
    modifiers: Sequence[str]
    most: int | None
    has_days: bool
    extension: str


@dataclass(frozen=True, slots=True)
class SearchOffer:
    """The searches of a resource type."""

    kind: str
    parameters: Mapping[str, Parameter]
    sorts: Sequence[str]
    usual_sort: str
    usual_count: str
    most_count: str
    can_skip_total: bool


@dataclass(frozen=True, slots=True)
class Offer:
    """The name of the deployment, and its searches by resource type."""

    title: str
    searches: Mapping[str, SearchOffer]

    @classmethod
    def of(cls, statement: Mapping[str, Any]) -> "Offer":
        """Read a CapabilityStatement."""
        resources = [r for rest in statement["rest"] for r in rest["resource"]]
        searches = {
            resource["type"]: _search_offer(resource, interaction)
            for resource in resources
            for interaction in resource["interaction"]
            if resource["type"] in RESOURCES and interaction["code"] == "search-type"
        }
        return cls(statement["implementation"]["description"], searches)


def _search_offer(
    resource: Mapping[str, Any], search: Mapping[str, Any]
) -> SearchOffer:
    text = search.get("documentation", "")
    sizes, sorts = _SIZES.search(text), _SORTS.search(text)
    listed = sorts[1].split(", ") if sorts else []
    return SearchOffer(
        kind=resource["type"],
        parameters={
            element["name"]: _parameter(element)
            for element in resource.get("searchParam", ())
        },
        sorts=[key for key in listed if not key.startswith("-")],
        usual_sort=sorts[2] if sorts else "",
        usual_count=sizes[1] if sizes else "",
        most_count=sizes[2] if sizes else "",
        can_skip_total=_UNCOUNTED in text,
    )


def _parameter(element: Mapping[str, Any]) -> Parameter:
    whole = text = element.get("documentation", "")
    for limit in (_PREFIXES, _MODIFIERS, _VALUES, _DAYS, _EXTENSION):
        text = limit.sub("", text)
    values, extension = _VALUES.search(whole), _EXTENSION.search(whole)
    return Parameter(
        name=element["name"],
        type=element["type"],
        text=text.strip(),
        prefixes=_listed(_PREFIXES, whole),
        modifiers=[word.removeprefix(":") for word in _listed(_MODIFIERS, whole)],
        most=int(values[1] or 1) if values else None,
        has_days=_DAYS.search(whole) is not None,
        extension=extension[1] if extension else "",
    )


def _listed(sentence: re.Pattern[str], text: str) -> Sequence[str]:
    match = sentence.search(text)
    return match[1].split(", ") if match else []
