"""Loads a mapping file: returns a SourceMapping, or raises what is wrong with the file.

`document` reads the file with those that it extends, `schema` checks the shape, `rules`
what the keys say about each other: each stage raises all that it finds. A document
without problems is then turned into the typed values of `model`, from the top down:
sources and sections, fields and items, and what only HTTP sources have.

What returns the bytes of a file is an argument: the service reads a mapping, the files
that it extends and its profile once, and loads it from these bytes (`Recorder`).
"""

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, date, datetime, time
from enum import EnumType
from pathlib import Path as PathlibPath
from types import MappingProxyType
from typing import Any, TypeVar, cast, get_args
from zoneinfo import ZoneInfo

from adapters.contract import ResourceType, SortKey
from adapters.mapping import model
from adapters.mapping.document import (
    Document,
    Item,
    Section,
    Site,
    VariableError,
    named,
    read_layers,
    resolved,
    variable,
)
from adapters.mapping.model import Mark, Reader, SourceMapping, from_disk
from adapters.mapping.paths import Header, Path, Place, path_of
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import profile_of
from adapters.mapping.rules import RULES
from adapters.mapping.schema import Fault, find_faults, problem_of
from adapters.mapping.slots import (
    KNOWN_IDENTIFIERS,
    LINES,
    LISTS,
    REQUIRED,
    SLOTS,
    Kind,
)
from adapters.mapping.yaml import KeyPath, place, plain


def load_mapping(
    path: str | PathlibPath,
    environ: Mapping[str, str] | None,
    read: Reader = from_disk,
    *,
    changed: date | None = None,
) -> SourceMapping:
    """Return the mapping of a file; `environ` resolves {env: NAME}, by NAME_FILE too.

    Without `environ` the file is read by itself: {env: NAME} is a placeholder. An
    adapter opens with it and states its capabilities; no address leads anywhere.
    `read` reads the file and those that it names; `changed` is the day of its last
    change, by default that of the file on the disk.

    Raises MappingError with all problems of one stage, in the order of the file.
    """
    path = PathlibPath(path)
    mapping = _load(path, read, environ)
    changed = changed or datetime.fromtimestamp(path.stat().st_mtime, UTC).date()
    return replace(mapping, changed=changed)


class Recorder:
    """Reads files from the disk and keeps what they hold: `files`, by their paths."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def __call__(self, path: PathlibPath) -> bytes:
        """Return what a file holds. Raises OSError."""
        self.files[str(path)] = content = path.read_bytes()
        return content


class Recorded:
    """Reads the files that a Recorder kept; no other file is there."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def __call__(self, path: PathlibPath) -> bytes:
        """Return what a file held. Raises FileNotFoundError."""
        if str(path) not in self._files:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        return self._files[str(path)]


def load_draft(
    path: PathlibPath, text: str, environ: Mapping[str, str]
) -> SourceMapping:
    """Return the mapping of a file as if it held `text`. Raises MappingError.

    Files that it extends or names are read from the disk.
    """

    def read(file: PathlibPath) -> bytes:
        return text.encode("utf-8") if file == path else file.read_bytes()

    mapping = _load(path, read, environ)
    profile_of(mapping)
    return mapping


def _load(
    path: PathlibPath, read: Reader, environ: Mapping[str, str] | None
) -> SourceMapping:
    """Return the mapping of a file; what keys mean is examined once all have the right shape."""
    root = read_layers(path, read)
    document = Document(root, plain(root), read)
    faults = find_faults(document.data, "File")
    if not faults:
        values, unset = _variables(document, environ)
        document = replace(document, values=values)
        faults = (*unset, *(fault for rule in RULES for fault in rule(document)))
    if faults:
        raise MappingError(problem_of(root, fault) for fault in faults)
    return _Builder(document).mapping()


def _variables(
    doc: Document, environ: Mapping[str, str] | None
) -> tuple[Mapping[str, str], Sequence[Fault]]:
    """Return the values of variables, each read once, and those that have none.

    Without `environ` they are addresses that are valid and lead nowhere.
    """
    values: dict[str, str] = {}
    faults = []
    for root, source in doc.sources.items():
        for path, name in named(source, root):
            if environ is None:
                # RFC 2606: no host has this name.
                is_database = source["kind"] != "http" and path[-2] == "url"
                address = "sqlite://" if is_database else "https://placeholder.invalid"
                values[name] = address
                continue
            fault = f"the environment variable {name} is not set"
            try:
                value = values.get(name) or variable(name, environ)
            except VariableError as error:
                value, fault = "", str(error)
            values[name] = value
            if not value:
                faults.append(Fault(path, fault))
    return values, faults


# ------------------------------------------------------------------------ building


def _place_of(value: str | Mapping[str, str]) -> Place:
    """Return the place of a value in an answer: a path, or {header: name}."""
    return path_of(value) if isinstance(value, str) else Header(value["header"])


def _bound_of(value: str | Mapping[str, str]) -> str | model.BoundParameter:
    return value if isinstance(value, str) else model.BoundParameter(**value)


def _fixed(values: Mapping[str, Any]) -> Mapping[str, str | tuple[str, ...]]:
    return MappingProxyType(
        {k: v if isinstance(v, str) else tuple(v) for k, v in values.items()}
    )


_CONVERSIONS: Mapping[object, Callable[[Any], Any]] = MappingProxyType(
    {
        bool: lambda text: text == "true",
        int: int,
        float: float,
        time | None: time.fromisoformat,
        ZoneInfo: ZoneInfo,
        ZoneInfo | None: ZoneInfo,
        Path: path_of,
        Place: _place_of,
        Place | None: _place_of,
        str | model.BoundParameter | None: _bound_of,
        Mapping[str, str | tuple[str, ...]]: _fixed,
        frozenset[str]: frozenset,
        Mapping[str, str]: MappingProxyType,
        Mapping[str, str | Mapping[str, str]]: MappingProxyType,
    }
)
"""What a text, list or table of the file becomes for each type of attribute, else itself."""

_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "column": "from",
        "constant": "value",
        "date_reading": "date",
        "low": "from",
        "search_column": "search",
        "values": "in",
        "zone": "time_zone",
    }
)
"""The keys of attributes that have another name."""

_AUTH: Mapping[str, type[model.Auth]] = MappingProxyType(
    {"basic": model.Basic, "oauth2": model.OAuth2, "session": model.Login}
)

_T = TypeVar("_T")


class _Builder:
    """Makes the mapping of a document that has no problems, from the top down."""

    def __init__(self, doc: Document) -> None:
        self.doc = doc
        self.codes = MappingProxyType(
            {
                name: self.built(model.CodeTable, ("codes", name), options, name=name)
                for name, options in doc.codes.items()
            }
        )

    def built(
        self,
        kind: type[_T],
        path: KeyPath,
        options: Mapping[str, Any],
        /,
        **others: Any,
    ) -> _T:
        """Return a value of the model: attributes are named like the options.

        `path` is that of the options, and so the mark of the value.
        """
        values = dict(others)
        for each in fields(cast(Any, kind)):
            key = _KEYS.get(each.name, each.name)
            if each.name in values:
                continue
            if each.name == "mark":
                values["mark"] = self.mark(path)
            elif key in options:
                values[each.name] = self.value(each.type, (*path, key), options[key])
        return kind(**values)

    def value(self, kind: Any, path: KeyPath, option: Any) -> Any:
        """Return what an option becomes for an attribute of a type."""
        if kind in _CONVERSIONS:
            return _CONVERSIONS[kind](option)
        if isinstance(kind, EnumType):
            return kind(option)
        if kind == model.Secret:
            return resolved(option, self.doc.values)
        if kind in (Mapping[str, model.Secret], Mapping[str, model.Secret] | None):
            values = {k: resolved(v, self.doc.values) for k, v in option.items()}
            return MappingProxyType(values)
        below = next((k for k in (kind, *get_args(kind)) if is_dataclass(k)), None)
        return self.built(cast(Any, below), path, option) if below else option

    def mark(self, path: KeyPath, *, at_key: bool = True) -> Mark:
        """Return the place of something in the file."""
        return place(self.doc.root, path, at_key)

    # --------------------------------------------------------- sources and sections

    def mapping(self) -> SourceMapping:
        """Return the mapping."""
        doc, data = self.doc, self.doc.data
        sources = {path: self.source(path) for path in doc.sources}
        sections = {each: self.section(each) for each in doc.sections}
        known = enumerate(data.get("known", ()))
        whole = self.built(
            SourceMapping,
            (),
            {"constants": {}, **data},
            file=doc.root.mark.file,
            profile_directory=doc.profile_directory,
            read=doc.read,
            source=next(iter(sources.values())),
            resources={},
            codes=self.codes,
            parts=(),
            beside={},
            known=tuple(
                self.built(model.KnownFinding, ("known", n), f) for n, f in known
            ),
        )
        if len(sources) > 1 or any(section.is_entry for section in sections):
            return replace(whole, parts=tuple(self.parts(whole, sources, sections)))
        resources = {section.kind: built for section, built in sections.items()}
        beside = {(kind, ""): section for kind, section in resources.items()}
        return replace(whole, resources=MappingProxyType(resources), beside=beside)

    def source(self, path: KeyPath) -> model.SourceConfig:
        source, is_own = self.doc.sources[path], self.doc.is_own
        http = None
        if source["kind"] == "http":
            auth = None
            for key, options in source.get("auth", {}).items():
                auth = self.built(_AUTH[key], (*path, "auth", key), options)
            http = self.built(model.HttpSource, path, source, auth=auth)
        return self.built(
            model.SourceConfig,
            path,
            source,
            mark=self.mark((*path, "kind") if is_own else path, at_key=not is_own),
            zone=ZoneInfo(source.get("time_zone") or self.doc.data["time_zone"]),
            http=http,
        )

    def section(self, section: Section) -> model.ResourceMapping:
        kind, path = section.kind, section.path
        fields = {s.slot.record: self.field(s) for s in section.sites if s.item is None}
        slot = "visit_number_system"
        if "visit_number" in fields and slot not in fields:
            system, mark = self.doc.data["constants"][slot], ("constants", slot)
            at = self.mark(mark, at_key=False)
            fields[slot] = model.FieldMapping(slot, at, constant=system)
        records = {each.name: each.record for each in SLOTS[kind]}
        required = (*REQUIRED[kind], *section.data.get("requires", ()))
        return model.ResourceMapping(
            resource_type=kind,
            mark=self.mark(path),
            rows=section.data.get("rows", ""),
            fields=MappingProxyType(fields),
            items=self.items(section),
            parameters=section.offered("search"),
            sorts=tuple(map(SortKey, section.offered("sort"))),
            required=frozenset(records.get(name, name) for name in required),
            http=self.http_section(section) if section.is_http else None,
        )

    def parts(
        self,
        whole: SourceMapping,
        sources: Mapping[KeyPath, model.SourceConfig],
        sections: Mapping[Section, model.ResourceMapping],
    ) -> Iterator[model.PartMapping]:
        """Yield a part for each section, in the order of the file.

        A part of stays holds the patients of the same source that they refer to, if any.
        """
        for section, mapping in sections.items():
            source = section.source_path
            beside = {
                (each.kind, each.prefix): built
                for each, built in sections.items()
                if each.source_path == source
            }
            resources = {section.kind: mapping}
            if section.kind is ResourceType.ENCOUNTER:
                prefix = mapping.fields["patient_id"].prefix
                if patients := beside.get((ResourceType.PATIENT, prefix)):
                    resources[ResourceType.PATIENT] = patients
            own = replace(whole, source=sources[source], resources=resources)
            yield model.PartMapping(
                name=str(source[-1]) if len(source) > 1 else section.prefix,
                kind=section.kind,
                mapping=replace(own, beside=beside),
                lacks=section.lacks,
                systems=mapping.systems,
            )

    # ------------------------------------------------------------- fields and items

    def items(self, section: Section) -> Mapping[str, tuple[model.ItemMapping, ...]]:
        """Return the lists of a section (names, identifiers, …), each with its items."""
        lists: dict[str, tuple[model.ItemMapping, ...]] = {
            listed.name: ()
            for listed in LISTS[section.kind]
            if listed.name in section.fields
        }
        for item in section.items:
            lists[item.listed.name] += (self.item(item),)
        return MappingProxyType(lists)

    def item(self, item: Item) -> model.ItemMapping:
        values = [(site.slot, self.field(site)) for site in item.sites]
        fields = {slot.record: value for slot, value in values if slot is not LINES}
        mark, named = self.mark(item.path), fields.get("type")
        known = None
        if named and item.listed.name == "identifiers":
            known = KNOWN_IDENTIFIERS.get(named.constant or "")
        for slot, constant in known._asdict().items() if known else ():
            if constant and slot not in fields:
                fields[slot] = model.FieldMapping(slot, mark, constant=constant)
        return self.built(
            model.ItemMapping,
            item.path,
            item.options,
            slot=item.listed.name,
            fields=MappingProxyType(fields),
            lines=tuple(value for slot, value in values if slot is LINES),
        )

    def field(self, site: Site) -> model.FieldMapping:
        """Return one value of a section or of an item."""
        options = site.options
        origin = (*site.path, "from") if "from" in options else site.path
        return self.built(
            model.FieldMapping,
            site.path,
            options,
            slot=site.slot.record,
            mark=self.mark(origin, at_key=origin is site.path),
            columns=site.columns,
            codes=self.codes[options["codes"]] if "codes" in options else None,
            time=self.time_rule(site),
            covers_all="covers" in options,
            follows_merges="merges" in options,
            prefix=self.doc.prefix_of(site),
        )

    def time_rule(self, site: Site) -> model.TimeRule | None:
        if site.slot.kind not in (Kind.TIME, Kind.DATE):
            return None
        zone = self.doc.data["time_zone"]
        return self.built(
            model.TimeRule,
            site.path,
            {**self.doc.data.get("local_times", {}), **site.options},
            zone=ZoneInfo(site.zone_name or zone),
            written=ZoneInfo(zone),
            says_zone=bool(site.zone_name),
        )

    # --------------------------------------------------------- sections of HTTP APIs

    def http_section(self, section: Section) -> model.HttpSection:
        """Return how a section of an HTTP source is read and searched."""
        path, data = section.path, section.data
        others: dict[str, Any] = {"list": None}
        if listed := data.get("list"):
            where, paging = (*path, "list"), listed.get("paging")
            others["list"] = self.built(
                model.ListCall,
                where,
                {"fixed": {}, **listed},
                paging=paging and self.paging((*where, "paging"), paging),
                count_mark=self.mark((*where, "count")),
            )
        if "sort" in data:
            sort = {"send": "", **data["sort"]}
            others["sort"] = self.built(model.SortCall, (*path, "sort"), sort)
        calls = {name: self.search(section, name) for name in section.search}
        return self.built(
            model.HttpSection, path, data, search=MappingProxyType(calls), **others
        )

    def paging(self, path: KeyPath, data: Mapping[str, Any]) -> model.Paging:
        kind = next(kind for kind in model.PagingKind if kind in data)
        options = {
            model.PagingKind.TOKEN: data[kind],
            model.PagingKind.NEXT: {"path": data[kind]},
        }.get(kind, {**data, "send": data[kind]})
        return self.built(model.Paging, path, options, kind=kind)

    def search(self, section: Section, name: str) -> model.SearchCall:
        path, data = (*section.path, "search", name), section.search[name]
        others = {}
        if sent := data.get("system"):
            back = None
            if table := self.codes.get(sent.get("codes")):
                # Of several codes for a system, the first is sent.
                pairs = reversed([*table.table.items()])
                back = MappingProxyType({system: code for code, system in pairs})
            others["system"] = self.built(model.SystemParameter, path, sent, codes=back)
        usual = model.Step.DAY if name == "birthdate" else model.Step.SECOND
        return self.built(
            model.SearchCall, path, {"step": usual, **data}, name=name, **others
        )
