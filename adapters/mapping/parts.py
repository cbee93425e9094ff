"""What a file with several sources is made of, and where its references lead."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from adapters.contract import ResourceType
from adapters.mapping.document import Document, Site
from adapters.mapping.model import (
    PartMapping,
    ResourceMapping,
    SourceConfig,
    SourceMapping,
)
from adapters.mapping.nodes import KeyPath
from adapters.mapping.parameters import PARAMETERS, SORTS
from adapters.mapping.slots import REFERS

Sections = Mapping[KeyPath, ResourceMapping]


def is_several(doc: Document) -> bool:
    """Whether resources come from more than one source, or from several tables."""
    return len(doc.sources()) > 1 or any("sources" in s for _, _, s in doc.wholes())


def several_of(doc: Document, kind: ResourceType) -> bool:
    """Whether resources of this type come from more than one section."""
    return sum(of is kind for _, of, _ in doc.sections()) > 1


def targets(doc: Document, site: Site) -> dict[KeyPath, Mapping[str, Any]]:
    """Return the sections that a reference may lead to: all, or those that it names.

    It names a source, or the prefix of one of its tables.
    """
    named = site.options.get("source")
    return {
        path: section
        for path, kind, section in doc.sections()
        if kind is REFERS[site.slot.name]
        and named in (None, doc.source_of(section)[-1], section.get("prefix"))
    }


def prefix_of(doc: Document, site: Site) -> str:
    """Return what stands before an id of a source in the ids that clients see."""
    if site.slot.name == "id" and not site.listed:
        own = (data for path, _, data in doc.sections() if path == site.section)
        return str(next(own).get("prefix", ""))
    if site.slot.name in REFERS:
        found = list(targets(doc, site).values())
        return str(found[0].get("prefix", "")) if found else ""
    return ""


def lacking(doc: Document, path: KeyPath, kind: ResourceType) -> frozenset[str]:
    """Return the parameters and sort keys for which a section has no field at all."""
    there = {site.full_name for site in doc.sites() if site.section == path}
    compared = {**PARAMETERS[kind], **{key: (s,) for key, s in SORTS[kind].items()}}
    return frozenset(
        name for name, slots in compared.items() if not there.intersection(slots)
    )


def offered(doc: Document, path: KeyPath, part: str) -> tuple[str, ...]:
    """Return what a section says under `search` or `sort`, or what is said for all."""
    found = {at: data for at, _, data in doc.sections()}[path]
    kind = next(k for at, k, _ in doc.sections() if at == path)
    words = found.get(part, doc.data[str(path[0])].get(part, ()))
    lacks = frozenset() if doc.is_own else lacking(doc, path, kind)
    return tuple(word for word in words if word not in lacks)


def build_parts(
    doc: Document,
    whole: SourceMapping,
    sources: Mapping[KeyPath, SourceConfig],
    sections: Sections,
) -> Iterator[PartMapping]:
    """Yield a part for each section, in the order of the file."""
    for path, kind, data in doc.sections():
        place = doc.source_of(data)
        resources = {kind: sections[path]}
        if kind is ResourceType.ENCOUNTER:
            resources |= _patients(doc, place, sections[path], sections)
        yield PartMapping(
            name=str(place[-1]) if len(place) > 1 else str(data.get("prefix", "")),
            kind=kind,
            mapping=replace(whole, source=sources[place], resources=resources),
            lacks=lacking(doc, path, kind),
        )


def _patients(
    doc: Document, place: KeyPath, stays: ResourceMapping, sections: Sections
) -> dict[ResourceType, ResourceMapping]:
    """Return the patients of the same source that the stays refer to, when it has them."""
    prefix = stays.fields["patient_id"].prefix
    return {
        kind: sections[path]
        for path, kind, data in doc.sections()
        if kind is ResourceType.PATIENT
        and doc.source_of(data) == place
        and data.get("prefix", "") == prefix
    }
