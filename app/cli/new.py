"""`encounters mapping new`: a first mapping file from the structure of a source.

Of a database it reads the catalogue: tables, columns, types, keys. Of an HTTP API it
reads answers that somebody saved. Declared foreign keys become joins and references, a
column with the name of a slot fills it, and every other slot is left as a question with
the columns whose type fits. Codes are written with their counts and without a meaning.
Nothing is guessed from words: a line without the mark `# ?` follows from the structure.
"""

import json
import os
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType, SimpleNamespace
from typing import Any

import orjson

from adapters import open_adapter
from adapters.contract import AdapterError, ResourceType
from adapters.mapping.load import load_mapping
from adapters.mapping.problems import MappingError, did_you_mean
from adapters.mapping.slots import LISTS, REFERS, SLOTS, Kind, Slot
from adapters.mapping.values import LONGEST_CODE
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from adapters.sql.catalog import (
    MOST_CODES,
    Catalogue,
    CodeCount,
    ForeignKey,
    Holds,
    Table,
    TableColumn,
    code_counts,
    read_catalogue,
)
from adapters.sql.engine import AddressError, Database
from app.cli.check import (
    FINDINGS,
    FINE,
    MARK,
    CannotRunError,
    marked_lines,
    print_json,
)

STAY, PATIENT, ORGANIZATION = ResourceType

MAY_WRITE = (
    "this account may change tables: the service needs one that may only read"
    " (docs/operators.md, The database account)"
)

_VARIABLE = "PAS_URL"
_QUERY_SECONDS = 10.0

_TABLE_NAMES: Mapping[ResourceType, tuple[str, ...]] = MappingProxyType(
    {
        STAY: ("encounter", "encounters", "stay", "stays"),
        PATIENT: ("patient", "patients"),
        ORGANIZATION: ("organization", "organizations"),
    }
)
"""The only names of tables that are recognised; any other is an option's."""

_FEWEST_ROWS = 5
"""A value that fewer rows share may tell of a person, and is not written."""

_MOST_PATIENT_CODES = 12
"""In a table of persons a column with more different values may hold names."""

_LONGEST_DECLARED = 2 * LONGEST_CODE
"""A text that may be longer is no code: counting takes long in a large table."""

_MOST_LOOKUP_COLUMNS = 12
"""A table with more columns is no list of codes: it is not joined unasked."""

_TIMES = frozenset({Holds.DATE, Holds.LOCAL_TIME, Holds.INSTANT})
_CODED = frozenset({Holds.TEXT, Holds.INTEGER, Holds.FLAG})


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the rows of a section, or a path in the rows of an API.

    `origin` is where it stands in the source, `refers` the table.column that a declared
    foreign key leads to. `format` is how a text writes its times. `codes` are its values
    that enough rows share, None where it holds something else; `rare` counts the others.
    """

    name: str
    origin: str
    holds: Holds
    refers: str = ""
    is_unique: bool = False
    format: str = ""
    codes: tuple[CodeCount, ...] | None = None
    rare: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """One source of the resources of a type: a table, or a list of an API.

    `head` are the lines that say how rows are read, `left` further questions.
    """

    kind: ResourceType
    name: str
    head: tuple[str, ...]
    columns: tuple[Column, ...]
    id: str
    id_question: str
    left: tuple[str, ...]
    fields: tuple["Field", ...] = ()


@dataclass(frozen=True, slots=True)
class _TableReader:
    """Reads tables into parts; `sections` are the tables that have a section of their own."""

    database: Database
    catalogue: Catalogue
    sections: Sequence[Table]

    def part(self, kind: ResourceType, table: Table, persons: Sequence[Table]) -> Part:
        """Return the part of a table, joined with `persons` and small tables it refers to."""
        alias = _alias(table, ())
        readable = [c for c in table.columns if c.holds is not Holds.OTHER]
        columns = [self._column(kind, table, column) for column in readable]
        select = [f"{alias}.{column.written}" for column in readable]
        source, questions = [f"FROM {table.written} {alias}"], []
        aliases, joined = [alias], set()
        for key in table.foreign_keys:
            other = self.catalogue.by_name.get(key.table)
            if other is None or other is table or other in self.sections:
                continue
            if other not in persons and len(other.columns) > _MOST_LOOKUP_COLUMNS:
                questions.append(
                    f"{', '.join(key.columns)} refers to {other.name}"
                    f" ({len(other.columns)} columns): join it if a field needs one of them"
                )
                continue
            beside = _alias(other, aliases)
            aliases.append(beside)
            joined.add(other.name)
            source.append(_join(key, table, other, alias, beside))
            for detail, text in self._joined(kind, key, other, beside, columns):
                columns.append(detail)
                select.append(text)
        questions += [
            f"no declared key of {table.name} leads to {person.name}: join it by hand"
            for person in persons
            if person.name not in joined
        ]
        questions += self._items(kind, (table, *persons))
        lines = _wrapped(select, "SELECT ")
        head = ("rows: |", *(f"  {line}" for line in (*lines, *source)))
        id, question = _key_of(table)
        named = (kind, table.name, head, tuple(columns), id, question)
        return Part(*named, left=tuple(questions))

    def _joined(
        self,
        kind: ResourceType,
        key: ForeignKey,
        table: Table,
        alias: str,
        before: Sequence[Column],
    ) -> Iterator[tuple[Column, str]]:
        """Yield the columns of a joined table, and what the SELECT says of each."""
        # Two keys may lead to one table: the column of the key tells them apart.
        names = {column.name.lower() for column in before}
        for column in table.columns:
            if column.holds is Holds.OTHER or column.name in key.referred:
                continue
            joined = self._column(kind, table, column)
            text = f"{alias}.{column.written}"
            if column.name.lower() in names:
                name = re.sub(r"\W", "_", f"{key.columns[0]}_{column.name}").lower()
                joined, text = replace(joined, name=name), f"{text} AS {name}"
            yield joined, text

    def _column(self, kind: ResourceType, table: Table, column: TableColumn) -> Column:
        keys = [key for key in table.foreign_keys if key.columns == (column.name,)]
        result = Column(
            name=column.name,
            origin=f"{table.name}.{column.name}",
            holds=column.holds,
            refers=f"{keys[0].table}.{keys[0].referred[0]}" if keys else "",
            is_unique=table.is_unique(column.name),
        )
        is_long = (column.length or 0) > _LONGEST_DECLARED and not column.choices
        is_key = result.refers or result.is_unique
        if is_key or is_long or column.holds not in _CODED:
            return result
        counts = code_counts(self.database, table, column.name, often=True)
        return _with_codes(result, kind, counts, column.choices)

    def _items(self, kind: ResourceType, owners: Sequence[Table]) -> Iterator[str]:
        """Yield a question for each table whose rows may be items of a list."""
        lists = " or ".join(listed.name for listed in LISTS[kind])
        names = [owner.name for owner in owners]
        for other in self.catalogue.tables if lists else ():
            for key in other.foreign_keys:
                if key.table in names and other not in (*self.sections, *owners):
                    columns = ", ".join(column.written for column in other.columns)
                    yield (
                        f"rows of {other.name} refer to {key.table}: are they {lists}? Then"
                        f" an item reads them, with rows: SELECT {columns} FROM"
                        f" {other.written}, and key: {', '.join(key.columns)}"
                    )


def _key_of(table: Table) -> tuple[str, str]:
    """Return the column that is the id of a row, and the question that it leaves."""
    if len(table.primary_key) == 1:
        return table.primary_key[0], ""
    if table.primary_key:
        columns = ", ".join(table.primary_key)
        question = f"the key is {columns}: make one text of them in the SELECT"
        return table.primary_key[0], question
    names = [column.name for column in table.columns]
    if unique := [name for name in names if table.is_unique(name)]:
        return unique[0], ""
    named_id = [name for name in names if name.lower() == "id"]
    question = "no key is declared: is this column different in each row?"
    return (named_id or names)[0], question


def _alias(table: Table, taken: Iterable[str]) -> str:
    """Return a short name for a table in a SELECT."""
    first = re.sub(r"[^a-z]", "", table.bare.lower())[:1] or "t"
    number = sum(re.fullmatch(rf"{first}\d*", name) is not None for name in taken)
    return f"{first}{number + 1}" if number else first


def _join(key: ForeignKey, table: Table, other: Table, alias: str, beside: str) -> str:
    condition = " AND ".join(
        f"{beside}.{other.by_name[referred].written}"
        f" = {alias}.{table.by_name[column].written}"
        for column, referred in zip(key.columns, key.referred, strict=True)
    )
    return f"LEFT JOIN {other.written} {beside} ON {condition}"


def _with_codes(
    column: Column,
    kind: ResourceType,
    counts: Sequence[CodeCount] | None,
    choices: Sequence[str] = (),
) -> Column:
    """Return a column with the codes that may be written into a file."""
    most = _MOST_PATIENT_CODES if kind is PATIENT else MOST_CODES
    if not choices and (counts is None or len(counts) > most):
        return column
    rows = {count.code: count.rows for count in counts or ()}
    codes = [CodeCount(choice, rows.pop(choice, 0)) for choice in choices]
    shared = [CodeCount(code, n) for code, n in rows.items() if n >= _FEWEST_ROWS]
    rare = len(rows) - len(shared)
    return replace(column, codes=(*codes, *shared), rare=rare)


_DEEPEST = 4
_FORMATS = (
    "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y",
    "%Y%m%d%H%M%S",
    "%Y%m%d",
)
"""Formats of times beside ISO 8601; one that fits every value is the column's."""

_READ = """\
read: {{path: "/{name}/{{id}}"}}  # ? the path of one row"""

_LIST = """\
list:
  path: /{name}  # ? the path of the list
  rows: {rows}
  total: {total}  # ? the number of all rows that match
  count: count  # ? the parameter of the page size
  # ? can it continue after the first rows? Then say how (paging: {{offset: …}}, page, next or
  #   token), and use the profile full
  # ? are cancelled or deleted rows left out by the API itself? What is it sent for that (fixed)?
# ? which parameters does it filter by? No answer says: ask the vendor (mappings/README.md, What
#   to ask the vendor). As an example:
# search:
#   _id: {{send: ids, several: comma}}"""

_SEARCHES: Mapping[ResourceType, str] = MappingProxyType(
    {
        STAY: "#   date: {from: from, before: before, step: day}",
        PATIENT: "#   name: {send: name}",
    }
)

_SOURCE_QUESTIONS = (
    "how does a client authenticate? By headers: {X-Api-Key: {env: PAS_KEY}}, or by auth",
    "does an error come with status 200? Then say by error where its code stands",
)


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """One answer: its rows by paths of fields, and where rows and total stand in it.

    `total` is "" where no number can be one. `lists` are the paths of lists in a row.
    """

    name: str
    rows_path: str
    total: str
    rows: tuple[Mapping[str, object], ...]
    lists: tuple[str, ...]


def read_answer(file: Path) -> SavedAnswer:
    """Return what stands in a file; raises CannotRunError where it is no list of rows."""
    try:
        answer = orjson.loads(file.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        raise CannotRunError(f"{file} cannot be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise CannotRunError(f"{file} is not JSON: is it the answer itself?") from error
    lists_by_path = {
        path: rows
        for path, rows in _lists(answer)
        if rows and all(isinstance(row, dict) for row in rows)
    }
    if not lists_by_path:
        text = f"{file} has no list of rows: save the answer of a search, not of one id"
        raise CannotRunError(text)
    path = max(lists_by_path, key=lambda path: len(lists_by_path[path]))
    rows = [dict(_flat(row)) for row in lists_by_path[path]]
    lists = tuple(
        sorted({name for row in lists_by_path[path] for name, _ in _lists(row)})
    )
    numbers = [
        name
        for name, value in (_flat(answer) if isinstance(answer, dict) else ())
        if type(value) is int and value >= len(rows)
    ]
    total = next(iter(numbers), "")
    return SavedAnswer(file.stem, path, total, _without_holders(rows, lists), lists)


def _lists(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield each list outside of other lists with its path, "." for the answer itself."""
    if isinstance(value, list):
        yield path or ".", value
    elif isinstance(value, dict) and depth < _DEEPEST:
        for key, below in value.items():
            yield from _lists(below, f"{path}.{key}".strip("."), depth + 1)


def _flat(row: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, object]]:
    """Yield each field of a row with its path; one with a dot in its name has none."""
    for key, value in row.items():
        if "." in key or isinstance(value, list):
            continue
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _without_holders(
    rows: Sequence[Mapping[str, object]], lists: Iterable[str]
) -> tuple[Mapping[str, object], ...]:
    """Return rows without the nulls that stand where other rows have an object or a list."""
    paths = {path for row in rows for path in row}
    holders = {path[:at] for path in paths for at, c in enumerate(path) if c == "."}
    holders |= set(lists)
    return tuple(
        {path: v for path, v in row.items() if v is not None or path not in holders}
        for row in rows
    )


def part_of_answer(kind: ResourceType, answer: SavedAnswer) -> Part:
    """Return the part of the list that an answer is of."""
    names = dict.fromkeys(name for row in answer.rows for name in row)
    columns = tuple(
        _answer_column(kind, name, [row.get(name) for row in answer.rows])
        for name in names
    )
    ids = [c.name for c in columns if c.name.lower() == "id"]
    unique = [c.name for c in columns if c.is_unique]
    id = next(iter(ids or unique), columns[0].name if columns else "id")
    question = "" if ids else "is this the id by which one row is read?"
    left = [
        f"{path} is a list: an item with rows: {path} reads it, or given where it is one of"
        " given names"
        for path in answer.lists
    ]
    head = [_READ.format(name=answer.name)]
    if kind is not ORGANIZATION:
        total = answer.total or "total"
        text = _LIST.format(name=answer.name, rows=answer.rows_path, total=total)
        head += [*text.split("\n"), _SEARCHES[kind]]
    return Part(kind, answer.name, tuple(head), columns, id, question, tuple(left))


def _answer_column(kind: ResourceType, name: str, cells: Sequence[object]) -> Column:
    values = [cell for cell in cells if cell not in (None, "")]
    texts = [str(value) for value in values]
    counts = Counter(texts)
    is_unique = len(texts) == len(cells) == len(counts)
    column = Column(name, name, Holds.TEXT, is_unique=is_unique)
    if values and all(isinstance(value, bool) for value in values):
        return replace(column, holds=Holds.FLAG)
    if values and all(type(value) is int for value in values):
        column = replace(column, holds=Holds.INTEGER)
    elif (time := _time_format(texts)) is not None:
        return replace(column, holds=time[0], format=time[1])
    is_short = all(len(text) <= LONGEST_CODE for text in counts)
    if is_unique or not is_short or len(counts) > MOST_CODES:
        return column
    codes = [CodeCount(code, rows) for code, rows in counts.most_common()]
    return _with_codes(column, kind, codes)


def _time_format(texts: Sequence[str]) -> tuple[Holds, str] | None:
    """Return what texts of times hold and their format, None where they are none."""
    # Digits alone are no ISO 8601 here: numbers are more common.
    is_iso = not all(text.isdigit() for text in texts)
    for form in (*([""] if is_iso else []), *_FORMATS):
        try:
            times = [
                datetime.strptime(text, form) if form else datetime.fromisoformat(text)  # noqa: DTZ007
                for text in texts
            ]
        except ValueError:
            continue
        if times and "%H" not in form and not any(":" in text for text in texts):
            return Holds.DATE, form
        if times:
            is_instant = all(time.tzinfo for time in times)
            return Holds.INSTANT if is_instant else Holds.LOCAL_TIME, form
    return None


_TEXTS = frozenset({Holds.TEXT, Holds.INTEGER})

_FITS: Mapping[Kind, Callable[[Column], bool]] = MappingProxyType(
    {
        Kind.ID: lambda column: column.holds in _TEXTS,
        Kind.EXACT: lambda column: column.holds in _TEXTS and not column.refers,
        Kind.TEXT: lambda column: column.holds is Holds.TEXT,
        Kind.CODE: lambda column: column.codes is not None,
        Kind.FLAG: lambda column: (
            column.codes is not None or column.holds is Holds.FLAG
        ),
        Kind.TIME: lambda column: column.holds in _TIMES,
        Kind.DATE: lambda column: column.holds in _TIMES,
    }
)
"""Which columns may fill a slot, by their types."""

_TIME_QUESTIONS: Mapping[Holds, str] = MappingProxyType(
    {
        Holds.DATE: "it holds days: at which time of day?",
        Holds.LOCAL_TIME: "by whose clock? A column in UTC needs time_zone: UTC",
    }
)


@dataclass(frozen=True, slots=True)
class Field:
    """A slot of a part: its column, or the names of the columns that may fill it."""

    slot: Slot
    column: Column | None
    candidates: Sequence[str]
    table: str
    """The code table that reads it, "" for none."""

    def lines(self) -> Iterator[str]:
        """Yield the field, or the question of what fills it."""
        name, column = self.slot.name, self.column
        options = {"from": _text(column.name) if column else "…"}
        if self.table:
            options["codes"] = self.table
        if column is None:
            fitting = ", ".join(self.candidates) or "none has a type that fits"
            yield from _comments([f"{name}: which column? {fitting}"])
            if self.candidates:
                yield f"# {name}: {_flow(options)}"
            return
        question = ""
        if column.format:
            options["format"] = json.dumps(column.format)
        if self.slot.kind is Kind.TIME:
            question = _TIME_QUESTIONS.get(column.holds, "")
            if column.holds is Holds.DATE:
                options["at"] = '"00:00"'
        yield from _line(f"{name}: {_flow(options)}", question)

    def code_table(self) -> Iterator[str]:
        """Yield the table: codes that are the slot's own words, the others as questions."""
        if self.column is None or not self.table:
            return
        words = self.slot.codes or ("true", "false")
        codes = self.column.codes or ()
        is_filled = any(count.code.lower() in words for count in codes)
        question = f"{self.column.origin}: what does each code mean?"
        yield f"{self.table}:  {MARK}{question}"
        yield "  table:" if is_filled else "  table: {}"
        for count in codes:
            rows = f"{count.rows} row{'' if count.rows == 1 else 's'}"
            if count.code.lower() in words:
                yield f"    {_text(count.code)}: {count.code.lower()}  # {rows}"
            else:
                yield f"    {MARK}{_text(count.code)}:  # {rows}; {', '.join(words)}"
        if self.column.rare:
            yield f"    {MARK}{_rare(self.column)}"


def with_fields(
    sections: Mapping[ResourceType, Sequence[Part]],
) -> dict[ResourceType, list[Part]]:
    """Return the sections with the fields of their parts."""
    keys = {kind: f"{parts[0].name}.{parts[0].id}" for kind, parts in sections.items()}
    return {
        kind: [replace(p, fields=tuple(_fields(p, keys))) for p in parts]
        for kind, parts in sections.items()
    }


def _fields(part: Part, keys: Mapping[ResourceType, str]) -> Iterator[Field]:
    for slot in dict.fromkeys(SLOTS[part.kind]):
        if slot.kind is Kind.SYSTEM:
            continue
        fitting = [column for column in part.columns if _FITS[slot.kind](column)]
        column = _column_of(part, slot, fitting, keys)
        is_flag = column is not None and column.holds is Holds.FLAG
        is_coded = slot.kind is Kind.CODE or (slot.kind is Kind.FLAG and not is_flag)
        table = re.sub(r"\W", "_", f"{slot.name}_{part.name}") if is_coded else ""
        yield Field(slot, column, [c.name for c in fitting], table)


def _column_of(
    part: Part, slot: Slot, fitting: Sequence[Column], keys: Mapping[ResourceType, str]
) -> Column | None:
    """Return the column of a slot: the key, the one that refers there, or its namesake."""
    if slot.name == "id":
        return next((c for c in part.columns if c.name == part.id), None)
    refers = keys.get(REFERS[slot.name]) if slot.name in REFERS else None
    leading = [column for column in part.columns if refers and column.refers == refers]
    if len(leading) == 1:
        return leading[0]
    return next((c for c in leading or fitting if c.name.lower() == slot.name), None)


_WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]*")

_HEAD = """\
# A first mapping, written from {source}.
# "# ?" marks what is open: answer it, take the "# " from a line that you need, and remove the
# mark. `encounters mapping check` says what is still missing. A line without a mark follows
# from names, types and keys. Counts are of values that at least {rows} rows share.
mapping: 1
name: My hospital  # ? the name that clients see
profile: {profile}  # ? full, group-a or group-b
time_zone: Europe/Paris  # ? the hospital's zone; times without a zone are read in it

constants:
  # ? the system of the visit numbers (urn:oid:…), and the address agreed with the clients
  visit_number_system: https://example.org/identifiers/visit
  functional_unit_extension: https://example.org/fhir/StructureDefinition/functional-unit

source:
  kind: {kind}
  url: {{env: {variable}}}"""

_LIST_EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "identifiers": "{type: PI, system: …, value: {from: …}}",
        "names": '{use: official, family: {from: …}, given: {from: …, split: " "}}',
        "telecoms": "{system: phone, value: {from: …}, use: work}",
        "addresses": "{use: work, lines: [{from: …}], city: {from: …}}",
    }
)


@dataclass(frozen=True, slots=True)
class Draft:
    """What a first mapping says: the parts of each section, and the tables left over."""

    variable: str
    sections: Mapping[ResourceType, Sequence[Part]]
    is_sql: bool = True
    unread: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the text of the file."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield _HEAD.format(
            source="the catalogue of the database" if self.is_sql else "saved answers",
            rows=_FEWEST_ROWS,
            profile="full" if self.is_sql else "group-a",
            kind="sql" if self.is_sql else "http",
            variable=self.variable,
        )
        if not self.is_sql:
            yield from _comments(_SOURCE_QUESTIONS, "  ")
        parts = [part for of in self.sections.values() for part in of]
        tables = [line for p in parts for f in p.fields for line in f.code_table()]
        if tables:
            yield from ("", "codes:", *_indented(tables, 2))
        yield from _unread_codes(parts)
        for kind, of in self.sections.items():
            yield from ("", f"{kind.lower()}:")
            yield from _indented(self._section(kind, of), 2)
        if self.unread:
            yield ""
            text = f"tables that nothing reads: {named(self.unread)}"
            yield from _comments([text], mark="# ")

    def _section(self, kind: ResourceType, parts: Sequence[Part]) -> Iterator[str]:
        if self.is_sql:
            yield from _offered(kind, parts)
        if len(parts) == 1:
            yield from _part(parts[0])
            return
        yield "sources:"
        for number, part in enumerate(parts, 1):
            name = re.sub(r"[^a-z]", "", part.name.lower())
            yield f"  - prefix: {name[:3]}{number}-"
            yield from _indented(_part(part), 4)


def _part(part: Part) -> Iterator[str]:
    yield from part.head
    yield "fields:"
    if part.id_question:
        yield from _comments([part.id_question], "  ")
    for each in part.fields:
        yield from _indented(each.lines(), 2)
    for listed in LISTS[part.kind]:
        yield f"  {MARK}{listed.name}: which columns?"
        yield f"  # {listed.name}:"
        yield f"  #   - {_LIST_EXAMPLES[listed.name]}"
    yield from _comments(part.left)


def _offered(kind: ResourceType, parts: Sequence[Part]) -> Iterator[str]:
    """Yield the parameters and orders that every part can answer."""
    slots = [{f.slot.name for f in part.fields if f.column} for part in parts]
    can = set.intersection(*slots)
    search = [n for n, row in SEARCH_PARAMETERS[kind].items() if can & {*row.slots}]
    sort = [name for name, slot in SORTS[kind].items() if slot in can and name != "_id"]
    yield f"search: [{', '.join(search)}]"
    if sort:
        yield f"sort: [{', '.join(sort)}]"


def _unread_codes(parts: Sequence[Part]) -> Iterator[str]:
    """Yield as comments the codes of columns that no field reads."""
    read = {field.column for part in parts for field in part.fields if field.table}
    columns = [c for part in parts for c in part.columns if c.codes and c not in read]
    if columns:
        yield from ("", "# codes of columns that no field reads, with their rows:")
    for column in dict.fromkeys(columns):
        codes = [f"{count.code}: {count.rows}" for count in column.codes or ()]
        codes += [_rare(column)] if column.rare else []
        yield from _comments([f"{column.origin}: {', '.join(codes)}"], mark="#   ")


def _rare(column: Column) -> str:
    return f"{column.rare} more that fewer than {_FEWEST_ROWS} rows have"


def named(names: Sequence[str]) -> str:
    """Return names in one text, the first sixty where there are more."""
    more = f" and {len(names) - 60} more" if len(names) > 60 else ""
    return ", ".join(names[:60]) + more


def _line(text: str, question: str) -> Iterator[str]:
    line = f"{text}  {MARK}{question}" if question else text
    if len(line) <= _WIDTH:
        yield line
    else:
        yield from (*_comments([question]), text)


def _comments(texts: Iterable[str], space: str = "", mark: str = MARK) -> Iterator[str]:
    """Yield texts as comments that begin with a mark, in lines that are not too long."""
    for text in texts:
        yield from textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=space + mark,
            subsequent_indent=space + "#".ljust(len(mark)),
            break_long_words=False,
            break_on_hyphens=False,
        )


def _wrapped(items: Sequence[str], start: str) -> list[str]:
    """Return items in lines that are not too long; none is broken at its blanks."""
    whole = ", ".join(item.replace(" ", "\0") for item in items)
    further = " " * len(start)
    lines = textwrap.wrap(
        whole,
        _WIDTH - 10,
        initial_indent=start,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]


def _indented(lines: Iterable[str], blanks: int) -> Iterator[str]:
    return (f"{' ' * blanks}{line}" for line in lines)


def _flow(options: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in options.items()) + "}"


def _text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def run(options: SimpleNamespace) -> int:
    """Read the structure of the source, write a first mapping, and say what is open."""
    if options.out is not None and options.out.exists():
        text = f"{options.out} exists already: name another file with --out"
        raise CannotRunError(text)
    if options.source.endswith(".json"):
        draft = _draft_of_answers(options)
        environ = {draft.variable: "http://127.0.0.1"}
        return _finish(options, draft, _problems(draft, environ))
    url, variable = _address(options.source)
    try:
        with closing(Database(url, _QUERY_SECONDS, 1)) as database:
            catalogue = read_catalogue(database, options.schema)
            draft = _draft_of_tables(options, database, catalogue, variable)
            may_write = database.may_write()
    except AddressError as error:
        text = f"--from is not an address like postgresql://host/database: {error}"
        raise CannotRunError(text) from error
    except AdapterError as error:
        raise CannotRunError(f"the catalogue cannot be read: {error}") from error
    problems = _problems(draft, {variable: url})
    return _finish(options, draft, problems, (MAY_WRITE,) if may_write else ())


def _address(source: str) -> tuple[str, str]:
    """Return the address of the database and the variable that the file names for it."""
    variable, url = _VARIABLE, source
    if source.startswith("env:"):
        variable = source.removeprefix("env:")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
            text = "--from env:NAME needs the name of an environment variable"
            raise CannotRunError(text)
        url = os.environ.get(variable, "")
        if not url:
            raise CannotRunError(f"the environment variable {variable} is not set")
    if re.match(r"https?:", url, re.IGNORECASE):
        raise CannotRunError(
            "an HTTP system has no catalogue: save an answer of its list of stays, and name"
            " that file (--from stays.json); mappings/guide.md shows the rest, under 'A"
            " hospital behind an HTTP API'"
        )
    return url, variable


def _draft_of_tables(
    options: SimpleNamespace, database: Database, catalogue: Catalogue, variable: str
) -> Draft:
    if not catalogue.tables:
        raise CannotRunError(
            "the account sees no table in the default schema; name another with --schema:"
            f" {named(catalogue.schemas)}"
        )
    tables = {
        kind: _tables(catalogue, kind, names)
        for kind, names in _options_by_kind(options)
    }
    if not tables[STAY]:
        raise CannotRunError(
            "no table is called stays: name the one or more that hold them with --stay. The"
            f" tables are: {named([table.name for table in catalogue.tables])}"
        )
    # Of patients the first table is theirs; others hold the same persons.
    persons = tables[PATIENT][1:]
    chosen = {kind: of if kind is STAY else of[:1] for kind, of in tables.items() if of}
    every = [table for of in chosen.values() for table in of]
    reader = _TableReader(database, catalogue, every)
    parts = {
        kind: [reader.part(kind, t, persons if kind is PATIENT else ()) for t in of]
        for kind, of in chosen.items()
    }
    selects = " ".join(
        line for of in parts.values() for part in of for line in part.head
    )
    read = set(re.findall(r"(?:FROM|JOIN) (\S+)", selects))
    unread = tuple(t.name for t in catalogue.tables if t.written not in read)
    return Draft(variable, with_fields(parts), unread=unread)


def _options_by_kind(
    options: SimpleNamespace,
) -> Iterator[tuple[ResourceType, Sequence[str]]]:
    values = (options.stay, options.patient, options.organization)
    yield from zip(ResourceType, values, strict=True)


def _tables(
    catalogue: Catalogue, kind: ResourceType, names: Sequence[str]
) -> list[Table]:
    """Return the tables of a type: those named, or else one with an obvious name."""
    by_name = {table.name.lower(): table for table in catalogue.tables}
    if not names:
        obvious = [by_name[name] for name in _TABLE_NAMES[kind] if name in by_name]
        return obvious[:1]
    tables = []
    for name in names:
        table = catalogue.by_name.get(name) or by_name.get(name.lower())
        if table is None:
            near = did_you_mean(name, catalogue.by_name)
            text = near or f"; there are: {named(list(catalogue.by_name))}"
            raise CannotRunError(f"there is no table '{name}'{text}")
        tables.append(table)
    return tables


def _draft_of_answers(options: SimpleNamespace) -> Draft:
    """Return the draft of a mapping of an HTTP API from answers that somebody saved."""
    named_files = dict(_options_by_kind(options)) | {STAY: (options.source,)}
    if options.stay or options.schema or any(len(n) > 1 for n in named_files.values()):
        raise CannotRunError(
            "saved answers are one file each: --from stays.json --patient patients.json"
        )
    parts = {
        kind: [part_of_answer(kind, read_answer(Path(names[0])))]
        for kind, names in named_files.items()
        if names
    }
    return Draft(_VARIABLE, with_fields(parts), is_sql=False)


def _problems(draft: Draft, environ: Mapping[str, str]) -> list[str]:
    """Return what keeps the file from being served as it is."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "new.yaml"
        file.write_text(draft.text(), encoding="utf-8")
        try:
            mapping = load_mapping(file, environ)
            # An account that may write is a warning of its own.
            source = replace(mapping.source, may_write=True)
            if draft.is_sql:
                with closing(open_adapter(replace(mapping, source=source))) as adapter:
                    texts = [problem.text for problem in adapter.check()]
                return [text.removeprefix(f"{file}:") for text in texts]
        except MappingError as error:
            return [f"{one.element}: {one.text}" for one in error.problems]
        except AdapterError as error:
            return [str(error)]
    return []


def _finish(
    options: SimpleNamespace,
    draft: Draft,
    problems: Sequence[str],
    warnings: Sequence[str] = (),
) -> int:
    """Hand the file over, and say on standard error what is open and what to do next."""
    text = draft.text()
    questions = [
        {
            "line": number,
            "text": line.partition(MARK)[2].strip(),
            "of": line.partition(MARK)[0].strip(),
        }
        for number, line in marked_lines(text)
    ]
    if options.out is not None:
        try:
            options.out.write_text(text, encoding="utf-8")
        except OSError as error:
            text = f"{options.out} cannot be written: {error.strerror}"
            raise CannotRunError(text) from error
    if options.json:
        file = {"file": str(options.out or ""), "mapping": text, "questions": questions}
        print_json(file | {"warnings": [*problems, *warnings]})
    elif options.out is None:
        print(text, end="")
    lines = [f"open: {problem}" for problem in problems]
    lines += [f"warning: {warning}" for warning in warnings]
    if PATIENT not in draft.sections:
        lines.append("there is no section of patients: name their table with --patient")
    lines.append(
        f"{options.out or 'the file'}: {len(questions)} questions are marked '# ?'"
    )
    if options.out is not None:
        lines.append(
            f"next: answer them, put the address of the source into {draft.variable}, and"
            f" run encounters mapping check {options.out}, then the same with --live"
        )
    print("\n".join(lines), file=sys.stderr)
    return FINE if PATIENT in draft.sections and not problems else FINDINGS
