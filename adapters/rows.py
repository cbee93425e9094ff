"""One row of a hospital system as it is, before anything is made of it: for previews."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from adapters.contract import NotFoundError, ResourceType, SourceDataError
from adapters.mapping.model import ItemMapping, ResourceMapping, SourceMapping


@dataclass(frozen=True, slots=True)
class SourceRow:
    """The cells of one resource: its own row, and the rows of items with own SELECTs.

    `columns` are in the order of `cells`; those of an item in that of `item_columns`.
    """

    section: ResourceMapping
    columns: tuple[str, ...]
    cells: tuple[object, ...]
    items: Mapping[ItemMapping, Sequence[Sequence[object]]] = field(
        default_factory=dict
    )


def find_row(mapping: SourceMapping, resource_type: ResourceType, id: str) -> SourceRow:
    """Read the row of one resource from its source; the connection is closed again.

    `id` is as clients see it. Raises NotFoundError, SourceUnavailableError,
    SourceDataError, and GoneError where an HTTP source says so itself.
    """
    own = _source_of(mapping, resource_type, id)
    section = own.resources[resource_type]
    # Here, so that a database needs no HTTP library, and the other way round.
    if section.http is not None:
        from adapters.http.rows import find_http_row

        return find_http_row(own, resource_type, id)
    if not section.rows:
        raise SourceDataError("a source of this kind does not show its rows")
    from adapters.sql.rows import find_sql_row

    return find_sql_row(own, resource_type, id)


def _source_of(mapping: SourceMapping, kind: ResourceType, id: str) -> SourceMapping:
    """Return the mapping of the one source that the id can be in."""
    if kind in mapping.resources:
        return mapping
    for part in mapping.parts:
        if part.kind is kind and id.startswith(part.section.fields["id"].prefix):
            return part.mapping
    raise NotFoundError(kind)
