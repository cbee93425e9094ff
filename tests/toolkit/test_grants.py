"""An account that can read the tables of the mapping, and nothing else, serves.

Without one of its privileges the message names the table and the GRANT.
"""

import os
from contextlib import closing

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.contract import ResourceType, SourceDataError
from adapters.mapping.load import load_mapping
from tests.databases import writing
from tests.sets import SERVERS
from tests.toolkit.live_hospital import written
from toolkit.contract.harness import ask

READS = {"patients": ResourceType.PATIENT, "stays": ResourceType.ENCOUNTER}
"""The tables of the hospital, and the resource type that reads each."""


@pytest.fixture(params=["postgresql", *SERVERS])
def account(request, hospital, monkeypatch):
    """Make an account that may read these tables, PAS_URL; yield what changes its rights."""
    engine = writing(hospital(request.param))
    database, is_postgresql = engine.url.database, request.param == "postgresql"
    narrow = engine.url.set(username="narrow").render_as_string(hide_password=False)
    monkeypatch.setenv("PAS_URL", narrow)
    name = "narrow" if is_postgresql else "narrow@localhost"
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as owner:

        def run(*statements):
            for statement in statements:
                owner.exec_driver_sql(f"{statement} {name}")

        run("CREATE USER")
        if is_postgresql:
            for place in (f"DATABASE {database}", "SCHEMA public"):
                owner.exec_driver_sql(f"REVOKE ALL ON {place} FROM PUBLIC")
            run(f"GRANT CONNECT ON DATABASE {database} TO")
            run("GRANT USAGE ON SCHEMA public TO")
        run(*(f"GRANT SELECT ON {table} TO" for table in READS))
        yield run
        if is_postgresql:
            run("DROP OWNED BY")
        run("DROP USER")
    engine.dispose()


@pytest.fixture
def file(tmp_path):
    return written(tmp_path, (", may_write: true", ""))


def test_an_account_with_these_privileges_serves(account, file, mapping):
    with closing(open_adapter(load_mapping(file, os.environ))) as adapter:
        assert list(adapter.check()) == []
        for kind in READS.values():
            assert adapter.search(ask(of=kind)).rows
    findings = mapping("check", "--live", "--json", file).document["findings"]
    assert not [f for f in findings if "may not read" in f["text"]]
    assert not [f for f in findings if f["element"] == "source"]


def test_without_one_of_them_the_message_names_the_table_and_the_grant(account, file):
    database = sa.make_url(os.environ["PAS_URL"]).database
    with closing(open_adapter(load_mapping(file, os.environ))) as adapter:
        for table, kind in READS.items():
            assert adapter.search(ask(of=kind)).rows
            account(f"REVOKE SELECT ON {table} FROM")
            texts = [problem.text for problem in adapter.check()]
            assert texts
            for text in texts:
                assert f"GRANT SELECT ON {table} " in text
                assert database not in text
            # A service that runs logs what the database reports.
            with pytest.raises(SourceDataError) as error:
                adapter.search(ask(of=kind))
            assert error.value.reason in (f"42501 {table}", f"42000 {table}")
            account(f"GRANT SELECT ON {table} TO")
