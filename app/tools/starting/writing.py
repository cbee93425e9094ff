"""A draft → the text of a mapping file, its guesses and open questions as comments."""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from adapters.contract import ResourceType
from adapters.mapping.parameters import PARAMETERS, SORTS
from app.tools.starting.codes import Entry
from app.tools.starting.draft import CodeTable, Draft, Item, Part, Value

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]*")
_WIDTH = 104
_MOST_NAMES = 60

_HEAD = """\
# A first mapping, written from {}. It can be loaded as it is.
# "# ?" marks a guess to look at or a question to answer: mend the line, then take the
# mark away. `encounters mapping check` says whether the file is still whole.
# A line without a mark is what a name or a count says plainly: read it all the same. What codes
# become is guessed, with one mark for a table, and one for each code that no habit knows."""

_FROM = {"sql": "the catalogue of the database", "http": "saved answers of the API"}


def written(draft: Draft) -> str:
    """Return the text of the file."""
    return "\n".join(_file(draft)) + "\n"


def _file(draft: Draft) -> Iterator[str]:
    yield _HEAD.format(_FROM[draft.kind])
    yield "mapping: 1"
    yield from _line("name", "My hospital", "the name that clients are shown")
    yield from _line(
        "profile", draft.profile, "what clients are offered: full, group-a or group-b"
    )
    zone = "the hospital's own zone; times without a zone are read in it"
    yield from _line("time_zone", "Europe/Paris", zone)
    if draft.systems:
        yield ""
        yield "constants:"
        for key, (value, question) in draft.systems.items():
            yield from _line(key, value, question, indent=2)
    yield ""
    yield "source:"
    yield f"  kind: {draft.kind}"
    yield f"  url: {{env: {draft.variable}}}"
    yield from comments(draft.source_questions, "  ", "# ? ")
    if draft.source_zone:
        question = "tables with create_uid and write_uid are of a system that keeps UTC"
        yield from _line("time_zone", draft.source_zone, question, indent=2)
    if draft.codes:
        yield ""
        yield "codes:"
    for name, table in draft.codes.items():
        yield from _codes(name, table)
    for kind, parts in draft.sections.items():
        yield ""
        yield from _section(kind, parts)
    if draft.notes:
        yield ""
        yield from comments(draft.notes, "", "# ")


def _codes(name: str, table: CodeTable) -> Iterator[str]:
    known = [entry for entry in table.entries if entry.made]
    if table.source and table.allowed and not all(map(_is_marked, known)):
        yield f"  {name}:  # ? {table.source}: do its codes mean that? It is guessed by habit"
    else:
        yield f"  {name}:  # {table.source}" if table.source else f"  {name}:"
    yield (
        "    table:"
        if known
        else "    table: {}  # ? empty, until somebody says what they mean"
    )
    for entry in table.entries:
        is_marked = not table.allowed or _is_marked(entry)
        yield f"      {_entry(entry, table.allowed, is_marked=is_marked)}"
    if table.otherwise:
        yield from _line(
            "otherwise", table.otherwise, "for codes not named above, and for none", 4
        )


def _is_marked(entry: Entry) -> bool:
    """Tell whether a code has a mark of its own beside that of its table."""
    return entry.is_open or entry.is_most


def _entry(entry: Entry, allowed: Sequence[str], *, is_marked: bool) -> str:
    code = _text(entry.code)
    rows = f"{entry.rows} row{'' if entry.rows == 1 else 's'}" if entry.rows else ""
    if not entry.made:
        told = f"{rows}, " if rows else ""
        return f"# ? {code}:".ljust(24) + f" # {told}which one: {', '.join(allowed)}"
    mark = "# ? " if is_marked else "# "
    if entry.is_open:
        rows += f", which one: {', '.join(allowed)}"
    line = f"{code}: {entry.made}"
    return line.ljust(24) + f" {mark}{rows}" if rows or is_marked else line


def _section(kind: ResourceType, parts: Sequence[Part]) -> Iterator[str]:
    yield f"{kind.lower()}:"
    if len(parts) == 1:
        yield from _part(parts[0], 2)
        if not parts[0].asked:
            yield from _words(kind, parts)
        yield from (f"  {line}" for line in parts[0].left)
        yield from _unread(parts[0], 2)
        return
    yield from _words(kind, parts)
    yield "  sources:"
    for part in parts:
        yield f"    - prefix: {part.prefix}"
        yield from _part(part, 6)
        yield from _unread(part, 6)


def _part(part: Part, indent: int) -> Iterator[str]:
    space = " " * indent
    yield from comments(part.told, space, "# ")
    yield from comments(part.questions, space, "# ? ")
    if part.asked:
        yield from (f"{space}{line}" for line in part.asked)
    else:
        yield from _rows(part.select.lines(), indent)
    yield f"{space}fields:"
    width = max(len(line.key) for line in part.lines) + 1
    for line in part.lines:
        if line.is_out:
            yield from comments([line.question], f"{space}  ", "# ? ")
            yield f"{space}  # {f'{line.key}:'.ljust(width)} {_flow(line.value)}"
        else:
            yield from _line(line.key, line.value, line.question, indent + 2, width)
    for name, items in part.lists.items():
        if items:
            yield f"{space}  {name}:"
            for item in items:
                yield from _item(item, indent + 4)


def _rows(lines: Iterable[str], indent: int, start: str = "") -> Iterator[str]:
    yield f"{' ' * indent}{start}rows: |"
    for line in lines:
        yield f"{' ' * (indent + len(start) + 2)}{line}"


def _item(item: Item, indent: int) -> Iterator[str]:
    space = " " * indent
    yield from comments([item.question] if item.question else [], space, "# ? ")
    if item.select is None:
        value = _flow({line.key: line.value for line in item.lines})
        yield from comments(
            [q for line in item.lines if (q := line.question)], space, "# ? "
        )
        if len(space) + len(value) <= _WIDTH:
            yield f"{space}- {value}"
            return
        for number, line in enumerate(item.lines):
            start = "- " if number == 0 else "  "
            yield f"{space}{start}{line.key}: {_flow(line.value)}"
        return
    if item.path:
        yield f"{space}- rows: {_text(item.path)}"
    else:
        yield from _rows(item.select.lines(), indent, "- ")
        yield f"{space}  key: {_text(item.key)}"
    for line in item.lines:
        yield from _line(line.key, line.value, line.question, indent + 2)


def _words(kind: ResourceType, parts: Sequence[Part]) -> Iterator[str]:
    search = [name for name, of in PARAMETERS[kind].items() if _all_can(parts, of)]
    sort = [
        name
        for name, slot in SORTS[kind].items()
        if name != "_id" and _all_can(parts, (slot,))
    ]
    yield f"  search: [{', '.join(search)}]"
    if sort:
        yield f"  sort: [{', '.join(sort)}]"


def _all_can(parts: Sequence[Part], wanted: Sequence[str]) -> bool:
    """Tell whether one of these slots can be compared, and no part has it otherwise."""
    can = any(slot in part.searchable for part in parts for slot in wanted)
    times = any(
        line.key in wanted
        and line.key not in part.searchable
        and isinstance(line.value, Mapping)
        for part in parts
        for line in part.lines
    )
    return can and not times


def _unread(part: Part, indent: int) -> Iterator[str]:
    yield from comments(part.undecided, " " * indent, "# ? ")
    yield from comments(part.unread, " " * indent, "# ")


def named(names: Sequence[str]) -> str:
    """Return names in one text, the first ones where there are many."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _line(
    key: str, value: Value, question: str, indent: int = 0, width: int = 0
) -> Iterator[str]:
    text = f"{' ' * indent}{f'{key}:'.ljust(width)} {_flow(value)}"
    if not question:
        yield text
    elif len(text) + len(question) + 6 <= _WIDTH:
        yield f"{text}  # ? {question}"
    else:
        yield from comments([question], " " * indent, "# ? ")
        yield text


def comments(texts: Iterable[str], space: str, mark: str) -> Iterator[str]:
    """Yield texts as comments, each begun with a mark, in lines that are not too long."""
    for text in texts:
        further = "#" + " " * (len(mark) - 1)
        yield from textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=space + mark,
            subsequent_indent=space + further,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _flow(value: Value) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return "{" + ", ".join(f"{key}: {_flow(of)}" for key, of in value.items()) + "}"


def _text(text: str) -> str:
    is_address = re.fullmatch(r"(https?:|urn:oid:)[\w./:-]+", text)
    plain = _PLAIN.fullmatch(text) or (is_address and not text.endswith(":"))
    return text if plain else json.dumps(text, ensure_ascii=False)
