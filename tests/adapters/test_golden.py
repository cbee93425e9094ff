"""Statements in the SQL of each database, Oracle and SQL Server among them.

What the files of tests/golden/sql say was read against the manuals of the databases;
SQLite, PostgreSQL and MariaDB run the same shapes in the contract suite.
"""

import inspect
import re
import sys

import pytest

from adapters.sql.dialects import MODULES
from adapters.sql.statements import LIMIT
from tests.adapters.golden import DRIVERS, GOLDEN, compiled, shapes

SHAPES = [
    pytest.param(database, name, id=f"{database}-{name}")
    for database in DRIVERS
    for name in shapes(database)
]


@pytest.mark.parametrize(("database", "name"), SHAPES)
def test_statement_is_the_one_on_file(database: str, name: str) -> None:
    held = (GOLDEN / database / f"{name}.sql").read_text("utf-8")
    assert f"{compiled(database, shapes(database)[name]).text}\n" == held


def test_every_dialect_has_its_files() -> None:
    here = "tests/adapters/golden.py: DRIVERS and KINDS lack a database"
    assert {MODULES[name] for name in DRIVERS} == set(MODULES.values()), here


def test_files_are_those_of_the_shapes() -> None:
    files = {(file.parent.name, file.stem) for file in GOLDEN.glob("*/*.sql")}
    assert files == {(d, name) for d in DRIVERS for name in shapes(d)}


_FOREIGN = {
    "mssql": r"\bLIMIT\b|\bFETCH\b|\btrue\b|\bfalse\b|\|\||\(\w+, \w+\) [<>=]",
    "oracle": r"\bLIMIT\b|\bTOP\b|\btrue\b|\bfalse\b|\n\) AS \w|\(\w+, \w+\) [<>=]",
}
"""Words and forms that a database does not take."""


@pytest.mark.parametrize("database", _FOREIGN)
def test_no_statement_says_what_the_database_does_not_take(database: str) -> None:
    for shape in shapes(database).values():
        text = compiled(database, shape).text
        assert re.search(_FOREIGN[database], text) is None


@pytest.mark.parametrize("database", DRIVERS)
def test_every_placeholder_is_bound(database: str) -> None:
    sign = {"qmark": r"\?", "named": r":\w+", "pyformat": r"%\((\w+)\)s"}
    for shape in shapes(database).values():
        statement = compiled(database, shape)
        # A colon in a text of the mapping is no placeholder.
        text = statement.text.replace("':x'", "''")
        placeholders = re.findall(sign[DRIVERS[database][1]], text)
        bound = statement.bind(tuple(f"<{i}>" for i in range(9)), 7)
        if statement.names is not None:
            assert len(placeholders) == len(bound)
        else:
            assert {name.lstrip(":") for name in placeholders} <= set(bound)
        assert not re.search(r"'\w+'", text), "values are bound, not written"


STACK = 250
"""In frames: a quarter of what Python lets a request have in all."""


@pytest.mark.parametrize(("database", "name"), SHAPES)
def test_a_statement_is_made_in_a_stack_that_others_need_too(
    database: str, name: str
) -> None:
    shape = shapes(database)[name]
    limit, used = sys.getrecursionlimit(), len(inspect.stack(0))
    sys.setrecursionlimit(used + STACK)
    try:
        assert compiled(database, shape).text
    finally:
        sys.setrecursionlimit(limit)


def test_sql_server_is_told_the_number_of_rows_first() -> None:
    statement = compiled("mssql", shapes("mssql")["next-page"])
    assert statement.names is not None
    assert statement.names[0] == LIMIT
