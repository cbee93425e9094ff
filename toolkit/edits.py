"""Edits of the text of a mapping file: what a person chooses, at its line, comments kept.

The text is one that loads. A line number counts from 1.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import yaml

from adapters.mapping.slots import SLOTS
from app.console import CannotRunError
from toolkit.console import NO_COLUMN, QUESTION, yaml_text

_COLUMN = re.compile(r'(\bfrom:\s*)("[^"]*"|[^\s,\[\]{}]+)')
_BESIDE = re.compile(r"\s+#\s*(?!\?)(\S.*?)\s*")

_LISTED = re.compile(r"\A\n *# table: [^\n]*")

_CODED = frozenset(
    slot.name for slots in SLOTS.values() for slot in slots if slot.codes
)
"""The fields that read codes. A flag may be one already: it gets no table."""

Entries: TypeAlias = Sequence[tuple[Any, Any]]
"""Nodes of keys and values; PyYAML gives them no narrower type."""


def answer(text: str, line: int) -> str:
    """Return the text without the question of a line, and without the line if nothing is left."""
    lines = text.splitlines(keepends=True)
    before, mark, _ = lines[line - 1].partition(QUESTION.rstrip())
    if not mark:
        return text
    lines[line - 1] = f"{before.rstrip()}\n" if before.strip() else ""
    return "".join(lines)


def name_column(text: str, line: int, column: str) -> str:
    """Write the column that a field is read from, and remove the question of the line.

    A placeholder for it in the SELECT (`NULL AS open_…`) is removed. Raises CannotRunError for
    a line without a column.
    """
    lines = text.splitlines(keepends=True)
    field = lines[line - 1]
    match = _COLUMN.search(field)
    if match is None:
        raise CannotRunError(f"Line {line} names no single column: write it there.")
    start, end = match.span(2)
    lines[line - 1] = field[:start] + yaml_text(column) + field[end:]
    answered = answer("".join(lines), line)
    if match[2].startswith("open_"):
        return re.sub(rf",\s*NULL AS {match[2]}\b", "", answered)
    return answered


def add_field(text: str, line: int, slot: str, column: str) -> str:
    """Write a field above the line that lists those without a column, and remove it from these.

    A field of codes gets an empty code table.
    """
    lines = text.splitlines(keepends=True)
    indent, mark, listed = lines[line - 1].partition(NO_COLUMN)
    open_slots = [name for name in listed.strip().split(", ") if name != slot]
    lines[line - 1] = ""
    if open_slots:
        lines[line - 1] = f"{indent}{mark}{', '.join(open_slots)}\n"
    value = f"from: {yaml_text(column)}"
    if slot not in _CODED:
        lines.insert(line - 1, f"{indent}{slot}: {{{value}}}\n")
        return "".join(lines)
    names = [key.value for key, _ in _entries(_root(text), "codes")]
    name = slot if slot not in names else f"{slot}_{len(names)}"
    lines.insert(line - 1, f"{indent}{slot}: {{{value}, codes: {name}}}\n")
    table = f"  {name}:  {QUESTION}what does each code mean?\n    table: {{}}\n"
    if names:
        codes = next(n for n, above in enumerate(lines) if above.startswith("codes:"))
        lines.insert(codes + 1, table)
        return "".join(lines)
    return f"{''.join(lines).rstrip()}\n\ncodes:\n{table}"


def remarks(text: str, name: str) -> Mapping[str, str]:
    """Return the comments of a code table by code, where a code has a line of its own."""
    comments = {}
    for code, word in _entries(_root(text), "codes", name, "table"):
        if match := _BESIDE.fullmatch(_rest(text, word)):
            comments[code.value] = match[1]
    return comments


def write_codes(text: str, name: str, chosen: Mapping[str, str]) -> str:
    """Write the meanings of codes into a table; a code with the meaning "" loses its entry.

    Other entries and comments stay. The question of the table is removed once every code has a
    meaning. Raises CannotRunError for a table that is not in the text.
    """
    names = {key.value: (key, node) for key, node in _entries(_root(text), "codes")}
    key, holder = names.get(name, (None, None))
    tables = [(k, node) for k, node in _pairs(holder) if k.value == "table"]
    if key is None or not tables:
        raise CannotRunError(f"codes.{name} is not in this file: write it there.")
    ((table_key, table),) = tables
    entries = [*_pairs(table)]
    meanings = {
        code.value: chosen.get(code.value, word.value) for code, word in entries
    }
    new = {code: word for code, word in chosen.items() if code not in meanings and word}
    is_in_braces = holder.flow_style or (table.flow_style and entries)
    before, after = text[: table.start_mark.index], _after(text, table)
    if is_in_braces:
        written = before + _in_braces({**meanings, **new}) + after
    elif entries:
        written = _with_lines(text, entries, meanings, new)
    elif lines := _lines(new, table_key.start_mark.column + 2):
        # In a first mapping, the comment below lists the codes.
        written = before.rstrip(" ") + lines + _LISTED.sub("", after)
    else:
        written = f"{before.rstrip(' ')} {{}}{after}"
    if "" in chosen.values() or not chosen:
        return written
    return answer(written, key.start_mark.line + 1)


def _in_braces(meanings: Mapping[str, str]) -> str:
    """Return a table of codes on one line: `{A: finished, B: planned}`."""
    pairs = [f"{yaml_text(c)}: {yaml_text(w)}" for c, w in meanings.items() if w]
    return f"{{{', '.join(pairs)}}}"


def _with_lines(
    text: str, entries: Entries, words: Mapping[str, str], new: Mapping[str, str]
) -> str:
    """Return the text with changed, removed and added lines of a table in block style."""
    last = entries[-1][1]
    end = last.end_mark.index + len(_rest(text, last))
    written = text[:end] + _lines(new, entries[0][0].start_mark.column) + text[end:]
    # From the end, so that the places before stay right.
    for code, word in reversed(entries):
        start, end = word.start_mark.index, word.end_mark.index
        if not words[code.value]:
            start = written.rfind("\n", 0, code.start_mark.index) + 1
            end = written.find("\n", end) + 1 or len(written)
            written = written[:start] + written[end:]
        elif words[code.value] != word.value:
            written = written[:start] + yaml_text(words[code.value]) + written[end:]
    return written


def _lines(entries: Mapping[str, str], column: int) -> str:
    """Return a line for each entry, indented to a column; each begins with its line break."""
    indent = " " * column
    return "".join(
        f"\n{indent}{yaml_text(c)}: {yaml_text(w)}" for c, w in entries.items()
    )


def _root(text: str) -> Any:
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _entries(node: Any, *path: str) -> Entries:
    """Return the keys and values of a table at a path, none where there is no such table."""
    for step in path:
        below = [value for key, value in _pairs(node) if key.value == step]
        if not below:
            return []
        node = below[0]
    return [*_pairs(node)]


def _pairs(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the keys and values of a node, nothing if it is no mapping."""
    if isinstance(node, yaml.MappingNode):
        yield from node.value


def _after(text: str, node: yaml.Node) -> str:
    """Return all that follows a node in the text."""
    return text[node.end_mark.index :]


def _rest(text: str, node: yaml.Node) -> str:
    """Return what follows a node on its line."""
    return _after(text, node).partition("\n")[0]
