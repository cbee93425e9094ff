"""YAML as texts: every scalar stays what was written, and knows its line and column.

Plain YAML would turn the unit 0123 into 83 and the code NO into false. Here `~` and
`null` are texts as well; a key with nothing behind it holds the empty text, which the
schema refuses. Anchors, aliases and tags are refused: no mapping needs them, and they
are how a small file becomes a large one. The first thing that is refused ends the reading.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import yaml

from adapters.mapping.model import Mark, Reader, from_disk
from adapters.mapping.problems import MappingError, MappingProblem

MAX_DEPTH = 20


# --------------------------------------------------------------------------- nodes

KeyPath: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text; `begins` is the place of its first character, None where lines are joined."""

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
    """Keys and values; `keys` holds the place of each key."""

    mark: Mark
    entries: Mapping[str, "Node"]
    keys: Mapping[str, Mark]


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
        node = _child(node, step)
    return node


def place(root: Node, path: KeyPath, at_key: bool = False) -> Mark:
    """Return the place of the path's value, or of its key.

    What is not there is placed at the key that should have held it.
    """
    node, key = root, root.mark
    for step in path:
        child = _child(node, step)
        if child is None:
            return key
        key = node.keys[str(step)] if isinstance(node, Table) else child.mark
        node = child
    return key if at_key else node.mark


def _child(node: Node | None, step: str | int) -> Node | None:
    if isinstance(node, Table):
        return node.entries.get(str(step))
    if isinstance(node, Items) and isinstance(step, int) and step < len(node.items):
        return node.items[step]
    return None


# --------------------------------------------------------------------------- reading


def is_there(path: Path, read: Reader) -> bool:
    """Return whether there is a file to be read."""
    try:
        read(path)
    except OSError:
        return False
    return True


def parse_file(path: str | Path, read: Reader = from_disk) -> Table:
    """Return the nodes of a YAML file; raises MappingError for what is refused first."""
    file = str(path)
    try:
        data = read(Path(path))
    except OSError as error:
        text = f"cannot be read: {error.strerror or 'no such file'}"
        raise _refusal(Mark(file, 1, 1), text) from error
    return read_text(data, file)


def read_text(data: bytes | str, file: str) -> Table:
    """Return the nodes of a YAML text; `file` is its name in the marks."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
        depth = 0
        for event in yaml.parse(text, Loader=yaml.CBaseLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if fault := _not_of_the_format(event, depth):
                raise _refusal(_mark(file, event.start_mark), fault)
        document = yaml.compose(text, Loader=yaml.CBaseLoader)
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8-sig", errors="replace")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        fault = "not UTF-8 from here on; save the file as UTF-8"
        raise _refusal(Mark(file, line, column), fault) from error
    except yaml.MarkedYAMLError as error:
        fault = f"not readable as YAML: {error.problem}"
        if error.context and error.context_mark:
            begun = f"{error.context} (line {error.context_mark.line + 1})"
            fault = f"not readable as YAML: {begun}: {error.problem}"
        mark = _mark(file, error.problem_mark or error.context_mark)
        raise _refusal(mark, fault) from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        fault = "not readable as YAML: a character is not allowed"
        raise _refusal(Mark(file, 1, 1), fault) from error
    if not isinstance(document, yaml.MappingNode):
        fault = "the file must hold keys and values (key: value)"
        mark = _mark(file, document.start_mark) if document else Mark(file, 1, 1)
        raise _refusal(mark, fault)
    return _table(document, file, text.splitlines())


def _not_of_the_format(event: Any, depth: int) -> str:
    """Return why an event is refused, "" for one that is part of the format."""
    if depth > MAX_DEPTH:
        return f"nested more than {MAX_DEPTH} levels deep"
    if isinstance(event, yaml.AliasEvent):
        return f"'*{event.anchor}': write the value out; aliases are refused"
    if getattr(event, "anchor", None) is not None:
        return f"'&{event.anchor}': anchors are not part of the format"
    if getattr(event, "tag", None) not in (None, "!"):
        return "tags are not part of the format; quote texts"
    return ""


def _refusal(mark: Mark, text: str) -> MappingError:
    """Return the error of a file that cannot be read any further."""
    return MappingError([MappingProblem(mark, "", text)])


def _mark(file: str, mark: Any) -> Mark:
    return Mark(file, mark.line + 1, mark.column + 1)


def _node(node: yaml.Node, file: str, lines: Sequence[str]) -> Node:
    """Return what a node of YAML is here."""
    mark = _mark(file, node.start_mark)
    if isinstance(node, yaml.ScalarNode):
        return Scalar(mark, node.value, _begin(node, mark, lines))
    if isinstance(node, yaml.SequenceNode):
        return Items(mark, tuple(_node(item, file, lines) for item in node.value))
    assert isinstance(node, yaml.MappingNode), "there is no other"
    return _table(node, file, lines)


def _table(node: yaml.MappingNode, file: str, lines: Sequence[str]) -> Table:
    entries: dict[str, Node] = {}
    keys: dict[str, Mark] = {}
    for key, value in node.value:
        mark = _mark(file, key.start_mark)
        if not isinstance(key, yaml.ScalarNode):
            fault = "a key must be a text; quote '{' and '[' in texts"
            raise _refusal(mark, fault)
        if key.value in keys:
            fault = f"the key '{key.value}' is on line {keys[key.value].line} too"
            raise _refusal(mark, fault)
        entries[key.value], keys[key.value] = _node(value, file, lines), mark
    place = _mark(file, node.start_mark)
    return Table(place, MappingProxyType(entries), MappingProxyType(keys))


def _begin(node: yaml.ScalarNode, mark: Mark, lines: Sequence[str]) -> Mark | None:
    """Return where the characters of a text begin, if each line of it is one here."""
    if node.style == "|":
        below = lines[mark.line : node.end_mark.line]
        first = next((line for line in below if line.strip()), "")
        indent = len(first) - len(first.lstrip(" "))
        return Mark(mark.file, mark.line + 1, indent + 1)
    if node.start_mark.line != node.end_mark.line:
        return None
    return Mark(mark.file, mark.line, mark.column + bool(node.style))
