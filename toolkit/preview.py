"""`encounters mapping preview`: a row, its resource, and where each element comes from.

With `--redact` what identifies a person is masked: in the cells, in the resource, and in
every line. The row itself is mapped as it is, so its faults stay.
"""

import os
from pathlib import Path

import orjson

from adapters.contract import GoneError, NotFoundError, ResourceType
from adapters.mapping.slots import SECTIONS
from adapters.mapping.yaml import Table, parse_file
from app.console import FINDINGS, FINE, CannotRunError, print_json
from toolkit.console import MappingFile
from toolkit.rows import read_row
from toolkit.source_rows import SourceReader, SourceRow
from toolkit.trial import PERSONAL, TriedRow


def run(
    *,
    file: Path,
    row: Path | None,
    id: str,
    of: str,
    source: str,
    redact: bool,
    as_json: bool,
) -> int:
    """Preview one row and return the exit status: 1 for a row that is a fault."""
    mapping = MappingFile.open(file, None if row else os.environ)
    kind = SECTIONS[of]
    source_row = (
        _written(mapping, kind, row, source) if row else _live(mapping, kind, id)
    )
    tried = TriedRow.of(mapping, source_row, PERSONAL if redact else frozenset())
    if as_json:
        print_json(tried.as_json())
    else:
        if resource := tried.resource:
            print(orjson.dumps(resource, option=orjson.OPT_INDENT_2).decode() + "\n")
        print(*tried.as_text(), sep="\n")
    return FINDINGS if tried.faults else FINE


def _written(
    file: MappingFile, kind: ResourceType, path: Path, source: str
) -> SourceRow:
    """Return the row that a file holds."""
    root = parse_file(path)
    cells = {k: v for k, v in root.items() if k != "given_items"}
    written = Table(root.mark, cells, root.key_marks)
    items = root.get("given_items")
    return read_row(file, file.section(kind, source), written, items)


def _live(file: MappingFile, kind: ResourceType, id: str) -> SourceRow:
    """Return the row that the source holds."""
    try:
        with SourceReader(file) as reader:
            return reader.row(kind, id)
    except (NotFoundError, GoneError) as error:
        raise CannotRunError(f"the source has no such {kind.lower()}") from error
