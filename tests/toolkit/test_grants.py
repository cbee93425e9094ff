"""An account that can read the tables of the mapping, and nothing else, serves.

Without one of its privileges the message names the table and the GRANT.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.contract import Adapter, ResourceType, SourceDataError
from adapters.mapping.load import load_mapping
from tests.databases import writing
from tests.hospital_sql import Tables, mapping_text
from tests.sets import SERVERS
from tests.toolkit.conftest import Mapping, NewUrl
from toolkit.contract.harness import ask
from toolkit.contract.hospital import EDGES

READS = {
    "organizations": ResourceType.ORGANIZATION,
    "patient_numbers": ResourceType.PATIENT,
    "patients": ResourceType.PATIENT,
    "stays": ResourceType.ENCOUNTER,
}
"""The tables of the hospital, and a resource type that reads each."""


class Account(NamedTuple):
    """An account that may read the tables of the hospital; its owner's connection."""

    name: str
    url: str
    owner: sa.Connection
    file: Path

    def open(self) -> Adapter:
        return open_adapter(load_mapping(self.file, {"PAS_URL": self.url}))

    def run(self, statement: str) -> None:
        self.owner.exec_driver_sql(f"{statement} {self.name}")


@pytest.fixture(params=["postgresql", *SERVERS])
def account(
    request: pytest.FixtureRequest,
    new_url: NewUrl,
    tmp_path: Path,
) -> Iterator[Account]:
    is_postgresql = request.param == "postgresql"
    url = new_url(request.param)
    Tables(url, EDGES).close()
    file = tmp_path / "hospital.yaml"
    file.write_text(mapping_text(EDGES).replace(", may_write: true", ""), "utf-8")
    name = "narrow" if is_postgresql else "narrow@localhost"
    engine = writing(url).execution_options(isolation_level="AUTOCOMMIT")
    narrow = engine.url.set(username="narrow").render_as_string(hide_password=False)
    with engine.connect() as owner:
        if is_postgresql:
            for place in (f"DATABASE {engine.url.database}", "SCHEMA public"):
                owner.exec_driver_sql(f"REVOKE ALL ON {place} FROM PUBLIC")
        made = Account(name, narrow, owner, file)
        # A user of PostgreSQL is a role that may log in.
        made.run("CREATE USER")
        database, rights = engine.url.database, []
        if is_postgresql:
            rights += [f"CONNECT ON DATABASE {database}", "USAGE ON SCHEMA public"]
        for right in (*rights, *(f"SELECT ON {table}" for table in READS)):
            made.run(f"GRANT {right} TO")
        yield made
        if is_postgresql:
            made.run("DROP OWNED BY")
        made.run("DROP USER")
    engine.dispose()


def test_an_account_with_these_privileges_serves(
    account: Account, monkeypatch: pytest.MonkeyPatch, mapping: Mapping
) -> None:
    with closing(account.open()) as adapter:
        assert list(adapter.check()) == []
        for kind in ResourceType:
            assert adapter.search(ask(of=kind)).rows
    monkeypatch.setenv("PAS_URL", account.url)
    findings = mapping("check", "--live", "--json", account.file).document["findings"]
    assert not [f for f in findings if "may not read" in f["text"]]
    assert not [f for f in findings if f["element"] == "source"]


def test_without_one_of_them_the_message_names_the_table_and_the_grant(
    account: Account,
) -> None:
    state = "42501" if account.name == "narrow" else "42000"
    with closing(account.open()) as adapter:
        for table, kind in READS.items():
            assert adapter.search(ask(of=kind)).rows
            account.run(f"REVOKE SELECT ON {table} FROM")
            texts = [problem.text for problem in adapter.check()]
            assert texts
            for text in texts:
                assert f"GRANT SELECT ON {table} " in text
                assert str(account.owner.engine.url.database) not in text
            # A service that runs logs what the database reports.
            with pytest.raises(SourceDataError) as error:
                adapter.search(ask(of=kind))
            assert error.value.reason == f"{state} {table}"
            account.run(f"GRANT SELECT ON {table} TO")
