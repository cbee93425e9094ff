"""Why a SELECT of a mapping does not return the row of an id: which JOIN or WHERE leaves it out.

The SELECT is run for that id in steps: its first table, then one JOIN more at a time, then
one condition more. What is reported is the step that loses the row. A SELECT that puts rows
together (UNION, GROUP BY) has no such steps.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from adapters.contract import ResourceType, SourceDataError
from adapters.sql.adapter import SqlAdapter
from adapters.sql.query import Columns

_COMMENT = re.compile(r"('(?:[^']|'')*')|--[^\n]*|/\*.*?\*/", re.DOTALL)
_TOGETHER = re.compile(r"\b(?:UNION|INTERSECT|EXCEPT|MINUS|GROUP|HAVING)\b", re.I)
_CLAUSE = re.compile(r"\b(?:FROM|WHERE|ORDER|LIMIT|OFFSET|FETCH)\b|\Z", re.I)
_JOIN = re.compile(
    r"(?:\b(?:NATURAL|INNER|CROSS|LEFT|RIGHT|FULL)\s+)?(?:\bOUTER\s+)?\bJOIN\b", re.I
)
_TABLE = re.compile(
    r"(?:\w+\s+)*?(?:FROM|JOIN)\s+(?P<table>[^\s(,]+)"
    r"(?:\s+(?:AS\s+)?(?!(?:ON|USING|WHERE|JOIN|LEFT|INNER)\b)(?P<alias>\w+))?",
    re.I,
)


class Absence(NamedTuple):
    """Why a row is not returned.

    `table` has the row if `is_there`; `clause` is the text of the SELECT that loses it, ""
    where that is not known.
    """

    table: str
    is_there: bool
    clause: str = ""


def absence(adapter: SqlAdapter, kind: ResourceType, id: str) -> Absence | None:
    """Return why the SELECT of a section has no row of an id; None where nothing shows it."""
    section = adapter.mapping.resources[kind]
    rows = _COMMENT.sub(lambda match: match[1] or " ", section.rows)
    name = section.fields["id"].filter_column or ""
    origin = adapter.database.origins(section.rows).get(name)
    if origin:
        alone = f"SELECT {origin.column} AS {name} FROM {origin.table}"
        is_there = _has(adapter, kind, alone, id)
        if is_there is not None and not is_there:
            return Absence(origin.table, is_there=False)
    first = ""
    for select, table, clause in _steps(rows, name, origin.column if origin else ""):
        is_there = _has(adapter, kind, select, id)
        if is_there is None:
            # Its table comes with a later JOIN.
            continue
        if not is_there and not first and not origin:
            return Absence(table, is_there=False)
        first = first or table
        if not is_there:
            return Absence(origin.table if origin else first, True, clause)
    return Absence(origin.table if origin else first, True) if origin or first else None


def _has(adapter: SqlAdapter, kind: ResourceType, select: str, id: str) -> bool | None:
    """Return whether a SELECT has a row of an id, None where the database refuses it."""
    database, mapping = adapter.database, adapter.mapping
    try:
        described, zone = database.columns(select), mapping.source.zone
        columns = Columns(database.dialect, select, described, zone=zone)
        condition = columns.equal(mapping.resources[kind].fields["id"], [id])
        ((number,),) = database.fetch(columns.count(condition))
    except SourceDataError:
        return None
    return bool(number)


def _steps(rows: str, name: str, column: str) -> Iterator[tuple[str, str, str]]:
    """Yield SELECTs of the id that have more and more of a SELECT, and what each adds.

    With each comes the first table, too. Nothing where the SELECT has no such steps.
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
    named = [match for match in map(_TABLE.match, tables) if match]
    if not named or len(named) < len(tables):
        return
    first = named[0]["table"]
    expression = _expression(rows[:start], bare[:start], name)
    aliases = [match["alias"] or match["table"] for match in named]
    if not expression:
        expression = f"{aliases[0]}.{column or name}"
    select, source = f"SELECT {expression} AS {name}", ""
    for table in tables:
        source += table
        yield f"{select} {source}", first, _on_one_line(table)
    if "WHERE" in clauses:
        mark = marks[clauses["WHERE"]]
        after = marks[clauses["WHERE"] + 1].start()
        conditions = ""
        for one in _conditions(rows[mark.end() : after], bare[mark.end() : after]):
            conditions += f" AND {one}" if conditions else one
            text = f"WHERE {_on_one_line(one)}"
            yield f"{select} {source} WHERE {conditions}", first, text


def _outermost(rows: str) -> str:
    """Return a SELECT with blanks for texts and what is in parentheses."""
    depth, signs = 0, list[str]()
    for sign in re.sub(r"'[^']*'", lambda match: " " * len(match[0]), rows):
        if sign == ")":
            depth -= 1
        signs.append(" " if depth else sign)
        if sign == "(":
            depth += 1
    return "".join(signs)


def _expression(head: str, bare: str, name: str) -> str:
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


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
