"""Identifiers of examples in mapping files: no client may get them."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from adapters.mapping.document import read_layers
from adapters.mapping.model import Mark, ReadFile, from_disk
from adapters.mapping.yaml import Items, Node, Scalar, Table

_EXAMPLE = re.compile(
    r"""(?:\A|['"])
    (?:https?://(?:[\w-]+\.)*example\.(?:org|com|net)\b|urn:oid:1\.2\.250\.1\.999\b)""",
    re.VERBOSE,
)
"""An identifier of an example at the start of a value, or after a quotation mark in a SELECT.

Other texts may mention such a system.
"""

_SHOWN = 10


def example_lines(path: Path, read: ReadFile = from_disk) -> Iterator[tuple[Mark, str]]:
    """Yield for each file of a mapping its first identifier of examples, and all their lines.

    Values that another file replaces do not count. Raises MappingError for files that cannot
    be read.
    """
    marks = sorted(_marks(read_layers(path, read)), key=lambda m: (m.file, m.line))
    by_file: dict[str, dict[int, Mark]] = {}
    for mark in marks:
        by_file.setdefault(mark.file, {}).setdefault(mark.line, mark)
    for marks_by_line in by_file.values():
        first_mark = next(iter(marks_by_line.values()))
        yield first_mark, lines_of(list(marks_by_line))


def lines_of(numbers: Sequence[int]) -> str:
    """Return the numbers of lines in words, up to ten of them."""
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    if len(numbers) > _SHOWN:
        shown += ", …"
    return f"lines {shown}" if len(numbers) > 1 else f"line {shown}"


def _marks(node: Node) -> Iterator[Mark]:
    """Yield the place of each identifier of examples in a node."""
    match node:
        case Scalar():
            for match in _EXAMPLE.finditer(node):
                yield node.at(match.start())
        case Table():
            for key, below in node.items():
                # A code of the source may be a system.
                if _EXAMPLE.match(key):
                    yield node.key_marks[key]
                yield from _marks(below)
        case Items():
            for below in node:
                yield from _marks(below)
