"""What databases themselves ensure: no writing, timeouts, accounts that only read."""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    AdapterError,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceBusyError,
    SourceDataError,
    SourceTimedOutError,
    SourceUnavailableError,
    TooCostlyError,
)
from adapters.mapping.load import load_mapping
from adapters.sql.catalog import read_catalogue
from adapters.sql.engine import Database
from adapters.testing.harness import ask, patient, token
from adapters.testing.hospital import EDGES, VISIT_SYSTEMS
from tests.databases import NewDatabase
from tests.hospital_sql import Tables, mapping_text
from tests.mariadb_server import MariaServer

KINDS = ("sqlite", "postgresql", "mariadb")

SLOW = {
    "sqlite": "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n)"
    " SELECT MAX(a) AS a FROM n",
    "postgresql": "SELECT 1 AS a FROM pg_sleep(60)",
    "mariadb": "SELECT SLEEP(60) AS a",
}
"""A SELECT that takes longer than anybody waits."""

MAY_WRITE = "the account of the source may change tables"


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def url(
    kind: str,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """Return a database with the tables of the hospital, whose owner is asking."""
    found = f"sqlite:///{tmp_path_factory.mktemp('pas') / 'pas.db'}"
    if kind == "postgresql":
        found = request.getfixturevalue("new_postgresql")("unicode")
    if kind == "mariadb":
        found = request.getfixturevalue("mariadb_server").new_database()
    Tables(found, EDGES).close()
    return found


def opened(url: str, directory: Path, **keys: str) -> Adapter:
    said = "".join(f", {key}: {value}" for key, value in keys.items())
    text = mapping_text(EDGES).replace(", may_write: true", said)
    file = directory / "hospital.yaml"
    file.write_text(text, encoding="utf-8")
    return open_adapter(load_mapping(file, {"PAS_URL": url}))


@pytest.mark.parametrize("descending", [False, True])
def test_a_search_that_names_its_rows_is_one_statement(
    kind: str, url: str, tmp_path: Path, descending: bool
) -> None:
    """In the order that two have, and a walk goes on from it."""
    sort = Sort(SortKey.LAST_UPDATED, descending)
    first = ask(patient("1", "2", "3"), sort=sort)
    with closing(opened(url, tmp_path)) as adapter:
        # SQLite has times as texts, and '' for none.
        assert _statements(adapter, first) == (2 if kind == "sqlite" else 1)
        apart = replace(first, from_end=True)
        assert _statements(adapter, apart) == 2
        rows = adapter.search(first).rows
        assert rows == adapter.search(apart).rows
        times = [row.last_updated for row in rows if not isinstance(row, RowFault)]
        assert 2 < times.count(None) < len(times) - 2
        for count in (1, 2, 7):
            page = adapter.search(replace(first, count=count))
            walked = [*page.rows]
            while page.more:
                onwards = replace(first, count=count, after=page.last)
                page = adapter.search(onwards)
                walked += page.rows
            assert tuple(walked) == rows


def test_a_search_that_may_find_many_rows_is_two(url: str, tmp_path: Path) -> None:
    sort = Sort(SortKey.LAST_UPDATED)
    with closing(opened(url, tmp_path)) as adapter:
        any_number = token("identifier", f"{VISIT_SYSTEMS['H1']}|")
        for wanted in (token("class", "IMP"), any_number):
            assert _statements(adapter, ask(wanted, sort=sort)) == 2, wanted


def _statements(adapter: Adapter, query: SearchQuery) -> int:
    return adapter.explain(query).count("ORDER BY")


def problems(adapter: Adapter) -> list[str]:
    try:
        return [problem.text for problem in adapter.check()]
    finally:
        adapter.close()


def test_connections_do_not_write(url: str) -> None:
    refused = (
        "DELETE FROM stays",
        "UPDATE stays SET visit = NULL",
        "INSERT INTO organizations (code) VALUES ('N')",
        "DROP TABLE stays",
        "CREATE TABLE more (a INTEGER)",
    )
    with closing(Database(url, 5, 1)) as database:
        for statement in refused:
            with pytest.raises(AdapterError) as error:
                run(database, statement)
            assert re.search(r"(?i)read.?only", str(error.value.__cause__))
        assert run(database, "SELECT COUNT(*) FROM stays") == [(len(EDGES.stays),)]


def run(database: Database, statement: str) -> list[tuple[object, ...]]:
    def ask(connection: sa.Connection) -> list[tuple[object, ...]]:
        result = connection.exec_driver_sql(statement)
        return [tuple(row) for row in result] if result.returns_rows else []

    return database.run(ask)


def test_a_slow_statement_is_ended_and_the_next_one_runs(kind: str, url: str) -> None:
    with closing(Database(url, 0.3, 1)) as database:
        with pytest.raises(SourceTimedOutError):
            run(database, SLOW[kind])
        assert run(database, "SELECT 1") == [(1,)]


def test_closing_leaves_no_connection_open(url: str) -> None:
    database = Database(url, 5, 2)
    pool: Any = database._engine.pool
    run(database, "SELECT 1")
    assert (pool.checkedin(), pool.checkedout()) == (1, 0)
    database.close()
    assert pool.checkedin() == 0


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_postgresql_is_given_time_limits(url: str) -> None:
    options = ("connect_timeout", "tcp_user_timeout", "keepalives_idle")
    with closing(Database(f"{url}&keepalives_idle=20", 2.5, 1)) as database:
        assert run(database, "SHOW statement_timeout") == [("2500ms",)]
        assert run(database, "SHOW transaction_read_only") == [("on",)]
        connection: Any = database.run(lambda c: c.connection.driver_connection)
        parameters = connection.info.get_parameters()
        assert [parameters[name] for name in options] == ["3", "3500", "20"]
        assert connection.prepare_threshold is None


def test_a_source_whose_connections_are_all_in_use_is_busy(url: str) -> None:
    with closing(Database(url, 5, 1, wait=0)) as database:

        def ask(_: sa.Connection) -> None:
            with pytest.raises(SourceBusyError):
                run(database, "SELECT 1")

        database.run(ask)
        assert run(database, "SELECT 1") == [(1,)]


def test_a_database_that_is_not_there_is_away_each_time() -> None:
    with closing(Database("sqlite:////nowhere/at/all", 5, 1, wait=0)) as database:
        for _ in range(2):
            with pytest.raises(SourceUnavailableError, match="took no connection"):
                run(database, "SELECT 1")


def test_a_slow_count_is_too_costly(url: str, tmp_path: Path) -> None:
    others = " ".join(f"CROSS JOIN stays s{number}" for number in range(5))
    slow = f"FROM stays s {others} LEFT JOIN"
    text = mapping_text(EDGES).replace("FROM stays s LEFT JOIN", slow)
    text = text.replace("may_write: true", "count_timeout_seconds: 0.2")
    file = tmp_path / "hospital.yaml"
    file.write_text(text, encoding="utf-8")
    adapter = open_adapter(load_mapping(file, {"PAS_URL": url}))
    with pytest.raises(TooCostlyError):
        adapter.count(ask())
    adapter.close()


def test_an_account_that_may_write_is_a_problem(
    kind: str, url: str, tmp_path: Path
) -> None:
    expected = [] if kind == "sqlite" else [MAY_WRITE]
    told = problems(opened(url, tmp_path))
    # File, line and column of the source stand before it.
    assert [text.split(": ")[1] for text in told] == expected
    assert all(re.search(r"hospital\.yaml:\d+:\d+: ", text) for text in told)


def test_it_is_none_when_the_mapping_allows_it(url: str, tmp_path: Path) -> None:
    assert problems(opened(url, tmp_path, may_write="true")) == []


@pytest.fixture
def reader(kind: str, url: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the address of the same tables for an account that may only read."""
    address = make_url(url)
    if kind == "sqlite":
        yield url
    if kind == "mariadb":
        server: MariaServer = request.getfixturevalue("mariadb_server")
        server.run(
            "CREATE USER reader@localhost",
            f"GRANT SELECT ON {address.database}.* TO reader@localhost",
        )
        yield server.url(str(address.database), "reader")
        server.run("DROP USER reader@localhost")
    if kind == "postgresql":
        plain = address.set(drivername="postgresql").render_as_string(False)
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute("CREATE ROLE reader LOGIN")
            connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
            yield address.set(username="reader").render_as_string(False)
            connection.execute("DROP OWNED BY reader")
            connection.execute("DROP ROLE reader")


def test_an_account_that_only_reads_is_none(reader: str, tmp_path: Path) -> None:
    adapter = opened(reader, tmp_path)
    assert adapter.count(ask()) > 0
    assert problems(adapter) == []


@pytest.mark.parametrize("right", ["INSERT", "UPDATE", "DELETE"])
def test_one_right_to_write_one_table_is_enough(
    kind: str, url: str, reader: str, right: str, tmp_path: Path
) -> None:
    if kind == "sqlite":
        pytest.skip("SQLite has no accounts")
    account = "reader@localhost" if kind == "mariadb" else "reader"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"GRANT {right} ON patients TO {account}")
    engine.dispose()
    assert len(problems(opened(reader, tmp_path))) == 1


def test_a_database_that_is_down_is_an_outage(
    new_postgresql: NewDatabase, tmp_path: Path
) -> None:
    address = make_url(new_postgresql("unicode")).set(database="gone")
    adapter = opened(address.render_as_string(False), tmp_path)
    told = list(adapter.check())
    adapter.close()
    assert told
    assert all(problem.serious and problem.outage for problem in told)


def test_a_column_that_is_gone_is_no_outage(
    kind: str, url: str, tmp_path: Path
) -> None:
    text = mapping_text(EDGES).replace("s.changed\n", "s.nosuch\n")
    file = tmp_path / "hospital.yaml"
    file.write_text(text, encoding="utf-8")
    adapter = open_adapter(load_mapping(file, {"PAS_URL": url}))
    told = list(adapter.check())
    adapter.close()
    assert told
    assert not any(problem.outage for problem in told)


REFUSED = {
    "two columns of one name": "SELECT code, title, finess, finess, changed FROM organizations",
    "a lock": "SELECT code, title, finess, changed FROM organizations FOR UPDATE",
    "a change": "WITH gone AS (DELETE FROM organizations RETURNING code, title, finess,"
    " changed) SELECT code, title, finess, changed FROM gone",
    "a sum of what is no group": "SELECT code, title, finess, MAX(SUM(1)) AS changed"
    " FROM organizations",
}
"""SELECTs with which no search could ever be answered."""


@pytest.mark.parametrize("rows", REFUSED.values(), ids=REFUSED)
def test_a_select_that_can_never_run_is_no_outage(
    kind: str, url: str, rows: str, tmp_path: Path
) -> None:
    if kind == "sqlite" and "finess, finess" in rows:
        pytest.skip("SQLite gives the second a name of its own")
    if kind == "mariadb" and "FOR UPDATE" in rows:
        pytest.skip("MariaDB allows it in a SELECT of a SELECT, and locks nothing")
    text = mapping_text(EDGES).replace(
        "SELECT code, title, finess, changed FROM organizations", rows
    )
    assert rows in text
    file = tmp_path / "hospital.yaml"
    file.write_text(text, encoding="utf-8")
    adapter = open_adapter(load_mapping(file, {"PAS_URL": url}))
    told = list(adapter.check())
    adapter.close()
    assert [problem.outage for problem in told] == [False]
    assert re.match(r".*hospital\.yaml:\d+:\d+: Organization", told[0].text)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("firebird://h/db", "no such kind of database: firebird"),
        ("postgresql://u:se@cr:et@h:x/db", "the address cannot be read"),
        ("postgresql://u:p@h:secret/db", "the address cannot be read"),
        ("postgresql://u:secret@h:54322222/db", "the address has a port that is none"),
        ("mysql://u:secret@h:0/db", "the address has a port that is none"),
        ("postgresql://u:p@/db?host=h&port=secret", "the address has an option that"),
    ],
)
def test_an_address_that_is_none_is_told_at_its_place(
    url: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(SourceDataError) as refused:
        opened(url, tmp_path)
    assert re.search(rf"hospital\.yaml:\d+:\d+: {said}", str(refused.value))
    assert not re.search("secret|cr:et", str(refused.value))


@pytest.mark.parametrize(
    "option",
    [
        "postgresql://u:secret@127.0.0.1:1/db?sslmodee=secret",
        "mysql://u:secret@127.0.0.1:1/db?nonsense=secret",
        "mariadb://u:secret@127.0.0.1:1/db?connect_timeout=secret",
        "mariadb://u:secret@127.0.0.1:1/db?ssl=secret",
    ],
)
def test_an_option_that_no_driver_takes_is_no_outage(option: str) -> None:
    for asked in (
        lambda database: database.columns("SELECT 1 AS one"),
        lambda database: read_catalogue(database, ()),
    ):
        with pytest.raises(SourceDataError, match="has an option that the dr") as told:
            asked(Database(option, 5, 1))
        assert "secret" not in str(told.value)


def test_a_file_of_an_address_that_is_not_there_is_an_outage() -> None:
    database = Database("mariadb://u:p@127.0.0.1:1/db?ssl_ca=/nowhere/secret.pem", 5, 1)
    with pytest.raises(SourceUnavailableError) as told:
        database.columns("SELECT 1 AS one")
    said = "a file that the address names cannot be read (No such file or directory)"
    assert str(told.value) == said
    database.close()


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        ("sslmode=secret", "sslmode"),
        ("sslmode=verify-full&target_session_attrs=secret", "target_session_attrs"),
        ("keepalives_idle=secret&sslmode=require", "keepalives_idle"),
        ("host=127.0.0.1:1&host=127.0.0.2:1&sslmode=secret", "sslmode"),
        ("service=secret", "service"),
        # Each by itself is a good one.
        ("sslmode=disable&sslrootcert=system", "sslmode"),
    ],
)
def test_a_value_that_no_driver_takes_is_told_by_its_option(
    asked: str, option: str
) -> None:
    said = f"the address has a value of {option} that the driver does not take"
    database = Database(f"postgresql://u:secret@127.0.0.1:1/db?{asked}", 5, 1)
    with pytest.raises(SourceDataError) as told:
        database.columns("SELECT 1 AS one")
    assert str(told.value) == said
    with pytest.raises(SourceDataError) as told:
        database.run(lambda connection: connection.scalar(sa.text("SELECT 1")))
    assert str(told.value) == said
    database.close()


@pytest.mark.parametrize(
    "asked",
    ["", "sslmode=verify-full&sslrootcert=/nowhere/at/all", "application_name=x"],
)
def test_options_that_are_good_leave_an_outage_one(asked: str) -> None:
    database = Database(f"postgresql://u:secret@127.0.0.1:1/db?{asked}", 5, 1)
    with pytest.raises(SourceUnavailableError, match="took no connection"):
        database.columns("SELECT 1 AS one")
    database.close()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("sslmodee=secret", "the address has an option that the driver does not take"),
        (
            "sslmode=secret",
            "the address has a value of sslmode that the driver does not take",
        ),
    ],
)
def test_such_an_option_is_told_by_a_check_and_lasts(
    asked: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "hospital.yaml"
    file.write_text(mapping_text(EDGES), encoding="utf-8")
    url = f"postgresql://u:secret@127.0.0.1:1/db?{asked}"
    adapter = open_adapter(load_mapping(file, {"PAS_URL": url}))
    told = list(adapter.check())
    adapter.close()
    assert {problem.outage for problem in told} == {False}
    assert {problem.text.rpartition(": ")[2] for problem in told} == {said}
