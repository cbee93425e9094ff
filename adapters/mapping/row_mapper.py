"""Rows of the source → records of the adapter interface, or the faults that prevent them.

A section and its items are compiled once for the columns of their SELECT, into readers that
return one value for each row. A page is mapped column by column. If a row is invalid, the
halves of the page are mapped again, until that row is alone and its fault is known.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, compress, islice
from operator import itemgetter
from types import MappingProxyType
from typing import Any, TypeAlias

from adapters.contract import (
    AddressRecord,
    EncounterRecord,
    GoneError,
    IdentifierRecord,
    NameRecord,
    NotFoundError,
    OrganizationRecord,
    PatientRecord,
    Record,
    ResourceType,
    RowFault,
    SourceDataError,
    TelecomRecord,
)
from adapters.mapping.converters import constant_of, converter_of
from adapters.mapping.model import (
    HIDDEN,
    REMOVED,
    FieldMapping,
    ItemMapping,
    Mark,
    ResourceMapping,
    Twice,
)
from adapters.mapping.problems import MappingError, MappingProblem, did_you_mean
from adapters.mapping.slots import (
    LINES,
    LISTS,
    SLOTS,
    UNSERVED,
    ListSlot,
    Place,
    Slot,
    SlotKind,
    own_places,
    places_of,
)

Row: TypeAlias = Sequence[object]
Extras: TypeAlias = Mapping[ItemMapping, Sequence[Row]]
"""The rows of the items that have a SELECT of their own."""

RECORDS: Mapping[ResourceType, type[Any]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: EncounterRecord,
        ResourceType.PATIENT: PatientRecord,
        ResourceType.ORGANIZATION: OrganizationRecord,
    }
)
NO_EXTRAS: Extras = MappingProxyType({})


# ----------------------------------------------------------------------------- cells


class CellError(ValueError):
    """A cell whose value its field cannot hold."""

    def __init__(self, fault: RowFault) -> None:
        super().__init__(fault)
        self.fault = fault


class Cell:
    """A field of the mapping, and the positions of its columns in a row."""

    __slots__ = ("column", "field", "indexes", "name")

    def __init__(
        self, field: FieldMapping, name: str, positions: Mapping[str, int]
    ) -> None:
        self.field = field
        self.name = name
        self.column = ", ".join(field.columns)
        self.indexes = [positions[column] for column in field.columns]

    def fault(self, rule: str) -> RowFault:
        """Return the fault of a row whose cell breaks a rule."""
        return RowFault(self.name, self.column, rule)


class Reader(ABC):
    """Returns one value for each row."""

    @abstractmethod
    def column(self, rows: Sequence[Row]) -> list[Any]:
        """Return the values of rows; raises CellError if any row is invalid."""

    def __call__(self, row: Row) -> Any:
        """Return the value of a row; raises CellError."""
        return self.column([row])[0]


class FieldReader(Reader):
    """Reads a field from its column, or from its two."""

    def __init__(self, cell: Cell, kind: SlotKind) -> None:
        self._fault = cell.fault
        self._converter = converter_of(cell.field, kind)
        self._cell_in: Callable[[Row], Any] = itemgetter(*cell.indexes)

    def column(self, rows: Sequence[Row]) -> list[Any]:
        """Return the values of the cells."""
        try:
            return self._converter.column(list(map(self._cell_in, rows)))
        except ValueError as error:
            raise CellError(self._fault(str(error))) from error


class ConstantReader(Reader):
    """Returns what is the same in all rows."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def column(self, rows: Sequence[Row]) -> list[Any]:
        """Return the value, for each row."""
        return [self._value] * len(rows)


def compile_cell(cell: Cell, kind: SlotKind) -> Reader:
    """Return the reader of a cell."""
    if cell.field.constant is not None:
        return ConstantReader(constant_of(cell.field, kind))
    return FieldReader(cell, kind)


# ----------------------------------------------------------------------------- items

ITEM_RECORDS: Mapping[str, type[Any]] = MappingProxyType(
    {
        "identifiers": IdentifierRecord,
        "names": NameRecord,
        "telecoms": TelecomRecord,
        "addresses": AddressRecord,
    }
)


class ListReader:
    """Reads all items of one list slot, in the order of the mapping."""

    def __init__(
        self,
        items: Iterable[ItemMapping],
        listed: ListSlot,
        positions: Mapping[str, int],
    ) -> None:
        self._items = [(item, item_reader(item, listed, positions)) for item in items]

    def column(
        self, rows: Sequence[Row], extras: Sequence[Extras]
    ) -> list[tuple[Any, ...]]:
        """Return the items of each row; raises CellError if any item is invalid."""
        lists: list[list[Any]] = [[] for _ in rows]
        for item, read in self._items:
            # An item is read from the row itself, or from its rows of a second SELECT.
            sources: Sequence[Sequence[Row]] = [[row] for row in rows]
            if item.rows:
                sources = [extra.get(item, ()) for extra in extras]
            # All are read at once, and then given to the rows that they belong to.
            records = iter(read.column(list(chain.from_iterable(sources))))
            for items, source in zip(lists, sources, strict=True):
                items += filter(None, islice(records, len(source)))
        return list(map(tuple, lists))


class LinesReader(Reader):
    """Reads the lines of an address that are there."""

    def __init__(self, lines: Iterable[Reader]) -> None:
        self._lines = tuple(lines)

    def column(self, rows: Sequence[Row]) -> list[Any]:
        """Return the lines of each row."""
        columns = [read.column(rows) for read in self._lines]
        return [tuple(filter(None, lines)) for lines in zip(*columns, strict=True)]


class OnlyIfReader(Reader):
    """Reads by `only_if` whether an item counts in its row."""

    def __init__(self, text: Reader, values: Collection[str]) -> None:
        self._text = text
        self._values = values

    def column(self, rows: Sequence[Row]) -> list[Any]:
        """Return whether the item counts, for each row."""
        return [text in self._values for text in self._text.column(rows)]


class ItemReader(Reader):
    """Reads one item of a list, None where it is not there.

    `slots` read the values of its record. The item is there if `counts` reads True and one
    of the slots at the indexes in `content` has a value.
    """

    def __init__(
        self,
        record: type[Any],
        slots: Sequence[Reader],
        *,
        content: Sequence[int],
        counts: Reader,
    ) -> None:
        self._record = record
        self._slots = slots
        self._content = content
        self._counts = counts

    def column(self, rows: Sequence[Row]) -> list[Any]:
        """Return the item of each row."""
        counts = self._counts.column(rows)
        # The other cells of an item that does not count may hold anything.
        counted = list(compress(rows, counts))
        columns = [read.column(counted) for read in self._slots]
        held = map(any, zip(*(columns[at] for at in self._content), strict=True))
        pairs = zip(_records(self._record, columns), held, strict=True)
        items = [item if is_held else None for item, is_held in pairs]
        if len(items) == len(rows):
            return items
        remaining = iter(items)
        return [next(remaining) if is_counted else None for is_counted in counts]


def _records(record: type[Any], columns: Iterable[Sequence[Any]]) -> Iterator[Any]:
    """Return the records of columns, one for each of its fields in their order."""
    # `_make` costs three times as much: it counts the values of each record.
    return map(partial(tuple.__new__, record), zip(*columns, strict=True))


def item_reader(
    item: ItemMapping, listed: ListSlot, positions: Mapping[str, int]
) -> Reader:
    """Return the reader of one item from its row."""
    positions = item_positions(item, positions)
    record = ITEM_RECORDS[listed.name]
    slots = {slot.record: slot for slot in listed.slots}
    return ItemReader(
        record,
        [
            _item_slot(item, listed, slots.get(name, LINES), positions)
            for name in record._fields
        ],
        content=[record._fields.index(name) for name in _content(item, listed)],
        counts=counting(item, positions),
    )


def item_positions(
    item: ItemMapping, positions: Mapping[str, int]
) -> Mapping[str, int]:
    """Return the positions of columns in the row of an item: its own, or the resource's."""
    if not item.rows:
        return positions
    return {column: at for at, column in enumerate(item_columns(item))}


def _item_slot(
    item: ItemMapping, listed: ListSlot, slot: Slot, positions: Mapping[str, int]
) -> Reader:
    """Return the reader of one slot of an item; without a field it reads no value."""
    name = f"{listed.name}.{slot.name}"
    if slot is LINES and item.lines:
        cells = (Cell(line, name, positions) for line in item.lines)
        return LinesReader(compile_cell(cell, slot.kind) for cell in cells)
    if slot.record in item.fields:
        return compile_cell(Cell(item.fields[slot.record], name, positions), slot.kind)
    return ConstantReader(() if slot is LINES or slot.kind is SlotKind.PARTS else None)


def _content(item: ItemMapping, listed: ListSlot) -> Sequence[str]:
    """Return the slots of which one must have a value, or else the item is left out.

    A constant does not count if another slot has a column: a country alone is no address.
    """
    fields = {name: (field,) for name, field in item.fields.items()}
    fields_by_slot = {**fields, LINES.name: item.lines}
    mapped = [name for name in listed.content if fields_by_slot.get(name)]
    varying = [
        name for name in mapped if any(field.columns for field in fields_by_slot[name])
    ]
    return varying or mapped


def counting(item: ItemMapping, positions: Mapping[str, int]) -> Reader:
    """Return the reader of whether an item counts in its row."""
    if item.only_if is None:
        return ConstantReader(True)
    field = FieldMapping("only_if", item.mark, (item.only_if.column,))
    text = compile_cell(Cell(field, f"{item.slot}.only_if", positions), SlotKind.EXACT)
    return OnlyIfReader(text, item.only_if.values)


# ----------------------------------------------------------------------------- rules


class Rule(ABC):
    """A condition that the values of a record must meet."""

    @abstractmethod
    def check(self, columns: Sequence[list[Any]], rows: Sequence[Row]) -> None:
        """Raise CellError if any row breaks the rule; may settle a value by its row."""


class Required(Rule):
    """At least one of these slots has a value; False is a value."""

    def __init__(self, slots: Sequence[int], fault: RowFault) -> None:
        self._slots = slots
        self._fault = fault

    def check(self, columns: Sequence[list[Any]], _: Sequence[Row]) -> None:
        """Refuse a row with a value in none of the slots."""
        if all(columns[self._slots[0]]):
            return
        for values in zip(*(columns[at] for at in self._slots), strict=True):
            if all(value in (None, ()) for value in values):
                raise CellError(self._fault)


class EndAfterStart(Rule):
    """No end is before its start.

    In the night of the autumn clock change a stay from 02:50 to 02:10 takes 20 minutes: such
    an end is read again, as the second of two such times.
    """

    def __init__(self, end: Cell, positions: Mapping[str, int]) -> None:
        index = EncounterRecord._fields.index
        self._start = index("start")
        self._end = index("end")
        self._fault = end.fault("ends before it starts")
        time = end.field.time
        self._read_late: Reader | None = None
        if time is not None and time.twice is Twice.FIRST:
            late = replace(end.field, time=replace(time, twice=Twice.SECOND))
            self._read_late = compile_cell(Cell(late, "end", positions), SlotKind.TIME)

    def check(self, columns: Sequence[list[Any]], rows: Sequence[Row]) -> None:
        """Refuse an end before its start, or set it to the later time that it may be."""
        ends = columns[self._end]
        for index, (start, end) in enumerate(
            zip(columns[self._start], ends, strict=True)
        ):
            if start and end and end < start:
                if self._read_late is not None:
                    ends[index] = self._read_late(rows[index])
                if ends[index] < start:
                    raise CellError(self._fault)


def _rules(
    section: ResourceMapping, cells: Mapping[str, Cell], positions: Mapping[str, int]
) -> list[Rule]:
    """Return the rules for the records of a section."""
    kind = section.resource_type
    rules: list[Rule] = [
        Required([at], _fault(cells, name, "required and empty"))
        for at, name in enumerate(RECORDS[kind]._fields)
        if name in section.required
    ]
    if {"start", "end"} <= set(cells):
        rules.append(EndAfterStart(cells["end"], positions))
    if kind is ResourceType.ORGANIZATION:  # FHIR org-1
        slots = list(map(OrganizationRecord._fields.index, ("name", "identifiers")))
        text = "an organization needs a name or an identifier"
        rules.append(Required(slots, _fault(cells, "name", text)))
    return rules


def _fault(cells: Mapping[str, Cell], name: str, rule: str) -> RowFault:
    return cells[name].fault(rule) if name in cells else RowFault(name, "", rule)


# ------------------------------------------------------------------------- a section


class RowMapper:
    """Maps rows of one section whose columns are `columns`, in their order.

    Raises MappingError when the section names a column that is not there.
    """

    def __init__(self, section: ResourceMapping, columns: Sequence[str]) -> None:
        if problems := unknown_columns(section, columns):
            raise MappingError(problems)
        kind = section.resource_type
        self._record = RECORDS[kind]
        # The number of the attribute of a record that a slot fills.
        at = self._record._fields.index
        positions = {column: index for index, column in enumerate(columns)}
        lists = {listed.name: listed for listed in LISTS[kind]}
        # What every record begins with: constants, and nothing elsewhere.
        self._blank = [() if name in lists else None for name in self._record._fields]
        self._fields: list[tuple[int, FieldReader]] = []
        cells: dict[str, Cell] = {}
        for slot in SLOTS[kind]:
            if (field := section.fields.get(slot.record)) is None:
                continue
            cells[slot.record] = cell = Cell(field, slot.name, positions)
            if field.constant is None:
                reader = FieldReader(cell, slot.kind)
                self._fields.append((at(slot.record), reader))
            else:
                self._blank[at(slot.record)] = constant_of(field, slot.kind)
        self._lists: list[tuple[int, ListReader]] = []
        for name, listed in lists.items():
            if items := section.items.get(name):
                reader_of_list = ListReader(items, listed, positions)
                self._lists.append((at(name), reader_of_list))
        self._rules = _rules(section, cells, positions)
        self._id = compile_cell(cells["id"], SlotKind.ID)
        self._status = _status_reader(cells.get("status"))

    def __call__(self, row: Row, extras: Extras = NO_EXTRAS) -> Record | RowFault:
        """Return the record of a row, or its fault.

        `extras` holds the rows of items that have a SELECT of their own. An invalid row whose
        status is hidden or removed is a record with this status alone: no client sees it.
        """
        return self.many([row], [extras])[0]

    def many(
        self, rows: Sequence[Row], extras: Sequence[Extras]
    ) -> tuple[Record | RowFault, ...]:
        """Return the record or the fault of each row."""
        try:
            return self._by_columns(rows, extras)
        except CellError as error:
            if len(rows) == 1:
                return (self._refused(error.fault, rows[0]),)
        half = len(rows) // 2
        first = self.many(rows[:half], extras[:half])
        return first + self.many(rows[half:], extras[half:])

    def _by_columns(
        self, rows: Sequence[Row], extras: Sequence[Extras]
    ) -> tuple[Record, ...]:
        """Return the records of rows; raises CellError if any row is invalid."""
        columns: list[list[Any]] = [[value] * len(rows) for value in self._blank]
        for at, read in self._fields:
            columns[at] = read.column(rows)
        for at, read_items in self._lists:
            columns[at] = read_items.column(rows, extras)
        for rule in self._rules:
            rule.check(columns, rows)
        return tuple(_records(self._record, columns))

    def _refused(self, fault: RowFault, row: Row) -> Record | RowFault:
        """Return a fault with the id of its resource, a record if that is not served."""
        if self._status is not None:
            with suppress(CellError):
                if (status := self._status(row)) in UNSERVED:
                    return EncounterRecord("", status, patient_id="")
        try:
            return replace(fault, id=self._id(row) or "")
        except CellError:
            return fault


def _status_reader(status: Cell | None) -> Reader | None:
    """Return the reader of the status, where some rows are not to be served."""
    if status is None or (codes := status.field.codes) is None:
        return None
    unserved = {*codes.table.values(), codes.otherwise} & {*UNSERVED}
    return compile_cell(status, SlotKind.CODE) if unserved else None


def refuse_unserved(record: Record | RowFault) -> Record:
    """Return a record that was read, unless its status is not served (decision 17).

    Raises SourceDataError for a fault, GoneError for a removed stay, NotFoundError for a
    hidden one.
    """
    if isinstance(record, RowFault):
        raise SourceDataError("the row cannot be mapped", record)
    status = record.status if isinstance(record, EncounterRecord) else None
    if status == REMOVED:
        raise GoneError(ResourceType.ENCOUNTER)
    if status == HIDDEN:
        raise NotFoundError(ResourceType.ENCOUNTER)
    return record


# --------------------------------------------------------------------------- columns

_Named: TypeAlias = tuple[str, str, Mark]
"""A column, the FHIR element that it is for, and where the file names it."""


def own_columns(section: ResourceMapping) -> tuple[str, ...]:
    """Return every column of the section's own row that the mapping names."""
    return tuple(dict.fromkeys(column for column, *_ in _of_row(section)))


def known_columns(section: ResourceMapping) -> tuple[str, ...]:
    """Return these columns, and those that only searches name."""
    searched = (column for column, *_ in _of_row(section, searched=True))
    return tuple(dict.fromkeys((*own_columns(section), *searched)))


def item_columns(item: ItemMapping) -> tuple[str, ...]:
    """Return the columns of an item's own SELECT: the key, then those its fields name."""
    columns = [column for field in item.all_fields for column in field.columns]
    condition = item.only_if.column if item.only_if else None
    return tuple(dict.fromkeys(filter(None, (item.key, *columns, condition))))


def unknown_columns(
    section: ResourceMapping, columns: Sequence[str], *, searched: bool = False
) -> tuple[MappingProblem, ...]:
    """Return a problem for each column that the section's own SELECT should have once.

    Those that only searches compare are included when rows are `searched`, not only read.
    """
    return _problems(_of_row(section, searched=searched), columns)


def unknown_item_columns(
    section: ResourceMapping, item: ItemMapping, columns: Sequence[str]
) -> tuple[MappingProblem, ...]:
    """Return a problem for each column that an item's second SELECT should have once."""
    places = [place for place in places_of(section) if place.item is item]
    key = (item.key or "", places[0].element, item.mark)
    return _problems((key, *_of_places(places, searched=True)), columns)


def _of_row(section: ResourceMapping, *, searched: bool = False) -> Iterator[_Named]:
    """Yield the columns of the section's own SELECT, as `_of_places` does."""
    return _of_places(own_places(section), searched=searched)


def _of_places(places: Iterable[Place], *, searched: bool) -> Iterator[_Named]:
    """Yield the columns of fields; with `searched` also those that only searches name."""
    for place in places:
        field = place.field
        element = place.element
        item = place.item
        for column in field.columns:
            yield column, element, field.mark
        if searched and field.search_column:
            yield field.search_column, element, field.mark
        if item and item.only_if:
            yield item.only_if.column, element, item.mark


def two_columns(name: str) -> str:
    """Return the problem of a name that two columns have."""
    return f"the SELECT returns two columns '{name}': rename one of them"


def _problems(
    named: Iterable[_Named], columns: Sequence[str]
) -> tuple[MappingProblem, ...]:
    """Return a problem for each name that not exactly one of the columns has."""
    problems: dict[tuple[str, Mark], MappingProblem] = {}
    for column, element, mark in named:
        count = columns.count(column)
        text = two_columns(column)
        if not count:
            near = did_you_mean(column, columns)
            text = f"the SELECT returns no column '{column}'{near}"
        if count != 1:
            problem = MappingProblem(mark, element, text=text, column=column)
            problems.setdefault((column, mark), problem)
    return tuple(problems.values())
