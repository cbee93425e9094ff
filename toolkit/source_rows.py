"""Rows as their source has them: the one reader of all tools.

The adapters read rows as they do for a search. What a row becomes is `toolkit.trial`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from adapters.contract import (
    Capabilities,
    NotFoundError,
    Page,
    ResourceType,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    SourcePage,
)
from adapters.mapping.model import ItemMapping, ResourceMapping, SourceMapping
from adapters.mapping.row_mapper import own_columns
from toolkit.checks.rows import SAMPLE, SMALL_SAMPLE


@runtime_checkable
class RowReader(Protocol):
    """An adapter that returns rows as its source has them, besides their records."""

    @property
    def capabilities(self) -> Capabilities:
        """What each resource type that the source holds can do."""

    def search(self, query: SearchQuery) -> Page:
        """Return a page of a search."""

    def search_rows(self, query: SearchQuery) -> SourcePage:
        """Return a page of a search and its cells."""


def all_pages(reader: RowReader, kind: ResourceType) -> Iterator[SourcePage]:
    """Yield all that searches find, page by page; no page is held after it.

    Rows are in the order of their ids where the source has that order. Raises
    SourceDataError where it has no further pages, and SourceUnavailableError.
    """
    able = reader.capabilities[kind]
    sorts = (SortKey.ID, *able.sorts) if able.keyset else able.sorts
    is_by_id = SortKey.ID in sorts or not sorts
    size = SAMPLE if able.keyset else SMALL_SAMPLE
    sort = Sort(SortKey.ID if is_by_id else sorts[0])
    query = SearchQuery(kind, (), sort, size)
    while True:
        rows = reader.search_rows(query)
        if rows.page.rows:
            yield rows
        if not rows.page.more:
            return
        if rows.page.last is None:
            text = f"the source has no page after the first {len(rows.cells):,} rows"
            raise SourceDataError(text)
        query = replace(query, after=rows.page.last)


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
    (row,) = find_rows(mapping, resource_type, [id])
    return row


def find_rows(
    mapping: SourceMapping, resource_type: ResourceType, ids: Sequence[str]
) -> list[SourceRow]:
    """Read the rows of resources, in the order of their ids, over one connection a source.

    Raises what `find_row` raises.
    """
    owners = [_owner(mapping, resource_type, text) for text in ids]
    rows: dict[str, SourceRow] = {}
    for owner in {id(each): each for each in owners}.values():
        own = [text for text, each in zip(ids, owners, strict=True) if each is owner]
        rows |= zip(own, _rows_of(owner, resource_type, own), strict=True)
    return [rows[text] for text in ids]


def _owner(mapping: SourceMapping, kind: ResourceType, id: str) -> SourceMapping:
    """Return the mapping of the source that has an id. Raises NotFoundError."""
    if kind in mapping.resources:
        return mapping
    for part in mapping.parts:
        if part.kind is kind and id.startswith(part.section.fields["id"].prefix):
            return part.mapping
    raise NotFoundError(kind)


def _rows_of(
    mapping: SourceMapping, kind: ResourceType, ids: Sequence[str]
) -> list[SourceRow]:
    # Imported here, so that a database needs no HTTP library, and the other way round.
    section = mapping.resources[kind]
    if section.http is not None:
        from adapters.http.adapter import HttpAdapter

        with closing(HttpAdapter(mapping)) as api:
            columns, cells = own_columns(section), api.section(kind).cells
            return [
                SourceRow(section, columns, *cells(api.read_row(kind, id)))
                for id in ids
            ]
    if not section.rows:
        raise SourceDataError("a source of this kind does not show its rows")
    from adapters.sql.adapter import SqlAdapter

    with closing(SqlAdapter(mapping)) as database:
        opened = database.section(kind)
        rows = [opened.read(database.database, id) for id in ids]
        items = opened.extras(database.database, rows)
    return [
        SourceRow(section, opened.selected, tuple(row), of_row)
        for row, of_row in zip(rows, items, strict=True)
    ]
