"""Identifiers of examples in mapping files: no client may get them."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from adapters.mapping.document import read_layers
from adapters.mapping.model import Mark, ReadFile, from_disk
from adapters.mapping.yaml import Items, Node, Scalar, Table

_NOBODYS = re.compile(
    r"""(?:\A|['"])
    (?:https?://(?:[\w-]+\.)*example\.(?:org|com|net)\b|urn:oid:1\.2\.250\.1\.999\b)""",
    re.VERBOSE,
)
"""A value that begins so, or one that is quoted in a SELECT. A text that only tells of such a
system is none."""

_SHOWN = 10


def example_lines(path: Path, read: ReadFile = from_disk) -> Iterator[tuple[Mark, str]]:
    """Yield for each file of a mapping its first identifier of examples, and all their lines.

    What a file replaces of the one that it extends does not count. Raises MappingError for
    files that cannot be read.
    """
    by_file: dict[str, dict[int, Mark]] = {}
    for mark in sorted(
        _marks(read_layers(path, read)), key=lambda mark: (mark.file, mark.line)
    ):
        by_file.setdefault(mark.file, {}).setdefault(mark.line, mark)
    for marks in by_file.values():
        yield next(iter(marks.values())), lines_of(list(marks))


def lines_of(numbers: Sequence[int]) -> str:
    """Return the numbers of lines in words, up to ten of them."""
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    shown += ", …" if len(numbers) > _SHOWN else ""
    return f"lines {shown}" if len(numbers) > 1 else f"line {shown}"


def _marks(node: Node) -> Iterator[Mark]:
    match node:
        case Scalar():
            for match in _NOBODYS.finditer(node):
                yield node.at(match.start())
        case Table():
            for key, below in node.items():
                # A code of the source may be a system.
                if _NOBODYS.match(key):
                    yield node.key_marks[key]
                yield from _marks(below)
        case Items():
            for below in node:
                yield from _marks(below)
