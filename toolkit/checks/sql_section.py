"""A section of a mapping in its database, under inspection, and what was read of it."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

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
from adapters.mapping.model import FieldMapping, ResourceMapping, SourceMapping
from adapters.mapping.slots import Place, places_of
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from adapters.sql.adapter import (
    OpenSqlSection,
    UnequalTextsError,
    UnfitError,
    open_section,
)
from adapters.sql.columns import ColumnKind
from adapters.sql.dialects.base import Origin
from adapters.sql.engine import Database
from adapters.sql.query import ALWAYS, Columns, Condition, all_of
from toolkit.checks.joins import table_behind
from toolkit.checks.rows import SAMPLE
from toolkit.findings import Finding, Result, Severity

_MIDDLE_PAGES = 10
"""How many pages of the sample start between the newest and the oldest rows."""


def table_and_column(origin: Origin) -> tuple[str, str]:
    """Return table and column as two names of the same compare, with a schema or not."""
    table = origin.table.rpartition(".")[2]
    return re.sub(r'["`]', "", table).lower(), origin.column.lower()


class Inspection:
    """A section under inspection, and what was read of it already."""

    def __init__(
        self,
        section: OpenSqlSection,
        mapping: SourceMapping,
        database: Database,
        search: Callable[[SearchQuery], Page],
        deadline: float,
    ) -> None:
        self.section = section
        self.mapping = mapping
        self.database = database
        self.search = search
        self._deadline = deadline
        self.kind = section.mapping.resource_type
        self.places = places_of(section.mapping)
        self.reported: set[tuple[str, str]] = set()
        """Columns and the rules whose breaches were counted in all rows."""
        self.skipped: list[str] = []
        """What is not examined, and why."""
        self._origins: dict[str, Mapping[str, Origin]] = {}

    def run(
        self, subject: str, check: Callable[["Inspection"], Iterator[Result]]
    ) -> Iterator[Result]:
        """Run a check; when the database takes too long, note that and go on."""
        try:
            yield from check(self)
        except SourceTimedOutError:
            if subject == "rows":
                # No client gets a page of rows then.
                text = "not even a page of rows is read within source.timeout_seconds"
                yield self.finding(f"{subject}: {text}", Severity.WARNING)
            self.skip(subject, "it took longer than source.timeout_seconds")
        except UnfitError as error:
            # Of another section, which this one refers to.
            yield from map(Finding.of, error.problems)
        except UnequalTextsError:
            self.skip(subject, "the service refuses searches by texts that err")
        except SourceDataError as error:
            yield self.finding(f"{subject}: {error}", Severity.ERROR)

    @property
    def is_late(self) -> bool:
        """Whether no time is left to measure anything."""
        return time.monotonic() > self._deadline

    def skip(self, subject: str, reason: str) -> None:
        """Note what is not examined, for the one finding about it."""
        self.skipped.append(f"{subject} ({reason})")

    # Findings

    def at(
        self,
        place: Place,
        text: str,
        severity: Severity,
        remedy: str = "",
        topic: str = "",
    ) -> Finding:
        """Return the finding of a field."""
        column = self.column(place)
        return Finding.of_field(place, column, text, severity, remedy, topic)

    def finding(self, text: str, severity: Severity, topic: str = "") -> Finding:
        """Return a finding of the section as a whole."""
        mark = self.section.mapping.mark
        return Finding.at(mark, text, str(self.kind), severity=severity, topic=topic)

    # Rows

    @cached_property
    def served(self) -> Condition:
        """What the rows meet that clients see."""
        query = SearchQuery(self.kind, (), Sort(SortKey.ID), 1)
        return self.section.filters.of_query(query)

    def counted(self, place: Place) -> Condition:
        """Return what the rows meet in which a field counts."""
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
        """Rows as the service reads them: newest, oldest, some between, last changed."""
        pages: list[Page] = []
        try:
            pages.extend(
                [self._page(Sort(SortKey.ID))] if self.is_late else self._pages()
            )
        except SourceTimedOutError:
            # No index has their order, as the measured searches will show.
            pages = pages or [self._page(Sort(SortKey.ID))]
        rows: dict[object, Record | RowFault] = {}
        for page in pages:
            for at, row in zip(page.positions, page.rows, strict=True):
                rows.setdefault(object() if at.id is None else at.id, row)
        return tuple(rows.values())

    @property
    def records(self) -> list[Record]:
        """The rows of the sample that can be served."""
        return [row for row in self.sample if not isinstance(row, RowFault)]

    def _pages(self) -> Iterator[Page]:
        slots, unequal = SORTS[self.kind], self.section.unequal
        sorts = [s for s in self.section.mapping.sorts if slots[s] not in unequal]
        key = SortKey.DATE if SortKey.DATE in sorts else SortKey.ID
        yield (newest := self._page(Sort(key, descending=True)))
        if not newest.more:
            return
        yield (oldest := self._page(Sort(key)))
        first, last = oldest.last, newest.last
        if first and first.moment and last and last.moment:
            step = (last.moment - first.moment) / _MIDDLE_PAGES
            for number in range(_MIDDLE_PAGES):
                if self.is_late:
                    return
                after = Bound(first.moment + step * number)
                yield self._page(Sort(key), SAMPLE // _MIDDLE_PAGES, after)
        if SortKey.LAST_UPDATED in sorts:
            # The newest change is compared with the clock.
            yield self._page(Sort(SortKey.LAST_UPDATED, descending=True))

    def _page(self, sort: Sort, size: int = SAMPLE, after: Bound | None = None) -> Page:
        query = SearchQuery(self.kind, (), sort, size, after=after, placed=True)
        return self.search(query)

    # Columns

    def place(self, slot: str) -> Place:
        """Return the section's own field of a slot."""
        return next(p for p in self.places if p.slot == slot and not p.rows)

    def columns_of(self, place: Place) -> Columns:
        """Return the columns of the SELECT that a field comes from."""
        filters = self.section.filters
        return filters.item_columns[place.rows] if place.rows else filters.columns

    def origins_of(self, rows: str) -> Mapping[str, Origin]:
        """Return the table and column that columns of a SELECT come from."""
        if rows not in self._origins:
            self._origins[rows] = self.database.origins(rows) if rows else {}
        return self._origins[rows]

    def origin(self, place: Place) -> Origin | None:
        """Return the column that filters and sorts compare; None where it is computed."""
        origins = self.origins_of(place.rows or self.section.mapping.rows)
        return origins.get(place.field.filter_column or "")

    def column(self, place: Place) -> str:
        """Return the table.column that a field comes from, as far as it is known."""
        origins = self.origins_of(place.rows or self.section.mapping.rows)
        return ", ".join(str(origins.get(name, name)) for name in place.field.columns)

    def table_of_ids(self) -> str:
        """Return the table whose rows ids name, "" where it is not known."""
        rows = self.section.mapping.rows
        (name, *_) = self.section.mapping.fields["id"].columns
        origin = self.origins_of(rows).get(name)
        return origin.table if origin else table_behind(rows, name)

    @cached_property
    def compared(self) -> tuple[FieldMapping, ...]:
        """The fields that searches and sorts compare."""
        section = self.section.mapping
        rows = SEARCH_PARAMETERS[self.kind]
        slots = {slot for name in section.parameters for slot in rows[name].slots}
        slots |= {SORTS[self.kind].get(key, "") for key in section.sorts}
        return tuple(place.field for place in self.places if place.slot in slots)

    def kind_of(self, expression: str, source: str) -> ColumnKind:
        """Return the kind of an expression on what FROM names, OTHER where it is not certain."""
        try:
            (only,) = self.database.columns(f"SELECT {expression} AS a FROM {source}")
        except (SourceDataError, ValueError):
            return ColumnKind.OTHER
        return only.kind

    # Other sections

    def opened(self, section: ResourceMapping) -> OpenSqlSection:
        """Return another section of the same source, with its columns."""
        kind = section.resource_type
        alone = replace(self.mapping, resources={kind: section})
        return open_section(self.database, alone, kind)

    @property
    def survivor(self) -> tuple[Place, str]:
        """Who replaced a patient: its field in their section, and its column."""
        patients = self.mapping.resources[ResourceType.PATIENT]
        place = next(p for p in places_of(patients) if p.slot == "replaced_by")
        origins, names = self.origins_of(patients.rows), place.field.columns
        return place, ", ".join(str(origins.get(name, name)) for name in names)
