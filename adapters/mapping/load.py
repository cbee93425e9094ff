"""A mapping file → SourceMapping, or every problem of the file at once."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from adapters.mapping.build import build_mapping
from adapters.mapping.document import open_document
from adapters.mapping.kept import Reader, Recorder, open_files, write_kept
from adapters.mapping.layers import read_layers
from adapters.mapping.model import SourceMapping
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import profile_of
from adapters.mapping.rules import RULES


def load_mapping(path: str | Path, environ: Mapping[str, str] | None) -> SourceMapping:
    """Return the mapping that a file says; `environ` resolves {env: NAME}.

    Without `environ` the file is read by itself: what {env: NAME} stands for is "".

    Raises MappingError whose `problems` are all that a person has to mend, in the order
    of the file.
    """
    return _load(*open_files(Path(path)), environ)


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
    document, faults = open_document(root, environ)
    document = replace(document, read=read)
    told = {problem.mark for problem in refused}
    problems = [*refused, *(fault for fault in faults if fault.mark not in told)]
    problems += [p for rule in RULES for p in rule(document) if p.mark not in told]
    if problems:
        raise MappingError(problems)
    return build_mapping(document)
