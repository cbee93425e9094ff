"""The fields of a checked document → the typed values of `model`."""

from collections.abc import Mapping
from datetime import time
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

from adapters.contract import ResourceType
from adapters.mapping.checks import zone
from adapters.mapping.document import Document, Item, Site, item_sites
from adapters.mapping.model import (
    CodeTable,
    Condition,
    FieldMapping,
    ItemMapping,
    Mark,
)
from adapters.mapping.nodes import KeyPath, place
from adapters.mapping.parts import prefix_of
from adapters.mapping.slots import (
    KNOWN_IDENTIFIERS,
    LINES,
    LISTS,
    Kind,
)
from adapters.mapping.time_rule import Never, TimeRule, Twice


def build_items(
    doc: Document, path: KeyPath, kind: ResourceType, codes: Mapping[str, CodeTable]
) -> Mapping[str, tuple[ItemMapping, ...]]:
    """Return the lists of a section (names, identifiers, …), each with its items."""
    fields = (*path, "fields")
    made = [
        (i.listed.name, _item(doc, i, codes))
        for i in doc.items()
        if i.path[: len(fields)] == fields
    ]
    return MappingProxyType(
        {
            listed.name: tuple(item for name, item in made if name == listed.name)
            for listed in LISTS[kind]
            if doc.holds((*fields, listed.name))
        }
    )


def _item(doc: Document, item: Item, codes: Mapping[str, CodeTable]) -> ItemMapping:
    sites = tuple(item_sites(item))
    fields = {
        site.slot.record: build_field(doc, site, codes)
        for site in sites
        if site.slot is not LINES
    }
    mark = place(doc.root, item.path)
    if item.listed.name == "identifiers":
        _add_known_identifier(fields, mark)
    return ItemMapping(
        slot=item.listed.name,
        mark=mark,
        fields=MappingProxyType(fields),
        lines=tuple(
            build_field(doc, site, codes) for site in sites if site.slot is LINES
        ),
        only_if=_condition(item.options.get("only_if")),
        rows=item.options.get("rows"),
        key=item.options.get("key"),
    )


def _add_known_identifier(fields: dict[str, FieldMapping], mark: Mark) -> None:
    """Say of a French identifier what its type says by itself."""
    named = fields.get("type")
    known = KNOWN_IDENTIFIERS.get(named.constant or "") if named else None
    if not known:
        return
    for slot, constant in (("system", known.system), ("use", known.use)):
        if constant and slot not in fields:
            fields[slot] = FieldMapping(slot, mark, constant=constant)


def _condition(data: Mapping[str, Any] | None) -> Condition | None:
    return Condition(data["column"], frozenset(data["values"])) if data else None


def build_field(
    doc: Document, site: Site, codes: Mapping[str, CodeTable]
) -> FieldMapping:
    """Return one value of a section or of an item."""
    options = site.options
    return FieldMapping(
        slot=site.slot.record,
        mark=_origin(doc, site),
        columns=site.columns,
        constant=options.get("constant"),
        codes=codes[options["codes"]] if "codes" in options else None,
        time=_time_rule(doc, site),
        absent=frozenset(options.get("absent", ())),
        search_column=options.get("search_column"),
        split=options.get("split"),
        covers_all="covers" in options,
        prefix=prefix_of(doc, site),
    )


def _origin(doc: Document, site: Site) -> Mark:
    """Return where the columns of a value are named, or else its key."""
    path = (*site.path, "from")
    if doc.holds(path):
        return place(doc.root, path)
    return place(doc.root, site.path, at_key=True)


def _time_rule(doc: Document, site: Site) -> TimeRule | None:
    if site.slot.kind not in (Kind.TIME, Kind.DATE):
        return None
    told = {**doc.data.get("local_times", {}), **site.options}
    at = told.get("at")
    return TimeRule(
        zone=known_zone(doc.zone_name(site)),
        written=known_zone(doc.data["time_zone"]),
        format=told.get("format"),
        at=time.fromisoformat(at) if at else None,
        twice=Twice(told.get("twice", Twice.FIRST)),
        never=Never(told.get("never", Never.REFUSE)),
        is_told=doc.says_zone(site),
    )


def known_zone(name: str) -> ZoneInfo:
    """Return a time zone that has been checked before."""
    found = zone(name)
    assert found, "the rules have checked zones"
    return found
