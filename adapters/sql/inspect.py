"""What `mapping check --live` reports about a database, section by section.

Columns and their types, codes, blanks, rows that cannot be served, ids, references, merged
patients, and whether filters and sorts have an index (from the database's plans). Nothing
that is reported quotes a value of a person.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, TypeAlias

from adapters.contract import (
    Bound,
    Criterion,
    EncounterRecord,
    Key,
    NotAskableError,
    Page,
    Record,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    SourceTimedOutError,
    StringCriterion,
    Token,
    TokenCriterion,
)
from adapters.inspection import (
    MOST,
    SAMPLE,
    Counted,
    Look,
    Observation,
    Weight,
    broken_rules,
    counted,
    criterion_of,
    doubtful_times,
    empty,
    far_days,
    far_from,
    has_far_days,
    has_offset,
    hidden_zone,
    hides_its_zone,
    never_filled,
    unnamed,
    unused,
)
from adapters.mapping.model import FieldMapping, ItemMapping, SourceMapping, TimeRule
from adapters.mapping.slots import Kind as SlotKind
from adapters.mapping.slots import Place, places_of
from adapters.mapping.times import sorts_as_text
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from adapters.sql.adapter import Section, UnfitError
from adapters.sql.columns import FOLDS, NUMBERS, TEXTS, TIMES, Kind
from adapters.sql.dialects.base import Origin, Plan
from adapters.sql.engine import Database
from adapters.sql.query import (
    ALWAYS,
    NEVER,
    Columns,
    Condition,
    KeyColumn,
    SqlColumn,
    all_of,
    in_rows,
)

Observations: TypeAlias = Iterator[Observation]

_BATCH = 200
"""How many patients are looked up by one statement."""

_MIDDLE_PAGES = 10
"""How many pages of the sample start between the newest and the oldest rows."""

_GROUPS = 1000
"""How many values are counted at most."""

_TEXT_SAMPLE = 200
"""How many texts are read to see how times are written."""

_T_INDEX = 10
"""Where ISO 8601 has its T."""


def looks(
    section: Section,
    mapping: SourceMapping,
    database: Database,
    search: Callable[[SearchQuery], Page],
) -> Iterator[Look]:
    """Yield the checks of one section."""
    inspection = Inspection(section, mapping, database, search)
    for subject, check in inspection.checks().items():
        ask = partial(inspection.in_time, subject, check)
        yield Look(f"{inspection.kind}: {subject}", ask)


def _first_row(kind: ResourceType, *criteria: Criterion, count: int = 1) -> SearchQuery:
    return SearchQuery(kind, criteria, Sort(SortKey.ID), count)


_LIMIT = re.compile(
    r"\ASELECT\s+TOP\s+\(?\d|\b(LIMIT|FETCH\s+(FIRST|NEXT))\s+\d+(\s+OFFSET\s+\d+|\s+ROWS?\s+ONLY)?\s*\Z",
    re.IGNORECASE,
)


def is_cut(rows: str) -> bool:
    """Return whether a SELECT as a whole returns no more than a number of rows."""
    return _LIMIT.search(rows.strip()) is not None


_MAY_END_IN_BLANKS = {*TEXTS, Kind.LOOSE} - {Kind.PADDED}
_EXACT = (SlotKind.ID, SlotKind.EXACT, SlotKind.SYSTEM, SlotKind.CODE, SlotKind.FLAG)


_Finding: TypeAlias = tuple[Weight, str, str]
"""How much it matters, what is wrong with the type of a column, and the remedy."""

_NO_FORMAT = (
    "a column of numbers, without a format: say how they are written, or make a time of"
    " them in the SELECT"
)
_NUMBERS_AS_TEXT = (
    "a column of numbers is searched as text: make a text or a time of it in the SELECT"
)
_TWO_COLUMNS = (
    "compared by a column of days, and has a time of day: searches by the hour and orders"
    " err. Make one column of both in the SELECT, and name that"
)
_WITH_T = (
    "texts with a T between day and time, which searches compare with texts that have a"
    " blank there: say the format, or make a time of them in the SELECT"
)
_NO_TIMES = {
    Kind.OTHER: Weight.WARNING,
    Kind.BOOLEAN: Weight.ERROR,
    Kind.UUID: Weight.ERROR,
}


def _iso_format(values: list[object]) -> str:
    """Return the format of a few texts, "" where none has the T of ISO 8601."""
    texts = [value.strip() for value in values if isinstance(value, str)]
    if not any(text[_T_INDEX : _T_INDEX + 1] == "T" for text in texts):
        return ""
    if all(text.endswith("Z") for text in texts):
        return 'format: "%Y-%m-%dT%H:%M:%SZ", time_zone: UTC'
    return 'format: "%Y-%m-%dT%H:%M:%S"'


def _of_id(place: Place, kind: Kind, is_compared: bool) -> Iterator[_Finding]:
    if kind is Kind.NUMBER and place.kind is SlotKind.ID:
        text = "a type with fractions: an id is best an integer or a text (CAST in the SELECT)"
        yield Weight.NOTE, text, ""
    elif kind in TIMES:
        yield Weight.WARNING, "a column of times cannot be an id", ""
    elif kind in FOLDS and is_compared:
        text = (
            "compared by the database without case: the service compares exactly, and"
            " pages in the order of such a column are sorted without an index"
        )
        yield Weight.NOTE, text, ""
    elif kind is Kind.PADDED:
        text = "texts that end in blanks (CHAR): the service takes them away"
        yield Weight.NOTE, text, ""


def _of_parts(_: Place, kind: Kind, is_compared: bool) -> Iterator[_Finding]:
    if kind is Kind.OTHER and is_compared:
        text = "a list cannot be searched: name a column of texts with search:"
        yield Weight.ERROR, text, ""


_OF_KIND: Mapping[SlotKind, Callable[[Place, Kind, bool], Iterator[_Finding]]] = (
    MappingProxyType(
        {SlotKind.ID: _of_id, SlotKind.EXACT: _of_id, SlotKind.PARTS: _of_parts}
    )
)


_COMPUTED = (
    ", as the SELECT computes the column: an index of that expression serves if one table"
    " has all of it (with UNION each table needs one), else a plain column that search:"
    " names, or a view that the database keeps as a table"
)


def _create_index(origin: Origin, *more: Origin) -> str:
    columns = [each.column for each in (origin, *more)]
    name = origin.index_name(*columns)
    return f"CREATE INDEX {name} ON {origin.table} ({', '.join(columns)});"


_VALUE = re.compile(r"'|<expr>|[=<>] -?\d")
"""What a plan shows where an expression is compared with a value, not with a column."""

_NO_ALIAS = r"(?:ON|WHERE|JOIN|LEFT|RIGHT|INNER|CROSS|FULL|GROUP|ORDER|UNION)\b"
_ALIAS = re.compile(
    rf"\b(?:FROM|JOIN)\s+([\w.]+)(?:\s+(?:AS\s+)?(?!{_NO_ALIAS})(\w+))?", re.IGNORECASE
)


class Inspection:
    """A section under inspection, and what was read of it already."""

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
        self.counted: set[str] = set()
        """Columns whose codes and gaps were counted in all rows."""
        self._origins: dict[str, Mapping[str, Origin]] = {}

    def checks(self) -> Mapping[str, Callable[[], Observations]]:
        """Return the checks by their subject, in the order in which they run."""
        is_stays = self.kind is ResourceType.ENCOUNTER
        of_stays: dict[str, Callable[[], Observations]] = {
            "patients": self._lost_patients,
            "merged patients": self._merged_patients,
        }
        return {
            "all rows": self._limited_rows,
            "types of columns": self._unfit_kinds,
            "codes": self._codes,
            "blanks": self._trailing_blanks,
            "required values": self._empty_required,
            "rows": self._invalid_rows,
            "far days": self._far_days,
            "ids": self._repeated_ids,
            **(of_stays if is_stays else {}),
            "indexes of filters": self._filters,
            "indexes of sorts": self._sorts,
        }

    def in_time(self, subject: str, check: Callable[[], Observations]) -> Observations:
        """Run a check; when the database takes too long, report that and go on."""
        try:
            yield from check()
        except SourceTimedOutError:
            yield self.timed_out(subject)
        except UnfitError as error:
            # Of another section, which this one refers to.
            yield from map(Observation.of, error.problems)
        except SourceDataError as error:
            yield self.observation(f"{subject}: {error}", Weight.ERROR)

    @cached_property
    def served(self) -> Condition:
        """What the rows meet that clients see."""
        return self.section.filters.of_query(_first_row(self.kind))

    @cached_property
    def sample(self) -> tuple[Record | RowFault, ...]:
        """Rows as the service reads them: newest, oldest, some between; each once."""
        sorts = self.section.mapping.sorts
        key = SortKey.DATE if SortKey.DATE in sorts else SortKey.ID
        newest = self._page(Sort(key, descending=True))
        if not newest.more:
            return newest.rows
        oldest = self._page(Sort(key))
        rows: dict[tuple[Key, Key], Record | RowFault] = {}
        for page in (newest, oldest, *self._between(key, oldest, newest)):
            for at, row in zip(page.positions, page.rows, strict=True):
                rows.setdefault((at.id, at.key), row)
        return tuple(rows.values())

    def _between(self, key: SortKey, oldest: Page, newest: Page) -> Iterator[Page]:
        """Yield pages from instants between the newest and the oldest rows."""
        first, last = oldest.last, newest.last
        if not (first and first.moment and last and last.moment):
            return
        for step in range(_MIDDLE_PAGES):
            moment = first.moment + (last.moment - first.moment) * step / _MIDDLE_PAGES
            yield self._page(Sort(key), SAMPLE // _MIDDLE_PAGES, Bound(moment))

    def _page(self, sort: Sort, size: int = SAMPLE, after: Bound | None = None) -> Page:
        query = SearchQuery(self.kind, (), sort, size, after=after, placed=True)
        return self.search(query)

    def source_rows(self) -> list[tuple[Any, Mapping[ItemMapping, Any]]]:
        """Return rows that clients see, as the database returns them, with their items."""
        section = self.section
        statement = section.columns.select(section.selected, self.served, limit=SAMPLE)
        rows = self.database.fetch(statement)
        return list(zip(rows, section.extras(self.database, rows), strict=False))

    def count(self, columns: Columns, condition: Condition) -> int:
        """Return how many rows of a SELECT meet a condition."""
        ((rows,),) = self.database.fetch(columns.count(condition))
        return int(rows)

    def columns_of(self, place: Place) -> Columns:
        """Return the columns of the SELECT that a field comes from."""
        filters = self.section.filters
        return filters.item_columns[place.rows] if place.rows else filters.columns

    def place(self, slot: str) -> Place:
        """Return the section's own field of a slot."""
        return next(p for p in self.places if p.slot == slot and not p.rows)

    def origins_of(self, rows: str) -> Mapping[str, Origin]:
        """Return the table and column that columns of a SELECT come from."""
        if rows not in self._origins:
            self._origins[rows] = self.database.origins(rows)
        return self._origins[rows]

    def origin(self, place: Place) -> Origin | None:
        """Return the column that filters and sorts compare; None where it is computed."""
        origins = self.origins_of(place.rows or self.section.mapping.rows)
        return origins.get(place.field.filter_column or "")

    def column(self, place: Place) -> str:
        """Return the table.column that a field comes from, as far as it is known."""
        origins = self.origins_of(place.rows or self.section.mapping.rows)
        return ", ".join(str(origins.get(name, name)) for name in place.field.columns)

    @cached_property
    def compared(self) -> tuple[FieldMapping, ...]:
        """The fields that searches and sorts compare."""
        section = self.section.mapping
        rows = SEARCH_PARAMETERS[self.kind]
        slots = {slot for name in section.parameters for slot in rows[name].slots}
        slots |= {SORTS[self.kind].get(key, "") for key in section.sorts}
        return tuple(place.field for place in self.places if place.slot in slots)

    def at(
        self, place: Place, text: str, weight: Weight, remedy: str = ""
    ) -> Observation:
        """Return the observation of a field."""
        return Observation.at(place, self.column(place), text, weight, remedy)

    def observation(self, text: str, weight: Weight) -> Observation:
        """Return an observation of the section as a whole."""
        mark = self.section.mapping.mark
        return Observation(mark, str(self.kind), "", text, weight)

    def timed_out(self, subject: str) -> Observation:
        """Return the note about a check that took too long."""
        text = (
            f"{subject}: not told, the statement took too long (source.timeout_seconds)"
        )
        return self.observation(text, Weight.NOTE)

    def _limited_rows(self) -> Observations:
        """Report a LIMIT that was left in from when the statement was tried by hand."""
        if is_cut(self.section.mapping.rows):
            text = "the SELECT of rows has a LIMIT: what is beyond it is never served"
            yield self.observation(text, Weight.WARNING)

    def _invalid_rows(self) -> Observations:
        """Report the rows of the sample that cannot be served, doubtful times, unused fields."""
        rows, section = self.sample, self.section.mapping
        origins = self.origins_of(section.rows)
        columns = {name: str(origin) for name, origin in origins.items()}
        yield from broken_rules(section, rows, columns, self.counted)
        yield from doubtful_times(section, rows, columns, datetime.now(UTC))
        selected, source_rows = self.section.selected, self.source_rows()
        yield from never_filled(section, selected, source_rows, columns)

    def _repeated_ids(self) -> Observations:
        """Report ids that several rows have, and rows that have none."""
        section = self.section
        statement = section.columns.count_by(section.id, self.served, _GROUPS)
        groups = self.database.fetch(statement)
        place = self.place("id")
        repeated = [rows for id, rows in groups if id is not None and rows > 1]
        if repeated:
            many = "at least " if len(groups) == _GROUPS == len(repeated) else ""
            text = (
                f"{many}{len(repeated):,} ids have several rows, up to {repeated[0]:,}: the"
                " SELECT must return one row for each"
            )
            yield self.at(place, text, Weight.ERROR)
        for id, rows in groups:
            if id is None:
                text = f"{rows:,} rows have no id, and cannot be served"
                yield self.at(place, text, Weight.ERROR)

    def _empty_required(self) -> Observations:
        """Report how many rows lack what every row must have, but for ids and codes."""
        section = self.section
        required = section.mapping.required - {"id"}
        for place in self.places:
            field = place.field
            if field.slot in required and len(field.columns) == 1 and not field.codes:
                missing = section.columns.key(
                    replace(field, search_column=None)
                ).missing
                condition = all_of([self.served, missing])
                self.counted.add(field.columns[0])
                if rows := self.count(section.columns, condition):
                    yield empty(place, self.column(place), rows)

    def _far_days(self) -> Observations:
        """Report the far days on which stays start or end, of all rows."""
        now, columns = datetime.now(UTC), self.section.columns
        for place in filter(has_far_days, self.places):
            column = columns.column(place.field.columns[0])
            condition = all_of([self.served, self._is_far(place, now)])
            statement = columns.count_by(column, condition, _GROUPS)
            values = self.database.fetch(statement)
            yield from far_days(place, self.column(place), values, now)

    def _is_far(self, place: Place, now: datetime) -> Condition:
        """Return what keeps near days out, where the column is compared and sorts."""
        field = place.field
        form = field.time.format if field.time else None
        if field.filter_column != field.columns[0] or (
            form and not sorts_as_text(form)
        ):
            return ALWAYS
        time = self.section.filters.time(place.slot)
        # Texts that stand for no time are told apart as rows are read.
        return time._replace(key=KeyColumn(time.key.column)).since(far_from(now))

    def _lost_patients(self) -> Observations:
        """Report stays of the sample whose patient is missing."""
        if ResourceType.PATIENT not in self.mapping.resources:
            return
        stays = [row for row in self.sample if isinstance(row, EncounterRecord)]
        ids = tuple(dict.fromkeys(stay.patient_id for stay in stays))
        patients: set[str] = set()
        for start in range(0, len(ids), _BATCH):
            patients |= self._patients(ids[start : start + _BATCH])
        lost = [stay for stay in stays if stay.patient_id not in patients]
        if lost:
            text = (
                f"{len(lost):,} of {len(stays):,} stays refer to a patient whom the patients"
                " do not have"
            )
            yield self.at(self.place("patient_id"), text, Weight.WARNING)

    def _patients(self, ids: tuple[str, ...]) -> set[str]:
        """Return which of these ids patients have, those that cannot be served included."""

        def rows_of(*ids: str) -> tuple[Record | RowFault, ...]:
            by_id = TokenCriterion("_id", tuple(Token(None, id) for id in ids))
            query = _first_row(ResourceType.PATIENT, by_id, count=2 * len(ids))
            return self.search(query).rows

        rows = rows_of(*ids)
        patients = {row.id for row in rows if not isinstance(row, RowFault)}
        if len(patients) < len(rows):
            # A fault does not say whose row it is: each is looked up by itself.
            patients |= {id for id in ids if id not in patients and rows_of(id)}
        return patients

    def _merged_patients(self) -> Observations:
        """Report how many stays are of a patient who was replaced by another."""
        section, place = self.section, self.place("patient_id")
        survivors = section.filters.survivors
        if survivors is None or place.field.filter_column is None:
            return
        column = section.columns.column(place.field.filter_column)
        if column.kind is not survivors.id.kind:
            return
        patients = survivors.columns
        fields = self.mapping.resources[ResourceType.PATIENT].fields
        is_merged = patients.key(fields["replaced_by"]).present
        of_merged = in_rows(column, patients, survivors.id, is_merged)
        stays = self.count(section.columns, all_of([self.served, of_merged]))
        if stays:
            text = (
                f"{stays:,} {'stay has' if stays == 1 else 'stays have'} a patient who was"
                " replaced by another, whose searches do not find them: let the SELECT of rows"
                " give the patient who lives on"
            )
            yield self.at(place, text, Weight.WARNING)

    def _codes(self) -> Observations:
        """Count the codes of each column and compare them with their tables."""
        counts: list[Counted] = []
        for place in self.places:
            if place.field.codes is None or not place.field.columns:
                continue
            try:
                counts.append(self._count_codes(place))
            except SourceTimedOutError:
                yield self.timed_out(f"codes of {self.column(place)}")
        required = self.section.mapping.required
        yield from dict.fromkeys(
            one for each in counts for one in unnamed(each, required)
        )
        by_table: dict[str, list[Counted]] = {}
        for each in counts:
            by_table.setdefault(each.codes.name, []).append(each)
        for of_table in by_table.values():
            if all(len(each.counts) <= MOST for each in of_table):
                yield from unused(of_table[-1].codes, of_table)

    def _count_codes(self, place: Place) -> Counted:
        """Count the codes in rows that are served, and in items that count."""
        columns = self.columns_of(place)
        (name,) = place.field.columns
        parts = []
        if not place.rows and place.field.slot != "status":
            parts.append(self.served)
        if place.only_if is not None:
            column = columns.column(place.only_if.column)
            parts.append(columns.among(column, sorted(place.only_if.values)))
        statement = columns.count_by(columns.column(name), all_of(parts), 2 * MOST)
        values = [tuple(row) for row in self.database.fetch(statement)]
        self.counted.add(name)
        return counted(place, self.column(place), values)

    def _trailing_blanks(self) -> Observations:
        """Report how many rows have an id, number or code that searches by it miss."""
        for place in self.places:
            is_compared = place.field in self.compared or place.kind is SlotKind.ID
            if not (is_compared and place.kind in _EXACT and place.field.filter_column):
                continue
            columns = self.columns_of(place)
            column = columns.column(place.field.filter_column)
            if column.kind not in _MAY_END_IN_BLANKS:
                continue
            served = ALWAYS if place.rows else self.served
            if rows := self.count(columns, all_of([served, column.ends_in_blanks])):
                text = (
                    f"{rows:,} {'row ends' if rows == 1 else 'rows end'} in blanks, which the"
                    " database counts: searches by what is shown do not find them. RTRIM the"
                    " column in the SELECT, and let an index have that"
                )
                yield self.at(place, text, Weight.ERROR)

    def _unfit_kinds(self) -> Observations:
        """Report the columns whose type makes the service fail, err or slow down."""
        for place in self.places:
            if place.rows or not place.field.columns:
                continue
            name = place.field.filter_column or place.field.columns[0]
            column = self.section.columns.column(name)
            is_compared = place.field in self.compared
            rule = place.field.time
            if rule is not None and place.kind in (SlotKind.TIME, SlotKind.DATE):
                findings = self._of_time(place, column, rule, is_compared)
            elif place.kind in _OF_KIND:
                findings = _OF_KIND[place.kind](place, column.kind, is_compared)
            else:
                continue
            if hides_its_zone(place) and column.kind is not Kind.INSTANT:
                values = self._values(place) if place.field.filter_column else []
                if not any(map(has_offset, values)):
                    yield hidden_zone(place, self.column(place))
            for weight, text, remedy in findings:
                yield self.at(place, text, weight, remedy)

    def _of_time(
        self, place: Place, column: SqlColumn, rule: TimeRule, is_compared: bool
    ) -> Iterator[_Finding]:
        kind, field = column.kind, place.field
        is_day = kind is Kind.DATE and place.kind is SlotKind.TIME
        is_text = kind in (*TEXTS, Kind.LOOSE) and rule.format is None
        if kind in NUMBERS and rule.format is None:
            yield Weight.ERROR, _NO_FORMAT, 'format: "%Y%m%d%H%M%S"'
        elif kind in NUMBERS and is_compared:
            yield Weight.WARNING, _NUMBERS_AS_TEXT, ""
        elif is_day and is_compared and field.search_column:
            yield Weight.ERROR, _TWO_COLUMNS, ""
        elif is_day and not rule.at and len(field.columns) == 1:
            text = "a column of days: say at what time of day"
            yield Weight.ERROR, text, 'at: "00:00"'
        elif kind in _NO_TIMES:
            text = "not a column of times: make one of it in the SELECT"
            yield _NO_TIMES[kind], text, ""
        elif is_text and is_compared and (form := _iso_format(self._values(place))):
            yield Weight.WARNING, _WITH_T, form

    def _values(self, place: Place) -> list[object]:
        columns = self.section.columns
        key = columns.key(place.field)
        statement = columns.select([key.column.name], key.present, limit=_TEXT_SAMPLE)
        return [value for (value,) in self.database.fetch(statement)]

    def _filters(self) -> Observations:
        """Report the search parameters that make the database read all rows of a table."""
        if reason := self._why_unknown():
            yield self.observation(f"indexes: not told, {reason}", Weight.NOTE)
            return
        texts: dict[Place, list[str]] = {}
        for parameter in self.section.mapping.parameters:
            slots = SEARCH_PARAMETERS[self.kind][parameter].slots
            places = [p for p in self.places if p.slot in slots and p.field.columns]
            criterion = self._sample_criterion(parameter)
            if criterion is None or not places:
                reason = f"no row of the sample has a value for '{parameter}'"
                yield self.observation(f"indexes: not told, {reason}", Weight.NOTE)
            elif isinstance(criterion, StringCriterion):
                for place in self._without_index(places, self._plan(criterion)):
                    texts.setdefault(place, []).append(parameter)
            else:
                yield from self._of_filter(criterion, places)
        for place, parameters in texts.items():
            yield self._of_texts(place, parameters)

    def _why_unknown(self) -> str:
        if not self.sample:
            return "there is no row to take a value from"
        if not self.database.explains_plans:
            return "this kind of database is not asked for its plans"
        return ""

    def _sample_criterion(self, parameter: str) -> Criterion | None:
        """Return a criterion that a row of the sample meets."""
        for row in self.sample:
            if isinstance(row, RowFault):
                continue
            criterion = criterion_of(parameter, row)
            if criterion and self._condition(criterion) is not NEVER:
                return criterion
        return None

    def _condition(self, criterion: Criterion) -> Condition:
        query = _first_row(self.kind, criterion)
        try:
            return self.section.filters.of_query(query)
        except NotAskableError:
            return NEVER

    def _plan(self, criterion: Criterion) -> Plan:
        """Return the plan of the count, which has to find every row that matches."""
        condition = self._condition(criterion)
        return self.database.plan(self.section.columns.count(condition))

    def _without_index(self, places: Iterable[Place], plan: Plan) -> list[Place]:
        """Return the fields that no index leads to, while a whole table is read."""
        if not plan.scans:
            return []
        return [place for place in places if not self._looks_up(place, plan)]

    def _of_filter(self, criterion: Criterion, places: list[Place]) -> Observations:
        parameter = criterion.parameter
        try:
            plan = self._plan(criterion)
        except SourceDataError as error:
            text = f"'{parameter}' cannot be asked: {error}"
            yield self._of_index(places[0], text, Weight.ERROR)
            return
        without = self._without_index(places, plan)
        has_few_values = all(place.field.codes for place in without)
        for place in without:
            origin, remedy = self.origin(place), ""
            names = self._table_names() if plan.aliases else {}
            tables = ", ".join(dict.fromkeys(names.get(t, t) for t in plan.scans))
            text = f"'{parameter}' reads every row of {tables}: no index leads to it"
            if origin is None:
                text += _COMPUTED
            else:
                remedy = _create_index(origin, *self._sort_columns(parameter, origin))
                if has_few_values:
                    text += " (it has few different values: an index helps with rare ones only)"
            weight = Weight.NOTE if has_few_values else self._weight()
            yield self._of_index(place, text, weight, remedy)

    def _sort_columns(self, parameter: str, origin: Origin) -> tuple[Origin, ...]:
        """Return the columns with which an index also has the order of pages."""
        row = SEARCH_PARAMETERS[self.kind][parameter]
        slots = ["id"] if "start" in row.slots else ["start", "id"]
        places = [place for place in self.places if place.slot in slots]
        origins = [self.origin(place) for place in places if place.field.columns]
        # One value leaves so few rows of these that sorting them costs nothing.
        is_few = row.is_id or row.system_slot or "birth_date" in row.slots
        if is_few or any(not o or o.table != origin.table for o in origins):
            return ()
        return tuple(o for o in origins[::-1] if o and o != origin)

    def _of_texts(self, place: Place, parameters: list[str]) -> Observation:
        origin = self.origin(place)
        names = " and ".join(f"'{name}'" for name in parameters)
        reads = "reads" if len(parameters) == 1 else "read"
        rows = f"every row of {origin.table}" if origin else "all rows"
        text, remedy = f"{names} {reads} {rows}, to find words within texts", ""
        if not place.field.search_column:
            text += "; a column of folded texts (search:) makes that cheaper"
        elif origin:
            remedy = self.database.text_index(origin)
        return self._of_index(place, text, Weight.NOTE, remedy)

    def _of_index(
        self, place: Place, text: str, weight: Weight, remedy: str = ""
    ) -> Observation:
        """Return the observation of a field with the column that is compared."""
        column = str(self.origin(place) or place.field.filter_column or "")
        return Observation.at(place, column, text, weight, remedy)

    def _weight(self) -> Weight:
        """Return how much it matters: organizations are few, stays only in a copy."""
        is_small = len(self.sample) < SAMPLE
        is_note = self.kind is ResourceType.ORGANIZATION and is_small
        return Weight.NOTE if is_note else Weight.WARNING

    def _sorts(self) -> Observations:
        """Report the orders for which the database sorts all rows before each page."""
        if not self.database.explains_plans:
            return  # as the check of the filters reports
        slots = SORTS[self.kind]
        for key in dict.fromkeys((*self.section.mapping.sorts, SortKey.ID)):
            plan = self._plan_of_page(Sort(key, descending=key is not SortKey.ID))
            if key in slots and plan and plan.sorts:
                yield self._of_sort(key, self.place(slots[key]))

    def _plan_of_page(self, sort: Sort) -> Plan | None:
        """Return the plan of the second page, where there is one."""
        section = self.section
        first = SearchQuery(self.kind, (), sort, 1)
        query = replace(first, after=self.search(first).last)
        for segment, condition in section.segments(query):
            return self.database.plan(section.page(segment, condition, 2))
        return None

    def _of_sort(self, key: SortKey, place: Place) -> Observation:
        id = self.place("id")
        origin, of_id = self.origin(place), self.origin(id)
        text, remedy = (
            f"the order '{key}' sorts all rows before each page: no index has it",
            "",
        )
        columns = self.section.columns
        if any(
            columns.column(p.field.filter_column).kind in FOLDS for p in (place, id)
        ):
            text += ", nor can one while its column or that of the id is compared without case"
        elif origin and of_id and origin.table == of_id.table and origin != of_id:
            remedy = _create_index(origin, of_id)
        elif origin:
            remedy = _create_index(origin)
        else:
            text += _COMPUTED
        return self._of_index(place, text, self._weight(), remedy)

    def _looks_up(self, place: Place, plan: Plan) -> bool:
        """Return whether a plan looks a field up in an index."""
        origin = self.origin(place)
        if origin is None:
            return self._looks_up_computed(place, plan)
        # SQLite calls an integer key by its other name.
        column = re.escape(origin.column) + ("|rowid" if place.slot == "id" else "")
        own = origin.table.rpartition(".")[2].strip('"')
        # Within a view a table may have a name that no SELECT shows.
        names = self._table_names() if plan.aliases else {}
        return any(
            re.search(rf"\b({column})\b", condition)
            and (names.get(table, own if names else table).rpartition(".")[2] == own)
            for table, condition in plan.lookups
        )

    def _looks_up_computed(self, place: Place, plan: Plan) -> bool:
        """Return whether a value is looked up that is not without any criterion.

        Stays of a patient do not show it: the plan also looks up who replaced the patient.
        """
        if place.slot == "patient_id":
            return False
        statement = self.section.columns.count(self.served)
        always = self.database.plan(statement).lookups
        return any(
            _VALUE.search(each.condition) for each in {*plan.lookups} - {*always}
        )

    def _table_names(self) -> Mapping[str, str]:
        """Return the tables that are known, by the names that the mapping gives them."""
        names: dict[str, str] = {}
        section = self.section.mapping
        for each in (*self.mapping.resources.values(), section):
            of_items = [
                i.rows for items in each.items.values() for i in items if i.rows
            ]
            for rows in (*of_items, each.rows):
                origins = self.origins_of(rows).values()
                names |= {origin.table: origin.table for origin in origins}
                names |= {
                    alias or table: table for table, alias in _ALIAS.findall(rows)
                }
        return names
