"""The status and the class of stays: by codes, looked up, or told by the dates."""

from collections.abc import Mapping

from adapters.sql.tables import Holds, TableColumn
from app.tools.starting.building import Builder, class_by_name
from app.tools.starting.codes import Entry
from app.tools.starting.draft import CodeTable, Found, Part
from app.tools.starting.habits import DAYS, STRANGE
from app.tools.starting.personal import is_list_of_codes
from app.tools.starting.select import Cell
from app.tools.starting.words import meaning

_BY_DATES = CodeTable(
    "",
    (
        Entry("expected", "planned", 0),
        Entry("here", "in-progress", 0),
        Entry("left", "finished", 0),
    ),
    ("planned", "in-progress", "finished"),
)
"""States that are told by the dates, where no column holds one."""

_AHEAD = "WHEN {{{0}}} > CURRENT_TIMESTAMP THEN 'expected'"

Columns = Mapping[str, TableColumn]


def put_status(builder: Builder, part: Part, columns: Columns) -> None:
    """Fill status from a column of states, or by the dates."""
    if _coded(builder, part, columns, "status", {"STATUS"}):
        _ask_for_the_rest(builder, part)
        return
    if not builder.computes:
        question = "no field looks like a state: are all of them over?"
        part.put_unsearched("status", "finished", question)
        return
    template, cells = _by_dates(part, columns)
    name = part.select.express("status_by_dates", template, *cells)
    builder.draft.codes.setdefault("status_by_dates", _BY_DATES)
    question = "told by the dates, as long as no column of states is known"
    part.put("status", {"from": name, "codes": "status_by_dates"}, question)


def _ask_for_the_rest(builder: Builder, part: Part) -> None:
    """Ask about rows without a state: none can be served."""
    line = part.line("status")
    name = str(line.value["from"]) if line and isinstance(line.value, dict) else ""
    cell = part.select.cell(name)
    empty = "state IS NULL"
    if cell and cell.column.holds is Holds.TEXT:
        empty += " OR TRIM(state) = ''"
    counted = cell and builder.tally(part.select, {"state": cell}, empty)
    if counted and counted[1]:
        how = (
            f" In rows COALESCE({name}, '…') gives them a code"
            if builder.computes
            else ""
        )
        part.questions.append(
            f"status: {counted[1]} of {counted[0]} rows have no {name}, and cannot be served:"
            f" what are they?{how}"
        )


def put_class(builder: Builder, part: Part, columns: Columns) -> None:
    """Fill class from a column of classes, or by the name of the table."""
    if _coded(builder, part, columns, "class", {"CLASS", "KIND"}):
        return
    if made := class_by_name(part.select.table):
        question = "by the name of the table: the same for all of its stays"
        part.put_unsearched("class", made, question)
    else:
        text = "class: no column tells emergencies and inpatients apart"
        part.questions.append(text)


def _coded(
    builder: Builder, part: Part, columns: Columns, slot: str, words: set[str]
) -> bool:
    """Fill a slot from a column of codes, or from the table that a column leads to."""
    table = part.select.table
    if (column := columns.get(slot)) is not None:
        return builder.coded(part, slot, Found(table, column))
    for lead in builder.references.of(table).values():
        known = meaning(lead.column).known
        if not known & words or known & STRANGE or not is_list_of_codes(lead.target):
            continue
        shown = [c for c in lead.target.columns if meaning(c.name).known & {"CODE"}]
        shown += [c for c in lead.target.columns if _is_label(c)]
        for column in shown:
            if builder.counts(lead.target, column):
                place = part.select.join([lead])
                return builder.coded(part, slot, Found(lead.target, column, place))
    return False


def _is_label(column: TableColumn) -> bool:
    known = meaning(column.name).known
    return column.holds is Holds.TEXT and bool(known & {"NAME", "LABEL"})


def _by_dates(part: Part, columns: Columns) -> tuple[str, tuple[Cell, ...]]:
    """Return SQL that tells a state by the dates, and the columns that it reads."""
    start, end = columns.get("start"), columns.get("end")
    begun = (Cell(0, start),) if start and start.holds in DAYS else ()
    if end is None:
        ahead = f"CASE {_AHEAD.format(0)} ELSE 'left' END" if begun else "'left'"
        return ahead, begun
    ahead = f" {_AHEAD.format(1)}" if begun else ""
    ended = f"CASE WHEN {_has_left(part, end)} THEN 'left'"
    return f"{ended}{ahead} ELSE 'here' END", (Cell(0, end), *begun)


def _has_left(part: Part, end: TableColumn) -> str:
    """Return the condition on the end, {0}, with which a stay is over."""
    line = part.line("end")
    value = line.value if line and isinstance(line.value, dict) else {}
    texts = ["LENGTH(TRIM({0})) > 0"] if end.holds is Holds.TEXT else []
    absent = value.get("absent")
    if isinstance(absent, list) and value["from"] == end.name:
        texts += [_beside(str(none)) for none in absent]
    return " AND ".join(texts) or "{0} IS NOT NULL"


def _beside(none: str) -> str:
    """Return the condition that an end, {0}, is not the day that stands for none."""
    if none.startswith(("0", "1")):
        return f"{{0}} > '{none}'"
    # Of a far day no clock counts; what is no date by its look is one number.
    return f"{{0}} < '{none[:10] if '-' in none else none}'"
