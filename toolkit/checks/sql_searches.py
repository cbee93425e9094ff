"""What `mapping check --live` measures in a database: each search parameter, sort and count.

Each runs as the service runs it, for a value of a sampled row. An index is suggested where
searches compare a column of one table that no index begins with, so that a small copy of a
hospital shows what the large one needs. What reads far too many rows, or takes too long, is
reported as slow.
"""

import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import sqlalchemy as sa

from adapters.contract import (
    Criterion,
    DateCriterion,
    NotAskableError,
    ResourceType,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    SourceTimedOutError,
    StringCriterion,
    TooCostlyError,
)
from adapters.mapping.slots import Place
from adapters.matching import criterion_of
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from adapters.sql.adapter import UnequalTextsError
from adapters.sql.columns import FOLDS, ColumnKind
from adapters.sql.dialects.base import ColumnOrigin
from adapters.sql.query import ALWAYS, NEVER
from toolkit.catalogue import parts_of_name
from toolkit.checks.inspection import Findings
from toolkit.checks.rows import SAMPLE_ROWS
from toolkit.checks.selects import comparisons, names_compared
from toolkit.checks.sql_inspection import SqlInspection
from toolkit.findings import INDEX, Finding, Measurement, Result, Severity, timed

PAGE_SIZE = 20
"""How many rows a measured page has."""

MOST_READ_PER_ROW = 50
"""A search is slow that reads more rows than this for each row of its page, or counted."""

TINY_TABLE = 20
"""No index helps a table of so few rows."""

SLOW_MS = 1000.0
"""A search is slow that takes more milliseconds than this, twice."""

FEW_READ = 10_000
"""A slow search that reads fewer rows than this is a note only."""

FAST_MS = 20.0
"""Such a search is not reported at all up to this time: others may have used the database."""

NO_TIME = "no time was left"

_NO_INDEX = "no index begins with"


class SearchChecks:
    """The searches of a section, measured one after the other."""

    def __init__(self, inspection: SqlInspection) -> None:
        self._inspection, self._adapter = inspection, inspection.adapter
        self._section, self._kind = inspection.opened, inspection.kind
        self._database = inspection.database
        self._rows = inspection.section.rows
        self._missing: dict[str, tuple[Finding, list[str]]] = {}
        """By CREATE INDEX statement: its finding, and the searches that lack the index."""
        self._slow_searches: dict[tuple[str, str], tuple[Finding, list[str]]] = {}
        """By column and kind of problem: the finding, and the searches that have it."""

    def results(self, _inspection: SqlInspection) -> Iterator[Result]:
        """Yield what each search costs, then the indexes that searches lack."""
        sorts = self._section.mapping.sorts
        for parameter in self._section.mapping.parameters:
            slots = SEARCH_PARAMETERS[self._kind][parameter].slots
            places = [p for p in self._inspection.places if p.slot in slots]
            places = [place for place in places if place.field.columns]
            if not places:
                # A constant costs nothing.
                continue
            if (criterion := self._criterion(parameter)) is None:
                reason = "no row of the sample has a value"
                self._inspection.skip(f"search by '{parameter}'", reason)
                continue
            is_dated = SortKey.DATE in sorts
            sort = Sort(SortKey.DATE if is_dated else SortKey.ID, descending=is_dated)
            query = SearchQuery(self._kind, (criterion,), sort, PAGE_SIZE)
            yield from self._measured(parameter, query, places)
        for key in dict.fromkeys((*sorts, SortKey.ID)):
            sort = Sort(key, descending=key is not SortKey.ID)
            place = self._inspection.place(SORTS[self._kind].get(key, "id"))
            query = SearchQuery(self._kind, (), sort, PAGE_SIZE)
            yield from self._measured(f"_sort={key}", query, [place])
        for lack, words in self._missing.values():
            yield replace(lack, text=f"{lack.text}: {', '.join(map(repr, words))}")
        for finding, words in self._slow_searches.values():
            are = "is" if len(words) == 1 else "are"
            text = f"{', '.join(map(repr, words))} {are} {finding.text}"
            yield replace(finding, text=text)

    def _criterion(self, parameter: str) -> Criterion | None:
        """Return a criterion that a row of the sample meets."""
        for record in self._inspection.records:
            criterion = criterion_of(parameter, record)
            if criterion is None:
                continue
            query = SearchQuery(self._kind, (criterion,), Sort(SortKey.ID), 1)
            with suppress(NotAskableError):
                if self._section.filters.of_query(query) is not NEVER:
                    return criterion
        return None

    # What a search costs

    def _measured(
        self,
        word: str,
        query: SearchQuery,
        places: Sequence[Place],
    ) -> Iterator[Result]:
        """Yield what a page and a count cost; note the missing indexes, and slow searches.

        `word` is the parameter or `_sort=…`, `places` the fields that it compares.
        """
        place = places[0]
        costs: list[Measurement] = []
        try:
            # `extend` keeps what was measured before an error.
            if self._inspection.is_late:
                self._inspection.skip(f"cost of '{word}'", NO_TIME)
            else:
                costs.extend(self._costs(f"{self._kind}?{word}", query))
        except TooCostlyError:
            text = (
                "served without a total if more than one page matches: counting takes longer"
                " than source.count_timeout_seconds"
            )
            self._note(word, place, text)
        except SourceTimedOutError:
            text = "answered with an error: it takes longer than source.timeout_seconds"
            self._note(word, place, text)
        except UnequalTextsError:
            # The types of the columns have the finding.
            return
        except SourceDataError as error:
            text = f"answered with an error: {error}"
            self._note(word, place, text, Severity.ERROR)
            return

        slow = next(filter(_is_slow, costs), None)
        lacks = [
            lack for place in places for lack in self._index_of_filter(place, query)
        ]
        lacks += self._indexes_of_merges(place, query)
        if slow or not costs:
            joins: dict[tuple[str, str], list[ColumnOrigin]] = {}
            for inner, outer in comparisons(self._rows):
                joins.setdefault((inner.table, outer.table), []).append(inner)
            lacks += self._indexes_of_joins(place, joins.values())
        for lack in lacks:
            self._missing.setdefault(lack.remedy, (lack, []))[1].append(word)

        indexes = tuple(dict.fromkeys(lack.remedy for lack in lacks))
        if slow and not indexes:
            self._note_slow(word, query, place, slow)
        for cost in costs[:1]:
            yield replace(cost, indexes=indexes)
        yield from costs[1:]

    def _costs(self, name: str, query: SearchQuery) -> Iterator[Measurement]:
        """Yield what a page and a count cost.

        Raises TooCostlyError as the service does.
        """
        widened, _ = self._section.with_merged_patients(self._database, query)
        search = partial(self._adapter.search, query)
        page, milliseconds = timed(search)
        if milliseconds > SLOW_MS and not self._inspection.is_late:
            milliseconds = min(milliseconds, timed(search)[1])
        read = None if self._inspection.is_late else self._rows_read(widened)
        yield Measurement(name, milliseconds, rows=len(page.rows), read=read)
        if not query.criteria:
            return
        if self._inspection.is_late:
            self._inspection.skip(f"{name}, count", NO_TIME)
            return
        total, milliseconds = timed(partial(self._adapter.count, query))
        condition = self._section.filters.of_query(widened)
        rows = self._database.rows_read(self._section.columns.count(condition))
        yield Measurement(
            f"{name}, count", milliseconds, rows=total, read=rows and rows.read
        )

    def _rows_read(self, query: SearchQuery) -> int | None:
        """Return how many rows a page reads by all its statements, None where it is not known."""
        read = 0
        # A page reads one row more than it has, to know whether rows follow.
        missing = query.count + 1
        for segment, condition in self._section.segments(query):
            statement = self._section.page(segment, condition, missing)
            rows = self._database.rows_read(statement)
            if rows is None:
                return None
            read += rows.read
            missing -= rows.returned
            if missing <= 0:
                break
        return read

    def _note_slow(
        self, word: str, query: SearchQuery, place: Place, cost: Measurement
    ) -> None:
        """Note a slow search for which no index is missing, unless it is a fast small one."""
        column = str(self._inspection.origin(place) or "")
        reads_few = cost.read is not None and 0 < cost.read < FEW_READ
        is_small = reads_few and cost.milliseconds <= SLOW_MS
        if is_small and cost.milliseconds <= FAST_MS:
            return
        severity = Severity.NOTE if is_small else self._severity
        read = f"{cost.read:,} rows read for {cost.rows:,}, " if cost.read else ""
        text = f"slow: {read}in {cost.milliseconds:,.0f} ms"
        if any(isinstance(criterion, StringCriterion) for criterion in query.criteria):
            text += ". To make it faster, name a column of folded texts with search:"
            severity = Severity.NOTE if cost.milliseconds <= SLOW_MS else severity
        elif not column:
            text += ": the SELECT computes this column, and no table has an index on it"
        self._note(word, place, text, severity, column)

    def _note(
        self,
        word: str,
        place: Place,
        text: str,
        severity: Severity = Severity.WARNING,
        column: str = "",
    ) -> None:
        """Note a problem of a search; a parameter and a sort of one column share a finding."""
        finding = self._finding(place, text, severity, column=column)
        key = finding.source, text.partition(":")[0]
        self._slow_searches.setdefault(key, (finding, []))[1].append(word)

    @property
    def _severity(self) -> Severity:
        """The severity of a slow search: a note for a hospital's few organizations.

        Other resources may be few in a copy for tests only, so theirs is a warning.
        """
        is_few = len(self._inspection.sample) < SAMPLE_ROWS
        if self._kind is ResourceType.ORGANIZATION and is_few:
            return Severity.NOTE
        return Severity.WARNING

    def _finding(
        self,
        place: Place,
        text: str,
        severity: Severity,
        remedy: str = "",
        column: str = "",
    ) -> Finding:
        """Return the finding of a field with the column that is compared, or another one."""
        origin = self._inspection.origin(place)
        column = column or str(origin or place.field.filter_column or "")
        topic = "fields that an index may help"
        return Finding.of_field(place, column, text, severity, remedy, topic)

    # Indexes

    def _index_of_filter(self, place: Place, query: SearchQuery) -> Findings:
        """Yield the index that a filter, or a sort without a criterion, lacks."""
        origin = self._indexable(place)
        if origin is None:
            return
        index_starts = self._index_starts(origin.table)
        if index_starts is None or _plain(origin.column) in index_starts:
            return
        criterion = query.criteria[0] if query.criteria else None
        if isinstance(criterion, StringCriterion):
            return
        column = self._inspection.columns_of(place).column(place.field.filter_column)
        # Some kinds are compared by an expression, for which an index of the column is no use.
        is_ordered = criterion is None or isinstance(criterion, DateCriterion)
        if (
            (column.kind in FOLDS and is_ordered)
            or column.kind is ColumnKind.LARGE
            or (column.kind is ColumnKind.OTHER and not column.enumeration)
        ):
            return
        order = self._order_columns(place, criterion, origin)
        origins = [origin, *order]
        read = self._columns_read(origins) if order or criterion is None else []
        text, severity = f"{_NO_INDEX} this column", self._severity
        if place.field.codes is not None:
            text += " (few different values: an index helps only with rare ones)"
            severity = Severity.NOTE
        statement = self._statement(*origins, read=read)
        yield self._finding(place, text, severity, statement)

    def _columns_read(self, origins: Sequence[ColumnOrigin]) -> list[ColumnOrigin]:
        """Return the status column, if searches compare it to leave out hidden stays.

        An index that contains it answers a count without reading the table. Return [] if it is
        in the index already, or in another table.
        """
        if self._section.filters.served is ALWAYS:
            return []
        state = self._inspection.origin(self._inspection.place("status"))
        if state is None or state in origins or state.table != origins[0].table:
            return []
        return [state]

    def _order_columns(
        self, place: Place, criterion: Criterion | None, origin: ColumnOrigin
    ) -> list[ColumnOrigin]:
        """Return the columns to append to an index of `origin`, for the order of pages.

        Return [] where these columns are not all in the table of `origin`, and for a
        criterion that so few rows meet that sorting them costs nothing.
        """
        slots = ["id"]
        if criterion is not None:
            row = SEARCH_PARAMETERS[self._kind][criterion.parameter]
            if row.is_id or row.system_slot or "birth_date" in row.slots or place.rows:
                return []
            if "start" not in row.slots:
                slots = ["start", "id"]
        places = [p for p in self._inspection.places if p.slot in slots and not p.rows]
        # The id is the first slot of a section, and the last column of an order.
        order = [self._indexable(p) for p in reversed(places) if p.field.columns]
        if any(column is None or column.table != origin.table for column in order):
            return []
        return [column for column in order if column and column != origin]

    def _indexes_of_merges(self, place: Place, query: SearchQuery) -> list[Finding]:
        """Return the indexes that a search lacks because it follows merges in both directions."""
        merges = self._section.merges
        if merges is None or not place.field.follows_merges or not query.criteria:
            return []
        rows = self._inspection.mapping.resources[ResourceType.PATIENT].rows
        origins = self._inspection.origins_of(rows)
        names = (merges.id.name, merges.survivor.column.name)
        joins = [[origins[name]] for name in names if name in origins]
        return self._indexes_of_joins(place, joins)

    def _indexes_of_joins(
        self, place: Place, joins: Iterable[Sequence[ColumnOrigin]]
    ) -> list[Finding]:
        """Return the indexes that joins lack; a join is the columns of a table that it compares.

        A join lacks one where no index begins with one of its columns. Columns of an index that
        the SELECT compares with anything, such as a constant, may come before it.
        """
        compared = names_compared(self._rows)
        text = f"{_NO_INDEX} this column, which joins tables"
        findings = []
        for columns in dict.fromkeys(map(tuple, joins)):
            index_starts = self._index_starts(columns[0].table, compared)
            if index_starts is None:
                continue
            if any(_plain(origin.column) in index_starts for origin in columns):
                continue
            remedy, name = self._statement(*columns), str(columns[0])
            findings.append(
                self._finding(place, text, self._severity, remedy=remedy, column=name)
            )
        return findings

    def _indexable(self, place: Place) -> ColumnOrigin | None:
        """Return the column that searches compare, or the expression that computes it.

        Return None for an expression on another table than that of the id.
        """
        if origin := self._inspection.origin(place):
            return origin
        of_id = self._inspection.origin(self._inspection.place("id"))
        if place.rows or of_id is None:
            return None
        computed = self._database.computed(self._rows)
        origin = computed.get(place.field.filter_column or "")
        return origin if origin and origin.table == of_id.table else None

    def _statement(
        self, *origins: ColumnOrigin, read: Sequence[ColumnOrigin] = ()
    ) -> str:
        """Return the statement that creates an index of columns of one table.

        The columns of `read` are INCLUDE columns, or keys in a database without INCLUDE.
        """
        table = origins[0].table
        keys = [self._written(origin) for origin in origins]
        read_columns = [self._written(origin) for origin in read]
        include = ""
        if read_columns and self._database.dialect.has_included_columns:
            include = f" INCLUDE ({', '.join(read_columns)})"
        else:
            keys += read_columns
        texts = (table.rpartition(".")[2], *(origin.column for origin in origins))
        words = re.findall(r"\w+", " ".join(texts))
        # Short enough for every database.
        name = "_".join(words)[:60].rstrip("_")
        return f"{INDEX} {name} ON {table} ({', '.join(keys)}){include};"

    def _written(self, origin: ColumnOrigin) -> str:
        """Return a column as an index names it; an expression stands in parentheses."""
        if not re.fullmatch(r"\w+", origin.column):
            return f"({origin.column})"
        quote = self._database.run(lambda c: c.dialect.identifier_preparer)
        return str(quote.quote(origin.column))

    def _index_starts(
        self, table: str, passed: Collection[str] = ()
    ) -> frozenset[str] | None:
        """Return the columns and expressions that an index of a table begins with.

        A column counts too if only columns of `passed` come before it in the index. Return
        None for a view, and for a table that is too small for an index or cannot be read.
        """
        rows: sa.Select[Any] = sa.select(sa.literal(1)).select_from(sa.text(table))
        try:
            if len(self._database.fetch(rows.limit(TINY_TABLE + 1))) <= TINY_TABLE:
                return None
            return self._database.run(
                partial(_index_starts_of, table=table, passed=passed)
            )
        except SourceDataError:
            return None


def _is_slow(cost: Measurement) -> bool:
    """Whether a search takes too long, or reads too many rows for what it returns."""
    most_read = MOST_READ_PER_ROW * max(cost.rows, PAGE_SIZE)
    reads_too_many = cost.read is not None and cost.read > most_read
    return reads_too_many or cost.milliseconds > SLOW_MS


def _index_starts_of(
    connection: sa.Connection, table: str, passed: Collection[str]
) -> frozenset[str] | None:
    """Return what `_index_starts` returns for a table, from its indexes and primary key."""
    *schemas, name = parts_of_name(table)
    schema = schemas[-1] if schemas else None
    inspector = sa.inspect(connection)
    if name in inspector.get_view_names(schema):
        return None
    with warnings.catch_warnings():
        # SQLAlchemy warns of an index of an expression that it does not read.
        warnings.simplefilter("ignore", sa.exc.SAWarning)
        indexes = inspector.get_indexes(name, schema, include_auto_indexes=True)
        key = inspector.get_pk_constraint(name, schema)["constrained_columns"]
    keys = [index.get("expressions") or index["column_names"] for index in indexes]
    keys.append(key)
    starts: set[str] = set()
    for columns in keys:
        for expression in columns:
            column = _plain(expression or "")
            starts.add(column)
            if column not in passed:
                break
    return frozenset(starts)


def _plain(expression: str) -> str:
    """Return a column or an expression in the form in which two of them compare."""
    return re.sub(r"[\s()]+", "", expression).lower()
