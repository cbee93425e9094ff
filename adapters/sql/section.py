"""One section of a mapping, ready to search: its columns known, its rows compiled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from adapters.contract import (
    EncounterRecord,
    Record,
    ResourceType,
    RowFault,
    SortKey,
    SourceDataError,
)
from adapters.mapping.apply import RowMapper
from adapters.mapping.items import known_columns
from adapters.mapping.model import (
    ItemMapping,
    Mark,
    ResourceMapping,
    SourceMapping,
)
from adapters.mapping.named import unknown_columns, unknown_item_columns
from adapters.mapping.problems import MappingProblem
from adapters.mapping.slots import UNSERVED
from adapters.mapping.time_rule import TimeRule
from adapters.sql.addresses import AddressError
from adapters.sql.columns import Column, Kind, time_bound
from adapters.sql.conditions import ALWAYS
from adapters.sql.database import Database
from adapters.sql.filters import Filters
from adapters.sql.items import read_items
from adapters.sql.missing import missing_name, unread_word
from adapters.sql.moments import KeyColumn
from adapters.sql.places import place_of
from adapters.sql.values import Columns, Survivors

_SORTED_BY = {SortKey.DATE: "start", SortKey.LAST_UPDATED: "last_updated"}
"""The slot that a sort goes by; the id needs none."""


_BLANKS = "a code of a stay that is not served ends in blanks: RTRIM it in the SELECT"


class UnfitError(SourceDataError):
    """The source lacks what the mapping names; `problems` say where."""

    def __init__(self, problems: Sequence[MappingProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Section:
    """What one resource type needs at each request; `selected` are its columns in order.

    `id` is the column that the id of the resource comes from, `keys` those that its
    searches are ordered by, none for the id alone; `places` says where columns stand in a
    row.
    """

    mapping: ResourceMapping
    filters: Filters
    selected: tuple[str, ...]
    mapper: RowMapper
    id: Column
    keys: Mapping[SortKey, KeyColumn]
    places: Mapping[str, int]

    def bound(self, sort: SortKey, moment: datetime) -> object:
        """Return the smallest key that is not before an instant."""
        return time_bound(*self._clock(sort), moment)

    def moment(self, sort: SortKey, key: object) -> datetime:
        """Return the instant at which a key stands in the order."""
        return place_of(*self._clock(sort), key)

    def _clock(self, sort: SortKey) -> tuple[Kind, TimeRule]:
        field = self.mapping.fields[_SORTED_BY[sort]]
        if field.time is None:
            raise AssertionError(f"{field.slot} is a time")
        return self.keys[sort].column.kind, field.time

    def records(
        self, database: Database, rows: Sequence[Sequence[Any]]
    ) -> tuple[Record | RowFault, ...]:
        """Map rows, with the items of a second SELECT where the mapping has one."""
        return self.mapper.many(rows, self.extras(database, rows))

    def served(
        self, database: Database, rows: Sequence[Sequence[Any]]
    ) -> tuple[Record | RowFault, ...]:
        """Map the rows of a search; one that is not to be served is a fault there.

        A database tells a code with blanks behind it from the code that the mapping reads.
        """
        records = self.records(database, rows)
        if self.filters.served is ALWAYS:
            return records
        columns = self.mapping.fields["status"].columns
        fault = RowFault("status", ", ".join(columns), _BLANKS)
        shown = [
            fault if isinstance(r, EncounterRecord) and r.status in UNSERVED else r
            for r in records
        ]
        return tuple(shown)

    def extras(
        self, database: Database, rows: Sequence[Sequence[Any]]
    ) -> Sequence[Mapping[ItemMapping, Sequence[Any]]]:
        """Return for each row the rows of items that have a SELECT of their own."""
        id_place = self.places[self.id.name]
        ids = [row[id_place] for row in rows]
        return read_items(database, self.mapping, self.filters.item_columns, ids)


def open_section(
    database: Database, mapping: SourceMapping, resource_type: ResourceType
) -> Section:
    """Read the columns of a section from the database and compile it.

    Raises UnfitError when a column of the mapping is not there or there twice, and
    SourceUnavailableError.
    """
    section = mapping.resources[resource_type]
    columns = _columns(database, section.rows, section.mark, resource_type)
    selected = known_columns(section)
    _refuse(unknown_columns(section, columns.names, searched=True))
    item_columns_ = {}
    for items in section.items.values():
        for item in items:
            if item.rows is not None:
                there = _columns(database, item.rows, item.mark, resource_type)
                item_columns_[item.rows] = there
                _refuse(unknown_item_columns(section, item, there.names))
    filters = Filters(section, columns, item_columns_, mapping.date_reading)
    if resource_type is ResourceType.ENCOUNTER:
        filters = replace(filters, survivors=_survivors(database, mapping))
    keys = {
        sort: columns.key(section.fields[slot])
        for sort, slot in _SORTED_BY.items()
        if slot in section.fields and section.fields[slot].filter_column
    }
    return Section(
        section,
        filters,
        selected,
        RowMapper(section, selected),
        columns.column(section.fields["id"].columns[0]),
        keys,
        {column: place for place, column in enumerate(selected)},
    )


def _columns(database: Database, rows: str, mark: Mark, element: str) -> Columns:
    try:
        found = database.columns(rows)
    except SourceDataError as error:
        of_rows = not isinstance(error, AddressError)
        text = _refusal(str(error.__cause__), rows) if of_rows else str(error)
        raise UnfitError([MappingProblem(mark, element, text)]) from error
    return Columns.of(found)


def _refusal(message: str, rows: str) -> str:
    if name := missing_name(message, rows):
        return f"the source has no {name}, which the SELECT of rows names"
    if word := unread_word(message, rows):
        return f"the source cannot read the SELECT of rows at '{word}': what is missing before it?"
    return (
        "the source refuses the SELECT of rows: does it lack a table or column, or is its end"
        " cut off?"
    )


def _refuse(problems: Sequence[MappingProblem]) -> None:
    if problems:
        raise UnfitError(problems)


def _survivors(database: Database, mapping: SourceMapping) -> Survivors | None:
    patients = mapping.resources.get(ResourceType.PATIENT)
    if patients is None or "replaced_by" not in patients.fields:
        return None
    id, replaced_by = patients.fields["id"], patients.fields["replaced_by"]
    if not id.columns or not replaced_by.columns or id.prefix != replaced_by.prefix:
        return None
    kind = patients.resource_type
    columns = _columns(database, patients.rows, patients.mark, kind)
    _refuse(unknown_columns(patients, columns.names))
    return Survivors(
        patients.rows,
        columns.column(id.columns[0]),
        KeyColumn(columns.column(replaced_by.columns[0]), replaced_by.absent),
    )
