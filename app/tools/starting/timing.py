"""Slots of times and days: their columns, formats, zones, and times of day apart."""

from collections.abc import Mapping
from dataclasses import replace

from adapters.contract import ResourceType
from adapters.sql.samples import some_times
from adapters.sql.tables import Holds, Table, TableColumn
from adapters.sql.tallies import rows_with
from app.tools.starting.building import Builder
from app.tools.starting.draft import Found, Part, Value
from app.tools.starting.personal import TRIED, may_show
from app.tools.starting.select import Cell
from app.tools.starting.times import Writing, sorted_by_sql, writing_of
from app.tools.starting.unseen import unseen_writing

_CLOCKS = {
    4: ("%H%M", "0000"),
    5: ("%H:%M", "00:00"),
    6: ("%H%M%S", "000000"),
    8: ("%H:%M:%S", "00:00:00"),
}
"""Times of day as text by their length: their format, and midnight."""

_SQL = {
    "postgresql": "{0} + COALESCE({1}, TIME '00:00')",
    "mysql": "TIMESTAMP({0}, COALESCE({1}, '00:00'))",
    "mariadb": "TIMESTAMP({0}, COALESCE({1}, '00:00'))",
}
"""How a day and a time of day become one, where the database has types for both."""

_FILLED = "COALESCE(NULLIF(TRIM({{1}}), ''), '{0}')"
"""A time of day as text, midnight where it is blank."""

_SLOW = (
    "made by an expression, so that it sorts: only an index of that expression helps"
)
_MANY = 1000
_EXPRESSED = "Only an index of that expression makes it fast"
_DAYS = "days without a time of day: which time do they stand for?"
_CLOCK = (
    "only the hospital knows: local clock, or UTC? Write the answer as time_zone, be it the"
    " file's own. A wrong one moves every lastUpdated, and no row shows it: until then the line"
    " stays a comment"
)


def put_time(
    builder: Builder,
    part: Part,
    slot: str,
    found: Found,
    clock: TableColumn | None = None,
) -> None:
    """Fill a slot of times, with the time of day where that is in a column of its own."""
    writing = _writing(builder, slot, found)
    joined = _with_clock(builder, part, writing, found, clock)
    from_, writing, question = joined or _alone(part, writing, found)
    options: dict[str, Value] = {"from": from_}
    if writing.format:
        options["format"] = writing.format
    if not writing.has_clock:
        options["at"] = "00:00"
        question = question or _DAYS
    zone = builder.draft.source_zone
    if writing.is_utc and not writing.has_zone and not zone:
        options["time_zone"] = "UTC"
    if writing.absent:
        options["absent"] = list(writing.absent)
    is_told = writing.is_utc or writing.has_zone or zone
    if slot == "last_updated" and not is_told:
        asked = writing.question or question
        part.leave_out(slot, options, f"{asked} {_CLOCK}" if asked else _CLOCK)
        return
    put = part.put if writing.sorts else part.put_unsearched
    put(slot, options, writing.question or question)


def _writing(builder: Builder, slot: str, found: Found) -> Writing:
    """Return how a column writes its times; those of people are not looked at for it."""
    looks = slot in TRIED[ResourceType.ENCOUNTER] and may_show(
        found.table, found.column
    )
    of = (builder.database, found.table, found.column)
    is_typed = builder.catalogue.dialect != "sqlite"
    writing = writing_of(*of) if looks else unseen_writing(*of, is_typed=is_typed)
    return sorted_by_sql(writing) if builder.computes else writing


def put_day(builder: Builder, part: Part, slot: str, found: Found) -> None:
    """Fill a slot of days."""
    writing = _writing(builder, slot, found)
    from_, writing, question = _alone(part, writing, found)
    options: dict[str, Value] = {"from": from_}
    if writing.format:
        options["format"] = writing.format
    if writing.absent:
        options["absent"] = list(writing.absent)
        question = question or "is that a day of birth, or none?"
    part.put(slot, options, writing.question or question)


def put_changed(
    builder: Builder, part: Part, table: Table, columns: Mapping[str, TableColumn]
) -> None:
    """Fill last_updated from the time of change, or of creation where there was none."""
    changed, created = columns.get("changed"), columns.get("created")
    chosen = changed or created
    if chosen is None:
        return
    put_time(builder, part, "last_updated", Found(table, chosen))
    if changed and created and builder.computes and _has_gaps(builder, table, changed):
        or_else(part, "last_updated", "last_changed", changed, created)


def _has_gaps(builder: Builder, table: Table, column: TableColumn) -> bool:
    """Tell whether rows may have nothing in a column: not where many all have something."""
    if not column.nullable:
        return False
    counted = rows_with(builder.database, table, column.name)
    return counted is None or counted[0] < _MANY or counted[1] < counted[0]


def or_else(
    part: Part,
    slot: str,
    name: str,
    column: TableColumn,
    other: TableColumn,
    question: str = "",
) -> None:
    """Read another column of the same type where the column of a slot is empty."""
    line = part.line(slot)
    if line is None or not isinstance(line.value, dict) or column.type != other.type:
        return
    if line.value["from"] != column.name:
        return
    part.lines.remove(line)
    part.select.drop(column.name)
    cells = Cell(0, column), Cell(0, other)
    made = part.select.express(name, "COALESCE({0}, {1})", *cells)
    asked = line.question or question
    said = (
        f"{asked.removesuffix('.')}. {_EXPRESSED}".replace("?.", "?") if asked else ""
    )
    part.lines.append(replace(line, value={**line.value, "from": made}, question=said))


def _alone(part: Part, writing: Writing, found: Found) -> tuple[str, Writing, str]:
    cell, name = Cell(found.place, found.column), found.column.name
    if writing.zeros:
        sql = "NULLIF({0}, '0000-00-00')"
        return part.select.express(f"{name}_or_none", sql, cell), writing, ""
    if writing.rearranged:
        made = part.select.express(f"{name}_iso", writing.rearranged, cell)
        return made, writing, _SLOW
    return part.read(found), writing, ""


def _with_clock(
    builder: Builder,
    part: Part,
    writing: Writing,
    found: Found,
    clock: TableColumn | None,
) -> tuple[Value, Writing, str] | None:
    """Join a day and its time of day in the SELECT, where the database can."""
    if clock is None or writing.has_clock:
        return None
    if not builder.computes:
        return _as_pair(builder, part, writing, found, clock)
    cells = Cell(found.place, found.column), Cell(found.place, clock)
    name = f"{found.column.name}_{clock.name}"
    sql = _SQL.get(builder.catalogue.dialect)
    if clock.holds is Holds.CLOCK and sql and not writing.is_text:
        whole = Writing(absent=writing.absent, question=writing.question)
        return part.select.express(name, sql, *cells), whole, _SLOW
    form = _clock_format(builder, found.table, clock)
    if form is None or clock.holds is Holds.INTEGER:
        return None
    midnight = form[1]
    template = f"{writing.rearranged or '{0}'} || ' ' || {_FILLED.format(midnight)}"
    if writing.is_text:
        template = f"CASE WHEN LENGTH(TRIM({{0}})) > 0 THEN {template} END"
    joined = f"{writing.format or '%Y-%m-%d'} {form[0]}"
    whole = Writing(
        "" if joined == "%Y-%m-%d %H:%M:%S" else joined,
        absent=tuple(f"{text} {midnight}" for text in writing.absent),
        question=writing.question,
    )
    return part.select.express(name, template, *cells), whole, _SLOW


def _as_pair(
    builder: Builder, part: Part, writing: Writing, found: Found, clock: TableColumn
) -> tuple[list[Value], Writing, str] | None:
    """Read a day and its time of day as they are, where both are texts."""
    form = _clock_format(builder, found.table, clock)
    if form is None:
        return None
    pair: list[Value] = [part.read(found), part.read(found._replace(column=clock))]
    joined = f"{writing.format or '%Y-%m-%d'} {form[0]}"
    return pair, replace(writing, format=joined, has_clock=True), ""


def _clock_format(
    builder: Builder, table: Table, clock: TableColumn
) -> tuple[str, str] | None:
    if not may_show(table, clock):
        return None
    values = some_times(builder.database, table, clock.name)
    lengths = {len(text) for value in values if (text := str(value).strip())}
    return _CLOCKS.get(lengths.pop()) if len(lengths) == 1 else None
