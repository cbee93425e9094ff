"""Bundle: one page of a search (spec 2.5)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import orjson

from app.schemas.datatypes import (
    ConstantField,
    EachField,
    Element,
    ElementSchema,
    ValueField,
)
from app.schemas.outcome import Issue, outcome_body


class Link(NamedTuple):
    """The address of a page; `relation` is self, previous or next (spec 4.3)."""

    relation: str
    url: str


@dataclass(frozen=True, slots=True)
class _Searchset:
    id: str
    total: int
    links: Sequence[Link]


class BundleSchema(ElementSchema):
    """A search result as an STU3 Bundle, in the order of spec 2.5; `entry` comes last."""

    resource_type = ConstantField("Bundle", data_key="resourceType")
    id = ValueField("id")
    type = ConstantField("searchset")
    total = ValueField("total")
    link = EachField("links", Link._asdict)


_SCHEMA = BundleSchema()
_MATCH = {"mode": "match"}
_OUTCOME = {"mode": "outcome"}


def match_entries(base_url: str, resources: Iterable[Element]) -> list[Element]:
    """Return an entry for each resource; `base_url` ends in `/fhir/v3`."""
    return [
        {
            "fullUrl": f"{base_url}/{resource['resourceType']}/{resource['id']}",
            "resource": resource,
            "search": _MATCH,
        }
        for resource in resources
    ]


def outcome_entry(uuid: UUID, issues: Sequence[Issue]) -> Element:
    """Return an entry that tells a client about the search; no issue may be an error.

    `uuid` names the entry within its Bundle: two entries never share one (bdl-7).
    """
    return {
        "fullUrl": uuid.urn,
        "resource": outcome_body(issues),
        "search": _OUTCOME,
    }


def searchset(
    bundle_id: str, total: int, links: Sequence[Link], entries: Sequence[bytes]
) -> bytes:
    """Return the Bundle of one page as JSON.

    `total` counts the matches over all pages. `entries` are JSON, one entry or several with
    commas between them; without any there is no `entry` element.
    """
    body = orjson.dumps(_SCHEMA.dump(_Searchset(bundle_id, total, links)))
    if not entries:
        return body
    parts = [*entries]
    parts[0] = body[:-1] + b',"entry":[' + parts[0]
    parts[-1] += b"]}"
    return b",".join(parts)
