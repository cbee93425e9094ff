"""One section of a mapping, ready to ask: rows of an answer become records."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.contract import (
    Criterion,
    EncounterRecord,
    Record,
    ReferenceCriterion,
    ResourceType,
    RowFault,
    SortKey,
    SourceDataError,
    StringCriterion,
)
from adapters.http.answers import at, plain_text
from adapters.http.filters import Filters
from adapters.mapping.apply import RowMapper
from adapters.mapping.cells import Cell, Reader, compile_cell
from adapters.mapping.http_build import path_of
from adapters.mapping.http_model import HttpSection, Path
from adapters.mapping.items import item_columns, own_columns
from adapters.mapping.model import (
    ItemMapping,
    ResourceMapping,
    SourceMapping,
)
from adapters.mapping.parameters import SORTS
from adapters.mapping.slots import UNSERVED, Kind
from adapters.matching import Matcher

JsonRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Section:
    """What one resource type needs at each request; `paths` are its columns in order."""

    mapping: ResourceMapping
    http: HttpSection
    filters: Filters
    paths: tuple[Path, ...]
    items: tuple[tuple[ItemMapping, Path, tuple[Path, ...]], ...]
    mapper: RowMapper
    matcher: Matcher
    keys: Mapping[SortKey, Reader]

    def record(self, row: JsonRow) -> Record | RowFault:
        """Map one row of an answer."""
        return self.mapper(*self.cells(row))

    def cells(
        self, row: JsonRow
    ) -> tuple[tuple[Any, ...], Mapping[ItemMapping, Sequence[Any]]]:
        """Return what stands at the paths of a row, and the rows of its own lists."""
        cells = tuple(at(row, path) for path in self.paths)
        return cells, {i: _listed(row, path, below) for i, path, below in self.items}

    def records(
        self, rows: Sequence[JsonRow], criteria: tuple[Criterion, ...]
    ) -> tuple[Record | RowFault, ...]:
        """Map the rows of a list, each one held against the question.

        An API that does not know a parameter leaves it out and answers everybody's
        rows: raises SourceDataError for a row that was not asked for.
        """
        records = tuple(self.record(row) for row in rows)
        asked = [c for c in criteria if self._can_be_checked(c)]
        for record in records:
            if isinstance(record, RowFault):
                continue
            if isinstance(record, EncounterRecord) and record.status in UNSERVED:
                raise SourceDataError("the list holds a row that is not to be served")
            if not all(self.matcher.matches(record, c) for c in asked):
                raise _not_asked_for()
        if any(_of_others(records, c) for c in criteria if c not in asked):
            raise _not_asked_for()
        return records

    def moment(self, row: JsonRow, key: SortKey) -> datetime | None:
        """Return the instant of a row's sort key; raises CellError for one that is none."""
        moment: datetime | None = self.keys[key]([at(row, p) for p in self.paths])
        return moment

    def id_text(self, row: JsonRow) -> str:
        """Return the id of a row as clients see it, "" when it has none."""
        return plain_text(at(row, path_of(self.mapping.fields["id"].columns[0])))

    def refuse_twins(self, rows: Sequence[JsonRow]) -> None:
        """Raise SourceDataError where one answer holds a row twice."""
        ids = [id for id in map(self.id_text, rows) if id]
        if len(set(ids)) < len(ids):
            raise SourceDataError("the list holds a row twice")

    def _can_be_checked(self, criterion: Criterion) -> bool:
        if isinstance(criterion, StringCriterion):
            return False  # how the source compares texts is its own business
        merged = self.http.search[criterion.parameter].merged
        return not (merged and isinstance(criterion, ReferenceCriterion))


def open_section(mapping: SourceMapping, resource_type: ResourceType) -> Section:
    """Compile a section."""
    section = mapping.resources[resource_type]
    assert section.http is not None, "the loader gives every section of HTTP one"
    columns = own_columns(section)
    return Section(
        mapping=section,
        http=section.http,
        filters=Filters(section, section.http.search),
        paths=tuple(map(path_of, columns)),
        items=tuple(_own_lists(section)),
        mapper=RowMapper(section, columns),
        keys=_keys(section, columns),
        matcher=Matcher(mapping.time_zone, mapping.date_reading),
    )


def _keys(section: ResourceMapping, columns: Sequence[str]) -> Mapping[SortKey, Reader]:
    """Return what reads the instant of each sort key from the cells of a row."""
    positions = {column: index for index, column in enumerate(columns)}
    slots = {key: SORTS[section.resource_type].get(key, "") for key in section.sorts}
    return {
        key: compile_cell(Cell(section.fields[slot], slot, positions), Kind.TIME)
        for key, slot in slots.items()
        if key is not SortKey.ID
    }


def _of_others(records: Sequence[Record | RowFault], criterion: Criterion) -> bool:
    """Whether stays are of more patients than were asked for, survivors counted."""
    if not isinstance(criterion, ReferenceCriterion):
        return False
    stays = (each for each in records if isinstance(each, EncounterRecord))
    return len({stay.patient_id for stay in stays}) > len(criterion.values)


def _not_asked_for() -> SourceDataError:
    return SourceDataError("the list holds a row that was not asked for")


def _own_lists(
    section: ResourceMapping,
) -> Iterable[tuple[ItemMapping, Path, tuple[Path, ...]]]:
    for items in section.items.values():
        for item in items:
            if item.rows is not None:
                yield item, path_of(item.rows), tuple(map(path_of, item_columns(item)))


def _listed(row: JsonRow, path: Path, columns: tuple[Path, ...]) -> Sequence[Any]:
    found = at(row, path)
    if found is None:
        return ()
    if not isinstance(found, list):
        raise SourceDataError(f"no list at '{'.'.join(path)}'")
    return [[at(each, column) for column in columns] for each in found]
