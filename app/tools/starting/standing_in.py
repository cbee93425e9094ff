"""The rows of saved answers as tables, so that they are looked at as a database is.

No value of a person is in them: what may identify one is replaced before it is stored,
days by another day in the same writing, all else by marks that are equal where it was.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from adapters.sql.tables import Holds, Table, TableColumn
from app.tools.starting.answers import Cells, SavedAnswer
from app.tools.starting.personal import LONGEST_STATE, may_show
from app.tools.starting.times import FORMATS, reads
from app.tools.starting.unseen import is_no_day
from app.tools.starting.words import meaning

_TYPES = {Holds.TEXT: "TEXT", Holds.INTEGER: "INTEGER", Holds.FLAG: "BOOLEAN"}
_SOME_DAY = datetime(1950, 12, 25, tzinfo=UTC)
_SOME_OTHER = datetime(1950, 1, 1, tzinfo=UTC)
"""A day whose number can be that of no month, and one whose can."""


def store(
    file: Path, answers: Mapping[str, tuple[SavedAnswer, frozenset[str]]]
) -> None:
    """Write answers into a new SQLite file, by the names of their tables.

    Beside each stands what an id of its own rows may be called, apart from `id`.
    """
    taken = {name.lower() for name in answers}
    with closing(sqlite3.connect(file)) as connection:
        for name, (answer, own) in answers.items():
            kept = {p: of for p, of in answer.lists.items() if _is_new(p, taken)}
            taken |= {path.lower() for path in kept}
            for statement, values in _statements(
                name, replace(answer, lists=kept), own
            ):
                connection.execute(statement, values)
        connection.commit()


def _is_new(path: str, taken: set[str]) -> bool:
    return path.lower() not in taken


def _statements(
    name: str, answer: SavedAnswer, own: frozenset[str]
) -> Iterator[tuple[str, Sequence[object]]]:
    columns = [_column(answer.rows, field) for field in answer.fields]
    key = _key(answer, own)
    declared = [
        f"{_quoted(c.name)} {_type(c)}{' PRIMARY KEY' * (c.name == key)}"
        for c in columns
    ]
    yield f"CREATE TABLE {_quoted(name)} ({', '.join(declared)})", ()
    marks = ", ".join("?" * len(columns))
    table = Table(name, name, name, None, tuple(columns))
    cells = [
        list(_stand_ins(table, c, [row.get(c.name) for row in answer.rows]))
        for c in columns
    ]
    for row in zip(*cells, strict=True):
        yield f"INSERT INTO {_quoted(name)} VALUES ({marks})", row
    if key:
        ids = cells[answer.fields.index(key)]
        for path, elements in answer.lists.items():
            if elements:
                yield from _of_list(
                    path, elements, ids, f"{_quoted(name)} ({_quoted(key)})"
                )


_OWNER = "owner_key"


def _of_list(
    path: str, elements: Sequence[tuple[int, Cells]], ids: Sequence[object], key: str
) -> Iterator[tuple[str, Sequence[object]]]:
    """Yield the elements of a list as a table whose rows lead to those that hold them."""
    rows = [cells for _, cells in elements]
    fields = dict.fromkeys(field for row in rows for field in row)
    columns = tuple(_column(rows, field) for field in fields if field != _OWNER)
    table = Table(path, path, path, None, columns)
    declared = "".join(f", {_quoted(c.name)} {_type(c)}" for c in columns)
    yield (
        f"CREATE TABLE {_quoted(path)} ({_OWNER} REFERENCES {key}{declared})",
        (),
    )
    cells = [_stand_ins(table, c, [row.get(c.name) for row in rows]) for c in columns]
    owners = [ids[number] for number, _ in elements]
    marks = ", ".join("?" * (len(columns) + 1))
    for row in zip(owners, *cells, strict=True):
        yield f"INSERT INTO {_quoted(path)} VALUES ({marks})", row


def _column(rows: Sequence[Cells], field: str) -> TableColumn:
    values = [row[field] for row in rows if row.get(field) is not None]
    if values and all(isinstance(value, bool) for value in values):
        return TableColumn(field, field, "boolean", Holds.FLAG)
    if values and all(type(value) is int for value in values):
        return TableColumn(field, field, "number", Holds.INTEGER)
    longest = max((len(str(value)) for value in values), default=0)
    length = longest if 0 < longest <= LONGEST_STATE else None
    return TableColumn(field, field, "text", Holds.TEXT, length=length)


def _type(column: TableColumn) -> str:
    return f"CHAR({column.length})" if column.length else _TYPES[column.holds]


def _key(answer: SavedAnswer, own: frozenset[str]) -> str:
    """Return the field that is the id of a row, "" where none is named so."""
    for field in answer.fields:
        known = meaning(field).known
        if (
            "ID" in known
            and known <= own | {"ID"}
            and _are_different(answer.rows, field)
        ):
            return field
    return ""


def _are_different(rows: Sequence[Cells], field: str) -> bool:
    values = [row.get(field) for row in rows]
    return None not in values and len({str(v) for v in values}) == len(values)


def _stand_ins(
    table: Table, column: TableColumn, values: Iterable[object]
) -> Iterator[object]:
    shown = may_show(table, column) and "ID" not in meaning(column.name).known
    known: dict[object, int] = {}
    for value in values:
        if value is None or value == "" or shown:
            yield value
        else:
            number = known.setdefault(value, len(known) + 1)
            is_number = column.holds is not Holds.TEXT
            yield number if is_number else _day(str(value)) or f"x{number}"


def _day(text: str) -> str:
    """Return another day in the writing of a text, "" where it is none."""
    forms = [form for form in FORMATS if reads(text, form)]
    if not forms or is_no_day(text, forms[0]):
        return text if forms else ""
    day = _SOME_OTHER if len(forms) > 1 else _SOME_DAY
    return day.strftime(forms[0])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
