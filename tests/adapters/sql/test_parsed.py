"""Statements for Oracle and SQL Server, which no test has: on file, and parsed strictly.

The files were read against the manuals of the databases. sqlglot knows the grammar of both,
and neither names nor types.
"""

import re
from importlib import import_module

import pytest
from sqlglot import exp
from sqlglot.errors import ParseError

from tests.adapters.sql.golden import (
    GOLDEN,
    GRAMMARS,
    parsed,
    sent,
    statements,
    written,
)

FOREIGN = {
    "mssql": r"\bLIMIT\b|\bFETCH\b|\btrue\b|\bfalse\b|\|\||\(\w+, \w+\) [<>=]",
    "oracle": r"\bLIMIT\b|\bTOP\b|\btrue\b|\bfalse\b|\n\) AS \w|\(\w+, \w+\) [<>=]",
}
"""Words and forms that a database does not accept."""


@pytest.mark.parametrize("database", GRAMMARS)
def test_statements_are_those_on_file_with_their_values_bound(database):
    assert written(database) == (GOLDEN / f"{database}.sql").read_text("utf-8")
    for name, statement in statements(database):
        text = sent(database, statement)
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
        if "next page" in name:
            # SQL Server gets the number of rows first.
            assert statement.values[0 if database == "mssql" else -1] == 7
    for text in ("SELECT a FROM (SELECT a FROM t", "SELECT a FROM t WHERE a ==== 1"):
        with pytest.raises(ParseError):
            parsed(database, text)


@pytest.mark.parametrize("name", ["sqlserver", "oracle"])
def test_questions_about_the_account_are_parsed(name):
    """Who may write by which grant, and which tables have policies that hide rows."""
    module = import_module(f"adapters.sql.dialects.{name}")
    for text in (module.WRITE_GRANT, module.FILTERED):
        assert isinstance(
            parsed("mssql" if name == "sqlserver" else name, text), exp.Query
        )
