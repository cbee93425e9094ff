"""What the text of a SELECT shows of the columns that it compares."""

import pytest

from toolkit.checks.selects import comparisons, table_behind, with_outer_joins


@pytest.mark.parametrize(
    "rows",
    [
        "(SELECT MAX(m.bed) FROM moves m WHERE m.stay = s.id)",
        "(SELECT 1 FROM moves AS m WHERE (s.id = m.stay AND m.bed = 'a = b)'))",
        "(SELECT bed FROM moves WHERE stay = s.id)",
        "(SELECT 1 FROM moves m -- m.bed = s.unit\n WHERE m.stay = s.id)",
    ],
)
def test_a_column_of_a_subquery_is_compared_with_one_outside(rows):
    ((inner, outer),) = comparisons(f"SELECT s.id, {rows} AS x FROM stays s")
    assert (str(inner), str(outer)) == ("moves.stay", "stays.id")


@pytest.mark.parametrize(
    ("rows", "table"),
    [
        (
            "REPLACE(s.no, '/', '-') AS id FROM wards w JOIN stays s ON s.w = w.id",
            "stays",
        ),
        ("'a-' || id AS id FROM stays", "stays"),
        ("'a-' || id AS id FROM (SELECT * FROM stays) x", ""),
        ("'a' || id AS id FROM a UNION ALL SELECT 'b' || id FROM b", ""),
        ("CONCAT('a', id) AS id FROM moves GROUP BY id", ""),
        ("DISTINCT CONCAT('a', id) AS id FROM moves", ""),
    ],
)
def test_the_table_of_a_computed_id(rows, table):
    assert table_behind(f"SELECT {rows}", "id") == table


@pytest.mark.parametrize(
    ("rows", "outer"),
    [
        ("s JOIN a ON a.x = s.x", "s LEFT JOIN a ON a.x = s.x"),
        (
            "s INNER JOIN a ON a.x = s.x WHERE s.y = 1",
            "s LEFT JOIN a ON a.x = s.x WHERE s.y = 1",
        ),
        *(
            (rows, rows)
            for rows in (
                "s LEFT JOIN a ON a.x = s.x",
                "s CROSS JOIN a",
                "s JOIN a ON a.x = s.x AND a.kind = 'N'",
                "s JOIN a ON a.x = s.x AND a.gone = 0",
                "s WHERE s.a IN (SELECT t.a FROM t JOIN a)",
            )
        ),
    ],
)
def test_a_join_of_columns_alone_may_keep_all_rows(rows, outer):
    assert with_outer_joins(f"SELECT * FROM {rows}") == f"SELECT * FROM {outer}"
