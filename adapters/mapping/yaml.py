"""YAML as texts: every scalar stays what was written, and knows its line and column.

Plain YAML would turn the unit 0123 into 83 and the code NO into false. Here `~` and
`null` are texts as well; a key with nothing behind it holds the empty text, which the
schema refuses. Anchors, aliases and tags are refused: no mapping needs them, and they
are how a small file becomes a large one. What the parser refuses is put in plain words,
at the place to mend.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import yaml

from adapters.mapping.model import Mark, Reader, from_disk
from adapters.mapping.problems import MappingError, MappingProblem

MAX_BYTES = 512 * 1024
MAX_DEPTH = 20

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""What the first two bytes are in what Windows calls Unicode."""

_Quick = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""libyaml: thirteen times as fast, where PyYAML was built with it."""

_LENIENT = re.compile(r"\t|[|>][-+\d]*#")
"""What libyaml takes though YAML does not: tabs, a comment right behind `|`."""

_TYPOGRAPHIC = tuple("“”„‘’")
"""Quotes as word processors write them: YAML takes them for letters."""


# --------------------------------------------------------------------------- nodes

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


# --------------------------------------------------------------------------- reading


def is_there(path: Path, read: Reader) -> bool:
    """Tell whether there is a file to be read."""
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
        try:
            loader = yaml.BaseLoader if _LENIENT.search(text) else _Quick
            root = _composed(text, file, loader)
        except yaml.YAMLError:
            # libyaml has other words, and other places, for what it refuses.
            root = _composed(text, file, yaml.BaseLoader)
    except yaml.reader.ReaderError as error:
        sign = f"U+{ord(text[error.position]):04X}"
        mark = _mark_at(file, text, error.position)
        raise _refusal(mark, f"the character {sign} is not allowed in YAML") from error
    except yaml.MarkedYAMLError as error:
        place_of_fault, words = explained(error, text)
        raise _refusal(_mark(file, place_of_fault), words) from error
    if root is None:
        raise _refusal(Mark(file, 1, 1), "the file is empty")
    builder = _Builder(file, text)
    table = builder.node(root)
    if not isinstance(table, Table):
        text = "the file must hold keys and values (key: value)"
        raise _refusal(table.mark, text)
    return table, tuple(builder.problems)


def _decoded(data: bytes | str, file: str) -> str:
    """Return the text of a file, which is UTF-8 and no larger than a person writes."""
    if len(data) > MAX_BYTES:
        raise _refusal(Mark(file, 1, 1), f"larger than {MAX_BYTES // 1024} KiB")
    if isinstance(data, str):
        return data
    if data.startswith(_UTF_16):
        text = "this file is written in UTF-16 ('Unicode'); save it as UTF-8"
        raise _refusal(Mark(file, 1, 1), text)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        byte = f"0x{data[error.start]:02X}"
        text = f"the byte {byte} is not UTF-8; save the file as UTF-8"
        raise _refusal(_mark_at(file, before, len(before)), text) from error


def _composed(text: str, file: str, loader: Any) -> yaml.Node | None:
    """Return PyYAML's nodes of a text that is one document, without tags and anchors."""
    refused: list[MappingProblem] = []
    depth = documents = 0
    for event in yaml.parse(text, Loader=loader):
        mark = _mark(file, event.start_mark)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if depth > MAX_DEPTH:
            raise _refusal(mark, f"nested more than {MAX_DEPTH} levels deep")
        if documents > 1:
            words = "a second document ('---'): one file is one document"
            raise _refusal(mark, words)
        if words := _not_of_the_format(event):
            refused.append(MappingProblem(mark, "", words))
    if refused:
        raise MappingError(refused)
    root: yaml.Node | None = yaml.compose(text, Loader=loader)
    return root


def _not_of_the_format(event: Any) -> str:
    """Return why an event is refused, "" for one that is part of the format."""
    if isinstance(event, yaml.AliasEvent):
        return f"'*{event.anchor}': write the value out; aliases are refused"
    if getattr(event, "anchor", None) is not None:
        return f"'&{event.anchor}': anchors are not part of the format"
    if getattr(event, "tag", None) not in (None, "!"):
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


class _Builder:
    """Builds our nodes from PyYAML's; collects what can be passed over."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.lines = text.splitlines()
        self.problems: list[MappingProblem] = []

    def node(self, node: yaml.Node) -> Node:
        mark = _mark(self.file, node.start_mark)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, mark)
        if isinstance(node, yaml.SequenceNode):
            return Items(mark, tuple(map(self.node, node.value)))
        return self.table(node, mark)

    def scalar(self, node: yaml.ScalarNode, mark: Mark) -> Scalar:
        """Return a text; one that editors or comments have spoilt is refused."""
        behind = "".join(self.lines[mark.line - 1 : mark.line])[mark.column - 1 :]
        if not node.style and node.value[:1] in _TYPOGRAPHIC:
            self.refuse(mark, f"'{node.value[0]}' is no quote here: write '…'")
        elif not node.style and not node.value and behind.lstrip()[:1] == "#":
            self.refuse(mark, "nothing but a comment: quote a text that holds '#'")
        return Scalar(mark, node.value, self.begin(node, mark))

    def begin(self, node: yaml.ScalarNode, mark: Mark) -> Mark | None:
        """Return where the characters of a text begin, if each line of it is one here."""
        if node.style == "|":
            below = self.lines[mark.line : node.end_mark.line]
            first = next((line for line in below if line.strip()), "")
            return Mark(self.file, mark.line + 1, _indent(first) + 1)
        if node.start_mark.line != node.end_mark.line:
            return None
        return Mark(self.file, mark.line, mark.column + bool(node.style))

    def table(self, node: yaml.Node, mark: Mark) -> Table:
        entries: dict[str, Node] = {}
        keys: dict[str, Mark] = {}
        for key, value in node.value:
            at, built = _mark(self.file, key.start_mark), self.node(value)
            if isinstance(value, yaml.ScalarNode) and not (value.value or value.style):
                # libyaml puts a text that is missing where the next one begins.
                end = _mark(self.file, key.end_mark)
                built = self.scalar(value, replace(end, column=end.column + 1))
            if not isinstance(key, yaml.ScalarNode):
                self.refuse(at, "a key must be a text; quote '{' and '[' in texts")
            elif key.value in keys:
                first = keys[key.value].line
                text = (
                    f"the key '{key.value}' is here twice; the first is on line {first}"
                )
                self.refuse(at, text)
            else:
                entries[key.value], keys[key.value] = built, at
        return Table(mark, MappingProxyType(entries), MappingProxyType(keys))

    def refuse(self, mark: Mark, text: str) -> None:
        self.problems.append(MappingProblem(mark, "", text))


# ------------------------------------------------------------------- what YAML refuses


class _Fault(NamedTuple):
    """A fault of the parser by how its problem and its context begin.

    `at_start` places it where the thing that is at fault starts: the parser often
    finds out a line later, or at the end of the file.
    """

    problem: str
    context: str
    words: str
    at_start: bool = False


_QUOTE = "a quote is never closed"
_COLON = "a ':' is not expected here: quote the text, or check the indentation above"
_NO_COLON = "a key without ':', or a text that needs quotes"
_MISPLACED = "indented like nothing above it: line it up with what it belongs to"
_TOO_MANY = "does not belong to what stands before it: a bracket, quote or ',' too many"
_SIGN = "a text cannot begin with this sign: quote it"

_FAULTS = (
    _Fault("found character '\\t'", "", "a tab: indent with blanks"),
    _Fault("found character", "", _SIGN),
    _Fault("mapping values are not allowed", "", _COLON),
    _Fault("could not find expected ':'", "", _NO_COLON, at_start=True),
    _Fault("found unexpected", "while scanning a quoted", _QUOTE, at_start=True),
    _Fault(
        "expected ',' or",
        "while parsing a flow",
        "this bracket is never closed, or a ',' is missing between what it holds",
        at_start=True,
    ),
    _Fault("expected <block end>", "", _MISPLACED),
    _Fault("expected the node content", "", "a value is missing here, or needs quotes"),
    _Fault(
        "sequence entries are not allowed",
        "",
        "a '-' is not expected here: quote the text, or check the indentation",
    ),
    _Fault("mapping keys are not allowed", "", _SIGN),
    _Fault(
        "",
        "while scanning a block scalar",
        "after '|' or '>' the text begins on the next line",
    ),
    _Fault(
        "",
        "while scanning a double-quoted",
        "a '\\' means something else in double quotes: use single quotes",
    ),
    *(
        _Fault("", f"while {context}", _SIGN, at_start=True)
        for context in (
            *("scanning an alias", "scanning an anchor", "scanning a directive"),
            *("scanning a tag", "parsing a tag", "parsing a node"),
        )
    ),
    _Fault(
        "expected '<document start>'",
        "",
        "does not belong to what stands above: check the indentation and the brackets",
    ),
    _Fault("", "", "not readable as YAML from here on"),
)


def explained(error: yaml.MarkedYAMLError, text: str = "") -> tuple[Any, str]:
    """Return the place to mend, as the parser counts (from 0), and what is wrong there.

    `text` is what was parsed: the lines above often tell more than the parser does.
    """
    problem, context = error.problem or "", error.context or ""
    fault = next(
        fault
        for fault in _FAULTS
        if problem.startswith(fault.problem) and context.startswith(fault.context)
    )
    mark: Any = error.problem_mark or error.context_mark
    mark = (error.context_mark or mark) if fault.at_start else mark
    lines = text.splitlines()[: mark.line + 1]
    above = [n for n, line in enumerate(lines[:-1]) if line.split("#")[0].strip()]
    if not above or len(lines) <= mark.line:
        return mark, fault.words
    return _by_indentation(mark, fault.words, lines, above)


class _Place(NamedTuple):
    """A line and a column, from 0."""

    line: int
    column: int


def _by_indentation(
    mark: Any, words: str, lines: list[str], above: list[int]
) -> tuple[Any, str]:
    """Return place and words again; `above` are the numbers of the lines before it."""
    line, last = lines[mark.line], lines[above[-1]].rstrip()
    before = _indent(lines[above[-2]]) if len(above) > 1 else -1
    deeper = _indent(line) > _indent(last)
    if words == _MISPLACED and mark.column > _indent(line):
        return mark, _TOO_MANY
    if words == _NO_COLON and last.endswith(("|", ">", "|-", ">-")):
        return mark, f"indent this text: it belongs to '{last.strip()}' above"
    if words == _MISPLACED and deeper and before == _indent(line):
        return _Place(above[-1], _indent(last)), _MISPLACED
    first = line.find(":") == mark.column and not last.endswith(":")
    if words == _COLON and deeper and first:
        return _Place(mark.line, _indent(line)), _MISPLACED
    return mark, words


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
