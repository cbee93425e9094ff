"""What the text of a SELECT of a mapping shows, as far as patterns can tell.

Its tables, plain equalities of two columns (each with the name or alias of its table, or in a
SELECT of one table), the columns behind an expression, its JOINs and conditions one by one.
The rest of SQL is not read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from adapters.sql.dialects.base import Origin

_TEXT = re.compile(r"'(?:[^']|'')*'")
_UNREAD = re.compile(rf"{_TEXT.pattern}|--[^\n]*|/\*.*?\*/", re.DOTALL)
_NO_ALIAS = r"(?:ON|WHERE|JOIN|LEFT|RIGHT|INNER|CROSS|FULL|GROUP|ORDER|UNION|USING)\b"
_TABLE = re.compile(
    rf"\b(?:FROM|JOIN)\s+([\w.\"`]+)(?:\s+(?:AS\s+)?(?!{_NO_ALIAS})(\w+))?", re.I
)
_COLUMN = r"(?:(\w+)\.)?([A-Za-z_]\w*)"
_EQUAL = re.compile(rf"(?<![\w.]){_COLUMN}\s*=\s*{_COLUMN}\b(?!\s*[.(])")
_JOIN = re.compile(
    r"(?:\b(?P<kind>NATURAL|INNER|CROSS|LEFT|RIGHT|FULL)\s+)?(?:\bOUTER\s+)?\bJOIN\b",
    re.I,
)
_CLAUSE = re.compile(
    r"\b(?:FROM|WHERE|GROUP|HAVING|ORDER|UNION|LIMIT|OFFSET|FETCH)\b|\Z", re.I
)
_CHOICE = re.compile(r"['<>:]|=\s*[-\d]|\b(?:IS|IN|EXISTS)\b", re.I)
"""What in a join chooses rows by more than a column of each table."""
_WORD = re.compile(r"'[^']*'|\"[^\"]*\"|--.*|[(),]|\bFROM\b|\bUNION\b", re.I)
_TOGETHER = re.compile(
    r"\b(?:UNION|INTERSECT|EXCEPT|MINUS|DISTINCT|GROUP|HAVING|WITH)\b", re.I
)
"""What makes rows that are not those of a table."""


class _Table(NamedTuple):
    """A table that a SELECT names; `scope` are the parentheses that are open there."""

    alias: str
    name: str
    scope: tuple[int, ...]
    at: int


class Compared(NamedTuple):
    """A column that a SELECT compares, of a table that it names by an alias."""

    alias: str
    origin: Origin


class JoinComparison(NamedTuple):
    """Two columns that a SELECT compares: rows of `inner` are found for a row of `outer`.

    The inner table is the one of the inner SELECT, in one SELECT the later one. With
    `is_nested`, `outer` belongs to a SELECT around it.
    """

    inner: Compared
    outer: Compared
    is_nested: bool


def without_comments(rows: str) -> str:
    """Return a SELECT with blanks for its comments."""

    def kept(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith("'") else " " * len(match[0])

    return _UNREAD.sub(kept, rows)


def _bare(rows: str) -> str:
    """Return a SELECT with blanks for its texts and comments."""
    return _UNREAD.sub(lambda match: " " * len(match[0]), rows)


def _outermost(rows: str) -> str:
    """Return a SELECT with blanks also for what is in parentheses."""
    depth, signs = 0, list[str]()
    for sign in _bare(rows):
        if sign == ")":
            depth -= 1
        signs.append(" " if depth else sign)
        if sign == "(":
            depth += 1
    return "".join(signs)


def tables_of(rows: str) -> Mapping[str, str]:
    """Return the tables of a SELECT by alias, in the order in which it names them."""
    return {alias or name: name for name, alias in _TABLE.findall(rows)}


def comparisons(rows: str) -> Iterator[JoinComparison]:
    """Yield the comparisons of columns of two tables."""
    text = _bare(rows)
    tables = [
        _Table(
            match[2] or match[1],
            match[1],
            scope=_scope(text, match.start()),
            at=match.end(),
        )
        for match in _TABLE.finditer(text)
    ]
    for match in _EQUAL.finditer(text):
        scope = _scope(text, match.start())
        visible = [
            table for table in tables if scope[: len(table.scope)] == table.scope
        ]
        one, other = _owner(visible, match[1]), _owner(visible, match[3])
        if one is None or other is None or one == other:
            continue
        columns = {one: match[2], other: match[4]}
        outer, inner = sorted(columns, key=lambda table: (len(table.scope), table.at))
        yield JoinComparison(
            Compared(inner.alias, Origin(inner.name, columns[inner])),
            Compared(outer.alias, Origin(outer.name, columns[outer])),
            is_nested=inner.scope != outer.scope,
        )


def _scope(text: str, at: int) -> tuple[int, ...]:
    """Return where the parentheses stand that are open at a place."""
    opened: list[int] = []
    for match in re.finditer("[()]", text[:at]):
        if match[0] == "(":
            opened.append(match.start())
        elif opened:
            opened.pop()
    return tuple(opened)


def _owner(visible: Sequence[_Table], alias: str | None) -> _Table | None:
    """Return the table of a column: that of the alias, or the only one of its SELECT."""
    if alias:
        named = [table for table in visible if table.alias == alias]
        return max(named, key=lambda table: len(table.scope), default=None)
    depth = max((len(table.scope) for table in visible), default=0)
    innermost = [table for table in visible if len(table.scope) == depth]
    return innermost[0] if len(innermost) == 1 else None


def with_outer_joins(rows: str) -> str:
    """Return a SELECT with LEFT JOIN for each JOIN that compares columns alone."""
    bare = _outermost(rows)
    matches = [*_JOIN.finditer(bare), *_CLAUSE.finditer(bare)]
    matches.sort(key=lambda match: match.start())
    for match, after in reversed([*pairwise(matches)]):
        is_inner = match.re is _JOIN and (match["kind"] or "INNER").upper() == "INNER"
        if is_inner and not _CHOICE.search(rows, match.end(), after.start()):
            rows = f"{rows[: match.start()]}LEFT JOIN{rows[match.end() :]}"
    return rows


def between(rows: str, one: str, other: str) -> Iterator[Origin]:
    """Yield the columns by which rows are found from one column of a SELECT to another.

    In both directions: the two columns themselves, and both sides of each join on the way.
    """
    tables = tables_of(rows)
    ends = [_selected(rows, name) for name in (one, other)]
    if not all(end and end[0] in tables for end in ends):
        return
    (start, first), (goal, last) = (end for end in ends if end)
    yield Origin(tables[start], first)
    yield Origin(tables[goal], last)
    yield from _way(rows, start, goal)


def arguments_of(rows: str, start: int) -> list[str]:
    """Return the arguments of a call; `start` is behind its parenthesis."""
    arguments = []
    for word, depth, match in _words(rows, start):
        if depth < 0 or (word == "," and depth == 0):
            arguments.append(" ".join(rows[start : match.start()].split()))
            start = match.end()
        if depth < 0:
            break
    return arguments


def from_of(rows: str, start: int) -> str:
    """Return what follows FROM in the SELECT that a place of its list belongs to."""
    begin, lowest = None, 0
    for word, depth, match in _words(rows, start):
        is_over = depth < lowest or (depth == lowest and word == "UNION")
        if begin is not None and is_over:
            return rows[begin : match.start()]
        lowest = min(lowest, depth)
        if begin is None and word == "FROM" and depth == lowest:
            begin = match.end()
    return rows[begin:] if begin is not None else ""


_ARGUMENT = re.compile(
    r"[(,]\s*([A-Za-z_]\w*(?:\.\w+)?)\s*(?=[,)]|AS\b)|([A-Za-z_]\w*(?:\.\w+)?)\s*::",
    re.IGNORECASE,
)


def arguments_behind(rows: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the columns in calls and casts that make a column, and the tables of each."""
    for match in _ARGUMENT.finditer(rows, *_expression(rows, name)):
        tables = re.split(r"\bWHERE\b", from_of(rows, match.end()), flags=re.IGNORECASE)
        yield match[1] or match[2], tables[0]


def _expression(rows: str, name: str) -> tuple[int, int]:
    """Return where the expression of a renamed column begins and ends."""
    end = re.search(rf"\bAS\s+[\"`]?{re.escape(name)}\b", rows, re.IGNORECASE)
    begin, depth = 0, 0
    words = re.finditer(r"[(),]|\bSELECT\b", rows[: end.start()] if end else "", re.I)
    for match in reversed([*words]):
        depth += {")": 1, "(": -1}.get(match[0], 0)
        if depth < 0 or (depth == 0 and match[0] not in "()"):
            begin = match.end()
            break
    return begin, end.start() if end else 0


def table_behind(rows: str, name: str) -> str:
    """Return the table whose rows a computed id names.

    It is that of the arguments, else the first one of FROM; "" where rows are put together.
    """
    source = f"FROM {from_of(rows, 0)}"
    first = _TABLE.match(source)
    if first is None or _TOGETHER.search(_bare(rows)):
        return ""
    tables = tables_of(source)
    arguments = arguments_behind(rows, name)
    aliases = {argument.rpartition(".")[0] for argument, _ in arguments} & {*tables}
    alias = aliases.pop() if len(aliases) == 1 else first[2] or first[1]
    return tables[alias]


def _words(rows: str, start: int) -> Iterator[tuple[str, int, re.Match[str]]]:
    """Yield what divides a SELECT, with its depth in parentheses from a place on."""
    depth = 0
    for match in _WORD.finditer(rows, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        yield match[0].upper(), depth, match


def _selected(rows: str, name: str) -> tuple[str, str] | None:
    """Return the alias and the column of a plain column that is selected by a name."""
    column = re.escape(name)
    renamed = re.search(rf"\b(\w+)\.(\w+)\s+AS\s+{column}\b", rows, re.IGNORECASE)
    plain = re.search(rf"\b(\w+)\.({column})\s*(?:,|\bFROM\b)", rows, re.IGNORECASE)
    match = renamed or plain
    return (match[1], match[2]) if match else None


def _way(rows: str, start: str, goal: str) -> list[Origin]:
    """Return the columns of the joins that lead from one alias to another."""
    ways: dict[str, list[Origin]] = {start: []}
    ahead = [start]
    for alias in ahead:
        for inner, outer, _ in comparisons(rows):
            for here, there in ((inner, outer), (outer, inner)):
                if here.alias == alias and there.alias not in ways:
                    ways[there.alias] = [*ways[alias], here.origin, there.origin]
                    ahead.append(there.alias)
    return ways.get(goal, [])


def names_compared(rows: str) -> frozenset[str]:
    """Return the names of all columns that a SELECT compares with = to anything."""
    names = re.findall(r"\b([A-Za-z_]\w*)\s*=", rows)
    return frozenset(name.lower() for name in names)


class Step(NamedTuple):
    """A SELECT of one column that has a part of a larger SELECT, and what it adds to it."""

    select: str
    first_table: str
    added: str


def steps(rows: str, name: str, column: str) -> Iterator[Step]:
    """Yield SELECTs of a column that have more and more of a SELECT without comments.

    First its tables, one JOIN after the other, then its conditions. There are none where
    rows are put together (UNION, GROUP BY). `column` is the one behind a `*`.
    """
    bare = _outermost(rows)
    if _TOGETHER.search(bare):
        return
    marks = [*_CLAUSE.finditer(bare)]
    clauses = {mark[0].upper(): n for n, mark in reversed([*enumerate(marks)])}
    if "FROM" not in clauses:
        return
    start, end = marks[clauses["FROM"]].start(), marks[clauses["FROM"] + 1].start()
    joins = [match.start() for match in _JOIN.finditer(bare, start, end)]
    tables = [rows[one:two] for one, two in pairwise([start, *joins, end])]
    bares = [bare[one:two] for one, two in pairwise([start, *joins, end])]
    named = [match for match in map(_TABLE.search, bares) if match]
    if not named or len(named) < len(tables):
        return
    first, alias = named[0][1], named[0][2]
    expression = _item(rows[:start], bare[:start], name)
    expression = expression or f"{alias or first}.{column or name}"
    select, source = f"SELECT {expression} AS {name}", ""
    for table in tables:
        source += table
        yield Step(f"{select} {source}", first, " ".join(table.split()))
    if "WHERE" in clauses:
        mark = marks[clauses["WHERE"]]
        after = marks[clauses["WHERE"] + 1].start()
        conditions = ""
        for one in _conditions(rows[mark.end() : after], bare[mark.end() : after]):
            conditions += f" AND {one}" if conditions else one
            text = " ".join(("WHERE", *one.split()))
            yield Step(f"{select} {source} WHERE {conditions}", first, text)


def _item(head: str, bare: str, name: str) -> str:
    """Return what makes a column in the list of a SELECT, "" if it is one of a `*`."""
    begin = re.match(r"\s*SELECT\s+(?:ALL\s+|DISTINCT\s+)?", bare, re.I)
    start = begin.end() if begin else 0
    ends = [match.start() for match in re.finditer(",", bare[start:])]
    for one, two in pairwise([-1, *ends, len(bare) - start]):
        item = head[start + one + 1 : start + two].strip()
        renamed = re.fullmatch(
            rf"(.+?)\s+(?:AS\s+)?{re.escape(name)}", item, re.I | re.S
        )
        if renamed:
            return renamed[1]
        if re.fullmatch(rf"(?:\w+\.)*{re.escape(name)}", item, re.I):
            return item
    return ""


def _conditions(text: str, bare: str) -> list[str]:
    """Return the conditions that AND joins; one where OR or BETWEEN makes them one."""
    if re.search(r"\b(?:OR|BETWEEN)\b", bare, re.I):
        return [text.strip()]
    ends = [*re.finditer(r"\bAND\b", bare, re.I)]
    starts = [0, *(match.end() for match in ends)]
    stops = [*(match.start() for match in ends), len(text)]
    return [text[one:two].strip() for one, two in zip(starts, stops, strict=True)]
