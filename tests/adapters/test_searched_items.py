"""Names and numbers in a SELECT of their own, and those that do not count, when searched."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.contract import Adapter, ResourceType, StringCriterion, StringMatch
from adapters.mapping.load import load_mapping
from adapters.testing.asking import ask, ids_of
from tests.databases import NewDatabase

MAPPING = """\
mapping: 1
name: Names apart
profile: full
time_zone: Europe/Paris
source: {kind: sql, url: {env: PAS_URL}, may_write: true}
encounter:
  rows: SELECT id, person FROM stays
  fields: {id: {from: id}, patient_id: {from: person}, status: finished}
patient:
  rows: SELECT id, family, checked FROM people
  fields:
    id: {from: id}
    names:
      - {use: official, family: {from: family}, only_if: {from: checked, in: [Y]}}
      - rows: SELECT person, kind, last AS family, first AS given FROM names
        key: person
        use: maiden
        only_if: {from: kind, in: [MAIDEN]}
        family: {from: family}
        given: {from: given}
  search: [_id, name, family, given]
"""

TABLES = (
    "CREATE TABLE stays (id INTEGER PRIMARY KEY, person INTEGER)",
    "CREATE TABLE people (id INTEGER PRIMARY KEY, family VARCHAR(40), checked VARCHAR(1))",
    "CREATE TABLE names"
    " (person INTEGER, kind VARCHAR(9), last VARCHAR(40), first VARCHAR(40))",
    "INSERT INTO people VALUES (1, 'Lefevre', 'Y'), (2, 'Lefort', 'N'), (3, 'Morel', 'Y')",
    "INSERT INTO names VALUES (1, 'MAIDEN', 'Dubois', 'Anne'), (2, 'MAIDEN', 'Petit', 'Jean'),"
    " (3, 'OLD', 'Dubois', 'Marie'), (3, 'MAIDEN', 'Lefoulon', 'Marie')",
)


@pytest.fixture(params=["sqlite", "postgresql"])
def people(
    request: pytest.FixtureRequest, tmp_path: Path, new_postgresql: NewDatabase
) -> Iterator[Adapter]:
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    if request.param == "postgresql":
        url = new_postgresql("unicode")
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for statement in TABLES:
            connection.exec_driver_sql(statement)
    engine.dispose()
    file = tmp_path / "hospital.yaml"
    file.write_text(MAPPING, encoding="utf-8")
    adapter = open_adapter(load_mapping(file, {"PAS_URL": url}))
    yield adapter
    adapter.close()


@pytest.mark.parametrize(
    ("parameter", "text", "found"),
    [
        ("name", "lef", ["1", "3"]),
        ("family", "lef", ["1", "3"]),
        ("family", "dubois", ["1"]),
        ("given", "anne", ["1"]),
        ("name", "petit", ["2"]),
        ("name", "lefort", []),
        ("given", "lef", []),
    ],
)
def test_names_are_found_where_they_are_and_count(
    people: Adapter, parameter: str, text: str, found: list[str]
) -> None:
    criterion = StringCriterion(parameter, (text,), StringMatch.STARTS_WITH)
    query = ask(criterion, of=ResourceType.PATIENT)
    assert sorted(ids_of(people.search(query))) == found
    assert people.count(query) == len(found)


def test_a_search_by_two_names_needs_both(people: Adapter) -> None:
    both = (
        StringCriterion("family", ("lefev",), StringMatch.STARTS_WITH),
        StringCriterion("given", ("anne",), StringMatch.STARTS_WITH),
    )
    assert ids_of(people.search(ask(*both, of=ResourceType.PATIENT))) == ["1"]
