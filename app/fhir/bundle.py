"""Bundle: a page of a search result (spec 2.5 and 4.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

from marshmallow import fields, missing

from app.fhir.resources import Element, ResourceSchema


@dataclass(frozen=True, slots=True)
class SearchSet:
    """A page as a Bundle of type searchset.

    `total` counts the matches of all pages, None where they were not counted. `links` are
    pairs of relation and address; `entries` are made by `entry`.
    """

    id: str
    total: int | None
    links: Sequence[tuple[str, str]]
    entries: Sequence[Element]


def entry(full_url: str, resource: Element, mode: str) -> Element:
    """Return an entry; `mode` is match, include or outcome (STU3, search-entry-mode)."""
    return {"fullUrl": full_url, "resource": resource, "search": {"mode": mode}}


def write_total(page: SearchSet) -> object:
    """Return `total`, left out where nothing was counted."""
    return missing if page.total is None else page.total


def write_links(page: SearchSet) -> list[Element]:
    """Return `link`: self always, previous and next where there are such pages."""
    return [{"relation": relation, "url": url} for relation, url in page.links]


def write_entries(page: SearchSet) -> object:
    """Return `entry`, left out where it is empty: FHIR has no empty lists."""
    return page.entries or missing


class BundleSchema(ResourceSchema):
    """An STU3 Bundle of a search, in the order of spec 2.5."""

    resource_type = fields.Constant("Bundle", data_key="resourceType")
    id = fields.Function(lambda page: page.id)
    type = fields.Constant("searchset")
    total = fields.Function(write_total)
    link = fields.Function(write_links)
    entry = fields.Function(write_entries)


BUNDLE = BundleSchema()
"""Writes the page of every search."""
