"""Marks of rows that were cancelled or deleted, and how many of them would be served."""

from adapters.mapping.slots import UNSERVED
from adapters.sql.tables import Table, TableColumn
from app.tools.starting.building import CODES, Builder, listed
from app.tools.starting.codes import entries
from app.tools.starting.habits import DAYS
from app.tools.starting.select import Cell, Select


def marked(builder: Builder, table: Table, column: TableColumn, said: str) -> str:
    """Return the question about a column that seems to mark rows as deleted or so."""
    seems = f"{builder.shown(table, column)} seems to mark rows that were {said}"
    if not builder.computes:
        return f"{seems}: can the API leave them out (fixed)?"
    unmarked = _unmarked(builder, table, column)
    if not unmarked:
        return f"{seems}: leave them out by a WHERE in rows?"
    return f"{seems}{_served(builder, table, column)}: leave them out by WHERE {unmarked} in rows?"


def _unmarked(builder: Builder, table: Table, column: TableColumn) -> str:
    """Return SQL that is true of rows without a mark, "" where no code tells them."""
    if column.holds in DAYS:
        return f"{column.written} IS NULL"
    counts = builder.counts(table, column) or ()
    found = entries("yes", counts, french=builder.is_french)
    codes = [entry.code for entry in found if entry.made == "true"]
    if not codes:
        return ""
    return f"({column.written} IS NULL OR {column.written} NOT IN ({listed(codes)}))"


def _served(builder: Builder, table: Table, column: TableColumn) -> str:
    """Return how many rows with a mark have a state that is served."""
    states = builder.states(table, set(CODES["status"]).difference(UNSERVED))
    if states is None:
        return ""
    cells = {column.name: Cell(0, column), "state_": Cell(0, table.by_name[states[0]])}
    has_mark = f"NOT ({_unmarked(builder, table, column)})"
    is_served = f"{has_mark} AND state_ IN ({states[1]})"
    counted = builder.tally(Select(table), cells, has_mark, is_served)
    if not counted:
        return ""
    return f" ({counted[2]} of {counted[1]} have a state that is served)"
