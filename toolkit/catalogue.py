"""The catalogue of a database: tables, columns, keys, foreign keys, counts of codes.

It is read through SQLAlchemy's inspector on the pooled, read-only connections. Rows are read
only to count codes, and values only of columns that hold codes: what may identify people is
counted at most.
"""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine.reflection import Inspector, ObjectKind
from sqlalchemy.types import TypeEngine

from adapters.contract import SourceDataError, SourceTimedOutError
from adapters.mapping.problems import did_you_mean
from adapters.mapping.values import as_text
from adapters.sql.dialects.base import Dialect
from adapters.sql.engine import Database


class Holds(StrEnum):
    """What a column is declared to hold, as far as all databases agree."""

    TEXT = "text"
    UUID = "uuid"
    INTEGER = "integer"
    NUMBER = "number"
    FLAG = "true or false"
    DATE = "date"
    LOCAL_TIME = "time without zone"
    INSTANT = "time with zone"
    CLOCK = "time of day"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table or view.

    `written` is its name in a statement, `is_stamped` that each change writes its time into it.
    """

    name: str
    written: str
    holds: Holds
    is_stamped: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns that hold the key of a row of another table."""

    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table or view; `name` has its schema in front where that is not the default one.

    `unique` are the columns of its unique constraints and indexes.
    """

    name: str
    written: str
    bare: str
    schema: str | None
    columns: tuple[TableColumn, ...]
    is_view: bool
    primary_key: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...]
    unique: frozenset[tuple[str, ...]]

    @cached_property
    def by_name(self) -> Mapping[str, TableColumn]:
        """The columns by name."""
        return {column.name: column for column in self.columns}

    def is_unique(self, column: str) -> bool:
        """Whether the database itself keeps two rows from the same value."""
        return (column,) in {self.primary_key, *self.unique}


@dataclass(frozen=True)
class Catalogue:
    """The tables of a database by name; `schemas` are all that the account can see.

    `dialect` is SQLAlchemy's name of the kind of database.
    """

    dialect: str
    tables: tuple[Table, ...]
    schemas: tuple[str, ...]

    @cached_property
    def by_name(self) -> Mapping[str, Table]:
        """The tables by name."""
        return {table.name: table for table in self.tables}


def read_catalogue(database: Database, schemas: Sequence[str] = ()) -> Catalogue:
    """Return what the account may read of the default schema, or of the schemas named.

    Raises SourceUnavailableError, and SourceDataError for a schema that is not there.
    """
    return database.run(lambda c: _Reader(c, database.dialect).catalogue(schemas))


def read_table(database: Database, name: str) -> Table | None:
    """Return the table of a name with or without a schema, None where it cannot be read."""
    *schemas, bare = parts_of(name)
    schema, dialect = schemas[-1] if schemas else None, database.dialect
    try:
        tables = database.run(lambda c: _Reader(c, dialect).tables(schema, [bare]))
    except SourceDataError:
        return None
    return next(iter(tables), None)


def parts_of(name: str) -> list[str]:
    """Return the name of a table, and of its schema before it, without quotes."""
    return [a or b for a, b in re.findall(r'"([^"]+)"|([^."`]+)', name)]


class _Reader:
    def __init__(self, connection: sa.Connection, dialect: Dialect) -> None:
        self._connection = connection
        self._inspector: Inspector = sa.inspect(connection)
        self._dialect = dialect

    def catalogue(self, schemas: Sequence[str]) -> Catalogue:
        visible = tuple(self._inspector.get_schema_names())
        if unknown := [schema for schema in schemas if schema not in visible]:
            near = did_you_mean(unknown[0], visible)
            raise SourceDataError(f"there is no schema '{unknown[0]}'{near}")
        tables = [table for s in schemas or (None,) for table in self.tables(s)]
        tables.sort(key=lambda table: table.name)
        return Catalogue(self._connection.dialect.name, tuple(tables), visible)

    def tables(
        self, schema: str | None, names: Sequence[str] | None = None
    ) -> list[Table]:
        """Return the tables of a schema, those of some names if any are given."""
        with warnings.catch_warnings():
            # A type that SQLAlchemy does not know is OTHER here.
            warnings.simplefilter("ignore", sa.exc.SAWarning)
            return [*self._tables(schema, names)]

    def _tables(
        self, schema: str | None, names: Sequence[str] | None
    ) -> Iterable[Table]:
        inspector = self._inspector
        of: Any = {"schema": schema, "kind": ObjectKind.ANY, "filter_names": names}
        columns = inspector.get_multi_columns(**of)
        keys = inspector.get_multi_pk_constraint(**of)
        foreign = inspector.get_multi_foreign_keys(**of)
        # SQLite reports the indexes that it creates for UNIQUE on request only.
        indexes = inspector.get_multi_indexes(**of, include_auto_indexes=True)
        unique = inspector.get_multi_unique_constraints(**of)
        views = frozenset(inspector.get_view_names(schema))
        readable = self._readable(schema)
        for place, of_table in columns.items():
            name, key = place[1], keys.get(place)
            if readable is not None and name not in readable:
                continue
            primary = tuple(key["constrained_columns"] if key else ())
            leading = tuple(map(_foreign_key, foreign.get(place, ())))
            in_keys = {*primary, *(name for key in leading for name in key.columns)}
            yield Table(
                name=f"{schema}.{name}" if schema else name,
                written=self._written(name, schema),
                bare=name,
                schema=schema,
                columns=tuple(self._column(column, in_keys) for column in of_table),
                is_view=name in views,
                primary_key=primary,
                foreign_keys=leading,
                unique=_unique(indexes.get(place, ()), unique.get(place, ())),
            )

    def _readable(self, schema: str | None) -> frozenset[str] | None:
        """Return the names of what may be read, None where nothing else is visible."""
        if not self._dialect.readable:
            return None
        statement = sa.text(self._dialect.readable)
        rows = self._connection.execute(statement, {"schema": schema})
        return frozenset(row[0] for row in rows)

    def _column(self, column: Any, keys: Set[str]) -> TableColumn:
        name, dialect = str(column["name"]), self._connection.dialect.name
        holds = _holds(column["type"], dialect, is_key=name in keys)
        is_stamped = " on update " in str(column.get("default")).lower()
        return TableColumn(name, self._written(name), holds, is_stamped)

    def _written(self, name: str, schema: str | None = None) -> str:
        preparer = self._connection.dialect.identifier_preparer
        text = preparer.quote(name)
        if self._dialect.folds_names:
            plain = name.lower()
            text = name if preparer.quote(plain) == plain else text
        return f"{preparer.quote(schema)}.{text}" if schema else text


def _holds(type_: TypeEngine[Any], dialect: str, *, is_key: bool) -> Holds:
    if getattr(type_, "display_width", None) == 1 or isinstance(type_, sa.Boolean):
        return Holds.FLAG
    if isinstance(type_, sa.DateTime):
        # A TIMESTAMP of MySQL and MariaDB is kept in UTC, whatever is shown.
        is_utc = dialect in ("mysql", "mariadb") and isinstance(type_, sa.TIMESTAMP)
        return Holds.INSTANT if type_.timezone or is_utc else Holds.LOCAL_TIME
    if isinstance(type_, sa.Numeric) and (is_key or type_.scale == 0):
        return Holds.INTEGER
    held = (holds for kind, holds in _HOLDS if isinstance(type_, kind))
    return next(held, Holds.OTHER)


_HOLDS: tuple[tuple[type[TypeEngine[Any]], Holds], ...] = (
    (sa.Uuid, Holds.UUID),
    (sa.String, Holds.TEXT),
    (sa.Integer, Holds.INTEGER),
    (sa.Numeric, Holds.NUMBER),
    (sa.Date, Holds.DATE),
    (sa.Time, Holds.CLOCK),
)


def _foreign_key(key: Any) -> ForeignKey:
    schema, table = key["referred_schema"], key["referred_table"]
    own, referred = tuple(key["constrained_columns"]), tuple(key["referred_columns"])
    return ForeignKey(own, f"{schema}.{table}" if schema else table, referred)


def _unique(
    indexes: Iterable[Any], constraints: Iterable[Any]
) -> frozenset[tuple[str, ...]]:
    keys = (*constraints, *(index for index in indexes if index["unique"]))
    # An index of an expression has no name there.
    return frozenset(tuple(name or "" for name in key["column_names"]) for key in keys)


MOMENTS = {
    **dict.fromkeys(("mysql", "mariadb"), "TIMESTAMP({}, {})"),
    "postgresql": "{} + CAST({} AS TIME)",
    "sqlite": "SUBSTR({}, 1, 10) || ' ' || {}",
}
"""By dialect the moment of a day and a time of day."""

DAYS = {
    **dict.fromkeys(
        ("mysql", "mariadb"),
        "MAKEDATE(NULLIF({}, 0), 1) + INTERVAL {} - 1 MONTH + INTERVAL {} - 1 DAY",
    ),
    "postgresql": "MAKE_DATE(CAST({} AS INTEGER), CAST({} AS INTEGER), CAST({} AS INTEGER))",
    "sqlite": "printf('%04d-%02d-%02d', {}, {}, {})",
}
"""By dialect the day of a year, a month and a day."""

TIMES_OF_TEXTS = {
    **dict.fromkeys(("mysql", "mariadb"), "CAST(NULLIF({}, '') AS DATETIME)"),
    **{"postgresql": "CAST(NULLIF({}, '') AS TIMESTAMP)", "sqlite": "{}"},
}
"""By dialect the moment that a text names, the year first."""

_FORMS = {
    "____-__-__": (Holds.DATE, ""),
    "____-__-__ __:__:__%": (Holds.LOCAL_TIME, ""),
    "____-__-__ __:__": (Holds.LOCAL_TIME, ""),
    "____-__-__T__:__:__": (Holds.LOCAL_TIME, "%Y-%m-%dT%H:%M:%S"),
    "____-__-__T__:__:__Z": (Holds.INSTANT, "%Y-%m-%dT%H:%M:%SZ"),
    "____-__-__,__:__:__": (Holds.LOCAL_TIME, "%Y-%m-%d,%H:%M:%S"),
    "________": (Holds.DATE, "%Y%m%d"),
    "____________": (Holds.LOCAL_TIME, "%Y%m%d%H%M"),
    "______________": (Holds.LOCAL_TIME, "%Y%m%d%H%M%S"),
    "__/__/____": (Holds.DATE, "%d/%m/%Y"),
    "__.__.____": (Holds.DATE, "%d.%m.%Y"),
    "__/__/____ __:__": (Holds.LOCAL_TIME, "%d/%m/%Y %H:%M"),
    "__.__.____ __:__": (Holds.LOCAL_TIME, "%d.%m.%Y %H:%M"),
    **dict.fromkeys(("__:__", "__:__:__"), (Holds.CLOCK, "")),
}
"""By the form of a text, for LIKE, what it holds and its format."""

MOST_CODES = 60  # A column with more different values holds no codes,
LONGEST_CODE = 40  # and none with a longer text.
_USED = 0.5  # A number of the rows is in more of them.
_WITHIN = 0.95  # Without a declared key some rows are left behind.
_SHARE = 0.01  # With so many rows a decade counts.
_DECADES = 7  # The births of those who work are in fewer.


_Place: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CodeCount:
    """A code of the source, how many rows have it, and what a table says of it, if any."""

    code: str
    rows: int
    label: str = ""


@dataclass(frozen=True)
class Contents:
    """What columns hold, as far as counts and a few values say: each is read once.

    Where the database takes too long nothing is known.
    """

    database: Database
    _codes: dict[_Place, tuple[CodeCount, ...] | None] = field(default_factory=dict)
    _numbers: dict[_Place, tuple[int, int, int]] = field(default_factory=dict)
    _births: dict[_Place, bool] = field(default_factory=dict)

    def codes(self, table: Table, column: str) -> tuple[CodeCount, ...] | None:
        """Return the codes of a column, those with the most rows first.

        None where the column holds something else: too many values, or too long ones. Values
        are counted first: of a column that holds something else none is read. Codes that
        differ in case are two codes, whatever the database's collation says.
        """
        key = (table.name, column)
        if key not in self._codes:
            self._codes[key] = self._counted(table, column)
        return self._codes[key]

    def _counted(self, table: Table, column: str) -> tuple[CodeCount, ...] | None:
        cell: sa.ColumnElement[Any] = sa.column(column)
        if table.by_name[column].holds is Holds.TEXT:
            dialect = self.database.dialect
            cell = sa.literal_column(dialect.exact(dialect.quoted(column)), sa.String())
        rows = _table(table)
        text = sa.func.rtrim(sa.cast(cell, sa.String(LONGEST_CODE + 1)))
        most = sa.func.max(sa.func.char_length(text))
        figures = (sa.func.count(cell.distinct()), most)
        for values, longest in self._rows(sa.select(*figures).select_from(rows)):
            if values <= MOST_CODES and (longest or 0) <= LONGEST_CODE:
                counted = sa.select(cell, sa.func.count()).group_by(cell)
                counted = counted.select_from(rows).limit(MOST_CODES + 2)
                counts = self._rows(counted)
                codes = [CodeCount(as_text(v), n) for v, n in counts if v is not None]
                # A blank may end a text that was cut off there.
                is_short = all(len(code.code) <= LONGEST_CODE for code in codes)
                return _sorted(c for c in codes if c.code) if is_short else None
        return None

    def labels(
        self, table: Table, column: str, other: Table, key: str, label: str
    ) -> tuple[CodeCount, ...]:
        """Return the keys of another table that a column holds, with their labels."""
        own, names = _table(table), _table(other)
        read = (own.c[column], sa.func.max(names.c[label]), sa.func.count())
        joined = own.join(names, names.c[key] == own.c[column])
        select = sa.select(*read).select_from(joined).group_by(own.c[column])
        rows = self._rows(select.limit(MOST_CODES + 1))
        counts = [CodeCount(as_text(row[0]), row[2], str(row[1] or "")) for row in rows]
        return _sorted(counts) if len(counts) <= MOST_CODES else ()

    def is_filled(self, table: Table, column: str = "") -> bool:
        """Whether a table has rows, or a column a value in one of them."""
        rows = _table(table)
        select = sa.select(sa.literal(1)).select_from(rows)
        if column and table.by_name[column].holds is Holds.TEXT:
            text = sa.cast(rows.c[column], sa.String(LONGEST_CODE))
            select = select.where(sa.func.char_length(text) > 0)
        elif column:
            select = select.where(rows.c[column].is_not(None))
        return bool(self._rows(select.limit(1), [1]))

    def variety(self, table: Table, column: str) -> float:
        """Return how many different values a column has for each that there is, at most 1."""
        _, filled, different = self.figures(table, column)
        return different / filled if filled else 1.0

    def filled(self, table: Table, column: str = "") -> int:
        """Return how many rows a table has, or of those how many have a value in a column."""
        return self.figures(table, column)[1 if column else 0]

    def figures(self, table: Table, column: str) -> tuple[int, int, int]:
        """Return how many rows there are, with a value, and with different ones."""
        key = (table.name, column)
        if key not in self._numbers:
            cell: sa.ColumnElement[Any] = sa.column(column) if column else sa.literal(1)
            if column and table.by_name[column].holds is Holds.TEXT:
                cell = sa.func.nullif(sa.cast(cell, sa.String()), "")
            counts = map(sa.func.count, (sa.literal(1), cell, cell.distinct()))
            select = sa.select(*counts).select_from(_table(table))
            ((every, filled, different),) = self._rows(select, [(0, 0, 0)])
            self._numbers[key] = (every, filled, different)
        return self._numbers[key]

    def are_ids(self, table: Table, column: str) -> bool:
        """Whether no text of a column has a letter that a FHIR id lacks, as far as looked for."""
        is_text = table.by_name[column].holds is Holds.TEXT
        cell, signs = sa.cast(sa.column(column), sa.String(80)), " _/:|#*+()&@,'"
        odd = sa.or_(*(cell.contains(sign, autoescape=True) for sign in signs))
        return not (is_text and self._has(table, odd))

    def is_named(self, table: Table, column: str) -> bool:
        """Whether a column has texts, and none with a digit."""
        cell = sa.column(column, sa.String())
        digits = sa.or_(*(cell.contains(digit) for digit in "0123456789"))
        is_text = table.by_name[column].holds is Holds.TEXT
        is_text = is_text and self.is_filled(table, column)
        return is_text and not self._has(table, digits)

    def are_numbers(self, table: Table, column: str) -> bool:
        """Whether the texts of a column have digits, no blanks, and are different."""
        cell = sa.column(column, sa.String())
        digits = sa.or_(*(cell.contains(digit) for digit in "0123456789"))
        odd = sa.or_(~digits, cell.contains(" "), cell.contains("@"))
        is_used = self.filled(table, column) > self.filled(table) * _USED
        is_number = is_used and self.variety(table, column) == 1
        return is_number and not self._has(table, odd)

    def time_form(self, table: Table, column: str) -> tuple[Holds, str, bool] | None:
        """Return what texts hold and in which form, if all are times, and if some are far ahead."""
        cell = sa.cast(sa.column(column), sa.String(30))
        is_text = sa.and_(cell != "", cell.not_like("0000%"))
        years = sa.and_(cell > "18", cell < "26")
        first = [form for form in _FORMS if form.startswith("____")]
        likes = {form: cell.like(form) for form in _FORMS}
        are = likes | {form: sa.and_(likes[form], years) for form in first}
        if self._has(table, sa.and_(is_text, ~sa.or_(*are.values()))):
            return None
        select = _sums(table, [cell > "22", *are.values()]).where(is_text)
        for every, later, *numbers in self._rows(select):
            forms = [f for f, n in zip(_FORMS, numbers, strict=True) if n == every > 0]
            return next(((*_FORMS[f], f in first and later > 0) for f in forms), None)
        return None

    def are_days(self, table: Table, column: str) -> bool:
        """Whether no time of a column says more than its day."""
        cell = sa.column(column, sa.DateTime())
        parts = [sa.extract(part, cell) > 0 for part in ("hour", "minute")]
        return not self._has(table, sa.or_(*parts))

    def are_births(self, table: Table, column: str) -> bool:
        """Whether the days of a column are spread as births of all ages are, as counts say."""
        key, holds = (table.name, column), table.by_name[column].holds
        if key not in self._births:
            types: Any = {Holds.DATE: sa.Date(), Holds.TEXT: sa.String()}
            cell: Any = sa.column(column, types.get(holds, sa.DateTime()))
            years = range(1900, 2050, 10)
            firsts: list[Any] = [datetime(year, 1, 1) for year in years]  # noqa: DTZ001
            firsts = [str(year) for year in years] if holds is Holds.TEXT else firsts
            decades = [sa.and_(cell >= a, cell < b) for a, b in pairwise(firsts)]
            every, *numbers = [*self._rows(_sums(table, decades)), (0,)][0]
            used = [number for number in numbers if (number or 0) > every * _SHARE]
            self._births[key] = len(used) >= _DECADES
        return self._births[key]

    def is_within(self, table: Table, column: str, other: Table, key: str) -> bool:
        """Whether the values of a column are keys of another table, but for a few."""
        own, keys = _table(table), _table(other).alias("other")
        is_key = sa.exists().where(keys.c[key] == own.c[column]).correlate(own)
        within = sa.select(sa.func.count()).select_from(own).where(is_key)
        filled = self.filled(table, column)
        return any(n >= filled * _WITHIN for (n,) in self._rows(within)) and filled > 0

    def _has(self, table: Table, condition: sa.ColumnElement[bool]) -> bool:
        select = sa.select(sa.literal(1)).select_from(_table(table)).where(condition)
        return bool(self._rows(select.limit(1)))

    def times_outside(
        self, table: Table, column: str, first: datetime, last: datetime
    ) -> tuple[str, ...]:
        """Return up to three times that are not between two."""
        is_day = table.by_name[column].holds is Holds.DATE
        type_ = sa.Date() if is_day else sa.DateTime()
        cell: sa.ColumnElement[Any] = sa.column(column, type_)
        # As the driver has it: SQLAlchemy makes no date of the zeros in a text of SQLite.
        far = sa.select(sa.type_coerce(cell, sa.String())).select_from(_table(table))
        far = far.where(sa.or_(cell < first, cell > last)).distinct().limit(3)
        return tuple(sorted(str(value) for (value,) in self._rows(far)))

    def _rows(
        self, select: sa.Executable, unknown: Sequence[Any] = ()
    ) -> Sequence[Any]:
        try:
            return self.database.fetch(select)
        except (SourceTimedOutError, SourceDataError, ValueError):
            return unknown


def _sums(table: Table, conditions: Iterable[sa.ColumnElement[bool]]) -> sa.Select[Any]:
    """Return what counts the rows of a table, and those of each condition."""
    sums = (sa.func.sum(sa.case((each, 1), else_=0)) for each in conditions)
    counts: list[Any] = [sa.func.count(), *sums]
    return sa.select(*counts).select_from(_table(table))


def _table(table: Table) -> sa.TableClause:
    columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in table.by_name]
    return sa.table(table.bare, *columns, schema=table.schema)


# Codes that mean no and yes.
_NO_YES = [
    *("01", "NY", "ny", "FT", "ft", "NJ", "NO", "NS"),
    *(("false", "true"), ("no", "yes"), ("No", "Yes"), ("NO", "YES")),
]


def no_yes(counts: Iterable[CodeCount]) -> Sequence[str]:
    """Return the codes that mean no and yes where these are all that there are."""
    codes = {count.code for count in counts}
    return next((pair for pair in _NO_YES if codes and codes <= {*pair}), "")


def _sorted(counts: Iterable[CodeCount]) -> tuple[CodeCount, ...]:
    return tuple(sorted(counts, key=lambda count: (-count.rows, count.code)))
