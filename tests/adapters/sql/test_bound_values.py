"""No value is ever written into SQL: what its text is made of, and that values leave it alone."""

import pytest

from adapters.contract import StringMatch
from adapters.mapping.model import FieldMapping, Mark
from adapters.sql.columns import Column, ColumnKind
from adapters.sql.dialects import MODULES, dialect_named
from adapters.sql.dialects.base import MARK, Statement
from adapters.sql.query import Columns, KeyColumn, in_rows

ATTACK = "x' OR '1'='1"

KINDS = {
    ColumnKind.TEXT: ("a", ATTACK),
    ColumnKind.FOLDING: ("a", ATTACK),
    ColumnKind.OTHER: ("a", "?"),
}
"""Values of columns of these kinds, one harmless."""


def _statements(database, kind, value):
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
        yield columns.count(condition)
        yield columns.select(
            ["name"], condition, ((name, True),), limit=len(str(value))
        )


@pytest.mark.parametrize("database", MODULES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_text_is_the_same_for_other_values(database, kind):
    plain, attack = (_statements(database, kind, value) for value in KINDS[kind])
    for one, other in zip(plain, attack, strict=True):
        assert one.sql == other.sql
        assert one.sql.count(MARK) == len(one.values) == len(other.values)


def test_placeholders_are_those_of_the_driver():
    statement = Statement(
        f"SELECT a % 2, '?' FROM t WHERE b = {MARK} OR c = {MARK}", (1, 2)
    )
    assert statement.text("%s") == "SELECT a %% 2, '?' FROM t WHERE b = %s OR c = %s"
    assert statement.text("?") == "SELECT a % 2, '?' FROM t WHERE b = ? OR c = ?"
    assert statement.text(":v") == "SELECT a % 2, '?' FROM t WHERE b = :v1 OR c = :v2"
    # Without values the driver reads no placeholders.
    assert Statement("SELECT a % 2").text("%s") == "SELECT a % 2"
