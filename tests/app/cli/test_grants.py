"""`mapping grants`: an account with exactly these privileges serves; without one of them
the message names the table and the GRANT.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.contract import ResourceType, SourceDataError
from adapters.mapping.load import load_mapping
from adapters.testing.harness import ask
from adapters.testing.hospital import EDGES
from app.cli import main
from tests.app.cli.conftest import Mapping, NewUrl
from tests.databases import writing
from tests.hospital_sql import Tables, mapping_text
from tests.sets import SERVERS

TABLES = ("organizations", "patient_numbers", "patients", "stays")
READS: dict[str, ResourceType] = {
    "organizations": ResourceType.ORGANIZATION,
    "patient_numbers": ResourceType.PATIENT,
    "patients": ResourceType.PATIENT,
    "stays": ResourceType.ENCOUNTER,
}
"""The tables of the hospital, and a resource type that reads each."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "hospital.yaml"
    text = mapping_text(EDGES).replace(", may_write: true", "")
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture(params=["postgresql", *SERVERS])
def kind(request: pytest.FixtureRequest) -> str:
    """Return each kind of database that has accounts."""
    return str(request.param)


@pytest.fixture
def owner(kind: str, new_url: NewUrl) -> Iterator[sa.Engine]:
    """Return the hospital's database, where nobody has a privilege but its owner."""
    url = new_url(kind)
    Tables(url, EDGES).close()
    engine = writing(url).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        if kind == "postgresql":
            name = engine.url.database
            for statement in (
                f"REVOKE ALL ON DATABASE {name} FROM PUBLIC",
                "REVOKE ALL ON SCHEMA public FROM PUBLIC",
                "CREATE ROLE narrow LOGIN",
            ):
                connection.exec_driver_sql(statement)
        else:
            connection.exec_driver_sql("CREATE USER narrow@localhost")
        yield engine
        if kind == "postgresql":
            connection.exec_driver_sql("DROP OWNED BY narrow")
        account = "narrow" if kind == "postgresql" else "narrow@localhost"
        command = "ROLE" if kind == "postgresql" else "USER"
        connection.exec_driver_sql(f"DROP {command} {account}")
    engine.dispose()


@pytest.fixture
def granted(
    kind: str,
    owner: sa.Engine,
    file: Path,
    mapping: Mapping,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Return the address of an account with exactly the privileges that are printed."""
    monkeypatch.setenv("PAS_URL", owner.url.render_as_string(hide_password=False))
    account = "narrow" if kind == "postgresql" else "narrow@localhost"
    printed = mapping("grants", file, "--account", account)
    assert printed.status == 0
    with owner.connect() as connection:
        for statement in printed.out.splitlines():
            connection.exec_driver_sql(statement)
    return owner.url.set(username="narrow").render_as_string(hide_password=False)


def test_an_account_with_these_privileges_serves(file: Path, granted: str) -> None:
    with closing(open_adapter(load_mapping(file, {"PAS_URL": granted}))) as adapter:
        assert list(adapter.check()) == []
        for kind in ResourceType:
            assert adapter.search(ask(of=kind)).rows


def test_a_live_check_passes(
    file: Path, granted: str, monkeypatch: pytest.MonkeyPatch, mapping: Mapping
) -> None:
    monkeypatch.setenv("PAS_URL", granted)
    printed = mapping("check", "--live", "--json", file)
    assert not [
        finding
        for finding in printed.told["findings"]
        if "may not read" in finding["text"] or finding["element"] == "source"
    ]


@pytest.mark.parametrize("table", TABLES)
def test_without_one_of_them_the_message_names_the_table_and_the_grant(
    owner: sa.Engine, kind: str, file: Path, granted: str, table: str
) -> None:
    account = "narrow" if kind == "postgresql" else "narrow@localhost"
    mapping = load_mapping(file, {"PAS_URL": granted})
    with closing(open_adapter(mapping)) as adapter:
        assert adapter.search(ask(of=READS[table])).rows
        with owner.connect() as connection:
            statement = f"REVOKE SELECT ON {table} FROM {account}"
            connection.exec_driver_sql(statement)
        problems = [problem.text for problem in adapter.check()]
        assert problems
        for text in problems:
            assert f"GRANT SELECT ON {table} " in text
            assert str(owner.url.database) not in text
        # A service that runs logs what the database reports.
        with pytest.raises(SourceDataError) as error:
            adapter.search(ask(of=READS[table]))
    state = "42501" if kind == "postgresql" else "42000"
    assert error.value.reason == f"{state} {table}"


def test_a_table_that_a_select_within_reads_is_named(
    owner: sa.Engine, kind: str, file: Path, granted: str
) -> None:
    joined = (
        "LEFT JOIN (SELECT patient_id, COUNT(*) AS numbers FROM patient_numbers"
        " GROUP BY patient_id) n ON n.patient_id = s.patient_id"
    )
    text = file.read_text("utf-8")
    stays = "FROM stays s "
    assert text.count(stays) == 1
    file.write_text(text.replace(stays, f"{stays}{joined} "), encoding="utf-8")
    account = "narrow" if kind == "postgresql" else "narrow@localhost"
    with owner.connect() as connection:
        statement = f"REVOKE SELECT ON patient_numbers FROM {account}"
        connection.exec_driver_sql(statement)
    mapping = load_mapping(file, {"PAS_URL": granted})
    with closing(open_adapter(mapping)) as adapter:
        texts = [problem.text for problem in adapter.check()]
    assert any("GRANT SELECT ON patient_numbers " in text for text in texts)


SELECTS = """\
mapping: 1
name: Several tables
profile: full
time_zone: Europe/Paris
constants: {visit_number_system: urn:oid:1.2.3}
source: {kind: sql, url: {env: PAS_URL}}
encounter:
  rows: |
    WITH recent AS (SELECT id, began FROM pas.stay WHERE began < :now)
    SELECT recent.id, recent.began FROM recent -- FROM no_table
    JOIN "Odd Names" AS o ON o.id = recent.id
    WHERE EXISTS (SELECT 1 FROM hidden.flags WHERE note <> ' FROM nothing ')
  fields: {id: {from: id}, patient_id: {from: id}, status: finished, start: {from: began}}
  search: [_id]
"""

PRINTED = {
    "postgresql://h/db": [
        "GRANT CONNECT ON DATABASE db TO encounters;",
        "GRANT USAGE ON SCHEMA hidden TO encounters;",
        "GRANT USAGE ON SCHEMA pas TO encounters;",
        "GRANT USAGE ON SCHEMA public TO encounters;",
        "GRANT SELECT ON hidden.flags TO encounters;",
        "GRANT SELECT ON pas.stay TO encounters;",
        'GRANT SELECT ON public."Odd Names" TO encounters;',
    ],
    "oracle://h/db": [
        "GRANT CREATE SESSION TO encounters;",
        'GRANT READ ON "Odd Names" TO encounters;',
        "GRANT READ ON hidden.flags TO encounters;",
        "GRANT READ ON pas.stay TO encounters;",
    ],
    "mssql://h/db": [
        "GRANT SELECT ON dbo.[Odd Names] TO encounters;",
        "GRANT SELECT ON hidden.flags TO encounters;",
        "GRANT SELECT ON pas.stay TO encounters;",
    ],
    "sqlite:///pas.db": [],
}


@pytest.mark.parametrize(("url", "statements"), PRINTED.items())
def test_every_table_that_a_select_reads_is_named_once(
    url: str,
    statements: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mapping: Mapping,
) -> None:
    monkeypatch.setenv("PAS_URL", url)
    file = tmp_path / "hospital.yaml"
    file.write_text(SELECTS, "utf-8")
    told: Any = mapping("grants", "--json", file).told
    assert told == {"sources": {"Several tables": statements}}


def test_a_select_that_is_none_is_reported_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAS_URL", "postgresql://h/db")
    file = tmp_path / "hospital.yaml"
    file.write_text(SELECTS.replace("JOIN", "JOIN ((", 1), "utf-8")
    assert main(["mapping", "grants", str(file)]) == 2
    assert "hospital.yaml:7:" in capsys.readouterr().err
