"""What the service offers, as its CapabilityStatement describes it; forms are made of it.

STU3 has elements for names and types. The limits of a deployment are sentences of the
documentation (`app.fhir.capability`): a form uses those that it finds here.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from explorer.words import RESOURCES

_VALUES = re.compile(r"(?:One value|At most (\d+) values)\.")
_EXTENSION = re.compile(r"The extension url is (\S+)\.(?: |$)")
_SIZES = re.compile(r"_count is \d+ by default and (\d+) at most\.")
_SORTS = re.compile(r"_sort is one of ([^.]+), by default (-?\w+)\.")
_ZONE = re.compile(r"A time without an offset is in ([\w/+-]+)\.")


class Parameter:
    """A search parameter.

    `most` is how many values it accepts, None for any number. `extension` is the text before
    the bar of each value, "" for none.
    """

    def __init__(self, element: Mapping[str, Any]) -> None:
        text = element.get("documentation", "")
        limit = _VALUES.search(text)
        extension = _EXTENSION.search(text)
        # "One value." has no number.
        self.most = int(limit[1] or 1) if limit else None
        self.extension = extension[1] if extension else ""


class SearchOffer:
    """The searches of a resource type; what is not offered is [], "" or 0."""

    def __init__(self, resource: Mapping[str, Any], search: Mapping[str, Any]) -> None:
        text = search.get("documentation", "")
        sizes = _SIZES.search(text)
        sorts = _SORTS.search(text)
        parameters = resource.get("searchParam", ())
        self.parameters = {
            element["name"]: Parameter(element) for element in parameters
        }
        self.sorts = sorts[1].split(", ") if sorts else []
        self.usual_sort = sorts[2] if sorts else ""
        self.most_count = int(sizes[1]) if sizes else 0
        self.includes: Sequence[str] = resource.get("searchInclude", ())


class PublishedOffer:
    """The name of the deployment, its time zone, and its searches by resource type."""

    def __init__(self, statement: Mapping[str, Any]) -> None:
        (rest,) = statement["rest"]
        zone = _ZONE.search(rest.get("documentation", ""))
        self.title: str = statement["implementation"]["description"]
        self.zone: tzinfo = ZoneInfo(zone[1]) if zone else UTC
        self.searches = {
            resource["type"]: SearchOffer(resource, interaction)
            for resource in rest["resource"]
            for interaction in resource["interaction"]
            if resource["type"] in RESOURCES and interaction["code"] == "search-type"
        }

    def now(self) -> datetime:
        """Return the time at the hospital."""
        return datetime.now(self.zone)

    def parameter(self, kind: str, name: str) -> Parameter | None:
        """Return a search parameter of a resource type, None where it is not offered."""
        search = self.searches.get(kind)
        return search.parameters.get(name) if search else None
