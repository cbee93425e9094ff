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
from typing import NamedTuple

from adapters.contract import ResourceType
from adapters.mapping.model import CodeTable, Mark, ReadFile, from_disk, is_own
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
)
from adapters.parameters import SEARCH_PARAMETERS, SORTS

VERSION = "1"
"""The version of the format that this service reads."""

_WAYS = ("auth", "error", "paging")
"""Tables that say how one thing is done: half of one way and half of another is neither."""


def read_layers(
    path: str | Path, read: ReadFile = from_disk, above: tuple[Path, ...] = ()
) -> Table:
    """Return the nodes of a file laid over those that it extends; `above` extend it.

    Raises MappingError for a file that cannot be read, a base that is not there, and
    files that extend each other.
    """
    path = Path(path)
    layer = parse_file(path, read)
    version = layer.get("mapping")
    extended = layer.get("extend")
    # Before anything else: the keys of another version may mean other things.
    if isinstance(version, Scalar) and version != VERSION:
        text = f"version '{version}' of the format is not known: this service reads {VERSION}"
        raise MappingError([MappingProblem(version.mark, "mapping", text)])
    if not isinstance(extended, Scalar):
        return layer
    above = (*above, path)
    base = path.parent / extended
    shipped = Path(str(resources.files("mappings"))) / extended
    if not is_there(base, read) and is_there(shipped, read):
        base = shipped
    if not is_there(base, read):
        fault = f"there is no file {base}"
    elif base.resolve() in {extending.resolve() for extending in above}:
        fault = "these files extend each other"
    else:
        return _over(read_layers(base, read, above), layer, ())
    raise MappingError([MappingProblem(extended.mark, "extend", fault)])


def _over(base: Table, layer: Table, path: KeyPath) -> Table:
    """Return the keys of `layer` laid over those of `base`."""
    entries: dict[str, Node] = dict(base)
    # A file has one source or several: what the layer says replaces both.
    if not path and "source" in layer:
        entries.pop("sources", None)
    if not path and "sources" in layer:
        entries.pop("source", None)
    for key, node in layer.items():
        entries[key] = _laid(entries.get(key), node, (*path, key))
    return Table(layer.mark, entries, {**base.key_marks, **layer.key_marks})


def _laid(base: Node | None, layer: Node, path: KeyPath) -> Node:
    """Return the node of a key: that of the layer, laid over that of the base if any."""
    if isinstance(base, Table) and isinstance(layer, Table):
        return layer if _is_whole(base, layer, path) else _over(base, layer, path)
    is_entries = path[0] in SECTIONS and path[1:] == ("sources",)
    if not (isinstance(base, Items) and isinstance(layer, Items) and is_entries):
        return layer
    # Entries with the same prefix are one; those without a prefix are counted.
    entries = {_prefix(node) or index: node for index, node in enumerate(base)}
    for index, node in enumerate(layer, len(base)):
        key = _prefix(node) or index
        entries[key] = _laid(entries.get(key), node, (*path, key))
    return Items(layer.mark, entries.values())


def _is_whole(base: Table, layer: Table, path: KeyPath) -> bool:
    """Whether a table of the layer replaces that of the base, and no key of it remains."""
    if "fields" in path:
        return path[-1] != "fields"
    if len(path) == 1 and path[0] in SECTIONS:
        return "sources" in layer and "sources" not in base
    if path[0] in ("source", "sources"):
        is_of_another_kind = layer.text("kind") not in (base.text("kind"), "")
        return path[-1] in _WAYS or is_of_another_kind
    return path[-1] in _WAYS or path[-2:-1] == ("search",)


def _prefix(entry: Node) -> str:
    """Return the prefix of the ids of an entry of `sources`, "" for none."""
    return entry.text("prefix") if isinstance(entry, Table) else ""


# ------------------------------------------------------------------- the document


@dataclass(frozen=True, eq=False)
class Section:
    """A section of the file, or an entry of the `sources` of one.

    `whole` is the section that the entry is one of, else the section itself.
    `source_path` and `source` are the hospital system that it reads.
    """

    path: KeyPath
    kind: ResourceType
    mark: Mark
    data: Table
    whole: Table
    source_path: KeyPath
    source: Table

    @property
    def is_http(self) -> bool:
        """Whether its rows come from an HTTP API: it has no SELECTs then."""
        return self.source.text("kind") == "http"

    @property
    def is_entry(self) -> bool:
        """Whether it is one of several of its resource type."""
        return self.whole is not self.data

    @property
    def prefix(self) -> str:
        """The prefix of its ids in those that clients see."""
        return self.data.text("prefix")

    @property
    def search(self) -> Table:
        """How an HTTP API searches, by parameter."""
        return self.data.table("search")

    @property
    def fields(self) -> Table:
        """The file's entries for its slots."""
        return self.data.table("fields")

    @cached_property
    def items(self) -> tuple["Item", ...]:
        """Every item of its list slots."""
        return tuple(
            Item(
                self,
                listed,
                path=(*self.path, "fields", listed.name, index),
                options=options,
            )
            for listed in LISTS[self.kind]
            for index, options in enumerate(self.fields.tables(listed.name))
        )

    @cached_property
    def sites(self) -> tuple["Site", ...]:
        """Every value of its fields, those of items last."""
        sites = _sites(self, SLOTS[self.kind], (*self.path, "fields"), self.fields)
        return (*sites, *(site for item in self.items for site in item.sites))

    @cached_property
    def lacks(self) -> frozenset[str]:
        """The parameters and sort keys for which it has no field at all."""
        mapped = {site.full_name for site in self.sites}
        parameters = SEARCH_PARAMETERS[self.kind].items()
        compared = {name: row.slots for name, row in parameters}
        compared |= {key: (slot,) for key, slot in SORTS[self.kind].items()}
        return frozenset(
            name for name, slots in compared.items() if mapped.isdisjoint(slots)
        )

    def offered(self, part: str) -> tuple[str, ...]:
        """Return the parameters (`search`) or sort keys (`sort`) that it offers.

        An entry without a list of its own has that of the whole section.
        """
        if self.is_http and part == "sort":
            # Both directions have a word there.
            by = self.data.table("sort").table("by")
            return tuple(word for word in by if not word.startswith("-"))
        holder = self.data if part in self.data else self.whole
        # A database has a list of words, an HTTP API a table of its searches.
        words = (*holder.texts(part), *holder.table(part))
        # A custom adapter maps no fields.
        if is_own(self.source.text("kind")):
            return words
        return tuple(word for word in words if word not in self.lacks)


class Item(NamedTuple):
    """One item of a list slot."""

    section: Section
    listed: ListSlot
    path: KeyPath
    options: Table

    @property
    def sites(self) -> tuple["Site", ...]:
        """Its values, the lines of an address last."""
        section, listed, path, options = self
        lines = options.get(LINES.name)
        sites = [*_sites(section, listed.slots, path, options, self)]
        for n, line in enumerate(lines if isinstance(lines, Items) else ()):
            where = (*path, LINES.name, n)
            sites.append(
                Site(
                    section,
                    LINES,
                    path=where,
                    mark=line.mark,
                    options=_options(line),
                    item=self,
                )
            )
        return tuple(sites)


class Site(NamedTuple):
    """One value of a section: its slot, its path, and its options; a constant is one.

    `mark` is the place of its key.
    """

    section: Section
    slot: Slot
    path: KeyPath
    mark: Mark
    options: Table
    item: Item | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the value comes from, none for a constant."""
        return self.options.texts("from")

    @property
    def full_name(self) -> str:
        """The name of the slot, after that of its list when it is in one."""
        name = self.slot.name
        return f"{self.item.listed.name}.{name}" if self.item else name

    @property
    def zone_name(self) -> str:
        """The zone of the value or its source, "" where only the file has one."""
        return self.options.text("time_zone") or self.section.source.text("time_zone")


def _sites(
    section: Section,
    slots: Iterable[Slot],
    path: KeyPath,
    values: Table,
    item: Item | None = None,
) -> Iterator[Site]:
    """Yield the value of each slot that a table of the file has."""
    for slot in slots:
        if (node := values.get(slot.name)) is not None:
            where = (*path, slot.name)
            mark = values.key_marks[slot.name]
            yield Site(
                section, slot, path=where, mark=mark, options=_options(node), item=item
            )


def _options(value: Node) -> Table:
    """Return the options of a value; a constant has the option `value`."""
    return value if isinstance(value, Table) else Table(value.mark, {"value": value})


@dataclass(frozen=True)
class Document:
    """The nodes of a file of the right shape; `values` are those of variables."""

    root: Table
    read: ReadFile = from_disk
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def profile_directory(self) -> Path:
        """The file that names the profile: its path is relative to it."""
        return Path(place(self.root, ("profile",)).file).parent

    @property
    def is_own(self) -> bool:
        """Whether records come from a class of the hospital's own: no field is mapped then."""
        return is_own(self.root.table("source").text("kind"))

    @cached_property
    def sources(self) -> Mapping[KeyPath, Table]:
        """The hospital systems by path."""
        if "sources" not in self.root:
            return {("source",): self.root.table("source")}
        sources = self.root.table("sources")
        return {("sources", name): sources.table(name) for name in sources}

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The sections in the order of the resource types."""
        sections = []
        for key, kind in SECTIONS.items():
            if key not in self.root:
                continue
            whole = self.root.table(key)
            mark = self.root.key_marks[key]
            if "sources" not in whole:
                sections.append(self._section((key,), kind, mark, whole, whole))
            for n, entry in enumerate(whole.tables("sources")):
                path = (key, "sources", n)
                sections.append(self._section(path, kind, entry.mark, entry, whole))
        return tuple(sections)

    def _section(
        self, path: KeyPath, kind: ResourceType, mark: Mark, data: Table, whole: Table
    ) -> Section:
        """Return a section, with the source that it names or else the first one."""
        source = next(iter(self.sources))
        if "source" in data:
            source = ("sources", data.text("source"))
        # A rule reports a name that is none of the sources.
        system = self.sources.get(source, Table(mark))
        return Section(path, kind, mark, data, whole, source_path=source, source=system)

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

    @cached_property
    def codes(self) -> Mapping[str, CodeTable]:
        """The code tables by name."""
        tables = self.root.table("codes")
        codes = {
            name: CodeTable(
                name=name,
                table=MappingProxyType(tables.table(name).table("table").all_texts()),
                otherwise=tables.table(name).text("otherwise") or None,
                mark=tables.key_marks[name],
            )
            for name in tables
        }
        return MappingProxyType(codes)

    def targets(self, site: Site) -> list[Section]:
        """Return the sections that a reference may lead to: all, or those that it names.

        It names a source, or the prefix of one of its tables.
        """
        named = site.options.text("source")
        return [
            section
            for section in self.sections_of(REFERS[site.slot.name])
            if named in ("", section.source_path[-1], section.prefix)
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


def resolved(node: Node | None, values: Mapping[str, str]) -> str:
    """Return a text, or the value of the variable where the file has {env: NAME}."""
    if isinstance(node, Table):
        return values.get(node.text("env"), "")
    return str(node) if isinstance(node, Scalar) else ""


def variable(name: str, environ: Mapping[str, str]) -> str:
    """Return the value of a variable, or what the file holds that NAME_FILE names.

    It is "" when neither is set. Line ends around it are those of a file, and no part of
    it. Raises VariableError when both are set, or the file cannot be read.
    """
    text = environ.get(name, "")
    path = environ.get(f"{name}_FILE", "")
    if text and path:
        raise VariableError(f"{name} and {name}_FILE are both set")
    if path:
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, ValueError):
            raise VariableError(f"{name}_FILE is not a readable file") from None
    return text.strip("\r\n")


def variables_in(root: Table) -> Iterator[str]:
    """Yield the environment variables that a file names."""
    return (name for _, name in named(root))


def named(table: Table, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield each environment variable that a table of the file names, and where."""
    if set(table) == {"env"} and isinstance(table["env"], Scalar):
        yield (*path, "env"), table.text("env")
        return
    for key, below in table.items():
        if isinstance(below, Table):
            yield from named(below, (*path, key))
