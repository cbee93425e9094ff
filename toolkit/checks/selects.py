"""What the text of a SELECT of a mapping shows, as far as patterns can tell.

Its tables, plain equalities of two columns (each with the name or alias of its table, or in a
SELECT of one table), the columns behind an expression, its JOINs and conditions one by one.
The rest of SQL is not read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from adapters.sql.dialects.base import ColumnOrigin

_UNREAD = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
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
_TOGETHER = re.compile(r"\b(?:UNION|INTERSECT|EXCEPT|MINUS|GROUP|HAVING)\b", re.I)
"""What puts rows together that are not those of a table."""
_ARGUMENT = re.compile(
    r"[(,]\s*([A-Za-z_]\w*(?:\.\w+)?)\s*(?=[,)]|AS\b)|([A-Za-z_]\w*(?:\.\w+)?)\s*::",
    re.I,
)
_FROM, _UNION = re.compile(r"\bFROM\b", re.I), re.compile(r"\bUNION\b", re.I)
_COMMA, _BEFORE_ITEM = re.compile(","), re.compile(r",|\bSELECT\b", re.I)

Nesting: TypeAlias = tuple[int, ...]
"""Where the parentheses begin that are open at a place."""


class _Select:
    """The text of a SELECT; `bare` has blanks for its texts and comments.

    `scopes` has the scope of each place, and of the end.
    """

    def __init__(self, rows: str) -> None:
        self.rows = rows
        self.bare = _UNREAD.sub(lambda match: " " * len(match[0]), rows)
        self.scopes = list[Nesting]()
        opened: Nesting = ()
        for at, sign in enumerate(f"{self.bare} "):
            if sign == ")":
                opened = opened[:-1]
            self.scopes.append(opened)
            if sign == "(":
                opened = (*opened, at)

    def find(
        self, pattern: re.Pattern[str], scope: Nesting, start: int = 0
    ) -> Iterator[re.Match[str]]:
        """Yield the matches of a pattern that stand in a scope itself."""
        matches = pattern.finditer(self.bare, start)
        return (match for match in matches if self.scopes[match.start()] == scope)

    def end_of_scope(self, start: int) -> int:
        """Return where the parentheses around a place end."""
        size = len(scope := self.scopes[start])
        places = range(start, len(self.rows))
        return next((n for n in places if self.scopes[n][:size] != scope), places.stop)

    def arguments(self, start: int) -> list[str]:
        """Return the arguments of a call; `start` is behind its parenthesis."""
        commas = self.find(_COMMA, self.scopes[start], start)
        ends = [start - 1, *(c.start() for c in commas), self.end_of_scope(start)]
        return [" ".join(self.rows[a + 1 : b].split()) for a, b in pairwise(ends)]

    def source(self, start: int) -> str:
        """Return what follows FROM in the SELECT whose list a place belongs to."""
        for match in _FROM.finditer(self.bare, start):
            scope = self.scopes[match.start()]
            if scope == self.scopes[start][: len(scope)]:
                unions = self.find(_UNION, scope, match.end())
                ends = [union.start() for union in unions]
                end = min(self.end_of_scope(match.end()), *ends[:1], len(self.rows))
                return self.rows[match.end() : end]
        return ""

    def expression(self, name: str) -> tuple[int, int]:
        """Return where the expression of a renamed column begins and ends."""
        renamed = re.search(rf"\bAS\s+[\"`]?{re.escape(name)}\b", self.rows, re.I)
        if renamed is None:
            return 0, 0
        end = renamed.start()
        scope = self.scopes[end]
        # It begins where its parentheses do, or behind the last comma or word before it.
        start = scope[-1] + 1 if scope else 0
        for before in self.find(_BEFORE_ITEM, scope):
            if before.end() <= end:
                start = before.end()
        return start, end

    def item(self, name: str, end: int) -> str:
        """Return what makes a column in the list that ends there, "" if it is one of a `*`."""
        begin = re.match(r"\s*SELECT\s+(?:ALL\s+|DISTINCT\s+)?", self.bare, re.I)
        start = begin.end() if begin else 0
        commas = [c.start() for c in self.find(_COMMA, (), start) if c.start() < end]
        column = re.escape(name)
        pattern = rf"(.+?)\s+(?:AS\s+)?{column}|(?:\w+\.)*{column}"
        for before, after in pairwise([start - 1, *commas, end]):
            text = self.rows[before + 1 : after].strip()
            if match := re.fullmatch(pattern, text, re.I | re.S):
                return match[1] or text
        return ""


class _Table(NamedTuple):
    """A table that a SELECT names; `scope` are the parentheses that are open there."""

    alias: str
    name: str
    scope: Nesting
    at: int


class JoinComparison(NamedTuple):
    """Two columns that a SELECT compares: rows of `inner` are found for a row of `outer`.

    The inner table is the one of the inner SELECT, in one SELECT the later one.
    """

    inner: ColumnOrigin
    outer: ColumnOrigin


def without_comments(rows: str) -> str:
    """Return a SELECT with blanks for its comments."""

    def kept(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith("'") else " " * len(match[0])

    return _UNREAD.sub(kept, rows)


def tables_of(rows: str) -> Mapping[str, str]:
    """Return the tables of a SELECT by alias, in the order in which it names them."""
    return {alias or name: name for name, alias in _TABLE.findall(rows)}


def plain_columns(rows: str, names: Iterable[str]) -> Mapping[str, ColumnOrigin]:
    """Return the tables of those columns of a SELECT that it selects as they are."""
    select = _Select(without_comments(rows))
    marks = [*select.find(_CLAUSE, ())]
    if marks[0][0].upper() != "FROM" or any(select.find(_TOGETHER, ())):
        return {}
    start, end = (mark.start() for mark in marks[:2])
    named = [m for m in select.find(_TABLE, (), start) if m.start() < end]
    tables = {match[2] or match[1]: match[1] for match in named}
    # A second table, or a subquery, may have columns of any name.
    source = select.bare[start:end]
    is_alone = len(tables) == 1 and not re.search(r"\bJOIN\b|[(,]", source, re.I)
    only = next(iter(tables)) if is_alone else ""
    stars = re.findall(r"(?:(\w+)\.)?\*", select.bare[:start])
    origins = {}
    for name in names:
        item = select.item(name, start)
        if not item and len(stars) == 1:
            item = f"{stars[0]}.{name}" if stars[0] else name
        match = re.fullmatch(_COLUMN, item)
        if match and (match[1] or only) in tables:
            origins[name] = ColumnOrigin(tables[match[1] or only], match[2])
    return origins


def comparisons(rows: str) -> Iterator[JoinComparison]:
    """Yield the comparisons of columns of two tables."""
    select = _Select(rows)
    tables = [
        _Table(
            match[2] or match[1],
            match[1],
            scope=select.scopes[match.start()],
            at=match.end(),
        )
        for match in _TABLE.finditer(select.bare)
    ]
    for match in _EQUAL.finditer(select.bare):
        scope = select.scopes[match.start()]
        visible = [
            table for table in tables if scope[: len(table.scope)] == table.scope
        ]
        one, other = _owner(visible, match[1]), _owner(visible, match[3])
        if one is None or other is None or one == other:
            continue
        columns = {one: match[2], other: match[4]}
        outer, inner = sorted(columns, key=lambda table: (len(table.scope), table.at))
        yield JoinComparison(
            ColumnOrigin(inner.name, columns[inner]),
            ColumnOrigin(outer.name, columns[outer]),
        )


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
    select = _Select(rows)
    matches = [*select.find(_JOIN, ()), *select.find(_CLAUSE, ())]
    matches.sort(key=lambda match: match.start())
    for match, after in reversed([*pairwise(matches)]):
        is_inner = match.re is _JOIN and (match["kind"] or "INNER").upper() == "INNER"
        if is_inner and not _CHOICE.search(rows, match.end(), after.start()):
            rows = f"{rows[: match.start()]}LEFT JOIN{rows[match.end() :]}"
    return rows


def arguments_of(rows: str, start: int) -> list[str]:
    """Return the arguments of a call; `start` is behind its parenthesis."""
    return _Select(rows).arguments(start)


def from_of(rows: str, start: int) -> str:
    """Return what follows FROM in the SELECT whose list a place belongs to."""
    return _Select(rows).source(start)


def arguments_behind(rows: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the columns in calls and casts that make a column, and the tables of each."""
    select = _Select(rows)
    for match in _ARGUMENT.finditer(rows, *select.expression(name)):
        tables = re.split(r"\bWHERE\b", select.source(match.end()), flags=re.I)
        yield match[1] or match[2], tables[0]


def table_behind(rows: str, name: str) -> str:
    """Return the table whose rows a computed id names.

    It is that of the arguments, else the first one of FROM; "" where rows are put together.
    """
    bare, source = _Select(rows).bare, f"FROM {from_of(rows, 0)}"
    first = _TABLE.match(source)
    if first is None or _TOGETHER.search(bare):
        return ""
    if re.search(r"\b(?:DISTINCT|WITH)\b", bare, re.I):
        return ""
    tables = tables_of(source)
    arguments = arguments_behind(rows, name)
    aliases = {argument.rpartition(".")[0] for argument, _ in arguments} & {*tables}
    alias = aliases.pop() if len(aliases) == 1 else first[2] or first[1]
    return tables[alias]


def key_columns(rows: str, name: str) -> set[ColumnOrigin]:
    """Return the columns of one table that an id is made of, none where it is a column."""
    start, end = _Select(rows).expression(name)
    columns = {*re.findall(r"\b(\w+)\.(\w+)\b", _Select(rows).bare[start:end])}
    tables, aliases = tables_of(rows), {alias for alias, _ in columns}
    if len(columns) < 2 or len(aliases) > 1 or not aliases <= {*tables}:
        return set()
    return {ColumnOrigin(tables[alias], column) for alias, column in columns}


def names_compared(rows: str) -> frozenset[str]:
    """Return the names of all columns that a SELECT compares with = to anything."""
    names = re.findall(r"\b([A-Za-z_]\w*)\s*=", rows)
    return frozenset(name.lower() for name in names)
