"""A mapping file that is read by itself, with the places of what it says."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from adapters.contract import ResourceType
from adapters.mapping.checks import is_own
from adapters.mapping.elements import SECTIONS
from adapters.mapping.layers import read_layers
from adapters.mapping.load import load_mapping
from adapters.mapping.model import Mark, ResourceMapping, SourceMapping
from adapters.mapping.nodes import Items, KeyPath, Node, Scalar, Table, find, place
from adapters.mapping.problems import MappingError, MappingProblem, did_you_mean
from adapters.mapping.profile import profile_of

_OWN = (
    "a class of your own makes the resources: the file names no fields, and no row can be"
    " tried here; its author tests it (docs/own-adapter.md)"
)


class NoSectionError(Exception):
    """There is no such section; the text says which there are."""


@dataclass(frozen=True, slots=True)
class MappingFile:
    """A mapping and its nodes."""

    mapping: SourceMapping
    root: Table

    @classmethod
    def open(cls, path: Path, environ: Mapping[str, str] | None = None) -> Self:
        """Read a file, without its environment if none is given.

        Raises MappingError, also where a class of the hospital's own reads the rows.
        """
        mapping = load_mapping(path, environ)
        if is_own(mapping.source.kind):
            raise MappingError([MappingProblem(mapping.source.mark, "source", _OWN)])
        root, _ = read_layers(path)
        return cls(mapping, root)

    def sections(self, kind: ResourceType) -> tuple[ResourceMapping, ...]:
        """Return the sections of a resource type, one for each source."""
        return tuple(s for s in self.mapping.sections if s.resource_type is kind)

    def names(self, section: ResourceMapping) -> tuple[str, ...]:
        """Return what a section of several is called: its prefix, and its source."""
        named = [section.fields["id"].prefix]
        for part in self.mapping.parts:
            if part.section is section:
                named.append(part.name)
        return tuple(dict.fromkeys(filter(None, named)))

    def section(self, kind: ResourceType, source: str = "") -> ResourceMapping:
        """Return the one section of a type, or that of the source; raises NoSectionError."""
        there = self.sections(kind)
        key = kind.lower()
        if not there:
            raise NoSectionError(f"the mapping has no section '{key}'")
        found = [s for s in there if not source or source in self.names(s)]
        if len(found) == 1:
            return found[0]
        names = list(dict.fromkeys(n for s in there for n in self.names(s)))
        if not names:
            raise NoSectionError(f"'{key}' has one source: leave 'source' out")
        if source and not found:
            near = did_you_mean(source, names) or f": use {', '.join(names)}"
            raise NoSectionError(f"'{key}' has no source '{source}'{near}")
        raise NoSectionError(f"'{key}' has several sources: say {_choice(names)}")

    def source_of(self, section: ResourceMapping) -> SourceMapping:
        """Return the mapping of the source that a section reads."""
        for part in self.mapping.parts:
            if part.section is section:
                return part.mapping
        return self.mapping

    def of_source(self, section: ResourceMapping) -> str:
        """Return which one of several sections it is, in words, "" for the only one."""
        several = len(self.sections(section.resource_type)) > 1
        return f" of {self.names(section)[0]}" if several else ""

    def offered(self, kind: ResourceType) -> Collection[str]:
        """Return the search parameters that the profile has for a resource type."""
        mapping = self.mapping
        profile = profile_of(mapping)
        found = profile.resources.get(kind)
        return found.parameters if found else ()

    def code_mark(self, table: str, code: str | None) -> Mark:
        """Return the place of an entry of a code table; None is for `otherwise`."""
        path: KeyPath = ("codes", table, "otherwise")
        if code is not None:
            path = ("codes", table, "table", code)
        return place(self.root, path, at_key=True)

    def listed_mark(self, section: ResourceMapping, key: str, word: str) -> Mark:
        """Return the place of a word under `search` or `sort` of a section, or of all."""
        own = self._path(section)
        for path in dict.fromkeys((own, own[:1])):
            mark = _mark_of(find(self.root, (*path, key)), word)
            if mark is not None:
                return mark
        return section.mark

    def _path(self, section: ResourceMapping) -> KeyPath:
        return next(
            (p for p in _paths(self.root) if place(self.root, p, True) == section.mark),
            (section.resource_type.lower(),),
        )


def _choice(names: list[str]) -> str:
    return f"source: {' or '.join(names)}"


def _paths(root: Table) -> Iterator[KeyPath]:
    for key in SECTIONS:
        sources = find(root, (key, "sources"))
        if isinstance(sources, Items):
            yield from ((key, "sources", at) for at in range(len(sources.items)))
        else:
            yield (key,)


def _mark_of(node: Node | None, word: str) -> Mark | None:
    if isinstance(node, Items):
        texts = (item for item in node.items if isinstance(item, Scalar))
        return next((item.mark for item in texts if item.text == word), None)
    if isinstance(node, Table):
        return node.keys.get(word)
    return None
