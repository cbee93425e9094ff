"""When a stay started, where two columns could say it, with the counts that decide."""

from collections.abc import Mapping

from adapters.sql.tables import Holds, TableColumn
from app.tools.starting.building import Builder
from app.tools.starting.draft import Part
from app.tools.starting.select import Cell
from app.tools.starting.timing import or_else

_RULE = "mappings/README.md, The start of a planned stay"
_INDEX = "only an index of that expression makes it fast"


def complete_start(
    builder: Builder,
    part: Part,
    columns: Mapping[str, TableColumn],
    rival: TableColumn | None,
) -> None:
    """Read a second column where it is the start, and say of what rows."""
    start, expected = columns["start"], columns.get("planned")
    if not builder.computes:
        return
    if expected:
        _of_the_planned(builder, part, start, expected)
    elif rival:
        _where_empty(builder, part, start, rival)


def _of_the_planned(
    builder: Builder, part: Part, start: TableColumn, expected: TableColumn
) -> None:
    """Take what is expected only where no planned stay has a start of its own."""
    planned = builder.states(part.select.table, {"planned"})
    if planned is None:
        part.questions.append(
            f"start: is {expected.name} the start of stays that are planned? No code is known"
            f" to be planned. The rule: {_RULE}"
        )
        return
    state, codes = planned
    those = f"state IN ({codes})"
    cells = {"started": start, "expected": expected}
    begun, alone = _has(start, "started"), _alone(start, expected)
    counted = builder.tally(
        part.select,
        {name: Cell(0, of) for name, of in cells.items()}
        | {"state": Cell(0, part.select.table.by_name[state])},
        those,
        f"{those} AND {begun}",
        f"{those} AND {alone}",
    )
    if not counted or not counted[3]:
        return
    _, every, with_start, only_expected = counted
    told = (
        f"start: of {every} planned stays {with_start} have {start.name}, and"
        f" {only_expected} {expected.name} alone"
    )
    if with_start:
        part.told.append(
            f"{told}. What is only expected is no start: {expected.name} is not read ({_RULE})"
        )
        return
    or_else(part, "start", "began", start, expected)
    part.told.append(
        f"{told}: the only start that they have, so it is read; {_INDEX} ({_RULE})"
    )


def _where_empty(
    builder: Builder, part: Part, start: TableColumn, rival: TableColumn
) -> None:
    """Read the next likely column where a start is empty, and that one is not."""
    cells = {"started": Cell(0, start), "expected": Cell(0, rival)}
    empty = f"NOT ({_has(start, 'started')})"
    alone = _alone(start, rival)
    counted = builder.tally(part.select, cells, empty, alone)
    if not counted or not counted[1]:
        return
    every, gaps, filled = counted
    question = (
        f"{gaps} of {every} rows have no {start.name}, {filled} of them {rival.name}: is it"
        " their start?"
    )
    or_else(part, "start", "began", start, rival, question)


def _alone(start: TableColumn, other: TableColumn) -> str:
    return f"NOT ({_has(start, 'started')}) AND {_has(other, 'expected')}"


def _has(column: TableColumn, name: str) -> str:
    is_text = column.holds is Holds.TEXT
    return (
        f"COALESCE(LENGTH(TRIM({name})), 0) > 0" if is_text else f"{name} IS NOT NULL"
    )
