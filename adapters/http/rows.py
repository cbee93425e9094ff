"""One row of an HTTP API, asked for by its id."""

from adapters.contract import NotFoundError, ResourceType, SourceDataError
from adapters.http.answers import at
from adapters.http.calls import read_call
from adapters.http.section import JsonRow, Section, open_section
from adapters.http.source import Source
from adapters.mapping.checks import FHIR_ID
from adapters.mapping.items import own_columns
from adapters.mapping.model import SourceMapping
from adapters.rows import SourceRow


def ask_row(source: Source, section: Section, id: str, seconds: float) -> JsonRow:
    """Return the row of one resource; `id` is as clients see it.

    Raises NotFoundError, GoneError, SourceUnavailableError, SourceDataError.
    """
    kind = section.mapping.resource_type
    if not FHIR_ID.fullmatch(id):
        raise NotFoundError(kind)
    own = "".join(section.mapping.fields["id"].own([id]))
    if not own.strip("."):
        # Dots alone would be another place on the server.
        raise NotFoundError(kind)
    row = at(
        source.ask(read_call(section.http.read, own), seconds), section.http.read.row
    )
    if row is None:
        raise NotFoundError(kind)
    if not isinstance(row, dict):
        raise SourceDataError("the row is not keys and values")
    found = section.id_text(row).rstrip()
    if not found:
        raise SourceDataError("the answer is no row: it holds no id")
    if found != own:
        raise NotFoundError(kind)
    return row


def find_http_row(
    mapping: SourceMapping, resource_type: ResourceType, id: str
) -> SourceRow:
    """Ask for the row of one resource, hidden and removed ones too; raises as `ask_row`."""
    section, source = open_section(mapping, resource_type), Source(mapping.source)
    try:
        row = ask_row(source, section, id, mapping.source.timeout_seconds)
    finally:
        source.close()
    cells, items = section.cells(row)
    return SourceRow(section.mapping, own_columns(section.mapping), cells, items)
