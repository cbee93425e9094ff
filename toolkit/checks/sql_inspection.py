"""A section of a mapping in its database, under inspection, and what was read of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time
from functools import cached_property
from time import monotonic

from adapters.contract import (
    Bound,
    Page,
    Record,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    SourceTimedOutError,
)
from adapters.mapping.model import FieldMapping, ResourceMapping
from adapters.mapping.slots import Place, places_of
from adapters.mapping.times import sorts_as_text
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from adapters.sql.adapter import (
    OpenSqlSection,
    SqlAdapter,
    UnequalTextsError,
    UnfitError,
    open_section,
)
from adapters.sql.columns import ColumnKind
from adapters.sql.dialects.base import ColumnOrigin
from adapters.sql.engine import Database
from adapters.sql.query import ALWAYS, Columns, Condition, KeyColumn, all_of, any_of
from toolkit.checks.inspection import Counted, Inspection, SampledRows
from toolkit.checks.rows import EARLIEST_DAY, FAR_AHEAD, MOST_DIFFERENT, SAMPLE_ROWS
from toolkit.checks.selects import plain_columns, table_behind
from toolkit.findings import Finding, Result, Severity

_MIDDLE_PAGES = 10
"""How many pages of the sample start between the newest and the oldest rows."""

GROUPS = 1000
"""How many values are counted at most."""

_VALUES = 200
"""How many values are read to see how they are written."""


def origins_of(database: Database, rows: str) -> Mapping[str, ColumnOrigin]:
    """Return the table and column that columns of a SELECT come from.

    They are read from the text of the SELECT where the database reports none.
    """
    if reported := database.origins(rows):
        return reported
    return plain_columns(rows, [column.name for column in database.columns(rows)])


class SqlInspection(Inspection):
    """A section in its database, under inspection; `opened` has its columns."""

    def __init__(
        self, adapter: SqlAdapter, kind: ResourceType, deadline: float
    ) -> None:
        self.opened = adapter.section(kind)
        super().__init__(self.opened.mapping)
        self.adapter = adapter
        self.mapping = adapter.mapping
        self.database = adapter.database
        self._deadline = deadline
        self._origins: dict[str, Mapping[str, ColumnOrigin]] = {}

    def run(
        self, subject: str, check: Callable[["SqlInspection"], Iterator[Result]]
    ) -> Iterator[Result]:
        """Run a check; note one that takes too long, and report an error of the database."""
        try:
            yield from check(self)
        except SourceTimedOutError:
            if subject == "rows":
                # Searches of clients read such a page too.
                text = "reading one page takes longer than source.timeout_seconds"
                yield self.finding(f"{subject}: {text}", Severity.WARNING)
            self.skip(subject, "it took longer than source.timeout_seconds")
        except UnfitError as error:
            # The columns of a section that this one refers to.
            yield from map(Finding.of, error.problems)
        except UnequalTextsError:
            self.skip(
                subject, "the service refuses searches by texts that sort wrongly"
            )
        except SourceDataError as error:
            yield self.finding(f"{subject}: {error}", Severity.ERROR)

    @property
    def is_late(self) -> bool:
        """Whether no time is left to measure anything."""
        return monotonic() > self._deadline

    # Rows

    @cached_property
    def served(self) -> Condition:
        """The condition that the rows meet that clients see."""
        query = SearchQuery(self.kind, (), Sort(SortKey.ID), 1)
        return self.opened.filters.of_query(query)

    def condition_of(self, place: Place) -> Condition:
        """Return the condition of the rows in which a field is read: served, and its `only_if`."""
        served = ALWAYS if place.rows else self.served
        if place.only_if is None:
            return served
        columns = self.columns_of(place)
        column = columns.column(place.only_if.column)
        return all_of([served, columns.among(column, sorted(place.only_if.values))])

    def count(self, columns: Columns, condition: Condition) -> int:
        """Return how many rows of a SELECT meet a condition."""
        ((rows,),) = self.database.fetch(columns.count(condition))
        return int(rows)

    @cached_property
    def sample(self) -> tuple[Record | RowFault, ...]:
        """Rows as the service reads them: newest, oldest, some between, last changed.

        When no time is left they are the first ones by id.
        """
        pages: list[Page] = []
        try:
            if self.is_late:
                pages.append(self._page(Sort(SortKey.ID)))
            else:
                pages.extend(self._pages())
        except SourceTimedOutError:
            # A sort without an index, as the measured searches will show. `extend` has kept the
            # pages that were read before.
            if not pages:
                pages.append(self._page(Sort(SortKey.ID)))
        rows: dict[object, Record | RowFault] = {}
        for page in pages:
            for position, row in zip(page.positions, page.rows, strict=True):
                # Each row without an id is kept.
                key = object() if position.id is None else position.id
                rows.setdefault(key, row)
        return tuple(rows.values())

    def cells(self) -> tuple[Sequence[str], SampledRows]:
        """Return the columns of rows, and the cells of some rows with their items."""
        selected = self.opened.selected
        statement = self.opened.columns.select(selected, self.served, limit=SAMPLE_ROWS)
        cells = self.database.fetch(statement)
        extras = self.opened.extras(self.database, cells)
        return selected, list(zip(cells, extras, strict=True))

    def values(self, place: Place) -> list[object]:
        """Return up to 200 values of a field as the source has them."""
        columns = self.opened.columns
        key = columns.key(place.field)
        statement = columns.select([key.column.name], key.present, limit=_VALUES)
        return [value for (value,) in self.database.fetch(statement)]

    def counted_codes(self, place: Place) -> Counted:
        """Return the codes of a field in all rows in which it counts."""
        (name,) = place.field.columns
        condition = ALWAYS if place.slot == "status" else self.condition_of(place)
        return self._counted(
            self.columns_of(place), name, condition, 2 * MOST_DIFFERENT
        )

    def counted_days(self, place: Place) -> Counted:
        """Return the values of a time: those before and after ordinary years, or all.

        All values are counted where SQL cannot compare the column as times.
        """
        name, condition = place.field.columns[0], self.served
        form = place.field.time.format if place.field.time else None
        sorts_as_time = form is None or sorts_as_text(form)
        if place.field.filter_column == name and sorts_as_time:
            time_column = self.opened.filters.time(place.slot)
            # A key without `absent`: values that stand for no time are far days too.
            key = KeyColumn(time_column.key.column)
            time_column = time_column._replace(key=key)
            early = datetime.combine(EARLIEST_DAY, time(), UTC)
            late = self.now + FAR_AHEAD
            is_far = any_of([time_column.since(late), time_column.before(early)])
            condition = all_of([condition, is_far])
        return self._counted(self.opened.columns, name, condition, GROUPS)

    def _counted(
        self, columns: Columns, name: str, condition: Condition, most: int
    ) -> list[tuple[object, int]]:
        """Return the values of a column with their numbers of rows."""
        statement = columns.count_by(columns.column(name), condition, most)
        return [(value, rows) for value, rows in self.database.fetch(statement)]

    @cached_property
    def now(self) -> datetime:
        """The time by the clock of the database, which writes last changes."""
        return self.database.server_time() or datetime.now(UTC)

    def _pages(self) -> Iterator[Page]:
        """Yield the pages of the sample until no time is left."""
        slots, unequal = SORTS[self.kind], self.opened.unequal
        sorts = [s for s in self.section.sorts if slots[s] not in unequal]
        key = SortKey.DATE if SortKey.DATE in sorts else SortKey.ID
        newest = self._page(Sort(key, descending=True))
        yield newest
        if not newest.more:
            return
        oldest = self._page(Sort(key))
        yield oldest
        begin, end = oldest.last, newest.last
        if begin and begin.moment and end and end.moment:
            step = (end.moment - begin.moment) / _MIDDLE_PAGES
            for number in range(_MIDDLE_PAGES):
                if self.is_late:
                    return
                after = Bound(begin.moment + step * number)
                yield self._page(Sort(key), SAMPLE_ROWS // _MIDDLE_PAGES, after)
        if SortKey.LAST_UPDATED in sorts:
            # The newest change is compared with the clock.
            yield self._page(Sort(SortKey.LAST_UPDATED, descending=True))

    def _page(
        self, sort: Sort, size: int = SAMPLE_ROWS, after: Bound | None = None
    ) -> Page:
        """Return a page of all rows, of the largest size unless another is named."""
        query = SearchQuery(self.kind, (), sort, size, after=after, placed=True)
        return self.adapter.search(query)

    # Columns

    def columns_of(self, place: Place) -> Columns:
        """Return the columns of the SELECT that a field comes from."""
        filters = self.opened.filters
        return filters.item_columns[place.rows] if place.rows else filters.columns

    def origins_of(self, rows: str) -> Mapping[str, ColumnOrigin]:
        """Return the table and column that columns of a SELECT come from."""
        if rows not in self._origins:
            self._origins[rows] = origins_of(self.database, rows) if rows else {}
        return self._origins[rows]

    def origin(self, place: Place) -> ColumnOrigin | None:
        """Return the column that filters and sorts compare; None where it is computed."""
        origins = self.origins_of(place.rows or self.section.rows)
        return origins.get(place.field.filter_column or "")

    def name(self, column: str) -> str:
        """Return the table.column that a column of the SELECT comes from, if it is known."""
        return str(self.origins_of(self.section.rows).get(column, column))

    def column(self, place: Place) -> str:
        """Return the table.column that a field comes from, as far as it is known."""
        origins = self.origins_of(place.rows or self.section.rows)
        return ", ".join(str(origins.get(name, name)) for name in place.field.columns)

    def table_of_ids(self) -> str:
        """Return the table that the ids come from, "" where it is not known."""
        rows = self.section.rows
        name = self.section.fields["id"].columns[0]
        origin = self.origins_of(rows).get(name)
        return origin.table if origin else table_behind(rows, name)

    @cached_property
    def compared(self) -> tuple[FieldMapping, ...]:
        """The fields that searches and sorts compare."""
        section = self.section
        rows = SEARCH_PARAMETERS[self.kind]
        slots = {slot for name in section.parameters for slot in rows[name].slots}
        slots |= {SORTS[self.kind].get(key, "") for key in section.sorts}
        return tuple(place.field for place in self.places if place.slot in slots)

    def kind_of(self, expression: str, source: str) -> ColumnKind:
        """Return the kind of an expression; `source` is what follows FROM.

        Return OTHER where the database cannot select it, or not as one column.
        """
        try:
            (column,) = self.database.columns(f"SELECT {expression} AS a FROM {source}")
        except (SourceDataError, ValueError):
            return ColumnKind.OTHER
        return column.kind

    # Other sections

    def open(self, section: ResourceMapping) -> OpenSqlSection:
        """Return another section of the same source, with its columns."""
        kind = section.resource_type
        alone = replace(self.mapping, resources={kind: section})
        return open_section(self.database, alone, kind)

    @property
    def survivor(self) -> tuple[Place, str]:
        """The field `replaced_by` of the section of patients, and its column."""
        patients = self.mapping.resources[ResourceType.PATIENT]
        place = next(p for p in places_of(patients) if p.slot == "replaced_by")
        origins, names = self.origins_of(patients.rows), place.field.columns
        return place, ", ".join(str(origins.get(name, name)) for name in names)
