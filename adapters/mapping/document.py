"""A mapping file between its text and its meaning: what the rules look at."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from adapters.contract import ResourceType
from adapters.mapping.checks import is_own
from adapters.mapping.elements import SECTIONS, element
from adapters.mapping.kept import Reader, from_disk
from adapters.mapping.nodes import Items, KeyPath, Node, Scalar, Table, find, place
from adapters.mapping.problems import MappingProblem
from adapters.mapping.slots import LINES, LISTS, SLOTS, ListSlot, Slot


class Site(NamedTuple):
    """One value of the file: its slot, its path, and its loaded options."""

    kind: ResourceType
    slot: Slot
    path: KeyPath
    options: Mapping[str, Any]
    listed: ListSlot | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the value comes from, none for a constant."""
        return tuple(self.options.get("columns", ()))

    @property
    def section(self) -> KeyPath:
        """The path of the section, or of the entry of one, that holds the value."""
        return self.path[: self.path.index("fields")]

    @property
    def full_name(self) -> str:
        """The name of the slot, after that of its list when it is in one."""
        name = self.slot.name
        return f"{self.listed.name}.{name}" if self.listed else name


class Item(NamedTuple):
    """One item of a list slot."""

    kind: ResourceType
    listed: ListSlot
    path: KeyPath
    options: Mapping[str, Any]

    @property
    def section(self) -> KeyPath:
        """The path of the section, or of the entry of one, that holds the item."""
        return self.path[: self.path.index("fields")]


@dataclass(frozen=True)
class Document:
    """The nodes of a file, and of `data` as much as has the right shape.

    `refused` are the paths at which something is missing or has another shape.
    """

    file: str
    root: Table
    data: Mapping[str, Any]
    environ: Mapping[str, str] | None
    refused: frozenset[KeyPath]
    read: Reader = from_disk

    def problem(
        self, path: KeyPath, text: str, at_key: bool = False, offset: int = -1
    ) -> MappingProblem:
        """Return a problem at the value of the path, one of its characters, or its key."""
        mark, node = place(self.root, path, at_key), find(self.root, path)
        if offset >= 0 and isinstance(node, Scalar):
            mark = node.at(offset)
        return MappingProblem(mark, element(path), text, self.column(path))

    def holds(self, path: KeyPath) -> bool:
        """Tell whether something stands at the path, rightly shaped or not."""
        return find(self.root, path) is not None

    @property
    def profile_directory(self) -> Path:
        """Where the file stands that names the profile: its path is seen from there."""
        return Path(place(self.root, ("profile",)).file).parent

    def is_http(self, section: Mapping[str, Any]) -> bool:
        """Whether a section's rows come from an HTTP API: it has no SELECTs then."""
        source = self.sources().get(self.source_of(section), {})
        return bool(source.get("kind") == "http")

    def http_sources(self) -> Mapping[KeyPath, Mapping[str, Any]]:
        """Return those of the hospital systems that are HTTP APIs."""
        return {p: s for p, s in self.sources().items() if s.get("kind") == "http"}

    def section(self, path: KeyPath) -> Mapping[str, Any]:
        """Return the section, or the entry of one, that stands at a path."""
        return next(data for at, _, data in self.sections() if at == path)

    @property
    def is_own(self) -> bool:
        """Whether records come from a class of the hospital's own: no field is mapped then."""
        return is_own(self.data.get("source", {}).get("kind"))

    def is_refused(self, path: KeyPath) -> bool:
        """Tell whether the schema refused something at the path or below it."""
        return any(bad[: len(path)] == path for bad in self.refused)

    def is_unclear(self, path: KeyPath) -> bool:
        """Tell whether the schema refused something at the path, below it or around it."""
        around = any(path[:length] in self.refused for length in range(1, len(path)))
        return around or self.is_refused(path)

    def texts_of(self, key: str) -> Iterator[str]:
        """Yield every text that stands behind a key inside the sections."""
        for section in SECTIONS:
            if node := self.root.entries.get(section):
                yield from _texts_of(node, key)

    def column(self, path: KeyPath) -> str:
        """Return the column that the nearest value around the path comes from."""
        if "fields" not in path:
            return ""
        for length in range(len(path), path.index("fields") + 1, -1):
            origin = find(self.root, (*path[:length], "from"))
            if origin is not None:
                return ", ".join(_texts(origin))
        return ""

    def wholes(self) -> Iterator[tuple[str, ResourceType, Mapping[str, Any]]]:
        """Yield each section of the file: its key, its resource type, its data."""
        for key, kind in SECTIONS.items():
            if key in self.data:
                yield key, kind, self.data[key]

    def sections(self) -> Iterator[tuple[KeyPath, ResourceType, Mapping[str, Any]]]:
        """Yield each section by its path; of one that has sources, each of these."""
        for key, kind, section in self.wholes():
            if "sources" not in section:
                yield (key,), kind, section
            for index, entry in enumerate(section.get("sources", ())):
                yield (key, "sources", index), kind, entry

    def sources(self) -> Mapping[KeyPath, Mapping[str, Any]]:
        """Return the hospital systems by path."""
        if "sources" not in self.data:
            return {("source",): self.data.get("source", {})}
        return {("sources", name): s for name, s in self.data["sources"].items()}

    def source_of(self, section: Mapping[str, Any]) -> KeyPath:
        """Return the path of the hospital system that a section reads."""
        if "source" in section:
            return ("sources", section["source"])
        return next(iter(self.sources()), ("source",))

    def items(self) -> Iterator[Item]:
        """Yield every item of every list slot."""
        for section, kind, data in self.sections():
            for listed in LISTS[kind]:
                found = data.get("fields", {}).get(listed.name, ())
                for index, options in enumerate(found):
                    path = (*section, "fields", listed.name, index)
                    yield Item(kind, listed, path, options)

    def sites(self) -> tuple[Site, ...]:
        """Return every value of the file, those inside items too."""
        return self._sites

    @cached_property
    def _sites(self) -> tuple[Site, ...]:
        # Each rule goes through them, some for each word that can be asked for.
        return tuple(self._found())

    def _found(self) -> Iterator[Site]:
        for section, kind, data in self.sections():
            found = data.get("fields", {})
            for slot in SLOTS[kind]:
                if slot.name in found:
                    path = (*section, "fields", slot.name)
                    yield Site(kind, slot, path, found[slot.name])
        for item in self.items():
            yield from item_sites(item)

    def codes(self) -> Mapping[str, Any]:
        """Return the code tables by name."""
        tables: Mapping[str, Any] = self.data.get("codes", {})
        return tables

    def zone_name(self, site: Site) -> str:
        """Return the zone that the source's values of a slot are read in."""
        name: str = self._own_zone(site) or self.data["time_zone"]
        return name

    def says_zone(self, site: Site) -> bool:
        """Tell whether a slot or its source says its zone, and not the file alone."""
        return bool(self._own_zone(site))

    def _own_zone(self, site: Site) -> Any:
        sections = {path: data for path, _, data in self.sections()}
        source = self.sources().get(self.source_of(sections[site.section]), {})
        return site.options.get("time_zone") or source.get("time_zone")


def item_sites(item: Item) -> Iterator[Site]:
    """Yield the values of one item, the lines of an address among them."""
    kind, listed, path, options = item
    for slot in listed.slots:
        if slot.name in options:
            yield Site(kind, slot, (*path, slot.name), options[slot.name], listed)
    for index, line in enumerate(options.get(LINES.name, ())):
        yield Site(kind, LINES, (*path, LINES.name, index), line, listed)


def _texts(node: Node) -> Iterator[str]:
    match node:
        case Scalar():
            yield node.text
        case Items():
            for item in node.items:
                yield from _texts(item)


def _texts_of(node: Node, key: str) -> Iterator[str]:
    match node:
        case Items():
            for item in node.items:
                yield from _texts_of(item, key)
        case Table():
            for name, value in node.entries.items():
                if name == key:
                    yield from _texts(value)
                yield from _texts_of(value, key)
