"""Small looks into a table: how often codes occur, how times are written.

Values are asked for of columns that hold codes or times, and of no others: what may
identify people is counted at most. Each look is one bounded statement, and gives up
rather than last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from adapters.contract import SourceDataError
from adapters.errors import SourceTimedOutError
from adapters.mapping.values import LONGEST_CODE, as_text
from adapters.sql.database import Database
from adapters.sql.tables import Table
from adapters.sql.tallies import cell_of, fetch, rows_of, selected

MOST_CODES = 60
"""A column with more different values holds no codes."""

_FEW, _OFTEN = 5, 3
"""More different values than a few are codes where each has so many rows."""

_LONG = 60
"""As much of a text as is looked at."""

SOME = 300
"""How many times are looked at to tell how they are written."""


@dataclass(frozen=True, slots=True)
class CodeCount:
    """A code of the source and how many rows have it."""

    code: str
    rows: int


def code_counts(
    database: Database,
    table: Table,
    column: str,
    *,
    often: bool = False,
    rows: str = "",
) -> tuple[CodeCount, ...] | None:
    """Return the codes of a column, the commonest first.

    With `rows`, a SELECT that has this column, only its rows count. None where
    the column holds something else: texts too long or too many of them, or,
    with `often`, too few rows for each; or where the database would take too long to say.
    It is first counted: of a column that holds something else no value is read.
    """
    if not _are_codes(database, table, column, often=often):
        return None
    cell = cell_of(column)
    counted = (
        sa.select(cell, sa.func.count())
        .select_from(selected(rows, column) if rows else rows_of(table))
        .group_by(cell)
        .limit(MOST_CODES + 2)
    )
    try:
        found = fetch(database, counted)
        counts = [
            CodeCount(as_text(value), n) for value, n in found if value is not None
        ]
    except (SourceTimedOutError, SourceDataError, ValueError):
        return None
    counts = [count for count in counts if count.code]
    if len(found) > MOST_CODES or any(len(c.code) > LONGEST_CODE for c in counts):
        return None
    return tuple(sorted(counts, key=lambda count: (-count.rows, count.code)))


def _are_codes(database: Database, table: Table, column: str, *, often: bool) -> bool:
    cell = cell_of(column)
    told = (
        sa.func.count(cell),
        sa.func.count(cell.distinct()),
        sa.func.max(sa.func.char_length(_text(cell))),
    )
    try:
        ((filled, values, longest),) = fetch(
            database, sa.select(*told).select_from(rows_of(table))
        )
    except (SourceTimedOutError, SourceDataError):
        return False
    rare = often and values > _FEW and filled < _OFTEN * values
    return values <= MOST_CODES and (longest or 0) <= LONGEST_CODE and not rare


def some_times(database: Database, table: Table, column: str) -> tuple[object, ...]:
    """Return some values of a column of times, for the way in which they are written."""
    cell = cell_of(column)
    found = (
        sa.select(cell).select_from(rows_of(table)).where(cell.is_not(None)).limit(SOME)
    )
    try:
        return tuple(row[0] for row in fetch(database, found))
    except (SourceTimedOutError, SourceDataError):
        return ()


def first_and_last(database: Database, table: Table, column: str) -> tuple[object, ...]:
    """Return the smallest and the largest value of a column of times, where there are any."""
    cell = cell_of(column)
    asked = sa.select(sa.func.min(cell), sa.func.max(cell)).select_from(rows_of(table))
    try:
        ((first, last),) = fetch(database, asked)
    except (SourceTimedOutError, SourceDataError):
        return ()
    return () if first is None else (first, last)


@dataclass(frozen=True, slots=True)
class Shape:
    """How a text is written: `like` as SQL has it, `parts` as start, lowest and highest."""

    like: str
    parts: tuple[tuple[int, str, str], ...] = ()


def written_like(
    database: Database,
    table: Table,
    column: str,
    shapes: Sequence[Shape],
    rows: int | None = None,
) -> tuple[int, ...] | None:
    """Return how many values there are, and how many have each of the shapes.

    Of all rows, or of some. None where the database would not say. No value is read.
    """
    cell = cell_of(column)
    some = sa.select(_text(cell).label("written")).select_from(rows_of(table))
    texts = some.where(cell.is_not(None)).limit(rows).subquery()
    text: sa.ColumnElement[str] = texts.c.written
    filled = sa.case((text != "", 1))
    told = [sa.func.count(sa.case((_has(text, shape), 1))) for shape in shapes]
    asked = sa.select(sa.func.count(filled), *told)
    try:
        ((*counted,),) = fetch(database, asked)
    except (SourceTimedOutError, SourceDataError):
        return None
    return tuple(counted)


def _has(text: sa.ColumnElement[str], shape: Shape) -> sa.ColumnElement[bool]:
    within = [
        sa.func.substr(text, start, len(lowest)).between(lowest, highest)
        for start, lowest, highest in shape.parts
    ]
    return sa.and_(text.like(shape.like), *within)


def _text(cell: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
    return sa.func.rtrim(sa.cast(cell, sa.String(_LONG)))
