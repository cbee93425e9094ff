"""Values that a database compares in another way than the mapping reads them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    Criterion,
    EncounterRecord,
    NotFoundError,
    PatientRecord,
    ResourceType,
    Sort,
    SortKey,
    StringCriterion,
    StringMatch,
)
from adapters.mapping.load import load_mapping
from adapters.testing.harness import (
    PATIENT,
    STAY,
    ask,
    dates,
    ids_of,
    patient,
    text,
    token,
)
from tests.adapters.emptied import NUMBERED, Opened
from tests.databases import NewDatabase

STATES = """\
codes: {states: {table: {S: finished, A: hidden, X: removed}, otherwise: planned}}
encounter:
  rows: SELECT id, person, state FROM stays
  fields: {id: {from: id}, patient_id: {from: person}, status: {from: state, codes: states}}
  search: [_id, status]
"""


def test_a_hidden_stay_whose_code_ends_in_blanks_is_never_served(
    opened: Opened,
) -> None:
    adapter = opened(
        STATES,
        (
            "CREATE TABLE stays (id INTEGER, person INTEGER, state VARCHAR(4))",
            "INSERT INTO stays VALUES (1, 1, 'S'), (2, 1, 'A '), (3, 1, 'X  ')",
        ),
    )
    for query in (ask(), ask(token("status", "planned")), ask(token("_id", "2", "3"))):
        assert {*ids_of(adapter.search(query))} <= {"1", "!state"}
    with pytest.raises(NotFoundError):
        adapter.read(STAY, "2")


ABSENT = """\
encounter:
  rows: SELECT id, person, number, unit FROM stays
  fields:
    id: {from: id}
    patient_id: {from: person}
    status: finished
    visit_number: {from: number, absent: ["0"]}
    functional_unit: {from: unit, absent: ["0000"]}
  search: [_id, patient, identifier, service-provider._extension]
patient:
  rows: SELECT id, merged, family, ipp FROM people
  fields:
    id: {from: id, absent: ["9"]}
    replaced_by: {from: merged, absent: ["0"]}
    names: [{family: {from: family, absent: [UNKNOWN]}}]
    identifiers: [{type: PI, value: {from: ipp, absent: ["0"]}}]
  search: [_id, name, family, identifier]
"""

ABSENT_ROWS = (
    "CREATE TABLE stays (id INTEGER, person INTEGER, number VARCHAR(9), unit VARCHAR(9))",
    "CREATE TABLE people"
    " (id INTEGER, merged INTEGER, family VARCHAR(9), ipp VARCHAR(9))",
    "INSERT INTO stays VALUES"
    " (1, 1, '0', '0000'), (2, 0, '12', '0001'), (3, 2, '0', '0001')",
    "INSERT INTO people VALUES"
    " (1, 0, 'UNKNOWN', '0'), (2, 1, 'Unknowns', '7'), (3, 2, NULL, NULL), (9, 0, NULL, NULL)",
)


@pytest.mark.parametrize(
    ("criterion", "found"),
    [
        (token("identifier", "0"), []),
        (token("identifier", "12"), ["2"]),
        (token("service-provider._extension", "0000"), []),
        (token("service-provider._extension", "0001"), ["2", "3"]),
        # The patient 1 was not merged: stays of "0" are somebody else's.
        (patient("1"), ["1"]),
        (patient("2", "3"), ["1", "3"]),
    ],
    ids=str,
)
def test_no_stay_is_found_by_what_stands_for_no_value(
    opened: Opened, criterion: Criterion, found: list[str]
) -> None:
    adapter = opened(ABSENT, ABSENT_ROWS)
    assert sorted(ids_of(adapter.search(ask(criterion)))) == found
    assert adapter.count(ask(criterion)) == len(found)


@pytest.mark.parametrize(
    ("criterion", "found"),
    [
        (token("_id", "9"), []),
        (token("identifier", "0"), []),
        (token("identifier", "7"), ["2"]),
        (text("name", "unknown"), ["2"]),
        (text("family", "known", match=StringMatch.CONTAINS), ["2"]),
        (text("family", "UNKNOWN", match=StringMatch.EXACT), []),
    ],
    ids=str,
)
def test_nobody_is_found_by_what_stands_for_no_value(
    opened: Opened, criterion: Criterion, found: list[str]
) -> None:
    adapter = opened(ABSENT, ABSENT_ROWS)
    query = ask(criterion, of=PATIENT)
    assert sorted(ids_of(adapter.search(query))) == found
    assert adapter.count(query) == len(found)


@pytest.mark.parametrize(
    ("number", "found"), [("|7", ["2"]), ("urn:oid:1.9|7", []), ("urn:oid:1.9|", [])]
)
def test_a_number_whose_mapping_names_no_system_is_in_none(
    opened: Opened, number: str, found: list[str]
) -> None:
    query = ask(token("identifier", number), of=PATIENT)
    assert ids_of(opened(ABSENT, ABSENT_ROWS).search(query)) == found


SYSTEMS = """\
codes: {systems: {table: {X: "urn:oid:1.1"}, otherwise: "urn:oid:1.2"}}
encounter:
  rows: SELECT id, number, house FROM stays
  fields:
    id: {from: id}
    patient_id: P
    status: finished
    visit_number: {from: number}
    visit_number_system: {from: house, codes: systems}
  search: [_id, identifier]
"""


@pytest.mark.parametrize(
    ("value", "found"),
    [("|5", []), ("urn:oid:1.2|5", ["1"]), ("urn:oid:1.1|5", ["2"])],
    ids=str,
)
def test_a_system_that_is_given_to_all_others_is_a_system(
    opened: Opened, value: str, found: list[str]
) -> None:
    adapter = opened(
        SYSTEMS,
        (
            "CREATE TABLE stays (id INTEGER, number VARCHAR(9), house VARCHAR(9))",
            "INSERT INTO stays VALUES (1, '5', NULL), (2, '5', 'X')",
        ),
    )
    assert sorted(ids_of(adapter.search(ask(token("identifier", value))))) == found


TYPED = """\
encounter:
  rows: SELECT id, person FROM stays
  fields: {id: {from: id}, patient_id: {from: person}, status: finished}
  search: [_id, patient]
patient:
  rows: SELECT id, merged, born FROM people
  fields:
    id: {from: id}
    replaced_by: {from: merged}
    birth_date: {from: born}
  search: [_id, birthdate]
"""


def test_a_patient_that_is_no_id_of_patients_is_found_beside_one_that_is(
    opened: Opened,
) -> None:
    adapter = opened(
        TYPED,
        (
            "CREATE TABLE stays (id INTEGER, person VARCHAR(9))",
            "CREATE TABLE people (id INTEGER, merged INTEGER, born DATE)",
            "INSERT INTO stays VALUES (1, 'P1'), (2, '2'), (3, '3')",
            "INSERT INTO people VALUES (2, 3, NULL), (3, NULL, NULL)",
        ),
    )
    assert ids_of(adapter.search(ask(patient("P1")))) == ["1"]
    assert {*ids_of(adapter.search(ask(patient("P1", "2"))))} == {"1", "2", "3"}


@pytest.mark.parametrize(
    ("id_type", "key_type", "ids"),
    [
        ("CHAR(6)", "VARCHAR(8)", ("A1", "a1")),
        ("CHAR(6)", "CHAR(8)", ("A1", "a1")),
        ("VARCHAR(8)", "CHAR(8)", ("A1", "a1")),
        ("VARCHAR(8)", "VARCHAR(8)", ("A1  ", "B1")),
        ("BIGINT", "NUMERIC(20,2)", ("9007199254740993", "2")),
        ("BIGINT", "VARCHAR(20)", ("9007199254740993", "2")),
        ("VARCHAR(20)", "BIGINT", ("9007199254740993", "2")),
    ],
)
def test_items_are_those_of_the_id_whatever_type_their_key_has(
    opened: Opened, id_type: str, key_type: str, ids: tuple[str, str]
) -> None:
    one, other = ids
    adapter = opened(
        NUMBERED,
        (
            f"CREATE TABLE people (id {id_type})",
            f"CREATE TABLE numbers (person {key_type}, number VARCHAR(8))",
            f"INSERT INTO people VALUES ('{one}'), ('{other}')",
            f"INSERT INTO numbers VALUES ('{one}', 'N1'), ('{other}', 'N2'), (NULL, 'N3')",
        ),
    )
    rows = adapter.search(ask(of=PATIENT)).rows
    assert {
        row.id: [each.value for each in row.identifiers]
        for row in rows
        if isinstance(row, PatientRecord)
    } == {one.strip(): ["N1"], other: ["N2"]}
    query = ask(token("identifier", "N1"), of=PATIENT)
    assert ids_of(adapter.search(query)) == [one.strip()]


def test_numbers_that_are_nearly_the_same_are_not_found_for_each_other(
    opened: Opened,
) -> None:
    adapter = opened(
        NUMBERED,
        (
            "CREATE TABLE people (id BIGINT)",
            "CREATE TABLE numbers (person VARCHAR(20), number VARCHAR(8))",
            "INSERT INTO people VALUES (9007199254740992), (9007199254740993), (42)",
            "INSERT INTO numbers VALUES ('9007199254740993', 'N1'), ('042', 'N2')",
        ),
    )
    for number, found in {"N1": ["9007199254740993"], "N2": []}.items():
        query = ask(token("identifier", number), of=PATIENT)
        assert ids_of(adapter.search(query)) == found


def test_a_number_with_many_digits_is_found_as_it_is_shown(opened: Opened) -> None:
    adapter = opened(
        STATES,
        (
            "CREATE TABLE stays (id DOUBLE PRECISION, person INTEGER, state VARCHAR(4))",
            "INSERT INTO stays VALUES (1000000000000001, 1, 'S'), (2, 1, 'S')",
        ),
    )
    assert adapter.read(STAY, "1000000000000001").id == "1000000000000001"


NUMBERS = """\
encounter:
  rows: SELECT id, began FROM stays
  fields:
    id: {from: id}
    patient_id: P
    status: finished
    start: {from: began, format: "%Y%m%d%H%M"}
  search: [_id, date]
  sort: [date]
"""


@pytest.mark.parametrize("type_", ["BIGINT", "DECIMAL(12)"])
def test_a_number_is_read_and_compared_as_the_time_that_it_says(
    opened: Opened, type_: str
) -> None:
    adapter = opened(
        NUMBERS,
        (
            f"CREATE TABLE stays (id INTEGER, began {type_})",
            "INSERT INTO stays VALUES (1, 202403141000), (2, 202403141001), (3, NULL)",
        ),
    )
    assert ids_of(adapter.search(ask(sort=Sort(SortKey.DATE)))) == ["1", "2", "3"]
    minute = ask(dates("2024-03-14T10:00"))
    assert ids_of(adapter.search(minute)) == ["1"]


def test_minus_nought_is_no_id(opened: Opened) -> None:
    adapter = opened(
        STATES,
        (
            "CREATE TABLE stays (id NUMERIC(5), person INTEGER, state VARCHAR(4))",
            "INSERT INTO stays VALUES (0, 1, 'S')",
        ),
    )
    assert ids_of(adapter.search(ask(token("_id", "0")))) == ["0"]
    assert ids_of(adapter.search(ask(token("_id", "-0")))) == []


@pytest.mark.parametrize(
    ("clock", "day"), [("21:59:59", "1980-05-16"), ("22:00:00", "1980-05-17")]
)
def test_a_day_of_birth_that_is_an_instant_is_the_day_in_its_zone(
    opened: Opened, url: str, clock: str, day: str
) -> None:
    if url.startswith("sqlite"):
        pytest.skip("has no such type")
    instant = "TIMESTAMP NULL" if url.startswith("mysql") else "TIMESTAMPTZ"
    adapter = opened(
        TYPED,
        (
            "SET TIME ZONE 'UTC'"
            if url.startswith("postgresql")
            else "SET time_zone = '+00:00'",
            "CREATE TABLE stays (id INTEGER, person INTEGER)",
            f"CREATE TABLE people (id INTEGER, merged INTEGER, born {instant})",
            f"INSERT INTO people VALUES (1, NULL, '1980-05-16 {clock}')",
        ),
    )
    for asked in ("1980-05-15", "1980-05-16", "1980-05-17", "1980-05-18"):
        query = ask(dates(asked, parameter="birthdate"), of=PATIENT)
        found = adapter.search(query)
        assert ids_of(found) == (["1"] if asked == day else [])
    assert str(adapter.read(PATIENT, "1").birth_date) == day  # type: ignore[union-attr]


FAR = """\
encounter:
  rows: SELECT id, began FROM stays
  fields:
    id: {from: id}
    patient_id: P
    status: finished
    start: {from: began, absent: ["SENTINEL"], at: "00:00"}
  search: [_id, date]
  sort: [date]
"""


@pytest.mark.parametrize(
    ("type_", "cell", "sentinel"),
    [
        ("TIMESTAMP(3)", "9999-12-31 23:59:59.999", "9999-12-31 23:59:59.999"),
        ("TIMESTAMP(3)", "9999-12-31 23:59:59", "9999-12-31T23:59:59"),
        ("TIMESTAMP(3)", "9999-12-31 00:00:00", "9999-12-31 00:00"),
        ("TIMESTAMP(3)", "9999-12-31 00:00:00", "9999-12-31"),
        ("TIMESTAMPTZ", "2099-12-31 23:30:00+00", "2100-01-01 00:30:00+01:00"),
        ("DATE", "9999-12-31", "9999-12-31 00:00:00"),
        ("VARCHAR(30)", "9999-12-31 00:00:00", "9999-12-31"),
    ],
)
def test_a_time_that_stands_for_none_is_the_same_however_it_is_written(
    opened: Opened, url: str, type_: str, cell: str, sentinel: str
) -> None:
    is_text = url.startswith("sqlite") and not type_.startswith("VARCHAR")
    if is_text or (url.startswith("mysql") and type_ == "TIMESTAMPTZ"):
        pytest.skip("has no such type")
    if url.startswith("mysql"):
        type_ = type_.replace("TIMESTAMP", "DATETIME")
    adapter = opened(
        FAR.replace("SENTINEL", sentinel),
        (
            f"CREATE TABLE stays (id INTEGER, began {type_})",
            f"INSERT INTO stays VALUES (2, '{cell}'), (1, NULL)",
        ),
    )
    rows = adapter.search(ask(sort=Sort(SortKey.DATE))).rows
    assert [row.start for row in rows if isinstance(row, EncounterRecord)] == [None] * 2
    assert ids_of(adapter.search(ask(sort=Sort(SortKey.DATE)))) == ["1", "2"]
    assert adapter.count(ask(dates("gt1900"))) == 0


NAMES = """\
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

NAME_TABLES = (
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
        for statement in NAME_TABLES:
            connection.exec_driver_sql(statement)
    engine.dispose()
    file = tmp_path / "hospital.yaml"
    file.write_text(NAMES, encoding="utf-8")
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
