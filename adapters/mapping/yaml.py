"""YAML as texts: every scalar stays what was written, and knows its line and column.

Plain YAML would turn the unit 0123 into 83 and the code NO into false. Here `~` and
`null` are texts as well; a key with nothing behind it holds the empty text, which the
schema refuses. Anchors, aliases and tags are refused: no mapping needs them, and they
are how a small file becomes a large one. The first thing that is refused ends the reading.

Nodes are str, list and dict with their place, so that jsonschema reads them as they are.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TypeAlias

import yaml

from adapters.mapping.model import Mark, ReadFile, from_disk
from adapters.mapping.problems import MappingError, MappingProblem

MAX_DEPTH = 20


# --------------------------------------------------------------------------- nodes

KeyPath: TypeAlias = tuple[str | int, ...]


class Scalar(str):
    """A text; `begins` is the place of its first character, None where lines are joined."""

    __slots__ = ("begins", "mark")

    mark: Mark
    begins: Mark | None

    def __new__(cls, text: str, mark: Mark, begins: Mark | None = None) -> Self:
        """Return the text with its place."""
        scalar = super().__new__(cls, text)
        scalar.mark = mark
        scalar.begins = begins
        return scalar

    def at(self, offset: int) -> Mark:
        """Return the place of one of the characters."""
        if self.begins is None:
            return self.mark
        before = self[:offset]
        column = self.begins.column + offset - (before.rfind("\n") + 1)
        return Mark(self.mark.file, self.begins.line + before.count("\n"), column)


class Items(list["Node"]):
    """A list."""

    __slots__ = ("mark",)

    def __init__(self, mark: Mark, items: Iterable["Node"] = ()) -> None:
        super().__init__(items)
        self.mark = mark


class Table(dict[str, "Node"]):
    """Keys and values; `key_marks` holds the place of each key.

    What it returns by type is what a file of the right shape holds there.
    """

    __slots__ = ("key_marks", "mark")

    def __init__(
        self,
        mark: Mark,
        entries: Mapping[str, "Node"] | None = None,
        key_marks: Mapping[str, Mark] | None = None,
    ) -> None:
        super().__init__(entries or {})
        self.mark = mark
        self.key_marks = key_marks or {}

    def text(self, key: str, default: str = "") -> str:
        """Return the text of a key, `default` where there is none."""
        node = self.get(key)
        return str(node) if isinstance(node, Scalar) else default

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the texts of a list; a text alone is a list of one."""
        node = self.get(key)
        nodes = node if isinstance(node, Items) else (node,)
        return tuple(str(item) for item in nodes if isinstance(item, Scalar))

    def table(self, key: str) -> "Table":
        """Return the table of a key, an empty one where there is none."""
        node = self.get(key)
        return node if isinstance(node, Table) else Table(self.mark)

    def tables(self, key: str) -> tuple["Table", ...]:
        """Return the tables of a list."""
        node = self.get(key)
        nodes = node if isinstance(node, Items) else ()
        return tuple(item for item in nodes if isinstance(item, Table))

    def all_texts(self) -> dict[str, str]:
        """Return every text by its key."""
        return {
            key: str(node) for key, node in self.items() if isinstance(node, Scalar)
        }


Node: TypeAlias = Scalar | Items | Table


def find(root: Node, path: KeyPath) -> Node | None:
    """Return the node at the end of a path, None if there is none."""
    node: Node | None = root
    for step in path:
        node = _child(node, step)
    return node


def place(root: Node, path: KeyPath, at_key: bool = False) -> Mark:
    """Return the place of the value at a path, or of its key.

    If there is no value, it is the place of the nearest key above it.
    """
    node = root
    key_mark = root.mark
    for step in path:
        child = _child(node, step)
        if child is None:
            return key_mark
        key_mark = node.key_marks[str(step)] if isinstance(node, Table) else child.mark
        node = child
    return key_mark if at_key else node.mark


def _child(node: Node | None, step: str | int) -> Node | None:
    """Return the value of a key or the item at an index, None if there is none."""
    if isinstance(node, Table):
        return node.get(str(step))
    if isinstance(node, Items) and isinstance(step, int) and step < len(node):
        return node[step]
    return None


# --------------------------------------------------------------------------- reading


def is_there(path: Path, read: ReadFile) -> bool:
    """Return whether there is a file to be read."""
    try:
        read(path)
    except OSError:
        return False
    return True


def parse_file(path: str | Path, read: ReadFile = from_disk) -> Table:
    """Return the nodes of a YAML file; raises MappingError with the first thing refused."""
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
        return _Composer(text, file).document()
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


class _Composer:
    """Makes nodes of the events of a YAML text."""

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._lines = text.splitlines()
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.CBaseLoader)

    def document(self) -> Table:
        """Return the one document of the text."""
        next(self._events)  # The stream begins.
        mark = Mark(self._file, 1, 1)
        root: Node | None = None
        if isinstance(next(self._events), yaml.DocumentStartEvent):
            event = next(self._events)
            mark = _mark(self._file, event.start_mark)
            root = self._node(event, 1)
            next(self._events)  # The document ends.
            another = next(self._events)
            if isinstance(another, yaml.DocumentStartEvent):
                fault = "a second document begins here ('---'); only one is allowed"
                raise _refusal(_mark(self._file, another.start_mark), fault)
        if not isinstance(root, Table):
            fault = "the file must contain keys and values (key: value)"
            raise _refusal(mark, fault)
        return root

    def _node(self, event: Any, depth: int) -> Node:
        """Return the node that begins with an event."""
        mark = _mark(self._file, event.start_mark)
        if fault := _not_of_the_format(event, depth):
            raise _refusal(mark, fault)
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(event.value, mark, self._begin(event, mark))
        if isinstance(event, yaml.MappingStartEvent):
            return self._table(mark, depth)
        items = Items(mark)
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return items

    def _table(self, mark: Mark, depth: int) -> Table:
        entries: dict[str, Node] = {}
        marks: dict[str, Mark] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            if not isinstance(key, Scalar):
                fault = "a key must be a text; quote '{' and '[' in texts"
                raise _refusal(key.mark, fault)
            name = str(key)
            if name in marks:
                fault = f"the key '{name}' is on line {marks[name].line} too"
                raise _refusal(key.mark, fault)
            marks[name] = key.mark
            entries[name] = self._node(next(self._events), depth + 1)
        return Table(mark, entries, marks)

    def _begin(self, event: Any, mark: Mark) -> Mark | None:
        """Return where the characters of a text begin, None where lines of the file are joined."""
        if event.style == "|":
            below = self._lines[mark.line : event.end_mark.line]
            first = next((line for line in below if line.strip()), "")
            indent = len(first) - len(first.lstrip(" "))
            return Mark(mark.file, mark.line + 1, indent + 1)
        if event.start_mark.line != event.end_mark.line:
            return None
        # A quoted text begins after its quotation mark.
        width = 1 if event.style else 0
        return Mark(mark.file, mark.line, mark.column + width)


def _not_of_the_format(event: Any, depth: int) -> str:
    """Return why the first event of a node is refused, "" for one of the format."""
    if isinstance(event, yaml.AliasEvent):
        return f"'*{event.anchor}': write the value out; aliases are refused"
    if depth > MAX_DEPTH and isinstance(event, yaml.CollectionStartEvent):
        return f"nested more than {MAX_DEPTH} levels deep"
    if event.anchor is not None:
        return f"'&{event.anchor}': anchors are not part of the format"
    if event.tag not in (None, "!"):
        return "tags are not part of the format; quote texts"
    return ""


def _refusal(mark: Mark, text: str) -> MappingError:
    """Return the error of a file that cannot be read any further."""
    return MappingError([MappingProblem(mark, "", text)])


def _mark(file: str, mark: Any) -> Mark:
    return Mark(file, mark.line + 1, mark.column + 1)
