"""Bundle: one page of a search as an STU3 searchset (spec 2.5)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from app.fhir.datatypes import Element
from app.fhir.outcome import Issue, outcome_body

_MATCH = {"mode": "match"}
_OUTCOME = {"mode": "outcome"}


class Link(NamedTuple):
    """The address of a page; `relation` is self, previous or next (spec 4.3)."""

    relation: str
    url: str


def searchset(
    bundle_id: str,
    total: int | None,
    links: Iterable[Link],
    entries: Sequence[Element],
) -> Element:
    """Return the Bundle of one page; `total` counts the matches over all pages."""
    return {
        "resourceType": "Bundle",
        "id": bundle_id,
        "type": "searchset",
        **({} if total is None else {"total": total}),
        "link": [link._asdict() for link in links],
        # FHIR has no empty lists.
        **({"entry": entries} if entries else {}),
    }


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
    """Return an entry with messages about the search; none of them may be an error.

    `uuid` names the entry within its Bundle: two entries never share one (bdl-7).
    """
    return {
        "fullUrl": uuid.urn,
        "resource": outcome_body(issues),
        "search": _OUTCOME,
    }
