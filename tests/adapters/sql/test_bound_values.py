"""No value is ever written into SQL: what its text is made of, and that values leave it alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.contract import StringMatch
from adapters.mapping.model import FieldMapping, Mark
from adapters.sql.columns import Column, ColumnKind
from adapters.sql.dialects import MODULES, dialect_named
from adapters.sql.dialects.base import MARK, Statement
from adapters.sql.query import Columns, Condition, KeyColumn, in_rows
from tests.live import ROOT

MAKERS = {"Sql", "Condition", "Statement"}
"""The classes of SQL with values, of which the first argument is the text."""

WRITTEN = {
    # What a dialect or a column writes, once.
    *("self.plain", "self.exact", "self._long", "self.mark", "self._from", "words", "equal"),
    *("column.plain", "column.exact", "exact.sql", "self.top", "self.limit"),
    # Texts of SQL, whose values stand beside them, and what joins them.
    *("self.sql", "rows.sql", "condition.sql", "' OR '.join([part.sql for part in parts])"),
    *("form", "sign", "marks", "compared", "selected", "where", "text", "MARK", "function"),
    *("before", "after", "source", "column"),
}  # fmt: skip
"""The expressions that may stand in the text of SQL. A new one is not a value: it is made of
the dialect's SQL, the names of columns and constants."""


def _texts(file: Path) -> Iterator[ast.expr]:
    """Yield the texts of the SQL that a module makes."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in MAKERS
        ):
            yield node.args[0]


def _modules() -> list[Path]:
    files = [
        *(ROOT / "adapters" / "sql").rglob("*.py"),
        *(ROOT / "toolkit").rglob("*.py"),
    ]
    return [file for file in files if "from adapters.sql" in file.read_text("utf-8")]


def test_the_text_of_sql_is_made_of_what_is_written_once() -> None:
    checked = 0
    for file in _modules():
        for text in _texts(file):
            checked += 1
            parts = text.values if isinstance(text, ast.JoinedStr) else [text]
            for part in parts:
                if isinstance(part, ast.Constant):
                    continue
                inner = part.value if isinstance(part, ast.FormattedValue) else part
                assert _is_written(inner), f"{file}:{part.lineno}: {ast.unparse(inner)}"
    assert checked > 15


def _is_written(expression: ast.expr) -> bool:
    """Whether an expression is one of those above, or what a dialect makes of such."""
    match expression:
        case ast.Call(func=ast.Attribute(value=dialect)):
            is_dialect = ast.unparse(dialect) in (
                "self.dialect",
                "' AND '",
                "' OR '",
                "' + '",
            )
            return is_dialect or ast.unparse(expression) in WRITTEN
        case ast.IfExp(body=body, orelse=orelse):
            return _is_written(body) and _is_written(orelse)
        case _:
            return ast.unparse(expression) in WRITTEN


ATTACK = "x' OR '1'='1"

KINDS = {
    ColumnKind.TEXT: ("a", ATTACK),
    ColumnKind.FOLDING: ("a", ATTACK),
    ColumnKind.OTHER: ("a", "?"),
}
"""Values of columns of these kinds, one harmless."""


def _statements(database: str, kind: ColumnKind, value: object) -> Iterator[Statement]:
    dialect = dialect_named(database)
    described = [Column("name", kind), Column("state", kind, "", "states")]
    columns = Columns(dialect, "SELECT name FROM t", described)
    name, state = columns.column("name"), columns.column("state")
    field = FieldMapping("name", Mark("", 1, 1), ("name",))
    key = KeyColumn(name, frozenset({str(value)}))
    conditions = [
        name.compare("<", value),
        name.is_in([value, value]),
        name.not_in([value]),
        state.is_in([value]),
        key.present,
        key.missing,
        columns.equal(field, [str(value)]),
        *(columns.matching(field, str(value), match) for match in StringMatch),
    ]
    conditions.append(in_rows(name, columns, name, conditions[0]))
    for condition in conditions:
        assert isinstance(condition, Condition)
        yield columns.count(condition)
        yield columns.select(
            ["name"], condition, ((name, True),), limit=len(str(value))
        )


@pytest.mark.parametrize("database", MODULES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_text_is_the_same_for_other_values(database: str, kind: ColumnKind) -> None:
    plain, attack = (_statements(database, kind, value) for value in KINDS[kind])
    for one, other in zip(plain, attack, strict=True):
        assert one.sql == other.sql
        assert one.sql.count(MARK) == len(one.values) == len(other.values)


def test_placeholders_are_those_of_the_driver() -> None:
    statement = Statement(
        f"SELECT a % 2, '?' FROM t WHERE b = {MARK} OR c = {MARK}", (1, 2)
    )
    assert statement.text("%s") == "SELECT a %% 2, '?' FROM t WHERE b = %s OR c = %s"
    assert statement.text("?") == "SELECT a % 2, '?' FROM t WHERE b = ? OR c = ?"
    assert statement.text(":v") == "SELECT a % 2, '?' FROM t WHERE b = :v1 OR c = :v2"
    # Without values the driver reads no placeholders.
    assert Statement("SELECT a % 2").text("%s") == "SELECT a % 2"
