"""A mapping file → SourceMapping, or every problem of the file at once."""

from collections.abc import Mapping
from pathlib import Path

from adapters.mapping.build import build_mapping
from adapters.mapping.document import open_document
from adapters.mapping.model import SourceMapping
from adapters.mapping.problems import MappingError, MappingProblem
from adapters.mapping.rules import RULES
from adapters.mapping.text import Scalar, Table, place, read_file

VERSION = "1"
"""The version of the format that this service reads."""


def load_mapping(path: str | Path, environ: Mapping[str, str] | None) -> SourceMapping:
    """Return the mapping that a file says; `environ` resolves {env: NAME}.

    Without `environ` the file is read by itself: what {env: NAME} stands for is "".

    Raises MappingError whose `problems` are all that a person has to mend, in the order
    of the file.
    """
    root = read_file(path)
    _check_version(root)
    document, faults = open_document(root, environ)
    problems = [*faults, *(p for rule in RULES for p in rule(document))]
    if problems:
        raise MappingError(problems)
    return build_mapping(document)


def _check_version(root: Table) -> None:
    """Refuse another version before anything else: its keys may mean other things."""
    version = root.entries.get("mapping")
    if not isinstance(version, Scalar) or version.text == VERSION:
        return
    text = f"version '{version.text}' of the format is not known: this service reads {VERSION}"
    raise MappingError([MappingProblem(place(root, ("mapping",)), "mapping", text)])
