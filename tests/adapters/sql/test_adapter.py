"""Searches of a service that runs on while its tables are altered, or offers more."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from adapters.contract import (
    NotFoundError,
    PatientRecord,
    ReferenceCriterion,
    SourceDataError,
)
from adapters.parameters import SEARCH_PARAMETERS, ParameterType, SearchParameter
from adapters.sql.query import LONGEST_LIST
from tests.adapters.emptied import NUMBERED, Opened, listed
from tests.databases import writing
from toolkit.contract.harness import PATIENT, STAY, ask, dates, ids_of, text, token

STAYS = """\
encounter:
  rows: SELECT id, person, began FROM stays
  fields:
    id: {from: id}
    patient_id: {from: person}
    status: finished
    start: {from: began}
  search: [_id, patient, date]
  sort: [date]
"""


def alter(url: str, *statements: str) -> None:
    engine = writing(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_column_of_another_type_is_read_anew_within_the_request(
    opened: Opened, url: str
) -> None:
    adapter = opened(
        STAYS,
        (
            "CREATE TABLE stays (id BIGINT, person BIGINT, began TIMESTAMP)",
            "INSERT INTO stays VALUES (1, 7, '2024-03-14 10:00:00'), (2, 8, NULL)",
        ),
    )
    by_id, by_date = ask(token("_id", "1")), ask(dates("2024-03-14"))
    for _ in range(9):
        # As often as a driver needs to prepare a statement.
        assert ids_of(adapter.search(by_id)) == ["1"]
        assert ids_of(adapter.search(by_date)) == ["1"]
    for type_ in ("text", "bigint", "text"):
        alter(url, f"ALTER TABLE stays ALTER id TYPE {type_} USING id::{type_}")
        assert ids_of(adapter.search(by_id)) == ["1"]
        assert adapter.read(STAY, "2").id == "2"
    alter(url, "ALTER TABLE stays ALTER began TYPE text")
    assert ids_of(adapter.search(by_date)) == ["1"]
    assert adapter.count(by_date) == 1
    alter(url, "ALTER TABLE stays ALTER person TYPE text", "UPDATE stays SET id = 'x'")
    with pytest.raises(NotFoundError):
        adapter.read(STAY, "1")


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_no_connection_keeps_the_plan_of_a_column_that_was_altered(
    opened: Opened, url: str
) -> None:
    adapter = opened(
        STAYS,
        (
            "CREATE TABLE stays (id VARCHAR(9), person BIGINT, began TIMESTAMP)",
            "INSERT INTO stays VALUES ('1', 7, '2024-03-14 10:00:00')",
        ),
    )
    by_id = ask(token("_id", "1"))
    with ThreadPoolExecutor(4) as pool:
        for type_ in ("text", "varchar(9)", "text"):
            found = pool.map(lambda _: ids_of(adapter.search(by_id)), range(50))
            assert set(map(tuple, found)) == {("1",)}
            alter(url, f"ALTER TABLE stays ALTER id TYPE {type_}")
        assert ids_of(adapter.search(by_id)) == ["1"]


def test_a_column_that_goes_is_an_error_until_it_is_back(
    opened: Opened, url: str
) -> None:
    create = "CREATE TABLE stays (id INTEGER, person INTEGER, began DATE)"
    insert = "INSERT INTO stays VALUES (1, 7, NULL)"
    adapter = opened(STAYS.replace("began}", 'began, at: "00:00"}'), (create, insert))
    assert ids_of(adapter.search(ask())) == ["1"]
    alter(url, "ALTER TABLE stays DROP COLUMN began")
    for _ in range(2):
        with pytest.raises(SourceDataError):
            adapter.search(ask())
    alter(url, "DROP TABLE stays", create, insert)
    assert ids_of(adapter.search(ask())) == ["1"]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_items_of_many_rows_are_read_in_lists_that_every_database_takes(
    opened: Opened,
) -> None:
    """A key without a type may hold each id as a text and as a number."""
    number = 700
    people = ", ".join(f"({id})" for id in range(number))
    adapter = opened(
        NUMBERED,
        (
            "CREATE TABLE people (id INTEGER)",
            "CREATE TABLE numbers (person, number)",
            f"INSERT INTO people VALUES {people}",
            "INSERT INTO numbers SELECT id, 'N' || id FROM people",
        ),
    )
    with listed() as lengths:
        rows = adapter.search(ask(of=PATIENT, count=number)).rows
    patients = [row for row in rows if isinstance(row, PatientRecord)]
    assert [p.identifiers[0].value for p in patients] == [f"N{p.id}" for p in patients]
    assert len(patients) == number
    assert max(lengths) <= LONGEST_LIST


PEOPLE = """\
codes: {sexes: {table: {F: female, M: male}}}
encounter:
  rows: SELECT id, person, unit, house, ended FROM stays
  fields:
    id: {from: id}
    patient_id: {from: person}
    status: finished
    functional_unit: {from: unit}
    organization_id: {from: house}
    end: {from: ended}
patient:
  rows: SELECT id, alive, sex, family, house, city, seen FROM people
  fields:
    id: {from: id}
    active: {from: alive}
    gender: {from: sex, codes: sexes}
    names: [{family: {from: family}}]
    addresses: [{city: {from: city}, lines: [{from: house}]}]
    telecoms:
      - {rows: "SELECT person, number FROM phones", key: person, system: phone,
         value: {from: number}}
    organization_id: {from: house}
    last_updated: {from: seen, time_zone: UTC}
  search: [_id]
"""

PEOPLE_ROWS = (
    "CREATE TABLE stays"
    " (id INTEGER, person INTEGER, unit VARCHAR(9), house VARCHAR(9), ended VARCHAR(19))",
    "CREATE TABLE people (id INTEGER, alive INTEGER, sex VARCHAR(1), family VARCHAR(9),"
    " house VARCHAR(9), city VARCHAR(9), seen VARCHAR(19))",
    "CREATE TABLE phones (person INTEGER, number VARCHAR(9))",
    "INSERT INTO stays VALUES (1, 1, 'U1', 'H1', '2024-03-14 10:00:00'),"
    " (2, 2, 'Unit 2', 'H2', NULL)",
    "INSERT INTO people VALUES"
    " (1, 1, 'F', 'Morel', 'H1', 'Lyon', '2024-03-14 10:00:00'),"
    " (2, 0, 'M', 'Petit', 'H2', 'Paris', NULL)",
    "INSERT INTO phones VALUES (1, '0123'), (2, '0456')",
)


STRING, TOKEN, REFERENCE, DATE = (
    ParameterType.STRING,
    ParameterType.TOKEN,
    ParameterType.REFERENCE,
    ParameterType.DATE,
)
ROWS = (
    (STAY, STRING, "functional_unit", text("made-up", "u1")),
    (STAY, REFERENCE, "organization_id", ReferenceCriterion("made-up", ("H1",))),
    (STAY, DATE, "end", dates("2024-03", parameter="made-up")),
    (PATIENT, TOKEN, "active", token("made-up", "true")),
    (PATIENT, TOKEN, "gender", token("made-up", "female")),
    (PATIENT, TOKEN, "names.family", token("made-up", "Morel")),
    (PATIENT, TOKEN, "telecoms.value", token("made-up", "0123")),
    (PATIENT, STRING, "names.family", text("made-up", "mor")),
    (PATIENT, STRING, "addresses.city", text("made-up", "ly")),
    (PATIENT, STRING, "addresses.lines", text("made-up", "h1")),
    (PATIENT, STRING, "telecoms.value", text("made-up", "012")),
    (PATIENT, REFERENCE, "organization_id", ReferenceCriterion("made-up", ("H1",))),
    (PATIENT, DATE, "last_updated", dates("2024-03-14T10:00Z", parameter="made-up")),
)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_parameter_is_answered_by_its_row_of_the_table(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(PEOPLE, PEOPLE_ROWS)
    for kind, type_, slot, criterion in ROWS:
        row = SearchParameter("made-up", type_, (slot,), "Of a test.", "Test", "id")
        rows = {**SEARCH_PARAMETERS[kind], "made-up": row}
        with monkeypatch.context() as patched:
            patched.setitem(SEARCH_PARAMETERS, kind, rows)
            adapter = opened(PEOPLE, ())
            query = ask(criterion, of=kind)
            assert ids_of(adapter.search(query)) == ["1"], slot
            assert adapter.count(query) == 1
