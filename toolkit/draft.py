"""The text of a first mapping file."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from adapters.contract import ResourceType
from adapters.mapping.slots import LINES, Kind
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from toolkit.catalogue import CodeCount, Holds, no_yes
from toolkit.checks.rows import rows_that
from toolkit.console import MARK
from toolkit.evidence import Field, Part
from toolkit.names import all_of, code_of
from toolkit.tables import Column, Rows

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
  visit_number_system: https://example.org/identifiers/visit  {m}urn:oid:…
  functional_unit_extension: https://example.org/fhir/StructureDefinition/functional-unit  {m}agreed

source:
  kind: sql
  url: {{env: {variable}}}"""


def text_of(
    sections: Mapping[ResourceType, Sequence[Part]], variable: str, name: str
) -> str:
    """Return the text of the file."""
    lines = [_HEAD.format(name=_text(name), variable=variable, m=MARK)]
    fields = [field for of in sections.values() for p in of for _, field in _all(p)]
    if tables := [line for field in fields for line in _code_table(field)]:
        lines += ["", "codes:", *_indented(tables, 2)]
    for kind, parts in sections.items():
        lines += ["", f"{kind.lower()}:", *_indented(_offered(kind, parts), 2)]
        if len(parts) == 1:
            lines += _indented(_part(parts[0]), 2)
            continue
        lines.append("  sources:")
        for number, part in enumerate(parts, 1):
            table = part.rows.table.name.lower() if part.rows else ""
            prefix = f"{re.sub(r'[^a-z]', '', table)[:3]}{number}-"
            entry = f"prefix: {prefix}  {MARK}ids begin with it for ever"
            lines += _entry([entry, *_part(part)], 4)
    return "\n".join(lines) + "\n"


def _all(part: Part) -> Iterator[tuple[str, Field]]:
    """Yield each field with its name, as search parameters have it."""
    yield from ((field.slot.name, field) for field in part.fields)
    for name, items in part.items.items():
        yield from ((f"{name}.{f.slot.name}", f) for item in items for f in item.fields)


def _part(part: Part) -> Iterator[str]:
    """Yield the keys of a section or source."""
    if rows := part.rows:
        own = [item for of in part.items.values() for item in of if not item.rows]
        fields = [*part.fields, *(field for item in own for field in item.fields)]
        yield from (f"{MARK}{question}" for question in rows.questions)
        yield from _select(rows, _columns(fields))
    yield "fields:"
    yield from _indented((line for field in part.fields for line in _field(field)), 2)
    for name, items in part.items.items():
        yield f"  {name}:" if items else f"  {MARK}{name}: which columns?"
        for item in items:
            yield from _entry([*_item(item)], 4)


def _item(item: Part) -> Iterator[str]:
    if rows := item.rows:
        key = next(column for column in rows.columns if column.name == rows.id)
        yield from _select(rows, [key, *_columns(item.fields)])
        notes = filter(None, (f"rows of {rows.table.name}", rows.id_note))
        yield f"key: {_text(key.name)}  {MARK}{'; '.join((*notes, *rows.questions))}"
    yield from (line for field in item.fields for line in _field(field))


def _columns(fields: Iterable[Field]) -> list[Column]:
    return [column for f in fields if f.column for column in (f.column, *f.more)]


def _select(rows: Rows, columns: Sequence[Column]) -> Iterator[str]:
    """Yield `rows` with a SELECT, a line for each column."""
    listed = dict.fromkeys(column.selected for column in columns) or ["*"]
    joins = dict.fromkeys(join for column in columns for join in column.join)
    select = ",\n       ".join(listed).splitlines()
    yield from ("rows: |", f"  SELECT {select[0]}")
    yield from _indented(filter(None, (*select[1:], rows.start, *joins, rows.where)), 2)


def _field(field: Field) -> Iterator[str]:
    """Yield the line of a field, or the question of what fills it."""
    name, mark = field.slot.name, f"  {MARK}{field.note}" if field.note else ""
    options = {"from": "…", "codes": field.table}
    if field.constant:
        yield f"{name}: {_text(field.constant)}{mark}"
    elif column := field.column:
        is_day = column.holds is Holds.DATE and field.slot.kind is Kind.TIME
        # A stay of one day does not end before it starts.
        time = "23:59" if field.slot.name == "end" else "00:00"
        options["from"] = _text(column.name)
        options["at"] = f'"{time}"' if is_day else ""
        options["format"] = json.dumps(column.format) if column.format else ""
        options["time_zone"] = "UTC" if column.format.endswith("Z") else ""
        options["absent"] = json.dumps(field.absent) if field.absent else ""
        value = _flow(options)
        if field.slot is LINES:
            lines = [value, *(f"{{from: {_text(c.name)}}}" for c in field.more)]
            value = f"[{', '.join(lines)}]"
        yield f"{name}: {value}{mark}"
    else:
        fitting = ", ".join(field.candidates) or "none has a type that fits"
        yield f"{MARK}{name}: which column? {fitting}"
        yield f"# {name}: {_flow(options)}"


def _flow(options: Mapping[str, str]) -> str:
    pairs = (f"{key}: {value}" for key, value in options.items() if value)
    return f"{{{', '.join(pairs)}}}"


def _code_table(field: Field) -> Iterator[str]:
    """Yield the table: codes that are the slot's own words, the others as questions."""
    if field.column is None or not field.table:
        return
    words = {word.lower(): word for word in field.slot.takes}
    yield f"{field.table}:  {MARK}what does each code of {field.column.name} mean?"
    is_deleted = "deleted" in all_of(field.column.words)
    own = {} if is_deleted else words
    said = [own.get(c.code.lower()) or _guess(field, c) for c in field.codes]
    yield "  table:" if any(said) else "  table: {}"
    for count, word in zip(field.codes, said, strict=True):
        code, rows = _text(count.code), rows_that(count.rows)
        about = f"{' '.join(count.label.split())}; {rows}" if count.label else rows
        if word:
            mark = "  # " if count.code.lower() in own else f"  {MARK}"
            yield f"    {code}: {word}{f'{mark}{about}' if count.rows else ''}"
        else:
            yield f"    {MARK}{code}:  # {about}; {', '.join(words.values())}"
    if field.rare:
        yield f"    {MARK}{field.rare} more that too few rows have"


def _guess(field: Field, count: CodeCount) -> str:
    """Return the code that the words of a code or of its label stand for, if any."""
    codes = no_yes(field.codes)
    if field.slot.kind is Kind.FLAG and field.column and codes:
        is_deleted = "deleted" in all_of(field.column.words)
        return str((count.code == codes[1]) is not is_deleted).lower()
    return code_of(field.slot.name, count.label or count.code)


def _offered(kind: ResourceType, parts: Sequence[Part]) -> Iterator[str]:
    """Yield the parameters and orders that every part can answer."""
    filled = [{name for name, field in _all(part) if field.column} for part in parts]
    can = set.intersection(*filled)
    # Nothing says that a last change covers every joined table.
    rows = [row for row in SEARCH_PARAMETERS[kind].values() if can & {*row.slots}]
    search = [row.name for row in rows if row.slots != ("last_updated",)]
    yield f"search: [{', '.join(search)}]"
    sort = [name for name, slot in SORTS[kind].items() if slot in can and name != "_id"]
    yield from [f"sort: [{', '.join(sort)}]"] if sort else []


def _entry(lines: Sequence[str], blanks: int) -> Iterator[str]:
    """Yield lines as an entry of a list."""
    yield f"{' ' * blanks}- {lines[0]}"
    yield from _indented(lines[1:], blanks + 2)


def _indented(lines: Iterable[str], blanks: int) -> Iterator[str]:
    return (f"{' ' * blanks}{line}" for line in lines)


def _text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
