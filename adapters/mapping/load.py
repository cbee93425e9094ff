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
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, replace
from datetime import time
from pathlib import Path as PathlibPath
from types import MappingProxyType
from typing import Any, TypeVar, cast
from zoneinfo import ZoneInfo

import orjson

from adapters.contract import ResourceType, SortKey
from adapters.mapping.document import (
    Document,
    Item,
    Section,
    Site,
    named,
    read_layers,
    resolved,
    secrets_of,
    variables_in,
)
from adapters.mapping.model import (
    Basic,
    BoundParameter,
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
    Nulls,
    OAuth2,
    Paging,
    PagingKind,
    PartMapping,
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
from adapters.mapping.paths import Header, Path, Place, path_of
from adapters.mapping.problems import MappingError, MappingProblem
from adapters.mapping.profile import is_profile, profile_of
from adapters.mapping.rules import RULES, RULES_OF_THE_WHOLE
from adapters.mapping.schema import find_faults, root_causes, without_faults
from adapters.mapping.slots import (
    KNOWN_IDENTIFIERS,
    LINES,
    LISTS,
    REQUIRED,
    SLOTS,
    Kind,
)
from adapters.mapping.yaml import KeyPath, Table, place, plain
from adapters.parameters import SEARCH_PARAMETERS, SORTS

_ADDRESSES = ("url", "token_url")

SUFFIX = ".kept"
"""How the name of a kept mapping ends."""


class ProfileGivenError(MappingError):
    """A profile was given where a mapping file is wanted."""


def load_mapping(
    path: str | PathlibPath, environ: Mapping[str, str] | None
) -> SourceMapping:
    """Return the mapping that a file says; `environ` resolves {env: NAME}, by NAME_FILE too.

    Without `environ` the file is read by itself: {env: NAME} stands for a placeholder. An
    adapter opens with it and states its capabilities; no address leads anywhere.

    Raises MappingError whose `problems` are all that a person has to mend, in the order
    of the file.
    """
    path = PathlibPath(path)
    if path.suffix == SUFFIX:
        return _load(*open_kept(path.read_bytes()), environ, is_copy=True)
    return _load(path, from_disk, environ)


_LAST_READ: dict[str, str] = {}
"""The variables of a copy, as they were read last here or before this process was forked."""


def _or_last(secrets: Mapping[str, str], names: Collection[str]) -> Mapping[str, str]:
    """Return the variables of a copy; one without a value keeps what it had before.

    So a worker starts while a file of a secret is being replaced.
    """
    lacking = [name for name in names if not secrets.get(name)]
    last = {name: _LAST_READ[name] for name in lacking if name in _LAST_READ}
    _LAST_READ.update({name: secrets[name] for name in names if secrets.get(name)})
    files = {f"{name}_FILE" for name in last}
    return {name: secrets[name] for name in secrets.keys() - files} | last


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


def load_draft(
    path: PathlibPath, text: str, environ: Mapping[str, str]
) -> tuple[SourceMapping, Table]:
    """Return the mapping of a file as if it held `text`, and its nodes.

    Files that it extends or names are read from the disk. Raises MappingError.
    """

    def read(file: PathlibPath) -> bytes:
        return text.encode("utf-8") if file == path else file.read_bytes()

    mapping = _load(path, read, environ)
    profile_of(mapping)
    return mapping, read_layers(path, read)[0]


def read_nodes(path: PathlibPath) -> Table:
    """Return the nodes of a mapping file or of a kept copy. Raises MappingError."""
    if path.suffix == SUFFIX:
        return read_layers(*open_kept(path.read_bytes()))[0]
    return read_layers(path)[0]


def _load(
    path: PathlibPath,
    read: Reader,
    environ: Mapping[str, str] | None,
    *,
    is_copy: bool = False,
) -> SourceMapping:
    root, refused = read_layers(path, read)
    if is_profile(root):
        text = "this is a profile, not a mapping file: a mapping file names it (profile: …)"
        raise ProfileGivenError([MappingProblem(root.keys["profile"], "", text)])
    if environ is not None:
        # Each file of a secret is read once.
        names = {*variables_in(root)}
        environ = secrets_of(names, environ)
        environ = _or_last(environ, names) if is_copy else environ
    data = plain(root)
    faults = find_faults(data, "File")
    document = Document(root, without_faults(data, faults), environ or {}, read)
    if environ is None:
        document = replace(document, environ=_placeholders(document))
    rules = RULES if faults or refused else (*RULES, *RULES_OF_THE_WHOLE)
    problems = list(map(document.problem, root_causes(faults)))
    problems += (document.problem(fault) for rule in rules for fault in rule(document))
    if problems or refused:
        marks = {problem.mark for problem in refused}
        others = (problem for problem in problems if problem.mark not in marks)
        raise MappingError([*refused, *others])
    return _mapping(document)


def _placeholders(doc: Document) -> Mapping[str, str]:
    """Return a text for each variable of a file: an address that is valid, or any other."""
    return {
        name: _placeholder(path[-2], source.get("kind"))
        for root, source in doc.sources.items()
        for path, name in named(source, root)
    }


def _placeholder(key: object, kind: str | None) -> str:
    if key == "url" and kind != "http":
        return "sqlite://"
    # RFC 2606: no host has this name.
    return "https://placeholder.invalid" if key in _ADDRESSES else "placeholder"


# ------------------------------------------------------------ options of the file


def _place_of(value: str | Mapping[str, str]) -> Place:
    """Return the place of a value in an answer: a path, or {header: name}."""
    return path_of(value) if isinstance(value, str) else Header(value["header"])


def _bound_of(value: str | Mapping[str, str]) -> str | BoundParameter:
    return value if isinstance(value, str) else BoundParameter(**value)


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
        Path: path_of,
        Place: _place_of,
        Place | None: _place_of,
        str | BoundParameter | None: _bound_of,
        Mapping[str, str | tuple[str, ...]]: _fixed,
        frozenset[str]: frozenset,
        Mapping[str, str]: MappingProxyType,
        Mapping[str, str | Mapping[str, str]]: MappingProxyType,
        CountCall | None: lambda table: _built(CountCall, table),
        **{each: each for each in (Several, Step, Method, Twice, Never, Nulls)},
    }
)
"""What a text, list or table of the file becomes for each type of attribute, else itself."""

_T = TypeVar("_T")


def _built(kind: type[_T], options: Mapping[str, Any], /, **others: Any) -> _T:
    """Return a value of the model, from the options that its attributes are named like."""
    values = {
        each.name: _CONVERSIONS.get(each.type, lambda value: value)(options[each.name])
        for each in fields(cast(Any, kind))
        if each.name in options and each.name not in others
    }
    return kind(**values, **others)


# -------------------------------------------------------------- sources and sections


def _mapping(doc: Document) -> SourceMapping:
    """Return the mapping of a document that has no problems."""
    data = doc.data
    sources = {path: _source(doc, path) for path in doc.sources}
    whole = SourceMapping(
        file=doc.root.mark.file,
        name=data["name"],
        profile=data["profile"],
        profile_directory=doc.profile_directory,
        read=doc.read,
        time_zone=ZoneInfo(data["time_zone"]),
        source=next(iter(sources.values())),
        constants=_built(Constants, data.get("constants", {})),
        resources={},
        codes=doc.code_tables,
        date_reading=DateReading(data.get("date", DateReading.START)),
        known=tuple(
            KnownFinding(**finding, mark=place(doc.root, ("known", index)))
            for index, finding in enumerate(data.get("known", ()))
        ),
    )
    sections = {each: _section(doc, each) for each in doc.sections}
    if len(sources) > 1 or any(section.is_entry for section in sections):
        return replace(whole, parts=tuple(_parts(doc, whole, sources, sections)))
    resources = {section.resource_type: section for section in sections.values()}
    return replace(whole, resources=MappingProxyType(resources))


def _source(doc: Document, path: KeyPath) -> SourceConfig:
    source = doc.sources[path]
    return _built(
        SourceConfig,
        source,
        mark=place(doc.root, (*path, "kind") if doc.is_own else path, not doc.is_own),
        zone=ZoneInfo(source.get("time_zone") or doc.data["time_zone"]),
        url=resolved(source.get("url", ""), doc.environ),
        http=_http_source(source, doc.environ) if source["kind"] == "http" else None,
        options=_texts(source.get("options", {}), doc.environ),
    )


def _section(doc: Document, section: Section) -> ResourceMapping:
    kind, path = section.kind, section.path
    fields = {
        site.slot.record: _field(doc, site) for site in section.sites if not site.listed
    }
    slot = "visit_number_system"
    if "visit_number" in fields and slot not in fields:
        system = doc.data["constants"][slot]
        mark = place(doc.root, ("constants", slot))
        fields[slot] = FieldMapping(slot, mark, constant=system)
    records = {each.name: each.record for each in SLOTS[kind]}
    required = (*REQUIRED[kind], *section.data.get("requires", ()))
    return ResourceMapping(
        resource_type=kind,
        mark=place(doc.root, path, at_key=True),
        rows=section.data.get("rows", ""),
        fields=MappingProxyType(fields),
        items=_items(doc, section),
        parameters=_offered(doc, section, "search"),
        sorts=tuple(map(SortKey, _offered(doc, section, "sort"))),
        required=frozenset(records.get(name, name) for name in required),
        http=_http_section(doc, section) if section.is_http else None,
    )


def _offered(doc: Document, section: Section, part: str) -> tuple[str, ...]:
    """Return what a section says under `search` or `sort`, or what is said for all."""
    if section.is_http and part == "sort":
        # Both directions have a word there.
        by = section.data.get("sort", {}).get("by", ())
        return tuple(word for word in by if not word.startswith("-"))
    words = section.data.get(part, section.whole.get(part, ()))
    lacks = frozenset() if doc.is_own else _lacking(section)
    return tuple(word for word in words if word not in lacks)


def _lacking(section: Section) -> frozenset[str]:
    """Return the parameters and sort keys for which a section has no field at all."""
    there = {site.full_name for site in section.sites}
    parameters = SEARCH_PARAMETERS[section.kind].items()
    compared = {name: row.slots for name, row in parameters}
    compared |= {key: (slot,) for key, slot in SORTS[section.kind].items()}
    return frozenset(
        name for name, slots in compared.items() if there.isdisjoint(slots)
    )


def _parts(
    doc: Document,
    whole: SourceMapping,
    sources: Mapping[KeyPath, SourceConfig],
    sections: Mapping[Section, ResourceMapping],
) -> Iterator[PartMapping]:
    """Yield a part for each section, in the order of the file.

    A part of stays holds the patients of the same source that they refer to, if any.
    """
    for section, mapping in sections.items():
        source = section.source_path
        resources = {section.kind: mapping}
        if section.kind is ResourceType.ENCOUNTER:
            prefix = mapping.fields["patient_id"].prefix
            for each in doc.sections_of(ResourceType.PATIENT):
                if (each.source_path, each.prefix) == (source, prefix):
                    resources[each.kind] = sections[each]
        yield PartMapping(
            name=str(source[-1]) if len(source) > 1 else section.prefix,
            kind=section.kind,
            mapping=replace(whole, source=sources[source], resources=resources),
            lacks=_lacking(section),
            systems=_systems(mapping),
        )


def _systems(mapping: ResourceMapping) -> Mapping[str, frozenset[str]]:
    """Return the systems of identifiers, by parameter, where the file names all of them."""
    rows = SEARCH_PARAMETERS[mapping.resource_type].values()
    slots = {row.name: row.system_slot for row in rows if row.system_slot}
    named = {}
    for name, slot in slots.items():
        listed, _, slot_name = slot.rpartition(".")
        items = mapping.items.get(listed, ()) if listed else (mapping,)
        systems = [_values_of(item.fields.get(slot_name)) for item in items]
        if None not in systems:
            named[name] = frozenset().union(*filter(None, systems))
    return MappingProxyType(named)


def _values_of(field: FieldMapping | None) -> frozenset[str] | None:
    """Return what a field can hold, "" for nothing, None if the file does not say."""
    if field is None:
        return frozenset({""})
    if field.constant is not None:
        return frozenset({field.constant})
    if field.codes is None:
        return None
    return frozenset({*field.codes.table.values(), field.codes.otherwise or "", ""})


# ------------------------------------------------------------------ fields and items


def _items(doc: Document, section: Section) -> Mapping[str, tuple[ItemMapping, ...]]:
    """Return the lists of a section (names, identifiers, …), each with its items."""
    fields = section.data.get("fields", {})
    return MappingProxyType(
        {
            listed.name: tuple(
                _item(doc, item) for item in section.items if item.listed is listed
            )
            for listed in LISTS[section.kind]
            if listed.name in fields
        }
    )


def _item(doc: Document, item: Item) -> ItemMapping:
    values = [(site.slot, _field(doc, site)) for site in item.sites()]
    fields = {slot.record: value for slot, value in values if slot is not LINES}
    mark = place(doc.root, item.path)
    if item.listed.name == "identifiers":
        _add_known_identifier(fields, mark)
    condition = item.options.get("only_if")
    return ItemMapping(
        slot=item.listed.name,
        mark=mark,
        fields=MappingProxyType(fields),
        lines=tuple(value for slot, value in values if slot is LINES),
        only_if=condition and Condition(condition["from"], frozenset(condition["in"])),
        rows=item.options.get("rows"),
        key=item.options.get("key"),
    )


def _add_known_identifier(fields: dict[str, FieldMapping], mark: Mark) -> None:
    """Say of a French identifier what its type says by itself."""
    named = fields.get("type")
    known = KNOWN_IDENTIFIERS.get(named.constant or "") if named else None
    for slot, constant in known._asdict().items() if known else ():
        if constant and slot not in fields:
            fields[slot] = FieldMapping(slot, mark, constant=constant)


def _field(doc: Document, site: Site) -> FieldMapping:
    """Return one value of a section or of an item."""
    options = site.options
    origin = (*site.path, "from") if "from" in options else site.path
    table = options.get("codes")
    return _built(
        FieldMapping,
        options,
        slot=site.slot.record,
        mark=place(doc.root, origin, at_key=origin is site.path),
        columns=site.columns,
        constant=options.get("value"),
        codes=doc.code_tables[table] if table else None,
        time=_time_rule(doc, site),
        search_column=options.get("search"),
        covers_all="covers" in options,
        follows_merges="merges" in options,
        prefix=doc.prefix_of(site),
    )


def _time_rule(doc: Document, site: Site) -> TimeRule | None:
    if site.slot.kind not in (Kind.TIME, Kind.DATE):
        return None
    return _built(
        TimeRule,
        {**doc.data.get("local_times", {}), **site.options},
        zone=ZoneInfo(site.zone_name or doc.data["time_zone"]),
        written=ZoneInfo(doc.data["time_zone"]),
        says_zone=bool(site.zone_name),
    )


# ---------------------------------------------------------------------- HTTP sources


def _http_source(source: Mapping[str, Any], environ: Mapping[str, str]) -> HttpSource:
    return HttpSource(
        headers=_texts(source.get("headers", {}), environ),
        auth=_auth(source.get("auth", {}), environ),
        error=_built(ErrorRule, source["error"]) if "error" in source else None,
    )


def _texts(values: Mapping[str, Any], environ: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({k: resolved(v, environ) for k, v in values.items()})


def _auth(
    auth: Mapping[str, Any], environ: Mapping[str, str]
) -> Basic | OAuth2 | Login | None:
    if "basic" in auth:
        return Basic(**_texts(auth["basic"], environ))
    if "oauth2" in auth:
        return OAuth2(**_texts(auth["oauth2"], environ))
    if "session" in auth:
        login = auth["session"]
        values = _texts(login.get("body", login.get("form", {})), environ)
        return _built(Login, login, values=values, as_json="body" in login)
    return None


def _http_section(doc: Document, section: Section) -> HttpSection:
    """Return how a section of an HTTP source is read and searched."""
    data = section.data

    def mark(*keys: str) -> Mark:
        return place(doc.root, (*section.path, *keys), at_key=True)

    return HttpSection(
        read=_built(ReadCall, data["read"], mark=mark("read")),
        list=_list(data["list"], mark) if "list" in data else None,
        search=MappingProxyType(
            {name: _search(doc, name, data) for name, data in section.search.items()}
        ),
        sort=_built(SortCall, {"send": "", **data["sort"]}, mark=mark("sort"))
        if "sort" in data
        else None,
        order=data.get("order", ""),
    )


def _list(data: Mapping[str, Any], mark: Callable[..., Mark]) -> ListCall:
    paging = data.get("paging")
    return _built(
        ListCall,
        {"fixed": {}, **data},
        paging=paging and _paging(paging, mark("list", "paging")),
        mark=mark("list"),
        count_mark=mark("list", "count"),
    )


def _paging(data: Mapping[str, Any], mark: Mark) -> Paging:
    kind = next(kind for kind in PagingKind if kind in data)
    options = {
        PagingKind.TOKEN: data[kind],
        PagingKind.NEXT: {"path": data[kind]},
    }.get(kind, {**data, "send": data[kind]})
    return _built(Paging, options, kind=kind, mark=mark)


def _search(doc: Document, name: str, data: Mapping[str, Any]) -> SearchCall:
    usual = Step.DAY if name == "birthdate" else Step.SECOND
    return _built(
        SearchCall,
        {"step": usual, **data},
        name=name,
        low=_bound_of(data["from"]) if "from" in data else None,
        zone=ZoneInfo(data["time_zone"]) if "time_zone" in data else None,
        system=_system(doc, data["system"]) if "system" in data else None,
    )


def _system(doc: Document, data: Mapping[str, Any]) -> SystemParameter:
    back = None
    if "codes" in data:
        table = doc.codes[data["codes"]]["table"]
        codes = {system: code for code, system in reversed([*table.items()])}
        back = MappingProxyType(codes)
    return SystemParameter(data.get("send", ""), back, data.get("join", ""))
