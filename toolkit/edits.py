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
    """Remove the mark of a line and what stands behind it; a line without more goes."""
    lines = text.splitlines(keepends=True)
    before, mark, _ = lines[line - 1].partition(QUESTION.rstrip())
    lines[line - 1] = f"{before.rstrip()}\n" if mark and before.strip() else ""
    return "".join(lines) if mark else text


def name_column(text: str, line: int, column: str) -> str:
    """Write the column that a field is read from, and remove the mark of the line.

    A column that only waits in the SELECT for this answer (`NULL AS open_…`) goes.
    """
    lines = text.splitlines(keepends=True)
    match = _COLUMN.search(lines[line - 1])
    if match is None:
        raise CannotRunError(f"Line {line} names no single column: write it there.")
    start, end = match.span(2)
    lines[line - 1] = (
        f"{lines[line - 1][:start]}{yaml_text(column)}{lines[line - 1][end:]}"
    )
    answered = answer("".join(lines), line)
    if match[2].startswith("open_"):
        return re.sub(rf",\s*NULL AS {match[2]}\b", "", answered)
    return answered


def add_field(text: str, line: int, slot: str, column: str) -> str:
    """Write a field above the line that lists those without a column.

    A coded one gets an empty table of codes.
    """
    lines = text.splitlines(keepends=True)
    indent, mark, listed = lines[line - 1].partition(NO_COLUMN)
    left = [name for name in listed.strip().split(", ") if name != slot]
    lines[line - 1] = f"{indent}{mark}{', '.join(left)}\n" if left else ""
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
    """Return the comments behind codes of a table that have a line of their own."""
    beside = {
        code.value: _BESIDE.fullmatch(_rest(text, word))
        for code, word in _entries(_root(text), "codes", name, "table")
    }
    return {code: match[1] for code, match in beside.items() if match}


def write_codes(text: str, name: str, chosen: Mapping[str, str]) -> str:
    """Write what the codes of a table become; a code that becomes "" loses its entry.

    Entries that are not named stay, and so do comments. The mark of the table goes once
    every code has a meaning. Raises CannotRunError.
    """
    names = {key.value: (key, node) for key, node in _entries(_root(text), "codes")}
    key, holder = names.get(name, (None, None))
    tables = [(k, node) for k, node in _pairs(holder) if k.value == "table"]
    if key is None or not tables:
        raise CannotRunError(f"codes.{name} is not in this file: write it there.")
    ((table_key, table),) = tables
    entries = [*_pairs(table)]
    words = {code.value: chosen.get(code.value, word.value) for code, word in entries}
    new = {code: word for code, word in chosen.items() if code not in words and word}
    if holder.flow_style or (table.flow_style and entries):
        pairs = [
            f"{yaml_text(c)}: {yaml_text(w)}" for c, w in {**words, **new}.items() if w
        ]
        written = f"{{{', '.join(pairs)}}}"
        written = text[: table.start_mark.index] + written + _after(text, table)
    elif entries:
        written = _with_lines(text, entries, words, new)
    else:
        above = text[: table.start_mark.index].rstrip(" ")
        added = _lines(new, table_key.start_mark.column + 2)
        # A first mapping names the codes in a comment below.
        after = _LISTED.sub("", _after(text, table)) if added else _after(text, table)
        written = f"{above}{added or ' {}'}{after}"
    is_open = "" in chosen.values() or not chosen
    return written if is_open else answer(written, key.start_mark.line + 1)


def _with_lines(
    text: str, entries: Entries, words: Mapping[str, str], new: Mapping[str, str]
) -> str:
    """Change, remove and add lines of a table that has a line for each entry."""
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
    if isinstance(node, yaml.MappingNode):
        yield from node.value


def _after(text: str, node: yaml.Node) -> str:
    return text[node.end_mark.index :]


def _rest(text: str, node: yaml.Node) -> str:
    """Return what stands behind a value on its line."""
    return _after(text, node).partition("\n")[0]
