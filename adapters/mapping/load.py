"""Loads a mapping file: returns a SourceMapping, or raises what is wrong with the file.

`document` reads the file with those that it extends, `schema` checks the shape, `rules`
what the keys say about each other: each stage raises all that it finds. A document
without problems is then turned into the typed values of `model`, by `build`.

What returns the bytes of a file is an argument: the service reads a mapping, the files
that it extends and its profile once, and keeps them (`app.server.reload`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from adapters.mapping.build import Builder
from adapters.mapping.document import (
    Document,
    VariableError,
    named,
    read_layers,
    variable,
)
from adapters.mapping.model import ReadFile, SourceMapping, from_disk
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import profile_of
from adapters.mapping.rules import RULES
from adapters.mapping.schema import Fault, find_faults, problem_of


def load_mapping(
    path: str | Path,
    environ: Mapping[str, str] | None,
    read: ReadFile = from_disk,
) -> SourceMapping:
    """Return the mapping of a file; `environ` resolves {env: NAME}, by NAME_FILE too.

    Without `environ` the file is read by itself: {env: NAME} is a placeholder. An
    adapter opens with it and states its capabilities; no address leads anywhere.
    `read` reads the file and those that it names.

    Raises MappingError with all problems of one stage, in the order of the file.
    """
    path = Path(path)
    mapping = _load(path, read, environ)
    changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return replace(mapping, changed=changed.date())


def load_draft(
    path: Path, text: str, environ: Mapping[str, str] | None
) -> SourceMapping:
    """Return the mapping of a file as if it held `text`; as `load_mapping`.

    Files that it extends or names are read from the disk.
    """

    def read(file: Path) -> bytes:
        return text.encode("utf-8") if file == path else file.read_bytes()

    mapping = _load(path, read, environ)
    profile_of(mapping)
    return mapping


def _load(
    path: Path, read: ReadFile, environ: Mapping[str, str] | None
) -> SourceMapping:
    """Return the mapping of a file; what keys mean is examined once all have the right shape."""
    root = read_layers(path, read)
    document = Document(root, read)
    faults = find_faults(root, "File")
    if not faults:
        values, unset = _variables(document, environ)
        document = replace(document, values=values)
        faults = (*unset, *(fault for rule in RULES for fault in rule(document)))
    if faults:
        raise MappingError(problem_of(root, fault) for fault in faults)
    return Builder(document).mapping()


def _variables(
    doc: Document, environ: Mapping[str, str] | None
) -> tuple[Mapping[str, str], Sequence[Fault]]:
    """Return the values of variables, and the faults of those that have none.

    Without `environ` each value is an address that is valid and leads nowhere.
    """
    values: dict[str, str] = {}
    faults = []
    for source_path, source in doc.sources.items():
        for path, name in named(source, source_path):
            if environ is None:
                is_database = source.text("kind") != "http" and path[-2] == "url"
                # RFC 2606: no host has this name.
                nowhere = "https://placeholder.invalid"
                values[name] = "sqlite://" if is_database else nowhere
            elif name not in values:
                try:
                    values[name] = variable(name, environ)
                except VariableError as error:
                    faults.append(Fault(path, str(error)))
                    continue
            if not values[name]:
                faults.append(
                    Fault(path, f"the environment variable {name} is not set")
                )
    return values, faults
