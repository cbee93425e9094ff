"""What databases themselves ensure: no writing, timeouts, accounts that only read."""

import re
import signal
from contextlib import closing
from dataclasses import replace
from threading import Timer
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import make_url

from adapters import open_adapter
from adapters.contract import (
    AdapterError,
    Sort,
    SortKey,
    SourceBusyError,
    SourceDataError,
    SourceTimedOutError,
    SourceUnavailableError,
    TooCostlyError,
)
from adapters.mapping.load import load_mapping
from adapters.sql.dialects.base import Statement, execute
from adapters.sql.dialects.refusals import PORT
from adapters.sql.engine import Database, open_databases
from tests.adapters.emptied import altered
from tests.databases import new_database
from tests.hospital_sql import Tables, mapping_text
from tests.live import wait_until
from tests.sets import SERVERS
from toolkit.catalogue import read_catalogue
from toolkit.contract.harness import ask, patient, token, walk
from toolkit.contract.hospital import EDGES

KINDS = ("sqlite", "postgresql", *SERVERS)

SLOW = {
    "sqlite": "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n)"
    " SELECT MAX(a) AS a FROM n",
    "postgresql": "SELECT 1 AS a FROM pg_sleep(60)",
    "mariadb": "SELECT SLEEP(60) AS a",
    # A SLEEP that MySQL ends is no error.
    "mysql": "SELECT COUNT(*) AS a FROM information_schema.collations AS a,"
    " information_schema.collations AS b, information_schema.collations AS c,"
    " information_schema.collations AS d",
}
"""A SELECT that takes longer than anybody waits."""


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return str(request.param)


@pytest.fixture(scope="module")
def url(kind, request):
    """Return a database with the tables of the hospital, whose owner is asking."""
    url = new_database(kind, request)
    Tables(url, EDGES).close()
    return url


def on(*kinds):
    return pytest.mark.parametrize("kind", kinds, indirect=True)


def opened(url, directory, change=("", ""), **keys):
    said = "".join(f", {key}: {value}" for key, value in keys.items())
    text = mapping_text(EDGES).replace(", may_write: true", said)
    assert change[0] in text
    file = directory / "hospital.yaml"
    file.write_text(text.replace(*change) if change[0] else text, encoding="utf-8")
    return open_adapter(load_mapping(file, {"PAS_URL": url}))


@on("sqlite", "postgresql")
def test_a_search_that_names_its_rows_is_one_statement(kind, url, tmp_path):
    """In the order that two have, and a walk goes on from it."""
    with closing(opened(url, tmp_path)) as adapter:

        def statements(query):
            return adapter.explain(query).count("ORDER BY")

        for descending in (False, True):
            sort = Sort(SortKey.LAST_UPDATED, descending)
            first = ask(patient("1", "2", "3"), sort=sort)
            # SQLite has times as texts, and '' for none.
            assert statements(first) == (2 if kind == "sqlite" else 1)
            apart = replace(first, from_end=True)
            assert statements(apart) == 2
            rows = adapter.search(first).rows
            assert rows == adapter.search(apart).rows
            for count in (1, 7, len(rows) - 2):
                pages = walk(adapter, replace(first, count=count))
                assert tuple(row for page in pages for row in page.rows) == rows
        # What may find many rows is two.
        assert statements(ask(token("class", "IMP"), sort=sort)) == 2


def problems(adapter):
    with closing(adapter):
        return list(adapter.check())


def test_connections_do_not_write(url):
    refused = (
        "UPDATE stays SET visit = NULL",
        "DROP TABLE stays",
        "CREATE TABLE more (a INTEGER)",
    )
    with closing(Database(url, 30, 1)) as database:
        for statement in refused:
            with pytest.raises(AdapterError) as error:
                run(database, statement)
            assert re.search(r"(?i)read.?only", str(error.value.__cause__))
        assert run(database, "SELECT COUNT(stay_id) FROM stays") == [
            (len(EDGES.stays),)
        ]


def run(database, statement):
    def ask(connection):
        result = connection.exec_driver_sql(statement)
        return [tuple(row) for row in result] if result.returns_rows else []

    return database.run(ask)


def test_a_slow_statement_is_ended_and_the_next_one_runs(kind, url):
    with closing(Database(url, 2, 1)) as database:
        with pytest.raises(SourceTimedOutError):
            run(database, SLOW[kind])
        assert run(database, "SELECT 1") == [(1,)]


@on("postgresql")
def test_postgresql_is_given_time_limits(url, tmp_path):
    """Counts have their own; those of the network follow the statement's."""
    limits = {"timeout_seconds": "2.5", "count_timeout_seconds": "2"}
    with closing(opened(f"{url}&keepalives_idle=20", tmp_path, **limits)):
        environ = {"PAS_URL": f"{url}&keepalives_idle=20"}
        mapping = load_mapping(tmp_path / "hospital.yaml", environ)
    found = []
    for database in open_databases(mapping.source):
        with closing(database):
            found += run(database, "SHOW statement_timeout")
            connection: Any = database.run(lambda c: c.connection.driver_connection)
            parameters = connection.info.get_parameters()
            options = ("connect_timeout", "tcp_user_timeout", "keepalives_idle")
            found.append(tuple(parameters[name] for name in options))
    assert found == [("2500ms",), ("3", "3500", "20"), ("2s",), ("3", "3000", "20")]


def test_a_server_that_hangs_is_away(mariadb_server):
    """The driver ends the wait, and no count is too costly."""
    server = mariadb_server
    with closing(Database(server.new_database(), 1, 1)) as database:
        assert run(database, "SELECT 1") == [(1,)]
        server.process.send_signal(signal.SIGSTOP)
        # Without the driver's limit the test would hang as well.
        resumed = Timer(20, server.process.send_signal, [signal.SIGCONT])
        resumed.start()
        try:
            with pytest.raises(SourceUnavailableError) as error:
                run(database, "SELECT SLEEP(30)")
        finally:
            resumed.cancel()
            server.process.send_signal(signal.SIGCONT)
        assert not isinstance(error.value, SourceTimedOutError)
        assert run(database, "SELECT 1") == [(1,)]


@on("sqlite")
def test_a_source_whose_connections_are_all_in_use_is_busy(url):
    with closing(Database(url, 30, 1, wait=0)) as database:

        def ask(_):
            with pytest.raises(SourceBusyError):
                run(database, "SELECT 1")

        database.run(ask)
        assert run(database, "SELECT 1") == [(1,)]


def _backends(database):
    """Return the processes of PostgreSQL behind two connections that are in use at once."""
    own = Statement("SELECT pg_backend_pid()")

    def ask(connection):
        (one,) = connection.exec_driver_sql(own.sql).one()
        ((other,),) = database.fetch(own)
        return one, other

    return database.run(ask)


def test_after_a_lost_connection_none_is_used_that_is_as_old(new_postgresql):
    url = new_postgresql("unicode")
    plain = make_url(url).set(drivername="postgresql").render_as_string(False)
    with psycopg.connect(plain, autocommit=True) as admin:

        def connected():
            rows = admin.execute(
                "SELECT pid FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            return {pid for (pid,) in rows}

        with closing(Database(url, 30, 2)) as database:
            before = _backends(database)
            assert connected() == {*before}
            for pid in before:
                admin.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
            after = _backends(database)
            assert len({*before, *after}) == 4
            assert connected() == {*after}
            # Where one is lost the other is replaced as well, and closed.
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", (after[1],))
            _backends(database)
            assert not {*_backends(database)} & {*after}
            wait_until(lambda: len(connected()) == 2)
        wait_until(lambda: not connected())


@on("sqlite")
def test_a_connection_ends_with_its_lifetime(url):
    def connection_of(database):
        return database.run(lambda connection: connection.connection.driver_connection)

    with (
        closing(Database(url, 30, 1, lifetime=0.2)) as short,
        closing(Database(url, 30, 1)) as long,
    ):
        first, kept = connection_of(short), connection_of(long)
        wait_until(lambda: connection_of(short) is not first)
        assert connection_of(long) is kept


@on("sqlite")
def test_a_slow_count_is_too_costly(url, tmp_path):
    others = " ".join(f"CROSS JOIN stays s{number}" for number in range(5))
    slow = ("FROM stays s LEFT JOIN", f"FROM stays s {others} LEFT JOIN")
    with (
        closing(opened(url, tmp_path, slow, count_timeout_seconds="2")) as adapter,
        pytest.raises(TooCostlyError),
    ):
        adapter.count(ask())


@pytest.fixture
def reader(kind, url, request):
    """Return the address of the same tables for an account that may only read."""
    address = make_url(url)
    if kind == "postgresql":
        plain = address.set(drivername="postgresql").render_as_string(False)
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute("CREATE ROLE reader LOGIN")
            connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
            yield address.set(username="reader").render_as_string(False)
            connection.execute("DROP OWNED BY reader")
            connection.execute("DROP ROLE reader")
        return
    server = request.getfixturevalue(f"{kind}_server")
    server.run(
        "CREATE USER reader@localhost",
        f"GRANT SELECT ON {address.database}.* TO reader@localhost",
    )
    yield server.url(str(address.database), "reader")
    server.run("DROP USER reader@localhost")


@on("postgresql", *SERVERS)
def test_one_right_to_write_one_table_is_a_problem(kind, url, reader, tmp_path):
    (problem,) = problems(opened(url, tmp_path))
    assert re.match(
        r".*hospital\.yaml:\d+:\d+: source: the account .* may change", problem.text
    )
    assert problems(opened(url, tmp_path, may_write="true")) == []
    assert problems(opened(reader, tmp_path)) == []
    account = "reader@localhost" if kind in SERVERS else "reader"
    for right in ("INSERT", "UPDATE", "DELETE", "UPDATE (sex)"):
        altered(url, f"GRANT {right} ON patients TO {account}")
        (problem,) = problems(opened(reader, tmp_path))
        grant = rf"\({right.split()[0]} ON \S*patients\W"
        assert re.search(grant, problem.text), "the message names the grant"
        altered(url, f"REVOKE {right} ON patients FROM {account}")
        assert problems(opened(reader, tmp_path)) == []


@on("mariadb")
def test_grants_on_what_is_gone_change_nothing(mariadb_server, reader, tmp_path):
    server = mariadb_server
    server.run("CREATE DATABASE gone", "CREATE TABLE gone.old (a INT)")
    places = ("gone.*", "`gone\\_%`.*", "gone.old")
    server.run(*(f"GRANT INSERT ON {place} TO reader@localhost" for place in places))
    (problem,) = problems(opened(reader, tmp_path))
    assert re.search(r"\(INSERT ON `gone`", problem.text)
    server.run("DROP DATABASE gone")
    assert problems(opened(reader, tmp_path)) == []
    server.run("CREATE DATABASE gone_1")
    assert len(problems(opened(reader, tmp_path))) == 1
    server.run("DROP DATABASE gone_1")


CANARY = "Canari-7"
CAST = f"SELECT CAST(a AS INTEGER) FROM (SELECT '{CANARY}' || code AS a FROM organizations) o"
EXTRACT = f"SELECT EXTRACTVALUE('<a/>', '~{CANARY}') FROM organizations"
MISSING = "SELECT pas.nosuch FROM organizations pas"
REASONS = {
    "sqlite": {MISSING: "SQLITE_ERROR pas.nosuch"},
    "postgresql": {MISSING: "42703 pas.nosuch", CAST: "22P02"},
    "mariadb": {MISSING: "42S22 pas.nosuch", EXTRACT: "HY000"},
}
"""What each database says of a column that is missing, and of a value that it refuses."""


@on(*REASONS)
def test_the_reason_is_the_sqlstate_and_the_column_and_never_a_value(kind, url):
    with closing(Database(url, 30, 1)) as database:
        for statement, reason in REASONS[kind].items():
            with pytest.raises(AdapterError) as error:
                database.run(lambda c, s=statement: execute(c, s).all())
            assert error.value.reason == reason
            assert isinstance(error.value, SourceDataError) is (reason != "HY000")
            assert (CANARY in str(error.value.__cause__)) is (CANARY in statement)


ORGANIZATIONS = "SELECT code, title, finess, changed FROM organizations"
REFUSED = (
    "SELECT code, title, finess, finess, changed FROM organizations",
    f"{ORGANIZATIONS} FOR UPDATE",
    "WITH gone AS (DELETE FROM organizations RETURNING code, title, finess, changed)"
    " SELECT code, title, finess, changed FROM gone",
)
"""SELECTs with which no search could ever be answered."""


@on("sqlite", "postgresql", "mariadb")
def test_a_select_that_can_never_run_is_no_outage(kind, url, tmp_path):
    for rows in REFUSED:
        # SQLite gives the second a name of its own; a server locks nothing there.
        if (kind == "sqlite" and "finess, finess" in rows) or (
            kind in SERVERS and "FOR UPDATE" in rows
        ):
            continue
        found = problems(opened(url, tmp_path, (ORGANIZATIONS, rows), may_write="true"))
        assert [problem.outage for problem in found] == [False], rows
        assert re.match(r".*hospital\.yaml:\d+:\d+: Organization", found[0].text)


BAD_ADDRESSES = {
    "firebird://h/db": "no such kind of database: firebird",
    "postgresql://u:se@cr:et@h:x/db": "the address cannot be read",
    "postgresql://u:p@h:secret/db": "the address cannot be read",
    "mysql://u:secret@h:0/db": "the address has an invalid port",
    "postgresql://u:p@/db?host=h&port=secret": "the address has an option that",
}


def test_an_address_that_is_none_is_told_at_its_place(tmp_path):
    for url, text in BAD_ADDRESSES.items():
        with pytest.raises(SourceDataError) as refused:
            opened(url, tmp_path)
        assert re.search(rf"hospital\.yaml:\d+:\d+: {text}", str(refused.value))
        assert not re.search("secret|cr:et", str(refused.value))


OPTION = "the address has an option that the driver does not accept"
VALUE = "the address has a value of {} that the driver does not accept"
AWAY = f"no connection to the database: {PORT}"
NO_FILE = "a file that the address names cannot be read (No such file or directory)"
SESSION = "target_session_attrs"
SSL_MODE, OF_SESSION = map(VALUE.format, ("sslmode", SESSION))
PG, MARIA = "postgresql://u:secret@127.0.0.1:1/db", "mariadb://u:secret@127.0.0.1:1/db"


REFUSED_OPTIONS = (
    (f"{PG}?sslmodee=secret", SourceDataError, OPTION),
    ("mysql://u:secret@127.0.0.1:1/db?nonsense=secret", SourceDataError, OPTION),
    (f"{MARIA}?ssl_ca=/nowhere/secret.pem", SourceUnavailableError, NO_FILE),
    (f"{PG}?sslmode=verify-full&{SESSION}=secret", SourceDataError, OF_SESSION),
    (f"{PG}?host=127.0.0.1:1&host=::1&sslmode=secret", SourceDataError, SSL_MODE),
    # Each by itself is a good one.
    (f"{PG}?sslmode=disable&sslrootcert=system", SourceDataError, SSL_MODE),
    # Options that are good leave an outage one.
    (f"{PG}?sslmode=verify-full&sslrootcert=/none", SourceUnavailableError, AWAY),
    (f"{PG}?application_name=x", SourceUnavailableError, AWAY),
)


def test_what_no_driver_takes_is_told_and_no_outage(tmp_path):
    for url, error, text in REFUSED_OPTIONS:
        for question in (
            lambda database: database.columns("SELECT 1 AS one"),
            lambda database: read_catalogue(database, ()),
        ):
            with (
                pytest.raises(error) as refused,
                closing(Database(url, 30, 1)) as database,
            ):
                question(database)
            assert str(refused.value) == text, url
    found = problems(opened(f"{PG}?sslmode=secret", tmp_path, may_write="true"))
    assert {problem.outage for problem in found} == {False}
    assert {problem.text.rpartition(": ")[2] for problem in found} == {SSL_MODE}
