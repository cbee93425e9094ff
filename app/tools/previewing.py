"""`encounters mapping preview`: one row → the resource, and where each element is from."""

import argparse
import os
import re
import secrets
import sys
from collections.abc import Collection
from pathlib import Path

from adapters.contract import (
    AdapterError,
    GoneError,
    NotFoundError,
    ResourceType,
    SourceUnavailableError,
)
from adapters.mapping.elements import SECTIONS
from adapters.mapping.model import ResourceMapping
from adapters.mapping.nodes import Table
from adapters.mapping.problems import MappingError
from adapters.mapping.text import parse_file
from adapters.rows import SourceRow, find_row
from app.tools.given import read_row
from app.tools.previewed import Preview
from app.tools.redacting import redacted
from app.tools.report import FINDINGS, FINE, CannotRunError, print_json
from app.tools.sections import MappingFile, NoSectionError

KEY = "ENCOUNTERS_REDACT_KEY"
_SHORTEST_KEY = 16
_NO_KEY = (
    f"{KEY} is not set: the stand-ins are of this run alone. Set it to a secret of at "
    "least 16 characters, and equal values have equal stand-ins every time."
)
_USAGE = (
    "--live takes --id, which row, as clients see its id; --source is for --row, since "
    "such an id tells its source"
)


def run(options: argparse.Namespace) -> int:
    """Preview one row and return the exit status: 1 for a row that is a fault."""
    kind = SECTIONS[options.of]
    if options.live is not bool(options.id) or (options.live and options.source):
        raise CannotRunError(_USAGE)
    file, row = _live(options, kind) if options.live else _written(options, kind)
    if options.redact:
        row = redacted(row, _key())
    preview = Preview(file, row, is_redacted=options.redact)
    if options.json:
        print_json(preview.as_json())
    else:
        print("\n".join(preview.told()))
    return FINDINGS if preview.faults else FINE


def _written(
    options: argparse.Namespace, kind: ResourceType
) -> tuple[MappingFile, SourceRow]:
    """Return the row that a file holds."""
    try:
        file = MappingFile.open(options.file)
        root = _read(options.row)
        section = file.section(kind, options.source)
        cells = {k: v for k, v in root.entries.items() if k != "given_items"}
        given = Table(root.mark, cells, root.keys)
        return file, read_row(section, given, root.entries.get("given_items"))
    except (MappingError, NoSectionError) as error:
        raise CannotRunError(str(error)) from error


def _read(row: Path) -> Table:
    root, problems = parse_file(row)
    if problems:
        raise MappingError(problems)
    return root


def _live(
    options: argparse.Namespace, kind: ResourceType
) -> tuple[MappingFile, SourceRow]:
    """Return the row that the source holds."""
    try:
        file = MappingFile.open(options.file, os.environ)
        sections = file.sections(kind) or (file.section(kind),)
        return file, find_row(file.mapping, kind, options.id)
    except (MappingError, NoSectionError) as error:
        raise CannotRunError(str(error)) from error
    except (NotFoundError, GoneError) as error:
        why = _why_not_there(sections, options.id)
        raise CannotRunError(f"the source has no such {options.of}{why}") from error
    except SourceUnavailableError as error:
        raise CannotRunError(f"the source does not answer: {error}") from error
    except AdapterError as error:
        raise CannotRunError(f"the source cannot be read: {error}") from error


def _why_not_there(sections: Collection[ResourceMapping], id: str) -> str:
    """Return why an id may not be found, as far as the file tells."""
    prefixes = sorted({section.fields["id"].prefix for section in sections} - {""})
    if prefixes and not id.startswith(tuple(prefixes)):
        return f": its ids begin with {' or '.join(prefixes)}"
    own = (s for s in sections if id.startswith(s.fields["id"].prefix))
    has_where = any(re.search(r"\bWHERE\b", s.rows, re.IGNORECASE) for s in own)
    return ", or the WHERE of its rows leaves it out" if has_where else ""


def _key() -> bytes:
    key = os.environ.get(KEY, "")
    if not key:
        print(_NO_KEY, file=sys.stderr)
        return secrets.token_bytes(32)
    if len(key) < _SHORTEST_KEY:
        raise CannotRunError(f"{KEY} is shorter than {_SHORTEST_KEY} characters")
    return key.encode()
