"""Builds the typed values of a mapping from a document that has no problems.

From the top down: sources and sections, fields and items, and what only HTTP sources have.
A new key is its entry in `schema.json`, its attribute in `model`, and its line here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import time
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

from adapters.contract import Prefix, ResourceType, SortKey
from adapters.mapping import model
from adapters.mapping.binary import BinaryForm
from adapters.mapping.document import Document, Item, Section, Site, resolved
from adapters.mapping.paths import Header, ValuePlace, path_of
from adapters.mapping.slots import (
    IMPLIED_BY_TYPE,
    LINES,
    LISTS,
    REQUIRED,
    SLOTS,
    SlotKind,
)
from adapters.mapping.template import (
    Quote,
    Template,
    ValueRule,
    template_of,
    text_of,
)
from adapters.mapping.yaml import KeyPath, Node, Table, place


class Builder:
    """Makes the mapping of a document that has no problems."""

    def __init__(self, doc: Document) -> None:
        self._doc = doc
        self._root = doc.root
        self._zone = ZoneInfo(doc.root.text("time_zone"))

    def mapping(self) -> model.SourceMapping:
        """Return the mapping."""
        doc = self._doc
        root = self._root
        sources = {
            path: self._source(path, table) for path, table in doc.sources.items()
        }
        sections = {section: self._section(section) for section in doc.sections}
        whole = model.SourceMapping(
            file=root.mark.file,
            name=root.text("name"),
            profile=root.text("profile"),
            profile_directory=doc.profile_directory,
            time_zone=self._zone,
            source=next(iter(sources.values())),
            constants=_constants(root.table("constants")),
            resources={},
            codes=doc.codes,
            date_reading=model.DateReading(root.text("date", model.DateReading.START)),
            known=tuple(map(_known_finding, root.tables("known"))),
            read=doc.read,
        )
        if len(sources) > 1 or any(section.is_entry for section in sections):
            return replace(whole, parts=tuple(self._parts(whole, sources, sections)))
        # There is one section for each type; its ids have no prefix.
        resources = {section.kind: built for section, built in sections.items()}
        beside = {(kind, ""): section for kind, section in resources.items()}
        return replace(whole, resources=MappingProxyType(resources), beside=beside)

    def _parts(
        self,
        whole: model.SourceMapping,
        sources: Mapping[KeyPath, model.SourceConfig],
        sections: Mapping[Section, model.ResourceMapping],
    ) -> Iterator[model.PartMapping]:
        """Yield a part for each section, in the order of the file.

        A part of stays holds the patients of the same source that they refer to, if any.
        """
        for section, mapping in sections.items():
            source = section.source_path
            beside = {
                (other.kind, other.prefix): built
                for other, built in sections.items()
                if other.source_path == source
            }
            resources = {section.kind: mapping}
            if section.kind is ResourceType.ENCOUNTER:
                prefix = mapping.fields["patient_id"].prefix
                if patients := beside.get((ResourceType.PATIENT, prefix)):
                    resources[ResourceType.PATIENT] = patients
            of_source = replace(whole, source=sources[source], resources=resources)
            yield model.PartMapping(
                name=str(source[-1]) if len(source) > 1 else section.prefix,
                kind=section.kind,
                mapping=replace(of_source, beside=beside),
                lacks=section.lacks,
            )

    # --------------------------------------------------------------------- sources

    def _source(self, path: KeyPath, source: Table) -> model.SourceConfig:
        kind = source.text("kind")
        zone = source.text("time_zone")
        mark = place(self._root, path, at_key=True)
        if self._doc.is_own:
            mark = source["kind"].mark
        return model.SourceConfig(
            kind=kind,
            mark=mark,
            zone=ZoneInfo(zone) if zone else self._zone,
            url=self._secret(source, "url"),
            timeout_seconds=_number(source, "timeout_seconds", model.TIMEOUT_SECONDS),
            count_timeout_seconds=_number(
                source, "count_timeout_seconds", model.COUNT_TIMEOUT_SECONDS
            ),
            connections=int(source.text("connections") or model.CONNECTIONS),
            wait_seconds=_number(source, "wait_seconds", model.WAIT_SECONDS),
            may_write=source.text("may_write") == "true",
            schema=source.text("schema"),
            prepared=_PREPARED[source.text("prepared")],
            http=self._http_source(source) if kind == "http" else None,
            options=self._secrets(source.table("options")),
        )

    def _http_source(self, source: Table) -> model.HttpSource:
        return model.HttpSource(
            headers=self._secrets(source.table("headers")),
            auth=self._auth(source.table("auth")),
            error=_error_rule(source.table("error")) if "error" in source else None,
            hosts=frozenset(map(str.lower, source.texts("hosts"))),
            encoding=source.text("encoding"),
            values=ValueRule(
                Quote(source.text("quote", Quote.DOUBLE)), source.text("without")
            ),
        )

    def _auth(self, auth: Table) -> model.Auth | None:
        """Return how requests are authenticated, None if they are not."""
        if "basic" in auth:
            return model.Basic(**self._secrets(auth.table("basic")))
        if "oauth2" in auth:
            return model.OAuth2(**self._secrets(auth.table("oauth2")))
        if "session" in auth:
            login = auth.table("session")
            has_body = "body" in login
            return model.Login(
                path=login.text("path"),
                token=path_of(login.text("token")),
                header=login.text("header"),
                body=self._secrets(login.table("body")) if has_body else None,
                form=self._secrets(login.table("form")),
                format=login.text("format", "{token}"),
            )
        return None

    def _secret(self, table: Table, key: str) -> model.Secret:
        return resolved(table.get(key), self._doc.values)

    def _secrets(self, table: Table) -> Mapping[str, model.Secret]:
        return MappingProxyType({key: self._secret(table, key) for key in table})

    # -------------------------------------------------------------------- sections

    def _section(self, section: Section) -> model.ResourceMapping:
        kind = section.kind
        data = section.data
        fields = {
            site.slot.record: self._field(site)
            for site in section.sites
            if site.item is None
        }
        # Without a field of its own, the system of visit numbers is a constant of the file.
        system = "visit_number_system"
        if "visit_number" in fields and system not in fields:
            constants = self._root.table("constants")
            fields[system] = model.FieldMapping(
                system, constants[system].mark, constant=constants.text(system)
            )
        attributes = {slot.name: slot.record for slot in SLOTS[kind]}
        required = (*REQUIRED[kind], *data.texts("requires"))
        return model.ResourceMapping(
            resource_type=kind,
            mark=section.mark,
            rows=data.text("rows"),
            fields=MappingProxyType(fields),
            items=self._items(section),
            parameters=section.offered("search"),
            sorts=tuple(map(SortKey, section.offered("sort"))),
            required=frozenset(attributes.get(name, name) for name in required),
            http=self._http_section(section) if section.is_http else None,
        )

    def _items(self, section: Section) -> Mapping[str, tuple[model.ItemMapping, ...]]:
        """Return the lists of a section (names, identifiers, …), each with its items."""
        lists: dict[str, tuple[model.ItemMapping, ...]] = {
            listed.name: ()
            for listed in LISTS[section.kind]
            if listed.name in section.fields
        }
        for item in section.items:
            lists[item.listed.name] += (self._item(item),)
        return MappingProxyType(lists)

    def _item(self, item: Item) -> model.ItemMapping:
        options = item.options
        mark = item.options.mark
        values = [(site.slot, self._field(site)) for site in item.sites]
        fields = {slot.record: value for slot, value in values if slot is not LINES}
        if item.listed.name == "identifiers" and "type" in fields:
            implied = IMPLIED_BY_TYPE.get(fields["type"].constant or "", {})
            for slot, constant in implied.items():
                if slot not in fields:
                    fields[slot] = model.FieldMapping(slot, mark, constant=constant)
        condition = options.table("only_if")
        return model.ItemMapping(
            slot=item.listed.name,
            mark=mark,
            fields=MappingProxyType(fields),
            lines=tuple(value for slot, value in values if slot is LINES),
            only_if=_condition(condition) if "only_if" in options else None,
            rows=options.text("rows") or None,
            key=options.text("key") or None,
        )

    def _field(self, site: Site) -> model.FieldMapping:
        """Return one value of a section or of an item."""
        options = site.options
        columns = site.options.get("from")
        return model.FieldMapping(
            slot=site.slot.record,
            mark=site.mark if columns is None else columns.mark,
            columns=site.columns,
            constant=options.text("value") or None,
            codes=self._doc.codes.get(options.text("codes")),
            time=self._time_rule(site),
            absent=frozenset(options.texts("absent")),
            search_column=options.text("search") or None,
            split=options.text("split") or None,
            covers_all="covers" in options,
            prefix=self._doc.prefix_of(site),
            strip=options.text("strip"),
            follows_merges="merges" in options,
            form=BinaryForm(options.text("form")) if "form" in options else None,
        )

    def _time_rule(self, site: Site) -> model.TimeRule | None:
        """Return how a time or day is read, None for a value of another kind."""
        if site.slot.kind not in (SlotKind.TIME, SlotKind.DATE):
            return None
        options = site.options
        usual = self._root.table("local_times")
        clock = options.text("at")
        zone = site.zone_name
        return model.TimeRule(
            zone=ZoneInfo(zone) if zone else self._zone,
            written=self._zone,
            format=options.text("format") or None,
            at=time.fromisoformat(clock) if clock else None,
            twice=model.Twice(
                options.text("twice") or usual.text("twice", model.Twice.FIRST)
            ),
            never=model.Never(
                options.text("never") or usual.text("never", model.Never.REFUSE)
            ),
            says_zone=bool(zone),
            pivot=int(options.text("pivot")) if "pivot" in options else None,
        )

    # ------------------------------------------------------- sections of HTTP APIs

    def _http_section(self, section: Section) -> model.HttpSection:
        """Return how a section of an HTTP source is read and searched."""
        data = section.data
        calls = {name: self._search(section, name) for name in section.search}
        return model.HttpSection(
            read=_read_call(data),
            list=_list_call(data) if "list" in data else None,
            search=MappingProxyType(calls),
            sort=_sort_call(data) if "sort" in data else None,
            order=data.text("order"),
        )

    def _search(self, section: Section, name: str) -> model.SearchCall:
        """Return how an HTTP source is sent a search parameter."""
        search = section.search.table(name)
        usual_step = model.Step.DAY if name == "birthdate" else model.Step.SECOND
        zone = search.text("time_zone")
        codes = None
        if table := self._doc.codes.get(search.text("codes")):
            # Of several codes for a system, the first is sent.
            pairs = reversed([*table.table.items()])
            codes = MappingProxyType({word: code for code, word in pairs})
        bounds = {
            prefix: template_of(search.text(prefix))
            for prefix in BOUNDS
            if prefix in search
        }
        return model.SearchCall(
            name=name,
            query=_template(search, "query"),
            separator=search.text("separator"),
            most=int(search.text("most", "100")),
            system=_template(search, "system"),
            codes=codes,
            excluding=_template(search, "excluding"),
            merged=search.text("merged") == "true",
            contains=_template(search, "contains"),
            exact=_template(search, "exact"),
            bounds=MappingProxyType(bounds),
            step=model.Step(search.text("step", usual_step)),
            zone=ZoneInfo(zone) if zone else None,
        )


BOUNDS = (Prefix.GE, Prefix.GT, Prefix.LT, Prefix.LE)
"""The bounds that a search by time may have."""


_PREPARED = MappingProxyType({"": None, "true": True, "false": False})


# ------------------------------------------------------------- values without context


def _number(table: Table, key: str, default: float) -> float:
    return float(table.text(key) or default)


def _constants(constants: Table) -> model.Constants:
    # Attributes have the names of the keys, here and below.
    texts: dict[str, Any] = {**constants.all_texts()}
    systems = constants.table("class_systems").all_texts()
    return model.Constants(**texts, class_systems=MappingProxyType(systems))


def _known_finding(known: Table) -> model.KnownFinding:
    return model.KnownFinding(**known.all_texts(), mark=known.mark)


def _condition(condition: Table) -> model.ItemCondition:
    return model.ItemCondition(condition.text("from"), frozenset(condition.texts("in")))


def _error_rule(error: Table) -> model.ErrorRule:
    return model.ErrorRule(
        path=path_of(error.text("path")),
        fine=frozenset(error.texts("fine")),
        not_found=frozenset(error.texts("not_found")),
        unavailable=frozenset(error.texts("unavailable")),
        expired=frozenset(error.texts("expired")),
    )


def _place_of(node: Node) -> ValuePlace:
    """Return the place of a value in an answer: a path, or {header: name}."""
    if isinstance(node, Table):
        return Header(node.text("header"))
    return path_of(str(node))


def _read_call(section: Table) -> model.ReadCall:
    read = section.table("read")
    return model.ReadCall(
        path=text_of(read.text("path")),
        row=path_of(read.text("row")) if "row" in read else (),
        mark=section.key_marks["read"],
    )


def _list_call(section: Table) -> model.ListCall:
    listed = section.table("list")
    fixed = listed.text("fixed")
    return model.ListCall(
        path=listed.text("path"),
        rows=path_of(listed.text("rows")),
        count=template_of(listed.text("count")),
        method=model.Method(listed.text("method", model.Method.GET)),
        total=_place_of(listed["total"]) if "total" in listed else None,
        counting=_count_call(listed) if "counting" in listed else None,
        paging=_paging(listed) if "paging" in listed else None,
        fixed=template_of(fixed).fixed if fixed else (),
        combine=MappingProxyType(listed.table("combine").all_texts()),
        mark=section.key_marks["list"],
    )


def _count_call(listed: Table) -> model.CountCall:
    counting = listed.table("counting")
    return model.CountCall(
        path=counting.text("path"), total=_place_of(counting["total"])
    )


def _paging(listed: Table) -> model.Paging:
    """Return how further pages are requested: the file names one of the kinds."""
    paging = listed.table("paging")
    mark = listed.key_marks["paging"]
    (kind,) = (kind for kind in model.PagingKind if kind in paging)
    if kind is model.PagingKind.NEXT:
        return model.Paging(kind, path=_place_of(paging["next"]), mark=mark)
    if kind is model.PagingKind.TOKEN:
        token = paging.table("token")
        path = _place_of(token["path"])
        return model.Paging(kind, _template(token, "query"), path=path, mark=mark)
    first = int(paging.text("first", "1"))
    return model.Paging(kind, _template(paging, kind), first=first, mark=mark)


def _template(table: Table, key: str) -> Template | None:
    return template_of(table.text(key)) if key in table else None


def _sort_call(section: Table) -> model.SortCall:
    sort = section.table("sort")
    by = sort.table("by").all_texts().items()
    return model.SortCall(
        by=MappingProxyType({key: template_of(text).fixed for key, text in by}),
        mark=section.key_marks["sort"],
        nulls=model.Nulls(sort.text("nulls", model.Nulls.LAST)),
    )
