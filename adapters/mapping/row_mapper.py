"""A row of the source → a record of the adapter interface, or the fault that prevents it.

Each field is compiled once into a function from a cell to a value; a section and its
items are compiled once for the columns of their SELECT, then called for every row.

Cleaning is the same for every field: texts lose trailing blanks; the empty text and the
texts under `absent` are no value. What is not text becomes the text a person would write
(42, not 42.0). In texts for people a control character becomes a blank; in ids,
identifiers and functional units it is a fault, because a changed identifier is another.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
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
from adapters.mapping.model import (
    HIDDEN,
    REMOVED,
    CodeTable,
    FieldMapping,
    ItemMapping,
    Mark,
    ResourceMapping,
    TimeRule,
    Twice,
)
from adapters.mapping.problems import MappingError, MappingProblem, did_you_mean
from adapters.mapping.slots import (
    FHIR_ID,
    LINES,
    LISTS,
    SLOTS,
    UNSERVED,
    Kind,
    ListSlot,
    Place,
    Slot,
    own_places,
    places_of,
)
from adapters.mapping.times import instants, join_parts, presence, read_day
from adapters.mapping.values import PLAIN, as_text, by_cell_value, quoted

Row: TypeAlias = Sequence[object]
Reader: TypeAlias = Callable[[Row], Any]
Extras: TypeAlias = Mapping[ItemMapping, Sequence[Row]]
"""The rows of the items that have a SELECT of their own."""

Convert: TypeAlias = Callable[[Any], Any]
"""Returns the value of a cell; raises ValueError with the rule that the cell breaks."""

RECORDS: Mapping[ResourceType, type[Any]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: EncounterRecord,
        ResourceType.PATIENT: PatientRecord,
        ResourceType.ORGANIZATION: OrganizationRecord,
    }
)
NO_EXTRAS: Extras = MappingProxyType({})


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
        at = self._record._fields.index
        positions = {column: index for index, column in enumerate(columns)}
        lists = {listed.name: listed for listed in LISTS[kind]}
        # What every record begins with: constants, and nothing elsewhere.
        self._blank = [() if name in lists else None for name in self._record._fields]
        self._fields: list[tuple[int, Callable[[Row], Any], Convert, Cell]] = []
        cells: dict[str, Cell] = {}
        for slot in SLOTS[kind]:
            if (field := section.fields.get(slot.record)) is None:
                continue
            cells[slot.record] = cell = Cell(field, slot.name, positions)
            if field.constant is not None:
                self._blank[at(slot.record)] = _constant_of(field, slot.kind)
            else:
                convert = _converter(field, slot.kind)
                self._fields.append((at(slot.record), cell.value_in, convert, cell))
        self._lists = tuple(
            (at(name), _list_reader(section, listed, positions))
            for name, listed in lists.items()
            if name in section.items
        )
        self._rules = _rules(section, cells, positions)
        self._id = compile_cell(cells["id"], Kind.ID)
        self._status = _status_reader(cells.get("status"))

    def __call__(self, row: Row, extras: Extras = NO_EXTRAS) -> Record | RowFault:
        """Return the record of a row; `extras` holds the rows of items with own SELECTs.

        A row whose status is hidden or removed is never a fault: what it cannot say is
        left out, since nobody is going to see it.
        """
        values: list[Any] = self._blank.copy()
        for at, value_in, convert, cell in self._fields:
            try:
                values[at] = convert(value_in(row))
            except ValueError as error:
                return self._refused(cell.fault(str(error)), row)
        try:
            for at, read_list in self._lists:
                values[at] = read_list(row, extras)
        except CellError as error:
            return self._refused(error.fault, row)
        for rule in self._rules:
            if broken := rule(values, row):
                return self._refused(broken, row)
        record: Record = self._record._make(values)
        return record

    def many(
        self, rows: Sequence[Row], extras: Sequence[Extras]
    ) -> tuple[Record | RowFault, ...]:
        """Return for each row what a call returns."""
        return tuple(map(self, rows, extras))

    def _refused(self, fault: RowFault, row: Row) -> Record | RowFault:
        """Return a fault with the id of the resource, or the row as one not served."""
        if self._status is not None:
            with suppress(CellError):
                if (status := self._status(row)) in UNSERVED:
                    return EncounterRecord("", status, "")
        try:
            return replace(fault, id=self._id(row) or "")
        except CellError:
            return fault


Rule: TypeAlias = Callable[[list[Any], Row], RowFault | None]
"""Returns the fault of the values of a row; may settle one of them by the row."""


def _rules(
    section: ResourceMapping, cells: Mapping[str, "Cell"], positions: Mapping[str, int]
) -> list[Rule]:
    """Return what the values of a record have to fulfil."""
    rules = [_required_rule(section, cells)]
    if {"start", "end"} <= set(cells):
        rules.append(_period_rule(cells["end"], positions))
    if section.resource_type is ResourceType.ORGANIZATION:
        rules.append(_organization_rule(cells))
    return rules


def _required_rule(section: ResourceMapping, cells: Mapping[str, "Cell"]) -> Rule:
    """Return the rule that what the section requires is there."""
    required = [
        (at, _fault(cells, name, "required and empty"))
        for at, name in enumerate(RECORDS[section.resource_type]._fields)
        if name in section.required
    ]

    def broken(values: list[Any], _: Row) -> RowFault | None:
        for at, fault in required:
            if (value := values[at]) is None or value == ():
                return fault
        return None

    return broken


def _period_rule(end: "Cell", positions: Mapping[str, int]) -> Rule:
    """Return the rule that no end is before its start.

    In the night of the autumn clock change a stay from 02:50 to 02:10 takes 20 minutes: such
    an end is read again, as the second of two such times.
    """
    at_start, at_end = map(EncounterRecord._fields.index, ("start", "end"))
    fault, time, read_late = end.fault("ends before it starts"), end.field.time, None
    if time is not None and time.twice is Twice.FIRST:
        late = replace(end.field, time=replace(time, twice=Twice.SECOND))
        read_late = compile_cell(Cell(late, "end", positions), Kind.TIME)

    def broken(values: list[Any], row: Row) -> RowFault | None:
        start, end = values[at_start], values[at_end]
        if not start or not end or end >= start:
            return None
        if read_late is not None:
            values[at_end] = read_late(row)
        return fault if values[at_end] < start else None

    return broken


def _organization_rule(cells: Mapping[str, "Cell"]) -> Rule:
    """Return the rule that an organization has a name or an identifier (FHIR org-1)."""
    fault = _fault(cells, "name", "an organization needs a name or an identifier")
    name, identifiers = map(OrganizationRecord._fields.index, ("name", "identifiers"))
    return lambda values, _: None if values[name] or values[identifiers] else fault


def _fault(cells: Mapping[str, "Cell"], name: str, rule: str) -> RowFault:
    return cells[name].fault(rule) if name in cells else RowFault(name, "", rule)


def _status_reader(status: "Cell | None") -> Reader | None:
    """Return the reader of the status, where some rows are not to be served."""
    if status is None or (codes := status.field.codes) is None:
        return None
    unserved = {*codes.table.values(), codes.otherwise} & {*UNSERVED}
    return compile_cell(status, Kind.CODE) if unserved else None


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


# ----------------------------------------------------------------------------- cells


class CellError(ValueError):
    """A cell that its field cannot take."""

    def __init__(self, fault: RowFault) -> None:
        super().__init__(fault)
        self.fault = fault


class Cell:
    """A field of the mapping, and the positions of its columns in a row."""

    __slots__ = ("column", "field", "name", "value_in")

    def __init__(
        self, field: FieldMapping, name: str, positions: Mapping[str, int]
    ) -> None:
        self.field = field
        self.name = name
        self.column = ", ".join(field.columns)
        indexes = [positions[column] for column in field.columns]
        # A time of two columns is a pair of cells; a constant has none.
        self.value_in: Callable[[Row], Any] = (
            itemgetter(*indexes) if indexes else lambda _: None
        )

    def fault(self, rule: str) -> RowFault:
        """Return the fault of a row whose cell breaks a rule."""
        return RowFault(self.name, self.column, rule)


def compile_cell(cell: Cell, kind: Kind) -> Reader:
    """Return the function that reads the cell from a row; it raises CellError."""
    if cell.field.constant is not None:
        value = _constant_of(cell.field, kind)
        return lambda _: value
    convert, value_in = _converter(cell.field, kind), cell.value_in

    def read(row: Row) -> Any:
        try:
            return convert(value_in(row))
        except ValueError as error:
            raise CellError(cell.fault(str(error))) from error

    return read


def _converter(field: FieldMapping, kind: Kind) -> Convert:
    if field.codes is not None:
        return _coded(field, field.codes, kind)
    return _CONVERTERS[kind](field)


def _constant_of(field: FieldMapping, kind: Kind) -> Any:
    return _constant(f"{field.prefix}{field.constant}", kind)


def _constant(text: str, kind: Kind) -> Any:
    if kind is Kind.FLAG:
        return text == "true"
    return (text,) if kind is Kind.PARTS else text


def _cleaner(field: FieldMapping) -> Convert:
    """Return the function that makes cleaned text of a cell, None for no value."""
    nothing = field.absent | {""}

    def clean(value: object) -> str | None:
        if value is None:
            return None
        text = value.rstrip() if type(value) is str else as_text(value)
        return None if text in nothing else text

    return clean


_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
"""What a FHIR string or JSON cannot hold (STU3 datatypes, string)."""


def _text(field: FieldMapping) -> Convert:
    clean = _cleaner(field)

    def convert(value: object) -> str | None:
        text: str | None = clean(value)
        if text is None or text.isprintable():
            return text
        return _FORBIDDEN.sub(" ", text).rstrip() or None

    return convert


def _exact(field: FieldMapping) -> Convert:
    clean = _cleaner(field)

    def convert(value: object) -> str | None:
        text: str | None = clean(value)
        if text is None or text.isprintable() or not _FORBIDDEN.search(text):
            return text
        raise ValueError("holds a control character")

    return convert


def _id(field: FieldMapping) -> Convert:
    clean = _cleaner(field)
    fits, prefix = FHIR_ID.fullmatch, field.prefix
    strip, plain = field.strip, not (field.absent or prefix or field.strip)

    def convert(value: object) -> str | None:
        if plain and type(value) is int:
            return str(value)
        if plain and type(value) is str and fits(value):
            return value
        text: str | None = clean(value)
        if text is None:
            return None
        if not text.startswith(strip):
            raise ValueError(f"does not begin with {strip}")
        if fits(text := prefix + text.removeprefix(strip)):
            return text
        raise ValueError("not a FHIR id: up to 64 letters, digits, '-' and '.'")

    return convert


def _parts(field: FieldMapping) -> Convert:
    text_of, split = _text(field), field.split

    def convert(value: object) -> tuple[str, ...]:
        several = value if isinstance(value, list) else [value]
        texts = [text for one in several if (text := text_of(one)) is not None]
        if split is None:
            return tuple(texts)
        cuts = (cut.strip() for text in texts for cut in text.split(split))
        return tuple(cut for cut in cuts if cut)

    return convert


def _coded(field: FieldMapping, codes: CodeTable, kind: Kind) -> Convert:
    def target(text: str) -> Any:
        return _constant(field.prefix + text, kind)

    clean = _cleaner(field)
    values = {code: target(text) for code, text in codes.table.items()}
    other = None if codes.otherwise is None else target(codes.otherwise)
    nothing = () if kind is Kind.PARTS and other is None else other
    known = {} if field.absent else by_cell_value(values)

    def convert(value: object) -> Any:
        if type(value) in PLAIN and value in known:
            return known[value]
        text = clean(value)
        if text is None:
            return nothing
        if text in values:
            return values[text]
        if other is None:
            raise ValueError(f"no entry for {quoted(text)} in codes.{codes.name}")
        return other

    return convert


_FLAGS: Mapping[object, bool] = MappingProxyType(
    {0: False, 1: True, b"\x00": False, b"\x01": True}
)


def _flag(field: FieldMapping) -> Convert:
    nothing = field.absent | {""}

    def convert(value: object) -> bool | None:
        if value is None:
            return None
        if isinstance(value, (int, float, Decimal, bytes)) and value in _FLAGS:
            return _FLAGS[value]
        if isinstance(value, str) and value.rstrip() in nothing:
            return None
        raise ValueError("not true or false: name a code table (codes: …)")

    return convert


def _time(
    field: FieldMapping, reading: Callable[[TimeRule], Convert] = instants
) -> Convert:
    rule = field.time
    assert rule is not None, "the loader gives every time a rule"
    read, present, is_plain = reading(rule), presence(field.absent), not field.absent

    def convert(value: object) -> Any:
        if value is None:
            return None
        if not is_plain or type(value) is not datetime:
            value = present(value)
        return None if value is None else read(value)

    def convert_both(cells: tuple[object, object]) -> Any:
        day = present(cells[0])
        if day is None:
            return None
        return read(join_parts(day, present(cells[1]), rule))

    return convert_both if len(field.columns) > 1 else convert


def _day(field: FieldMapping) -> Convert:
    return _time(field, lambda rule: partial(read_day, rule=rule))


_CONVERTERS: Mapping[Kind, Callable[[FieldMapping], Convert]] = MappingProxyType(
    {
        Kind.ID: _id,
        Kind.EXACT: _exact,
        Kind.TEXT: _text,
        Kind.PARTS: _parts,
        Kind.SYSTEM: _exact,
        Kind.CODE: _exact,
        Kind.TIME: _time,
        Kind.DATE: _day,
        Kind.FLAG: _flag,
    }
)


# ----------------------------------------------------------------------------- items

ITEM_RECORDS: Mapping[str, type[Any]] = MappingProxyType(
    {
        "identifiers": IdentifierRecord,
        "names": NameRecord,
        "telecoms": TelecomRecord,
        "addresses": AddressRecord,
    }
)


def _list_reader(
    section: ResourceMapping, listed: ListSlot, positions: Mapping[str, int]
) -> Callable[[Row, Extras], tuple[Any, ...]]:
    """Return the function that reads all items of one list slot from a row."""
    readers = tuple(
        (item, item_reader(item, listed, positions))
        for item in section.items[listed.name]
    )

    def read(row: Row, extras: Extras) -> tuple[Any, ...]:
        return tuple(
            record
            for item, read_item in readers
            for source in (extras.get(item, ()) if item.rows else (row,))
            if (record := read_item(source)) is not None
        )

    return read


def item_reader(
    item: ItemMapping, listed: ListSlot, positions: Mapping[str, int]
) -> Reader:
    """Return the function that reads one item from its row, None where there is none."""
    positions = item_positions(item, positions)
    record = ITEM_RECORDS[listed.name]
    slots = {slot.record: slot for slot in listed.slots}
    readers = [
        _item_slot(item, listed, slots.get(name, LINES), positions)
        for name in record._fields
    ]
    content = [record._fields.index(name) for name in _content(item, listed)]
    counts = counting(item, positions)

    def read(row: Row) -> Any:
        if not counts(row):
            return None
        values = [read_slot(row) for read_slot in readers]
        return record._make(values) if any(values[at] for at in content) else None

    return read


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
    name = f"{listed.name}.{slot.name}"
    if slot is LINES:
        cells = (Cell(line, name, positions) for line in item.lines)
        readers = tuple(compile_cell(cell, slot.kind) for cell in cells)
        return lambda row: tuple(line for read in readers if (line := read(row)))
    if slot.record in item.fields:
        return compile_cell(Cell(item.fields[slot.record], name, positions), slot.kind)
    missing = () if slot.kind is Kind.PARTS else None
    return lambda _: missing


def _content(item: ItemMapping, listed: ListSlot) -> Sequence[str]:
    """Return the slots one of which must hold a value for the item to be there.

    A constant beside columns is no content: a country alone is no address.
    """
    fields = {name: (field,) for name, field in item.fields.items()}
    filled = {**fields, LINES.name: item.lines}
    there = [name for name in listed.content if filled.get(name)]
    varying = [name for name in there if any(f.columns for f in filled[name])]
    return varying or there


def counting(item: ItemMapping, positions: Mapping[str, int]) -> Reader:
    """Return the function that decides by `only_if` whether an item counts in its row."""
    if item.only_if is None:
        return lambda _: True
    values = item.only_if.values
    field = FieldMapping("only_if", item.mark, (item.only_if.column,))
    text = compile_cell(Cell(field, f"{item.slot}.only_if", positions), Kind.EXACT)
    return lambda row: text(row) in values


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
    return _of_places(own_places(section), searched=searched)


def _of_places(places: Iterable[Place], *, searched: bool) -> Iterator[_Named]:
    for place in places:
        field, element, item = place.field, place.element, place.item
        for column in field.columns:
            yield column, element, field.mark
        if searched and field.search_column:
            yield field.search_column, element, field.mark
        if item and item.only_if:
            yield item.only_if.column, element, item.mark


def _problems(
    named: Iterable[_Named], columns: Sequence[str]
) -> tuple[MappingProblem, ...]:
    problems: dict[tuple[str, Mark], MappingProblem] = {}
    for column, element, mark in named:
        count = columns.count(column)
        text = f"the SELECT returns two columns '{column}': give each a name of its own"
        if not count:
            near = did_you_mean(column, columns)
            text = f"the SELECT returns no column '{column}'{near}"
        if count != 1:
            problem = MappingProblem(mark, element, text, column)
            problems.setdefault((column, mark), problem)
    return tuple(problems.values())
