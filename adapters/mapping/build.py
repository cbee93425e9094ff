"""A checked document → the typed values of `model`. Nothing can go wrong here any more."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from adapters.contract import ResourceType, SortKey
from adapters.mapping.constants import Constants
from adapters.mapping.document import Document
from adapters.mapping.field_build import build_field, build_items, known_zone
from adapters.mapping.http_build import http_section, http_source
from adapters.mapping.model import (
    CodeTable,
    DateReading,
    FieldMapping,
    KnownFinding,
    ResourceMapping,
    SourceConfig,
    SourceMapping,
)
from adapters.mapping.nodes import KeyPath, place
from adapters.mapping.parts import build_parts, is_several, offered
from adapters.mapping.rules.source import source_url
from adapters.mapping.secrets import resolved
from adapters.mapping.slots import (
    REQUIRED,
    SLOTS,
)

_KEPT = (
    "timeout_seconds",
    "count_timeout_seconds",
    "connections",
    "wait_seconds",
    "may_write",
)


def build_mapping(doc: Document) -> SourceMapping:
    """Return the mapping of a document that has no problems."""
    data = doc.data
    codes = _code_tables(doc)
    sources = {path: _source(doc, path) for path in doc.sources()}
    whole = SourceMapping(
        file=doc.file,
        name=data["name"],
        profile=data["profile"],
        profile_directory=doc.profile_directory,
        read=doc.read,
        time_zone=known_zone(data["time_zone"]),
        source=next(iter(sources.values())),
        constants=_constants(data.get("constants", {})),
        resources={},
        codes=codes,
        date_reading=DateReading(data.get("date", DateReading.START)),
        known=tuple(_known(doc)),
    )
    sections = {
        path: _section(doc, path, kind, codes) for path, kind, _ in doc.sections()
    }
    if is_several(doc):
        return replace(whole, parts=tuple(build_parts(doc, whole, sources, sections)))
    found = {section.resource_type: section for section in sections.values()}
    return replace(whole, resources=MappingProxyType(found))


def _known(doc: Document) -> Iterator[KnownFinding]:
    for index, said in enumerate(doc.data.get("accepted", ())):
        yield KnownFinding(**said, mark=place(doc.root, ("known", index)))


def _source(doc: Document, path: KeyPath) -> SourceConfig:
    source = doc.sources()[path]
    kept = {key: source[key] for key in _KEPT if key in source}
    mark, url = place(doc.root, path, at_key=True), source_url(doc, source)
    if doc.is_own:
        mark = place(doc.root, (*path, "kind"))
        told = source.get("options", {}).items()
        kept["options"] = MappingProxyType(
            {key: resolved(value, doc.environ) for key, value in told}
        )
    return SourceConfig(
        source["kind"], mark, url=url, http=http_source(doc, path), **kept
    )


def _constants(data: Mapping[str, Any]) -> Constants:
    systems = MappingProxyType(dict(data.get("class_systems", {})))
    return Constants(**{**data, "class_systems": systems})


def _code_tables(doc: Document) -> Mapping[str, CodeTable]:
    return MappingProxyType(
        {
            name: CodeTable(
                name,
                MappingProxyType(dict(table["table"])),
                table.get("otherwise"),
                place(doc.root, ("codes", name), at_key=True),
            )
            for name, table in doc.codes().items()
        }
    )


def _section(
    doc: Document, path: KeyPath, kind: ResourceType, codes: Mapping[str, CodeTable]
) -> ResourceMapping:
    section = doc.section(path)
    own = [site for site in doc.sites() if site.section == path and not site.listed]
    fields = {site.slot.record: build_field(doc, site, codes) for site in own}
    if kind is ResourceType.ENCOUNTER:
        _add_visit_number_system(doc, fields)
    http = http_section(doc, path, codes)
    return ResourceMapping(
        resource_type=kind,
        mark=place(doc.root, path, at_key=True),
        rows=section.get("rows", ""),
        fields=MappingProxyType(fields),
        items=build_items(doc, path, kind, codes),
        parameters=offered(doc, path, "search"),
        sorts=_sorts(section) if http else _offered_sorts(doc, path),
        required=_required(kind, section.get("requires", ())),
        http=http,
    )


def _offered_sorts(doc: Document, path: KeyPath) -> tuple[SortKey, ...]:
    return tuple(map(SortKey, offered(doc, path, "sort")))


def _sorts(section: Mapping[str, Any]) -> tuple[SortKey, ...]:
    """Return what an HTTP source sorts by: both directions of each have a word."""
    words = section.get("sort", {}).get("by", {})
    return tuple(SortKey(word) for word in words if not word.startswith("-"))


def _add_visit_number_system(doc: Document, fields: dict[str, FieldMapping]) -> None:
    slot = "visit_number_system"
    system = doc.data.get("constants", {}).get(slot)
    if "visit_number" in fields and slot not in fields:
        mark = place(doc.root, ("constants", slot))
        fields[slot] = FieldMapping(slot, mark, constant=system)


def _required(kind: ResourceType, more: tuple[str, ...]) -> frozenset[str]:
    records = {slot.name: slot.record for slot in SLOTS[kind]}
    return frozenset(records.get(name, name) for name in (*REQUIRED[kind], *more))
