"""`encounters mapping preview`: a written row, its resource, and where each element comes from.

With `--redact` what identifies a person is masked in the cells, in the resource, and in every
line. The row is mapped before, so its faults are the same.
"""

from pathlib import Path

import orjson

from adapters.mapping.slots import SECTIONS
from adapters.mapping.yaml import Table, parse_file
from app.console import FINDINGS, FINE
from toolkit.console import MappingFile
from toolkit.tried_row import PERSONAL, TriedRow
from toolkit.written_rows import read_row


def run(*, file: Path, row: Path, of: str, source: str, redact: bool) -> int:
    """Preview one row and return the exit status: 1 for an invalid row."""
    mapping, root = MappingFile.open(file), parse_file(row)
    columns = {key: node for key, node in root.items() if key != "given_items"}
    written = Table(root.mark, columns, root.key_marks)
    section = mapping.section(SECTIONS[of], source)
    source_row = read_row(mapping, section, written, root.get("given_items"))
    tried = TriedRow.of(mapping, source_row, PERSONAL if redact else frozenset())
    if resource := tried.resource:
        print(orjson.dumps(resource, option=orjson.OPT_INDENT_2).decode() + "\n")
    print(*tried.as_text(), sep="\n")
    return FINDINGS if tried.faults else FINE
