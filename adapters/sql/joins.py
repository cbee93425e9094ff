"""What the text of a SELECT of a mapping shows: its tables, joins and calls.

Of joins, plain equalities of two columns, each with the name or alias of its table, are read.
"""

import re
from collections.abc import Iterator, Mapping

from adapters.sql.dialects.base import Origin

_NO_ALIAS = r"(?:ON|WHERE|JOIN|LEFT|RIGHT|INNER|CROSS|FULL|GROUP|ORDER|UNION|USING)\b"
_TABLE = re.compile(
    rf"\b(?:FROM|JOIN)\s+([\w.]+)(?:\s+(?:AS\s+)?(?!{_NO_ALIAS})(\w+))?", re.IGNORECASE
)
_WORD = re.compile(r"'[^']*'|\"[^\"]*\"|--.*|[(),]|\bFROM\b|\bUNION\b", re.IGNORECASE)
_EQUAL = re.compile(r"\b(\w+)\.(\w+)\s*=\s*(\w+)\.(\w+)\b(?!\s*\.)")


def tables_of(rows: str) -> Mapping[str, str]:
    """Return the tables of a SELECT by alias, in the order in which it names them."""
    return {alias or name: name for name, alias in _TABLE.findall(rows)}


def looked_up(rows: str) -> Iterator[Origin]:
    """Yield the columns by which rows of a joined table are found.

    Of two tables that is the one of the inner SELECT, in one SELECT the later one.
    """
    tables = tables_of(rows)
    order = {
        match[2] or match[1]: (_depth(rows, match.start()), match.start())
        for match in _TABLE.finditer(rows)
    }
    for one, column, other, other_column in _EQUAL.findall(rows):
        if one in tables and other in tables:
            is_inner = order[one] > order[other]
            alias, name = (one, column) if is_inner else (other, other_column)
            yield Origin(tables[alias], name)


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
    for alias, column in _way(rows, start, goal):
        if alias in tables:
            yield Origin(tables[alias], column)


def is_filtered(rows: str) -> bool:
    """Whether a SELECT has a WHERE of its own."""
    wheres = re.finditer(r"\bWHERE\b", rows, re.IGNORECASE)
    return any(_depth(rows, where.start()) == 0 for where in wheres)


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


def _words(rows: str, start: int) -> Iterator[tuple[str, int, re.Match[str]]]:
    """Yield what divides a SELECT, with its depth in parentheses from a place on."""
    depth = 0
    for match in _WORD.finditer(rows, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        yield match[0].upper(), depth, match


def _depth(rows: str, at: int) -> int:
    """Return how many parentheses are open at a place."""
    return rows.count("(", 0, at) - rows.count(")", 0, at)


def _selected(rows: str, name: str) -> tuple[str, str] | None:
    """Return the alias and the column of a plain column that is selected by a name."""
    column = re.escape(name)
    renamed = re.search(rf"\b(\w+)\.(\w+)\s+AS\s+{column}\b", rows, re.IGNORECASE)
    plain = re.search(rf"\b(\w+)\.({column})\s*(?:,|\bFROM\b)", rows, re.IGNORECASE)
    match = renamed or plain
    return (match[1], match[2]) if match else None


def _way(rows: str, start: str, goal: str) -> list[tuple[str, str]]:
    """Return the columns of the joins that lead from one alias to another."""
    ways: dict[str, list[tuple[str, str]]] = {start: []}
    ahead = [start]
    for alias in ahead:
        for one, column, other, other_column in _EQUAL.findall(rows):
            for here, there in ((one, other), (other, one)):
                if here == alias and there not in ways:
                    ways[there] = [*ways[here], (one, column), (other, other_column)]
                    ahead.append(there)
    return ways.get(goal, [])
