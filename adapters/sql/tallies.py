"""Counts of rows and of different values: what is told without a value being read.

Each is one bounded statement, and gives up rather than last.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from adapters.contract import SourceDataError
from adapters.errors import SourceTimedOutError
from adapters.mapping.values import LONGEST_CODE
from adapters.sql.database import Database
from adapters.sql.tables import Table


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
    asked = sa.select(sa.func.count(), sa.func.count(cell_of(column))).select_from(
        rows_of(table)
    )
    if by:
        asked = asked.where(sa.cast(cell_of(by), sa.String(LONGEST_CODE)).in_(codes))
    try:
        ((every, filled),) = fetch(database, asked)
    except (SourceTimedOutError, SourceDataError):
        return None
    return every, filled


def different(
    database: Database, table: Table, column: str
) -> tuple[int, int, int] | None:
    """Return how many rows there are, have a value in a column, and how many values differ.

    None where the database would take too long to say. No value is read.
    """
    cell = cell_of(column)
    told = sa.func.count(), sa.func.count(cell), sa.func.count(cell.distinct())
    try:
        ((every, filled, values),) = fetch(
            database, sa.select(*told).select_from(rows_of(table))
        )
    except (SourceTimedOutError, SourceDataError):
        return None
    return every, filled, values


def different_pairs(
    database: Database, table: Table, column: str, other: str
) -> tuple[int, int] | None:
    """Return how many values differ in a column, and how many pairs of it and another.

    Where both have a value. None where the database would take too long to say.
    """
    cell, beside = cell_of(column), cell_of(other)
    both = sa.select(cell, beside).select_from(rows_of(table)).distinct()
    pairs = both.where(cell.is_not(None), beside.is_not(None)).subquery("pairs")
    told = sa.func.count(pairs.c[column].distinct()), sa.func.count()
    try:
        ((values, every),) = fetch(database, sa.select(*told).select_from(pairs))
    except (SourceTimedOutError, SourceDataError):
        return None
    return values, every


def are_different(database: Database, table: Table, column: str) -> bool:
    """Tell whether every row has a value in a column, and no two have the same.

    False as well where the database would take too long to say.
    """
    counted = different(database, table, column)
    return counted is not None and len(set(counted)) == 1


def tally(
    database: Database, rows: str, columns: Sequence[str], *conditions: str
) -> tuple[int, ...] | None:
    """Return how many rows a SELECT has, and for how many of them each condition holds.

    Conditions are SQL on its columns. None where the database would take too long to
    count, or cannot compare so. No value is read.
    """
    told = [sa.func.count(sa.case((sa.text(_plain(c)), 1))) for c in conditions]
    asked = sa.select(sa.func.count(), *told).select_from(selected(rows, *columns))
    try:
        (counted,) = fetch(database, asked)
    except (SourceTimedOutError, SourceDataError):
        return None
    return tuple(counted)


def selected(rows: str, *columns: str) -> sa.FromClause:
    return sa.text(_plain(rows)).columns(*map(sa.column, columns)).subquery("selected")


def _plain(sql: str) -> str:
    """Return SQL as it is to be sent: a colon in it begins no parameter."""
    return sql.replace(":", "\\:")


def fetch(database: Database, statement: sa.Executable) -> list[Any]:
    return database.ask(lambda connection: list(connection.execute(statement)))


def cell_of(column: str) -> sa.ColumnElement[Any]:
    return sa.column(column)


def rows_of(table: Table) -> sa.TableClause:
    return sa.table(table.bare, schema=table.schema)
