"""What a table of stays leaves open: marks of deletion, ends too early, rivals."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from adapters.contract import ResourceType
from adapters.sql.tables import Holds, Table, TableColumn
from adapters.sql.tallies import different_pairs, rows_with
from app.tools.starting.building import Builder, listed
from app.tools.starting.codes import entries
from app.tools.starting.draft import Part
from app.tools.starting.guesses import others
from app.tools.starting.marks import marked
from app.tools.starting.select import Cell
from app.tools.starting.words import meaning

_NO_ROW = (
    "No row says which of its codes does: the hospital does, or the vendor's handbook. Leave"
    " this mark until you know."
)


def doubts(
    builder: Builder, part: Part, columns: Mapping[str, TableColumn]
) -> Iterator[str]:
    """Yield the questions about a table of stays whose fields are all found."""
    table = part.select.table
    for slot in ("cancelled", "deleted"):
        if column := columns.get(slot):
            yield marked(builder, table, column, slot)
    yield from _expected_ends(builder, part, columns)
    yield from _emergencies(builder, part, columns)
    yield from part.select.doubts(builder.database)
    kind, read = ResourceType.ENCOUNTER, part.select.read
    shown = partial(builder.rival, table)
    yield from others(table, kind, builder.references, read, shown)


def counted_apart(
    builder: Builder, table: Table, number: TableColumn, again: int
) -> str:
    """Return the question about numbers that occur again: whether each hospital counts."""
    asked = f"{again} occur again: does each hospital count for itself?"
    leads = builder.references.leading(table, builder.roles.organization)
    if not leads:
        return asked
    house = leads[0].column
    pairs = different_pairs(builder.database, table, number.name, house)
    if pairs is None or pairs[0] == pairs[1]:
        return asked
    return (
        f"{pairs[0]} numbers make {pairs[1]} with {house}: does each hospital count for itself?"
        f" Then a field visit_number_system says whose number it is, from {house} by a code table"
    )


def leave_out_strangers(builder: Builder, part: Part, patient: str) -> None:
    """Leave out rows of nobody: free slots of a calendar are no stays."""
    table = part.select.table
    counted = rows_with(builder.database, table, patient)
    if counted and counted[1] < counted[0] and builder.computes:
        part.select.only_where("{0} IS NOT NULL", table.by_name[patient])
        part.questions.append(
            f"rows without {patient} ({counted[0] - counted[1]}) are left out:"
            " are they free slots, or stays of people nobody knows yet?"
        )


def _emergencies(
    builder: Builder, part: Part, columns: Mapping[str, TableColumn]
) -> Iterator[str]:
    """Ask about columns that may mark emergencies among stays of another class."""
    table = part.select.table
    if "EMERGENCY" in meaning(table.bare).known:
        return
    for column in table.columns:
        is_class = column in columns.values()
        if is_class or "EMERGENCY" not in meaning(column.name).known:
            continue
        if told := builder.told(table, column, part.select):
            yield (
                f"class: {column.name} ({told}) may mark emergencies, whatever else the class is"
                f" told by. {_NO_ROW}{_by_case(builder, part, column, columns.get('class'))}"
            )


def _by_case(
    builder: Builder, part: Part, mark: TableColumn, kind: TableColumn | None
) -> str:
    """Return how a mark of emergencies is read, with its code where that can be guessed."""
    line = part.line("class")
    if not (builder.computes and kind and line and isinstance(line.value, dict)):
        return ""
    counts = builder.counts(part.select.table, mark, part.select) or ()
    found = entries("class", counts, french=builder.is_french)
    code = next((entry.code for entry in found if entry.made == "EMER"), "…")
    return (
        f" In rows CASE WHEN {mark.name} = '{code}' THEN 'EMER' ELSE {kind.name} END AS"
        f" kind_or_emer, from which class is read then, and EMER: EMER in"
        f" codes.{line.value['codes']}"
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
    plain = listed(over).replace("{", "{{").replace("}", "}}")
    template = f"CASE WHEN {{0}} IN ({plain}) THEN {{1}} END"
    part.lines.remove(line)
    part.select.drop(end.name)
    name = part.select.express("ended", template, Cell(0, status), Cell(0, end))
    part.put("end", {**line.value, "from": name}, line.question)
