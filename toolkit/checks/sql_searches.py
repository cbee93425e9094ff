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

FAST_MS, FEW_READ = 20.0, 10_000
"""A search that reads fewer rows is a note, in so few milliseconds none: how long it takes
depends on who else is there."""

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
        """The indexes that are missed by their statements, and the searches that do."""
        self._slow_searches: dict[tuple[str, str], tuple[Finding, list[str]]] = {}
        """What is wrong with the searches of a column, by its kind, and these searches."""

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
        """Yield what a page and a count cost; keep what they lack, and where they are slow."""
        place, costs = places[0], list[Measurement]()
        try:
            # What was measured before an error stays.
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
        read, missing = 0, query.count + 1
        for segment, condition in self._section.segments(query):
            statement = self._section.page(segment, condition, missing)
            if (rows := self._database.rows_read(statement)) is None:
                return None
            read, missing = read + rows.read, missing - rows.returned
            if missing <= 0:
                break
        return read

    def _note_slow(
        self, word: str, query: SearchQuery, place: Place, cost: Measurement
    ) -> None:
        column = str(self._inspection.origin(place) or "")
        is_small = (cost.read or FEW_READ) < FEW_READ and cost.milliseconds <= SLOW_MS
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
        """Keep what is wrong with a search: a parameter and a sort are one finding."""
        finding = self._finding(place, text, severity, column=column)
        key = finding.source, text.partition(":")[0]
        self._slow_searches.setdefault(key, (finding, []))[1].append(word)

    @property
    def _severity(self) -> Severity:
        """How much a slow search matters: organizations are few, stays only in a copy."""
        is_of_few = self._kind is ResourceType.ORGANIZATION
        is_few = is_of_few and len(self._inspection.sample) < SAMPLE_ROWS
        return Severity.NOTE if is_few else Severity.WARNING

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
        if origin is None or (starts := self._index_starts(origin.table)) is None:
            return
        (criterion,) = query.criteria or (None,)
        column = self._inspection.columns_of(place).column(place.field.filter_column)
        # Some kinds are compared by an expression, which no index of the column has.
        is_ordered = criterion is None or isinstance(criterion, DateCriterion)
        is_computed = column.kind in FOLDS and is_ordered
        is_computed |= column.kind is ColumnKind.LARGE
        is_computed |= column.kind is ColumnKind.OTHER and not column.enumeration
        has_index = _plain(origin.column) in starts
        if is_computed or has_index or isinstance(criterion, StringCriterion):
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
        """Return the column of states, where every search leaves some out.

        With it in the index, a count need not read the table.
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
        """Return the columns with which an index also has the order of pages."""
        slots = ["id"]
        if criterion is not None:
            row = SEARCH_PARAMETERS[self._kind][criterion.parameter]
            # One value leaves so few rows of these that sorting them costs nothing.
            if row.is_id or row.system_slot or "birth_date" in row.slots or place.rows:
                return []
            slots = ["id"] if "start" in row.slots else ["start", "id"]
        places = [p for p in self._inspection.places if p.slot in slots and not p.rows]
        origins = [self._indexable(p) for p in places if p.field.columns][::-1]
        if any(other is None or other.table != origin.table for other in origins):
            return []
        return [other for other in origins if other and other != origin]

    def _indexes_of_merges(self, place: Place, query: SearchQuery) -> list[Finding]:
        """Return the indexes that are missed where merges are followed in both directions."""
        merges = self._section.merges
        if merges is None or not place.field.follows_merges or not query.criteria:
            return []
        rows = self._inspection.mapping.resources[ResourceType.PATIENT].rows
        names = merges.id.name, merges.survivor.column.name
        origins = self._inspection.origins_of(rows)
        plain = [[origins[name]] for name in names if name in origins]
        return self._indexes_of_joins(place, plain)

    def _indexes_of_joins(
        self, place: Place, joins: Iterable[Sequence[ColumnOrigin]]
    ) -> list[Finding]:
        """Return the indexes of joins for which none begins with a column that they compare.

        Columns before it that `rows` compares too, as with a constant, are no obstacle.
        """
        compared, lacks = names_compared(self._rows), list[Finding]()
        for columns in dict.fromkeys(map(tuple, joins)):
            starts = self._index_starts(columns[0].table, compared)
            if starts is None or any(
                _plain(origin.column) in starts for origin in columns
            ):
                continue
            text = f"{_NO_INDEX} this column, which joins tables"
            remedy, name = self._statement(*columns), str(columns[0])
            lacks.append(
                self._finding(place, text, self._severity, remedy=remedy, column=name)
            )
        return lacks

    def _indexable(self, place: Place) -> ColumnOrigin | None:
        """Return the column that is compared, or its expression on the table of the id."""
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

        Columns that are only `read` are beside the keys, where the database knows that.
        """
        table, beside = origins[0].table, ""
        columns = [self._written(origin) for origin in origins]
        if read and self._database.dialect.has_included_columns:
            beside = f" INCLUDE ({', '.join(map(self._written, read))})"
        else:
            columns += map(self._written, read)
        texts = (table.rpartition(".")[2], *(origin.column for origin in origins))
        words = re.findall(r"\w+", " ".join(texts))
        # Short enough for every database.
        name = "_".join(words)[:60].rstrip("_")
        return f"{INDEX} {name} ON {table} ({', '.join(columns)}){beside};"

    def _written(self, origin: ColumnOrigin) -> str:
        """Return a column as an index names it; an expression stands in parentheses."""
        if not re.fullmatch(r"\w+", origin.column):
            return f"({origin.column})"
        quote = self._database.run(lambda c: c.dialect.identifier_preparer)
        return str(quote.quote(origin.column))

    def _index_starts(
        self, table: str, passed: Collection[str] = ()
    ) -> frozenset[str] | None:
        """Return what the indexes of a table begin with.

        Return None for a table that is too small for an index, or that cannot be read.
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
    is_far = cost.read is not None and cost.read > MOST_READ_PER_ROW * max(
        cost.rows, PAGE_SIZE
    )
    return is_far or cost.milliseconds > SLOW_MS


def _index_starts_of(
    connection: sa.Connection, table: str, passed: Collection[str]
) -> frozenset[str] | None:
    """Return the first column or expression of each index of a table, None for a view.

    Those behind columns that are passed over are first ones, too.
    """
    *schemas, name = parts_of_name(table)
    schema, inspector = schemas[-1] if schemas else None, sa.inspect(connection)
    if name in inspector.get_view_names(schema):
        return None
    with warnings.catch_warnings():
        # An index of an expression that SQLAlchemy does not read.
        warnings.simplefilter("ignore", sa.exc.SAWarning)
        indexes = inspector.get_indexes(name, schema, include_auto_indexes=True)
        key = inspector.get_pk_constraint(name, schema)["constrained_columns"]
    index_columns = [
        index.get("expressions") or index["column_names"] for index in indexes
    ]
    firsts: set[str] = set()
    for columns in (*index_columns, key):
        for column in (_plain(name or "") for name in columns):
            firsts.add(column)
            if column not in passed:
                break
    return frozenset(firsts)


def _plain(expression: str) -> str:
    """Return a column or an expression in the form in which two of them compare."""
    return re.sub(r"[\s()]+", "", expression).lower()
