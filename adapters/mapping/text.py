"""YAML as texts: every scalar stays what was written, and knows its line and column.

Plain YAML would turn the unit 0123 into 83 and the code NO into false. Here `~` and
`null` are texts as well; a key with nothing behind it holds the empty text, which the
schema refuses. Anchors, aliases and tags are refused: no mapping needs them, and they
are how a small file becomes a large one.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from adapters.mapping.decoding import decoded, mark_at, refusal
from adapters.mapping.kept import Reader, from_disk
from adapters.mapping.model import Mark
from adapters.mapping.nodes import Items, Node, Scalar, Table
from adapters.mapping.problems import MappingError, MappingProblem
from adapters.mapping.yaml_faults import explained

MAX_DEPTH = 20

_Quick = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""libyaml: thirteen times as fast, where PyYAML was built with it."""

_LENIENT = re.compile(r"\t|[|>][-+\d]*#")
"""What libyaml takes though YAML does not: tabs, a comment right behind `|`."""

_TYPOGRAPHIC = tuple("“”„‘’")
"""Quotes as word processors write them: YAML takes them for letters."""


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
        text = "is a directory: name a file in it"
        raise refusal(Mark(file, 1, 1), text) from error
    except OSError as error:
        text = f"cannot be read: {error.strerror or 'no such file'}"
        raise refusal(Mark(file, 1, 1), text) from error
    return _parsed(data, file)


def read_text(data: bytes | str, file: str) -> Table:
    """Return the nodes of a YAML text; `file` is its name in the marks."""
    root, problems = _parsed(data, file)
    if problems:
        raise MappingError(problems)
    return root


def _parsed(data: bytes | str, file: str) -> tuple[Table, tuple[MappingProblem, ...]]:
    text = decoded(data, file)
    try:
        composer = _Composer(file, text, _events(text))
        root = composer.document()
    except yaml.reader.ReaderError as error:
        mark = mark_at(file, text, error.position)
        refused = (
            f"the character U+{ord(text[error.position]):04X} is not allowed in YAML"
        )
        raise refusal(mark, refused) from error
    except yaml.MarkedYAMLError as error:
        mark, words = explained(error, text)
        raise refusal(_mark(file, mark), words) from error
    return root, tuple(composer.problems)


def _events(text: str) -> Iterator[Any]:
    """Return the parser's events, from libyaml where it tells the same as PyYAML.

    libyaml takes what YAML refuses, puts a text that is missing elsewhere, has words of
    its own for what it refuses, and takes its time where nesting goes on and on; all of
    that is read the slow way.
    """
    if not _LENIENT.search(text):
        with suppress(yaml.YAMLError, _UnlikeError):
            return iter(list(_alike(yaml.parse(text, Loader=_Quick))))
    return yaml.parse(text, Loader=yaml.BaseLoader)


class _UnlikeError(Exception):
    """What libyaml tells is not what PyYAML would."""


def _alike(events: Iterable[Any]) -> Iterator[Any]:
    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        is_text = isinstance(event, yaml.ScalarEvent)
        if depth > MAX_DEPTH or (is_text and not event.value and not event.style):
            raise _UnlikeError
        yield event


class _Composer:
    """Builds nodes from parser events; collects what can be passed over."""

    def __init__(self, file: str, text: str, events: Iterator[Any]) -> None:
        self.file = file
        self.lines = text.splitlines()
        self.events = events
        self.problems: list[MappingProblem] = []

    def document(self) -> Table:
        next(self.events)  # the start of the stream
        if isinstance(next(self.events), yaml.StreamEndEvent):
            raise refusal(Mark(self.file, 1, 1), "the file is empty")
        root = self.node(next(self.events), 0)
        next(self.events)  # the end of the document
        after = next(self.events)
        if isinstance(after, yaml.DocumentStartEvent):
            self.refuse(after, "a second document ('---'): one file is one document")
            raise MappingError(self.problems)
        if not isinstance(root, Table):
            raise refusal(root.mark, "the file must hold keys and values (key: value)")
        return root

    def node(self, event: Any, depth: int) -> Node:
        mark = _mark(self.file, event.start_mark)
        if depth > MAX_DEPTH:
            raise refusal(mark, f"nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.AliasEvent):
            self.refuse(
                event, f"'*{event.anchor}': write the value out; aliases are refused"
            )
            return Scalar(mark, f"*{event.anchor}")
        if event.anchor is not None:
            self.refuse(event, f"'&{event.anchor}': anchors are not part of the format")
        if event.tag not in (None, "!"):
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.refuse(event, f"'{tag}': tags are not part of the format; quote texts")
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event, mark)
        if isinstance(event, yaml.SequenceStartEvent):
            return Items(mark, tuple(self.items(depth)))
        return self.table(mark, depth)

    def scalar(self, event: Any, mark: Mark) -> Scalar:
        """Return a text; one that editors or comments have spoilt is refused."""
        behind = "".join(self.lines[mark.line - 1 : mark.line])[mark.column - 1 :]
        if not event.style and event.value[:1] in _TYPOGRAPHIC:
            self.refuse(event, f"'{event.value[0]}' is no quote here: write '…'")
        elif not event.style and not event.value and behind.lstrip()[:1] == "#":
            self.refuse(event, "nothing but a comment: quote a text that holds '#'")
        return Scalar(mark, event.value, self.begin(event, mark))

    def begin(self, event: Any, mark: Mark) -> Mark | None:
        """Return where the characters of a text begin, if each line of it is one here."""
        if event.style == "|":
            below = self.lines[mark.line : event.end_mark.line]
            first = next((line for line in below if line.strip()), "")
            column = len(first) - len(first.lstrip()) + 1
            return Mark(self.file, mark.line + 1, column)
        if event.start_mark.line != event.end_mark.line:
            return None
        quote = 1 if event.style else 0
        return Mark(self.file, mark.line, mark.column + quote)

    def items(self, depth: int) -> Iterator[Node]:
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            yield self.node(event, depth + 1)

    def table(self, mark: Mark, depth: int) -> Table:
        entries: dict[str, Node] = {}
        keys: dict[str, Mark] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.node(event, depth + 1)
            value = self.node(next(self.events), depth + 1)
            if not isinstance(key, Scalar):
                self.refuse(event, "a key must be a text; quote '{' and '[' in texts")
            elif key.text in keys:
                first = keys[key.text].line
                text = (
                    f"the key '{key.text}' is here twice; the first is on line {first}"
                )
                self.refuse(event, text)
            else:
                entries[key.text], keys[key.text] = value, key.mark
        return Table(mark, MappingProxyType(entries), MappingProxyType(keys))

    def refuse(self, event: Any, text: str) -> None:
        self.problems.append(
            MappingProblem(_mark(self.file, event.start_mark), "", text)
        )


def _mark(file: str, mark: Any) -> Mark:
    return Mark(file, mark.line + 1, mark.column + 1)
