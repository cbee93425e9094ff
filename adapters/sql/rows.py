"""One row of a database, read by its id."""

from adapters.contract import NotFoundError, ResourceType
from adapters.mapping.model import SourceMapping
from adapters.rows import SourceRow
from adapters.sql.conditions import NEVER
from adapters.sql.database import Database
from adapters.sql.section import open_section
from adapters.sql.statements import Shape


def find_sql_row(
    mapping: SourceMapping, resource_type: ResourceType, id: str
) -> SourceRow:
    """Read the row of one resource, hidden and removed ones too.

    Raises NotFoundError, SourceUnavailableError, SourceDataError.
    """
    source = mapping.source
    database = Database(source.url, source.timeout_seconds, 1)
    try:
        section = open_section(database, mapping, resource_type)
        wanted = section.filters.of_id(id)
        if wanted is NEVER:
            raise NotFoundError(resource_type)
        rows = section.mapping.rows
        shape = Shape(rows, section.selected, wanted.condition, limited=True)
        found = database.fetch(shape, wanted.values, 1)
        if not found:
            raise NotFoundError(resource_type)
        (items,) = section.extras(database, found)
    finally:
        database.close()
    return SourceRow(section.mapping, section.selected, tuple(found[0]), items)
