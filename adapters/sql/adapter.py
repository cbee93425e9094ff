"""A hospital database as an adapter: search, count and read by SQL.

SearchQuery → conditions (query.py) → statements of a page (keyset.py) → rows → records.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from adapters.contract import (
    AdapterError,
    Capabilities,
    EncounterRecord,
    Group,
    NotFoundError,
    Page,
    ParameterCapability,
    Position,
    Problem,
    Record,
    ResourceCapabilities,
    ResourceType,
    RowFault,
    SearchQuery,
    SortKey,
    SourceDataError,
    SourcePage,
    SourceTimedOutError,
    SourceUnavailableError,
    StringMatch,
    TooCostlyError,
)
from adapters.mapping.binary import BinaryForm
from adapters.mapping.model import (
    DateReading,
    FieldMapping,
    ItemMapping,
    ResourceMapping,
    SourceMapping,
)
from adapters.mapping.problems import MappingProblem
from adapters.mapping.row_mapper import (
    NO_EXTRAS,
    RowMapper,
    item_columns,
    known_columns,
    refuse_unserved,
    two_columns,
    unknown_columns,
    unknown_item_columns,
)
from adapters.mapping.slots import UNSERVED, SlotKind, own_places, places_of
from adapters.mapping.values import text_or_none
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from adapters.sql.columns import TEXTS, ColumnKind, UnreadText, instant_of
from adapters.sql.dialects.base import Dialect, Statement, name_of
from adapters.sql.engine import (
    Database,
    StatementRefusedError,
    open_databases,
)
from adapters.sql.keyset import Segment, segments
from adapters.sql.merges import Chains, Merges
from adapters.sql.query import (
    ALWAYS,
    LONGEST_LIST,
    NEVER,
    Columns,
    Condition,
    Filters,
    KeyColumn,
    SqlColumn,
    TimeColumn,
    all_of,
)
from adapters.sql.texts import are_texts, compare_as_read, sample

T = TypeVar("T")

_MAY_WRITE = (
    "the account of the source may change tables ({}): give it one that may only read"
    " (docs/run/databases.md, The database account), or set source.may_write: true"
)
_OF_MERGES = "-- merged patients, again for each step of a chain\n"
_BLANKS = "a hidden or removed code ends in blanks: RTRIM the column in the SELECT"


class UnfitError(SourceDataError):
    """The source lacks what the mapping names; `problems` say where."""

    def __init__(self, problems: Sequence[MappingProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


class UnequalTextsError(SourceDataError):
    """A search by texts that do not compare as the times that they mean."""

    def __init__(self, column: str) -> None:
        super().__init__(
            f"{column}: its texts do not sort as times, so searches by it are refused."
            " encounters mapping check --live prints the format to write"
        )


class SqlAdapter:
    """A hospital database behind one mapping. It is not connected before the first call."""

    def __init__(
        self, mapping: SourceMapping, beside: "SqlAdapter | None" = None
    ) -> None:
        """Share the connections of another adapter, `beside`, on the same database.

        Raises SourceDataError where the address of the source cannot be used.
        """
        self._mapping = mapping
        self._fingerprint = mapping.fingerprint
        self._pages: Database
        self._counts: Database
        if beside is None:
            self._pages, self._counts = open_databases(mapping.source)
        else:
            self._pages, self._counts = beside._pages, beside._counts
        self._sections: dict[ResourceType, OpenSqlSection] = {}
        self._capabilities = {
            kind: _capabilities(section, mapping.date_reading)
            for kind, section in mapping.resources.items()
        }

    @property
    def database(self) -> Database:
        """The connections for pages and reads; counts have their own."""
        return self._pages

    @property
    def mapping(self) -> SourceMapping:
        """The mapping that this adapter serves."""
        return self._mapping

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of each resource type that the mapping has."""
        return self._capabilities

    @property
    def fingerprint(self) -> str:
        """A digest of source, rows and order."""
        return self._fingerprint

    def search(self, query: SearchQuery) -> Page:
        """Return up to `query.count` rows from where the query starts."""
        return self.search_rows(query).page

    def search_rows(self, query: SearchQuery) -> SourcePage:
        """Return a page of a search and the cells of its rows."""
        return self._with_section(query.resource_type, partial(self._search, query))

    def _search(self, query: SearchQuery, section: "OpenSqlSection") -> SourcePage:
        section.refuse_unequal(query)
        widened, chains = section.with_merged_patients(self._pages, query)
        rows: list[tuple[Group | None, Any]] = []
        for segment, condition in section.segments(widened):
            limit = query.count + 1 - len(rows)
            statement = section.page(segment, condition, limit)
            rows += [(segment.group, row) for row in self._pages.fetch(statement)]
            if len(rows) > query.count:
                break
        return section.to_page(self._pages, query, rows, chains)

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match."""
        return self._with_section(query.resource_type, partial(self._count, query))

    def _count(self, query: SearchQuery, section: "OpenSqlSection") -> int:
        section.refuse_unequal(query)
        try:
            widened, _ = section.with_merged_patients(self._counts, query)
            condition = section.filters.of_query(widened)
            if condition is NEVER:
                return 0
            ((total,),) = self._counts.fetch(section.columns.count(condition))
        except SourceTimedOutError as error:
            raise TooCostlyError("the count took too long") from error
        return int(total)

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource."""
        return self._with_section(resource_type, partial(self._read, id))

    def _read(self, id: str, section: "OpenSqlSection") -> Record:
        (record,) = section.records(self._pages, [section.read(self._pages, id)])
        return refuse_unserved(record)

    def explain(self, query: SearchQuery) -> str:
        """Return the statements of a page in the order in which they would be sent."""
        texts = (
            label + self._pages.text(statement)
            for label, statement in self.statements(query)
        )
        return "\n\n".join(texts)

    def statements(self, query: SearchQuery) -> Iterator[tuple[str, Statement]]:
        """Yield the statements of a page, each with a label where there are several."""
        section = self.section(query.resource_type)
        if section.merges is not None:
            for statement in section.merges.first_steps(query):
                yield _OF_MERGES, statement
        widened, _ = section.with_merged_patients(self._pages, query)
        segments_of_page = tuple(section.segments(widened))
        total = len(segments_of_page)
        for number, (segment, condition) in enumerate(segments_of_page, 1):
            label = ""
            if total > 1:
                has = "without" if segment.group is Group.UNKEYED else "with"
                label = f"-- {number} of {total}: rows {has} a time to sort by"
                if number > 1:
                    label += ", sent if the page is not full yet"
                label += "\n"
            yield label, section.page(segment, condition, query.count + 1)

    def check(self) -> Iterable[Problem]:
        """Report whether the database answers, has the columns, and is safe from changes."""
        checks: list[Callable[[], object]] = [
            partial(open_section, self._pages, self._mapping, resource_type)
            for resource_type in self._mapping.resources
        ]
        checks.append(self.refuse_writing)
        for check in checks:
            try:
                check()
            except AdapterError as error:
                is_outage = isinstance(error, SourceUnavailableError)
                yield Problem(str(error), outage=is_outage)

    def refuse_writing(self) -> None:
        """Raise UnfitError if the account of the source may change tables."""
        source = self._mapping.source
        if not source.may_write and (grant := self._pages.write_grant()):
            text = _MAY_WRITE.format(grant)
            raise UnfitError([MappingProblem(source.mark, "source", text)])

    def close(self) -> None:
        """Close the connections."""
        self._pages.close()
        self._counts.close()

    def section(self, resource_type: ResourceType) -> "OpenSqlSection":
        """Return a section, its columns read once. Raises UnfitError, SourceUnavailableError."""
        section = self._sections.get(resource_type)
        if section is None:
            # Two threads that come first both read; neither waits for a slow database.
            section = open_section(self._pages, self._mapping, resource_type)
            section = replace(section, unequal=_unequal(self._pages, section))
            self._sections[resource_type] = section
        return section

    def _with_section(
        self, resource_type: ResourceType, question: Callable[["OpenSqlSection"], T]
    ) -> T:
        """Return the answer to a question, asked once more where the columns have changed.

        The database refuses a statement that no longer fits an altered table.
        """
        section = self.section(resource_type)
        try:
            return question(section)
        except StatementRefusedError:
            self._sections.pop(resource_type, None)
            current = self.section(resource_type)
            if current.described == section.described:
                raise
            return question(current)


def _capabilities(
    section: ResourceMapping, date_reading: DateReading
) -> ResourceCapabilities:
    """Return which searches of a section the adapter can do."""
    matches = frozenset({StringMatch.STARTS_WITH, StringMatch.CONTAINS})
    fields_of_names = chain.from_iterable(
        item.fields.values() for item in section.items.get("names", ())
    )
    # One of several names in a column cannot be compared as a whole.
    if not any(field.split for field in fields_of_names):
        matches |= {StringMatch.EXACT}
    parameters = {}
    for name in section.parameters:
        is_start = SEARCH_PARAMETERS[section.resource_type][name].slots == ("start",)
        is_period = is_start and date_reading is DateReading.PERIOD
        parameters[name] = ParameterCapability(matches=matches, period=is_period)
    sorts = section.sorts
    if SortKey.ID not in sorts:
        sorts = (*sorts, SortKey.ID)
    last_updated = section.fields.get("last_updated")
    dated = last_updated is not None and last_updated.covers_all
    return ResourceCapabilities(parameters, sorts, keyset=True, dated=dated)


@dataclass(frozen=True, slots=True)
class OpenSqlSection:
    """One resource type of a mapping, ready to search; `selected` are its columns in order.

    `id` is the column of the resource's id. `times` are the columns that searches can be
    sorted by, besides the id. `indexes` are the positions of columns in a row, `fine_times`
    those of FINE_TIME columns. `merges` are those of the patients of stays, None for other
    resources, and where the mapping does not name who replaced a patient. `unequal` are the
    columns whose texts do not compare as times, by slot.
    """

    mapping: ResourceMapping
    filters: Filters
    selected: tuple[str, ...]
    mapper: RowMapper
    id: SqlColumn
    times: Mapping[SortKey, TimeColumn]
    indexes: Mapping[str, int]
    fine_times: tuple[int, ...] = ()
    merges: Merges | None = None
    unequal: Mapping[str, str] = field(default_factory=dict)

    def refuse_unequal(self, query: SearchQuery) -> None:
        """Raise UnequalTextsError for a search that would find other rows than it should."""
        if self.unequal:
            for slot in self.filters.times_of(query) & self.unequal.keys():
                raise UnequalTextsError(self.unequal[slot])

    @property
    def columns(self) -> Columns:
        """The columns of the section's SELECT."""
        return self.filters.columns

    @property
    def described(self) -> object:
        """The columns of all its SELECTs, as the database describes them."""
        selects = [self.columns, *self.filters.item_columns.values()]
        selects += [self.merges.columns] if self.merges else []
        return [columns.described for columns in selects]

    def with_merged_patients(
        self, database: Database, query: SearchQuery
    ) -> tuple[SearchQuery, Chains]:
        """Return a search with every id of the patients that it names, and their chains."""
        if self.merges is None:
            return query, Chains({}, {})
        return self.merges.with_merged_patients(database, query)

    def segments(self, query: SearchQuery) -> Iterable[tuple[Segment, Condition]]:
        """Yield the segments of a page that can hold rows, each with its whole condition."""
        time = self.times.get(query.sort.key)
        is_keyed = self.filters.need_start(query)
        few = not is_keyed and any(map(self.filters.are_few, query.criteria))
        for segment in segments(query, time, self.id, few=few):
            if is_keyed and segment.group is Group.UNKEYED:
                continue
            searched = self.filters.of_query(query, segment.implied)
            condition = all_of([searched, segment.condition])
            if condition is not NEVER:
                yield segment, condition

    def page(self, segment: Segment, condition: Condition, limit: int) -> Statement:
        """Return the statement of a segment."""
        return self.columns.select(
            self.selected,
            condition,
            segment.order,
            limit=limit,
            nulls_last=segment.group is None,
        )

    def read(self, database: Database, id: str) -> Any:
        """Return the row of one resource; raises NotFoundError."""
        condition = self.filters.of_id(id)
        if condition is not NEVER:
            statement = self.columns.select(self.selected, condition, limit=1)
            for row in database.fetch(statement):
                return row
        raise NotFoundError(self.mapping.resource_type)

    def records(
        self,
        database: Database,
        rows: Sequence[Sequence[Any]],
        chains: Chains | None = None,
    ) -> tuple[Record | RowFault, ...]:
        """Map rows, with the items of a second SELECT where the mapping has one."""
        if self.fine_times:
            rows = [_with_times(row, self.fine_times) for row in rows]
        records = self.mapper.many(rows, self.extras(database, rows))
        if self.merges is None:
            return records
        return self.merges.shown(database, records, chains or Chains({}, {}))

    def extras(
        self, database: Database, rows: Sequence[Sequence[Any]]
    ) -> Sequence[Mapping[ItemMapping, Sequence[Any]]]:
        """Return for each row the rows of items that have a SELECT of their own.

        They are read for all rows at once.
        """
        all_items = chain.from_iterable(self.mapping.items.values())
        items = [item for item in all_items if item.rows is not None]
        if not items or not rows:
            return [NO_EXTRAS] * len(rows)
        index = self.indexes[self.id.name]
        ids = [(row[index], text_or_none(row[index], self.id.form)) for row in rows]
        by_item = [
            (item, _rows_by_key(database, item, self.filters.columns_of(item), ids))
            for item in items
        ]
        return tuple(
            {item: by_key.get(text, ()) for item, by_key in by_item} for _, text in ids
        )

    def to_page(
        self,
        database: Database,
        query: SearchQuery,
        rows: Sequence[tuple[Group | None, Any]],
        chains: Chains,
    ) -> SourcePage:
        """Return the page of a search from the rows of its segments.

        One row more than the page holds shows that another page follows. Each row comes with
        the group that its segment has read, None for both.
        """
        more = len(rows) > query.count
        rows = rows[: query.count]
        if query.backwards:
            rows = rows[::-1]
        cells = [row for _, row in rows]
        if not rows:
            return SourcePage(Page(()), self.selected, cells)
        records = self._served(self.records(database, cells, chains))
        with_position = rows if query.placed else (rows[0], rows[-1])
        positions = [self._position(query, group, row) for group, row in with_position]
        if query.placed or more or query.after or query.before or query.from_end:
            _check_bindable(positions)
        placed = tuple(positions) if query.placed else ()
        page = Page(
            records, more, first=positions[0], last=positions[-1], positions=placed
        )
        return SourcePage(page, self.selected, cells)

    def _served(
        self, records: tuple[Record | RowFault, ...]
    ) -> tuple[Record | RowFault, ...]:
        """Return the records of a search; a stay that is not to be served is a fault.

        A database may distinguish a code with trailing blanks from the code that the mapping reads.
        """
        if self.filters.served is ALWAYS:
            return records
        columns = ", ".join(self.mapping.fields["status"].columns)
        served = list(records)
        for index, record in enumerate(records):
            if isinstance(record, EncounterRecord) and record.status in UNSERVED:
                served[index] = RowFault("status", columns, _BLANKS, id=record.id)
        return tuple(served)

    def _position(self, query: SearchQuery, group: Group | None, row: Any) -> Position:
        """Return the position of a row that a segment of this group has read."""
        id = row[self.indexes[self.id.name]]
        if id is None:
            raise SourceDataError("a row without an id, where the database has none")
        time = self.times.get(query.sort.key)
        if time is None or group is Group.UNKEYED:
            return Position(group or Group.KEYED, None, id)
        column = time.key.column
        value = row[self.indexes[column.name]]
        if group is None and value is None:
            return Position(Group.UNKEYED, None, id)
        moment = None
        if query.placed and not isinstance(value, bytes):
            slot = SORTS[self.mapping.resource_type][query.sort.key]
            rule = self.mapping.fields[slot].time
            assert rule is not None, "rows are sorted by times and ids"
            moment = instant_of(column.kind, rule, value)
        return Position(Group.KEYED, value, id=id, moment=moment)


def _with_times(row: Sequence[Any], indexes: Iterable[int]) -> Sequence[Any]:
    """Return a row with datetimes for the texts of FINE_TIME columns, where they can be read.

    The mapping reads microseconds; only the position of the row needs the whole fraction.
    """
    cells = list(row)
    for index in indexes:
        with suppress(TypeError, ValueError):
            cells[index] = datetime.fromisoformat(cells[index])
    return cells


def _check_bindable(positions: Iterable[Position]) -> None:
    """Raise SourceDataError for a position that no next page can start from.

    Its id is a text that cannot be read, or its time is in bytes.
    """
    for position in positions:
        if isinstance(position.key, bytes) or isinstance(position.id, UnreadText):
            raise SourceDataError("a page ends at an id or time that is not UTF-8 text")


# Sections opened


def open_section(
    database: Database, mapping: SourceMapping, resource_type: ResourceType
) -> OpenSqlSection:
    """Read the columns of a section from the database.

    Raises UnfitError when the SELECT lacks a column of the mapping or has it twice, and
    SourceUnavailableError.
    """
    section = mapping.resources[resource_type]
    id = section.fields["id"]
    forms = _forms(place.field for place in own_places(section))
    columns = _read_columns(database, mapping, section, resource_type, forms)
    selected = known_columns(section)
    _refuse(unknown_columns(section, columns.names, searched=True))

    # Items with a SELECT of their own: its key has the form of the resource's id.
    item_columns: dict[str, Columns] = {}
    for item in chain.from_iterable(section.items.values()):
        if item.rows is not None:
            forms = {
                item.key or "": id.form or BinaryForm.HEX,
                **_forms(item.all_fields),
            }
            of_item = _read_columns(
                database, mapping, item, resource_type, forms, alias="items"
            )
            item_columns[item.rows] = of_item
            _refuse(unknown_item_columns(section, item, of_item.names))

    filters = Filters(
        section, columns, item_columns=item_columns, date_reading=mapping.date_reading
    )
    _refuse([*_unequal_keys(section, filters)])
    times = {
        SortKey(sort): filters.time(slot)
        for sort, slot in SORTS[resource_type].items()
        if sort != SortKey.ID
        and slot in section.fields
        and section.fields[slot].filter_column
    }
    kinds = [columns.column(name).kind for name in selected]
    merges = None
    if resource_type is ResourceType.ENCOUNTER:
        merges = _merges(database, mapping)
    return OpenSqlSection(
        mapping=section,
        filters=filters,
        selected=selected,
        mapper=RowMapper(section, selected),
        id=columns.column(id.columns[0]),
        times=times,
        indexes={column: index for index, column in enumerate(selected)},
        fine_times=tuple(
            index for index, kind in enumerate(kinds) if kind is ColumnKind.FINE_TIME
        ),
        merges=merges,
    )


def _forms(fields: Iterable[FieldMapping]) -> dict[str, BinaryForm]:
    """Return how the bytes of columns are written, where the mapping says so."""
    return {
        name: field.form
        for field in fields
        if field.form
        for name in filter(None, (*field.columns, field.search_column))
    }


_UNEQUAL_KINDS: Mapping[ColumnKind, str] = {
    ColumnKind.SINGLE: "a float of 32 bits (REAL, FLOAT), which equals no value of a search:"
    " CAST it to an integer or a text in the SELECT",
    ColumnKind.LARGE: "a large object (BLOB, CLOB, image, text), which a database does not"
    " compare: CAST it to a short text or to bytes in the SELECT",
    ColumnKind.OTHER: "of a type that the service does not compare: CAST it to a number or a"
    " text in the SELECT",
}


def _unequal_keys(
    section: ResourceMapping, filters: Filters
) -> Iterator[MappingProblem]:
    """Yield a problem for each id, reference and key whose kind no search can compare."""
    keys = [
        (filters.columns_of(place.item), name, place.field.mark, place.element)
        for place in places_of(section)
        if place.kind is SlotKind.ID
        for name in place.field.columns
    ]
    for item in chain.from_iterable(section.items.values()):
        if item.key:
            element = f"{section.resource_type}.{item.slot}"
            keys.append((filters.columns_of(item), item.key, item.mark, element))
    for columns, name, mark, element in keys:
        column = columns.column(name)
        text = _UNEQUAL_KINDS.get(column.kind)
        if text and not column.enumeration:
            yield MappingProblem(mark, element, text=text, column=name)


def _unequal(database: Database, section: OpenSqlSection) -> Mapping[str, str]:
    """Return the columns of a sample whose texts do not compare as times, by slot."""
    unequal = {}
    filters = section.filters
    for slot in filters.compared_times & section.mapping.fields.keys():
        time_field = section.mapping.fields[slot]
        if time_field.time is None or not time_field.filter_column:
            continue
        key = filters.columns.key(time_field)
        kind = key.column.kind
        if not are_texts(kind):
            continue
        values = sample(database, filters.columns, key, section.id)
        if not all(compare_as_read(kind, time_field, value) for value in values):
            unequal[slot] = key.column.name
    return unequal


def _read_columns(
    database: Database,
    mapping: SourceMapping,
    mapped: ResourceMapping | ItemMapping,
    resource_type: ResourceType,
    forms: Mapping[str, BinaryForm],
    *,
    alias: str = "pas",
) -> Columns:
    """Return the columns of the SELECT of a section or an item. Raises UnfitError."""
    rows = mapped.rows or ""
    try:
        columns = database.columns(rows)
    except SourceDataError as error:
        text = str(error)
        if isinstance(error, StatementRefusedError):
            text = _refusal(database.dialect, str(error.__cause__), rows)
        unfit = UnfitError([MappingProblem(mapped.mark, resource_type, text)])
        unfit.reason = error.reason
        raise unfit from error
    with_forms = [
        column._replace(form=forms.get(column.name, column.form)) for column in columns
    ]
    return Columns(database.dialect, rows, with_forms, alias, mapping.source.zone)


def _refuse(problems: Sequence[MappingProblem]) -> None:
    if problems:
        raise UnfitError(problems)


def _merges(database: Database, mapping: SourceMapping) -> Merges | None:
    """Return the merges of the patients, None where the mapping does not name survivors."""
    patients = mapping.resources.get(ResourceType.PATIENT)
    if patients is None or "replaced_by" not in patients.fields:
        return None
    id = patients.fields["id"]
    replaced_by = patients.fields["replaced_by"]
    if not id.columns or not replaced_by.columns or id.prefix != replaced_by.prefix:
        return None
    columns = _read_columns(
        database,
        mapping,
        patients,
        ResourceType.PATIENT,
        _forms((id, replaced_by)),
        alias="patients",
    )
    _refuse(unknown_columns(patients, columns.names))
    return Merges(
        patients.mark,
        columns,
        id=columns.column(id.columns[0]),
        survivor=KeyColumn(columns.column(replaced_by.columns[0]), replaced_by.absent),
        patient=mapping.resources[ResourceType.ENCOUNTER].fields["patient_id"],
    )


_SYNTAX = r"""near ["'](\w+)"""
"""The word at which a SELECT cannot be read; Oracle's messages do not name it."""


def _refusal(dialect: Dialect, message: str, rows: str) -> str:
    """Return why a SELECT is refused, as far as its text shows."""
    for pattern, grant in dialect.denied.items():
        if name := name_of(pattern, message, rows):
            return (
                f"the account of the source may not read {name}: run {grant}"
                f" {name} TO the account"
            )
    for pattern in dialect.missing:
        if name := name_of(pattern, message, rows):
            return f"the source has no {name}, which the SELECT of rows uses"
    if name := name_of(dialect.repeated, message, rows):
        return two_columns(name)
    if word := name_of(_SYNTAX, message, rows):
        return f"the source cannot read the SELECT of rows at '{word}': check what precedes it"
    return (
        "the source refuses the SELECT of rows: check its tables and columns, and that its"
        " end is complete"
    )


# Items that have a SELECT of their own

_MAY_END_IN_BLANKS = (*TEXTS, ColumnKind.LOOSE, ColumnKind.OTHER)


def _rows_by_key(
    database: Database,
    item: ItemMapping,
    columns: Columns,
    ids: Sequence[tuple[Any, str | None]],
) -> Mapping[str | None, list[Any]]:
    """Return the rows of an item by the text of the id that each belongs to.

    The key may be of another type than the id: a number and its text, CHAR and VARCHAR.
    """
    names = item_columns(item)
    key = columns.column(names[0])
    values: list[object] = []
    for id, text in ids:
        values += _key_values(key, id, text)
    by_key: dict[str | None, list[Any]] = {}
    # In one order every time: the ETag of a resource must not depend on a plan.
    order = tuple((columns.column(name), False) for name in names)
    for start in range(0, len(values), LONGEST_LIST):
        listed = key.is_in(values[start : start + LONGEST_LIST])
        for row in database.fetch(columns.select(names, listed, order)):
            by_key.setdefault(text_or_none(row[0], key.form), []).append(row)
    return by_key


def _key_values(key: SqlColumn, id: object, text: str | None) -> tuple[object, ...]:
    """Return the values of a key that belong to an id, which is read as `text`."""
    if text is None:
        return ()
    values = key.held(text)
    has_blanks = isinstance(id, str) and id != text
    if has_blanks and key.kind in _MAY_END_IN_BLANKS:
        return (*values, id)
    return values
