"""What the rows of a table hold: numbers of rows, of empty cells, of codes, of far days.

Values are read only of columns that hold codes: few different, short texts or numbers, each in
several rows. What may identify people is counted at most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from adapters.contract import SourceDataError, SourceTimedOutError
from adapters.mapping.values import as_text
from adapters.sql.engine import Database
from toolkit.catalogue import Holds, primary_key

MOST_ROWS = 100_000
"""Rows are counted up to this number, and codes in so many, the newest by primary key."""

MOST_CODES = 60
"""A column with more different values holds no codes."""

MOST_PATIENT_CODES = 12
"""In a table of patients more different values may be names."""

_LONGEST_CODE = 40
_LONGEST_READ = 200  # Longer than a code, for blanks at the end do not count.
_FEWEST_ROWS = 5  # A value that fewer rows have may be about one person.
_MOST_FAR_DAYS = 3
_FIRST_DAY, _FAR_DAY = datetime(1800, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001 - local times

_CODE_TYPES = frozenset({Holds.TEXT, Holds.INTEGER, Holds.FLAG})
_SQL_TYPES: Mapping[Holds, sa.types.TypeEngine[Any]] = {
    **{Holds.TEXT: sa.String(), Holds.DATE: sa.Date()},
    **dict.fromkeys((Holds.LOCAL_TIME, Holds.INSTANT), sa.DateTime()),
}
TIME_TYPES = frozenset({Holds.DATE, Holds.LOCAL_TIME, Holds.INSTANT})


@dataclass(frozen=True, slots=True)
class ValueCount:
    """A value, and how many rows have it."""

    text: str
    rows: int


@dataclass(frozen=True, slots=True)
class Contents:
    """The counts of a column.

    `nulls` and `blanks` are rows with NULL and with an empty text, `different` is the number of
    different values. `codes` are its values if they are codes, `far` its days before 1800 or
    after 2199, which often stand for no value; `rare` is the number of values not in them.
    """

    nulls: int = 0
    blanks: int = 0
    different: int = 0
    codes: Sequence[ValueCount] = ()
    far: Sequence[ValueCount] = ()
    rare: int = 0


def count_rows(database: Database, table: sa.Table) -> int | None:
    """Return how many rows a table has, MOST_ROWS + 1 for more, None if it takes too long."""
    ones = sa.select(sa.literal(1).label("one")).select_from(_clause(table))
    limited = ones.limit(MOST_ROWS + 1).subquery()
    counts = _fetch(database, sa.select(sa.func.count()).select_from(limited))
    return counts[0][0] if counts else None


def count_contents(
    database: Database, table: sa.Table, name: str, holds: Holds, most_codes: int
) -> Contents:
    """Return the counts of a column, all 0 where the database takes too long.

    Values are codes if there are at most `most_codes` different ones; 0 is for a column whose
    values must not be read.
    """
    rows, cell = _newest(table, name, holds)
    if holds in TIME_TYPES:
        return _of_times(database, rows, cell)

    # All counts by one statement, each by its name.
    figures: dict[str, Any] = {"rows": sa.func.count()}
    if holds is Holds.TEXT:
        cut = sa.func.rtrim(sa.cast(cell, sa.String(_LONGEST_READ))).label("text_")
        rows = sa.select(cut).select_from(rows).subquery("texts")
        text = rows.c.text_
        # Codes that differ in case are two, whatever the collation says.
        cell = sa.literal_column(database.dialect.exact("text_"), sa.String())
        figures["blanks"] = sa.func.sum(sa.case((text == "", 1), else_=0))
        figures["longest"] = sa.func.max(sa.func.char_length(text))
    figures["filled"] = sa.func.count(cell)
    if holds in _CODE_TYPES:
        figures["different"] = sa.func.count(cell.distinct())
    counted = _fetch(database, sa.select(*figures.values()).select_from(rows))
    if not counted:
        return Contents()
    counts = dict(zip(figures, counted[0], strict=True))
    blanks, longest = counts.get("blanks") or 0, counts.get("longest") or 0
    different = counts.get("different", 0)
    contents = Contents(
        nulls=counts["rows"] - counts["filled"], blanks=blanks, different=different
    )
    if longest > _LONGEST_CODE or not 0 < different <= most_codes:
        return contents

    codes = _codes(database, rows, cell)
    # The empty text is one of the different values, and no code.
    rare = different - len(codes) - (1 if blanks else 0)
    return replace(contents, codes=codes, rare=rare)


def _codes(
    database: Database, rows: sa.Subquery, cell: sa.ColumnElement[Any]
) -> Sequence[ValueCount]:
    """Return the values that enough rows have, the commonest first."""
    count = sa.func.count()
    by_code = sa.select(cell, count).select_from(rows).group_by(cell)
    common = _fetch(database, by_code.having(count >= _FEWEST_ROWS))
    codes = _sorted([(as_text(v), n) for v, n in common if v is not None])
    return [code for code in codes if code.text]


def _of_times(
    database: Database, rows: sa.Subquery, cell: sa.ColumnElement[Any]
) -> Contents:
    """Return the counts of a column of times: NULLs and far days.

    Days are read as texts, as Python has none such as 0000-00-00.
    """
    text = sa.cast(cell, sa.String(30))
    is_far = sa.or_(cell < _FIRST_DAY, cell >= _FAR_DAY)
    select = sa.select(text, sa.func.count()).select_from(rows).where(is_far)
    far = _fetch(database, select.group_by(text))
    common = _sorted([(str(v), n) for v, n in far if n >= _FEWEST_ROWS])
    count = sa.select(sa.func.count()).select_from(rows).where(cell.is_(None))
    counts = _fetch(database, count)
    nulls = counts[0][0] if counts else 0
    rare = len(far) - len(common)
    return Contents(nulls, far=common[:_MOST_FAR_DAYS], rare=rare)


def _newest(
    table: sa.Table, name: str, holds: Holds
) -> tuple[sa.Subquery, sa.ColumnElement[Any]]:
    """Return the newest rows of a table by primary key, and a column of theirs."""
    cell: sa.ColumnClause[Any] = sa.column(name, _SQL_TYPES.get(holds))
    newest: list[Any] = [sa.column(name).desc() for name in primary_key(table)]
    select = sa.select(cell).select_from(_clause(table)).order_by(*newest)
    rows = select.limit(MOST_ROWS).subquery()
    return rows, rows.c[name]


def _sorted(counts: Sequence[tuple[str, int]]) -> list[ValueCount]:
    """Return values with their rows, the commonest first."""
    ordered = sorted(counts, key=lambda count: (-count[1], count[0]))
    return [ValueCount(text, rows) for text, rows in ordered]


def _clause(table: sa.Table) -> sa.TableClause:
    return sa.table(table.name, schema=table.schema)


def _fetch(database: Database, select: sa.Executable) -> Sequence[Any]:
    """Return the rows of a statement, none if it fails or takes too long."""
    try:
        return database.fetch(select)
    except (SourceTimedOutError, SourceDataError):
        return ()
