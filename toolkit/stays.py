"""All stays of a mapping file, read from its sources page by page.

`mapping diff` and `confirm` read them as searches do: by the same adapters, mapped
by the same row mapper. One page of each source is in memory.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from adapters.contract import (
    EncounterRecord,
    Group,
    Key,
    Position,
    Record,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourcePage,
    Token,
    TokenCriterion,
)
from adapters.mapping.model import FieldMapping, ResourceMapping
from adapters.mapping.slots import Place, places_of
from adapters.mapping.values import as_text
from adapters.registry import open_source
from toolkit.checks.rows import SAMPLE, SMALL_SAMPLE
from toolkit.console import MappingFile, show_progress
from toolkit.source_rows import RowReader, all_pages

NO_START = "no start"
"""The month of a stay without a start."""


class Row(NamedTuple):
    """A row of a source, and the record or the fault that it becomes."""

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


@dataclass(frozen=True, slots=True)
class Stays:
    """The stays of one section of a file; `name` says which of several it is.

    `coded` are the fields that a code table reads from a column, by element.
    """

    section: ResourceMapping
    reader: RowReader
    name: str
    coded: Mapping[str, Place]

    @property
    def prefix(self) -> str:
        """What every id of these stays begins with."""
        return self.section.fields["id"].prefix

    def column(self, name: str) -> str:
        """Return a column with its section before it, where there are several."""
        return f"{self.name}.{name}" if self.name else name

    @property
    def is_keyset(self) -> bool:
        """Whether the source itself compares ids, in the order in which they are read."""
        return self.reader.capabilities[ResourceType.ENCOUNTER].keyset

    def pages(self) -> Iterator[list[Row]]:
        """Yield all stays that searches find, page by page; raises AdapterError."""
        number = 0
        for source in all_pages(self.reader, ResourceType.ENCOUNTER):
            yield [*_rows(source)]
            number += len(source.cells)
            show_progress(f"{self.section.mark.file}: {number:,} rows read …")
        show_progress("")

    def sample(self) -> Iterator[Row]:
        """Yield the newest stays where the source sorts by start, and the first ones by id."""
        able = self.reader.capabilities[ResourceType.ENCOUNTER]
        if SortKey.DATE in able.sorts:
            size = SAMPLE if able.keyset else SMALL_SAMPLE
            newest = Sort(SortKey.DATE, descending=True)
            query = SearchQuery(ResourceType.ENCOUNTER, (), newest, size)
            yield from _rows(self.reader.search_rows(query))
        yield from chain.from_iterable(islice(self.pages(), 1))

    def is_after(self, id: Key, other: Key) -> bool:
        """Ask a source with keysets whether a row comes after the id of another one."""
        field = self.section.fields["id"]
        text = field.prefix + as_text(id).removeprefix(field.strip)
        only = TokenCriterion("_id", (Token(None, text),))
        after = Position(Group.KEYED, None, other)
        kind, sort = ResourceType.ENCOUNTER, Sort(SortKey.ID)
        query = SearchQuery(kind, (only,), sort, 1, after=after)
        return bool(self.reader.search(query).rows)


def _rows(source: SourcePage) -> Iterator[Row]:
    rows = zip(source.page.rows, source.cells, strict=True)
    return (Row(outcome, source.columns, cells) for outcome, cells in rows)


@contextmanager
def reading(*paths: Path) -> Iterator[list[tuple[MappingFile, list[Stays]]]]:
    """Open the sources of files as the service would.

    Raises MappingError for a file that is not valid, and AdapterError for a source that is
    away or does not fit its file, also while it is read.
    """
    with ExitStack() as stack:
        files = [MappingFile.open(path, os.environ) for path in paths]
        yield [(file, [*_open(file, stack)]) for file in files]


def _open(file: MappingFile, stack: ExitStack) -> Iterator[Stays]:
    sections = file.sections(ResourceType.ENCOUNTER)
    for section in sections:
        adapter = stack.enter_context(closing(open_source(file.source_of(section))))
        assert isinstance(adapter, RowReader), "only custom adapters are none"
        name = file.names(section)[0].rstrip("-") if len(sections) > 1 else ""
        coded = {
            place.element.partition(".")[2]: place
            for place in places_of(section)
            if place.field.codes and place.field.columns
        }
        yield Stays(section, adapter, name, coded)


def month_of(stay: EncounterRecord | None) -> str:
    """Return the month in which a stay begins, in the zone of the hospital."""
    return stay.start.isoformat()[:7] if stay and stay.start else NO_START
