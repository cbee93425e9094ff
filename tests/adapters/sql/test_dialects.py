"""What is particular to a database: texts and times of MariaDB and MySQL, errors, folding."""

from contextlib import closing
from importlib import import_module
from types import SimpleNamespace

import pytest

from adapters.contract import SourceUnavailableError
from adapters.sql.columns import Column, ColumnKind, held
from adapters.sql.dialects import dialect_named
from adapters.sql.dialects.oracle import _column
from adapters.sql.dialects.sqlserver import _kind
from adapters.sql.engine import Database
from adapters.sql.query import Columns, KeyColumn
from tests.adapters.emptied import altered, table


def test_postgresql_tells_which_columns_are_never_null(postgresql_url):
    altered(
        postgresql_url,
        *table("stays", "id BIGINT PRIMARY KEY"),
        *table("visits", "stay BIGINT"),
    )
    on = "JOIN stays s ON s.id = v.stay"
    with closing(Database(postgresql_url, 5, 1)) as database:
        for rows, is_nullable in {
            "SELECT id FROM stays": False,
            f"SELECT s.id, v.stay FROM visits v RIGHT {on}": False,
            f"SELECT s.id, v.stay FROM visits v LEFT {on}": True,
            f"SELECT s.id, v.stay FROM visits v FULL {on}": True,
            "WITH s AS MATERIALIZED (SELECT id FROM stays)"
            " SELECT s.id FROM visits v LEFT JOIN s ON s.id = v.stay": True,
            "SELECT id FROM stays GROUP BY ROLLUP (id)": True,
            "SELECT id + 1 AS id FROM stays": True,
            "SELECT id FROM stays UNION ALL SELECT stay FROM visits": True,
        }.items():
            column, *_ = database.columns(rows)
            assert column.is_nullable is is_nullable, rows


def test_columns_of_oracle():
    for type_, scale, kind in (
        ("DB_TYPE_NUMBER", 0, ColumnKind.INTEGER),
        ("DB_TYPE_NUMBER", -127, ColumnKind.NUMBER),
        ("DB_TYPE_VARCHAR", None, ColumnKind.FILLED),
        ("DB_TYPE_CHAR", None, ColumnKind.PADDED),
        ("DB_TYPE_DATE", None, ColumnKind.SECOND_TIME),
        ("DB_TYPE_TIMESTAMP", None, ColumnKind.FINE_TIME),
        ("DB_TYPE_RAW", None, ColumnKind.BINARY),
        ("DB_TYPE_BINARY_FLOAT", None, ColumnKind.SINGLE),
        ("DB_TYPE_BINARY_DOUBLE", None, ColumnKind.DOUBLE),
        ("DB_TYPE_CLOB", None, ColumnKind.LARGE),
        ("DB_TYPE_BLOB", None, ColumnKind.LARGE),
        ("DB_TYPE_TIMESTAMP_TZ", None, ColumnKind.OTHER),
    ):
        described = (SimpleNamespace(name=type_), 10, None, 10, scale, True)
        column = Column("stay_id", kind, is_nullable=True, encoding="cp1252")
        assert _column("cp1252", "STAY_ID", *described) == column
        # A quoted name is kept.
        quoted = column._replace(name="stayId")
        assert _column("cp1252", "stayId", *described) == quoted
    national = SimpleNamespace(name="DB_TYPE_NVARCHAR"), 10, None, 10, None, True
    assert _column("cp1252", "NAME", *national).encoding == ""


def test_the_empty_text_of_oracle_is_null():
    """`x NOT IN ('')` holds for no row there: '' must not be bound."""
    for kind in (ColumnKind.FILLED, ColumnKind.PADDED):
        columns = Columns(dialect_named("oracle"), "", [Column("visit", kind)])
        key = KeyColumn(columns.column("visit"), frozenset({"-"}))
        assert key.present.values == ("-",)
        assert held(kind, "") == ()
        day = KeyColumn(columns.column("visit"), frozenset({"9999-12-31"}))
        assert day.present.values == ("9999-12-31", "9999-12-31 00:00:00")


def test_columns_of_sql_server():
    for type_, collation, kind in (
        ("nvarchar(40)", "French_CI_AS", ColumnKind.FOLDING),
        ("char(6)", "Latin1_General_100_BIN2", ColumnKind.TEXT),
        ("bigint", None, ColumnKind.INTEGER),
        ("decimal(10,2)", None, ColumnKind.NUMBER),
        ("smallmoney", None, ColumnKind.NUMBER),
        ("float", None, ColumnKind.DOUBLE),
        # That of rowversion.
        ("timestamp", None, ColumnKind.OTHER),
        ("datetime", None, ColumnKind.TICK_TIME),
        ("datetime2(7)", None, ColumnKind.FINE_TIME),
        ("binary(16)", None, ColumnKind.BINARY),
        ("image", None, ColumnKind.LARGE),
        ("ntext", "French_CI_AS", ColumnKind.LARGE),
        ("real", None, ColumnKind.SINGLE),
        ("datetimeoffset(7)", None, ColumnKind.OTHER),
        ("uniqueidentifier", None, ColumnKind.UUID),
    ):
        assert _kind(type_, collation) is kind, type_


class _OracleError(Exception):
    def __init__(self, full_code):
        super().__init__(SimpleNamespace(full_code=full_code))


def test_errors_without_a_server_of_ours_are_told_apart():
    for database, late, unknown, other in (
        ("oracle", *map(_OracleError, ("DPY-4024", "ORA-00942", "ORA-12541"))),
        ("mssql", *(Exception(code, "") for code in ("HYT00", "42S02", "08S01"))),
        ("mysql", *(Exception(code, "") for code in (3024, 1054, 2003))),
    ):
        dialect, errors = dialect_named(database), (late, unknown, other)
        assert [*map(dialect.timed_out, errors)] == [True, False, False], database
        assert [*map(dialect.unknown, errors)] == [False, True, False], database


@pytest.mark.parametrize(
    ("url", "driver"), [("oracle://u@h/s", "oracledb"), ("mssql://u@h/d", "pyodbc")]
)
def test_a_driver_that_is_not_there_is_said(url, driver):
    try:
        import_module(driver)
    except ImportError:
        with pytest.raises(SourceUnavailableError, match=r"driver .* extra"):
            Database(url, 1, 1)
    else:
        pytest.skip(f"{driver} is installed here")
