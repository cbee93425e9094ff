"""What the service offers, as its CapabilityStatement describes it; forms are made of it.

STU3 has elements for names and types. The limits of a deployment are sentences of the
documentation (`app.fhir.capability`): a form uses those that it finds here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from explorer.words import RESOURCES

_VALUES = re.compile(r"(?:One value|At most (\d+) values)\.")
_EXTENSION = re.compile(r"The extension url is (\S+)\.(?: |$)")
_SIZES = re.compile(r"_count is \d+ by default and (\d+) at most\.")
_SORTS = re.compile(r"_sort is one of ([^.]+), by default (-?\w+)\.")
_ZONE = re.compile(r"A time without an offset is in ([\w/+-]+)\.")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A search parameter: how many values it takes, None for any number.

    `extension` is what stands before the bar of a value.
    """

    most: int | None
    extension: str


@dataclass(frozen=True, slots=True)
class SearchOffer:
    """The searches of a resource type; `sorts` are the values of `_sort`, [] without it."""

    parameters: Mapping[str, Parameter]
    sorts: Sequence[str]
    usual_sort: str
    most_count: str
    includes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Offer:
    """The name of the deployment, its time zone, and its searches by resource type."""

    title: str
    zone: tzinfo
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
        texts = (rest.get("documentation", "") for rest in statement["rest"])
        zone = _ZONE.search(" ".join(texts))
        return cls(
            title=statement["implementation"]["description"],
            zone=ZoneInfo(zone[1]) if zone else UTC,
            searches=searches,
        )

    def now(self) -> datetime:
        """Return the time at the hospital."""
        return datetime.now(self.zone)

    def parameter(self, kind: str, name: str) -> Parameter | None:
        """Return a search parameter of a resource type, None where it is not offered."""
        search = self.searches.get(kind)
        return search.parameters.get(name) if search else None


def _search_offer(
    resource: Mapping[str, Any], search: Mapping[str, Any]
) -> SearchOffer:
    text = search.get("documentation", "")
    sizes, sorts = _SIZES.search(text), _SORTS.search(text)
    parameters = {}
    for element in resource.get("searchParam", ()):
        limits = element.get("documentation", "")
        values, extension = _VALUES.search(limits), _EXTENSION.search(limits)
        parameters[element["name"]] = Parameter(
            most=int(values[1] or 1) if values else None,
            extension=extension[1] if extension else "",
        )
    return SearchOffer(
        parameters=parameters,
        sorts=sorts[1].split(", ") if sorts else [],
        usual_sort=sorts[2] if sorts else "",
        most_count=sizes[1] if sizes else "",
        includes=resource.get("searchInclude", ()),
    )
