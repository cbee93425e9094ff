"""What is particular to a database: texts and times of MariaDB and MySQL, errors, folding."""

import time
from contextlib import closing
from importlib import import_module
from itertools import product
from types import SimpleNamespace

import pytest

from adapters.contract import (
    Adapter,
    NotFoundError,
    RowFault,
    Sort,
    SortKey,
    SourceUnavailableError,
)
from adapters.sql.columns import Column, ColumnKind, held
from adapters.sql.dialects import dialect_named
from adapters.sql.dialects.oracle import _column
from adapters.sql.dialects.sqlserver import _kind
from adapters.sql.engine import Database
from adapters.sql.query import Columns, KeyColumn
from tests.adapters.emptied import Opened
from tests.databases import writing
from tests.mariadb_server import MariaServer
from tests.sets import SERVERS
from toolkit.contract.harness import STAY, ask, ids_of, patient, token, walk

TABLE = """CREATE TABLE stays (
  id VARCHAR(20) COLLATE utf8mb4_general_ci, patient VARCHAR(20) COLLATE utf8mb4_unicode_ci,
  state CHAR(3) CHARACTER SET latin1, began DATETIME, ended DATETIME,
  visit VARCHAR(20) CHARACTER SET latin1, unit VARCHAR(10) COLLATE utf8mb4_bin,
  changed TIMESTAMP(6) NULL)"""

ROWS = """INSERT INTO stays VALUES
  ('A1', 'P', 'é', '2024-03-14 10:00:00', NULL, 'é', 'U', '2024-03-14 10:00:00.5'),
  ('a1', 'p', 'E', '2024-03-14 10:00:00', NULL, 'E', 'u', '2024-03-14 10:00:00.5'),
  ('Á1', 'P', 'é', '2024-03-14 10:00:00', NULL, 'É', 'U ', NULL),
  ('b-1', 'P ', 'e', '2024-03-14 10:00:01', '2024-03-14 12:00:00', 'a~b', 'x', NULL),
  ('B-1', 'P', 'é', '2024-03-14 10:00:01', '0000-00-00', 'a\\\\b', 'x', NULL)"""

MAPPING = """\
codes:
  states: {table: {é: finished, E: planned, e: in-progress}}
encounter:
  rows: SELECT *, CONCAT(id, 'a\\b') || 'c' AS joined FROM stays WHERE id NOT LIKE '%:z%'
  fields:
    id: {from: id}
    patient_id: {from: patient}
    status: {from: state, codes: states}
    start: {from: began}
    end: {from: ended}
    visit_number: {from: visit}
    functional_unit: {from: unit}
    last_updated: {from: changed}
  search: [_id, patient, date, status, identifier, service-provider._extension]
  sort: [date, _lastUpdated]
"""


OLD = ("SET SESSION sql_mode = ''", "SET SESSION time_zone = '+00:00'", TABLE, ROWS)
ON_BOTH = pytest.mark.parametrize("url", SERVERS, indirect=True)


@pytest.fixture
def adapter(opened: Opened) -> Adapter:
    """Return an adapter on tables as they were made in 2005; its tests choose the server."""
    return opened(MAPPING, OLD)


ALL = {"A1", "a1", "Á1", "b-1", "B-1"}


FOUND = {
    ("_id", "A1"): {"A1"},
    ("_id", "b-1"): {"b-1"},
    ("status", "planned"): {"a1"},
    ("status", "in-progress"): {"b-1"},
    ("identifier", "é"): {"A1"},
    ("identifier", "e"): set(),
    ("identifier", "a~b"): {"b-1"},
    ("identifier", "a\\b"): {"!ended"},
    ("identifier", "😀"): set(),
    ("identifier", "\u03b1"): set(),
    ("service-provider._extension", "u"): {"a1"},
}


@ON_BOTH
def test_codes_and_numbers_are_exact(adapter: Adapter) -> None:
    for (parameter, value), found in FOUND.items():
        query = ask(token(parameter, value))
        assert set(ids_of(adapter.search(query))) == found, value
        assert adapter.count(query) == len(found)
    for id in ("à1", "A1 ", "😀", "A\u03b11"):
        with pytest.raises(NotFoundError):
            adapter.read(STAY, id)
    # Trailing blanks, which nobody sees, make no difference.
    assert adapter.count(ask(patient("P"))) == 4
    assert adapter.count(ask(patient("p"))) == 1


@ON_BOTH
def test_no_id_is_lost_between_pages(adapter: Adapter) -> None:
    keys = (SortKey.DATE, SortKey.ID, SortKey.LAST_UPDATED)
    for key, descending, size in product(keys, (False, True), (1, 2, 3)):
        query = ask(sort=Sort(key, descending), count=size)
        rows = [row for page in walk(adapter, query) for row in page.rows]
        assert len(rows) == len(ALL)
        assert [isinstance(row, RowFault) for row in rows].count(True) == 2


def test_postgresql_tells_which_columns_are_never_null(postgresql_url: str) -> None:
    engine = writing(postgresql_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE stays (id BIGINT PRIMARY KEY)")
        connection.exec_driver_sql("CREATE TABLE visits (stay BIGINT)")
    engine.dispose()
    on = "JOIN stays s ON s.id = v.stay"
    with closing(Database(postgresql_url, 5, 1)) as database:
        for rows, is_nullable in {
            "SELECT id FROM stays": False,
            f"SELECT s.id FROM visits v {on}": False,
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


@pytest.mark.parametrize(
    ("url", "server"), [(kind, kind) for kind in SERVERS], indirect=True
)
def test_a_connection_that_was_closed_meanwhile_is_replaced(
    adapter: Adapter, server: MariaServer
) -> None:
    assert len(ids_of(adapter.search(ask()))) == len(ALL)
    server.kill_connections()
    assert len(ids_of(adapter.search(ask()))) == len(ALL)


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_the_clock_of_the_server_is_read(server: MariaServer) -> None:
    with closing(Database(server.new_database(), 30, 1)) as database:
        now = database.server_time()
    assert now is not None
    assert abs(now.timestamp() - time.time()) < 60


UNSIGNED = """\
encounter:
  rows: SELECT id, visit FROM numbers
  fields: {id: {from: id}, patient_id: {from: id}, status: finished, visit_number: {from: visit}}
  search: [_id, patient, identifier]
"""


@ON_BOTH
def test_a_number_without_sign_is_found_as_it_is_shown(opened: Opened) -> None:
    """Up to 2^64; nothing is found for what is beyond, nor for what is below nought."""
    large = [2**64 - 1, 2**63, 2**63 - 1, 0]
    create = "CREATE TABLE numbers (id BIGINT UNSIGNED, visit BIGINT)"
    rows = (f"INSERT INTO numbers VALUES ({id}, {id - 2**63})" for id in large)
    adapter = opened(UNSIGNED, (create, *rows))
    by_id = Sort(SortKey.ID, descending=True)
    pages = list(walk(adapter, ask(sort=by_id, count=1)))
    assert [id for page in pages for id in ids_of(page)] == [*map(str, large)]
    for id in map(str, large):
        assert adapter.read(STAY, id).id == id
        assert ids_of(adapter.search(ask(token("_id", id)))) == [id]
        assert ids_of(adapter.search(ask(patient(id)))) == [id]
    number = token("identifier", str(-(2**63)))
    assert ids_of(adapter.search(ask(number))) == ["0"]
    for other in (str(2**64), "-1", "9" * 40):
        assert ids_of(adapter.search(ask(token("_id", other)))) == []
        with pytest.raises(NotFoundError):
            adapter.read(STAY, other)


def test_columns_of_oracle() -> None:
    for type_, scale, kind in (
        ("DB_TYPE_NUMBER", 0, ColumnKind.INTEGER),
        ("DB_TYPE_NUMBER", -127, ColumnKind.NUMBER),
        ("DB_TYPE_VARCHAR", None, ColumnKind.FILLED),
        ("DB_TYPE_CHAR", None, ColumnKind.PADDED),
        ("DB_TYPE_DATE", None, ColumnKind.SECOND_TIME),
        ("DB_TYPE_TIMESTAMP", None, ColumnKind.FINE_TIME),
        ("DB_TYPE_RAW", None, ColumnKind.BINARY),
        ("DB_TYPE_BINARY_FLOAT", None, ColumnKind.SINGLE),
        ("DB_TYPE_CLOB", None, ColumnKind.LARGE),
        ("DB_TYPE_BLOB", None, ColumnKind.LARGE),
        ("DB_TYPE_TIMESTAMP_TZ", None, ColumnKind.OTHER),
    ):
        for null in (True, False):
            described = (SimpleNamespace(name=type_), 10, None, 10, scale, null)
            column = Column("stay_id", kind, is_nullable=null, encoding="cp1252")
            assert _column("cp1252", "STAY_ID", *described) == column
            # A quoted name is kept.
            quoted = column._replace(name="stayId")
            assert _column("cp1252", "stayId", *described) == quoted
    national = SimpleNamespace(name="DB_TYPE_NVARCHAR"), 10, None, 10, None, True
    assert _column("cp1252", "NAME", *national).encoding == ""


def test_the_empty_text_of_oracle_is_null() -> None:
    """`x NOT IN ('')` holds for no row there: '' must not be bound."""
    for kind in (ColumnKind.FILLED, ColumnKind.PADDED):
        columns = Columns(dialect_named("oracle"), "", [Column("visit", kind)])
        key = KeyColumn(columns.column("visit"), frozenset({"-"}))
        assert key.present.values == ("-",)
        assert held(kind, "") == ()
        day = KeyColumn(columns.column("visit"), frozenset({"9999-12-31"}))
        assert day.present.values == ("9999-12-31", "9999-12-31 00:00:00")


def test_columns_of_sql_server() -> None:
    for type_, collation, kind in (
        ("nvarchar(40)", "French_CI_AS", ColumnKind.FOLDING),
        ("char(6)", "Latin1_General_100_BIN2", ColumnKind.TEXT),
        ("bigint", None, ColumnKind.INTEGER),
        ("decimal(10,2)", None, ColumnKind.NUMBER),
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
    def __init__(self, full_code: str) -> None:
        super().__init__(SimpleNamespace(full_code=full_code))


def test_errors_without_a_server_of_ours_are_told_apart() -> None:
    for database, late, unknown, other in (
        ("oracle", *map(_OracleError, ("DPY-4024", "ORA-00942", "ORA-12541"))),
        ("oracle", *map(_OracleError, ("DPY-4024", "ORA-00904", "ORA-12541"))),
        ("mssql", *(Exception(code, "") for code in ("HYT00", "42S02", "08S01"))),
        ("mysql", *(Exception(code, "") for code in (3024, 1054, 2003))),
    ):
        dialect, errors = dialect_named(database), (late, unknown, other)
        assert [*map(dialect.timed_out, errors)] == [True, False, False], database
        assert [*map(dialect.unknown, errors)] == [False, True, False], database


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
