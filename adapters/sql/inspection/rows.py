"""Rows of one section looked at: a sample of both ends, its ids, its references."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

from adapters.contract import (
    Bound,
    DateValue,
    EncounterRecord,
    Key,
    Page,
    Prefix,
    Record,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    Token,
    TokenCriterion,
)
from adapters.inspection import SAMPLE, Observation, Weight
from adapters.inspection.faults import empty
from adapters.inspection.times import far_days, far_from, has_far_days
from adapters.mapping.checks import sorts_as_text
from adapters.mapping.model import ItemMapping, SourceMapping
from adapters.mapping.places import Place, places_of
from adapters.sql.conditions import ALWAYS, Filter, all_of
from adapters.sql.database import Database
from adapters.sql.dialects.plans import Origin
from adapters.sql.moments import KeyColumn
from adapters.sql.section import Section
from adapters.sql.statements import Shape

_AT_ONCE = 200
"""How many patients are asked for in one statement."""

_PAGES = 10
"""From how many instants rows are taken that are neither the newest nor the oldest."""

_GROUPS = 1000


class Looked:
    """A section, how to ask it, and what was read of it already."""

    def __init__(
        self,
        section: Section,
        mapping: SourceMapping,
        database: Database,
        search: Callable[[SearchQuery], Page],
    ) -> None:
        self.section = section
        self.mapping = mapping
        self.database = database
        self.search = search
        self.kind = section.mapping.resource_type
        self.places = places_of(section.mapping)
        self.told: set[str] = set()
        """Columns whose codes and gaps were counted in all rows."""
        self._origins: dict[str, Mapping[str, Origin]] = {}

    def origins_of(self, rows: str) -> Mapping[str, Origin]:
        """Return the table and column that columns of a SELECT come from."""
        if rows not in self._origins:
            self._origins[rows] = self.database.origins(rows)
        return self._origins[rows]

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """The names of the section's own columns as the database has them."""
        origins = self.origins_of(self.section.mapping.rows)
        return {name: str(origin) for name, origin in origins.items()}

    @cached_property
    def served(self) -> Filter:
        """What the rows meet that clients see."""
        query = SearchQuery(self.kind, (), Sort(SortKey.ID), 1)
        return self.section.filters.of_query(query)

    @cached_property
    def sample(self) -> tuple[Record | RowFault, ...]:
        """Rows as the service reads them: newest, oldest, some between; each once."""
        sorts = self.section.mapping.sorts
        key = SortKey.DATE if SortKey.DATE in sorts else SortKey.ID
        newest = self._page(Sort(key, descending=True))
        if not newest.more:
            return newest.rows
        oldest = self._page(Sort(key))
        found: dict[tuple[Key, Key], Record | RowFault] = {}
        for page in (newest, oldest, *self._between(key, oldest, newest)):
            for at, row in zip(page.positions, page.rows, strict=True):
                found.setdefault((at.id, at.key), row)
        return tuple(found.values())

    def some_rows(self) -> list[tuple[Any, Mapping[ItemMapping, Any]]]:
        """Return rows that clients see, as the database gives them, with those of items."""
        section = self.section
        wanted = self.served
        shape = Shape(
            section.mapping.rows, section.selected, wanted.condition, limited=True
        )
        rows = self.database.fetch(shape, wanted.values, SAMPLE)
        return list(zip(rows, section.extras(self.database, rows), strict=False))

    def _between(self, key: SortKey, oldest: Page, newest: Page) -> Iterator[Page]:
        """Yield pages from instants between the newest and the oldest rows."""
        first, last = oldest.last, newest.last
        if not (first and first.moment and last and last.moment):
            return
        for step in range(_PAGES):
            moment = first.moment + (last.moment - first.moment) * step / _PAGES
            yield self._page(Sort(key), SAMPLE // _PAGES, Bound(moment))

    def _page(self, sort: Sort, size: int = SAMPLE, after: Bound | None = None) -> Page:
        query = SearchQuery(self.kind, (), sort, size, after=after, placed=True)
        return self.search(query)

    def place(self, slot: str) -> Place:
        """Return the field of a slot by its name in records."""
        return next(p for p in self.places if p.field.slot == slot and not p.rows)

    def column(self, place: Place) -> str:
        """Return the table.column that a field comes from, as far as it is known."""
        own = self.origins_of(place.rows or self.section.mapping.rows)
        return ", ".join(str(own.get(name, name)) for name in place.field.columns)

    def untold(self, subject: str) -> Observation:
        """Return the note about what took too long to be told."""
        text = (
            f"{subject}: not told, the statement took too long (source.timeout_seconds)"
        )
        return self.seen(text, Weight.NOTE)

    def seen(self, text: str, weight: Weight) -> Observation:
        """Return an observation of the section as a whole."""
        mark = self.section.mapping.mark
        return Observation(mark, str(self.kind), "", text, weight)


def repeated_ids(looked: Looked) -> Iterator[Observation]:
    """Tell ids that several rows have, and rows that have none."""
    section = looked.section
    shape = Shape(
        section.mapping.rows,
        (),
        looked.served.condition,
        limited=True,
        grouped=section.id,
    )
    groups = looked.database.fetch(shape, looked.served.values, _GROUPS)
    place = looked.place("id")
    repeated = [rows for id, rows in groups if id is not None and rows > 1]
    if repeated:
        many = "at least " if len(groups) == _GROUPS == len(repeated) else ""
        text = (
            f"{many}{len(repeated):,} ids have several rows, up to {repeated[0]:,}: the"
            " SELECT must return one row for each"
        )
        yield Observation.at(place, looked.column(place), text, Weight.ERROR)
    for id, rows in groups:
        if id is None:
            text = f"{rows:,} rows have no id, and cannot be served"
            yield Observation.at(place, looked.column(place), text, Weight.ERROR)


def empty_required(looked: Looked) -> Iterator[Observation]:
    """Tell how many rows lack what every row must have, but for ids and codes."""
    section = looked.section
    columns = section.filters.columns
    for place in looked.places:
        field = place.field
        if (
            field.slot in section.mapping.required - {"id"}
            and len(field.columns) == 1
            and field.codes is None
        ):
            missing = columns.key(replace(field, search_column=None)).missing
            wanted = all_of([looked.served, missing])
            shape = Shape(section.mapping.rows, (), wanted.condition)
            ((rows,),) = looked.database.fetch(shape, wanted.values)
            looked.told.add(field.columns[0])
            if rows:
                yield empty(place, looked.column(place), rows)


def far_times(looked: Looked, now: datetime) -> Iterator[Observation]:
    """Tell the far days on which stays start or end, of all rows."""
    for place in filter(has_far_days, looked.places):
        column = looked.section.filters.columns.column(place.field.columns[0])
        wanted = all_of([looked.served, _is_far(looked, place, now)])
        rows = looked.section.mapping.rows
        shape = Shape(rows, (), wanted.condition, limited=True, grouped=column)
        values = looked.database.fetch(shape, wanted.values, _GROUPS)
        yield from far_days(place, looked.column(place), values, now)


def _is_far(looked: Looked, place: Place, now: datetime) -> Filter:
    """Return what keeps near days out, where the column is compared and sorts."""
    field = place.field
    form = field.time.format if field.time else None
    if field.filter_column != field.columns[0] or (form and not sorts_as_text(form)):
        return ALWAYS
    far = far_from(now)
    at = DateValue(Prefix.GE, far, far)
    time = looked.section.filters.time(place.slot)
    # What stands for none is told by its text, as rows are read: here it may look the same.
    return replace(time, key=KeyColumn(time.key.column)).from_(at)


def strangers(looked: Looked) -> Iterator[Observation]:
    """Tell stays of the sample whose patient is none of the patients."""
    if ResourceType.PATIENT not in looked.mapping.resources:
        return
    stays = [row for row in looked.sample if isinstance(row, EncounterRecord)]
    wanted = tuple(dict.fromkeys(stay.patient_id for stay in stays))
    found: set[str] = set()
    for start in range(0, len(wanted), _AT_ONCE):
        found |= _patients(looked, wanted[start : start + _AT_ONCE])
    lost = [stay for stay in stays if stay.patient_id not in found]
    if lost:
        text = (
            f"{len(lost):,} of {len(stays):,} stays refer to a patient whom the patients"
            " do not have"
        )
        place = looked.place("patient_id")
        yield Observation.at(place, looked.column(place), text, Weight.WARNING)


def _patients(looked: Looked, ids: tuple[str, ...]) -> set[str]:
    """Return which of these ids patients have, those that cannot be served included."""
    asked = TokenCriterion("_id", tuple(Token(None, id) for id in ids))
    sort = Sort(SortKey.ID)
    query = SearchQuery(ResourceType.PATIENT, (asked,), sort, 2 * len(ids))
    rows = looked.search(query).rows
    found = {row.id for row in rows if not isinstance(row, RowFault)}
    if any(isinstance(row, RowFault) for row in rows):
        # A fault does not say whose row it is: each is asked for by itself.
        found |= {id for id in ids if id not in found and _is_there(looked, id)}
    return found


def _is_there(looked: Looked, id: str) -> bool:
    asked = TokenCriterion("_id", (Token(None, id),))
    query = SearchQuery(ResourceType.PATIENT, (asked,), Sort(SortKey.ID), 1)
    return bool(looked.search(query).rows)
