"""PostgreSQL behind PgBouncer in transaction mode: connections, sessions, walks under load."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial

import psycopg
import pytest
from sqlalchemy.engine import make_url

from adapters import open_adapter
from adapters.contract import SourceDataError, SourceUnavailableError
from adapters.mapping.load import load_mapping
from adapters.sql.dialects.base import SessionError, Statement
from adapters.sql.engine import Database
from tests.hospital_sql import Tables, mapping_text
from tests.live import wait_until
from tests.pgbouncer import READY, create_reader
from toolkit.contract.harness import ask, walk
from toolkit.contract.hospital import EDGES

THREADS, WALKS = 8, 24

IGNORING = {"ignore_startup_parameters": "options"}


@pytest.fixture(scope="module")
def url(new_postgresql):
    found = new_postgresql("unicode")
    Tables(found, EDGES).close()
    return found


def test_walks_under_load_return_every_stay_once(url, pgbouncer, tmp_path):
    """By fewer servers than connections, so that each statement may be sent to any."""
    file = tmp_path / "hospital.yaml"
    text = mapping_text(EDGES).replace("connections: 2", f"connections: {THREADS}")
    file.write_text(text, encoding="utf-8")

    def rows(adapter, count):
        return [row for page in walk(adapter, ask(count=count)) for row in page.rows]

    with closing(open_adapter(load_mapping(file, {"PAS_URL": url}))) as direct:
        expected = rows(direct, 100)
    assert len(expected) > len(EDGES.stays) / 2
    for settings in ({}, IGNORING):
        through = pgbouncer(url, **settings)
        mapping = load_mapping(file, {"PAS_URL": through})
        with (
            closing(open_adapter(mapping)) as adapter,
            ThreadPoolExecutor(THREADS) as threads,
        ):
            sizes = [1 + n % 5 for n in range(WALKS)]
            for found in threads.map(partial(rows, adapter), sizes):
                assert found == expected
        # Another application has the same servers next, as they were.
        plain = make_url(through).set(drivername="postgresql")
        with psycopg.connect(plain.render_as_string(False), autocommit=True) as other:
            left = "SELECT name FROM pg_settings WHERE source = 'session'"
            # PgBouncer itself sets that of each client.
            assert {name for (name,) in other.execute(left)} <= {"application_name"}
            prepared = "SELECT count(*) FROM pg_prepared_statements"
            assert other.execute(prepared).fetchone() == (0,)


WRONG = {
    "statement_timeout": "0",
    "TimeZone": "'Europe/Paris'",
    "default_transaction_read_only": "off",
}
"""Settings of an account, and values that the service cannot rely on."""


def test_an_account_without_a_setting_is_refused_with_its_line(
    url, pgbouncer, postgresql_server
):
    accounts = {f"wrong_{n}": name for n, name in enumerate(WRONG)}
    for account, name in accounts.items():
        settings = (*READY, f"{name} = {WRONG[name]}")
        create_reader(postgresql_server.get_uri(), account, settings)
    for settings in ({}, IGNORING):
        address = make_url(pgbouncer(url, *accounts, **settings))
        for account, name in accounts.items():
            through = address.set(username=account).render_as_string(False)
            reason = refusal(through)
            assert reason.count("ALTER ROLE") == 1
            assert f'ALTER ROLE "{account}" SET {name} = ' in reason


def refusal(url, seconds=8, **session):
    with (
        closing(Database(url, seconds, 1, **session)) as database,
        pytest.raises(SessionError) as error,
    ):
        database.fetch(Statement("SELECT 1"))
    return error.value.reason


def test_the_limit_of_the_account_may_be_that_of_counts_and_no_longer(url, pgbouncer):
    through = pgbouncer(url)
    with closing(Database(through, 8, 1, account_seconds=2)) as database:
        assert database.fetch(Statement("SHOW statement_timeout")) == [("2s",)]
    assert "statement_timeout = '1000ms'" in refusal(through, seconds=1)


def test_options_that_do_not_arrive_are_never_lost_in_silence(url, pgbouncer):
    for settings in ({}, IGNORING):
        through = pgbouncer(url, **settings)
        assert "search_path" in refusal(f"{through}&options=-csearch_path%3Dprod")
        # A schema that the mapping names is looked for as well.
        assert "SET search_path" in refusal(through, schema="prod")


def test_lost_prepared_statements_name_the_pooler(url, pgbouncer):
    through = pgbouncer(url, default_pool_size=1)

    def run(prepared):
        for statement in ("SELECT 1 AS a", "SELECT 2 AS a"):
            with closing(Database(through, 8, 1, prepared=prepared)) as database:
                for _ in range(8):
                    rows = database.fetch(Statement(statement))
                    assert rows == [(int(statement[7]),)]

    run(None)
    run(False)
    with pytest.raises(SourceDataError, match="prepared: false") as error:
        run(True)
    assert error.value.reason.startswith("42P05")


def test_a_pooler_without_a_free_server_is_an_outage(url, pgbouncer):
    """It says so by the same SQLSTATE (08P01), and closes the connection."""
    through = pgbouncer(url, default_pool_size=1, query_wait_timeout=1)
    plain = make_url(through).set(drivername="postgresql").render_as_string(False)
    with closing(Database(through, 8, 1)) as database:

        def has_a_server():
            # The first one may take longer to start than a client waits for it.
            with suppress(SourceUnavailableError):
                return database.fetch(Statement("SELECT 1")) == [(1,)]

        wait_until(has_a_server)
        with psycopg.connect(plain) as holder:
            holder.execute("SELECT 1")
            with pytest.raises(SourceUnavailableError) as error:
                database.fetch(Statement("SELECT 1"))
    assert "prepared" not in str(error.value)
