"""The first connection: what is wrong is named, as far as the driver reports it."""

import gc
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from sqlalchemy.engine import make_url

from adapters.contract import SourceUnavailableError
from adapters.sql.dialects import dialect_named, refusals
from adapters.sql.dialects.base import Statement
from adapters.sql.engine import Database
from tests.certificates import certify
from tests.live import free_ports
from tests.sets import SERVERS

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

SECRET = "Canari-7"


@pytest.fixture(autouse=True)
def collected():
    """Collect the sockets that PyMySQL leaves open when nobody takes a connection."""
    yield
    gc.collect()


def reason(url, statement="SELECT 1"):
    """Return why a database takes no connection."""
    address = make_url(url).render_as_string(hide_password=False)
    with (
        closing(Database(address, 2, 1)) as database,
        pytest.raises(SourceUnavailableError) as error,
    ):
        database.fetch(Statement(statement))
    assert SECRET not in str(error.value)
    _, _, sentence = str(error.value).partition(": ")
    assert error.value.reason.endswith(sentence)
    return sentence


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_what_the_network_reports(scheme):
    address = f"{scheme}://{SECRET}:{SECRET}"
    assert reason(f"{address}@nosuch.invalid/db") == refusals.HOST
    assert reason(f"{address}@127.0.0.1:1/db") == refusals.PORT
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
        within = f"{address}@127.0.0.1:{port}/db?connect_timeout=2"
        assert reason(within) == refusals.SILENT
    place = "unix_socket" if scheme != "postgresql" else "host"
    assert reason(f"{address}@/db?{place}=/nowhere/at/all") == refusals.SOCKET


def test_what_postgresql_reports(new_postgresql, postgresql_server):
    url = make_url(new_postgresql("unicode"))
    rules = Path(str(url.query["host"])) / "pg_hba.conf"
    before = rules.read_text("utf-8")
    with psycopg.connect(postgresql_server.get_uri(), autocommit=True) as owner:

        def reload(first):
            rules.write_text(f"{first}\n{before}", encoding="utf-8")
            owner.execute("SELECT pg_reload_conf()")

        for name, option in (
            ("guarded", f"LOGIN PASSWORD '{SECRET}x'"),
            ("elsewhere", "LOGIN"),
            ("nologin", ""),
            ("crowded", "LOGIN CONNECTION LIMIT 0"),
            ("outside", "LOGIN"),
        ):
            owner.execute(f"CREATE ROLE {name} {option}".encode())
        owner.execute(f"REVOKE CONNECT ON DATABASE {url.database} FROM PUBLIC".encode())
        try:
            reload("local all guarded scram-sha-256\nlocal all elsewhere reject")
            for role, expected in (
                ("nosuch", refusals.ACCOUNT),
                ("guarded", refusals.CREDENTIALS),
                ("elsewhere", refusals.PLACE),
                ("nologin", refusals.LOCKED),
                ("outside", refusals.NO_RIGHT),
            ):
                assert reason(url.set(username=role, password=SECRET)) == expected, role
            # Without any password, too.
            assert reason(url.set(username="guarded")) == refusals.CREDENTIALS
            assert reason(url.set(database="nosuch")) == refusals.DATABASE
            crowded = url.set(username="crowded", database="postgres")
            assert reason(crowded) == refusals.FULL
        finally:
            reload("")


def test_what_pgbouncer_reports(new_postgresql, pgbouncer):
    url = new_postgresql("unicode")
    through = make_url(pgbouncer(url))
    assert reason(through.set(username="stranger")) == refusals.CREDENTIALS
    # It asks the server about a database that it does not know.
    assert reason(through.set(database="nosuch")) in (
        refusals.DATABASE,
        refusals.POOLER,
    )
    # Below the directory of a test another user reads nothing.
    with TemporaryDirectory(prefix="encounters-tls-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        for name in ("right", "other"):
            certify(directory, name)
            (directory / f"{name}.key").chmod(0o644)
        tls = {
            "client_tls_sslmode": "allow",
            "client_tls_cert_file": directory / "right.pem",
            "client_tls_key_file": directory / "right.key",
        }
        other = {"sslmode": "verify-full", "sslrootcert": str(directory / "other.pem")}
        cases: tuple[tuple[dict[str, object], dict[str, str], str], ...] = (
            ({}, {"sslmode": "require"}, refusals.NO_TLS),
            (tls, other, refusals.CERTIFICATE),
        )
        for settings, options, expected in cases:
            port = free_ports()
            pgbouncer(url, listen_addr="127.0.0.1", listen_port=port, **settings)
            plain = through.difference_update_query(["host", "port"])
            address = plain.set(host="127.0.0.1", port=port)
            assert reason(address.update_query_dict(options)) == expected


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_what_mariadb_and_mysql_report(server):
    database = make_url(server.new_database()).database
    server.run(
        f"CREATE USER guarded@localhost IDENTIFIED BY '{SECRET}x'",
        "CREATE USER locked@localhost ACCOUNT LOCK",
        "CREATE USER crowded@localhost WITH MAX_CONNECTIONS_PER_HOUR 1",
    )
    for account, name, expected in (
        ("root", "nosuch", refusals.DATABASE),
        ("guarded", database, refusals.CREDENTIALS),
        ("locked", "", refusals.LOCKED),
    ):
        assert reason(server.url(str(name), account)) == expected, account
    crowded = server.url("", "crowded")
    with closing(Database(crowded, 2, 1)) as first:
        first.fetch(Statement("SELECT 1"))
        assert reason(crowded) == refusals.FULL
    no_right = make_url(server.url(str(database), "guarded")).set(password=f"{SECRET}x")
    assert reason(no_right) == refusals.NO_RIGHT
    server.run(*(f"DROP USER {n}@localhost" for n in ("guarded", "locked", "crowded")))


def test_what_sqlite_reports(tmp_path):
    assert reason(f"sqlite:///{tmp_path}/nosuch.db") == refusals.FILE
    assert reason(f"sqlite:///{tmp_path}") == refusals.FILE
    text = tmp_path / "text.db"
    text.write_text("no database\n" * 100, encoding="utf-8")
    tables = "SELECT COUNT(*) FROM sqlite_master"
    assert reason(f"sqlite:///{text}", tables) == refusals.NO_DATABASE_FILE
    with closing(sqlite3.connect(tmp_path / "good.db")) as connection:
        connection.execute("CREATE TABLE t (a)")
    with closing(Database(f"sqlite:///{tmp_path}/good.db", 2, 1)) as database:
        assert database.fetch(Statement("SELECT 1")) == [(1,)]


MESSAGES = {
    "postgresql": """
CREDENTIALS  FATAL:  authentification par mot de passe échouée pour l'utilisateur « u »
ACCOUNT      FATAL:  Rolle »u« existiert nicht
DATABASE     FATAL:  la base de données « d » n'existe pas
NO_RIGHT     FATAL:  keine Berechtigung für Datenbank d
PLACE_OR_TLS FATAL:  no pg_hba.conf entry for host "h", user "u", database "d", no encryption
FULL         FATAL:  désolé, trop de clients sont déjà connectés
STARTING     FATAL:  the database system is starting up
POOLER       FATAL:  server login has been failing, try again later
-            could not receive data""",
    "oracle": """
CREDENTIALS  ORA-01017
DATABASE     DPY-6001
PORT         ORA-12541
HOST         DPY-6005: cannot connect. [Errno -2] Name or service not known
-            ORA-00600""",
    "mssql": """
CREDENTIALS  28000 [Microsoft] Login failed for user 'u'. (18456)
DATABASE     42000 Cannot open database "d" requested by the login. (4060)
DRIVER       01000 [unixODBC]Can't open lib 'ODBC Driver 18 for SQL Server'
PORT         08001 TCP Provider: Error code 0x2749
CERTIFICATE  08001 SSL Provider: certificate verify failed:self-signed
SILENT       HYT00 Login timeout expired
-            08S01 Communication link failure""",
    "mysql": """
CERTIFICATE  2003 ([SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed)
NO_TLS       2026 SSL is required but the server doesn't support it
PLACE        1130 Host 'h' is not allowed to connect
TLS_REQUIRED 3159 Connections using insecure transport are prohibited
-            1047 Unknown command""",
}
"""Refusals and messages of servers in other languages, and of those that we do not run."""


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_that_no_server_here_sends(name):
    dialect = dialect_named(name)
    for line in MESSAGES[name].strip().splitlines():
        refusal, message = line.split(maxsplit=1)
        error = Exception(message.partition(" ")[0], message)
        if name == "postgresql":
            error = Exception(message)
        assert dialect.refusal(error) == getattr(refusals, refusal, ""), message
