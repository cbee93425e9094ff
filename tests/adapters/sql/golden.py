"""Statements for Oracle and SQL Server, for which no test has a server.

`python -m tests.adapters.sql.golden` writes the files of tests/golden/sql anew; somebody who
knows the database reviews the change.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel

from adapters.contract import (
    Group,
    Position,
    ResourceType,
    SearchQuery,
    Sort,
    SortKey,
    StringMatch,
)
from adapters.mapping.load import load_mapping
from adapters.sql.adapter import OpenSqlSection, open_section
from adapters.sql.columns import Column, ColumnKind
from adapters.sql.dialects import dialect_named
from adapters.sql.dialects.base import Dialect, Statement
from adapters.sql.engine import Database
from adapters.sql.query import ALWAYS
from tests.hospital_sql import mapping_text
from toolkit.contract.harness import PATIENT, ask, dates, patient, text, token
from toolkit.contract.hospital import EDGES, IPP_SYSTEM, Ids

GOLDEN = Path(__file__).parents[2] / "golden" / "sql"

GRAMMARS = {"mssql": "tsql", "oracle": "oracle"}
"""sqlglot's names of the databases."""

DEPTH = 20_000
"""In frames: a name is folded by some hundred functions within each other."""

NAMES = ("used_name", "birth_name", "given", "title")
CHANGED = (
    ("replaced_by IS NULL", "CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END"),
    ("patient_id: {from: patient_id", "patient_id: {merges: follow, from: patient_id"),
)
"""Neither database selects a condition."""


def kinds(database: str, ids: Ids) -> dict[str, ColumnKind]:
    """Return the columns of an old table with numbers or with texts, or of a newer one."""
    text, code, time = ColumnKind.FOLDING, ColumnKind.FOLDING, ColumnKind.TICK_TIME
    if database == "oracle":
        text, code, time = ColumnKind.FILLED, ColumnKind.PADDED, ColumnKind.SECOND_TIME
    id_, stay, name, born = ColumnKind.INTEGER, ColumnKind.INTEGER, text, time
    item_key = text
    if ids is Ids.TEXTS:
        id_, stay, time, born, item_key = text, code, text, text, ColumnKind.BINARY
    if ids is Ids.UUIDS:
        id_, time, name = ColumnKind.BINARY, ColumnKind.FINE_TIME, ColumnKind.LARGE
        stay = ColumnKind.UUID if database == "mssql" else ColumnKind.BINARY
        item_key, born = ColumnKind.BINARY, ColumnKind.NUMBER
    return {
        **dict.fromkeys(("patient_id", "replaced_by"), id_),
        **dict.fromkeys(("number", "authority", "code", "finess"), text),
        **dict.fromkeys(("visit", "hospital"), text),
        **dict.fromkeys(NAMES, name),
        **dict.fromkeys(("state", "kind", "unit", "sex"), code),
        **dict.fromkeys(("began", "ended", "changed"), time),
        "stay_id": stay,
        "born": born,
        "active": ColumnKind.INTEGER,
        "patient_numbers": item_key,
    }


@dataclass(frozen=True, slots=True)
class Described:
    """The part of a `Database` that opens sections: its dialect, the columns of SELECTs.

    A `Database` itself needs the driver, which is not installed for tests.
    """

    dialect: Dialect
    kinds: dict[str, ColumnKind]

    def columns(self, rows: str) -> tuple[Column, ...]:
        select = parsed("oracle", rows)
        assert isinstance(select, exp.Select)
        kinds = dict(self.kinds)
        if "patient_numbers" in rows:
            kinds["patient_id"] = kinds["patient_numbers"]
        encoding = "cp1252" if self.kinds.get("born") is ColumnKind.FILLED else ""
        return tuple(
            Column(name, kinds[name], encoding=encoding)
            for name in select.named_selects
        )


def opened(database: str, ids: Ids, kind: ResourceType) -> OpenSqlSection:
    """Open a section of the tiny hospital in a database."""
    lines = mapping_text(EDGES.with_ids(ids))
    for old, new in CHANGED:
        lines = lines.replace(old, new)
    with TemporaryDirectory() as directory:
        file = Path(directory) / "hospital.yaml"
        file.write_text(lines, "utf-8")
        mapping = load_mapping(file, {"PAS_URL": f"{database}://"})
    described = Described(dialect_named(database), kinds(database, ids))
    return open_section(cast("Database", described), mapping, kind)


A_UUID = "2d1c2b1e-0000-4000-8000-00000000000a"
START = datetime(2024, 3, 14, 10)  # noqa: DTZ001 - as the column is
CHANGES = Sort(SortKey.LAST_UPDATED, descending=True)

QUERIES = {
    Ids.NUMBERS: {
        "first page": ask(),
        "next page": ask(
            token("status", "finished"), after=Position(Group.KEYED, START, 7)
        ),
        "few rows": ask(patient("1", "2"), sort=CHANGES),
        "number": ask(token("identifier", f"{IPP_SYSTEM}|1", "2"), of=PATIENT),
        "name starts": ask(text("name", "Le_b"), of=PATIENT),
        "born on a day": ask(dates("1950-06-15", parameter="birthdate"), of=PATIENT),
    },
    Ids.TEXTS: {
        "dates": ask(dates("2024-03-14")),
        "next page": ask(
            token("class", "IMP"),
            sort=Sort(SortKey.ID),
            after=Position(Group.KEYED, None, "a"),
        ),
        "number": ask(token("identifier", "1"), of=PATIENT),
        "name contains": ask(text("family", "Le_b", StringMatch.CONTAINS), of=PATIENT),
        "name is": ask(text("family", "Łé", StringMatch.EXACT), of=PATIENT),
        "born after": ask(dates("gt1950-06-15", parameter="birthdate"), of=PATIENT),
    },
    Ids.UUIDS: {
        "id": ask(token("_id", A_UUID), sort=Sort(SortKey.ID)),
        "next page": ask(sort=CHANGES, after=Position(Group.KEYED, START, b"7")),
        "dates": ask(dates("2024-03-14")),
        "patient": ask(patient(A_UUID), sort=CHANGES),
        "number": ask(token("identifier", "1"), of=PATIENT),
        "name starts": ask(text("family", "Le_b"), of=PATIENT),
        "born until": ask(dates("le1950-06", parameter="birthdate"), of=PATIENT),
    },
}


def statements(database: str) -> Iterator[tuple[str, Statement]]:
    """Yield the statements of one database, each with its name."""
    for ids, queries in QUERIES.items():
        for name, query in queries.items():
            section = opened(database, ids, query.resource_type)
            for statement in of_search(section, query):
                yield f"{ids}: {name}", statement
    stays = opened(database, Ids.TEXTS, ResourceType.ENCOUNTER).columns
    yield "codes counted", stays.count_by(stays.column("state"), ALWAYS, 7)
    yield "ends in blanks", stays.count(stays.column("visit").ends_in_blanks)


def of_search(section: OpenSqlSection, query: SearchQuery) -> Iterator[Statement]:
    """Yield those of a page, with the first of its merges; of patients that of their number."""
    if query.resource_type is PATIENT:
        yield section.columns.count(section.filters.of_query(query))
        return
    assert section.merges is not None
    yield from section.merges.first_steps(query)
    for segment, condition in section.segments(query):
        yield section.page(segment, condition, 7)


def sent(database: str, statement: Statement) -> str:
    """Return the text of a statement as the driver of a database gets it."""
    return statement.text(dialect_named(database).placeholder)


def parsed(database: str, text: str) -> exp.Expression:
    """Return a statement as sqlglot reads it; raises ParseError."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(DEPTH)
    try:
        return sqlglot.parse_one(
            text, read=GRAMMARS[database], error_level=ErrorLevel.RAISE
        )
    finally:
        sys.setrecursionlimit(limit)


def written(database: str) -> str:
    """Return the file of a database."""
    parts = (f"-- {name}\n{sent(database, s)}\n" for name, s in statements(database))
    return "\n".join(parts)


if __name__ == "__main__":
    for database in GRAMMARS:
        (GOLDEN / f"{database}.sql").write_text(written(database), "utf-8")
