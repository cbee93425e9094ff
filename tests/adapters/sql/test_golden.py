"""Statements for Oracle and SQL Server, read against the manuals of the databases.

SQLite, PostgreSQL and MariaDB run such statements in the contract suite.
"""

import inspect
import re
import sys

import pytest

from tests.adapters.sql.golden import DRIVERS, GOLDEN, compiled, statements

NAMES = [(database, name) for database in DRIVERS for name in statements(database)]

_FOREIGN = {
    "mssql": r"\bLIMIT\b|\bFETCH\b|\btrue\b|\bfalse\b|\|\||\(\w+, \w+\) [<>=]",
    "oracle": r"\bLIMIT\b|\bTOP\b|\btrue\b|\bfalse\b|\n\) AS \w|\(\w+, \w+\) [<>=]",
}
"""Words and forms that a database does not accept."""

STACK = 250
"""In frames: a quarter of what Python lets a request have in all."""


@pytest.mark.parametrize(("database", "name"), NAMES)
def test_statement_is_the_one_on_file(database: str, name: str) -> None:
    limit, used = sys.getrecursionlimit(), len(inspect.stack(0))
    sys.setrecursionlimit(used + STACK)
    try:
        text = compiled(database, statements(database)[name]).statement
    finally:
        sys.setrecursionlimit(limit)
    assert f"{text}\n" == (GOLDEN / database / f"{name}.sql").read_text("utf-8")
    assert re.search(_FOREIGN[database], text) is None


def test_files_are_those_of_the_statements() -> None:
    files = {(file.parent.name, file.stem) for file in GOLDEN.glob("*/*.sql")}
    assert files == {*NAMES}


@pytest.mark.parametrize(("database", "name"), NAMES)
def test_every_value_is_bound(database: str, name: str) -> None:
    statement = compiled(database, statements(database)[name])
    # A colon in a text of the mapping is no placeholder.
    text = statement.statement.replace("':x'", "''")
    sign = r"\?" if DRIVERS[database][1] == "qmark" else r":\w+"
    placeholders = re.findall(sign, text)
    bound = statement.positiontup or statement.parameters
    if statement.positiontup:
        assert len(placeholders) == len(bound)
    else:
        assert {name.lstrip(":") for name in placeholders} <= {*bound}
    assert not re.search(r"'\w+'", text), "values are bound, not written"


def test_sql_server_gets_the_number_of_rows_first() -> None:
    statement = compiled("mssql", statements("mssql")["next-page"])
    assert statement.parameters[statement.positiontup[0]] == 7
