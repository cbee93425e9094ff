"""Which column says that an identity is qualified, so that its national number may go out."""

from collections.abc import Iterator, Sequence

from adapters.sql.samples import CodeCount
from adapters.sql.tables import Table, TableColumn
from app.tools.starting.belongings import Child
from app.tools.starting.building import Builder, listed
from app.tools.starting.habits import said
from app.tools.starting.select import Cell, Select

QUALIFIED = ("VALI", "QUAL")
"""States of an identity whose national number may go out (RNIV)."""

_MAY_GO = "may_go_out"


def how_qualified(
    builder: Builder, rows: Select, child: Child, type_: str, national: Sequence[str]
) -> str:
    """Return what says so of a number, and how its item is written, "" for nothing known.

    `rows` reads the numbers of patients, `type_` is the column of their types.
    """
    select = rows.copy()
    for table, column, place in _states(builder, select, child):
        state = f" {table.name}.{column.name} ({builder.told(table, column)})"
        if not builder.computes:
            return f", which{state} seems to say"
        fine = [c.code for c in builder.counts(table, column) or ()]
        code = next(c for c in reversed(QUALIFIED) if c in fine)
        case = f"CASE WHEN {{0}} IN ({listed(national)}) THEN {{1}} ELSE '{code}' END"
        kind = Cell(0, select.table.by_name[type_])
        select.express(_MAY_GO, case, kind, Cell(place, column))
        said_so = select.only({_MAY_GO}).besides
        return (
            f", which{state} seems to say: then rows is {said_so}, only_if {{from: {_MAY_GO},"
            f" in: [{code}]}}, and type and system are by code tables of {type_}"
        )
    return ", and no column of the patient's tables seems to say so"


def _states(
    builder: Builder, select: Select, child: Child
) -> Iterator[tuple[Table, TableColumn, int]]:
    """Yield the columns of states that can mean so, with the place of their table."""
    of, person = child.reference, builder.roles.person
    tables = [(of.target, (of.column, of.key))]
    if person and of.target is person.table:
        tables.append((person.target, (person.column, person.key)))
    place = 0
    for table, (column, key) in tables:
        place = select.join_at(place, column, table, key)
        for state in table.columns:
            codes = {c.code for c in _counts(builder, table, state)}
            if codes & {*QUALIFIED}:
                yield table, state, place


def _counts(builder: Builder, table: Table, column: TableColumn) -> Sequence[CodeCount]:
    is_state = "STATUS" in said(column).known
    return (builder.counts(table, column) or ()) if is_state else ()
