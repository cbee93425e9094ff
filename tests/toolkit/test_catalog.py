"""What a database says of itself, and small looks into its tables, on three kinds of them."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from adapters.contract import SourceDataError
from adapters.sql.engine import Database
from tests.databases import writing
from toolkit.catalogue import DatabaseTable, ForeignKey, Holds, read_catalogue
from toolkit.contents import (
    MOST_CODES,
    MOST_ROWS,
    Contents,
    ValueCount,
    count_contents,
    count_rows,
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
INSERT INTO cases VALUES {cases};
INSERT INTO stays VALUES
  ('H1', 1, 1, 'E', '2024-03-30 08:15:00', '1957-12-24',
   'a text that is much longer than any code is', NULL),
  ('H1', 2, 1, 'S', '2024-03-31 08:15:00', '1957-12-25', 'x', NULL),
  ('H1', 3, NULL, 'S', '2999-12-31 00:00:00', '1957-12-26', NULL, NULL),
  ('H1', 4, NULL, NULL, NULL, NULL, NULL, NULL)
"""


@pytest.fixture
def database(kind: str, new_url: Callable[[str], str]) -> Iterator[Database]:
    """Return each kind of database with the tables."""
    url = new_url(kind)
    time = "TIMESTAMP" if url.startswith("postgresql") else "DATETIME"
    quoted = "`Select`" if url.startswith("mysql") else '"Select"'
    engine = writing(url)
    with engine.begin() as connection:
        for statement in TABLES.split(";\n"):
            statement = statement.replace(
                "{cases}", ", ".join(["('m'), ('M'), ('m')"] * 5)
            )
            text = statement.replace("TIME_", time).replace('"Select"', quoted)
            connection.exec_driver_sql(text)
    engine.dispose()
    with closing(Database(url, 5, 1)) as opened:
        yield opened


def test_tables_columns_and_keys(database: Database) -> None:
    catalogue = read_catalogue(database)
    assert [*catalogue.by_name] == ["cases", "open_stays", "stays", "wards"]
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
    stays = read_catalogue(database).by_name["stays"]
    state = contents(database, stays, "state")
    assert (state.nulls, state.blanks, state.different) == (1, 0, 2)
    # A code that few rows have may be about one person.
    assert (state.codes, state.rare) == ([], 2)
    assert contents(database, stays, "noted") == Contents(2, different=2)
    assert count_rows(database, stays) == 4


def contents(database: Database, table: DatabaseTable, column: str) -> Contents:
    """Return what counts say of a column."""
    return count_contents(database, table, table.by_name[column], MOST_CODES)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_what_is_not_there_is_no_outage(database: Database) -> None:
    with pytest.raises(SourceDataError, match="there is no schema 'nowhere'"):
        read_catalogue(database, ["nowhere"])


def test_a_count_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    file = tmp_path / "slow.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "CREATE VIEW endless AS WITH RECURSIVE n(i) AS"
            " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i % 3 < 9)"
            " SELECT i % 3 AS code FROM n WHERE i < 0"
        )
    url = f"sqlite:///{file}"
    with (
        closing(Database(url, 60, 1)) as patient,
        closing(Database(url, 0.1, 1)) as short,
    ):
        (endless,) = read_catalogue(patient).tables
        assert count_rows(short, endless) is None
        assert contents(short, endless, "code") == Contents()


def test_more_rows_than_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "large.sqlite"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE stays (id INTEGER PRIMARY KEY, code TEXT)")
        connection.execute(
            "INSERT INTO stays WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
            " FROM n WHERE i < 100010) SELECT i, CASE WHEN i < 11 THEN 'A' ELSE 'B' END"
            " FROM n"
        )
    with closing(Database(f"sqlite:///{file}", 60, 1)) as database:
        (stays,) = read_catalogue(database).tables
        assert count_rows(database, stays) == MOST_ROWS + 1
        # Codes are of the newest rows.
        assert contents(database, stays, "code").codes == [ValueCount("B", MOST_ROWS)]


@pytest.mark.parametrize("number", [MOST_CODES, MOST_CODES + 1])
def test_rows_without_a_code_are_not_one_more_code(tmp_path: Path, number: int) -> None:
    file = tmp_path / "codes.sqlite"
    codes = [(str(n),) for n in range(number)] * 5
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE wards (code VARCHAR(3))")
        connection.executemany("INSERT INTO wards VALUES (?)", [*codes, (None,)])
    with closing(Database(f"sqlite:///{file}", 60, 1)) as database:
        (wards,) = read_catalogue(database).tables
        counts = contents(database, wards, "code").codes
    assert len(counts) == (number if number <= MOST_CODES else 0)


def test_codes_that_differ_in_case_are_two(database: Database) -> None:
    (cases,) = [t for t in read_catalogue(database).tables if t.name == "cases"]
    assert contents(database, cases, "code").codes == [
        ValueCount("m", 10),
        ValueCount("M", 5),
    ]


def test_days_far_away_are_counted(database: Database) -> None:
    stays = read_catalogue(database).by_name["stays"]
    assert contents(database, stays, "began") == Contents(1, far=[], rare=1)
    assert contents(database, stays, "born") == Contents(1, far=[])
