"""YAML as texts: every scalar stays what was written, and knows its line and column.

Plain YAML would turn the unit 0123 into 83 and the code NO into false. Here `~` and
`null` are texts as well; a key with nothing behind it holds the empty text, which the
schema refuses. Anchors, aliases and tags are refused: no mapping needs them, and they
are how a small file becomes a large one. What the parser refuses is put in plain words,
at the place to mend.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import yaml

from adapters.mapping.model import Mark, Reader, from_disk
from adapters.mapping.problems import MappingError, MappingProblem

MAX_BYTES = 512 * 1024
MAX_DEPTH = 20

_TYPOGRAPHIC = tuple("“”„‘’")
"""Quotes as word processors write them: YAML reads them as letters."""


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


# --------------------------------------------------------------------------- reading


def is_there(path: Path, read: Reader) -> bool:
    """Return whether there is a file to be read."""
    try:
        read(path)
    except OSError:
        return False
    return True


def parse_file(
    path: str | Path, read: Reader = from_disk
) -> tuple[Table, tuple[MappingProblem, ...]]:
    """Return the nodes of a YAML file, and what is refused of it but can be passed over.

    Raises MappingError where it cannot be read any further.
    """
    file = str(path)
    try:
        data = read(Path(path))
    except IsADirectoryError as error:
        raise _refusal(Mark(file, 1, 1), "is a directory: name a file in it") from error
    except OSError as error:
        text = f"cannot be read: {error.strerror or 'no such file'}"
        raise _refusal(Mark(file, 1, 1), text) from error
    return _parsed(data, file)


def read_text(data: bytes | str, file: str) -> Table:
    """Return the nodes of a YAML text; `file` is its name in the marks."""
    root, problems = _parsed(data, file)
    if problems:
        raise MappingError(problems)
    return root


def _parsed(data: bytes | str, file: str) -> tuple[Table, tuple[MappingProblem, ...]]:
    text = _decoded(data, file)
    try:
        loader = _Loader(file, text)
        document = loader.get_single_node()
    except yaml.reader.ReaderError as error:
        sign = f"U+{ord(text[error.position]):04X}"
        mark = _mark_at(file, text, error.position)
        raise _refusal(mark, f"the character {sign} is not allowed in YAML") from error
    except yaml.MarkedYAMLError as error:
        mark, words = _explained(error)
        raise _refusal(_mark(file, mark), words) from error
    if document is None:
        raise _refusal(Mark(file, 1, 1), "the file is empty")
    root = loader.node(document)
    if not isinstance(root, Table):
        text = "the file must hold keys and values (key: value)"
        raise _refusal(root.mark, text)
    return root, tuple(loader.problems)


def _decoded(data: bytes | str, file: str) -> str:
    """Return the text of a file, which is UTF-8 and no larger than a person writes."""
    if len(data) > MAX_BYTES:
        raise _refusal(Mark(file, 1, 1), f"larger than {MAX_BYTES // 1024} KiB")
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        byte = f"0x{data[error.start]:02X}"
        text = f"the byte {byte} is not UTF-8; save the file as UTF-8"
        raise _refusal(_mark_at(file, before, len(before)), text) from error


def _not_of_the_format(event: Any) -> str:
    """Return why an event is refused, "" for one that is part of the format."""
    if isinstance(event, yaml.AliasEvent):
        return f"'*{event.anchor}': write the value out; aliases are refused"
    if event.anchor is not None:
        return f"'&{event.anchor}': anchors are not part of the format"
    if event.tag not in (None, "!"):
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        return f"'{tag}': tags are not part of the format; quote texts"
    return ""


def _refusal(mark: Mark, text: str) -> MappingError:
    """Return the error of a file that cannot be read any further."""
    return MappingError([MappingProblem(mark, "", text)])


def _mark(file: str, mark: Any) -> Mark:
    return Mark(file, mark.line + 1, mark.column + 1)


def _mark_at(file: str, text: str, position: int) -> Mark:
    """Return the place of a character of a text."""
    before = text[:position]
    return Mark(file, before.count("\n") + 1, position - before.rfind("\n"))


class _Loader(yaml.BaseLoader):
    """Composes the nodes of one document; `problems` are refused and can be passed over."""

    def __init__(self, file: str, text: str) -> None:
        super().__init__(text)
        self.file = file
        self.lines = text.splitlines()
        self.depth = 0
        self.problems: list[MappingProblem] = []

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        begin, end = event.start_mark, event.end_mark
        mark = _mark(self.file, begin)
        if words := _not_of_the_format(event):
            self.refuse(mark, words)
        if isinstance(event, yaml.AliasEvent):
            self.get_event()  # type: ignore[no-untyped-call]
            return yaml.ScalarNode("", "", begin, end)
        event.anchor = None
        if self.depth >= MAX_DEPTH and not isinstance(event, yaml.ScalarEvent):
            raise _refusal(mark, f"nested more than {MAX_DEPTH} levels deep")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def refuse(self, mark: Mark, text: str) -> None:
        self.problems.append(MappingProblem(mark, "", text))

    def node(self, node: Any) -> Node:
        """Return what a node of YAML is here."""
        mark = _mark(self.file, node.start_mark)
        if isinstance(node, yaml.ScalarNode):
            if not node.style and node.value[:1] in _TYPOGRAPHIC:
                self.refuse(mark, f"'{node.value[0]}' is no quote here: write '…'")
            return Scalar(mark, node.value, self.begin(node, mark))
        if isinstance(node, yaml.SequenceNode):
            return Items(mark, tuple(map(self.node, node.value)))
        entries: dict[str, Node] = {}
        keys: dict[str, Mark] = {}
        for key, value in node.value:
            name, below = self.node(key), self.node(value)
            if not isinstance(name, Scalar):
                words = "a key must be a text; quote '{' and '[' in texts"
                self.refuse(name.mark, words)
            elif name.text in keys:
                first = keys[name.text].line
                words = (
                    f"the key '{name.text}' is here twice; the first is on line {first}"
                )
                self.refuse(name.mark, words)
            else:
                entries[name.text], keys[name.text] = below, name.mark
        return Table(mark, MappingProxyType(entries), MappingProxyType(keys))

    def begin(self, node: Any, mark: Mark) -> Mark | None:
        """Return where the characters of a text begin, if each line of it is one here."""
        if node.style == "|":
            below = self.lines[mark.line : node.end_mark.line]
            first = next((line for line in below if line.strip()), "")
            indent = len(first) - len(first.lstrip(" "))
            return Mark(self.file, mark.line + 1, indent + 1)
        if node.start_mark.line != node.end_mark.line:
            return None
        return Mark(self.file, mark.line, mark.column + bool(node.style))


# ------------------------------------------------------------------- what YAML refuses


_NO_COLON = "a key without ':', a text that needs quotes, or one to be indented"
_QUOTE = "a quote is never closed"
_BRACKET = "this bracket is never closed, or a ',' is missing between what it holds"
_SIGN = "a text cannot begin with this sign: quote it"

_AT_START = (_NO_COLON, _QUOTE, _BRACKET, _SIGN)
"""Faults that the parser notices a line later, or at the end of the file."""

_FAULTS: Mapping[str, str] = MappingProxyType(
    {
        r": found character '\\t'": "a tab: indent with blanks",
        ": found character": _SIGN,
        ": mapping values are not allowed": "a ':' is not expected here: quote the text, "
        "or check the indentation above",
        ": could not find expected ':'": _NO_COLON,
        "while scanning a quoted.*: found unexpected": _QUOTE,
        "while parsing a flow.*: expected ',' or": _BRACKET,
        ": expected <block end>": "does not belong to what comes before it: check "
        "the indentation here and above, brackets and quotes",
        ": expected the node content": "a value is missing here, or needs quotes",
        ": sequence entries are not allowed": "a '-' is not expected here: quote the "
        "text, or check the indentation",
        ": mapping keys are not allowed": _SIGN,
        "while scanning a block scalar": "after '|' or '>' the text begins on the next "
        "line",
        "while scanning a double-quoted": "a '\\' means something else in double "
        "quotes: use single quotes",
        "while (scanning|parsing) (an alias|an anchor|a directive|a tag|a node)": _SIGN,
        "a single document": "a second document ('---'): one file is one document",
        ": expected '<document start>'": "does not belong to what is above: check "
        "the indentation and the brackets",
        "": "not readable as YAML from here on",
    }
)
"""What is wrong, by the parser's own words: its context, a colon, and its problem."""


def _explained(error: yaml.MarkedYAMLError) -> tuple[Any, str]:
    """Return the place to mend, as the parser counts (from 0), and what is wrong there."""
    message = f"{error.context or ''}: {error.problem or ''}"
    words = next(words for form, words in _FAULTS.items() if re.search(form, message))
    at_start = error.context_mark if words in _AT_START else None
    return at_start or error.problem_mark or error.context_mark, words
