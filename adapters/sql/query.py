"""A search in FHIR's terms as conditions on the columns of a SELECT: SQL and its values.

Conditions compare the source's own values: its codes, its local times, its kind of number.
Every value is bound. Criteria are compared by the type and slots of their parameter's row in
`adapters.parameters`, never by the parameter's name.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from itertools import chain
from typing import Literal, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

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
from adapters.folding import fold, words_of
from adapters.mapping.binary import BinaryForm
from adapters.mapping.model import (
    DateReading,
    FieldMapping,
    ItemMapping,
    ResourceMapping,
)
from adapters.mapping.slots import LINES, LISTS, SLOTS, UNSERVED, SlotKind
from adapters.parameters import SEARCH_PARAMETERS, SORTS, SearchParameter
from adapters.sql.columns import (
    FOLDS,
    NUMBERS,
    TEXTS,
    TIMES,
    WHOLE,
    Column,
    ColumnKind,
    can_hold,
    day_bound,
    held,
    partial_values,
    time_bound,
    unreal_as_held,
)
from adapters.sql.dialects.base import MARK, Dialect, Sql, Statement

Operator: TypeAlias = Literal["<", "<=", ">", ">="]
Order: TypeAlias = tuple[tuple["SqlColumn", bool], ...]
"""Columns to sort by, and whether each descends."""


class Condition(Sql):
    """A condition on rows, which needs no parentheses beside AND."""

    __slots__ = ()


# Not every database knows a plain true and false.
NEVER = Condition("1 = 0")
ALWAYS = Condition("1 = 1")
"""The one condition that no row meets, and the one that all do: compare with `is`."""

LONGEST_PATTERN = 4000
"""In bytes: the longest pattern that every database accepts in a LIKE (Oracle)."""

LONGEST_LIST = 1000
"""In values: the longest list that every database accepts after IN (Oracle)."""

_FEW_LABELS = 8
"""Up to so many values of an enumeration are looked up in its labels."""

UTC = ZoneInfo("UTC")


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that holds where all do."""
    parts = [part for part in conditions if part is not ALWAYS]
    if NEVER in parts:
        return NEVER
    if len(parts) < 2:
        return parts[0] if parts else ALWAYS
    return Condition(" AND ".join([part.sql for part in parts]), _values_of(parts))


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that holds where one does."""
    parts = [part for part in conditions if part is not NEVER]
    if ALWAYS in parts:
        return ALWAYS
    if len(parts) < 2:
        return parts[0] if parts else NEVER
    return Condition(
        f"({' OR '.join([part.sql for part in parts])})", _values_of(parts)
    )


def _values_of(parts: Iterable[Sql]) -> tuple[object, ...]:
    return tuple(chain.from_iterable([part.values for part in parts]))


# Columns

_LIKE_A_NUMBER = re.compile(
    r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.I | re.ASCII
)


@dataclass(frozen=True, eq=False)
class SqlColumn:
    """A `Column` in SQL, `plain`, and how values are compared with it."""

    name: str
    kind: ColumnKind
    collation: str
    enumeration: str
    is_nullable: bool
    form: BinaryForm
    encoding: str
    plain: str
    dialect: Dialect

    @cached_property
    def read(self) -> str:
        """SQL that selects the column, converted where the driver would change its values."""
        convert = self.dialect.reads.get(self.kind)
        return convert(self.plain) if convert else self.plain

    def held(self, text: str) -> tuple[object, ...]:
        """Return a text as values that the column can equal; empty if it can hold none."""
        if not self.can_hold(text):
            return ()
        has_texts = self.dialect.has_texts_in_numbers and self.kind in NUMBERS
        if has_texts and not _LIKE_A_NUMBER.fullmatch(text):
            return (text,)
        return held(self.kind, text, self.form)

    def can_hold(self, text: str) -> bool:
        """Whether a text has no character that the column cannot hold."""
        return can_hold(text, self.encoding)

    @cached_property
    def exact(self) -> str:
        """The column in the form in which it is compared and sorted exactly."""
        return self.dialect.exact(self.plain) if self.kind in FOLDS else self.plain

    @cached_property
    def text(self) -> str:
        """SQL of the text that the service shows of a value."""
        if write := self.dialect.writes.get(self.kind):
            text = write(self.plain)
            return text if self.form is BinaryForm.HEX else self._grouped(text)
        # The text of these in every database is the one that is shown.
        if self.kind in WHOLE or self.kind is ColumnKind.UUID:
            return f"CAST({self.plain} AS {self.dialect.short})"
        return self._equated

    def _grouped(self, digits: str) -> str:
        """Return hexadecimal digits as those of a UUID, as `adapters.mapping.binary` does."""
        groups = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
        if self.form is BinaryForm.SWAPPED:
            groups = ((9, 8), (5, 4), (1, 4), (17, 4), (21, 12))
        cut, joint = self.dialect.substring, self.dialect.joint
        parts = [f"{cut}({digits}, {start}, {length})" for start, length in groups]
        between = f" {joint} '-' {joint} "
        return f"({between.join(parts)})"

    @cached_property
    def _equated(self) -> str:
        """The column in the form in which it is compared with a list of values."""
        if self.kind in (ColumnKind.OTHER, ColumnKind.LARGE):
            return self._long
        return self.exact

    @cached_property
    def _long(self) -> str:
        return f"CAST({self.plain} AS {self.dialect.long})"

    @cached_property
    def mark(self) -> str:
        """What stands for a value, of the type that the column needs to use its index."""
        return self.dialect.marks.get(self.kind, MARK)

    def compare(self, sign: Operator, value: object) -> Condition:
        """Return where the column is lower or greater than a value, as the sign says."""
        return Condition(f"{self.exact} {sign} {self.mark}", (value,))

    def is_in(self, values: Sequence[object]) -> Condition:
        """Return where the column is one of the values."""
        if self.enumeration and len(values) <= _FEW_LABELS:
            # An index of the column serves, unlike with its text.
            equal = f"{self.plain} = {self.dialect.label(self.enumeration)}"
            return any_of([Condition(equal, (value,)) for value in values])
        equal_exactly = self._listed(self._equated, "IN", values)
        if self.kind is ColumnKind.BINARY and self.dialect.pads_bytes:
            # Bytes with zeros at their end equal those without, unless another byte follows.
            mark = f"CAST({MARK} AS VARBINARY(8000)) + 0x01"
            marks = ", ".join([mark] * len(values))
            whole = Condition(f"{self.plain} + 0x01 IN ({marks})", tuple(values))
            return all_of([equal_exactly, whole])
        if self.kind not in FOLDS:
            return equal_exactly
        # What is equal exactly is equal without case as well: that has the index.
        mark = self.dialect.text_mark(self.collation)
        indexed = self._listed(self.plain, "IN", values, mark)
        return all_of([indexed, equal_exactly])

    def not_in(self, values: Sequence[object]) -> Condition:
        """Return where the column is none of the values, nor NULL."""
        return self._listed(self._equated, "NOT IN", values)

    def not_outside(self, values: Sequence[object]) -> Condition:
        """Return where `not_in` does not hold and the column is not NULL."""
        if self.kind in FOLDS and not self.dialect.pads(self.collation):
            # The exact comparison alone ignores blanks at the end; that of the index does not.
            return self._listed(self._equated, "IN", values)
        return self.is_in(values)

    def _listed(
        self, form: str, sign: str, values: Sequence[object], mark: str = ""
    ) -> Condition:
        marks = ", ".join([mark or self.mark] * len(values))
        return Condition(f"{form} {sign} ({marks})", tuple(values))

    @cached_property
    def is_null(self) -> Condition:
        """Where the column is NULL."""
        return Condition(self.dialect.is_null(self.plain))

    @cached_property
    def is_not_null(self) -> Condition:
        """Where the column is not NULL."""
        return Condition(f"{self.plain} IS NOT NULL")

    @property
    def ends_in_blanks(self) -> Condition:
        """Where the database distinguishes a text from the same without its trailing blanks."""
        if self.kind is not ColumnKind.LOOSE:
            return Condition(f"{self.plain} <> rtrim({self.plain})")
        text = self._long
        return Condition(f"typeof({self.plain}) <> 'blob' AND {text} <> rtrim({text})")

    def like(self, pattern: str, *, is_folded: bool) -> Condition:
        """Return where the folded text matches a pattern; ! escapes % and _ in it.

        The texts of a column that `is_folded` have no accents: only their case is folded.
        """
        text = self._lowered if is_folded else self._folded
        # With the blank in front one pattern finds the start of every word.
        words = f"(' ' {self.dialect.joint} {text.sql})"
        return Condition(f"{words} LIKE {MARK} ESCAPE '!'", (*text.values, pattern))

    @cached_property
    def _searched(self) -> Sql:
        if self.kind is ColumnKind.LARGE:
            return Sql(self._long)
        is_folding = self.kind in FOLDS
        return Sql(self.dialect.searched(self.plain) if is_folding else self.plain)

    @cached_property
    def _lowered(self) -> Sql:
        return self._searched.call("lower")

    @cached_property
    def _folded(self) -> Sql:
        if self.encoding and self.dialect.fold_in:
            return self.dialect.fold_in(self._searched, self.encoding)
        return self.dialect.fold(self._searched)


_COMPARED_WITH_OWN_KIND = frozenset(
    {ColumnKind.UUID, ColumnKind.BINARY, ColumnKind.LARGE, ColumnKind.OTHER}
)


def are_comparable(left: ColumnKind, right: ColumnKind) -> bool:
    """Whether a database compares columns of two kinds as the service reads them.

    Databases compare a number with a text roughly, or not at all, as with a UUID or bytes.
    """
    if left is right:
        return True
    kinds = {left, right}
    if kinds & _COMPARED_WITH_OWN_KIND:
        return False
    is_number_with_text = bool(kinds & NUMBERS and kinds & {*TEXTS})
    return not is_number_with_text


# Fields


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, eq=False)
class KeyColumn:
    """A column whose missing values are NULL and a few texts that mean the same.

    The database would compare such a text ('', a date far away) as a value. Where another
    column is `shown`, a value that is absent there is missing, too (decision 45).
    """

    column: SqlColumn
    absent: frozenset[str] = frozenset()
    shown: "KeyColumn | None" = None

    @cached_property
    def _sentinels(self) -> tuple[object, ...]:
        """The values of the column that mean a missing value."""
        texts = sorted(self.absent)
        kind = self.column.kind
        if kind in (*TEXTS, ColumnKind.LOOSE):
            # A day may be written as its midnight: the mapping reads both as one.
            midnights = [f"{text} 00:00:00" for text in texts if _DAY.fullmatch(text)]
            texts = ["", *texts, *midnights]
        values = [value for text in texts for value in self.column.held(text)]
        if kind in TIMES:
            unreal = filter(self.column.dialect.unreal, texts)
            values += [value for text in unreal for value in unreal_as_held(kind, text)]
        return tuple(dict.fromkeys(values))

    @property
    def is_missing_as_null(self) -> bool:
        """Whether only NULL is a missing value."""
        return not self._sentinels and self.shown is None

    @cached_property
    def present(self) -> Condition:
        """Rows that have the value."""
        present = self.column.is_not_null
        if self._sentinels:
            present = self.column.not_in(self._sentinels)
        return all_of([present, self.shown.present]) if self.shown else present

    @cached_property
    def missing(self) -> Condition:
        """Rows whose value is missing."""
        missing = [self.column.is_null]
        if self._sentinels:
            missing.append(self.column.not_outside(self._sentinels))
        if self.shown:
            missing.append(self.shown.missing)
        return any_of(missing)

    def compare(self, sign: Operator, value: object) -> Condition:
        """Return a comparison that only rows with the value meet."""
        comparison = self.column.compare(sign, value)
        if self.is_missing_as_null:
            return comparison
        return all_of([comparison, self.present])


class TimeColumn(NamedTuple):
    """A column of times or days; `bound` is its smallest value not before an instant.

    A comparison by the `implied` sign holds for all rows after the start of a page. `partial`
    returns the values of years and months that began before a day and go on: they are lower
    than its bound, and end after it.
    """

    key: KeyColumn
    bound: Callable[[datetime], object]
    implied: Operator | None = None
    partial: Callable[[datetime], Sequence[object]] = lambda _day: ()

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
        """Compare a point in time, or a day, with a date value (decision 5).

        A year or a month that goes on at the end of the value is not within it, but reaches
        beyond it.
        """
        goes_on: list[Condition] = []
        has_ended: list[Condition] = []
        if unfinished := self.partial(value.high):
            goes_on = [self.key.column.is_in(unfinished)]
            has_ended = [self.key.column.not_in(unfinished)]
        match value.prefix:
            case Prefix.EQ:
                within = [self.since(value.low), self.before(value.high)]
                return all_of([*within, *has_ended])
            case Prefix.NE:
                outside = [self.before(value.low), self.since(value.high)]
                return any_of([*outside, *goes_on])
            case Prefix.GT:
                return any_of([self.since(value.high), *goes_on])
            case Prefix.GE:
                return any_of([self.since(value.low), *goes_on])
            case Prefix.LT:
                return self.before(value.low)
            case Prefix.LE if not unfinished:
                return self.before(value.high)
            case Prefix.LE:
                ended = all_of([self.before(value.high), *has_ended])
                return any_of([self.before(value.low), ended])


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
        text, self._times = dialect.bound(rows)
        self._zone = zone
        # The SELECT may end in a comment. To Oracle AS is no part of a name.
        self._from = f"\nFROM ({text}\n) {alias}"
        self._by_name = {
            column.name: SqlColumn(
                **column._asdict(),
                plain=f"{alias}.{dialect.quoted(column.name)}",
                dialect=dialect,
            )
            for column in columns
        }
        self._keys: dict[object, KeyColumn] = {}

    def column(self, name: str | None) -> SqlColumn:
        """Return a column by its name."""
        return self._by_name[name or ""]

    def key(self, field: FieldMapping) -> KeyColumn:
        """Return the column that filters and sorts compare of a field."""
        shown_name = field.columns[0] if field.columns else None
        compared = (field.filter_column, field.absent, shown_name)
        if compared not in self._keys:
            column = self.column(field.filter_column)
            self._keys[compared] = KeyColumn(column, field.absent, self._shown(field))
        return self._keys[compared]

    def _shown(self, field: FieldMapping) -> KeyColumn | None:
        """Return the column that a field shows, if it has absent values and another is searched."""
        name = field.columns[0] if field.columns else None
        if name is None or name == field.filter_column or not field.absent:
            return None
        return KeyColumn(self.column(name), field.absent)

    def select(
        self,
        names: Sequence[str],
        condition: Condition,
        order: Order = (),
        *,
        limit: int | None = None,
        nulls_last: bool = False,
    ) -> Statement:
        """Return the SELECT of these columns from the rows of a condition.

        With `nulls_last`, rows without the first column to sort by come last whatever the
        direction.
        """
        sorts = [
            f"{column.exact} {'DESC' if descends else 'ASC'}"
            for column, descends in order
        ]
        if nulls_last:
            first_column, _ = order[0]
            sorts.insert(0, f"CASE WHEN {first_column.is_null.sql} THEN 1 ELSE 0 END")
        order_by = f"\nORDER BY {', '.join(sorts)}" if sorts else ""
        rows = self.rows(self._read(names), condition)
        return self.dialect.first(rows.within("", order_by), limit)

    def select_each(
        self, names: Sequence[str], conditions: Sequence[Condition]
    ) -> Statement:
        """Return one statement with a SELECT of the rows of each condition (UNION ALL)."""
        # Each SELECT can use an index. Few databases use one for an OR of two columns.
        selected = self._read(names)
        parts = [self.rows(selected, condition) for condition in conditions]
        text = "\nUNION ALL ".join([f"SELECT {part.sql}" for part in parts])
        return Statement(text, _values_of(parts))

    def count(self, condition: Condition) -> Statement:
        """Return the statement that counts the rows of a condition."""
        return self.dialect.first(self.rows("count(*)", condition))

    def count_by(
        self, column: SqlColumn, condition: Condition, limit: int
    ) -> Statement:
        """Return the values of a column with the number of their rows, most rows first."""
        groups = self.rows(f"{column.exact}, count(*)", condition)
        after = f"\nGROUP BY {column.exact}\nORDER BY count(*) DESC"
        return self.dialect.first(groups.within("", after), limit)

    def rows(self, selected: str, condition: Condition) -> Sql:
        """Return a SELECT of expressions from the rows of a condition, without its verb."""
        times = self.dialect.times(self._times, self._zone)
        where = "" if condition is ALWAYS else f"\nWHERE {condition.sql}"
        return Sql(f"{selected}{self._from}{where}", (*times, *condition.values))

    def _read(self, names: Sequence[str]) -> str:
        return ", ".join([self._by_name[name].read for name in names])

    def among(self, column: SqlColumn, texts: Iterable[str]) -> Condition:
        """Return where the column holds one of the texts."""
        values = self._values(column, texts)
        return column.is_in(values) if values else NEVER

    def not_among(self, column: SqlColumn, texts: Iterable[str]) -> Condition:
        """Return where the column holds none of the texts, nor NULL."""
        values = self._values(column, texts)
        return column.not_in(values) if values else column.is_not_null

    def _values(self, column: SqlColumn, texts: Iterable[str]) -> list[object]:
        return [value for text in texts for value in column.held(text)]

    def equal(self, field: FieldMapping, texts: Iterable[str]) -> Condition:
        """Return where the field is one of the texts."""
        values = field.source_ids(texts)
        if field.constant is not None:
            return ALWAYS if field.constant in values else NEVER
        among = self.among(self.column(field.filter_column), values)
        shown = self._shown(field)
        return all_of([among, shown.present]) if shown else among

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
        table = [text for text in codes.table if text not in field.absent]
        others = self.not_among(column, table)
        return any_of([named, others, column.is_null])

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
        """Return where the field has a system, or none if `system` is ""."""
        if field is None:
            return ALWAYS if system == "" else NEVER
        if system != "":
            return self.coded(field, system)
        is_never_missing = not field.columns or (field.codes and field.codes.otherwise)
        return NEVER if is_never_missing else self.key(field).missing

    def matching(self, field: FieldMapping, text: str, match: StringMatch) -> Condition:
        """Return where the field's text matches (decision 9)."""
        if not field.columns or not can_hold(text):
            return NEVER
        folded = fold(text)
        if not folded:
            return NEVER
        shown = self.column(field.columns[0])
        present = KeyColumn(shown, field.absent).present if field.absent else ALWAYS
        if match is StringMatch.EXACT:
            if not shown.can_hold(text):
                return NEVER
            return all_of([shown.is_in([text]), present])
        escaped = re.sub("([!%_])", r"!\1", folded)
        pattern = f"%{escaped}%"
        if match is StringMatch.STARTS_WITH:
            # A word that the text has twice has to start two words of the column.
            pattern = "".join(f"% {word}" for word in escaped.split()) + "%"
        if len(pattern.encode()) > LONGEST_PATTERN:
            return NEVER
        column = self.column(field.filter_column)
        # A database that converts texts as it compares them accepts every pattern.
        if self.dialect.fold_in and not column.can_hold(pattern):
            return NEVER
        is_folded = field.search_column is not None
        return all_of([column.like(pattern, is_folded=is_folded), present])


# Filters


class ComparedField(NamedTuple):
    """A field that a parameter compares: of the resource, or of an `item` of one of its lists.

    `columns` are those of its SELECT. A number may have a system, in a field or in none.
    """

    field: FieldMapping
    columns: Columns
    item: ItemMapping | None
    has_system: bool = False
    system: FieldMapping | None = None

    def is_token(self, token: Token) -> Condition:
        """Return where the field has the value of a token."""
        if self.has_system:
            return self.columns.identified(self.field, self.system, token)
        if token.code in (None, *UNSERVED):
            return NEVER
        return self.columns.coded(self.field, token.code)

    def holds(self, criterion: StringCriterion | ReferenceCriterion) -> Condition:
        """Return where the field has one of the values of a criterion."""
        if isinstance(criterion, ReferenceCriterion):
            return self.columns.equal(self.field, criterion.values)
        return any_of(
            self.columns.matching(self.field, text, criterion.match)
            for text in criterion.values
        )


@dataclass(frozen=True)
class Filters:
    """The conditions of one section; `item_columns` are the columns of each item's own SELECT."""

    section: ResourceMapping
    columns: Columns
    item_columns: Mapping[str, Columns] = field(default_factory=dict)
    date_reading: DateReading = DateReading.START
    _times: dict[str, TimeColumn] = field(default_factory=dict, init=False)
    _compared: dict[str, list[ComparedField]] = field(default_factory=dict, init=False)

    def of_query(
        self, query: SearchQuery, implied: Operator | None = None
    ) -> Condition:
        """Return the condition of the rows of a search, which are served and have an id.

        Comparisons of the sort key by the `implied` sign hold for all rows after the start of
        the page, and are left out: they would keep PostgreSQL and SQLite from the index.
        """
        sorted_by = SORTS[self.section.resource_type].get(query.sort.key, "")
        parts = []
        for criterion in query.criteria:
            parts.append(self._of(criterion, sorted_by, implied))
        compared_slots = [self._row(criterion).slots for criterion in query.criteria]
        if not any("status" in slots for slots in compared_slots):
            parts.append(self.served)
        parts.append(self.with_id)
        return all_of(parts)

    def need_start(self, query: SearchQuery) -> bool:
        """Whether only rows with a start can match, sorted by it (decision 5)."""
        return (
            query.sort.key is SortKey.DATE
            and self.date_reading is DateReading.START
            and any(
                isinstance(criterion, DateCriterion)
                and self._row(criterion).slots == ("start",)
                for criterion in query.criteria
            )
        )

    def are_few(self, criterion: Criterion) -> bool:
        """Whether few rows match a criterion: it has an id, a number or a reference."""
        row = self._row(criterion)
        match criterion:
            case ReferenceCriterion():
                return True
            case TokenCriterion() if row.is_id or row.system_slot:
                return all(token.code for token in criterion.values)
            case _:
                return False

    def of_id(self, id: str) -> Condition:
        """Return the condition that only the row of one resource meets."""
        return self.columns.equal(self.section.fields["id"], [id])

    @cached_property
    def with_id(self) -> Condition:
        """What keeps rows without an id out, `ALWAYS` where each has one (decision 40)."""
        field = self.section.fields["id"]
        column = self.columns.column(field.columns[0])
        # A row whose id is '' is invalid, and stays: a count with a condition on it would not
        # use the index.
        ids = [value for text in sorted(field.absent) for value in column.held(text)]
        if ids:
            return column.not_in(ids)
        return column.is_not_null if column.is_nullable else ALWAYS

    @cached_property
    def served(self) -> Condition:
        """What keeps hidden and removed rows out, `ALWAYS` where none is (decision 17)."""
        field = self.section.fields.get("status")
        if field is None or field.codes is None or not field.columns:
            return ALWAYS
        codes = field.codes
        column = self.columns.column(field.columns[0])
        unserved = [code for code, status in codes.table.items() if status in UNSERVED]
        if codes.otherwise in UNSERVED:
            return self.columns.among(column, sorted(codes.table.keys() - unserved))
        if not unserved:
            return ALWAYS
        return any_of([self.columns.not_among(column, unserved), column.is_null])

    def time(self, slot: str) -> TimeColumn:
        """Return the column that a time or day is compared by."""
        if slot not in self._times:
            self._times[slot] = self._time(slot)
        return self._times[slot]

    def _time(self, slot: str) -> TimeColumn:
        name, slot_kind = self._slot(slot)
        field = self.section.fields[name]
        key = self.columns.key(field)
        rule = field.time
        assert rule is not None, f"{slot} is a time"
        column_kind = key.column.kind
        if slot_kind is not SlotKind.DATE:
            return TimeColumn(key, partial(time_bound, column_kind, rule))
        zeros = bool(key.column.dialect.zero_date)
        bound = partial(day_bound, column_kind, rule, zeros=zeros)
        values = partial(partial_values, column_kind, rule, zeros=zeros)
        return TimeColumn(key, bound, partial=values)

    @cached_property
    def compared_times(self) -> frozenset[str]:
        """The slots of times and days that searches compare or are sorted by."""
        kind = self.section.resource_type
        rows = [SEARCH_PARAMETERS[kind][name] for name in self.section.parameters]
        slots = {slot for row in rows for slot in row.slots}
        slots |= {SORTS[kind].get(key, "") for key in self.section.sorts}
        if "start" in slots and self.date_reading is DateReading.PERIOD:
            slots.add("end")
        return frozenset(slots)

    def times_of(self, query: SearchQuery) -> set[str]:
        """Return the slots of times and days that a search compares or is sorted by."""
        dated = (c for c in query.criteria if isinstance(c, DateCriterion))
        slots = {slot for criterion in dated for slot in self._row(criterion).slots}
        if "start" in slots and self.date_reading is DateReading.PERIOD:
            slots.add("end")
        return slots | {SORTS[self.section.resource_type].get(query.sort.key, "")}

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
            case TokenCriterion(values=tokens):
                return any_of(
                    self._of_item(place, any_of(map(place.is_token, tokens)))
                    for place in self._places(row)
                )
            case StringCriterion(match=StringMatch.STARTS_WITH, values=texts):
                return any_of(self._words(row, text) for text in texts)
            case StringCriterion() | ReferenceCriterion():
                return any_of(
                    self._of_item(place, place.holds(criterion))
                    for place in self._places(row)
                )

    def _words(self, row: SearchParameter, text: str) -> Condition:
        """Return where each word of a text starts one of the parameter's words (decision 35)."""
        wanted = words_of(fold(text)) if can_hold(text) else {}
        if not wanted:
            return NEVER
        return all_of(self._starts(row, word, n) for word, n in wanted.items())

    def _starts(self, row: SearchParameter, word: str, number: int) -> Condition:
        """Return where a word starts at least `number` words of a parameter's fields.

        The rows of an item with a SELECT of its own count as one field.
        """
        conditions = []
        for place in self._places(row):
            for times in range(1, number + 1):
                text = " ".join([word] * times)
                matches = place.columns.matching(
                    place.field, text, StringMatch.STARTS_WITH
                )
                conditions.append(self._of_item(place, matches))
        if number == 1:
            return any_of(conditions)
        possible = [condition for condition in conditions if condition is not NEVER]
        if len(possible) < number:
            return NEVER
        # A field with two such words meets the conditions for one word and for two: the number
        # of conditions that hold is the number of words.
        cases = [
            Sql(f"CASE WHEN {condition.sql} THEN 1 ELSE 0 END", condition.values)
            for condition in possible
        ]
        return Condition(
            f"{' + '.join([case.sql for case in cases])} >= {MARK}",
            (*_values_of(cases), number),
        )

    def _date(self, slot: str, value: DateValue, implied: Operator | None) -> Condition:
        if slot == "start" and self.date_reading is DateReading.PERIOD:
            return period_at(self.time("start"), self.time("end"), value)
        return self.time(slot)._replace(implied=implied).at(value)

    # Slots

    def _slot(self, slot: str) -> tuple[str, SlotKind]:
        """Return the name of a slot in its section or item, and its kind.

        A slot of an item is written with the name of its list: `names.family`.
        """
        resource_type = self.section.resource_type
        list_name, _, name = slot.rpartition(".")
        slots = SLOTS[resource_type]
        if list_name:
            slots = next(
                item_list.slots
                for item_list in LISTS[resource_type]
                if item_list.name == list_name
            )
        return next((s.record, s.kind) for s in (*slots, LINES) if s.name == name)

    def _places(self, row: SearchParameter) -> Sequence[ComparedField]:
        """Return the places that a parameter compares."""
        if row.name not in self._compared:
            self._compared[row.name] = [
                self._place(row, field, item)
                for slot in row.slots
                for field, item in self._fields(slot)
            ]
        return self._compared[row.name]

    def _place(
        self,
        row: SearchParameter,
        field: FieldMapping,
        item: ItemMapping | None,
    ) -> ComparedField:
        columns = self.columns_of(item)
        if row.system_slot is None:
            return ComparedField(field, columns, item)
        fields = item.fields if item else self.section.fields
        system = fields.get(self._slot(row.system_slot)[0])
        return ComparedField(field, columns, item, has_system=True, system=system)

    def _fields(self, slot: str) -> Iterator[tuple[FieldMapping, ItemMapping | None]]:
        """Yield the fields that fill a slot: one, or those of each item of a list."""
        name, _ = self._slot(slot)
        list_name, _, _ = slot.rpartition(".")
        if not list_name and name in self.section.fields:
            yield self.section.fields[name], None
        for item in self.section.items.get(list_name, ()):
            if slot.endswith(f".{LINES.name}"):
                yield from ((line, item) for line in item.lines)
            elif name in item.fields:
                yield item.fields[name], item

    def columns_of(self, item: ItemMapping | None) -> Columns:
        """Return the columns of an item's own SELECT, those of the section without one."""
        return self.item_columns[item.rows] if item and item.rows else self.columns

    def _of_item(self, place: ComparedField, condition: Condition) -> Condition:
        """Return where the resource meets a condition on a field, or has an item that meets it."""
        item = place.item
        columns = place.columns
        if item is None:
            return condition
        if item.only_if is not None:
            column = columns.column(item.only_if.column)
            is_served = columns.among(column, sorted(item.only_if.values))
            condition = all_of([condition, is_served])
        if item.key is None or condition is NEVER:
            return condition
        # The item has a SELECT of its own, whose key is the id of the resource.
        id_column = self.columns.column(self.section.fields["id"].columns[0])
        return in_rows(id_column, columns, columns.column(item.key), condition)


def in_rows(
    column: SqlColumn, columns: Columns, key: SqlColumn, condition: Condition
) -> Condition:
    """Return where a column is the key of a row of another SELECT that meets a condition.

    Both are compared as the service reads them. The database can use an index of the column,
    except where a number or a UUID is compared with texts.
    """

    def among(compared: str, selected_key: str) -> Condition:
        rows = columns.rows(selected_key, condition)
        return Condition(f"{compared} IN (SELECT {rows.sql})", rows.values)

    selected_key = key.plain
    if column.form != key.form or not are_comparable(column.kind, key.kind):
        # The texts that the service shows of both are compared.
        if column.kind not in TEXTS:
            return among(column.text, key.text)
        selected_key = key.text
    elif column.collation and key.collation and column.collation != key.collation:
        selected_key = column.dialect.collated(key.plain, column.collation)
    if column.kind not in FOLDS and key.kind not in FOLDS:
        return among(column.plain, selected_key)
    # What is equal exactly is equal without case as well: that has the index.
    exact_key = key.exact if key.kind in TEXTS else selected_key
    return all_of([among(column.plain, selected_key), among(column.exact, exact_key)])
