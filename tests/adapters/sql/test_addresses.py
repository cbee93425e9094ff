"""Options of an address: ours are added to them, and what cannot be combined is refused."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from types import MappingProxyType
from typing import NamedTuple

import psycopg
import pymysql
import pytest
from sqlalchemy.engine import make_url

from adapters.contract import AdapterError
from adapters.sql.dialects.base import AddressError, PoolConfig, SessionError, Statement
from adapters.sql.dialects.mysql import read_back
from adapters.sql.dialects.oracle import session
from adapters.sql.dialects.sqlserver import read_only
from adapters.sql.engine import Database
from tests.sets import SERVERS

NONE: Mapping[str, str] = MappingProxyType({})


class Case(NamedTuple):
    """Options of an address, a question, and its answer; an error where there is none."""

    options: str
    question: str = "SELECT 1"
    answer: object = None
    environ: Mapping[str, str] = NONE
    schema: str = ""


PROD = "SELECT a FROM t"

POSTGRESQL = (
    Case("options=-csearch_path%3Dprod", PROD, "prod"),
    Case("options=--search-path%3Dprod", "SHOW statement_timeout", "7s"),
    Case("", PROD, "prod", {"PGOPTIONS": "-c search_path=prod"}),
    Case("", PROD, "public"),
    Case("", PROD, "prod", schema="prod"),
    Case("", PROD, "odd", schema='o"d d'),
    Case("application_name=pas", "SHOW application_name", "pas"),
    Case("", "SHOW application_name", "pas", {"PGAPPNAME": "pas"}),
    Case("", "SHOW application_name", "encounters"),
    Case("", schema="nosuch"),
    Case("options=-csearch_path%3Dprod", schema="prod"),
    Case("options=-cstatement_timeout%3D0"),
    Case("options=-c%20default_transaction_read_only%3Doff"),
    # The texts of times, which a mapping may CAST, are those of ISO 8601.
    Case("", "SELECT CAST(DATE '2024-03-04' AS TEXT)", "2024-03-04"),
    Case("options=-cdatestyle%3DSQL,DMY"),
    Case("", environ={"PGDATESTYLE": "German"}),
    # A session that reads only is none of these.
    Case("target_session_attrs=read-write"),
    Case("target_session_attrs=primary", "SELECT 'x'", "x"),
    Case("", environ={"PGOPTIONS": "-c statement_timeout=0"}),
    # libpq sends it beside the options, and the server obeys it.
    Case("", environ={"PGTZ": "Europe/Paris"}),
    Case("", "SHOW TimeZone", "Etc/UTC", {"PGTZ": "Etc/UTC"}),
)

MARIADB = (
    Case("charset=utf8mb4", "SELECT @@character_set_results", "utf8mb4"),
    Case("init_command=SET%20@unit%3D'x'", "SELECT @unit", "x"),
    Case("", PROD, "test"),
    Case("", PROD, "prod", schema="prod"),
    Case("", schema="nosuch"),
    Case("charset=utf8"),
    Case("sql_mode=ANSI_QUOTES"),
    Case("init_command=SET%20time_zone%3D'%2B02:00'"),
    *(Case(f"init_command=SET%20{it}%20latin1") for it in ("NAMES", "CHARSET")),
    Case(
        "init_command=SET%20sql_select_limit%3D1",
        "SELECT COUNT(*) FROM (SELECT 1 AS a UNION ALL SELECT 2) AS b",
        2,
    ),
    Case("read_timeout=3600"),
)

SQLITE = (
    Case("cache=shared", PROD, "file"),
    Case("mode=ro&uri=true", PROD, "file"),
    Case("mode=rwc&uri=true"),
    Case("timeout=60"),
    Case("", schema="main"),
)


def check(url, case, monkeypatch):
    """Hold a case against a database."""
    address = make_url(url).update_query_string(case.options)
    with monkeypatch.context() as patched:
        for name, value in case.environ.items():
            patched.setenv(name, value)
        text = address.render_as_string(hide_password=False)
        if case.answer is None:
            with pytest.raises(AdapterError) as error:
                ask(text, case)
            assert isinstance(error.value, AddressError | SessionError) or case.schema
        else:
            assert ask(text, case) == case.answer, case


def ask(url, case):
    with closing(Database(url, 7, 1, schema=case.schema)) as database:
        ((cell,),) = database.fetch(Statement(case.question))
    return cell


def test_options_for_postgresql(new_postgresql, monkeypatch):
    url = new_postgresql("unicode")
    plain = make_url(url).set(drivername="postgresql").render_as_string(False)
    with psycopg.connect(plain, autocommit=True) as owner:
        for schema, name in (("prod", "prod"), ('"o""d d"', "odd"), ("public", "")):
            if name:
                owner.execute(f"CREATE SCHEMA {schema}".encode())
            owner.execute(f"CREATE TABLE {schema}.t (a TEXT)".encode())
            owner.execute(
                f"INSERT INTO {schema}.t VALUES ('{name or schema}')".encode()
            )
    for case in POSTGRESQL:
        check(url, case, monkeypatch)


def test_options_for_mariadb(mariadb_server, monkeypatch):
    server = mariadb_server
    url = server.new_database()
    server.run("CREATE DATABASE prod")
    for database, value in ((make_url(url).database, "test"), ("prod", "prod")):
        server.run(f"CREATE TABLE {database}.t AS SELECT '{value}' AS a")
    for case in MARIADB:
        check(url, case, monkeypatch)
    server.run("DROP DATABASE prod")


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_a_session_that_a_proxy_changed_is_refused(server):
    limits = ("max_statement_time = 5", "max_execution_time = 5000")
    with closing(
        pymysql.connect(unix_socket=str(server.socket), user="root", ssl_disabled=True)
    ) as connection:
        limit = limits["MariaDB" not in connection.get_server_info()]
        cursor = connection.cursor()
        for setting in (limit, "time_zone = '+00:00'", "TRANSACTION READ ONLY"):
            with pytest.raises(SessionError):
                read_back(connection, 5)
            cursor.execute(f"SET SESSION {setting}")
        read_back(connection, 5)
        cursor.execute("SET SESSION time_zone = '+01:00'")
        with pytest.raises(SessionError):
            read_back(connection, 5)


def test_options_for_files(tmp_path, monkeypatch):
    file = tmp_path / "a b%.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("CREATE TABLE t (a); INSERT INTO t VALUES ('file')")
    for case in SQLITE:
        check(f"sqlite:///{str(file).replace('%', '%25')}", case, monkeypatch)
    escaped = str(file).replace("%", "%2525").replace(" ", "%2520")
    assert ask(f"sqlite:///file:{escaped}?uri=true&mode=ro", SQLITE[0]) == "file"


def test_options_for_servers_that_we_do_not_run():
    plain = PoolConfig(5, 1)
    for query, connects in (
        ("driver=d", "ApplicationIntent=ReadOnly"),
        ("driver=d&ApplicationIntent=readonly", "ApplicationIntent=readonly"),
        ("odbc_connect=DRIVER%3Dd;SERVER%3Dh;", "SERVER=h;ApplicationIntent=ReadOnly"),
    ):
        url = read_only(make_url(f"mssql://u:p@h/db?{query}"), plain)
        ((text,), _) = url.get_dialect()().create_connect_args(url)
        assert text.count("ApplicationIntent") == 1
        assert connects in text
    for query in (
        "ApplicationIntent=ReadWrite",
        "odbc_connect=ApplicationIntent%3DReadWrite",
    ):
        with pytest.raises(AddressError):
            read_only(make_url(f"mssql://u:p@h/db?{query}"), plain)
    named = PoolConfig(5, 1, schema="pas")
    with pytest.raises(AddressError):
        read_only(make_url("mssql://u:p@h/db"), named)
    assert "CURRENT_SCHEMA" not in session(plain)
    assert session(named).endswith(' CURRENT_SCHEMA = "PAS"')
