"""The cells of one column in many rows, read together: what `cells` reads one by one.

Most columns of a page hold plain values that need the same step, which Python takes for
all of them at a fraction of the cost. A column that holds anything else is read cell by
cell: every rule, and every fault, is that of `cells`.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from types import NoneType
from typing import Any, TypeAlias

from adapters.mapping.cells import Cell, Reader, Row
from adapters.mapping.checks import FHIR_ID
from adapters.mapping.clocks import ORIGIN, day_bases
from adapters.mapping.slots import Kind
from adapters.mapping.values import PLAIN, presence, sentinel_years

Columns: TypeAlias = Sequence[Sequence[Any]]
"""The rows, turned: one sequence of cells a column."""

ColumnReader: TypeAlias = Callable[[Sequence[Row], Columns], Sequence[Any]]

_TEXTS = frozenset({Kind.EXACT, Kind.TEXT, Kind.SYSTEM, Kind.CODE})


def compile_column(cell: Cell, kind: Kind, read: Reader) -> ColumnReader:
    """Return the function that reads a cell of all rows; `read` is that of one row.

    It raises the CellError of one of the rows that `read` raises for.
    """
    if cell.field.constant is not None:
        return constant(read(()))
    if len(cell.indexes) != 1:
        return _one_by_one(read)
    if cell.field.codes is not None:
        return _distinct(cell, read)
    if kind in _TEXTS:
        return _texts(cell, read)
    if kind is Kind.ID:
        return _ids(cell, read)
    return _times(cell, read) if kind is Kind.TIME else _distinct(cell, read)


def constant(value: object) -> ColumnReader:
    """Return the function that reads the same value in every row."""
    return lambda rows, _: [value] * len(rows)


def _one_by_one(read: Reader) -> ColumnReader:
    return lambda rows, _: list(map(read, rows))


def _distinct(cell: Cell, read: Reader) -> ColumnReader:
    """Return a reader that reads equal cells once: codes, houses, units, one patient."""
    (index,) = cell.indexes

    def read_all(rows: Sequence[Row], columns: Columns) -> Sequence[Any]:
        column = columns[index]
        types = {*map(type, column)} - {NoneType}
        # Equal values of two types may be written differently: 1 and True.
        if len(types) > 1 or not types <= PLAIN:
            return list(map(read, rows))
        rows_by_value = dict(zip(column, rows, strict=True))
        made = {value: read(row) for value, row in rows_by_value.items()}
        return [made[value] for value in column]

    return read_all


def _texts(cell: Cell, read: Reader) -> ColumnReader:
    (index,) = cell.indexes
    nothing = cell.field.absent | {""}

    def read_all(rows: Sequence[Row], columns: Columns) -> Sequence[Any]:
        column = columns[index]
        if {*map(type, column)} != {str}:
            return list(map(read, rows))
        texts = list(map(str.rstrip, column))
        if "".join(texts).isprintable() and nothing.isdisjoint(texts):
            return texts
        return list(map(read, rows))

    return read_all


def _ids(cell: Cell, read: Reader) -> ColumnReader:
    (index,) = cell.indexes
    others = _distinct(cell, read)
    fits = FHIR_ID.fullmatch
    if cell.field.absent or cell.field.prefix:
        return others

    def read_all(rows: Sequence[Row], columns: Columns) -> Sequence[Any]:
        column = columns[index]
        types = {*map(type, column)}
        if types == {int}:
            return list(map(str, column))
        if types == {str} and all(map(fits, column)):
            return column
        return others(rows, columns)

    return read_all


def _times(cell: Cell, read: Reader) -> ColumnReader:
    """Return a reader of local times, on days in which no clock is changed."""
    rule = cell.field.time
    assert rule is not None, "the loader gives every time a rule"
    (index,) = cell.indexes
    present = presence(cell.field.absent)
    years = sentinel_years(cell.field.absent)
    bases = day_bases(rule.zone, rule.written)

    def read_all(rows: Sequence[Row], columns: Columns) -> Sequence[Any]:
        column = columns[index]
        if not {*map(type, column)} <= {datetime, NoneType}:
            return list(map(read, rows))
        if years:
            column = [present(at) if at and at.year in years else at for at in column]
        try:
            return [
                None
                if at is None
                # Near a change of clocks a day has no base.
                else (base + (at - ORIGIN))
                if (base := bases[at.toordinal()])
                else read(row)
                for at, row in zip(column, rows, strict=True)
            ]
        except TypeError:
            # The times have an offset.
            return list(map(read, rows))

    return read_all
