"""Columns that no line of a section reads: those that may decide something, and the rest."""

import re
from collections.abc import Iterator

from adapters.sql.tables import Holds, Table, TableColumn
from adapters.sql.tallies import rows_with
from app.tools.starting.building import Builder
from app.tools.starting.draft import Part
from app.tools.starting.habits import DAYS, STRANGE, said
from app.tools.starting.personal import is_state_of_file, may_show
from app.tools.starting.select import Select
from app.tools.starting.writing import named

_MARKS = frozenset({"ACTIVE", "DELETE", "CANCEL", "MERGED", "CLOSED"})
"""Meanings of columns that may say which rows are served, whatever the table is for."""

_DECIDE = _MARKS | {"STATUS"}
"""The same in a table that holds what is served, or a part of it."""

_CODED = frozenset({"STATUS", "CLASS", "KIND", "DEATH", "FORMER"})
"""Meanings of columns whose codes are told, though they seldom decide that."""

_ELSE = STRANGE | {"USAGE"}
"""Words beside those that make of it a column of something else: marital_status."""

_COUNTED = frozenset({"DATE", "TIME", "UTC", "MERGED", "DEATH"})
"""Of such a column rows are counted that have a value, and no value is asked for."""


def tell_unread(builder: Builder, part: Part, told: set[str]) -> None:
    """Say of each table that a part reads or joins what nothing reads.

    `told` are the tables of which an earlier part has said it, and those that it says.
    """
    for table in _tables(part):
        read = {name for select in _selects(part) for name in select.read_of(table)}
        left = [c for c in table.columns if c.name not in read]
        holds_it = table is part.select.table or _is_of_person(builder, part, table)
        wanted = _DECIDE if holds_it else _MARKS
        asked = [
            text
            for column in left
            if (said(column).known & wanted or is_state_of_file(column))
            and not said(column).known & _ELSE - wanted
            and not said(column).unknown
            and not _is_asked(part, column)
            and (text := _counts(builder, table, column))
        ]
        if asked:
            part.undecided.append(
                f"of {table.name} nothing reads {'; '.join(asked)}: does"
                f" {'one of them' if len(asked) > 1 else 'it'} say which rows are served, or"
                " as what?"
            )
        if table is part.select.table or table.name not in told:
            _rest(builder, part, table, left, asked, holds_it=holds_it)
        told.add(table.name)


def _rest(
    builder: Builder,
    part: Part,
    table: Table,
    left: list[TableColumn],
    asked: list[str],
    *,
    holds_it: bool,
) -> None:
    """Name the columns that are left, those of codes with their counts."""
    names = []
    for column in left:
        has_codes = said(column).known & _CODED or column.holds is Holds.FLAG
        text = _counts(builder, table, column) if holds_it and has_codes else ""
        if not text or text not in asked:
            names.append(text or column.name)
    if names:
        part.unread.append(f"nothing reads of {table.name}: {named(names)}")


def _selects(part: Part) -> list[Select]:
    items = [item.select for of in part.lists.values() for item in of]
    return [part.select, *(select for select in items if select)]


def _tables(part: Part) -> Iterator[Table]:
    every = (table for select in _selects(part) for table in select.tables)
    yield from {table.name: table for table in every}.values()


def _is_of_person(builder: Builder, part: Part, table: Table) -> bool:
    """Tell whether a table holds a part of a patient, and not only the way to something."""
    person = builder.roles.person
    is_person = bool(person and person.target is table)
    is_patients = part.select.table is builder.roles.patient
    return is_patients and (is_person or table not in part.select.tables)


def _is_asked(part: Part, column: TableColumn) -> bool:
    name = re.compile(rf"\b{re.escape(column.name)}\b")
    items = (line for of in part.lists.values() for item in of for line in item.lines)
    conditions = (line.question for line in items if line.key == "only_if")
    return any(name.search(question) for question in (*part.questions, *conditions))


def _counts(builder: Builder, table: Table, column: TableColumn) -> str:
    """Return a column with what it holds, "" where that decides nothing."""
    counted = rows_with(builder.database, table, column.name)
    if not counted or not counted[1]:
        return ""
    every, filled = counted
    known = said(column).known
    is_counted = column.holds is not Holds.FLAG and known & _COUNTED
    if column.holds in DAYS or is_counted or not may_show(table, column):
        some = f"{column.name} (in {filled} of {every} rows)"
        return some if filled < every else ""
    codes = builder.counts(table, column)
    if not codes or (len(codes) == 1 and filled == every and not known & _MARKS):
        return ""
    none = f", none: {every - filled}" if filled < every else ""
    return f"{column.name} ({builder.told(table, column)}{none})"
