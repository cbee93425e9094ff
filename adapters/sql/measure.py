"""What `mapping check --live` measures in a database: each search parameter, sort and count.

Each runs as the service runs it, for a value of a sampled row. An index is suggested where
searches compare a column of one table that no index begins with, so that a small copy of a
hospital shows what the large one needs. What reads far too many rows, or takes too long, is
reported as slow.
"""

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import sqlalchemy as sa

from adapters.contract import (
    Adapter,
    Criterion,
    DateCriterion,
    NotAskableError,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    SourceTimedOutError,
    StringCriterion,
    TooCostlyError,
)
from adapters.inspection import (
    SAMPLE,
    Finding,
    Measurement,
    Result,
    Severity,
    criterion_of,
    timed,
)
from adapters.mapping.slots import Place
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from adapters.sql.columns import FOLDS, Kind
from adapters.sql.dialects.base import Origin
from adapters.sql.inspect import Inspection
from adapters.sql.joins import between, looked_up
from adapters.sql.query import NEVER

PAGE = 20
"""How many rows a measured page has."""

FAR = 50
"""A search is slow that reads more rows than this for each row of its page, or counted."""

SLOW = 1000.0
"""A search is slow that takes more milliseconds than this, twice."""


class Lack(NamedTuple):
    """An index that a field lacks: the statement that creates it."""

    place: Place
    statement: str
    has_words: bool = False
    joined: str = ""
    """The column, where it is one that joins tables and not that of the field."""


class Measuring:
    """The searches of a section, measured one after the other."""

    def __init__(self, inspection: Inspection, adapter: Adapter) -> None:
        self._of, self._adapter = inspection, adapter
        self._section, self._kind = inspection.section, inspection.kind
        self._searches: dict[str, list[str]] = {}
        """The searches that lack an index, by its statement."""
        self._lacks: dict[str, Lack] = {}

    def results(self) -> Iterator[Result]:
        """Yield what each search costs, then the indexes that searches lack."""
        for parameter in self._section.mapping.parameters:
            slots = SEARCH_PARAMETERS[self._kind][parameter].slots
            places = [p for p in self._of.places if p.slot in slots and p.field.columns]
            criterion = self._criterion(parameter)
            if criterion is None or not places:
                text = (
                    f"'{parameter}' is not measured: no row of the sample has a value"
                )
                topic = "types with searches that are not measured"
                yield self._of.finding(text, Severity.NOTE, topic)
                continue
            is_dated = SortKey.DATE in self._section.mapping.sorts
            sort = Sort(SortKey.DATE if is_dated else SortKey.ID, descending=is_dated)
            query = SearchQuery(self._kind, (criterion,), sort, PAGE)
            yield from self._measured(parameter, query, places)
        for key in dict.fromkeys((*self._section.mapping.sorts, SortKey.ID)):
            sort = Sort(key, descending=key is not SortKey.ID)
            place = self._of.place(SORTS[self._kind].get(key, "id"))
            query = SearchQuery(self._kind, (), sort, PAGE)
            yield from self._measured(f"_sort={key}", query, [place])
        for lack in self._lacks.values():
            yield self._of_lack(
                lack, ", ".join(map(repr, self._searches[lack.statement]))
            )

    def _criterion(self, parameter: str) -> Criterion | None:
        """Return a criterion that a row of the sample meets."""
        records = (row for row in self._of.sample if not isinstance(row, RowFault))
        for criterion in (criterion_of(parameter, record) for record in records):
            if criterion and self._can_match(criterion):
                return criterion
        return None

    def _can_match(self, criterion: Criterion) -> bool:
        query = SearchQuery(self._kind, (criterion,), Sort(SortKey.ID), 1)
        try:
            return self._section.filters.of_query(query) is not NEVER
        except NotAskableError:
            return False

    def _measured(
        self, word: str, query: SearchQuery, places: list[Place]
    ) -> Iterator[Result]:
        """Yield what a page and a count cost, and where they are slow for another reason."""
        lacks = [lack for place in places for lack in self._lacking(place, query)]
        lacks += self._lacking_of_merges(places[0], query)
        name = f"{self._kind}?{word}"
        try:
            costs = [self._cost(name, query)]
            if query.criteria:
                costs += self._cost_of_count(f"{name}, count", query)
                costs += self._costs_of_merges(f"{name}, merges", query)
        except SourceTimedOutError:
            text = f"'{word}' fails: it takes longer than source.timeout_seconds"
            yield self._of_index(places[0], text, Severity.WARNING)
            return
        except SourceDataError as error:
            text = f"'{word}' fails: {error}"
            yield self._of_index(places[0], text, Severity.ERROR)
            return
        slow = [cost for cost in costs if _is_slow(cost)]
        if slow:
            columns = looked_up(self._section.mapping.rows)
            lacks += self._lacking_joins(places[0], columns)
        if slow and not lacks:
            yield self._slow(word, query, places[0], slow[0])
        for lack in lacks:
            self._lacks.setdefault(lack.statement, lack)
            self._searches.setdefault(lack.statement, []).append(word)
        yield replace(costs[0], indexes=tuple(lack.statement for lack in lacks))
        yield from costs[1:]

    def _cost(self, name: str, query: SearchQuery) -> Measurement:
        search = partial(self._adapter.search, query)
        page, milliseconds = timed(search)
        if milliseconds > SLOW:
            milliseconds = min(milliseconds, timed(search)[1])
        read, missing = 0, query.count + 1
        query, _ = self._section.meant(self._of.database, query)
        for segment, condition in self._section.segments(query):
            statement = self._section.page(segment, condition, missing)
            rows = self._of.database.rows_read(statement)
            if rows is None:
                return Measurement(name, milliseconds, len(page.rows))
            read, missing = read + rows.read, missing - rows.returned
            if missing <= 0:
                break
        return Measurement(name, milliseconds, len(page.rows), read)

    def _cost_of_count(self, name: str, query: SearchQuery) -> Iterator[Measurement]:
        """Yield what counting costs, unless the service itself gives up."""
        try:
            total, milliseconds = timed(partial(self._adapter.count, query))
        except TooCostlyError:
            return
        meant, _ = self._section.meant(self._of.database, query)
        condition = self._section.filters.of_query(meant)
        rows = self._of.database.rows_read(self._section.columns.count(condition))
        yield Measurement(name, milliseconds, total, rows and rows.read)

    def _costs_of_merges(self, name: str, query: SearchQuery) -> Iterator[Measurement]:
        """Yield what the first step along merges costs."""
        merges, database = self._section.merges, self._of.database
        for statement in merges.first_steps(query) if merges else ():
            found, milliseconds = timed(partial(database.fetch, statement))
            rows = database.rows_read(statement)
            yield Measurement(name, milliseconds, len(found), rows and rows.read)

    def _slow(
        self, word: str, query: SearchQuery, place: Place, cost: Measurement
    ) -> Finding:
        read = f"reads {cost.read:,} rows for {cost.rows:,}, " if cost.read else ""
        text = f"'{word}' is slow: {read}in {cost.milliseconds:,.0f} ms"
        if any(isinstance(each, StringCriterion) for each in query.criteria):
            text += ". A column of folded texts, named by search:, makes it faster"
            is_fast = cost.milliseconds <= SLOW
            return self._of_index(
                place, text, Severity.NOTE if is_fast else self._severity
            )
        if self._of.origin(place) is None:
            text += ": the SELECT computes the column, of which no table has an index"
        return self._of_index(place, text, self._severity)

    @property
    def _severity(self) -> Severity:
        """How much a slow search matters: organizations are few, stays only in a copy."""
        is_few = (
            self._kind is ResourceType.ORGANIZATION and len(self._of.sample) < SAMPLE
        )
        return Severity.NOTE if is_few else Severity.WARNING

    # Indexes

    def _lacking(self, place: Place, query: SearchQuery) -> Iterator[Lack]:
        """Yield the index that a filter, or a sort without a criterion, lacks."""
        origin = self._indexable(place)
        if origin is None or (begins := self._begins(origin.table)) is None:
            return
        (criterion,) = query.criteria or (None,)
        plain = _plain(origin.column)
        kind = self._of.columns_of(place).column(place.field.filter_column).kind
        is_ordered = criterion is None or isinstance(criterion, DateCriterion)
        if isinstance(criterion, StringCriterion):
            form = self._of.database.dialect.text_index
            has_words = any(plain in begin and begin != plain for begin in begins)
            if form and place.field.search_column and not has_words:
                name, column = _name(origin, "words"), self._written(origin)
                text = form.format(name=name, table=origin.table, column=column)
                yield Lack(place, text, has_words=True)
        # Some kinds are compared by an expression, which no index of the column has.
        elif kind is Kind.OTHER or (kind in FOLDS and is_ordered) or plain in begins:
            return
        else:
            origins = [origin, *self._order_columns(place, criterion, origin)]
            name = _name(*origins)
            columns = ", ".join(map(self._written, origins))
            yield Lack(place, f"CREATE INDEX {name} ON {origin.table} ({columns});")

    def _lacking_of_merges(self, place: Place, query: SearchQuery) -> Iterator[Lack]:
        """Yield the indexes that are missed where merges are followed in both directions."""
        merges = self._section.merges
        if merges is None or not place.field.follows_merges or not query.criteria:
            return
        rows = self._of.mapping.resources[ResourceType.PATIENT].rows
        names = merges.id.name, merges.survivor.column.name
        origins = self._of.origins_of(rows)
        plain = (origins[name] for name in names if name in origins)
        yield from self._lacking_joins(place, (*plain, *between(rows, *names)))

    def _lacking_joins(self, place: Place, columns: Iterable[Origin]) -> Iterator[Lack]:
        """Yield the indexes of columns of tables that no index begins with."""
        for origin in dict.fromkeys(columns):
            begins = self._begins(origin.table)
            if begins is not None and _plain(origin.column) not in begins:
                table, column = origin.table, self._written(origin)
                text = f"CREATE INDEX {_name(origin)} ON {table} ({column});"
                yield Lack(place, text, joined=str(origin))

    def _indexable(self, place: Place) -> Origin | None:
        """Return the column that is compared, or its expression on the table of the id."""
        if origin := self._of.origin(place):
            return origin
        of_id = self._of.origin(self._of.place("id"))
        if place.rows or of_id is None:
            return None
        computed = self._of.database.computed(self._section.mapping.rows)
        origin = computed.get(place.field.filter_column or "")
        return origin if origin and origin.table == of_id.table else None

    def _order_columns(
        self, place: Place, criterion: Criterion | None, origin: Origin
    ) -> list[Origin]:
        """Return the columns with which an index also has the order of pages."""
        slots = ["id"]
        if criterion is not None:
            row = SEARCH_PARAMETERS[self._kind][criterion.parameter]
            # One value leaves so few rows of these that sorting them costs nothing.
            if row.is_id or row.system_slot or "birth_date" in row.slots or place.rows:
                return []
            slots = ["id"] if "start" in row.slots else ["start", "id"]
        places = [p for p in self._of.places if p.slot in slots and not p.rows]
        origins = [self._indexable(p) for p in places if p.field.columns][::-1]
        if any(each is None or each.table != origin.table for each in origins):
            return []
        return [each for each in origins if each and each != origin]

    def _written(self, origin: Origin) -> str:
        """Return a column, or an expression, as a statement has to write it."""
        if not re.fullmatch(r"\w+", origin.column):
            return f"({origin.column})"
        quote = self._of.database.run(lambda c: c.dialect.identifier_preparer.quote)
        return str(quote(origin.column))

    def _begins(self, table: str) -> frozenset[str] | None:
        """Return what the indexes of a table begin with, None where that is not known."""
        try:
            return self._of.database.run(partial(_begins, table=table))
        except SourceDataError:
            return None

    def _of_lack(self, lack: Lack, searches: str) -> Finding:
        text, severity = f"no index begins with this column: {searches}", self._severity
        if lack.has_words:
            text = f"no index has the words of this column: {searches}"
            severity = Severity.NOTE
        elif lack.joined:
            text = f"no index begins with a column that joins tables: {searches}"
        elif lack.place.field.codes is not None:
            text += " (it has few different values: an index helps with rare ones only)"
            severity = Severity.NOTE
        return self._of_index(
            lack.place, text, severity, lack.statement, column=lack.joined
        )

    def _of_index(
        self,
        place: Place,
        text: str,
        severity: Severity,
        remedy: str = "",
        column: str = "",
    ) -> Finding:
        """Return the finding of a field with the column that is compared, or another one."""
        column = column or str(
            self._of.origin(place) or place.field.filter_column or ""
        )
        topic = "fields that an index may help"
        return Finding.of_field(place, column, text, severity, remedy, topic)


def _is_slow(cost: Measurement) -> bool:
    is_far = cost.read is not None and cost.read > FAR * max(cost.rows, PAGE)
    return is_far or cost.milliseconds > SLOW


def _begins(connection: sa.Connection, table: str) -> frozenset[str] | None:
    """Return the first column or expression of each index of a table, None for a view."""
    *schemas, name = (a or b for a, b in re.findall(r'"([^"]+)"|([^."]+)', table))
    schema, inspector = schemas[-1] if schemas else None, sa.inspect(connection)
    if name in inspector.get_view_names(schema):
        return None
    with warnings.catch_warnings():
        # An index of an expression that SQLAlchemy does not read.
        warnings.simplefilter("ignore", sa.exc.SAWarning)
        indexes = inspector.get_indexes(name, schema, include_auto_indexes=True)
        key = inspector.get_pk_constraint(name, schema)["constrained_columns"]
    every = [index.get("expressions") or index["column_names"] for index in indexes]
    firsts = [columns[0] for columns in (*every, key) if columns]
    return frozenset(_plain(first) for first in firsts if first)


def _plain(expression: str) -> str:
    """Return a column or an expression in the form in which two of them compare."""
    return re.sub(r"\s+", "", expression).strip("()").lower()


def _name(*parts: Origin | str) -> str:
    """Return a name for an index, short enough for every database."""
    (first, *others) = parts
    texts = [p if isinstance(p, str) else p.column for p in others]
    assert isinstance(first, Origin), "an index begins with a column"
    table = first.table.rpartition(".")[2]
    words = re.findall(r"\w+", " ".join((table, first.column, *texts)))
    return "_".join(words)[:60].rstrip("_")
