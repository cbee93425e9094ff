"""A mapping file that extends another: a vendor's base, and what a hospital does differently.

Keys are laid over those of the base, table by table; what the file contains replaces what the
base contains. A value (`{from: …}`), a list, and a way to do something (`auth`, `paging`) is
replaced whole; the entries of `sources` of a section are identified by their prefix.
Every node keeps the place in the file that has it, so that a problem is reported there.

A document is what results, between the text of a file and its meaning: what the rules
look at.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from adapters.contract import ResourceType
from adapters.mapping.model import Reader, from_disk, is_own
from adapters.mapping.problems import MappingError, MappingProblem
from adapters.mapping.slots import (
    LINES,
    LISTS,
    REFERS,
    SECTIONS,
    SLOTS,
    ListSlot,
    Slot,
)
from adapters.mapping.yaml import (
    Items,
    KeyPath,
    Node,
    Scalar,
    Table,
    is_there,
    parse_file,
    place,
    plain,
)
from adapters.parameters import SEARCH_PARAMETERS, SORTS

VERSION = "1"
"""The version of the format that this service reads."""

_WAYS = ("auth", "error", "paging")
"""Tables that say how one thing is done: half of one way and half of another is neither."""


def read_layers(
    path: str | Path, read: Reader = from_disk, above: tuple[Path, ...] = ()
) -> Table:
    """Return the nodes of a file laid over those that it extends; `above` extend it.

    Raises MappingError for a file that cannot be read, a base that is not there, and
    files that extend each other.
    """
    path = Path(path)
    own = parse_file(path, read)
    version, extended = own.entries.get("mapping"), own.entries.get("extend")
    # Before anything else: the keys of another version may mean other things.
    if isinstance(version, Scalar) and version.text != VERSION:
        text = f"version '{version.text}' of the format is not known: this service reads {VERSION}"
        raise MappingError([MappingProblem(version.mark, "mapping", text)])
    if not isinstance(extended, Scalar):
        return own
    above = (*above, path)
    base = path.parent / extended.text
    shipped = Path(str(resources.files("mappings"))) / extended.text
    if not is_there(base, read) and is_there(shipped, read):
        base = shipped
    if not is_there(base, read):
        fault = f"there is no file {base}"
    elif base.resolve() in {each.resolve() for each in above}:
        fault = "these files extend each other"
    else:
        return _over(read_layers(base, read, above), own, ())
    raise MappingError([MappingProblem(extended.mark, "extend", fault)])


def _over(base: Table, own: Table, path: KeyPath) -> Table:
    """Return the keys of `own` laid over those of `base`."""
    entries = dict(base.entries)
    for one, other in (("source", "sources"), ("sources", "source")):
        if not path and one in own.entries:
            entries.pop(other, None)
    for key, node in own.entries.items():
        entries[key] = _laid(entries.get(key), node, (*path, key))
    keys = {**base.keys, **own.keys}
    return Table(own.mark, MappingProxyType(entries), MappingProxyType(keys))


def _laid(base: Node | None, own: Node, path: KeyPath) -> Node:
    if isinstance(base, Table) and isinstance(own, Table):
        return own if _is_whole(base, own, path) else _over(base, own, path)
    is_entries = path[0] in SECTIONS and path[1:] == ("sources",)
    if not (isinstance(base, Items) and isinstance(own, Items) and is_entries):
        return own
    # Entries with the same prefix are one.
    entries = {_text(node, "prefix") or n: node for n, node in enumerate(base.items)}
    for n, node in enumerate(own.items, len(base.items)):
        key = _text(node, "prefix") or n
        entries[key] = _laid(entries.get(key), node, (*path, key))
    return Items(own.mark, tuple(entries.values()))


def _is_whole(base: Table, own: Table, path: KeyPath) -> bool:
    if "fields" in path:
        return path[-1] != "fields"
    if len(path) == 1 and path[0] in SECTIONS:
        return "sources" in own.entries and "sources" not in base.entries
    if path[0] in ("source", "sources"):
        is_other = _text(own, "kind") not in (_text(base, "kind"), None)
        return path[-1] in _WAYS or is_other
    return path[-1] in _WAYS or path[-2:-1] == ("search",)


def _text(node: Node, key: str) -> str | None:
    value = node.entries.get(key) if isinstance(node, Table) else None
    return value.text if isinstance(value, Scalar) else None


# ------------------------------------------------------------------- the document


@dataclass(frozen=True, eq=False)
class Section:
    """A section of the file; of one that has `sources`, each entry of these.

    `whole` is the section that the entry is one of, else the section itself.
    `source_path` and `source` are the hospital system that it reads.
    """

    path: KeyPath
    kind: ResourceType
    data: Mapping[str, Any]
    whole: Mapping[str, Any]
    source_path: KeyPath
    source: Mapping[str, Any]

    @property
    def is_http(self) -> bool:
        """Whether its rows come from an HTTP API: it has no SELECTs then."""
        return bool(self.source.get("kind") == "http")

    @property
    def is_entry(self) -> bool:
        """Whether it is one of several of its resource type."""
        return self.whole is not self.data

    @property
    def prefix(self) -> str:
        """The prefix of its ids in those that clients see."""
        return str(self.data.get("prefix", ""))

    @property
    def search(self) -> Mapping[str, Any]:
        """How an HTTP API searches, by parameter."""
        return self.data.get("search", {}) if self.is_http else {}

    @property
    def fields(self) -> Mapping[str, Any]:
        """The file's entries for its slots."""
        fields: Mapping[str, Any] = self.data.get("fields", {})
        return fields

    @cached_property
    def items(self) -> tuple["Item", ...]:
        """Every item of its list slots."""
        return tuple(
            Item(self, listed, (*self.path, "fields", listed.name, index), options)
            for listed in LISTS[self.kind]
            for index, options in enumerate(self.fields.get(listed.name, ()))
        )

    @cached_property
    def sites(self) -> tuple["Site", ...]:
        """Every value of its fields, those inside items last."""
        own = _sites(self, SLOTS[self.kind], (*self.path, "fields"), self.fields)
        return (*own, *(site for item in self.items for site in item.sites))

    @cached_property
    def lacks(self) -> frozenset[str]:
        """The parameters and sort keys for which it has no field at all."""
        there = {site.full_name for site in self.sites}
        parameters = SEARCH_PARAMETERS[self.kind].items()
        compared = {name: row.slots for name, row in parameters}
        compared |= {key: (slot,) for key, slot in SORTS[self.kind].items()}
        return frozenset(n for n, slots in compared.items() if there.isdisjoint(slots))

    def offered(self, part: str) -> tuple[str, ...]:
        """Return its `search` or `sort`, or the one for all."""
        if self.is_http and part == "sort":
            # Both directions have a word there.
            by = self.data.get("sort", {}).get("by", ())
            return tuple(word for word in by if not word.startswith("-"))
        words = self.data.get(part, self.whole.get(part, ()))
        lacks = frozenset() if is_own(self.source.get("kind")) else self.lacks
        return tuple(word for word in words if word not in lacks)


class Item(NamedTuple):
    """One item of a list slot."""

    section: Section
    listed: ListSlot
    path: KeyPath
    options: Mapping[str, Any]

    @property
    def sites(self) -> tuple["Site", ...]:
        """Its values, the lines of an address last."""
        section, listed, path, options = self
        lines = enumerate(options.get(LINES.name, ()))
        where = (*path, LINES.name)
        return (
            *_sites(section, listed.slots, path, options, self),
            *(Site(section, LINES, (*where, n), _options(v), self) for n, v in lines),
        )


class Site(NamedTuple):
    """One value of a section: its slot, its path, and its options; a constant is one."""

    section: Section
    slot: Slot
    path: KeyPath
    options: Mapping[str, Any]
    item: Item | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the value comes from, none for a constant."""
        named = self.options.get("from", ())
        return (named,) if isinstance(named, str) else tuple(named)

    @property
    def full_name(self) -> str:
        """The name of the slot, after that of its list when it is in one."""
        name = self.slot.name
        return f"{self.item.listed.name}.{name}" if self.item else name

    @property
    def zone_name(self) -> str | None:
        """The zone of the value or its source, None where only the file has one."""
        name: str | None = self.options.get("time_zone")
        return name or self.section.source.get("time_zone")


def _sites(
    section: Section,
    slots: Iterable[Slot],
    path: KeyPath,
    values: Mapping[str, Any],
    item: Item | None = None,
) -> tuple[Site, ...]:
    return tuple(
        Site(section, slot, (*path, slot.name), _options(values[slot.name]), item)
        for slot in slots
        if slot.name in values
    )


def _options(value: str | Mapping[str, Any]) -> Mapping[str, Any]:
    return {"value": value} if isinstance(value, str) else value


@dataclass(frozen=True)
class Document:
    """The nodes of a file of the right shape, and its data; `values` are of variables."""

    root: Table
    data: Mapping[str, Any]
    read: Reader = from_disk
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def profile_directory(self) -> Path:
        """The file that names the profile: its path is relative to it."""
        return Path(place(self.root, ("profile",)).file).parent

    @property
    def is_own(self) -> bool:
        """Whether records come from a class of the hospital's own: no field is mapped then."""
        return "source" in self.data and is_own(self.data["source"]["kind"])

    @cached_property
    def sources(self) -> Mapping[KeyPath, Mapping[str, Any]]:
        """The hospital systems by path."""
        if "sources" not in self.data:
            return {("source",): self.data["source"]}
        return {("sources", name): s for name, s in self.data["sources"].items()}

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The sections in the order of the resource types."""
        first = next(iter(self.sources))
        sections = []
        for key, kind in SECTIONS.items():
            whole = self.data.get(key, {"sources": ()})
            entries: list[tuple[KeyPath, Any]] = [((key,), whole)]
            if "sources" in whole:
                several = enumerate(whole["sources"])
                entries = [((key, "sources", at), each) for at, each in several]
            for path, data in entries:
                named = data.get("source")
                source = first if named is None else ("sources", named)
                system = self.sources.get(source, {})
                sections.append(Section(path, kind, data, whole, source, system))
        return tuple(sections)

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """Every value of the file."""
        return tuple(site for section in self.sections for site in section.sites)

    @property
    def http_sections(self) -> list[Section]:
        """The sections whose rows come from an HTTP API, which is their only source."""
        return [s for s in self.sections if s.is_http and not s.is_entry]

    def sections_of(self, kind: ResourceType) -> list[Section]:
        """Return the sections of one resource type."""
        return [section for section in self.sections if section.kind is kind]

    @property
    def codes(self) -> Mapping[str, Any]:
        """The code tables by name."""
        tables: Mapping[str, Any] = self.data.get("codes", {})
        return tables

    def targets(self, site: Site) -> list[Section]:
        """Return the sections that a reference may lead to: all, or those that it names.

        It names a source, or the prefix of one of its tables.
        """
        named = site.options.get("source")
        return [
            section
            for section in self.sections_of(REFERS[site.slot.name])
            if named in (None, section.source_path[-1], section.data.get("prefix"))
        ]

    def prefix_of(self, site: Site) -> str:
        """Return the prefix of a source's id in the ids that clients see."""
        if site.slot.name == "id" and site.item is None:
            return site.section.prefix
        targets = self.targets(site) if site.slot.name in REFERS else ()
        return targets[0].prefix if targets else ""


# ------------------------------------------------------------------------- secrets


class VariableError(ValueError):
    """A variable that cannot be read; the text holds nothing of its value."""


def resolved(value: str | Mapping[str, str], values: Mapping[str, str]) -> str:
    """Return a text, or the value of the variable where the file has {env: NAME}."""
    return value if isinstance(value, str) else values.get(value["env"], "")


def variable(name: str, environ: Mapping[str, str]) -> str:
    """Return the value of a variable, or what the file holds that NAME_FILE names.

    It is "" when neither is set. Line ends around it are those of a file, and no part of
    it. Raises VariableError when both are set, or the file cannot be read.
    """
    text, path = environ.get(name, ""), environ.get(f"{name}_FILE", "")
    if text and path:
        raise VariableError(f"{name} and {name}_FILE are both set")
    if path:
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, ValueError):
            raise VariableError(f"{name}_FILE is not a readable file") from None
    return text.strip("\r\n")


def variables_in(root: Node) -> Iterator[str]:
    """Yield the environment variables that a file names."""
    return (name for _, name in named(plain(root)))


def named(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield each environment variable that a value of the file names, and where."""
    if not isinstance(value, Mapping):
        return
    if set(value) == {"env"} and isinstance(value["env"], str):
        yield (*path, "env"), value["env"]
        return
    for key, below in value.items():
        yield from named(below, (*path, key))
