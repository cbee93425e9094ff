"""What the tools for mapping files share: output, and a file with its places."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from adapters.contract import ResourceType
from adapters.mapping.document import read_layers
from adapters.mapping.load import load_mapping
from adapters.mapping.model import Mark, ResourceMapping, SourceMapping, is_own
from adapters.mapping.problems import MappingError, MappingProblem, did_you_mean
from adapters.mapping.yaml import Table, place
from app.console import CannotRunError

QUESTION = "# ? "
"""Stands before a question of `mapping new`."""

NO_COLUMN = f"{QUESTION}no column yet: "
"""Begins the line of a first mapping that lists the fields without a column."""

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]*")


class NoSectionError(CannotRunError):
    """There is no such section; the text says which there are."""


def write_text(path: Path, text: str) -> None:
    """Write a file and the directories above it. Raises CannotRunError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise CannotRunError(f"{path} cannot be written: {error.strerror}") from error


def yaml_text(text: str) -> str:
    """Return a text as a mapping file writes it, in quotes where it needs them."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def show_progress(text: str) -> None:
    """Show what is being done in place of the line before, to a person who waits."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


_CUSTOM = (
    "a custom adapter builds the resources, so the file has no fields and no row can be"
    " tried here. Test the adapter itself (docs/change/own-adapter.md)"
)


@dataclass(frozen=True, slots=True)
class MappingFile:
    """A mapping, and the YAML nodes of its file."""

    mapping: SourceMapping
    root: Table

    @classmethod
    def open(cls, path: Path, environ: Mapping[str, str] | None = None) -> Self:
        """Read a file, without its environment if none is given.

        Raises MappingError, also where a custom adapter reads the rows.
        """
        mapping = load_mapping(path, environ)
        if is_own(mapping.source.kind):
            mark = mapping.source.mark
            raise MappingError([MappingProblem(mark, "source", _CUSTOM)])
        return cls.of(mapping)

    @classmethod
    def of(cls, mapping: SourceMapping) -> Self:
        """Return a mapping with the nodes of its file."""
        return cls(mapping, read_layers(mapping.file, mapping.read))

    def sections(self, kind: ResourceType) -> tuple[ResourceMapping, ...]:
        """Return the sections of a resource type, one for each source."""
        return tuple(s for s in self.mapping.sections if s.resource_type is kind)

    def names(self, section: ResourceMapping) -> tuple[str, ...]:
        """Return the names of a section by which a user may choose it: its prefix, its source."""
        sources = [p.name for p in self.mapping.parts if p.section is section]
        names = (section.fields["id"].prefix, *sources)
        return tuple(dict.fromkeys(filter(None, names)))

    def section(self, kind: ResourceType, source: str = "") -> ResourceMapping:
        """Return the section of a type, or that of a source where there are several.

        Raises NoSectionError for a type without a section, and for no, or no such, source.
        """
        sections, key = self.sections(kind), kind.lower()
        if not sections:
            raise NoSectionError(f"the mapping has no section '{key}'")
        named = [s for s in sections if not source or source in self.names(s)]
        if len(named) == 1:
            return named[0]
        names = list(dict.fromkeys(n for s in sections for n in self.names(s)))
        if not names:
            raise NoSectionError(f"'{key}' has one source: remove 'source'")
        if source and not named:
            near = did_you_mean(source, names) or f": use {', '.join(names)}"
            raise NoSectionError(f"'{key}' has no source '{source}'{near}")
        choice = f"source: {' or '.join(names)}"
        raise NoSectionError(f"'{key}' has several sources: use {choice}")

    def source_of(self, section: ResourceMapping) -> SourceMapping:
        """Return the mapping of the source that a section reads."""
        parts = (p.mapping for p in self.mapping.parts if p.section is section)
        return next(parts, self.mapping)

    def of_source(self, section: ResourceMapping) -> str:
        """Return the words " of NAME" for one of several sections of a type, else ""."""
        if len(self.sections(section.resource_type)) < 2:
            return ""
        return f" of {self.names(section)[0]}"

    def code_mark(self, table: str, code: str | None) -> Mark:
        """Return the place of an entry of a code table; None is for `otherwise`."""
        entry = ("otherwise",) if code is None else ("table", code)
        return place(self.root, ("codes", table, *entry), at_key=True)


def marked_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line with an open question."""
    for number, line in enumerate(text.splitlines(), 1):
        if QUESTION in f"{line} ":
            yield number, line
