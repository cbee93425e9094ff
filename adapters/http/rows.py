"""One row of an HTTP API, asked for by its id."""

from adapters.contract import NotFoundError, ResourceType, SourceDataError
from adapters.http.answers import at
from adapters.http.calls import read_call
from adapters.http.section import open_section
from adapters.http.source import Source
from adapters.mapping.checks import FHIR_ID
from adapters.mapping.items import own_columns
from adapters.mapping.model import SourceMapping
from adapters.rows import SourceRow


def find_http_row(
    mapping: SourceMapping, resource_type: ResourceType, id: str
) -> SourceRow:
    """Ask for the row of one resource.

    Raises NotFoundError, GoneError, SourceUnavailableError, SourceDataError.
    """
    if not FHIR_ID.fullmatch(id) or not id.strip("."):
        # Dots alone would be another place on the server.
        raise NotFoundError(resource_type)
    section = open_section(mapping, resource_type)
    read, source = section.http.read, Source(mapping.source)
    prefix = len(section.mapping.fields["id"].prefix)
    try:
        answer = source.ask(
            read_call(read, id[prefix:]), mapping.source.timeout_seconds
        )
    finally:
        source.close()
    row = at(answer, read.row)
    if row is None:
        raise NotFoundError(resource_type)
    if not isinstance(row, dict):
        raise SourceDataError("the row is not keys and values")
    cells, items = section.cells(row)
    return SourceRow(section.mapping, own_columns(section.mapping), cells, items)
