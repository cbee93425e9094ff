"""Loads a mapping file: returns a SourceMapping, or raises all problems of the file at once.

`document` reads the file with those that it extends, `schema` checks the shape, `rules`
what the keys say about each other. A document without problems is then turned into the
typed values of `model`, from the top down: sources and sections, fields and items, and
what only HTTP sources have.

The service runs on a copy: one file that holds the mapping, all files that it extends,
and its profile (`copy_mapping`).
"""

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import time
from functools import lru_cache
from pathlib import Path as PathlibPath
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from adapters.contract import ResourceType, SortKey
from adapters.mapping.document import (
    Document,
    Item,
    Site,
    item_sites,
    read_layers,
    resolved,
)
from adapters.mapping.model import (
    Basic,
    CodeTable,
    Condition,
    Constants,
    CountCall,
    DateReading,
    ErrorRule,
    FieldMapping,
    HttpSection,
    HttpSource,
    ItemMapping,
    KnownFinding,
    ListCall,
    Login,
    Mark,
    Method,
    Never,
    OAuth2,
    Paging,
    PagingKind,
    PartMapping,
    Path,
    ReadCall,
    Reader,
    ResourceMapping,
    SearchCall,
    Several,
    SortCall,
    SourceConfig,
    SourceMapping,
    Step,
    SystemParameter,
    TimeRule,
    Twice,
    from_disk,
)
from adapters.mapping.problems import MappingError, MappingProblem
from adapters.mapping.profile import is_profile, profile_of
from adapters.mapping.rules import RULES, prefix_of
from adapters.mapping.schema import find_faults, root_causes, without_faults
from adapters.mapping.slots import (
    KNOWN_IDENTIFIERS,
    LINES,
    LISTS,
    REQUIRED,
    SLOTS,
    Kind,
)
from adapters.mapping.yaml import Items, KeyPath, Node, Table, place, plain
from adapters.parameters import SEARCH_PARAMETERS, SORTS

SUFFIX = ".kept"
"""How the name of a kept mapping ends."""


class ProfileGivenError(MappingError):
    """A profile was given where a mapping file is wanted."""


def load_mapping(
    path: str | PathlibPath, environ: Mapping[str, str] | None
) -> SourceMapping:
    """Return the mapping that a file says; `environ` resolves {env: NAME}.

    Without `environ` the file is read by itself: what {env: NAME} stands for is "".

    Raises MappingError whose `problems` are all that a person has to mend, in the order
    of the file.
    """
    path = PathlibPath(path)
    if path.suffix == SUFFIX:
        variables = None if environ is None else frozenset(environ.items())
        return _load_copy(path.read_bytes(), variables)
    return _load(path, from_disk, environ)


@lru_cache(maxsize=1)
def _load_copy(
    content: bytes, environ: frozenset[tuple[str, str]] | None
) -> SourceMapping:
    # A copy does not change: processes that are forked from one that has read it
    # need not read it again.
    return _load(*open_kept(content), None if environ is None else dict(environ))


def copy_mapping(
    path: PathlibPath, environ: Mapping[str, str], place: PathlibPath
) -> SourceMapping:
    """Write a mapping and all files that it reads to `place`, as one; return it.

    A service that is started with it runs on it, whatever happens to the files. Problems
    and log lines name the files that it was read from. Raises MappingError for one that
    has problems.
    """
    files: dict[str, bytes] = {}

    def read(file: PathlibPath) -> bytes:
        files[str(file)] = content = file.read_bytes()
        return content

    mapping = _load(path, read, environ)
    profile_of(mapping)
    texts = {name: content.decode("utf-8") for name, content in files.items()}
    # Whole or not at all, and as old as the mapping file.
    new = place.with_name(f"{place.name}.new")
    new.write_bytes(orjson.dumps({"mapping": str(path), "files": texts}))
    changed = path.stat().st_mtime
    os.utime(new, (changed, changed))
    new.replace(place)
    return mapping


def open_kept(content: bytes) -> tuple[PathlibPath, Reader]:
    """Return where a kept mapping stood, and what reads its files from the copy."""
    copy: dict[str, Any] = orjson.loads(content)
    files: dict[str, str] = copy["files"]

    def read(file: PathlibPath) -> bytes:
        if str(file) not in files:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(file))
        return files[str(file)].encode("utf-8")

    return PathlibPath(copy["mapping"]), read


def _load(
    path: PathlibPath, read: Reader, environ: Mapping[str, str] | None
) -> SourceMapping:
    root, refused = read_layers(path, read)
    if is_profile(root):
        text = "this is a profile, not a mapping file: a mapping file names it (profile: …)"
        raise ProfileGivenError([MappingProblem(root.keys["profile"], "", text)])
    marks = {problem.mark for problem in refused}
    document, faults = _opened(root, environ, _paths_at(root, marks), read)
    problems = [*refused, *(fault for fault in faults if fault.mark not in marks)]
    problems += [p for rule in RULES for p in rule(document) if p.mark not in marks]
    if problems:
        raise MappingError(problems)
    return _mapping(document)


def _opened(
    root: Table,
    environ: Mapping[str, str] | None,
    unread: Iterable[KeyPath],
    read: Reader,
) -> tuple[Document, tuple[MappingProblem, ...]]:
    """Return the document and the problems of its shape.

    `unread` are the paths of what has been refused before.
    """
    data = plain(root)
    faults = find_faults(data, "File")
    meant = ((*path[:-1], meant) for path, *_, meant, _ in faults if meant)
    refused = frozenset([*(fault.path for fault in faults), *meant, *unread])
    shaped = without_faults(data, faults)
    document = Document(root.mark.file, root, shaped, environ, refused, read)
    problems = (document.problem(*fault[:3]) for fault in root_causes(faults))
    return document, tuple(problems)


def _paths_at(root: Node, marks: Collection[Mark]) -> Iterator[KeyPath]:
    """Yield the path of each node that stands at one of these places."""
    below: Iterable[tuple[str | int, Node]] = ()
    match root:
        case Table():
            below = root.entries.items()
        case Items():
            below = enumerate(root.items)
    for step, node in below:
        if node.mark in marks:
            yield (step,)
        yield from ((step, *path) for path in _paths_at(node, marks))


# -------------------------------------------------------------- sources and sections


def _mapping(doc: Document) -> SourceMapping:
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
        time_zone=ZoneInfo(data["time_zone"]),
        source=next(iter(sources.values())),
        constants=_constants(data.get("constants", {})),
        resources={},
        codes=codes,
        date_reading=DateReading(data.get("date", DateReading.START)),
        known=tuple(
            KnownFinding(**finding, mark=place(doc.root, ("known", index)))
            for index, finding in enumerate(data.get("known", ()))
        ),
    )
    sections = {
        path: _section(doc, path, kind, codes) for path, kind, _ in doc.sections()
    }
    if _is_several(doc):
        return replace(whole, parts=tuple(_parts(doc, whole, sources, sections)))
    resources = {section.resource_type: section for section in sections.values()}
    return replace(whole, resources=MappingProxyType(resources))


def _source(doc: Document, path: KeyPath) -> SourceConfig:
    source = doc.sources()[path]
    times = ("timeout_seconds", "count_timeout_seconds", "wait_seconds")
    limits: dict[str, Any] = {k: float(source[k]) for k in times if k in source}
    if "connections" in source:
        limits["connections"] = int(source["connections"])
    return SourceConfig(
        kind=source["kind"],
        mark=place(doc.root, (*path, "kind") if doc.is_own else path, not doc.is_own),
        zone=ZoneInfo(source.get("time_zone") or doc.data["time_zone"]),
        url=resolved(source.get("url", ""), doc.environ),
        may_write=source.get("may_write") == "true",
        http=_http_source(source, doc.environ) if source["kind"] == "http" else None,
        options=_texts(source.get("options", {}), doc.environ),
        **limits,
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
    own = [site for site in doc.sites if site.section == path and not site.listed]
    fields = {site.slot.record: _field(doc, site, codes) for site in own}
    if kind is ResourceType.ENCOUNTER:
        _add_visit_number_system(doc, fields)
    http = _http_section(doc, path, codes) if doc.is_http(section) else None
    return ResourceMapping(
        resource_type=kind,
        mark=place(doc.root, path, at_key=True),
        rows=section.get("rows", ""),
        fields=MappingProxyType(fields),
        items=_items(doc, path, kind, codes),
        parameters=_offered(doc, path, "search"),
        sorts=_sorts(doc, path),
        required=_required(kind, section.get("requires", ())),
        http=http,
    )


def _sorts(doc: Document, path: KeyPath) -> tuple[SortKey, ...]:
    """Return what a source sorts by; of an HTTP source both directions have a word."""
    section = doc.section(path)
    if not doc.is_http(section):
        return tuple(map(SortKey, _offered(doc, path, "sort")))
    words = section.get("sort", {}).get("by", {})
    return tuple(SortKey(word) for word in words if not word.startswith("-"))


def _add_visit_number_system(doc: Document, fields: dict[str, FieldMapping]) -> None:
    slot = "visit_number_system"
    system = doc.data.get("constants", {}).get(slot)
    if "visit_number" in fields and slot not in fields:
        mark = place(doc.root, ("constants", slot))
        fields[slot] = FieldMapping(slot, mark, constant=system)


def _required(kind: ResourceType, more: Iterable[str]) -> frozenset[str]:
    records = {slot.name: slot.record for slot in SLOTS[kind]}
    return frozenset(records.get(name, name) for name in (*REQUIRED[kind], *more))


def _is_several(doc: Document) -> bool:
    """Whether resources come from more than one source, or from several tables."""
    return len(doc.sources()) > 1 or any("sources" in s for _, _, s in doc.wholes())


def _offered(doc: Document, path: KeyPath, part: str) -> tuple[str, ...]:
    """Return what a section says under `search` or `sort`, or what is said for all."""
    kind, section = next((k, data) for at, k, data in doc.sections() if at == path)
    words = section.get(part, doc.data[str(path[0])].get(part, ()))
    lacks = frozenset() if doc.is_own else _lacking(doc, path, kind)
    return tuple(word for word in words if word not in lacks)


def _parts(
    doc: Document,
    whole: SourceMapping,
    sources: Mapping[KeyPath, SourceConfig],
    sections: Mapping[KeyPath, ResourceMapping],
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
            lacks=_lacking(doc, path, kind),
        )


def _patients(
    doc: Document,
    place: KeyPath,
    stays: ResourceMapping,
    sections: Mapping[KeyPath, ResourceMapping],
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


def _lacking(doc: Document, path: KeyPath, kind: ResourceType) -> frozenset[str]:
    """Return the parameters and sort keys for which a section has no field at all."""
    there = {site.full_name for site in doc.sites if site.section == path}
    compared = {
        **{name: row.slots for name, row in SEARCH_PARAMETERS[kind].items()},
        **{key: (slot,) for key, slot in SORTS[kind].items()},
    }
    return frozenset(
        name for name, slots in compared.items() if not there.intersection(slots)
    )


# ------------------------------------------------------------------ fields and items


def _items(
    doc: Document, path: KeyPath, kind: ResourceType, codes: Mapping[str, CodeTable]
) -> Mapping[str, tuple[ItemMapping, ...]]:
    """Return the lists of a section (names, identifiers, …), each with its items."""
    fields = (*path, "fields")
    items = [
        (i.listed.name, _item(doc, i, codes))
        for i in doc.items()
        if i.path[: len(fields)] == fields
    ]
    return MappingProxyType(
        {
            listed.name: tuple(item for name, item in items if name == listed.name)
            for listed in LISTS[kind]
            if doc.holds((*fields, listed.name))
        }
    )


def _item(doc: Document, item: Item, codes: Mapping[str, CodeTable]) -> ItemMapping:
    sites = tuple(item_sites(item))
    fields = {
        site.slot.record: _field(doc, site, codes)
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
        lines=tuple(_field(doc, site, codes) for site in sites if site.slot is LINES),
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
    return Condition(data["from"], frozenset(data["in"])) if data else None


def _field(doc: Document, site: Site, codes: Mapping[str, CodeTable]) -> FieldMapping:
    """Return one value of a section or of an item."""
    options = site.options
    return FieldMapping(
        slot=site.slot.record,
        mark=_origin(doc, site),
        columns=site.columns,
        constant=options.get("value"),
        codes=codes[options["codes"]] if "codes" in options else None,
        time=_time_rule(doc, site),
        absent=frozenset(options.get("absent", ())),
        search_column=options.get("search"),
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
    options = {**doc.data.get("local_times", {}), **site.options}
    at = options.get("at")
    return TimeRule(
        zone=ZoneInfo(doc.zone_name(site)),
        written=ZoneInfo(doc.data["time_zone"]),
        format=options.get("format"),
        at=time.fromisoformat(at) if at else None,
        twice=Twice(options.get("twice", Twice.FIRST)),
        never=Never(options.get("never", Never.REFUSE)),
        says_zone=doc.says_zone(site),
    )


# ---------------------------------------------------------------------- HTTP sources

_WHOLE = "."
"""The path of the answer itself."""


def path_of(text: str) -> Path:
    """Return the keys of a path with dots."""
    return () if text == _WHOLE else tuple(text.split("."))


def _http_source(
    source: Mapping[str, Any], environ: Mapping[str, str] | None
) -> HttpSource:
    return HttpSource(
        headers=_texts(source.get("headers", {}), environ),
        auth=_auth(source.get("auth", {}), environ),
        error=_error(source["error"]) if "error" in source else None,
    )


def _texts(
    values: Mapping[str, Any], environ: Mapping[str, str] | None
) -> Mapping[str, str]:
    return MappingProxyType({k: resolved(v, environ) for k, v in values.items()})


def _auth(
    auth: Mapping[str, Any], environ: Mapping[str, str] | None
) -> Basic | OAuth2 | Login | None:
    if "basic" in auth:
        return Basic(**_texts(auth["basic"], environ))
    if "oauth2" in auth:
        return OAuth2(**_texts(auth["oauth2"], environ))
    if "session" in auth:
        login = auth["session"]
        return Login(
            path=login["path"],
            values=_texts(login.get("body", login.get("form", {})), environ),
            token=path_of(login["token"]),
            header=login["header"],
            format=login.get("format", "{token}"),
            as_json="body" in login,
        )
    return None


def _error(rule: Mapping[str, Any]) -> ErrorRule:
    words = ("fine", "not_found", "unavailable", "expired")
    sets = {key: frozenset(rule.get(key, ())) for key in words}
    return ErrorRule(path_of(rule["path"]), **sets)


def _http_section(
    doc: Document, path: KeyPath, codes: Mapping[str, CodeTable]
) -> HttpSection:
    """Return how a section of an HTTP source is read and searched."""
    section = doc.section(path)
    read, sort = section["read"], section.get("sort")

    def mark(*keys: str) -> Mark:
        return place(doc.root, (*path, *keys), at_key=True)

    return HttpSection(
        read=ReadCall(read["path"], path_of(read.get("row", _WHOLE)), mark("read")),
        list=_list(section["list"], mark) if "list" in section else None,
        search=MappingProxyType(
            {n: _search(n, o, codes) for n, o in section.get("search", {}).items()}
        ),
        sort=SortCall(sort["send"], MappingProxyType(sort["by"]), mark("sort"))
        if sort
        else None,
        order=section.get("order", ""),
    )


def _list(data: Mapping[str, Any], mark: Callable[..., Mark]) -> ListCall:
    counting = data.get("counting")
    return ListCall(
        path=data["path"],
        rows=path_of(data["rows"]),
        count=data["count"],
        method=Method(data.get("method", Method.GET)),
        total=path_of(data["total"]) if "total" in data else None,
        counting=CountCall(counting["path"], path_of(counting["total"]))
        if counting
        else None,
        paging=_paging(data["paging"], mark("list", "paging"))
        if "paging" in data
        else None,
        fixed=MappingProxyType(data.get("fixed", {})),
        mark=mark("list"),
        count_mark=mark("list", "count"),
    )


def _paging(data: Mapping[str, Any], mark: Mark) -> Paging:
    if "token" in data:
        token = data["token"]
        path = path_of(token["path"])
        return Paging(PagingKind.TOKEN, token["send"], path, mark=mark)
    if "next" in data:
        return Paging(PagingKind.NEXT, path=path_of(data["next"]), mark=mark)
    if "page" in data:
        first = int(data.get("first", 1))
        return Paging(PagingKind.PAGE, data["page"], first=first, mark=mark)
    return Paging(PagingKind.OFFSET, data["offset"], mark=mark)


def _search(
    name: str, data: Mapping[str, Any], codes: Mapping[str, CodeTable]
) -> SearchCall:
    usual = Step.DAY if name == "birthdate" else Step.SECOND
    texts = ("send", "contains", "exact", "before", "until", "format")
    return SearchCall(
        name=name,
        several=Several(data.get("several", Several.ONE)),
        merged=data.get("merged") == "true",
        low=data.get("from"),
        step=Step(data.get("step", usual)),
        zone=ZoneInfo(data["time_zone"]) if "time_zone" in data else None,
        system=_system(data["system"], codes) if "system" in data else None,
        **{key: data[key] for key in texts if key in data},
    )


def _system(data: Mapping[str, Any], codes: Mapping[str, CodeTable]) -> SystemParameter:
    if "codes" not in data:
        return SystemParameter(data["send"])
    table = codes[data["codes"]].table
    back = {system: code for code, system in reversed([*table.items()])}
    return SystemParameter(data["send"], MappingProxyType(back))
