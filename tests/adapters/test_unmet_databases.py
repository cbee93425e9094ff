"""Oracle and SQL Server, as far as they can be held without a server of theirs."""

from importlib import import_module
from types import SimpleNamespace

import pytest

from adapters.contract import SourceUnavailableError
from adapters.sql.columns import Column, Kind, held
from adapters.sql.database import Database
from adapters.sql.dialects import dialect_named
from adapters.sql.dialects.oracle import _column
from adapters.sql.dialects.sqlserver import _kind
from adapters.sql.moments import KeyColumn


@pytest.mark.parametrize(
    ("type_", "scale", "kind"),
    [
        ("DB_TYPE_NUMBER", 0, Kind.INTEGER),
        ("DB_TYPE_NUMBER", -127, Kind.NUMBER),
        ("DB_TYPE_VARCHAR", None, Kind.FILLED),
        ("DB_TYPE_CHAR", None, Kind.PADDED),
        ("DB_TYPE_DATE", None, Kind.SECOND_TIME),
        ("DB_TYPE_TIMESTAMP", None, Kind.LOCAL_TIME),
        ("DB_TYPE_CLOB", None, Kind.OTHER),
    ],
)
def test_columns_of_oracle(type_: str, scale: int | None, kind: Kind) -> None:
    described = (SimpleNamespace(name=type_), 10, None, 10, scale)
    assert _column("STAY_ID", *described[:5]) == Column("stay_id", kind)


def test_a_quoted_name_of_oracle_is_kept() -> None:
    described = (SimpleNamespace(name="DB_TYPE_VARCHAR"), 10, None, None, None)
    assert _column("stayId", *described).name == "stayId"


def test_the_empty_text_of_oracle_is_null() -> None:
    """`x NOT IN ('')` holds for no row there: '' must not be bound."""
    for kind in (Kind.FILLED, Kind.PADDED):
        key = KeyColumn(Column("visit", kind), frozenset({"-"}))
        assert key.present.values == ("-",)
        assert held(kind, "") == ()


@pytest.mark.parametrize(
    ("type_", "collation", "kind"),
    [
        ("nvarchar(40)", "French_CI_AS", Kind.FOLDING),
        ("char(6)", "Latin1_General_100_BIN2", Kind.TEXT),
        ("bigint", None, Kind.INTEGER),
        ("decimal(10,2)", None, Kind.NUMBER),
        ("datetime", None, Kind.TICK_TIME),
        ("datetime2(7)", None, Kind.LOCAL_TIME),
        ("datetimeoffset(7)", None, Kind.OTHER),
        ("uniqueidentifier", None, Kind.UUID),
    ],
)
def test_columns_of_sql_server(type_: str, collation: str | None, kind: Kind) -> None:
    assert _kind(type_, collation) is kind


class _OracleError(Exception):
    def __init__(self, full_code: str) -> None:
        super().__init__(SimpleNamespace(full_code=full_code))


@pytest.mark.parametrize(
    ("database", "error", "timed_out", "unknown"),
    [
        ("oracle", _OracleError("DPY-4024"), True, False),
        ("oracle", _OracleError("ORA-00942"), False, True),
        ("oracle", _OracleError("ORA-00904"), False, True),
        ("oracle", _OracleError("ORA-12541"), False, False),
        ("mssql", Exception("HYT00", "timeout"), True, False),
        ("mssql", Exception("42S02", "no table"), False, True),
        ("mssql", Exception("08S01", "link"), False, False),
        ("mysql", Exception(3024, "MySQL's own time-out"), True, False),
        ("mysql", Exception(1054, "no column"), False, True),
        ("mysql", Exception(2003, "no server"), False, False),
    ],
    ids=str,
)
def test_faults_are_told_apart(
    database: str, error: Exception, timed_out: bool, unknown: bool
) -> None:
    dialect = dialect_named(database)
    assert dialect.timed_out(error) is timed_out
    assert dialect.unknown(error) is unknown


@pytest.mark.parametrize(
    ("url", "driver"),
    [("oracle://u@h/s", "oracledb"), ("mssql://u@h/d", "pyodbc")],
)
def test_a_driver_that_is_not_there_is_said(url: str, driver: str) -> None:
    try:
        import_module(driver)
    except ImportError:
        with pytest.raises(SourceUnavailableError, match=r"driver .* extra"):
            Database(url, 1, 1)
    else:
        pytest.skip(f"{driver} is installed here")
