"""The nodes of a YAML file: texts, lists and tables, each with its line and column."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from adapters.mapping.model import Mark

KeyPath: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text; `begins` is where its first character stands, None where lines are joined."""

    mark: Mark
    text: str
    begins: Mark | None = None

    def at(self, offset: int) -> Mark:
        """Return the place of one of the characters."""
        if self.begins is None:
            return self.mark
        before = self.text[:offset]
        column = self.begins.column + offset - (before.rfind("\n") + 1)
        return Mark(self.mark.file, self.begins.line + before.count("\n"), column)


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    mark: Mark
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Keys and values; `keys` holds the place of each key.

    `taken` holds where a key is taken away that the file below had.
    """

    mark: Mark
    entries: Mapping[str, "Node"]
    keys: Mapping[str, Mark]
    taken: Mapping[str, Mark] = field(default_factory=dict)


Node: TypeAlias = Scalar | Items | Table


def plain(node: Node) -> Any:
    """Return the node as dict, list and str, for a schema to load."""
    match node:
        case Scalar():
            return node.text
        case Items():
            return [plain(item) for item in node.items]
        case Table():
            return {key: plain(value) for key, value in node.entries.items()}


def find(root: Node, path: KeyPath) -> Node | None:
    """Return the node at the end of the path, None when there is none."""
    node: Node | None = root
    for step in path:
        node = _child(node, step) if node else None
    return node


def place(root: Node, path: KeyPath, at_key: bool = False) -> Mark:
    """Return the place of the path's value, or of its key.

    What is not there is placed at the key that should have held it.
    """
    node, key = root, root.mark
    for step in path:
        child = _child(node, step)
        if child is None:
            return node.taken.get(str(step), key) if isinstance(node, Table) else key
        key = node.keys[step] if isinstance(node, Table) else child.mark  # type: ignore[index]
        node = child
    return key if at_key else node.mark


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(node, Table):
        return node.entries.get(str(step))
    if isinstance(node, Items) and isinstance(step, int) and step < len(node.items):
        return node.items[step]
    return None
