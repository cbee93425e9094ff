"""What `mapping check --live` examines in a database, section by section.

Columns and their types, codes, blanks, invalid rows, ids, references, merged patients. What
searches cost is `measure.py`. Nothing that is reported quotes a value of a person.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TypeAlias

import sqlalchemy as sa

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
from adapters.mapping.model import (
    HIDDEN,
    REMOVED,
    FieldMapping,
    ResourceMapping,
    SourceMapping,
    TimeRule,
)
from adapters.mapping.slots import REFERS, Place, places_of
from adapters.mapping.slots import Kind as SlotKind
from adapters.mapping.times import sorts_as_text
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from adapters.sql.adapter import Section, SqlAdapter, UnfitError, open_section
from adapters.sql.columns import NUMBERS, TEXTS, TIMES, Kind
from adapters.sql.dialects.base import Origin
from adapters.sql.engine import Database
from adapters.sql.query import (
    ALWAYS,
    Columns,
    Condition,
    KeyColumn,
    all_of,
    in_rows,
)
from toolkit.checks.engine import (
    FAR,
    MOST,
    RULES_OF_CODES,
    SAMPLE,
    Check,
    Counted,
    Finding,
    Result,
    Severity,
    broken_rules,
    counted,
    empty,
    far_days,
    has_far_days,
    has_offset,
    hidden_zone,
    holds_same,
    never_filled,
    rows_that,
    selects,
    unnamed,
)
from toolkit.checks.joins import (
    COMPUTED,
    arguments_of,
    from_of,
    table_behind,
    with_outer_joins,
)
from toolkit.checks.plausibility import ZONE, doubts

Findings: TypeAlias = Iterator[Finding]

_MIDDLE_PAGES = 10
"""How many pages of the sample start between the newest and the oldest rows."""

_GROUPS = 1000
"""How many values are counted at most."""

_TEXT_SAMPLE = 200
"""How many texts are read to see how times are written."""


def checks(adapter: SqlAdapter, kinds: Collection[ResourceType]) -> Iterator[Check]:
    """Yield the checks of a database, section by section."""
    yield Check("account", partial(_unfit, adapter.refuse_writing))
    for kind in adapter.mapping.resources:
        if kind in kinds:
            columns = partial(_unfit, partial(adapter.section, kind))
            yield Check(f"{kind}: columns", columns)
            try:
                section = adapter.section(kind)
            except SourceDataError:
                continue
            yield from _section_checks(section, adapter)


def _unfit(question: Callable[[], object]) -> Findings:
    """Yield what a question raises as unfit."""
    try:
        question()
    except UnfitError as error:
        yield from map(Finding.of, error.problems)


def _section_checks(section: Section, adapter: SqlAdapter) -> Iterator[Check]:
    # Here, since they examine what is inspected.
    from toolkit.checks.sql_doubts import Doubts
    from toolkit.checks.sql_searches import Measuring

    inspection = Inspection(section, adapter.mapping, adapter.database, adapter.search)
    measuring, doubts = Measuring(inspection, adapter), Doubts(inspection)
    for subject, check in (
        *inspection.checks(),
        ("labels of codes", doubts.labels),
        ("marks", doubts.marks),
        ("keys", doubts.keys),
        ("joins", doubts.joins),
        ("births", doubts.births),
        ("times beside", doubts.times),
        ("last changes", doubts.changes),
        ("other changes", doubts.other_changes),
        ("unread merges", doubts.unread_merges),
        ("visit numbers", doubts.numbers),
        *([("merges", doubts.merges)] if section.merges else ()),
        ("searches", measuring.results),
    ):
        run = partial(inspection.in_time, subject, check)
        yield Check(f"{inspection.kind}: {subject}", run)


_LIMIT = re.compile(
    r"\ASELECT\s+TOP\s+\(?\d|\b(LIMIT|FETCH\s+(FIRST|NEXT))\s+\d+(\s+OFFSET\s+\d+|\s+ROWS?\s+ONLY)?\s*\Z",
    re.IGNORECASE,
)


_MAY_END_IN_BLANKS = {*TEXTS, Kind.LOOSE} - {Kind.PADDED}
_EXACT = (SlotKind.ID, SlotKind.EXACT, SlotKind.SYSTEM, SlotKind.CODE, SlotKind.FLAG)

_CALL = re.compile(r"\b(COALESCE|IFNULL|NVL|GREATEST|LEAST)\s*\(", re.IGNORECASE)
_WITHOUT_ZONE = {Kind.LOCAL_TIME, Kind.TICK_TIME, Kind.SECOND_TIME}


def _iso_format(values: list[object]) -> str:
    """Return the format of a few texts, "" where none has the T of ISO 8601."""
    texts = [value.strip() for value in values if isinstance(value, str)]
    if not any(re.match(r".{10}T", text) for text in texts):
        return ""
    is_utc = all(text.endswith("Z") for text in texts)
    form = "%Y-%m-%dT%H:%M:%S" + "Z" * is_utc
    return f'format: "{form}"' + ", time_zone: UTC" * is_utc


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
        self.reported: set[tuple[str, str]] = set()
        """Columns and the rules whose breaches were counted in all rows."""
        self.counted: list[tuple[Counted, list[object]]] = []
        """The codes that were counted, and their values."""
        self._origins: dict[str, Mapping[str, Origin]] = {}

    def checks(self) -> Iterator[tuple[str, Callable[[], Findings]]]:
        """Yield the checks and their subjects, in the order in which they run."""
        yield "all rows", self._limited_rows
        yield "rows that are left out", self._rows_left_out
        yield "types of columns", self._unfit_kinds
        yield "zones", self._mixed_zones
        yield "codes", self._codes
        yield "blanks", self._trailing_blanks
        yield "required values", self._empty_required
        yield "zero dates", self._zero_dates
        yield "search columns", self._search_columns
        yield "rows", self._invalid_rows
        yield "far days", self._far_days
        yield "ids", self._repeated_ids
        yield "references", self._references
        if self.kind is ResourceType.ENCOUNTER:
            yield "merged patients", self._merged_patients
            yield "circles of merges", self._circles_of_merges

    def in_time(
        self, subject: str, check: Callable[[], Iterator[Result]]
    ) -> Iterator[Result]:
        """Run a check; when the database takes too long, report that and go on."""
        try:
            yield from check()
        except SourceTimedOutError:
            yield self.timed_out(subject)
        except UnfitError as error:
            # Of another section, which this one refers to.
            yield from map(Finding.of, error.problems)
        except SourceDataError as error:
            yield self.finding(f"{subject}: {error}", Severity.ERROR)

    @cached_property
    def served(self) -> Condition:
        """What the rows meet that clients see."""
        query = SearchQuery(self.kind, (), Sort(SortKey.ID), 1)
        return self.section.filters.of_query(query)

    @cached_property
    def sample(self) -> tuple[Record | RowFault, ...]:
        """Rows as the service reads them: newest, oldest, some between, last changed."""
        pages: list[Page] = []
        try:
            pages.extend(self._pages())
        except SourceTimedOutError:
            # No index has their order, as the measured searches will show.
            pages = pages or [self._page(Sort(SortKey.ID))]
        rows: dict[object, Record | RowFault] = {}
        for page in pages:
            for at, row in zip(page.positions, page.rows, strict=True):
                rows.setdefault(object() if at.id is None else at.id, row)
        return tuple(rows.values())

    def _pages(self) -> Iterator[Page]:
        sorts = self.section.mapping.sorts
        key = SortKey.DATE if SortKey.DATE in sorts else SortKey.ID
        yield (newest := self._page(Sort(key, descending=True)))
        if not newest.more:
            return
        yield (oldest := self._page(Sort(key)))
        first, last = oldest.last, newest.last
        if first and first.moment and last and last.moment:
            step = (last.moment - first.moment) / _MIDDLE_PAGES
            for number in range(_MIDDLE_PAGES):
                after = Bound(first.moment + step * number)
                yield self._page(Sort(key), SAMPLE // _MIDDLE_PAGES, after)
        if SortKey.LAST_UPDATED in sorts:
            # The newest change is compared with the clock.
            yield self._page(Sort(SortKey.LAST_UPDATED, descending=True))

    def _page(self, sort: Sort, size: int = SAMPLE, after: Bound | None = None) -> Page:
        query = SearchQuery(self.kind, (), sort, size, after=after, placed=True)
        return self.search(query)

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
            self._origins[rows] = self.database.origins(rows) if rows else {}
        return self._origins[rows]

    def origin(self, place: Place) -> Origin | None:
        """Return the column that filters and sorts compare; None where it is computed."""
        origins = self.origins_of(place.rows or self.section.mapping.rows)
        return origins.get(place.field.filter_column or "")

    def table_of(self, section: ResourceMapping) -> tuple[str, str, str]:
        """Return the table whose rows ids name, a SELECT of these with the id, and its name.

        The SELECT is "" where the id is a column; so is each that is not known.
        """
        (name, *_), rows = section.fields["id"].columns, section.rows
        if origin := self.origins_of(rows).get(name):
            return origin.table, "", origin.column
        table, select = table_behind(rows, name)
        return table, select, COMPUTED if select else ""

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

    def kind_of(self, expression: str, source: str) -> Kind:
        """Return the kind of an expression on what FROM names, OTHER where it is not certain."""
        try:
            (only,) = self.database.columns(f"SELECT {expression} AS a FROM {source}")
        except (SourceDataError, ValueError):
            return Kind.OTHER
        return only.kind

    def at(self, place: Place, text: str, severity: Severity, *details: str) -> Finding:
        """Return the finding of a field; `details` are its remedy and its topic."""
        column = self.column(place)
        return Finding.of_field(place, column, text, severity, *details)

    @property
    def survivor(self) -> tuple[Place, str]:
        """Who replaced a patient: its field in their section, and its column."""
        patients = self.mapping.resources[ResourceType.PATIENT]
        place = next(p for p in places_of(patients) if p.slot == "replaced_by")
        origins, names = self.origins_of(patients.rows), place.field.columns
        return place, ", ".join(str(origins.get(name, name)) for name in names)

    def opened(self, section: ResourceMapping) -> Section:
        """Return another section of the same source, with its columns."""
        kind = section.resource_type
        alone = replace(self.mapping, resources={kind: section})
        return open_section(self.database, alone, kind)

    def finding(self, text: str, severity: Severity, topic: str = "") -> Finding:
        """Return a finding of the section as a whole."""
        mark = self.section.mapping.mark
        return Finding.at(mark, text, self.kind, severity=severity, topic=topic)

    def timed_out(self, subject: str) -> Finding:
        """Return the note about a check that took too long.

        A warning where not even a page of rows came in time, which no client gets then.
        """
        text = f"{subject}: not examined, it took longer than source.timeout_seconds"
        severity = Severity.WARNING if subject == "rows" else Severity.NOTE
        return self.finding(text, severity, "types with checks that took too long")

    def _limited_rows(self) -> Findings:
        """Report a LIMIT that was left in from when the statement was tried by hand."""
        if _LIMIT.search(self.section.mapping.rows.strip()):
            text = "the SELECT of rows has a LIMIT: rows beyond it are never served. Remove it"
            yield self.finding(text, Severity.WARNING)

    def _rows_left_out(self) -> Findings:
        """Report the rows of the table of ids that clients do not see.

        No row tells that a condition errs which leaves it out, or that one is missing.
        """
        table, place = self.table_of(self.section.mapping)[0], self.place("id")
        if not table:
            return
        whole = sa.select(sa.func.count()).select_from(sa.text(table))
        try:
            ((every,),) = self.database.fetch(whole)
        except SourceDataError:
            # The account may read a view of it alone.
            return
        selected = self.count(self.section.columns, ALWAYS)
        lost = self._lost_by_joins(selected)
        if lost > 0:
            text = (
                f"{lost:,} of {every:,} rows of {table} are left out by a JOIN:"
                " LEFT JOIN keeps rows without a match, WHERE says which go"
            )
            yield self.at(place, text, Severity.WARNING)
        elif self.kind is ResourceType.ENCOUNTER and every >= selected:
            yield from self._unseen(table, every, selected)

    def _lost_by_joins(self, selected: int) -> int:
        """Return how many rows more there are where no JOIN leaves rows out."""
        rows = with_outer_joins(self.section.mapping.rows)
        if rows == self.section.mapping.rows:
            return 0
        try:
            described = self.database.columns(rows)
            zone = self.mapping.source.zone
            columns = Columns(self.database.dialect, rows, described, zone=zone)
            id = columns.column(self.section.id.name)
            return self.count(columns, id.is_not_null) - selected
        except SourceDataError:
            return 0

    def _unseen(self, table: str, every: int, selected: int) -> Findings:
        """Report how many stays of a table clients see, if none are cancelled or many gone."""
        served = self.count(self.section.columns, self.served)
        text = f"clients see {served:,} of {rows_that(every)} of {table}"
        is_most = served >= every / 2
        if served == every:
            text += ": does no row stand for a cancelled stay?"
        elif every > selected or not is_most:
            text += (
                f": rows leaves out {every - selected:,}, codes {HIDDEN} and {REMOVED}"
                f" {selected - served:,}. Are these the cancelled stays, and no others?"
            )
        else:
            return
        severity = Severity.NOTE if is_most else Severity.WARNING
        yield self.finding(text, severity, "types with rows that are left out")

    def _invalid_rows(self) -> Findings:
        """Report the rows of the sample that cannot be served, doubtful times, unused fields."""
        rows, section = self.sample, self.section.mapping
        origins = self.origins_of(section.rows)
        columns = {name: str(origin) for name, origin in origins.items()}
        yield from broken_rules(section, rows, columns, self.reported)
        # The clock of the database writes changes, and may differ from this machine's.
        status = self.database.server_status()
        now = (status and status.now) or datetime.now(UTC)
        yield from doubts(section, rows, columns, now)
        selected = self.section.selected
        statement = self.section.columns.select(selected, self.served, limit=SAMPLE)
        cells = self.database.fetch(statement)
        extras = self.section.extras(self.database, cells)
        sampled = list(zip(cells, extras, strict=True))
        yield from never_filled(section, selected, sampled, columns)

    def _repeated_ids(self) -> Findings:
        """Report ids that several rows have; `_empty_required` counts rows without one."""
        columns, id_column = self.section.columns, self.section.id
        present = all_of([self.served, id_column.is_not_null])
        statement = columns.count_by(id_column, present, _GROUPS)
        repeated = [rows for _, rows in self.database.fetch(statement) if rows > 1]
        if repeated:
            many = "at least " if len(repeated) == _GROUPS else ""
            text = (
                f"{many}{len(repeated):,} ids have several rows, up to {repeated[0]:,}: the"
                " SELECT must return one row for each"
            )
            replaced = self.section.mapping.fields.get("replaced_by")
            if replaced and replaced.columns:
                merged = all_of([present, columns.key(replaced).present])
                statement = columns.count_by(id_column, merged, _GROUPS)
                several = sum(rows > 1 for _, rows in self.database.fetch(statement))
                text += ". Is replaced_by the wrong way round?" * bool(several)
            yield self.at(self.place("id"), text, Severity.ERROR)

    def _empty_required(self) -> Findings:
        """Report how many rows lack what every row must have, but for codes."""
        columns, required = self.section.columns, self.section.mapping.required
        for place in self.places:
            field = place.field
            if field.slot in required and len(field.columns) == 1 and not field.codes:
                shown = columns.key(replace(field, search_column=None))
                self.reported.add((field.columns[0], "required and empty"))
                if rows := self.count(columns, all_of([self.served, shown.missing])):
                    yield empty(place, self.column(place), rows)

    def _far_days(self) -> Findings:
        """Report the far days on which stays start or end, of all rows."""
        now, columns = datetime.now(UTC), self.section.columns
        for place in filter(has_far_days, self.places):
            column = columns.column(place.field.columns[0])
            form, far = place.field.time and place.field.time.format, ALWAYS
            is_compared = place.field.filter_column == place.field.columns[0]
            if is_compared and not (form and not sorts_as_text(form)):
                time = self.section.filters.time(place.slot)
                # Texts that stand for no time are told apart as rows are read.
                far = time._replace(key=KeyColumn(time.key.column)).since(now + FAR)
            counts = columns.count_by(column, all_of([self.served, far]), _GROUPS)
            values = self.database.fetch(counts)
            yield from far_days(place, self.column(place), values, now)

    def _zero_dates(self) -> Findings:
        """Report days that the database holds and that are none, each row once."""
        zero, columns = self.database.dialect.zero_date, self.section.columns
        for place in self.places if zero else ():
            if place.rows or not place.field.columns or zero in place.field.absent:
                continue
            name = place.field.columns[0]
            column = columns.column(name)
            if column.kind not in TIMES:
                continue
            is_zero = Condition(f"{column.plain} = 0")
            if not (rows := self.count(columns, all_of([self.served, is_zero]))):
                continue
            # `column.is_null` finds no zeros.
            is_null = Condition(f"{column.plain} IS NULL")
            both = self.count(columns, all_of([self.served, is_zero, is_null]))
            text = f"{rows_that(rows, 'contain')} {zero}, which "
            text += "the database also matches with IS NULL" if both else "is no day"
            text += f". Add it to absent, or use NULLIF({name}, 0) in the SELECT"
            self.reported.add((name, "not readable"))
            remedy = f"absent: {[zero, *sorted(place.field.absent)]}"
            yield self.at(place, text, Severity.ERROR, remedy)

    def _search_columns(self) -> Findings:
        """Report columns under `search:` that do not hold what their field shows."""
        for place in self.places:
            if not place.field.search_column or len(place.field.columns) != 1:
                continue
            columns = self.columns_of(place)
            shown = columns.key(replace(place.field, search_column=None))
            searched = columns.key(place.field)
            served = ALWAYS if place.rows else self.served
            in_one = sum(
                self.count(columns, all_of([served, one.present, other.missing]))
                for one, other in ((shown, searched), (searched, shown))
            )
            names = [shown.column.name, searched.column.name]
            in_both = all_of([served, shown.present, searched.present])
            pairs = self.database.fetch(columns.select(names, in_both, limit=SAMPLE))
            differ = sum(not holds_same(place, *pair) for pair in pairs)
            texts = [f"{in_one:,} rows have a value in only one of both"] * bool(in_one)
            texts += [f"{differ:,} of {len(pairs):,} rows differ"] * bool(differ)
            if texts:
                text = f"search: {place.field.search_column} is not what is shown: "
                text += f"{', '.join(texts)}. Searches return wrong rows"
                is_text = place.kind in (SlotKind.TEXT, SlotKind.PARTS)
                severity = Severity.WARNING if is_text else Severity.ERROR
                yield self.at(place, text, severity)

    def _mixed_zones(self) -> Findings:
        """Report expressions of columns with a zone and columns without one."""
        for rows, mark in selects(self.section.mapping):
            for match in _CALL.finditer(rows):
                source = from_of(rows, match.end())
                kinds: dict[Kind, str] = {}
                for argument in arguments_of(rows, match.end()):
                    kinds.setdefault(self.kind_of(argument, source), argument)
                local = next((k for k in kinds if k in _WITHOUT_ZONE), None)
                if local and Kind.INSTANT in kinds:
                    text = (
                        f"{match[1]} mixes a time without a zone ('{kinds[local]}') and one"
                        f" with ('{kinds[Kind.INSTANT]}'): one of them is hours off"
                    )
                    yield Finding.at(mark, text, self.kind, severity=Severity.WARNING)
        yield from self._unlike_zones()

    def _unlike_zones(self) -> Findings:
        """Report a start and an end, local times that are written alike, in two zones.

        Last changes may be written in another zone than what people type.
        """
        alike, zones = set[tuple[bool, str | None]](), list[tuple[str, Place]]()
        for place in (each for each in self.places if each.slot in ("start", "end")):
            rule, names = place.field.time, place.field.columns
            if rule and names:
                kind = self.section.columns.column(names[0]).kind
                says = "%z" in (rule.format or "") or kind is Kind.INSTANT
                alike.add((kind in TIMES, rule.format))
                zones += [(rule.zone.key, place)] * (not says)
        if len(zones) == 2 and len(alike) == 1 and zones[0][0] != zones[1][0]:
            (other, start), (zone, end) = zones
            named = [each for each in (start, end) if each.field.filter_column]
            if not any(has_offset(value) for p in named for value in self._values(p)):
                text = f"read in {zone}, but {self.column(start)} in {other}: {ZONE}"
                yield self.at(end, text, Severity.WARNING)

    def _references(self) -> Findings:
        """Report references to resources that their section does not have."""
        for place in self.places:
            field, kind = place.field, REFERS.get(place.slot.rpartition(".")[2])
            section = self.mapping.beside.get((kind, field.prefix)) if kind else None
            if kind is None or section is None or field.codes or field.strip:
                continue
            target = self.opened(section)
            text = f"the section {kind.lower()} does not have"
            if field.constant is not None:
                of_id = target.filters.of_id(f"{field.prefix}{field.constant}")
                if not self.count(target.columns, of_id):
                    text = f"refers to '{field.constant}', which {text}"
                    yield self.at(place, text, Severity.WARNING)
                continue
            columns = self.columns_of(place)
            key = columns.key(field)
            among = in_rows(key.column, target.columns, target.id, ALWAYS)
            rows, others = (
                self.count(columns, all_of([self._counts(place), condition]))
                for condition in (key.present, all_of([key.present, among]))
            )
            if lost := rows - others:
                text = f"{lost:,} of {rows_that(rows, 'refer')} to what {text}"
                yield self.at(place, text, Severity.WARNING)

    def _counts(self, place: Place) -> Condition:
        """Return what the rows meet in which a field counts."""
        columns, condition = self.columns_of(place), place.only_if
        served = ALWAYS if place.rows else self.served
        if condition is None:
            return served
        column = columns.column(condition.column)
        return all_of([served, columns.among(column, sorted(condition.values))])

    def _merged_patients(self) -> Findings:
        """Report how many stays are of a patient who was replaced by another."""
        section, place = self.section, self.place("patient_id")
        merges, field = section.merges, place.field
        if merges is None or field.follows_merges or not field.columns:
            return
        column = section.columns.column(field.filter_column)
        is_merged = merges.survivor.present
        of_merged = in_rows(column, merges.columns, merges.id, is_merged)
        if stays := self.count(section.columns, all_of([self.served, of_merged])):
            text = (
                f"{rows_that(stays, 'have')} a patient who was replaced: searches by the"
                " survivor do not find them"
            )
            yield self.at(place, text, Severity.WARNING, "merges: follow")

    def _circles_of_merges(self) -> Findings:
        """Report patients whose merges lead into a circle, where no patient is the last."""
        merges = self.section.merges
        if merges is None or not (lost := merges.without_survivor(self.database)):
            return
        text = (
            f"{rows_that(lost, 'lead')} into a circle of merges, where no patient is"
            " the last: their stays keep their own patient"
        )
        yield Finding.of_field(*self.survivor, text, Severity.WARNING)

    def _codes(self) -> Findings:
        """Count the codes of each column and compare them with their tables."""
        for place in self.places:
            if place.field.codes is None or not place.field.columns:
                continue
            columns, (name,) = self.columns_of(place), place.field.columns
            column = columns.column(name)
            of_place = ALWAYS if place.slot == "status" else self._counts(place)
            try:
                rows = self.database.fetch(columns.count_by(column, of_place, 2 * MOST))
            except SourceTimedOutError:
                yield self.timed_out(f"codes of {self.column(place)}")
                continue
            values = [tuple(row) for row in rows]
            self.reported |= {(name, rule) for rule in RULES_OF_CODES}
            counts = counted(place, self.column(place), values)
            present = [value for value, _ in values if value is not None]
            self.counted.append((counts, present))
            yield from unnamed(counts, self.section.mapping.required)

    def _trailing_blanks(self) -> Findings:
        """Report how many rows have an id, number or code that searches by it miss."""
        for place in self.places:
            is_compared = place.field in self.compared or place.kind is SlotKind.ID
            if not (is_compared and place.kind in _EXACT and place.field.filter_column):
                continue
            columns = self.columns_of(place)
            column = columns.column(place.field.filter_column)
            if column.kind not in _MAY_END_IN_BLANKS:
                continue
            blanks = all_of([self._counts(place), column.ends_in_blanks])
            if rows := self.count(columns, blanks):
                text = (
                    f"{rows_that(rows, 'end')} in blanks, which the database counts:"
                    " searches do not find them. RTRIM the column in the SELECT"
                )
                yield self.at(place, text, Severity.ERROR)

    def _unfit_kinds(self) -> Findings:
        """Report the columns whose type makes the service fail or err."""
        for place in self.places:
            if place.rows or not place.field.columns:
                continue
            name = place.field.filter_column or place.field.columns[0]
            kind = self.section.columns.column(name).kind
            values = partial(self._values, place)
            if kind is not Kind.INSTANT:
                yield from hidden_zone(place, self.column(place), values)
            topic = "columns of types that are not the best"
            rule = place.field.time
            unfit = (
                self._of_time(place, kind, rule) if rule else self._of_type(place, kind)
            )
            for severity, text, *remedy in unfit:
                yield self.at(place, text, severity, remedy[0] if remedy else "", topic)

    def _of_type(self, place: Place, kind: Kind) -> Iterator[tuple[Severity, str]]:
        """Yield why a column of this type cannot be what its field is."""
        is_id, is_list = place.kind is SlotKind.ID, place.kind is SlotKind.PARTS
        if is_id and kind is Kind.NUMBER:
            yield (
                Severity.NOTE,
                "a type with fractions: CAST it to an integer or a text",
            )
        elif kind in TIMES and (is_id or place.kind is SlotKind.EXACT):
            yield Severity.WARNING, "a column of times cannot be an id"
        elif is_list and kind is Kind.OTHER and place.field in self.compared:
            text = "a list cannot be searched: name a column of texts with search:"
            yield Severity.ERROR, text

    def _of_time(
        self, place: Place, kind: Kind, rule: TimeRule
    ) -> Iterator[tuple[Severity, str, str]]:
        """Yield why searches err with a column of this type, or rows cannot be read."""
        is_compared = place.field in self.compared
        is_day = kind is Kind.DATE and place.kind is SlotKind.TIME
        is_text = kind in (*TEXTS, Kind.LOOSE) and rule.format is None
        if kind in NUMBERS and rule.format is None:
            text = "numbers: say how they are written, or make a time in the SELECT"
            yield Severity.ERROR, text, 'format: "%Y%m%d%H%M%S"'
        elif kind in NUMBERS and is_compared:
            text = "searched as text: make a text or a time of it in the SELECT"
            yield Severity.WARNING, text, ""
        elif is_day and is_compared and place.field.search_column:
            text = (
                "has a time of day, and is compared by a column of days: searches by the"
                " hour and orders err. Let search: name one column of both"
            )
            yield Severity.ERROR, text, ""
        elif is_day and not rule.at and len(place.field.columns) == 1:
            text = "a column of days: say at what time of day"
            self.reported.add((place.field.columns[0], "a date without a time"))
            yield Severity.ERROR, text, 'at: "00:00"'
        elif kind in (Kind.OTHER, Kind.BOOLEAN, Kind.UUID):
            severity = Severity.WARNING if kind is Kind.OTHER else Severity.ERROR
            yield severity, "not a column of times: make one of it in the SELECT", ""
        elif is_text and is_compared and (form := _iso_format(self._values(place))):
            text = (
                "texts with a T between day and time, which searches compare with texts"
                " that have a blank there"
            )
            yield Severity.ERROR, text, form

    def _values(self, place: Place) -> list[object]:
        columns = self.section.columns
        key = columns.key(place.field)
        statement = columns.select([key.column.name], key.present, limit=_TEXT_SAMPLE)
        return [value for (value,) in self.database.fetch(statement)]
