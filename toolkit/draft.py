"""The text of a first mapping file of a database."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from adapters.contract import ResourceType
from adapters.mapping.slots import LISTS, SlotKind
from adapters.parameters import SEARCH_PARAMETERS, SORTS
from toolkit.catalogue import Holds, is_unique
from toolkit.console import NO_COLUMN, QUESTION, yaml_text
from toolkit.contents import MOST_ROWS
from toolkit.draft_sections import DraftSection, Field, SelectedColumn

_WIDTH = 100
_MOST_SHOWN = 20

_HEAD = """\
# A first mapping, written from the catalogue of the database.
# Only declared keys, primary keys and columns with the name of a slot fill slots. Each other column
# is a comment "# …: {{from: column}}": write a slot in place of "…" and remove the "# " before it.
# Behind a column are its type, its key and counts: rows with NULL or an empty text (''), codes,
# days before 1800 or after 2199; "3 more" are values that are not named, also those of few rows.
# "# ?" marks what is open: answer it, and remove the mark. `encounters mapping check` counts the
# marks; with --live it checks the columns and rows. docs/bring/keys.md explains each key.
mapping: 1
name: My hospital  # ? the name that clients see
profile: full  # ? full, group-a or group-b
time_zone: Europe/Paris  # ? the hospital's zone; times without a zone are read in it

constants:
  visit_number_system: https://example.org/identifiers/visit  {mark}urn:oid:…
  functional_unit_extension: https://example.org/fhir/StructureDefinition/functional-unit  {mark}…

source:
  kind: sql
  url: {{env: {variable}}}"""

_ITEMS = {
    "identifiers": '[{type: PI, system: "urn:oid:…", value: {from: …}}]',
    "names": "[{family: {from: …}, given: {from: …}}]",
    "telecoms": "[{system: phone, value: {from: …}}]",
    "addresses": "[{lines: [{from: …}], postal_code: {from: …}, city: {from: …}}]",
}
"""What an item of a list looks like, as a comment."""


def text_of(
    sections: Sequence[DraftSection], rows: Mapping[str, int | None], variable: str
) -> str:
    """Return the text of the file.

    `rows` are the numbers of rows by table, `variable` is that of the address of the source.
    """
    lines = [_HEAD.format(mark=QUESTION, variable=variable)]
    if tables := [line for section in sections for line in _code_tables(section)]:
        lines += ["", "codes:", *_indented(tables, 2)]
    for kind in ResourceType:
        parts = [section for section in sections if section.kind is kind]
        if not parts:
            continue
        question = ""
        if kind is ResourceType.ORGANIZATION and "name" in parts[0].open:
            question = f"  {QUESTION}it needs a name or an identifier"
        lines += ["", f"{kind.lower()}:{question}"]
        lines += _indented(_offered(kind, parts), 2)
        if len(parts) == 1:
            lines += _indented(_keys(parts[0], rows), 2)
            continue
        lines.append("  sources:")
        for number, part in enumerate(parts, 1):
            letters = re.sub(r"[^a-z]", "", part.table.name.lower())[:3]
            prefix = f"prefix: {letters}{number}-  {QUESTION}ids begin with it; never change it"
            lines += _entry([prefix, *_keys(part, rows)], 4)
    return "\n".join(lines) + "\n"


def _offered(kind: ResourceType, parts: Sequence[DraftSection]) -> Iterator[str]:
    """Yield the lines of the search parameters and orders that every part can answer."""
    filled = [{f.slot.name for f in part.fields if f.column} for part in parts]
    slots = set.intersection(*filled)
    search = []
    for row in SEARCH_PARAMETERS[kind].values():
        # A search by last_updated needs a column that covers all joined tables, and no
        # catalogue shows that.
        if slots & set(row.slots) and row.slots != ("last_updated",):
            search.append(row.name)
    if search:
        yield f"search: [{', '.join(search)}]"
    sorts = [k for k, slot in SORTS[kind].items() if slot in slots and k != "_id"]
    if sorts:
        yield f"sort: [{', '.join(sorts)}]"


def _keys(section: DraftSection, rows: Mapping[str, int | None]) -> Iterator[str]:
    """Yield the lines of a section or source: its SELECT, its fields, and comments."""
    yield "rows: |"
    yield from _indented(_select(section), 2)
    yield "fields:"
    yield from _indented((_field(section, field) for field in section.fields), 2)
    yield from _indented(_comments(section, rows), 2)


def _select(section: DraftSection) -> Iterator[str]:
    """Yield the lines of the SELECT: all columns of the table, and NULL for open slots."""
    line = f"SELECT {section.alias}.*"
    for field in section.fields:
        if field.column is not None:
            continue
        text = f"NULL AS {_open(field)}"
        line += ","
        if len(line) + len(text) >= _WIDTH:
            yield line
            line = "      "
        line += f" {text}"
    yield line
    yield f"FROM {section.written} {section.alias}"


def _open(field: Field) -> str:
    """Return what the SELECT calls the column that a required slot waits for."""
    return f"open_{field.slot.name}"


def _comments(section: DraftSection, rows: Mapping[str, int | None]) -> Iterator[str]:
    """Yield as comments: the lists, the slots without a column, the columns without a slot."""
    for listed in LISTS[section.kind]:
        yield f"# {listed.name}: {_ITEMS[listed.name]}"
    if section.open:
        yield f"{NO_COLUMN}{', '.join(section.open)}"
    used = [field.column for field in section.fields]
    table = section.table
    yield f"# columns of {table.key}, {_number(rows[table.key])}:"
    for column in section.columns:
        if column not in used:
            line = f"# …: {{from: {yaml_text(column.source.name)}}}"
            yield f"{line:<40}  # {_facts(column)}"


def _field(section: DraftSection, field: Field) -> str:
    """Return the line of a slot, with its questions and what is known of its column."""
    slot, column = field.slot, field.column
    options = {"from": yaml_text(column.source.name) if column else _open(field)}
    if _has_codes(field):
        options["codes"] = _table_name(section, field)
    if column and slot.kind is SlotKind.TIME and column.holds is Holds.DATE:
        # The end of the day, so that a stay of one day does not end before it starts.
        options["at"] = '"23:59"' if slot.name == "end" else '"00:00"'
    value = ", ".join(f"{key}: {text}" for key, text in options.items())
    line = f"{slot.name}: {{{value}}}"
    facts = _facts(column) if column else ""
    if field.questions:
        remarks = "; ".join(filter(None, (*field.questions, facts)))
        return f"{line}  {QUESTION}{_comment(remarks)}"
    return f"{line}  # {facts}"


def _has_codes(field: Field) -> bool:
    """Whether a field needs a code table: not where a column of true and false fills it."""
    is_flag = field.column is not None and field.column.holds is Holds.FLAG
    return bool(field.slot.takes) and not is_flag


def _table_name(section: DraftSection, field: Field) -> str:
    """Return the name of the code table of a field."""
    return re.sub(r"\W", "_", f"{field.slot.name}_{section.table.name}")


def _code_tables(section: DraftSection) -> Iterator[str]:
    """Yield the code tables of filled slots; what each code means is a question."""
    for field in filter(_has_codes, section.fields):
        column = field.column
        codes = [yaml_text(c.text) for c in column.contents.codes] if column else []
        entries = ", ".join(f"{code}: …" for code in codes or ["…"])
        yield f"{_table_name(section, field)}:  {QUESTION}what does each code mean?"
        yield "  table: {}"
        yield f"  # table: {{{_comment(entries)}}}  # {', '.join(field.slot.takes)}"


def _facts(column: SelectedColumn) -> str:
    """Return what the catalogue and counts say of a column."""
    contents, table = column.contents, column.source.table
    facts = [column.type]
    if column.source.primary_key:
        is_whole = len(table.primary_key) == 1
        facts.append("primary key" if is_whole else "part of the primary key")
    elif is_unique(table, column.source.name):
        facts.append("unique")
    if column.refers:
        facts.append(f"key of {column.refers}")
    if contents.nulls:
        facts.append(f"NULL ({contents.nulls:,})")
    if contents.blanks:
        facts.append(f"'' ({contents.blanks:,})")
    values = [*contents.codes, *contents.far]
    if any(" " in code.text for code in contents.codes):
        # A text with a blank may be a name: none is shown.
        facts.append(f"{contents.different} different texts")
    elif values or contents.rare:
        texts = [f"{yaml_text(v.text)} ({v.rows:,})" for v in values[:_MOST_SHOWN]]
        hidden = len(values[_MOST_SHOWN:]) + contents.rare
        if hidden:
            texts.append(f"{hidden} more")
        facts.append(", ".join(texts))
    return _comment("; ".join(facts))


def _number(rows: int | None) -> str:
    """Return a number of rows in words; None is one that was not counted in time."""
    if rows is None:
        return "whose rows were not counted in time"
    if rows > MOST_ROWS:
        return f"more than {MOST_ROWS:,} rows (counts are of the newest {MOST_ROWS:,})"
    return f"{rows:,} rows"


def _entry(lines: Sequence[str], blanks: int) -> Iterator[str]:
    """Yield lines as an entry of a list."""
    yield f"{' ' * blanks}- {lines[0]}"
    yield from _indented(lines[1:], blanks + 2)


def _indented(lines: Iterable[str], blanks: int) -> Iterator[str]:
    return (f"{' ' * blanks}{line}" for line in lines)


def _comment(text: str) -> str:
    """Return a text without line breaks of any kind: a comment ends at them."""
    return " ".join(text.split())
