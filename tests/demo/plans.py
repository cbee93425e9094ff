"""How PostgreSQL and MariaDB would run a statement: index lookups, full scans, sorts."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.base import Executable

from adapters.sql.dialects.base import Statement
from adapters.sql.engine import Database


@dataclass(frozen=True, slots=True)
class Plan:
    """The conditions of index lookups, the tables that are scanned, whether rows are sorted.

    Small tables count as looked up where an index could serve: the hospital of the tests is
    so small that a full scan is the better plan.
    """

    lookups: tuple[str, ...]
    scans: tuple[str, ...]
    sorts: bool


class _Explained(Executable, ClauseElement):
    inherit_cache = False

    def __init__(self, select: ClauseElement) -> None:
        self.select = select


@compiles(_Explained, "postgresql")
def _explain(element: _Explained, compiler: Any, **options: Any) -> str:
    return f"EXPLAIN (FORMAT JSON) {compiler.process(element.select, **options)}"


@compiles(_Explained, "mysql")
@compiles(_Explained, "mariadb")
def _explain_mariadb(element: _Explained, compiler: Any, **options: Any) -> str:
    return f"EXPLAIN FORMAT=JSON {compiler.process(element.select, **options)}"


def plan_of(database: Database, statement: Statement) -> Plan:
    """Return the plan of a statement."""

    def read(connection: sa.Connection) -> Plan:
        is_postgresql = connection.dialect.name == "postgresql"
        if is_postgresql:
            for setting in ("enable_seqscan", "enable_sort"):
                connection.exec_driver_sql(f"SET {setting} = off")
        explained = _Explained(statement.select)
        plan = connection.execute(explained, dict(statement.values)).scalar_one()
        return _postgresql(plan) if is_postgresql else _mariadb(plan)

    return database.run(read)


_CONDITION = "Index Cond"
_SCANS = ("Seq Scan", "Index Scan", "Index Only Scan")


def _postgresql(plan: Any) -> Plan:
    every = _nodes({"Plan": plan[0]["Plan"]})
    nodes = [node for key, node in every if key in ("Plan", "Plans")]
    return Plan(
        tuple(str(node[_CONDITION]) for node in nodes if _CONDITION in node),
        tuple(
            str(node["Relation Name"])
            for node in nodes
            if node["Node Type"] in _SCANS and _CONDITION not in node
        ),
        any(node["Node Type"] == "Sort" for node in nodes),
    )


_TEXT = re.compile(r'^(\s*"\w+": ")(.*)(",?)$', re.MULTILINE)


def _mariadb(plan: str) -> Plan:
    # It escapes the values of conditions as SQL, if at all.
    plain = _TEXT.sub(lambda at: at[1] + re.sub(r'[\\"]', "", at[2]) + at[3], plan)
    document = json.loads(plain, strict=False)
    tables = [n for key, n in _nodes(document) if key == "table" and "access_type" in n]
    is_scan = [table["access_type"] in ("ALL", "index") for table in tables]
    return Plan(
        tuple(
            " ".join(table.get("used_key_parts", ()))
            for table, scan in zip(tables, is_scan, strict=True)
            if not scan
        ),
        tuple(
            str(t["table_name"])
            for t, scan in zip(tables, is_scan, strict=True)
            if scan
        ),
        any(
            key in ("filesort", "using_filesort") and node
            for key, node in _nodes(document)
        ),
    )


def _nodes(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, list):
        for child in node:
            yield from _nodes(child)
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from ((key, each) for each in (value if key == "Plans" else [value]))
            yield from _nodes(value)
