"""Small looks into a table: how often codes occur, how times are written.

For columns that hold codes or times, and no others: neither names nor numbers of people
are ever asked for. Each look is one bounded statement, and gives up rather than last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from adapters.contract import SourceDataError
from adapters.mapping.values import LONGEST_CODE, as_text
from adapters.sql.database import Database, SourceTimedOutError
from adapters.sql.tables import Table

MOST_CODES = 60
"""A column with more different values holds no codes."""

SOME = 300
"""How many times are looked at to tell how they are written."""


@dataclass(frozen=True, slots=True)
class CodeCount:
    """A code of the source and how many rows have it."""

    code: str
    rows: int


def code_counts(
    database: Database, table: Table, column: str
) -> tuple[CodeCount, ...] | None:
    """Return the codes of a column, the commonest first.

    None where the column holds something else: texts too long or too many of them; or
    where the database would take too long to say.
    """
    cell = _cell(column)
    counted = (
        sa.select(cell, sa.func.count())
        .select_from(_rows(table))
        .group_by(cell)
        .limit(MOST_CODES + 2)
    )
    try:
        rows = _fetch(database, counted)
        counts = [
            CodeCount(as_text(value), n) for value, n in rows if value is not None
        ]
    except (SourceTimedOutError, SourceDataError, ValueError):
        return None
    counts = [count for count in counts if count.code]
    if len(rows) > MOST_CODES or any(len(c.code) > LONGEST_CODE for c in counts):
        return None
    return tuple(sorted(counts, key=lambda count: (-count.rows, count.code)))


def some_times(database: Database, table: Table, column: str) -> tuple[object, ...]:
    """Return some values of a column of times, for the way in which they are written."""
    cell = _cell(column)
    found = (
        sa.select(cell).select_from(_rows(table)).where(cell.is_not(None)).limit(SOME)
    )
    try:
        return tuple(row[0] for row in _fetch(database, found))
    except (SourceTimedOutError, SourceDataError):
        return ()


def first_and_last(database: Database, table: Table, column: str) -> tuple[object, ...]:
    """Return the smallest and the largest value of a column of times, where there are any."""
    cell = _cell(column)
    asked = sa.select(sa.func.min(cell), sa.func.max(cell)).select_from(_rows(table))
    try:
        ((first, last),) = _fetch(database, asked)
    except (SourceTimedOutError, SourceDataError):
        return ()
    return () if first is None else (first, last)


def rows_with(
    database: Database,
    table: Table,
    column: str,
    by: str = "",
    codes: Sequence[str] = (),
) -> tuple[int, int] | None:
    """Return how many rows there are, and how many of them have a value in a column.

    Of all rows, or of those that have one of `codes` in the column `by`. None where the
    database would take too long to count.
    """
    asked = sa.select(sa.func.count(), sa.func.count(_cell(column))).select_from(
        _rows(table)
    )
    if by:
        asked = asked.where(sa.cast(_cell(by), sa.String(LONGEST_CODE)).in_(codes))
    try:
        ((every, filled),) = _fetch(database, asked)
    except (SourceTimedOutError, SourceDataError):
        return None
    return every, filled


def different(
    database: Database, table: Table, column: str
) -> tuple[int, int, int] | None:
    """Return how many rows there are, have a value in a column, and how many values differ.

    None where the database would take too long to say. No value is read.
    """
    cell = _cell(column)
    told = sa.func.count(), sa.func.count(cell), sa.func.count(cell.distinct())
    try:
        ((every, filled, values),) = _fetch(
            database, sa.select(*told).select_from(_rows(table))
        )
    except (SourceTimedOutError, SourceDataError):
        return None
    return every, filled, values


def are_different(database: Database, table: Table, column: str) -> bool:
    """Tell whether every row has a value in a column, and no two have the same.

    False as well where the database would take too long to say.
    """
    counted = different(database, table, column)
    return counted is not None and len(set(counted)) == 1


def _fetch(database: Database, statement: sa.Executable) -> list[Any]:
    return database.ask(lambda connection: list(connection.execute(statement)))


def _cell(column: str) -> sa.ColumnElement[Any]:
    return sa.column(column)


def _rows(table: Table) -> sa.TableClause:
    return sa.table(table.bare, schema=table.schema)
