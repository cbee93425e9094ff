"""How a database would run a statement, asked of it in its own words, read into the same few.

Indexes are told apart from whole tables whatever the size of the tables is now: a copy
of a hospital is often so small that reading all of it is the better plan.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

_LONGEST_NAME = 60


class Origin(NamedTuple):
    """The table and column that a column of a SELECT comes from."""

    table: str
    column: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"

    def index_name(self, *columns: str) -> str:
        """Return a name for an index of its table, no longer than databases take."""
        names = (self.table.rpartition(".")[2], *columns)
        return "_".join(names).replace('"', "")[:_LONGEST_NAME]


class Sought(NamedTuple):
    """A table in which rows are looked up by an index, and by what, as the plan says it."""

    table: str
    by: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is read of which table, and whether rows are sorted after they are read.

    `whole` are tables of which every row is read. Tables go by the names that the
    statement gives them where the plan has `aliases`, else by their own.
    """

    sought: tuple[Sought, ...]
    whole: tuple[str, ...]
    sorts: bool
    aliases: bool = True


# --------------------------------------------------------------------------- SQLite

_SEARCH = re.compile(r"SEARCH (\S+) USING (?!AUTOMATIC)(.*)\((.*)\)")
_SCAN = re.compile(r"SCAN (\S+)(?! VIRTUAL)")


def sqlite_plan(cursor: Any, text: str, bound: Any) -> Plan:
    """Return the plan of SQLite (sqlite.org/eqp.html)."""
    cursor.execute(f"EXPLAIN QUERY PLAN {text}", bound)
    lines = [str(row[3]) for row in cursor.fetchall()]
    sought = [
        Sought(found[1], found[3]) for line in lines if (found := _SEARCH.match(line))
    ]
    whole = [found[1] for line in lines if (found := _SCAN.match(line))]
    sorts = any(line == "USE TEMP B-TREE FOR ORDER BY" for line in lines)
    return Plan(tuple(sought), tuple(whole), sorts)


# ----------------------------------------------------------------------- PostgreSQL

_COND = "Index Cond"
_SCANS = ("Seq Scan", "Index Scan", "Index Only Scan")


def postgresql_plan(cursor: Any, text: str, bound: Any) -> Plan:
    """Return the plan of PostgreSQL, with indexes wherever there are any."""
    cursor.execute("BEGIN READ ONLY")
    try:
        for setting in ("enable_seqscan", "enable_sort"):
            cursor.execute(f"SET LOCAL {setting} = off")
        cursor.execute(f"EXPLAIN (FORMAT JSON) {text}", bound)
        answer = cursor.fetchall()[0][0]
    finally:
        cursor.execute("ROLLBACK")
    found = json.loads(answer) if isinstance(answer, str) else answer
    nodes = list(_nodes(found[0]["Plan"], ""))
    sought = [Sought(table, str(n[_COND])) for table, n in nodes if _COND in n]
    whole = [
        table
        for table, node in nodes
        if node["Node Type"] in _SCANS and _COND not in node
    ]
    sorts = any(node["Node Type"] == "Sort" for _, node in nodes)
    return Plan(tuple(sought), tuple(whole), sorts, aliases=False)


def _nodes(node: dict[str, Any], table: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all nodes, each with its table; the index of a bitmap is that of the node above."""
    table = str(node.get("Relation Name", table))
    yield table, node
    for child in node.get("Plans", ()):
        yield from _nodes(child, table)


# ------------------------------------------------------------------ MariaDB, MySQL

_SORTED = ("filesort", "using_filesort")


def mysql_plan(cursor: Any, text: str, bound: Any) -> Plan:
    """Return the plan of MariaDB or MySQL; an index that it could take counts as taken."""
    cursor.execute(f"EXPLAIN FORMAT=JSON {text}", bound)
    (answer,) = cursor.fetchall()[0]
    whole_plan = list(_walked(_read(answer)))
    tables = [value for key, value in whole_plan if key == "table" and _is_read(value)]
    sought, whole = [], []
    for table in tables:
        name = str(table["table_name"])
        if table["access_type"] not in ("ALL", "index"):
            sought.append(Sought(name, " ".join(table.get("used_key_parts", ()))))
        else:
            whole.append(name)
            # Too few rows now for the index to be worth it.
            sought += [
                Sought(name, " ".join(_columns_of(cursor, index)))
                for index in table.get("possible_keys", ())
            ]
    sorts = any(key in _SORTED and value for key, value in whole_plan)
    return Plan(tuple(sought), tuple(whole), sorts)


_TEXT = re.compile(r'^(\s*"\w+": ")(.*)(",?)$', re.MULTILINE)


def _read(answer: str) -> Any:
    """Read the JSON of MariaDB, where conditions stand with the escapes of SQL, or none."""
    plain = _TEXT.sub(lambda at: at[1] + re.sub(r'[\\"]', "", at[2]) + at[3], answer)
    return json.loads(plain, strict=False)


def _is_read(table: Any) -> bool:
    return isinstance(table, dict) and "access_type" in table


def _columns_of(cursor: Any, index: str) -> list[str]:
    """Return the first column of the indexes of that name."""
    cursor.execute(
        "SELECT DISTINCT column_name FROM information_schema.statistics"
        " WHERE table_schema = DATABASE() AND index_name = %s AND seq_in_index = 1",
        (index,),
    )
    return [str(row[0]) for row in cursor.fetchall()]


def _walked(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, list):
        for child in node:
            yield from _walked(child)
    elif isinstance(node, dict):
        for key, value in node.items():
            yield key, value
            yield from _walked(value)
