"""Statements for Oracle and SQL Server, read against the manuals of the databases.

SQLite, PostgreSQL and MariaDB run such statements in the contract suite.
"""

import inspect
import re
import sys

import pytest

from tests.adapters.sql.golden import DRIVERS, GOLDEN, compiled, statements

_FOREIGN = {
    "mssql": r"\bLIMIT\b|\bFETCH\b|\btrue\b|\bfalse\b|\|\||\(\w+, \w+\) [<>=]",
    "oracle": r"\bLIMIT\b|\bTOP\b|\btrue\b|\bfalse\b|\n\) AS \w|\(\w+, \w+\) [<>=]",
}
"""Words and forms that a database does not accept."""

STACK = 250
"""In frames: a quarter of what Python lets a request have in all."""


@pytest.mark.parametrize("database", DRIVERS)
def test_statements_are_those_on_file(database: str) -> None:
    limit, used = sys.getrecursionlimit(), len(inspect.stack(0))
    files = {file.stem: file for file in (GOLDEN / database).glob("*.sql")}
    sys.setrecursionlimit(used + STACK)
    try:
        texts = {
            name: compiled(database, statement).statement
            for name, statement in statements(database).items()
        }
    finally:
        sys.setrecursionlimit(limit)
    assert files.keys() == texts.keys()
    for name, text in texts.items():
        assert f"{text}\n" == files[name].read_text("utf-8"), name
        assert re.search(_FOREIGN[database], text) is None, name


@pytest.mark.parametrize("database", DRIVERS)
def test_every_value_is_bound(database: str) -> None:
    sign = r"\?" if DRIVERS[database][1] == "qmark" else r":\w+"
    for name, each in statements(database).items():
        statement = compiled(database, each)
        # A colon in a text of the mapping is no placeholder.
        text = statement.statement.replace("':x'", "''")
        placeholders = re.findall(sign, text)
        if statement.positiontup:
            assert len(placeholders) == len(statement.positiontup), name
        else:
            assert {p.lstrip(":") for p in placeholders} <= {*statement.parameters}
        assert not re.search(r"'\w+'", text), "values are bound, not written"


def test_sql_server_gets_the_number_of_rows_first() -> None:
    statement = compiled("mssql", statements("mssql")["next-page"])
    assert statement.parameters[statement.positiontup[0]] == 7
