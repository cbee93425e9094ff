"""The text of a first mapping file."""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from adapters.contract import ResourceType
from adapters.mapping.slots import LINES, SLOTS, Kind
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from adapters.sql.catalog import Holds
from app.cli.check import MARK
from app.cli.evidence import Field, Item, Part, Sections
from app.cli.tables import Column, Rows

_WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]*")

_HEAD = """\
# A first mapping, written from the catalogue of the database.
# "# ?" marks what is open: answer it, take the "# " from a line that you need, and remove the
# mark. What `rows` lacks must be added there. `encounters mapping check` says what is still
# missing. A line without a mark follows from names of slots, types and declared keys. Where a
# time is by the clock of UTC, its field needs time_zone: UTC.
mapping: 1
name: {name}  # ? the name that clients see
profile: full  # ? full, group-a or group-b
time_zone: Europe/Paris  # ? the hospital's zone; times without a zone are read in it

constants:
  # ? the system of the visit numbers (urn:oid:…), and the address agreed with the clients
  visit_number_system: https://example.org/identifiers/visit
  functional_unit_extension: https://example.org/fhir/StructureDefinition/functional-unit

source:
  kind: sql
  url: {{env: {variable}}}"""


def text_of(sections: Sections, variable: str, name: str) -> str:
    """Return the text of the file."""
    lines = [_HEAD.format(name=_text(name), variable=variable)]
    parts = chain.from_iterable(sections.values())
    fields = [field for part in parts for _, field in part.named_fields()]
    if tables := [line for field in fields for line in _code_table(field)]:
        lines += ["", "codes:", *_indented(tables, 2)]
    for kind, of in sections.items():
        lines += ["", f"{kind.lower()}:"]
        offered = _offered(kind, of)
        if len(of) == 1:
            lines += _indented([*_part(of[0]), *offered], 2)
            continue
        lines += _indented([*offered, "sources:"], 2)
        for number, part in enumerate(of, 1):
            prefix = re.sub(r"[^a-z]", "", part.rows.table.name.lower())[:3]
            entry = [
                f"prefix: {prefix}{number}-  {MARK}ids begin with it for ever",
                *_part(part),
            ]
            lines += _indented(_entry(entry), 4)
    return "\n".join(lines) + "\n"


def _part(part: Part) -> Iterator[str]:
    """Yield the keys of a section or source."""
    own = [i.fields for of in part.items.values() for i in of if i.rows is None]
    yield from _comments(part.rows.questions)
    yield from _select(part.rows, [*part.fields, *chain.from_iterable(own)])
    yield "fields:"
    yield from _indented(chain.from_iterable(map(_field, part.fields)), 2)
    for name, items in part.items.items():
        yield f"  {name}:" if items else f"  {MARK}{name}: which columns?"
        for item in items:
            yield from _indented(_entry([*_item(item)]), 4)


def _item(item: Item) -> Iterator[str]:
    if rows := item.rows:
        key = next(column for column in rows.columns if column.name == rows.id)
        yield from _select(rows, [Field(SLOTS[rows.kind][0], key), *item.fields])
        notes = filter(None, (f"rows of {rows.table.name}", rows.id_note))
        yield f"key: {_text(key.name)}  {MARK}{'; '.join((*notes, *rows.questions))}"
    yield from chain.from_iterable(map(_field, item.fields))


def _select(rows: Rows, fields: Sequence[Field]) -> Iterator[str]:
    """Yield `rows` with a SELECT of the columns of fields."""
    columns = [field.column for field in fields if field.column]
    joins = dict.fromkeys(column.join for column in columns if column.join)
    tables = filter(None, (rows.start, *joins, rows.where))
    # No line ends inside of a name.
    names = (column.selected.replace(" ", "\0") for column in columns)
    whole = ", ".join(dict.fromkeys(names)) or "*"
    lines = textwrap.wrap(whole, 80, break_long_words=False, break_on_hyphens=False)
    first, *others = (line.replace("\0", " ") for line in lines)
    yield from ("rows: |", f"  SELECT {first}")
    yield from _indented(others, 9)
    yield from _indented(tables, 2)


def _field(field: Field) -> Iterator[str]:
    """Yield the line of a field, or the question of what fills it."""
    name, mark = field.slot.name, f"  {MARK}{field.note}" if field.note else ""
    if field.constant:
        yield f"{name}: {_text(field.constant)}{mark}"
    elif field.column:
        value = _column(field, field.column)
        yield f"{name}: {f'[{value}]' if field.slot is LINES else value}{mark}"
    else:
        fitting = ", ".join(field.candidates) or "none has a type that fits"
        yield from _comments([f"{name}: which column? {fitting}"])
        yield f"# {name}: {_flow({'from': '…', 'codes': field.table})}"


def _column(field: Field, column: Column) -> str:
    is_day = column.holds is Holds.DATE and field.slot.kind is Kind.TIME
    return _flow(
        {
            "from": _text(column.name),
            "at": '"00:00"' if is_day else "",
            "absent": json.dumps(field.absent) if field.absent else "",
            "codes": field.table,
        }
    )


def _flow(options: dict[str, str]) -> str:
    pairs = (f"{key}: {value}" for key, value in options.items() if value)
    return f"{{{', '.join(pairs)}}}"


def _code_table(field: Field) -> Iterator[str]:
    """Yield the table: codes that are the slot's own words, the others as questions."""
    if field.column is None or not field.table:
        return
    words = {word.lower(): word for word in field.slot.takes}
    yield f"{field.table}:  {MARK}what does each code of {field.column.name} mean?"
    is_filled = any(count.code.lower() in words for count in field.codes)
    yield "  table:" if is_filled else "  table: {}"
    for count in field.codes:
        code, rows = _text(count.code), f"  # {count.rows} rows" if count.rows else ""
        if word := words.get(count.code.lower()):
            yield f"    {code}: {word}{rows}"
        else:
            yield f"    {MARK}{code}:{rows or '  #'}; {', '.join(words.values())}"
    if field.rare:
        yield f"    {MARK}{field.rare} more that too few rows have"


def _offered(kind: ResourceType, parts: Sequence[Part]) -> list[str]:
    """Return the parameters and orders that every part can answer."""
    slots = [{name for name, each in p.named_fields() if each.column} for p in parts]
    can = set.intersection(*slots)
    # Nothing says that a last change covers every joined table.
    rows = [row for row in SEARCH_PARAMETERS[kind].values() if can & {*row.slots}]
    search = [row.name for row in rows if row.slots != ("last_updated",)]
    sort = [name for name, slot in SORTS[kind].items() if slot in can and name != "_id"]
    lines = [f"search: [{', '.join(search)}]"]
    return [*lines, f"sort: [{', '.join(sort)}]"] if sort else lines


def _entry(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines as an entry of a list."""
    yield f"- {lines[0]}"
    yield from _indented(lines[1:], 2)


def _comments(texts: Iterable[str]) -> Iterator[str]:
    """Yield questions as comments, in lines that are not too long."""
    for text in texts:
        yield from textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=MARK,
            subsequent_indent="#".ljust(len(MARK)),
            break_long_words=False,
            break_on_hyphens=False,
        )


def _indented(lines: Iterable[str], blanks: int) -> Iterator[str]:
    return (f"{' ' * blanks}{line}" for line in lines)


def _text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
