"""A search in FHIR's terms as conditions on the columns of a SELECT (SQLAlchemy Core).

Conditions compare the source's own values: its codes, its local times, its kind of number.
Every value is bound. Criteria are compared by the type and slots of their parameter's row in
`adapters.parameters`, never by the parameter's name.
"""

import operator
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache, partial
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from adapters.contract import (
    Criterion,
    DateCriterion,
    DateValue,
    Prefix,
    ReferenceCriterion,
    SearchQuery,
    SortKey,
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from adapters.folding import fold
from adapters.mapping.model import (
    DateReading,
    FieldMapping,
    ItemMapping,
    ResourceMapping,
)
from adapters.mapping.slots import LINES, LISTS, LONGEST_ID, SLOTS, UNSERVED
from adapters.mapping.slots import Kind as SlotKind
from adapters.parameters import SEARCH_PARAMETERS, SORTS, SearchParameter
from adapters.sql.columns import (
    FOLDS,
    NUMBERS,
    TEXTS,
    TIMES,
    WHOLE,
    Column,
    Kind,
    can_hold,
    day_bound,
    held,
    time_bound,
)
from adapters.sql.dialects.base import Dialect, Expression, Select, Statement

Operator: TypeAlias = Literal["<", "<=", ">", ">="]
Order: TypeAlias = tuple[tuple["SqlColumn", bool], ...]
"""Columns to sort by, and whether each descends."""

Where: TypeAlias = sa.ColumnElement[bool]
Build: TypeAlias = Callable[..., Select]


class Names:
    """The names of the bound values of one statement, in their order."""

    def __init__(self) -> None:
        self.all: list[str] = []
        # SQLAlchemy itself names the limit param_1.
        self._used = Counter({"param": 1})

    def next(self, column: str) -> str:
        """Return the name of another value of a column."""
        self._used[column] += 1
        name = f"{column}_{self._used[column]}"
        self.all.append(name)
        return name


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on rows: its shape, and the values that it binds, in order.

    Conditions are equal that differ in nothing but their values: SQL is made once for each
    `shape`, since that costs more than most searches.
    """

    shape: Hashable
    values: tuple[object, ...] = field(compare=False)
    build: Callable[[Names], sa.ColumnElement[bool]] = field(compare=False)
    """Returns its SQL, the values by names."""


# Not every database knows a plain false.
NEVER = Condition("never", (), lambda _names: sa.literal_column("1 = 0"))
ALWAYS = Condition("always", (), lambda _names: sa.true())
"""The one condition that no row meets, and the one that all do: compare with `is`."""

CACHED_STATEMENTS = 300
"""How many statements of each SELECT are remembered, by their shapes."""

# Written out: to some databases a bound number is no order.
_FIRST: Expression = sa.literal_column("0")
_LAST: Expression = sa.literal_column("1")

LONGEST_PATTERN = 4000
"""In bytes: the longest pattern that every database accepts in a LIKE (Oracle)."""

LONGEST_LIST = 1000
"""In values: the longest list that every database accepts after IN (Oracle)."""

_FEW = 8
"""Up to so many values of a list have a placeholder each: SQLAlchemy then writes no new
text for every search."""

UTC = ZoneInfo("UTC")

_UNTYPED = sa.types.NullType()
_COMPARE: Mapping[Operator, Callable[[Any, Any], sa.ColumnElement[bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that holds where all do."""
    return _joined(sa.and_, conditions, neutral=ALWAYS, decisive=NEVER)


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that holds where one does."""
    return _joined(sa.or_, conditions, neutral=NEVER, decisive=ALWAYS)


def _joined(
    join: Callable[..., sa.ColumnElement[bool]],
    conditions: Iterable[Condition],
    *,
    neutral: Condition,
    decisive: Condition,
) -> Condition:
    parts = [each for each in conditions if each is not neutral]
    if any(part is decisive for part in parts):
        return decisive
    if len(parts) < 2:
        return parts[0] if parts else neutral
    return Condition(
        (join, *(part.shape for part in parts)),
        tuple(chain.from_iterable(part.values for part in parts)),
        lambda names: join(*[part.build(names) for part in parts]),
    )


# Columns


@dataclass(frozen=True, eq=False)
class SqlColumn:
    """A column of a SELECT in SQL, and how values are compared with it."""

    name: str
    kind: Kind
    collation: str
    plain: Expression
    dialect: Dialect
    enumeration: str = ""

    @cached_property
    def exact(self) -> Expression:
        """The column in the form in which it is compared and sorted exactly."""
        return self.dialect.exact(self.plain) if self.kind in FOLDS else self.plain

    @cached_property
    def text(self) -> Expression:
        """The text that the service shows of a value."""
        if write := self.dialect.writes.get(self.kind):
            return write(self.plain)
        if self.kind is Kind.OTHER:
            return sa.cast(self.plain, sa.Text)
        # The text of these in every database is the one that is shown.
        if self.kind in WHOLE or self.kind is Kind.UUID:
            return sa.cast(self.plain, sa.String(LONGEST_ID))
        return self.exact

    def bind(self, names: Names) -> Expression:
        """Return a placeholder, of the type that the column needs to use its index."""
        bound = self._placeholder(names)
        cast_to = self.dialect.casts.get(self.kind)
        return bound if cast_to is None else sa.cast(bound, cast_to)

    def compare(self, sign: Operator, value: object) -> Condition:
        """Return where the column compares so with a value."""
        return Condition(
            (self, sign),
            (value,),
            lambda names: _COMPARE[sign](self.exact, self.bind(names)),
        )

    def is_in(self, values: Sequence[object]) -> Condition:
        """Return where the column is one of the values."""
        if self.enumeration and len(values) <= _FEW:
            # An index of the column serves, unlike with its text.
            label = partial(self.dialect.label, self.enumeration)
            return self._listed(
                "in",
                values,
                lambda bound: sa.or_(*(self.plain == label(each) for each in bound)),
            )
        equal = self._listed("in", values, lambda bound: self._equated.in_(bound))
        if self.kind not in FOLDS:
            return equal
        # What is equal exactly is equal without case as well: that has the index.
        folded = self._listed("folded", values, lambda bound: self.plain.in_(bound))
        return all_of([folded, equal])

    def not_in(self, values: Sequence[object]) -> Condition:
        """Return where the column is none of the values, nor NULL."""
        return self._listed("not in", values, lambda bound: self._equated.not_in(bound))

    @cached_property
    def is_null(self) -> Condition:
        """Where the column is NULL."""
        is_null = self.dialect.is_null(self.plain)
        return Condition((self, "null"), (), lambda _names: is_null)

    @cached_property
    def is_not_null(self) -> Condition:
        """Where the column is not NULL."""
        return Condition((self, "not null"), (), lambda _names: self.plain.is_not(None))

    @property
    def ends_in_blanks(self) -> Condition:
        """Where the database distinguishes a text from the same without its trailing blanks."""
        text = self.plain
        if self.kind is Kind.LOOSE:
            text = sa.cast(text, sa.Text)
        return Condition(
            (self, "blanks"), (), lambda _names: text != sa.func.rtrim(text)
        )

    def like(self, pattern: str, *, is_folded: bool) -> Condition:
        """Return where the folded text matches a pattern; ! escapes % and _ in it."""

        def build(names: Names) -> sa.ColumnElement[bool]:
            text = self.plain
            if self.kind in FOLDS:
                text = self.dialect.searched(text)
            text = sa.func.lower(text) if is_folded else self.dialect.fold(text)
            # With the blank in front one pattern finds the start of every word.
            blank: sa.ColumnElement[str] = sa.literal_column("' '", sa.Text)
            return (blank + text).like(self._placeholder(names), escape="!")

        return Condition((self, "like", is_folded), (pattern,), build)

    @cached_property
    def _equated(self) -> Expression:
        if self.kind is Kind.OTHER:
            return sa.cast(self.plain, sa.Text)
        return self.exact

    def _listed(
        self,
        sign: str,
        values: Sequence[object],
        compare: Callable[[Any], sa.ColumnElement[bool]],
    ) -> Condition:
        count = len(values)
        if self.kind in self.dialect.casts or count <= _FEW:
            return Condition(
                (self, sign, count),
                tuple(values),
                lambda names: compare([self.bind(names) for _ in range(count)]),
            )
        return Condition(
            (self, sign),
            (list(values),),
            lambda names: compare(self._placeholder(names, expanding=True)),
        )

    def _placeholder(self, names: Names, *, expanding: bool = False) -> Expression:
        # Without a type of SQLAlchemy: the database uses that of the column.
        name = names.next(self.name)
        return sa.bindparam(name, type_=_UNTYPED, expanding=expanding)


def are_comparable(one: Kind, other: Kind) -> bool:
    """Whether a database compares columns of two kinds as the service reads them.

    Databases compare a number with a text roughly, or not at all, as with a UUID.
    """
    if one is other:
        return True
    kinds = {one, other}
    return not (
        kinds & {Kind.UUID, Kind.OTHER} or (kinds & {*TEXTS} and kinds & NUMBERS)
    )


def meets(
    column: SqlColumn,
    other: SqlColumn,
    one_of: Callable[[Expression, Expression], sa.ColumnElement[bool]],
) -> sa.ColumnElement[bool]:
    """Return where a column is one of the values of another, as the service reads both.

    An index of the column serves, but of a number or UUID that is compared with texts.
    """
    value, collations = other.plain, {column.collation, other.collation}
    if not are_comparable(column.kind, other.kind):
        if column.kind not in TEXTS:
            return one_of(column.text, other.text)
        value = other.text
    elif len(collations) > 1 and "" not in collations:
        value = column.dialect.collated(value, column.collation)
    condition = one_of(column.plain, value)
    if not {column.kind, other.kind} & {*FOLDS}:
        return condition
    # What is equal exactly is equal without case as well: that has the index.
    exact = other.exact if other.kind in TEXTS else value
    return sa.and_(condition, one_of(column.exact, exact))


# Fields


_MAY_BE_EMPTY = (Kind.TEXT, *FOLDS, Kind.LOOSE)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_INFINITE = ("infinity", "-infinity")
"""Times of PostgreSQL that no calendar has; a mapping may list them as absent."""


@dataclass(frozen=True, eq=False)
class KeyColumn:
    """A column whose missing values are NULL and a few texts that mean the same.

    The database would compare such a text ('', a date far away) as a value.
    """

    column: SqlColumn
    absent: frozenset[str] = frozenset()

    @cached_property
    def _sentinels(self) -> tuple[object, ...]:
        texts = sorted(self.absent)
        kind = self.column.kind
        if kind in _MAY_BE_EMPTY:
            # A day may be written as its midnight: the mapping reads both as one.
            texts = ["", *texts, *(f"{t} 00:00:00" for t in texts if _DAY.fullmatch(t))]
        values = [value for text in texts for value in held(kind, text)]
        zero = self.column.dialect.zero_date
        unreal = (*_INFINITE, zero, f"{zero} 00:00:00") if kind in TIMES else ()
        return (*values, *(text for text in texts if text and text in unreal))

    @property
    def is_missing_as_null(self) -> bool:
        """Whether only NULL is a missing value."""
        return not self._sentinels

    @cached_property
    def present(self) -> Condition:
        """Rows that have the value."""
        if not self._sentinels:
            return self.column.is_not_null
        return self.column.not_in(self._sentinels)

    @cached_property
    def missing(self) -> Condition:
        """Rows that have not."""
        if not self._sentinels:
            return self.column.is_null
        return any_of([self.column.is_null, self.column.is_in(self._sentinels)])

    def compare(self, sign: Operator, value: object) -> Condition:
        """Return a comparison that only rows with the value meet."""
        comparison = self.column.compare(sign, value)
        return all_of([comparison, self.present]) if self._sentinels else comparison


class TimeColumn(NamedTuple):
    """A column of times or days; `bound` is its smallest value not before an instant.

    A comparison by the `implied` sign holds already, by where a page starts.
    """

    key: KeyColumn
    bound: Callable[[datetime], object]
    implied: Operator | None = None

    def before(self, moment: datetime) -> Condition:
        """Return the rows before an instant."""
        return self._compare("<", moment)

    def since(self, moment: datetime) -> Condition:
        """Return the rows at or after an instant."""
        return self._compare(">=", moment)

    def _compare(self, sign: Operator, moment: datetime) -> Condition:
        if sign == self.implied:
            return ALWAYS
        return self.key.compare(sign, self.bound(moment))

    def at(self, value: DateValue) -> Condition:
        """Compare a point in time, or a day, with a date value (decision 5)."""
        match value.prefix:
            case Prefix.EQ:
                return all_of([self.since(value.low), self.before(value.high)])
            case Prefix.NE:
                return any_of([self.before(value.low), self.since(value.high)])
            case Prefix.GT:
                return self.since(value.high)
            case Prefix.GE:
                return self.since(value.low)
            case Prefix.LT:
                return self.before(value.low)
            case Prefix.LE:
                return self.before(value.high)


def period_at(start: TimeColumn, end: TimeColumn, value: DateValue) -> Condition:
    """Compare a period, whose end is part of it; a missing bound has no limit.

    This is STU3's table of prefixes word for word: `ge` is `gt` or `eq`, `le` `lt` or `eq`.
    """
    inside = all_of([start.since(value.low), end.before(value.high)])
    below = any_of([start.before(value.low), start.key.missing])
    above = any_of([end.since(value.high), end.key.missing])
    table = {
        Prefix.EQ: [inside],
        Prefix.NE: [below, above],
        Prefix.GT: [above],
        Prefix.LT: [below],
        Prefix.GE: [above, inside],
        Prefix.LE: [below, inside],
    }
    return any_of(table[value.prefix])


class Columns:
    """The columns of one SELECT of a mapping, and the conditions on its fields."""

    def __init__(
        self,
        dialect: Dialect,
        rows: str,
        columns: Sequence[Column],
        alias: str = "pas",
        zone: ZoneInfo = UTC,
    ) -> None:
        self.dialect = dialect
        self.names = tuple(column.name for column in columns)
        self.described = tuple(columns)
        text = dialect.bound(rows, zone)
        named: list[sa.ColumnClause[Any]] = [*map(sa.column, dict.fromkeys(self.names))]
        self.table = text.columns(*named).subquery(alias)
        self._by_name = {
            name: SqlColumn(name, kind, collation, self.table.c[name], dialect, type_)
            for name, kind, collation, type_ in columns
        }
        self._keys: dict[object, KeyColumn] = {}
        self._prepared = lru_cache(CACHED_STATEMENTS)(self._prepare)

    def column(self, name: str | None) -> SqlColumn:
        """Return a column by its name."""
        return self._by_name[name or ""]

    def key(self, field: FieldMapping) -> KeyColumn:
        """Return the column that filters and sorts compare of a field."""
        at = field.filter_column, field.absent
        if at not in self._keys:
            self._keys[at] = KeyColumn(self.column(at[0]), at[1])
        return self._keys[at]

    def select(
        self,
        names: Sequence[str],
        condition: Condition,
        order: Order = (),
        *,
        limit: int | None = None,
        nulls_last: bool = False,
    ) -> Statement:
        """Return the SELECT of these columns; with `nulls_last` rows without the first
        column to sort by come last whatever the direction.
        """
        arguments = tuple(names), order, limit, nulls_last
        return self._statement(self._rows, (condition,), *arguments)

    def select_each(
        self, names: Sequence[str], conditions: Sequence[Condition]
    ) -> Statement:
        """Return a SELECT of the rows of each condition, those of all in one statement."""
        return self._statement(self._each, tuple(conditions), tuple(names))

    def count(self, condition: Condition) -> Statement:
        """Return the statement that counts the rows."""
        return self._statement(self._number, (condition,))

    def count_by(
        self, column: SqlColumn, condition: Condition, limit: int
    ) -> Statement:
        """Return the values of a column with the number of their rows, most rows first."""
        return self._statement(self._groups, (condition,), column, limit)

    def _statement(
        self, build: Build, conditions: tuple[Condition, ...], *arguments: Hashable
    ) -> Statement:
        select, names = self._prepared(build, conditions, *arguments)
        values = chain.from_iterable(each.values for each in conditions)
        return Statement(select, dict(zip(names, values, strict=True)))

    def _prepare(
        self, build: Build, conditions: tuple[Condition, ...], *arguments: Hashable
    ) -> tuple[Select, tuple[str, ...]]:
        """Return a SELECT, and the names of the values that it binds, in order."""
        names = Names()
        wheres = [each.build(names) for each in conditions if each is not ALWAYS]
        return build(wheres, *arguments), tuple(names.all)

    def _rows(
        self,
        wheres: Sequence[Where],
        names: tuple[str, ...],
        order: Order,
        limit: int | None,
        nulls_last: bool,
    ) -> Select:
        statement = self._selected(names).where(*wheres)
        if nulls_last:
            is_null = self.dialect.is_null(order[0][0].plain)
            statement = statement.order_by(sa.case((is_null, _LAST), else_=_FIRST))
        for column, descends in order:
            exact = column.exact
            statement = statement.order_by(exact.desc() if descends else exact.asc())
        return statement if limit is None else self.dialect.first(statement, limit)

    def _each(self, wheres: Sequence[Where], names: tuple[str, ...]) -> Any:
        # Each finds its rows by an index: few databases do for columns of two tables.
        selects = [self._selected(names).where(where) for where in wheres]
        return sa.union_all(*selects) if len(selects) > 1 else selects[0]

    def _selected(self, names: tuple[str, ...]) -> Select:
        return sa.select(*(self.table.c[name] for name in names))

    def _number(self, wheres: Sequence[Where]) -> Any:
        return sa.select(sa.func.count()).select_from(self.table).where(*wheres)

    def _groups(self, wheres: Sequence[Where], column: SqlColumn, limit: int) -> Select:
        number = sa.func.count()
        groups: Any = sa.select(column.exact, number).where(*wheres)
        groups = groups.group_by(column.exact).order_by(number.desc())
        return self.dialect.first(groups, limit)

    def among(self, column: SqlColumn, texts: Iterable[str]) -> Condition:
        """Return where the column holds one of the texts."""
        values = self._values(column, texts)
        return column.is_in(values) if values else NEVER

    def not_among(self, column: SqlColumn, texts: Iterable[str]) -> Condition:
        """Return where the column holds none of the texts, nor NULL."""
        values = self._values(column, texts)
        return column.not_in(values) if values else column.is_not_null

    def _values(self, column: SqlColumn, texts: Iterable[str]) -> list[object]:
        return [value for text in texts for value in held(column.kind, text)]

    def equal(self, field: FieldMapping, texts: Iterable[str]) -> Condition:
        """Return where the field is one of the texts."""
        own = field.own(texts)
        if field.constant is not None:
            return ALWAYS if field.constant in own else NEVER
        return self.among(self.column(field.filter_column), own)

    def coded(self, field: FieldMapping, code: str) -> Condition:
        """Return where the field becomes `code`: its source codes, or all the others."""
        codes = field.codes
        if codes is None or not field.columns:
            return self.equal(field, [code])
        named = self.equal(field, codes.sources(code))
        if codes.otherwise != code:
            return named
        column = self.column(field.filter_column)
        # A code that no entry names, and none at all (decision 17).
        return any_of([named, self.not_among(column, codes.table), column.is_null])

    def identified(
        self, number: FieldMapping, system: FieldMapping | None, token: Token
    ) -> Condition:
        """Return where number and system are those of a token, as far as it has them."""
        if token.code is None:
            parts = [self.key(number).present]
        else:
            parts = [self.equal(number, [token.code])]
        if token.system is not None:
            parts.append(self._of_system(system, token.system))
        return all_of(parts)

    def _of_system(self, field: FieldMapping | None, system: str) -> Condition:
        if field is None:
            return ALWAYS if system == "" else NEVER
        if system != "":
            return self.coded(field, system)
        is_never_missing = not field.columns or (field.codes and field.codes.otherwise)
        return NEVER if is_never_missing else self.key(field).missing

    def matching(self, field: FieldMapping, text: str, match: StringMatch) -> Condition:
        """Return where the field's text matches (decision 9)."""
        if not field.columns or not can_hold(text) or not (folded := fold(text)):
            return NEVER
        shown = self.column(field.columns[0])
        present = KeyColumn(shown, field.absent).present if field.absent else ALWAYS
        if match is StringMatch.EXACT:
            return all_of([shown.is_in([text]), present])
        start = "% " if match is StringMatch.STARTS_WITH else "%"
        escaped = re.sub("([!%_])", r"!\1", folded)
        pattern = f"{start}{escaped}%"
        if len(pattern.encode()) > LONGEST_PATTERN:
            return NEVER
        column = self.column(field.filter_column)
        is_folded = field.search_column is not None
        return all_of([column.like(pattern, is_folded=is_folded), present])


# Filters


_FLAGS: Mapping[str, tuple[str, ...]] = {"true": ("true", "1"), "false": ("false", "0")}
"""The texts of a flag that no code table reads."""


@dataclass(frozen=True)
class Filters:
    """The conditions of one section; `item_columns` are those of each second SELECT."""

    section: ResourceMapping
    columns: Columns
    item_columns: Mapping[str, Columns] = field(default_factory=dict)
    date_reading: DateReading = DateReading.START

    def of_query(
        self, query: SearchQuery, implied: Operator | None = None
    ) -> Condition:
        """Return what the rows of a search meet, rows that are not served left out.

        The start of the page makes `implied` comparisons of the sort key hold already; one
        that is sent all the same costs PostgreSQL and SQLite the index.
        """
        sorted_by = SORTS[self.section.resource_type].get(query.sort.key, "")
        parts = [self._of(each, sorted_by, implied) for each in query.criteria]
        if not any("status" in self._row(each).slots for each in query.criteria):
            parts.append(self.served)
        return all_of(parts)

    def need_start(self, query: SearchQuery) -> bool:
        """Whether only rows with a start can match, sorted by it (decision 5)."""
        return (
            query.sort.key is SortKey.DATE
            and self.date_reading is DateReading.START
            and any(
                isinstance(each, DateCriterion) and self._row(each).slots == ("start",)
                for each in query.criteria
            )
        )

    def are_few(self, criterion: Criterion) -> bool:
        """Whether a criterion names what it wants, so that few rows match."""
        row = self._row(criterion)
        match criterion:
            case ReferenceCriterion():
                return True
            case TokenCriterion() if row.is_id or row.system_slot:
                return all(token.code for token in criterion.values)
            case _:
                return False

    def of_id(self, id: str) -> Condition:
        """Return what the row of one resource meets."""
        return self.columns.equal(self.section.fields["id"], [id])

    @cached_property
    def served(self) -> Condition:
        """What keeps hidden and removed rows out, `ALWAYS` where none is (decision 17)."""
        status = self.section.fields.get("status")
        if status is None or status.codes is None or not status.columns:
            return ALWAYS
        codes, column = status.codes, self.columns.column(status.columns[0])
        unserved = [code for code, status in codes.table.items() if status in UNSERVED]
        if codes.otherwise in UNSERVED:
            return self.columns.among(column, sorted(codes.table.keys() - unserved))
        if not unserved:
            return ALWAYS
        return any_of([self.columns.not_among(column, unserved), column.is_null])

    def time(self, slot: str) -> TimeColumn:
        """Return the column that a time or day is compared by."""
        name, kind = self._slot(slot)
        time = self.section.fields[name]
        key = self.columns.key(time)
        if time.time is None:
            raise AssertionError(f"{slot} is a time")
        bound = day_bound if kind is SlotKind.DATE else time_bound
        return TimeColumn(key, partial(bound, key.column.kind, time.time))

    def _row(self, criterion: Criterion) -> SearchParameter:
        return SEARCH_PARAMETERS[self.section.resource_type][criterion.parameter]

    def _of(
        self, criterion: Criterion, sorted_by: str, implied: Operator | None
    ) -> Condition:
        row = self._row(criterion)
        match criterion:
            case DateCriterion(values=values):
                # One of several values, or a gap between two, is not implied.
                if len(values) != 1 or values[0].prefix is Prefix.NE:
                    implied = None
                return any_of(
                    self._date(slot, value, implied if slot == sorted_by else None)
                    for slot in row.slots
                    for value in values
                )
            case TokenCriterion(values=tokens) if row.is_id:
                ids = [token.code for token in tokens if token.code]
                return self.columns.equal(self.section.fields["id"], ids)
            case TokenCriterion() | StringCriterion() | ReferenceCriterion():
                return any_of(
                    self._counted(item, self._holds(slot, row, criterion, field, item))
                    for slot in row.slots
                    for field, item in self._fields(slot)
                )

    def _holds(
        self,
        slot: str,
        row: SearchParameter,
        criterion: TokenCriterion | StringCriterion | ReferenceCriterion,
        field: FieldMapping,
        item: ItemMapping | None,
    ) -> Condition:
        """Return where a field has one of the values of a criterion."""
        columns = self.columns_of(item)
        match criterion:
            case TokenCriterion(values=tokens):
                return any_of(
                    self._is_token(slot, row, token, field, item) for token in tokens
                )
            case StringCriterion(values=texts, match=match):
                return any_of(columns.matching(field, text, match) for text in texts)
            case ReferenceCriterion(values=ids):
                return columns.equal(field, ids)

    def _is_token(
        self,
        slot: str,
        row: SearchParameter,
        token: Token,
        field: FieldMapping,
        item: ItemMapping | None,
    ) -> Condition:
        columns = self.columns_of(item)
        if row.system_slot is not None:
            name, _ = self._slot(row.system_slot)
            fields = item.fields if item else self.section.fields
            return columns.identified(field, fields.get(name), token)
        if token.code in (None, *UNSERVED):
            return NEVER
        if self._slot(slot)[1] is SlotKind.FLAG and field.codes is None:
            return columns.equal(field, _FLAGS.get(token.code, ()))
        return columns.coded(field, token.code)

    def _date(self, slot: str, value: DateValue, implied: Operator | None) -> Condition:
        if slot == "start" and self.date_reading is DateReading.PERIOD:
            return period_at(self.time("start"), self.time("end"), value)
        return self.time(slot)._replace(implied=implied).at(value)

    # Slots

    def _slot(self, slot: str) -> tuple[str, SlotKind]:
        """Return the name of a slot in its section or item, and its kind."""
        kind = self.section.resource_type
        listed, _, name = slot.rpartition(".")
        slots = SLOTS[kind]
        if listed:
            slots = next(items.slots for items in LISTS[kind] if items.name == listed)
        return next((s.record, s.kind) for s in (*slots, LINES) if s.name == name)

    def _fields(self, slot: str) -> Iterator[tuple[FieldMapping, ItemMapping | None]]:
        """Yield the fields that fill a slot: one, or those of each item of a list."""
        name, _ = self._slot(slot)
        listed, _, _ = slot.rpartition(".")
        if not listed and name in self.section.fields:
            yield self.section.fields[name], None
        for item in self.section.items.get(listed, ()):
            if slot.endswith(f".{LINES.name}"):
                yield from ((line, item) for line in item.lines)
            elif name in item.fields:
                yield item.fields[name], item

    def columns_of(self, item: ItemMapping | None) -> Columns:
        """Return the columns of an item's own SELECT, those of the section without one."""
        return self.item_columns[item.rows] if item and item.rows else self.columns

    def _counted(self, item: ItemMapping | None, condition: Condition) -> Condition:
        """Return where an item meets a condition and counts, in its own SELECT if any."""
        if item is None or condition is NEVER:
            return condition
        columns = self.columns_of(item)
        if item.only_if is not None:
            of_item = columns.column(item.only_if.column)
            is_counted = columns.among(of_item, sorted(item.only_if.values))
            condition = all_of([condition, is_counted])
        if item.key is None or condition is NEVER:
            return condition
        id_column = self.columns.column(self.section.fields["id"].columns[0])
        return in_rows(id_column, columns, columns.column(item.key), condition)


def in_rows(
    column: SqlColumn, columns: Columns, key: SqlColumn, condition: Condition
) -> Condition:
    """Return where a column is the key of a row of another SELECT that meets a condition."""

    def build(names: Names) -> sa.ColumnElement[bool]:
        rows = sa.select().select_from(columns.table).where(condition.build(names))
        return meets(
            column, key, lambda compared, key: compared.in_(rows.with_only_columns(key))
        )

    return Condition((column, key, condition.shape), condition.values, build)
