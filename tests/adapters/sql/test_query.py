"""Values that a database compares in another way than the mapping reads them."""

import pytest
import sqlalchemy as sa

from adapters.contract import (
    Criterion,
    NotFoundError,
    PatientRecord,
    ResourceType,
    Sort,
    SortKey,
    StringMatch,
)
from tests.adapters.emptied import Opened
from tests.databases import writing
from toolkit.contract.harness import (
    PATIENT,
    STAY,
    ask,
    dates,
    ids_of,
    patient,
    text,
    token,
)

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


SYSTEMS_ROWS = (
    "CREATE TABLE stays (id INTEGER, number VARCHAR(9), house VARCHAR(9))",
    "INSERT INTO stays VALUES (1, '5', NULL), (2, '5', 'X')",
)

OTHERS = """\
codes: {states: {table: {S: finished, X: removed}, otherwise: hidden}}
encounter:
  rows: SELECT id, state FROM stays
  fields: {id: {from: id}, patient_id: P, status: {from: state, codes: states}}
  search: [_id, status]
"""


OTHERS_ROWS = (
    "CREATE TABLE stays (id INTEGER, state VARCHAR(9))",
    "INSERT INTO stays VALUES (1, 'S'), (2, 'X'), (3, 'NEW'), (4, NULL)",
)

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


TYPED_ROWS = (
    "CREATE TABLE stays (id INTEGER, person VARCHAR(9))",
    "CREATE TABLE people (id INTEGER, merged INTEGER, born DATE)",
    "INSERT INTO stays VALUES (1, 'P1'), (2, '2'), (3, '3')",
    "INSERT INTO people VALUES (2, 3, NULL), (3, NULL, NULL)",
)

NAMES = """\
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

NAMES_ROWS = (
    "CREATE TABLE stays (id INTEGER PRIMARY KEY, person INTEGER)",
    "CREATE TABLE people (id INTEGER PRIMARY KEY, family VARCHAR(40), checked VARCHAR(1))",
    "CREATE TABLE names"
    " (person INTEGER, kind VARCHAR(9), last VARCHAR(40), first VARCHAR(40))",
    "INSERT INTO people VALUES (1, 'Lefevre', 'Y'), (2, 'Lefort', 'N'), (3, 'Morel', 'Y')",
    "INSERT INTO names VALUES (1, 'MAIDEN', 'Dubois', 'Anne'),"
    " (3, 'OLD', 'Dubois', 'Marie'), (3, 'MAIDEN', 'Lefoulon', 'Marie')",
)

FRACTIONS = """\
encounter:
  rows: SELECT id, began FROM stays
  fields: {id: {from: id}, patient_id: P, status: finished, start: {from: began}}
  search: [_id, date]
"""

FRACTIONS_ROWS = (
    "CREATE TABLE stays (id INTEGER, began VARCHAR(30))",
    "INSERT INTO stays VALUES (1, '2024-03-14 10:00:00'),"
    " (2, '2024-03-14 10:00:00.5'), (3, '2024-03-14 10:00:00.500001')",
)

TABLES = {
    "absent": (ABSENT, ABSENT_ROWS),
    "systems": (SYSTEMS, SYSTEMS_ROWS),
    "others": (OTHERS, OTHERS_ROWS),
    "typed": (TYPED, TYPED_ROWS),
    "names": (NAMES, NAMES_ROWS),
    "fractions": (FRACTIONS, FRACTIONS_ROWS),
}
EXTENSION = "service-provider._extension"
CONTAINS, EXACT = StringMatch.CONTAINS, StringMatch.EXACT

FOUND: dict[str, tuple[tuple[ResourceType, Criterion, list[str]], ...]] = {
    "absent": (
        # By what stands for no value nothing is found.
        (STAY, token("identifier", "0"), []),
        (STAY, token("identifier", "12"), ["2"]),
        (STAY, token(EXTENSION, "0000"), []),
        (STAY, token(EXTENSION, "0001"), ["2", "3"]),
        # The patient 1 was not merged: stays of "0" are somebody else's.
        (STAY, patient("1"), ["1"]),
        (STAY, patient("2", "3"), ["1", "3"]),
        (PATIENT, token("_id", "9"), []),
        (PATIENT, token("identifier", "0"), []),
        (PATIENT, text("name", "unknown"), ["2"]),
        (PATIENT, text("family", "known", match=CONTAINS), ["2"]),
        (PATIENT, text("family", "UNKNOWN", match=EXACT), []),
        # A number whose mapping names no system is in none.
        (PATIENT, token("identifier", "|7"), ["2"]),
        (PATIENT, token("identifier", "urn:oid:1.9|7"), []),
        (PATIENT, token("identifier", "urn:oid:1.9|"), []),
    ),
    # A system that is given to all others is one.
    "systems": (
        (STAY, token("identifier", "|5"), []),
        (STAY, token("identifier", "urn:oid:1.2|5"), ["1"]),
        (STAY, token("identifier", "urn:oid:1.1|5"), ["2"]),
    ),
    # Where all other codes are hidden, the removed ones are not served either.
    "others": (
        (STAY, token("_id", "1", "2", "3", "4"), ["1"]),
        (STAY, token("status", "finished", "hidden", "removed"), ["1"]),
    ),
    # A patient that is no id of patients is found beside one that is.
    "typed": (
        (STAY, patient("P1"), ["1"]),
        (STAY, patient("P1", "2"), ["1", "2", "3"]),
    ),
    # Names are found where they are, and where their item counts.
    "names": (
        (PATIENT, text("name", "lef"), ["1", "3"]),
        (PATIENT, text("family", "dubois"), ["1"]),
        (PATIENT, text("given", "anne"), ["1"]),
        (PATIENT, text("name", "lefort"), []),
        (PATIENT, text("given", "lef"), []),
    ),
    # Texts with fewer digits of a second compare as the times that they mean.
    "fractions": (
        (STAY, dates("ge2024-03-14T10:00:00.5+01:00"), ["2", "3"]),
        (STAY, dates("2024-03-14T10:00:00.500+01:00"), ["2", "3"]),
        (STAY, dates("2024-03-14T10:00:00.500000+01:00"), ["2"]),
        (STAY, dates("lt2024-03-14T10:00:00.500000+01:00"), ["1"]),
        (STAY, dates("gt2024-03-14T10:00:00+01:00"), []),
    ),
}


@pytest.mark.parametrize("tables", TABLES)
def test_found(opened: Opened, tables: str) -> None:
    adapter = opened(*TABLES[tables])
    for kind, criterion, found in FOUND[tables]:
        query = ask(criterion, of=kind)
        assert sorted(ids_of(adapter.search(query))) == found, criterion
        assert adapter.count(query) == len(found)


def test_a_day_of_birth_that_is_an_instant_is_the_day_in_its_zone(
    opened: Opened, url: str
) -> None:
    if url.startswith("sqlite"):
        pytest.skip("has no such type")
    is_mysql = url.startswith("mysql")
    adapter = opened(
        TYPED,
        (
            "SET time_zone = '+00:00'" if is_mysql else "SET TIME ZONE 'UTC'",
            "CREATE TABLE stays (id INTEGER, person INTEGER)",
            "CREATE TABLE people (id INTEGER, merged INTEGER, born"
            f" {'TIMESTAMP' if is_mysql else 'TIMESTAMPTZ'} NULL)",
            "INSERT INTO people VALUES (1, NULL, '1980-05-16 21:59:59'),"
            " (2, NULL, '1980-05-16 22:00:00')",
        ),
    )
    for day, ids in {"15": [], "16": ["1"], "17": ["2"], "18": []}.items():
        query = ask(dates(f"1980-05-{day}", parameter="birthdate"), of=PATIENT)
        rows = adapter.search(query).rows
        assert [row.id for row in rows if isinstance(row, PatientRecord)] == ids
        assert all(str(row.birth_date) == f"1980-05-{day}" for row in rows)  # type: ignore[union-attr]


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


FAR_CELLS = (
    ("TIMESTAMP(3)", "9999-12-31 23:59:59.999", "9999-12-31 23:59:59.999"),
    ("TIMESTAMP(3)", "9999-12-31 23:59:59", "9999-12-31T23:59:59"),
    ("TIMESTAMP(3)", "9999-12-31 00:00:00", "9999-12-31"),
    ("TIMESTAMPTZ", "2099-12-31 23:30:00+00", "2100-01-01 00:30:00+01:00"),
    ("DATE", "9999-12-31", "9999-12-31 00:00:00"),
    ("VARCHAR(30)", "9999-12-31 00:00:00", "9999-12-31"),
)
"""Type, value, and how the mapping file writes it."""


def test_a_time_that_stands_for_none_is_the_same_however_it_is_written(
    opened: Opened, url: str
) -> None:
    for number, (type_, cell, sentinel) in enumerate(FAR_CELLS):
        is_text = url.startswith("sqlite") and not type_.startswith("VARCHAR")
        if is_text or (url.startswith("mysql") and type_ == "TIMESTAMPTZ"):
            continue  # It has no such type.
        if url.startswith("mysql"):
            type_ = type_.replace("TIMESTAMP", "DATETIME")
        adapter = opened(
            FAR.replace("SENTINEL", sentinel).replace("stays", f"stays{number}"),
            (
                f"CREATE TABLE stays{number} (id INTEGER, began {type_})",
                f"INSERT INTO stays{number} VALUES (2, '{cell}'), (1, NULL)",
            ),
        )
        page = adapter.search(ask(sort=Sort(SortKey.DATE)))
        assert ids_of(page) == ["1", "2"]
        assert not any(getattr(row, "start", "?") for row in page.rows), cell
        assert adapter.count(ask(dates("gt1900"))) == 0


SIGNS = (
    *("o'neil", "a\\b", "100%", "%(a)s", ":now", "?", "&x", "é€", 'a"b', "-- x", "/*"),
)

VISITS = """\
encounter:
  rows: |
    SELECT id, visit, '%' || 'a\\b' AS unit FROM stays -- 5 % of all

    WHERE id >= 0
  fields:
    id: {from: id}
    patient_id: {from: id}
    status: finished
    visit_number: {from: visit}
    functional_unit: {from: unit}
  search: [_id, identifier, service-provider._extension]
"""


def test_no_sign_of_a_value_or_of_rows_has_a_meaning(opened: Opened, url: str) -> None:
    adapter = opened(VISITS, ("CREATE TABLE stays (id INTEGER, visit VARCHAR(20))",))
    engine = writing(url)
    with engine.begin() as connection:
        rows = [{"id": n, "visit": visit} for n, visit in enumerate(SIGNS)]
        insert = sa.text("INSERT INTO stays VALUES (:id, :visit)")
        connection.execute(insert, rows)
    engine.dispose()
    for id, visit in enumerate(SIGNS):
        assert ids_of(adapter.search(ask(token("identifier", visit)))) == [str(id)]
    unit = adapter.search(ask(token("service-provider._extension", "%a\\b")))
    assert len(unit.rows) == len(SIGNS)
