"""What the text of a SELECT shows of the columns that it compares."""

import pytest

from toolkit.checks.selects import (
    comparisons,
    table_behind,
    with_outer_joins,
)

OUTER = "SELECT s.id, {} AS x FROM stays s"


def found(rows: str) -> list[tuple[str, str]]:
    return [(str(inner), str(outer)) for inner, outer in comparisons(rows)]


@pytest.mark.parametrize(
    "subquery",
    [
        "(SELECT MAX(m.bed) FROM moves m WHERE m.stay = s.id)",
        "(SELECT MAX(m.bed) FROM moves AS m WHERE (s.id = m.stay AND m.bed = 'a = b)'))",
        "(SELECT bed FROM moves WHERE stay = s.id)",
        "(SELECT m.bed FROM moves m -- m.bed = s.unit\n WHERE m.stay = s.id)",
    ],
)
def test_a_column_of_a_subquery_is_compared_with_one_outside(subquery: str) -> None:
    assert found(OUTER.format(subquery)) == [("moves.stay", "stays.id")]


def test_the_later_table_of_one_select_is_looked_up() -> None:
    rows = (
        "SELECT s.id FROM stays s LEFT JOIN units u ON s.unit = u.code WHERE s.id = 5"
    )
    assert found(rows) == [("units.code", "stays.unit")]


@pytest.mark.parametrize(
    ("rows", "table"),
    [
        (
            "SELECT REPLACE(s.no, '/', '-') AS id FROM wards w JOIN stays s ON s.w = w.id",
            "stays",
        ),
        ("SELECT 'a-' || id AS id FROM stays", "stays"),
        ("SELECT x.id FROM stays x WHERE x.id > 1", "stays"),
        ("SELECT 'a-' || id AS id FROM (SELECT * FROM stays) x", ""),
        ("SELECT 'a' || id AS id FROM a UNION ALL SELECT 'b' || id FROM b", ""),
        ("SELECT CONCAT('a', id) AS id FROM moves GROUP BY id", ""),
        ("SELECT DISTINCT CONCAT('a', id) AS id FROM moves", ""),
    ],
)
def test_the_table_of_a_computed_id(rows: str, table: str) -> None:
    assert table_behind(rows, "id") == table


@pytest.mark.parametrize(
    ("rows", "outer"),
    [
        ("s JOIN a ON a.x = s.x", "s LEFT JOIN a ON a.x = s.x"),
        (
            "s INNER JOIN a ON a.x = s.x WHERE s.y = 1",
            "s LEFT JOIN a ON a.x = s.x WHERE s.y = 1",
        ),
        ("s LEFT JOIN a ON a.x = s.x", "s LEFT JOIN a ON a.x = s.x"),
        ("s CROSS JOIN a", "s CROSS JOIN a"),
        (
            "s JOIN a ON a.x = s.x AND a.kind = 'N'",
            "s JOIN a ON a.x = s.x AND a.kind = 'N'",
        ),
        (
            "s JOIN a ON a.x = s.x AND a.gone = 0",
            "s JOIN a ON a.x = s.x AND a.gone = 0",
        ),
        (
            "s WHERE s.a IN (SELECT t.a FROM t JOIN a)",
            "s WHERE s.a IN (SELECT t.a FROM t JOIN a)",
        ),
    ],
)
def test_a_join_of_columns_alone_may_keep_all_rows(rows: str, outer: str) -> None:
    assert with_outer_joins(f"SELECT * FROM {rows}") == f"SELECT * FROM {outer}"
