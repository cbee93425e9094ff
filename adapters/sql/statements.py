"""Conditions as SQL: WHERE, ORDER BY and LIMIT around the SELECT of the mapping.

Statements are written with SQLAlchemy Core and compiled once a shape; what is run is the
compiled text with its values bound.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias, cast

import sqlalchemy as sa
from sqlalchemy.engine import Dialect as Compiler

from adapters.contract import StringMatch
from adapters.sql import conditions as c
from adapters.sql.alike import LONGEST_ID, ends_in_blanks, exactly, fitted, written
from adapters.sql.columns import FOLDS, TEXTS, Column, Kind
from adapters.sql.idiom import Idiom, Select

LIMIT = "row_limit"

# Written out: a number that is bound is no order to some databases.
_FIRST: sa.ColumnElement[int] = sa.literal_column("0")
_LAST: sa.ColumnElement[int] = sa.literal_column("1")

Clause: TypeAlias = sa.ColumnElement[bool]
Compared: TypeAlias = sa.ColumnElement[Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """A statement without its values: what to select, from what, where, in what order.

    `order` is columns and whether they descend; with `nulls_last`, rows without the first
    come last all the same. Without `columns` the rows are counted.
    Values of `grouped` come once each, with the number of their rows, the most first.
    """

    rows: str
    columns: tuple[str, ...]
    condition: c.Condition
    order: tuple[tuple[Column, bool], ...] = ()
    limited: bool = False
    grouped: Column | None = None
    nulls_last: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """A compiled statement: its values go by place when there are `names`, else by name.

    `fixed` are values that the statement itself brought.
    """

    text: str
    names: tuple[str, ...] | None
    fixed: Mapping[str, object]

    def bind(self, values: tuple[object, ...], limit: int | None = None) -> Any:
        """Return `values`, in the order of their placeholders, as the driver takes them."""
        named = {**self.fixed, **{f"v{i}": value for i, value in enumerate(values)}}
        if limit is not None:
            named[LIMIT] = limit
        return (
            named if self.names is None else tuple(named[name] for name in self.names)
        )


def compile_shape(shape: Shape, compiler: Compiler, idiom: Idiom) -> Statement:
    """Write the statement of `shape` in the words of one database."""
    selected: list[sa.ColumnElement[Any]] = [sa.func.count()]
    if shape.columns:
        selected = [sa.column(name) for name in shape.columns]
    writer = _Writer(idiom)
    where = writer.write(shape.condition)
    statement: Select = sa.select(*selected).select_from(_rows(shape.rows)).where(where)
    if shape.grouped is not None:
        value = writer.compared(shape.grouped)
        statement = sa.select(value, *selected).select_from(_rows(shape.rows))
        statement = statement.where(where).group_by(value)
        statement = statement.order_by(sa.func.count().desc())
    if shape.nulls_last:
        missing = sa.column(shape.order[0][0].name).is_(None)
        statement = statement.order_by(sa.case((missing, _LAST), else_=_FIRST))
    for column, descends in shape.order:
        if not idiom.orders_nulls and _holds(shape.condition, c.IsNull(column)):
            continue
        compared = writer.compared(column)
        statement = statement.order_by(compared.desc() if descends else compared.asc())
    if shape.limited:
        limit = sa.bindparam(LIMIT, type_=sa.Integer(), required=False)
        statement = idiom.first(statement, limit)
    compiled = statement.compile(
        dialect=compiler, compile_kwargs={"render_postcompile": True}
    )
    positions = getattr(compiled, "positiontup", None)
    fixed = {
        name: value for name, value in compiled.params.items() if value is not None
    }
    names = None if positions is None else tuple(positions)
    return Statement(str(compiled), names, fixed)


def _holds(condition: c.Condition, part: c.Condition) -> bool:
    """Whether what meets a condition meets `part` of it."""
    if isinstance(condition, c.All):
        return any(_holds(each, part) for each in condition.parts)
    return condition == part


def _rows(rows: str) -> sa.FromClause:
    # A colon in the mapping's SELECT is never a placeholder, and it may end in a comment.
    return sa.text(rows.replace(":", r"\:") + "\n").columns().subquery("pas")


class _Writer:
    """Writes conditions on one `rows` SELECT, numbering the placeholders as they come."""

    def __init__(self, idiom: Idiom) -> None:
        self._idiom = idiom
        self._names = (f"v{number}" for number in count())

    def write(self, condition: c.Condition) -> Clause:
        match condition:
            case c.All(parts):
                return self._joined(sa.and_, parts, "1 = 1")
            case c.Any(parts):
                return self._joined(sa.or_, parts, "1 = 0")
            case c.InOrReplaced():
                return self._in_or_replaced(condition)
            case c.InRows():
                return self._in_rows(condition)
            case c.EndsInBlanks(column):
                return ends_in_blanks(column)
            case _:
                return self._of_column(condition, condition.column)

    def _joined(
        self,
        join: Callable[..., Clause],
        parts: tuple[c.Condition, ...],
        of_none: str,
    ) -> Clause:
        # Not every database knows true and false.
        if not parts:
            return cast(Clause, sa.text(of_none))
        return join(*(self.write(part) for part in parts))

    def compared(self, column: Column) -> sa.ColumnElement[Any]:
        """Return a column in the form in which it is compared and ordered exactly."""
        return exactly(column, self._idiom)

    def _of_column(self, condition: c.Condition, column: Column) -> Clause:
        match condition:
            case c.Compare(operator=operator):
                compare = self.compared(column).op(operator, is_comparison=True)
                return compare(self._value(column))
            case c.In(size=size):
                return self._in(column, self._values(column, size))
            case c.NotIn(size=size):
                return self._equated(column).not_in(self._values(column, size))
            case c.IsNull():
                return sa.column(column.name).is_(None)
            case c.NotNull():
                return sa.column(column.name).is_not(None)
            case c.Matches(match=match, folded=folded):
                return self._matches(column, match, folded)
            case _:
                raise AssertionError(condition)

    def _value(self, column: Column | None = None) -> sa.ColumnElement[Any]:
        value: sa.BindParameter[Any] = sa.bindparam(next(self._names), required=False)
        cast_to = self._idiom.casts.get(column.kind) if column else None
        return value if cast_to is None else sa.cast(value, cast_to)

    def _values(self, column: Column, size: int) -> list[sa.ColumnElement[Any]]:
        return [self._value(column) for _ in range(size)]

    def _equated(self, column: Column) -> sa.ColumnElement[Any]:
        if column.kind is Kind.OTHER:
            return sa.cast(sa.column(column.name), sa.Text)
        return self.compared(column)

    def _in(self, column: Column, values: Sequence[Any]) -> Clause:
        found = self._equated(column).in_(values)
        if column.kind not in FOLDS:
            return found
        # What is equal exactly is equal without case as well: that has the index.
        return sa.and_(sa.column(column.name).in_(values), found)

    def _matches(self, column: Column, match: StringMatch, folded: bool) -> Clause:
        if match is StringMatch.EXACT:
            return self._in(column, self._values(column, 1))
        plain: sa.ColumnElement[str] = sa.column(column.name)
        if column.kind in FOLDS:
            plain = self._idiom.searched(plain)
        text = sa.func.lower(plain) if folded else self._idiom.fold(plain)
        # The blank in front lets one pattern find the start of every word.
        return (sa.literal_column("' '", sa.Text) + text).like(
            self._value(), escape="!"
        )

    def _in_or_replaced(self, condition: c.InOrReplaced) -> Clause:
        column, survivor = condition.column, condition.replaced_by
        ids = self._values(column, condition.size)
        if fitted(column, survivor, self._idiom) is None:
            ids = [sa.cast(id, sa.String(LONGEST_ID)) for id in ids]
        found = [self._replaced(condition) for _ in ids]

        def one_of(compared: Compared, other: Compared) -> Clause:
            return compared.in_(
                [*ids, *(of.with_only_columns(other).scalar_subquery() for of in found)]
            )

        return self._meets(column, survivor, one_of)

    def _replaced(self, condition: c.InOrReplaced) -> Select:
        """Return a SELECT of the row that was replaced, of which no column is named yet."""
        rows = _rows(condition.rows)
        is_id = self._in(condition.id, self._values(condition.id, 1))
        is_replaced = self.write(condition.present)
        return sa.select().select_from(rows).where(is_id, is_replaced).limit(1)

    def _in_rows(self, condition: c.InRows) -> Clause:
        rows = _rows(condition.rows)
        found = sa.select().select_from(rows).where(self.write(condition.condition))

        def inside(compared: Compared, key: Compared) -> Clause:
            return compared.in_(found.with_only_columns(key))

        return self._meets(condition.column, condition.key, inside)

    def _meets(
        self,
        column: Column,
        other: Column,
        one_of: Callable[[Compared, Compared], Clause],
    ) -> Clause:
        """Return where a column is one of what is found in another, as both are read."""
        held = fitted(column, other, self._idiom)
        if held is None:
            return one_of(written(column, self._idiom), written(other, self._idiom))
        found = one_of(sa.column(column.name), held)
        if not {column.kind, other.kind} & {*FOLDS} or column.kind in self._idiom.reads:
            return found
        # What is equal exactly is equal without case as well: that has the index.
        exact = self.compared(other) if other.kind in TEXTS else held
        return sa.and_(found, one_of(self.compared(column), exact))
