"""Statements for Oracle and SQL Server, which no test has: on file, and parsed strictly.

The files were read against the manuals of the databases. sqlglot knows the grammar of both,
and neither names nor types.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import cast

import pytest
from sqlglot import exp
from sqlglot.errors import ParseError

from adapters.contract import Group, Position, ResourceType, SearchQuery, SortKey
from adapters.mapping.load import load_mapping
from adapters.sql.adapter import OpenSqlSection, open_section
from adapters.sql.columns import ColumnKind
from adapters.sql.dialects import dialect_named
from adapters.sql.dialects.base import Statement
from adapters.sql.engine import Database
from tests.adapters.sql.golden import (
    DATABASES,
    GOLDEN,
    GRAMMARS,
    KINDS,
    Described,
    parsed,
    sent,
    statements,
)
from tests.hospital_sql import mapping_text
from toolkit.contract.harness import FOUND, SOME, STAY, ask
from toolkit.contract.hospital import EDGES, Ids
from toolkit.contract.suite import ORDERS

ACTIVE = "replaced_by IS NULL AS active"
FLAG = "CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active"
"""Neither database selects a condition."""

OF_PATIENT = "    patient_id: {from: patient_id"
FOLLOWS = f"{OF_PATIENT}, merges: follow"


FOREIGN = {
    "mssql": r"\bLIMIT\b|\bFETCH\b|\btrue\b|\bfalse\b|\|\||\(\w+, \w+\) [<>=]",
    "oracle": r"\bLIMIT\b|\bTOP\b|\btrue\b|\bfalse\b|\n\) AS \w|\(\w+, \w+\) [<>=]",
}
"""Words and forms that a database does not accept."""


@pytest.mark.parametrize("database", DATABASES)
def test_statements_are_those_on_file_with_their_values_bound(database: str) -> None:
    made = statements(database)
    files = {file.stem: file for file in (GOLDEN / database).glob("*.sql")}
    assert files.keys() == made.keys()
    for name, statement in made.items():
        text = sent(database, statement)
        assert f"{text}\n" == files[name].read_text("utf-8"), name
        assert re.search(FOREIGN[database], text) is None, name
        assert isinstance(parsed(database, text), exp.Query), name
        # A colon in a text is no placeholder.
        text = re.sub("'[^']*'", lambda m: "''" if ":" in m[0] else m[0], text)
        numbers = range(1, len(statement.values) + 1)
        expected = ["?" for _ in numbers]
        if database == "oracle":
            expected = [f":v{number}" for number in numbers]
        assert re.findall(r"\?|:\w+", text) == expected, name
        assert not re.search(r"'\w+'", text), "values are bound, not written"
    # SQL Server gets the number of rows first.
    assert made["next-page"].values[0 if database == "mssql" else -1] == 7
    for text in ("SELECT a FROM (SELECT a FROM t", "SELECT a FROM t WHERE a ==== 1"):
        with pytest.raises(ParseError):
            parsed(database, text)


def _kinds(database: str, ids: Ids) -> dict[str, ColumnKind]:
    text, code, time = KINDS[database]
    id_ = ColumnKind.INTEGER if ids is Ids.NUMBERS else text
    if ids is Ids.UUIDS:
        # What newer tables have.
        id_, time = ColumnKind.BINARY, ColumnKind.FINE_TIME
    texts = ("used_name", "birth_name", "given", "number", "authority", "code", "title")
    return {
        **dict.fromkeys(("stay_id", "patient_id", "replaced_by"), id_),
        **dict.fromkeys((*texts, "finess", "visit", "hospital"), text),
        **dict.fromkeys(("state", "kind", "unit", "sex"), code),
        **dict.fromkeys(("began", "ended", "changed"), time),
        "born": ColumnKind.DATE,
        "active": ColumnKind.INTEGER,
    }


def _statements(section: OpenSqlSection, query: SearchQuery) -> Iterator[Statement]:
    """Yield those of all ways to a page (one, if rows are filtered), of count and read."""
    id_ = 7 if section.id.kind is ColumnKind.INTEGER else "7"
    key = None if query.sort.key is SortKey.ID else datetime(2024, 3, 14, 10)  # noqa: DTZ001
    at = [Position(Group.KEYED, key, id_)]
    at += [Position(Group.UNKEYED, None, id_)] if key else []
    pages = [query]
    if not query.criteria:
        pages += [replace(query, from_end=True)]
        pages += [replace(query, after=position) for position in at]
        pages += [replace(query, before=position) for position in at]
    for page in pages:
        for segment, condition in section.segments(page):
            yield section.page(segment, condition, 8)
    yield from section.merges.first_steps(query) if section.merges else ()
    yield section.columns.count(section.filters.of_query(query))
    yield section.columns.select(section.selected, section.filters.of_id("7"), limit=1)


def _queries(kind: ResourceType) -> Iterator[SearchQuery]:
    """Yield what the contract suite searches for."""
    sorts = [case.values[1] for case in ORDERS if case.values[0] is kind]
    for sort in sorts:
        yield ask(of=kind, sort=sort)
    cases = [criteria for _, criteria, _ in FOUND[kind]]
    cases += [(criterion,) for criterion in SOME if kind is STAY]
    for criteria in cases:
        yield ask(*criteria, of=kind, sort=sorts[0])


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("ids", Ids)
@pytest.mark.parametrize("kind", ResourceType)
def test_what_the_contract_suite_searches_for_is_parsed(
    database: str, ids: Ids, kind: ResourceType, tmp_path: Path
) -> None:
    file = tmp_path / "hospital.yaml"
    lines = mapping_text(EDGES.with_ids(ids))
    for old, new in ((ACTIVE, FLAG), (OF_PATIENT, FOLLOWS)):
        assert old in lines
        lines = lines.replace(old, new)
    file.write_text(lines, "utf-8")
    mapping = load_mapping(file, {"PAS_URL": f"{database}://"})
    described = Described(dialect_named(database), _kinds(database, ids))
    section = open_section(cast("Database", described), mapping, kind)
    made = [each for query in _queries(kind) for each in _statements(section, query)]
    texts = {sent(database, each) for each in made}
    assert len(texts) > 10
    for text in texts:
        assert isinstance(parsed(database, text), exp.Query), text


@pytest.mark.parametrize("database", GRAMMARS)
def test_questions_about_the_account_are_parsed(database: str) -> None:
    """Who may write by which grant, and which tables have policies that hide rows."""
    names = {"mssql": "sqlserver", "oracle": "oracle"}
    module = import_module(f"adapters.sql.dialects.{names[database]}")
    for text in (module.WRITE_GRANT, module.FILTERED):
        assert isinstance(parsed(database, text), exp.Query)
