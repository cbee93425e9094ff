"""Rows as their sources have them: the one reader of all tools.

The adapters read rows as they do for a client. A row that a person wrote is `toolkit.written_rows`,
what a row becomes `toolkit.tried_row`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, Self, TypeAlias

from adapters import open_source
from adapters.contract import (
    EncounterRecord,
    NotFoundError,
    Record,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    SourcePage,
)
from adapters.http.adapter import HttpAdapter
from adapters.mapping.model import FieldMapping, ItemMapping, ResourceMapping
from adapters.mapping.row_mapper import own_columns
from adapters.sql.adapter import SqlAdapter
from toolkit.checks.rows import API_PAGE, SAMPLE_ROWS
from toolkit.console import MappingFile, show_progress
from toolkit.findings import timed

RowReader: TypeAlias = SqlAdapter | HttpAdapter
"""An adapter that returns rows as its source has them, besides their records."""


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


class FoundRow(NamedTuple):
    """A row that a search returns, with the record or the fault that it becomes."""

    outcome: Record | RowFault
    columns: Sequence[str]
    cells: Sequence[object]

    @property
    def stay(self) -> EncounterRecord | None:
        """The stay that clients get, None where the row is invalid."""
        return self.outcome if isinstance(self.outcome, EncounterRecord) else None

    def cell(self, field: FieldMapping) -> object:
        """Return what the first column of a field holds."""
        return self.cells[self.columns.index(field.columns[0])]


class SourceReader:
    """The rows of a mapping file; its sources are open until the `with` block ends.

    A source is opened when it is first read. Methods raise AdapterError for a source that is
    away or does not fit the file.
    """

    def __init__(self, file: MappingFile) -> None:
        self.file = file
        self._adapters: dict[int, RowReader] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def adapter(self, section: ResourceMapping) -> RowReader:
        """Return the adapter of the source that a section reads."""
        mapping = self.file.source_of(section)
        if id(mapping) not in self._adapters:
            adapter = self._stack.enter_context(closing(open_source(mapping)))
            assert isinstance(adapter, RowReader), "custom adapters are refused"
            self._adapters[id(mapping)] = adapter
        return self._adapters[id(mapping)]

    def row(self, kind: ResourceType, id: str) -> SourceRow:
        """Return the row of a resource; `id` is as clients see it.

        Raises NotFoundError, and GoneError where an HTTP API says so itself.
        """
        (row,) = self.rows(kind, [id])
        return row

    def rows(self, kind: ResourceType, ids: Sequence[str]) -> list[SourceRow]:
        """Return the rows of resources, in the order of their ids; raises what `row` raises."""
        section_by_id = {id: self.section_of(kind, id) for id in ids}
        rows: dict[str, SourceRow] = {}
        for section in self.file.sections(kind):
            own_ids = [id for id in ids if section_by_id[id] is section]
            if own_ids:
                rows |= zip(own_ids, self._rows_by_id(section, own_ids), strict=True)
        return [rows[id] for id in ids]

    def section_of(self, kind: ResourceType, id: str) -> ResourceMapping:
        """Return the section whose ids begin as an id does; raises NotFoundError."""
        sections = self.file.sections(kind)
        if len(sections) == 1:
            return sections[0]
        for section in sections:
            if id.startswith(section.fields["id"].prefix):
                return section
        raise NotFoundError(kind)

    def _rows_by_id(
        self, section: ResourceMapping, ids: Sequence[str]
    ) -> list[SourceRow]:
        """Return the rows of a section with these ids, in their order."""
        adapter, kind = self.adapter(section), section.resource_type
        if isinstance(adapter, HttpAdapter):
            columns, cells_of = own_columns(section), adapter.section(kind).cells
            source_rows = []
            for id in ids:
                cells, items = cells_of(adapter.read_row(kind, id))
                source_rows.append(
                    SourceRow(section, columns, cells=cells, items=items)
                )
            return source_rows
        opened, database = adapter.section(kind), adapter.database
        rows = [opened.read(database, id) for id in ids]
        items_of_rows = opened.extras(database, rows)
        return [
            SourceRow(section, opened.selected, cells=tuple(row), items=items)
            for row, items in zip(rows, items_of_rows, strict=True)
        ]

    def columns(self, section: ResourceMapping) -> tuple[str, ...]:
        """Return the columns of a SELECT; of an API, those that the file names."""
        adapter = self.adapter(section)
        if isinstance(adapter, HttpAdapter):
            return own_columns(section)
        return tuple(column.name for column in adapter.database.columns(section.rows))

    def pages(self, section: ResourceMapping) -> Iterator[list[FoundRow]]:
        """Yield all rows of a section that searches return, page by page.

        Rows are in the order of their ids where the source has that order. Raises
        SourceDataError where the source has more rows and no further pages.
        """
        capabilities = self.adapter(section).capabilities[section.resource_type]
        sorts = capabilities.sorts
        has_order_by_id = capabilities.keyset or SortKey.ID in sorts or not sorts
        sort = Sort(SortKey.ID if has_order_by_id else sorts[0])
        query = SearchQuery(section.resource_type, (), sort, self.page_size(section))
        number = 0
        while True:
            source = self.adapter(section).search_rows(query)
            number += len(source.cells)
            if source.cells:
                show_progress(f"{section.mark.file}: {number:,} rows read …")
                yield _found(source)
            if not source.page.more:
                break
            if source.page.last is None:
                text = f"the source has no page after the first {number:,} rows"
                raise SourceDataError(text)
            query = replace(query, after=source.page.last)
        show_progress("")

    def page(
        self, section: ResourceMapping, size: int, number: int
    ) -> tuple[list[FoundRow], bool]:
        """Return a page of a section in its first order, and whether there is a next page.

        Pages count from 0. The last page is returned for a number beyond it.
        """
        adapter = self.adapter(section)
        capabilities = adapter.capabilities[section.resource_type]
        key = next(iter(capabilities.sorts), SortKey.ID)
        sort = Sort(key, descending=key is not SortKey.ID)
        query = SearchQuery(section.resource_type, (), sort, size)
        source = adapter.search_rows(query)
        pages_ahead = number
        while pages_ahead and source.page.more and source.page.last:
            query = replace(query, after=source.page.last)
            source = adapter.search_rows(query)
            pages_ahead -= 1
        return _found(source), source.page.more and bool(source.page.last)

    def timed(
        self, section: ResourceMapping, query: SearchQuery
    ) -> list[tuple[str, float]]:
        """Return the statements of a page, or its request, with their milliseconds.

        Each statement is sent, even one that a page only needs if those before do not fill it.
        """
        adapter = self.adapter(section)
        if isinstance(adapter, HttpAdapter):
            _, milliseconds = timed(lambda: adapter.search(query))
            return [(adapter.explain(query), milliseconds)]
        database = adapter.database
        sent: list[tuple[str, float]] = []
        for label, statement in adapter.statements(query):
            _, milliseconds = timed(partial(database.fetch, statement))
            sent.append((label + database.text(statement), milliseconds))
        return sent

    def page_size(self, section: ResourceMapping) -> int:
        """Return how many rows of a section are read at once."""
        capabilities = self.adapter(section).capabilities[section.resource_type]
        return SAMPLE_ROWS if capabilities.keyset else API_PAGE

    def search(self, section: ResourceMapping, query: SearchQuery) -> list[FoundRow]:
        """Return the rows of a page of a search."""
        return _found(self.adapter(section).search_rows(query))


def _found(source: SourcePage) -> list[FoundRow]:
    """Return the rows of a page with their cells."""
    rows = zip(source.page.rows, source.cells, strict=True)
    return [FoundRow(outcome, source.columns, cells) for outcome, cells in rows]
