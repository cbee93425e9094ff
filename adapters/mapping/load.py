"""A mapping file → SourceMapping, or every problem of the file at once."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from marshmallow import ValidationError

from adapters.mapping.build import build_mapping
from adapters.mapping.document import Document
from adapters.mapping.faults import readable
from adapters.mapping.kept import (
    SUFFIX,
    Reader,
    Recorder,
    from_disk,
    open_kept,
    write_kept,
)
from adapters.mapping.layers import read_layers
from adapters.mapping.model import Mark, SourceMapping
from adapters.mapping.nodes import Items, KeyPath, Node, Table, plain
from adapters.mapping.problems import MappingError, MappingProblem
from adapters.mapping.profile import is_profile, profile_of
from adapters.mapping.rules import RULES
from adapters.mapping.schema import MappingShape
from adapters.mapping.shapes import KeyFault


class ProfileGivenError(MappingError):
    """A profile was given where a mapping file is wanted."""


def load_mapping(path: str | Path, environ: Mapping[str, str] | None) -> SourceMapping:
    """Return the mapping that a file says; `environ` resolves {env: NAME}.

    Without `environ` the file is read by itself: what {env: NAME} stands for is "".

    Raises MappingError whose `problems` are all that a person has to mend, in the order
    of the file.
    """
    path = Path(path)
    if path.suffix == SUFFIX:
        resolved = None if environ is None else frozenset(environ.items())
        return _load_kept(path.read_bytes(), resolved)
    return _load(path, from_disk, environ)


@lru_cache(maxsize=1)
def _load_kept(
    held: bytes, environ: frozenset[tuple[str, str]] | None
) -> SourceMapping:
    # What is kept does not change: processes that are forked from one that has read it
    # need not read it again.
    return _load(*open_kept(held), None if environ is None else dict(environ))


def keep_mapping(path: Path, environ: Mapping[str, str], place: Path) -> SourceMapping:
    """Keep a mapping and its profile at `place`, to be loaded from there, and return it.

    Raises MappingError for one that has problems.
    """
    read = Recorder()
    mapping = _load(path, read, environ)
    profile_of(mapping)
    write_kept(place, path, read.files)
    return mapping


def _load(path: Path, read: Reader, environ: Mapping[str, str] | None) -> SourceMapping:
    root, refused = read_layers(path, read)
    if is_profile(root):
        text = "this is a profile, not a mapping file: a mapping file names it (profile: …)"
        raise ProfileGivenError([MappingProblem(root.keys["profile"], "", text)])
    told = {problem.mark for problem in refused}
    document, faults = _opened(root, environ, _paths_at(root, told))
    document = replace(document, read=read)
    problems = [*refused, *(fault for fault in faults if fault.mark not in told)]
    problems += [p for rule in RULES for p in rule(document) if p.mark not in told]
    if problems:
        raise MappingError(problems)
    return build_mapping(document)


def _opened(
    root: Table,
    environ: Mapping[str, str] | None,
    unread: Iterable[KeyPath] = (),
) -> tuple[Document, tuple[MappingProblem, ...]]:
    """Return the document and the problems of its shape.

    `unread` are the paths of what has been refused before.
    """
    file = root.mark.file
    try:
        data = MappingShape().load(plain(root))
    except ValidationError as error:
        faults = readable(error)
        shaped = error.valid_data if isinstance(error.valid_data, dict) else {}
        meant = ((*path[:-1], getattr(text, "meant", "")) for path, text in faults)
        refused = frozenset([*(path for path, _ in faults), *meant, *unread])
        document = Document(file, root, shaped, environ, refused)
        return document, tuple(
            document.problem(path, text, isinstance(text, KeyFault))
            for path, text in faults
        )
    return Document(file, root, data, environ, frozenset(unread)), ()


def _paths_at(root: Node, marks: Collection[Mark]) -> Iterator[KeyPath]:
    """Yield the path of each node that stands at one of these places."""
    below: Iterable[tuple[str | int, Node]] = ()
    match root:
        case Table():
            below = root.entries.items()
        case Items():
            below = enumerate(root.items)
    for step, node in below:
        if node.mark in marks:
            yield (step,)
        yield from ((step, *path) for path in _paths_at(node, marks))
