"""What a database says of itself, and small looks into its tables, on three kinds of them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from adapters.contract import SourceDataError
from adapters.sql.engine import Database
from tests.databases import writing
from toolkit.catalogue import (
    MOST_CODES,
    CodeCount,
    Contents,
    ForeignKey,
    Holds,
    read_catalogue,
)

TABLES = """
CREATE TABLE wards (ward_id INTEGER PRIMARY KEY, code VARCHAR(4) NOT NULL UNIQUE);
CREATE TABLE stays (
  house CHAR(2) NOT NULL, number INTEGER NOT NULL, ward_id INTEGER, state VARCHAR(3),
  began TIME_, born DATE, noted VARCHAR(200), "Select" VARCHAR(9),
  PRIMARY KEY (house, number), FOREIGN KEY (ward_id) REFERENCES wards (ward_id));
CREATE TABLE cases (code VARCHAR(3));
CREATE INDEX stays_began ON stays (began, number);
CREATE VIEW open_stays AS SELECT number, state FROM stays WHERE state = 'E';
INSERT INTO wards VALUES (1, '0123');
INSERT INTO cases VALUES ('m'), ('M'), ('m');
INSERT INTO stays VALUES
  ('H1', 1, 1, 'E', '2024-03-30 08:15:00', '1957-12-24',
   'a text that is much longer than any code is', NULL),
  ('H1', 2, 1, 'S', '2024-03-31 08:15:00', '1957-12-25', 'x', NULL),
  ('H1', 3, NULL, 'S', '2999-12-31 00:00:00', '1957-12-26', NULL, NULL),
  ('H1', 4, NULL, NULL, NULL, NULL, NULL, NULL)
"""


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """Return each kind of database with the tables."""
    time = "TIMESTAMP" if url.startswith("postgresql") else "DATETIME"
    quoted = "`Select`" if url.startswith("mysql") else '"Select"'
    engine = writing(url)
    with engine.begin() as connection:
        for statement in TABLES.split(";\n"):
            text = statement.replace("TIME_", time).replace('"Select"', quoted)
            connection.exec_driver_sql(text)
    engine.dispose()
    with closing(Database(url, 5, 1)) as opened:
        yield opened


def test_tables_columns_and_keys(database: Database) -> None:
    catalogue = read_catalogue(database)
    views = {table.name: table.is_view for table in catalogue.tables}
    assert views == {
        "cases": False,
        "open_stays": True,
        "stays": False,
        "wards": False,
    }
    stays, wards = catalogue.by_name["stays"], catalogue.by_name["wards"]
    assert stays.primary_key == ("house", "number")
    assert stays.foreign_keys == (ForeignKey(("ward_id",), "wards", ("ward_id",)),)
    assert ("began", "number") not in stays.unique
    assert wards.is_unique("code")
    assert wards.is_unique("ward_id")
    assert not stays.is_unique("number")
    columns = stays.by_name
    text, number = Holds.TEXT, Holds.INTEGER
    assert {name: column.holds for name, column in columns.items()} == {
        **{"house": text, "number": number, "ward_id": number, "state": text},
        **{"began": Holds.LOCAL_TIME, "born": Holds.DATE, "noted": text},
        "Select": text,
    }
    assert columns["state"].written == "state"
    # Names are written as a statement needs them.
    written = ", ".join(column.written for column in stays.columns)
    found = database.columns(f"SELECT {written} FROM {stays.written}")
    assert [column.name for column in found] == list(columns)


def test_codes_are_counted_and_texts_are_not(database: Database) -> None:
    catalogue = read_catalogue(database)
    stays = catalogue.by_name["stays"]
    counted = (CodeCount("S", 2), CodeCount("E", 1))
    assert Contents(database).codes(stays, "state") == counted
    assert Contents(database).codes(stays, "noted") is None


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_what_is_not_there_is_no_outage(database: Database) -> None:
    with pytest.raises(SourceDataError, match="there is no schema 'nowhere'"):
        read_catalogue(database, ["nowhere"])


def test_a_look_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    file = tmp_path / "slow.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "CREATE VIEW endless AS WITH RECURSIVE n(i) AS"
            " (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i % 3 AS code FROM n"
        )
    url = f"sqlite:///{file}"
    with (
        closing(Database(url, 60, 1)) as patient,
        closing(Database(url, 0.1, 1)) as short,
    ):
        (endless,) = read_catalogue(patient).tables
        assert Contents(short).codes(endless, "code") is None


@pytest.mark.parametrize("number", [MOST_CODES, MOST_CODES + 1])
def test_rows_without_a_code_are_not_one_more_code(tmp_path: Path, number: int) -> None:
    file = tmp_path / "codes.sqlite"
    codes = [(str(n),) for n in range(number)]
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE wards (code VARCHAR(3))")
        connection.executemany("INSERT INTO wards VALUES (?)", [*codes, (None,)])
    with closing(Database(f"sqlite:///{file}", 60, 1)) as database:
        (wards,) = read_catalogue(database).tables
        counts = Contents(database).codes(wards, "code")
    assert len(counts or ()) == (number if number <= MOST_CODES else 0)


def test_codes_that_differ_in_case_are_two(database: Database) -> None:
    (stays,) = [t for t in read_catalogue(database).tables if t.name == "cases"]
    assert Contents(database).codes(stays, "code") == (
        CodeCount("m", 2),
        CodeCount("M", 1),
    )


def test_what_columns_hold_is_counted(database: Database) -> None:
    tables, contents = read_catalogue(database).by_name, Contents(database)
    stays, wards, cases = tables["stays"], tables["wards"], tables["cases"]
    assert contents.is_filled(stays)
    assert contents.is_filled(stays, "noted")
    assert not contents.is_filled(stays, "Select")
    assert contents.variety(stays, "number") == 1
    assert contents.variety(stays, "state") == 2 / 3
    assert contents.variety(stays, "Select") == 1
    labels = contents.labels(stays, "ward_id", wards, "ward_id", "code")
    assert labels == (CodeCount("1", 2, "0123"),)
    first, last = datetime(1800, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001 - local
    (far,) = contents.times_outside(stays, "began", first, last)
    assert far.startswith("2999-12-31")
    assert contents.filled(stays) == contents.filled(stays, "number") == 4
    assert contents.are_ids(wards, "code")
    assert not contents.are_ids(stays, "noted")
    assert contents.are_numbers(wards, "code")
    assert not contents.are_numbers(stays, "house")
    assert contents.is_within(stays, "number", stays, "number")
    assert contents.time_form(stays, "state") is None
    assert not contents.are_births(stays, "began")
    assert contents.codes(cases, "code") is contents.codes(cases, "code")
