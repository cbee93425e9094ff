"""One visit in two tables of stays: which of them serves it, with the counts that say so."""

from collections.abc import Iterator

from adapters.contract import ResourceType
from adapters.mapping.slots import UNSERVED
from adapters.sql.tables import Table
from adapters.sql.tallies import rows_with
from app.tools.starting.building import Builder
from app.tools.starting.draft import Part
from app.tools.starting.guesses import slots
from app.tools.starting.references import Reference
from app.tools.starting.select import Cell, Select
from app.tools.starting.words import meaning


def leave_out_overlaps(builder: Builder, part: Part) -> None:
    """Leave out rows whose visit another table of stays serves."""
    table = part.select.table
    # Of all rows, before the first of them are left out.
    every = Select(table)
    for reference in _between_stays(builder):
        if reference.table is table:
            if says_more(builder, reference):
                continue
            _leave_out_parts(builder, part, reference)
        elif reference.target is table and says_more(builder, reference):
            _leave_out_plans(builder, part, every, reference)


def _between_stays(builder: Builder) -> Iterator[Reference]:
    stays = builder.roles.stays
    for table in stays:
        for reference in builder.references.of(table).values():
            if reference.target in stays and reference.target is not table:
                yield reference


def says_more(builder: Builder, reference: Reference) -> bool:
    """Tell whether the referring row says more of a visit than the one referred to.

    An appointment is the plan of a visit; what happened says when it ended.
    """
    here, there = (
        "APPOINTMENT" in meaning(table.bare).known
        for table in (reference.table, reference.target)
    )
    if here is not there:
        return there
    return _has_end(builder, reference.table) > _has_end(builder, reference.target)


def _has_end(builder: Builder, table: Table) -> bool:
    return "end" in slots(table, ResourceType.ENCOUNTER, builder.references)


def _leave_out_plans(
    builder: Builder, part: Part, every: Select, reference: Reference
) -> None:
    other, table = reference.table, part.select.table
    column = other.by_name[reference.column].written
    key = table.by_name[reference.key]
    condition = (
        f"NOT EXISTS (SELECT 1 FROM {other.written} other WHERE other.{column} = {{0}})"
    )
    part.select.only_where(condition, key)
    twice = Select(table)
    twice.only_where(condition, key)
    kept = builder.tally(twice, {"kept": Cell(0, key)})
    whole = builder.tally(every, {"kept": Cell(0, key)})
    counted = f"{whole[0] - kept[0]} of {whole[0]}" if kept and whole else "those"
    part.told.append(
        f"{counted} rows are of visits that {other.name} has too (its {reference.column}):"
        f" served from there, which says more of what happened, and left out here"
    )


def _leave_out_parts(builder: Builder, part: Part, reference: Reference) -> None:
    """Leave out rows that belong to a stay of another table, but for one not served."""
    table, target = part.select.table, reference.target
    column = table.by_name[reference.column]
    unserved = builder.states(target, UNSERVED)
    shut = ""
    if unserved:
        state = target.by_name[unserved[0]].written
        key = target.by_name[reference.key].written
        shut = (
            f"{{0}} IN (SELECT other.{key} FROM {target.written} other"
            f" WHERE other.{state} IN ({unserved[1]}))"
        )
    lost = _rows_where(builder, table, reference.column, shut) if shut else 0
    is_free = "{0} IS NULL"
    # One that is cancelled tomorrow leaves its parts as well, if none does today.
    part.select.only_where(f"({is_free} OR {shut})" if shut else is_free, column)
    counted = rows_with(builder.database, table, column.name)
    number = f"{counted[1] - lost} of {counted[0]} rows" if counted else "rows"
    besides = (
        f"; {lost or 'none'} more are of stays that are not served, and stand for themselves"
        if shut
        else ""
    )
    part.told.append(
        f"{number} have {column.name}: parts of stays of {target.name}, which are served"
        f" from there, and left out here{besides}"
    )


def _rows_where(builder: Builder, table: Table, column: str, condition: str) -> int:
    cell = table.by_name[column]
    select = Select(table)
    select.only_where(condition, cell)
    counted = builder.tally(select, {"kept": Cell(0, cell)})
    return counted[0] if counted else 0
