"""What a table of stays leaves open: marks of deletion, parts, ends too early, rivals."""

from collections.abc import Iterator, Mapping, Sequence

from adapters.contract import ResourceType
from adapters.sql.samples import rows_with
from adapters.sql.tables import Holds, Table, TableColumn
from app.tools.starting.building import Builder
from app.tools.starting.draft import Part
from app.tools.starting.guesses import others
from app.tools.starting.habits import DAYS
from app.tools.starting.select import Cell
from app.tools.starting.words import meaning


def doubts(
    builder: Builder, part: Part, columns: Mapping[str, TableColumn]
) -> Iterator[str]:
    """Yield the questions about a table of stays whose fields are all found."""
    table = part.select.table
    for slot in ("cancelled", "deleted"):
        if column := columns.get(slot):
            yield marked(builder, table, column, slot)
    start, planned = columns.get("start"), columns.get("planned")
    if start and planned and builder.computes:
        both = f"COALESCE({start.name}, {planned.name})"
        yield (
            f"start: have planned stays {planned.name} alone? Then read {both}; it is searched"
            " and sorted fast where the database has an index of that very expression"
        )
    yield from _expected_ends(builder, part, columns)
    yield from _emergencies(builder, table, columns)
    yield from part.select.doubts(builder.database)
    kind, read = ResourceType.ENCOUNTER, part.select.read
    yield from others(table, kind, builder.references, read)


def marked(builder: Builder, table: Table, column: TableColumn, said: str) -> str:
    """Return the question about a column that seems to mark rows as deleted or so."""
    if not builder.computes:
        told = builder.told(table, column)
        counts = f" ({told})" if told else ""
        seems = f"{column.name}{counts} seems to mark rows that were {said}"
        return f"{seems}: can the API leave them out (fixed)?"
    if column.holds in DAYS:
        seems = f"{column.name} seems to say when a row was {said}"
        return f"{seems}: add WHERE {column.written} IS NULL to rows?"
    told = builder.told(table, column)
    counts = f" ({told})" if told else ""
    seems = f"{column.name}{counts} seems to mark rows that were {said}"
    return f"{seems}: leave them out by a WHERE in rows?"


def leave_out_parts(builder: Builder, part: Part) -> None:
    """Leave out rows that belong to a stay of another table, which serves it."""
    table = part.select.table
    elsewhere = {of.name for of in builder.roles.stays} - {table.name}
    for reference in builder.references.of(table).values():
        if reference.target.name in elsewhere:
            column = table.by_name[reference.column]
            part.select.only_where(column, has=False)
            part.questions.append(
                f"rows with {column.name} are left out: they seem to be parts of stays"
                f" of {reference.target.name}, which are served from there"
            )


def leave_out_strangers(builder: Builder, part: Part, patient: str) -> None:
    """Leave out rows of nobody: free slots of a calendar are no stays."""
    table = part.select.table
    counted = rows_with(builder.database, table, patient)
    if counted and counted[1] < counted[0] and builder.computes:
        part.select.only_where(table.by_name[patient], has=True)
        part.questions.append(
            f"rows without {patient} ({counted[0] - counted[1]}) are left out:"
            " are they free slots, or stays of people nobody knows yet?"
        )


def _emergencies(
    builder: Builder, table: Table, columns: Mapping[str, TableColumn]
) -> Iterator[str]:
    """Ask about columns that may mark emergencies among stays of another class."""
    if "EMERGENCY" in meaning(table.bare).known:
        return
    for column in table.columns:
        is_class = column in columns.values()
        if is_class or "EMERGENCY" not in meaning(column.name).known:
            continue
        if told := builder.told(table, column):
            yield (
                f"class: {column.name} ({told}) may mark emergencies: does one of its codes? Then"
                " read the class by a CASE on it in rows"
            )


def _expected_ends(
    builder: Builder, part: Part, columns: Mapping[str, TableColumn]
) -> Iterator[str]:
    """Ask about stays that go on and have an end already."""
    status, end = columns.get("status"), columns.get("end")
    said, ended = part.line("status"), part.line("end")
    if not (status and end and said and ended and isinstance(said.value, dict)):
        return
    codes = builder.draft.codes[str(said.value["codes"])]
    going = [e.code for e in codes.entries if e.made in ("planned", "in-progress")]
    if (
        not builder.computes
        or not going
        or (isinstance(ended.value, dict) and "absent" in ended.value)
    ):
        return
    table = part.select.table
    counted = rows_with(builder.database, table, end.name, status.name, going)
    if not counted or not counted[1]:
        return
    number, every = counted[1], counted[0]
    over = [e.code for e in codes.entries if e.made == "finished"]
    if number == every and over and status.holds is Holds.TEXT:
        _put_end_of_the_past(part, status, end, over)
        yield (
            f"end: all {number} stays that are planned or in progress have a {end.name}:"
            " it seems to be the expected one, and is read when the stay is over"
        )
    else:
        yield (
            f"end: {number} stays that are planned or in progress have a {end.name}:"
            " is it the expected one? Then read it by a CASE on the state in rows"
        )


def _put_end_of_the_past(
    part: Part, status: TableColumn, end: TableColumn, over: Sequence[str]
) -> None:
    """Read an end only of stays that are over, where it is expected before."""
    line = part.line("end")
    if line is None or not isinstance(line.value, dict):
        return
    if line.value["from"] != end.name:
        return
    codes = ", ".join("'" + code.replace("'", "''") + "'" for code in over)
    plain = codes.replace("{", "{{").replace("}", "}}")
    template = f"CASE WHEN {{0}} IN ({plain}) THEN {{1}} END"
    part.lines.remove(line)
    part.select.drop(end.name)
    name = part.select.express("ended", template, Cell(0, status), Cell(0, end))
    part.put("end", {**line.value, "from": name}, line.question)
