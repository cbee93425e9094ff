"""What `encounters mapping new` decides by counts, and the counts that its questions carry."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.cli import main

TABLES = """
CREATE TABLE hospital (id INTEGER PRIMARY KEY, name VARCHAR(20));
CREATE TABLE unit (id INTEGER PRIMARY KEY, unit_code VARCHAR(4), hospital_id INTEGER);
CREATE TABLE patient (
  id INTEGER PRIMARY KEY, mrn VARCHAR(8), last_name VARCHAR(20), sex CHAR(1), birth_date DATE);
CREATE TABLE patient_phone (id INTEGER PRIMARY KEY, patient_id INTEGER, type CHAR(4), value TEXT);
CREATE TABLE stay (
  id INTEGER PRIMARY KEY, visit_number VARCHAR(8), patient_id INTEGER, hospital_id INTEGER,
  unit_id INTEGER, status VARCHAR(10), stay_type CHAR(3), entry_date DATETIME,
  expected_entry_date DATETIME, exit_date DATETIME, deleted CHAR(1));
CREATE TABLE appointment (
  id INTEGER PRIMARY KEY, patient_id INTEGER, stay_id INTEGER, status VARCHAR(10),
  appointment_date DATETIME, arrival_date DATETIME);
CREATE TABLE outpatient_visit (
  id INTEGER PRIMARY KEY, patient_id INTEGER, appointment_id INTEGER, status VARCHAR(10),
  start_date DATETIME, end_date DATETIME);
INSERT INTO hospital VALUES (1, 'North'), (2, 'South');
INSERT INTO unit VALUES (1, '0123', 1), (2, '0200', 2);
INSERT INTO patient VALUES (1, 'M1', 'Roe', 'F', '1980-05-17');
"""
STAYS = """
INSERT INTO stay VALUES
  (1, 'V1', 1, 1, 1, 'finished', 'INP', '2024-05-01 08:00:00', NULL, '2024-05-02 08:00:00', 'N'),
  (2, 'V2', 1, 1, 2, 'finished', 'INP', '2024-05-03 08:00:00', NULL, '2024-05-04 08:00:00', 'Y'),
  (3, 'V3', 1, 1, NULL, 'cancelled', 'INP', '2024-05-05 08:00:00', NULL, NULL, 'Y'),
  (4, 'V1', 1, 2, 2, 'planned', 'INP', NULL, '2034-05-01 08:00:00', NULL, 'N'),
  (5, 'V5', 1, 1, 1, 'planned', 'INP', NULL, '2034-05-02 08:00:00', NULL, 'N');
"""

New = Callable[..., str]


@pytest.fixture
def new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> New:
    """Return the first mapping of a small hospital, in one line; `rows` are in it."""

    def write(rows: str, *more: str) -> str:
        file = tmp_path / "pas.sqlite"
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(TABLES + STAYS + rows)
        assert main(["mapping", "new", "--from", f"sqlite:///{file}", *more]) == 0
        lines = capsys.readouterr().out.splitlines()
        return " ".join(line.strip().removeprefix("# ").strip() for line in lines)

    return write


ONE_TABLE = "--stay", "stay"


def test_an_expected_date_is_a_start_where_no_planned_stay_has_another(
    new: New,
) -> None:
    text = new("", *ONE_TABLE)
    assert (
        "start: of 2 planned stays 0 have entry_date, and 2 expected_entry_date alone"
        in text
    )
    assert "COALESCE(s.entry_date, s.expected_entry_date) AS began" in text
    assert "start: {from: began}" in " ".join(text.split())


def test_an_expected_date_is_no_start_where_planned_stays_have_one(new: New) -> None:
    rows = "UPDATE stay SET entry_date = expected_entry_date WHERE id = 5;"
    text = new(rows, *ONE_TABLE)
    assert (
        "start: of 2 planned stays 1 have entry_date, and 1 expected_entry_date alone. What is"
        " only expected is no start" in text
    )
    assert "COALESCE(s.entry_date" not in text
    assert "The start of a planned stay" in text


def test_an_expected_date_is_a_question_where_no_state_is_known_to_be_planned(
    new: New,
) -> None:
    text = new("UPDATE stay SET status = 'zz9' WHERE status = 'planned';", *ONE_TABLE)
    assert (
        "? start: is expected_entry_date the start of stays that are planned?" in text
    )
    assert "COALESCE(s.entry_date" not in text


def test_the_organization_is_that_of_the_unit_where_the_two_differ(new: New) -> None:
    text = new("", *ONE_TABLE)
    assert "in 1 of 5 rows hospital_id of the unit is another" in text
    assert "COALESCE(u.hospital_id, s.hospital_id) AS house" in text


def test_the_organization_is_that_of_the_stay_where_they_agree(new: New) -> None:
    text = new("UPDATE stay SET hospital_id = 2 WHERE unit_id = 2;", *ONE_TABLE)
    assert "of the unit is another" not in text
    assert "organization_id: {from: hospital_id}" in " ".join(text.split())


def test_numbers_that_each_hospital_counts_are_told_from_those_that_repeat(
    new: New, tmp_path: Path
) -> None:
    assert "4 numbers make 5 with hospital_id" in new("", *ONE_TABLE)
    (tmp_path / "pas.sqlite").unlink()
    text = new("UPDATE stay SET hospital_id = 1, unit_id = 1;", *ONE_TABLE)
    assert "1 occur again: does each hospital count for itself?" in text


def test_a_mark_says_how_many_rows_with_it_would_be_served(new: New) -> None:
    text = new("", *ONE_TABLE)
    assert (
        "deleted (N: 3, Y: 2) seems to mark rows that were deleted (1 of 2 have a state that is"
        in text
    )
    assert "WHERE (deleted IS NULL OR deleted NOT IN ('Y')) in rows?" in text


def test_a_table_that_leads_to_nobody_is_not_read(new: New, tmp_path: Path) -> None:
    text = new("INSERT INTO patient_phone VALUES (1, NULL, 'home', '555-0100');")
    assert (
        "telecoms: patient_phone is not read: patient_id is empty in all of its 1"
        in text
    )
    assert "FROM patient_phone" not in text
    (tmp_path / "pas.sqlite").unlink()
    text = new("INSERT INTO patient_phone VALUES (1, 1, 'home', '555-0100');")
    assert "FROM patient_phone" in text


def test_a_visit_that_has_an_appointment_is_served_once_and_as_the_visit(
    new: New,
) -> None:
    text = new(
        "INSERT INTO appointment VALUES (1, 1, NULL, 'done', '2024-05-01 08:00:00', NULL),"
        " (2, 1, NULL, 'planned', '2034-05-01 08:00:00', NULL);"
        "INSERT INTO outpatient_visit VALUES"
        " (1, 1, 1, 'done', '2024-05-01 08:10:00', '2024-05-01 09:00:00'),"
        " (2, 1, NULL, 'done', '2024-05-02 08:10:00', '2024-05-02 09:00:00');"
    )
    assert (
        "1 of 2 rows are of visits that outpatient_visit has too (its appointment_id): served"
        " from there" in text
    )
    assert (
        "NOT EXISTS (SELECT 1 FROM outpatient_visit other WHERE other.appointment_id = a.id)"
        in text
    )
    # The codes are those of the rows that are left.
    assert "done: finished           # 2 rows" in text
    assert "planned: planned         # 1 row" in text


def test_tables_of_the_same_columns_are_asked_about(new: New) -> None:
    text = new(
        "CREATE TABLE stay_archive AS SELECT *, '2025-01-01' AS archived_on FROM stay;",
        *("--stay", "stay", "stay_archive", "appointment"),
    )
    asked = (
        "has the same columns: do stays move there, or from there? Then one SELECT of"
    )
    assert f"stay_archive {asked}" in text
    assert text.count("has the same columns") == 1


def test_a_part_of_a_stay_that_is_not_served_stands_for_itself(
    new: New, tmp_path: Path
) -> None:
    part = (
        "INSERT INTO appointment VALUES (1, 1, 1, 'done', '2024-05-01 08:00:00', NULL)"
    )
    whole = (
        "(a.stay_id IS NULL OR a.stay_id IN (SELECT other.id FROM stay other WHERE"
        " other.status IN ('cancelled')))"
    )
    free = "(2, 1, NULL, 'done', '2024-05-06 08:00:00', NULL)"
    text = new(f"{part}, {free};")
    assert "1 of 2 rows have stay_id: parts of stays of stay" in text
    assert "left out here; none more are of stays that are not served" in text
    # A stay of tomorrow may be cancelled with its parts.
    assert whole in text
    (tmp_path / "pas.sqlite").unlink()
    text = new(f"{part}, {free}, (3, 1, 3, 'done', '2024-05-05 08:00:00', NULL);")
    assert "left out here; 1 more are of stays that are not served" in text
    assert whole in text


MERGED = "ALTER TABLE patient ADD COLUMN merged_into INTEGER REFERENCES patient (id);"
OTHER = "INSERT INTO patient VALUES (2, 'M2', 'Roe', 'F', '1980-05-17', {});"


def test_stays_of_merged_patients_are_counted_with_the_sql_that_shows_who_lives_on(
    new: New,
) -> None:
    other = OTHER.format(1)
    text = new(
        f"{MERGED}{other} UPDATE stay SET patient_id = 2 WHERE id < 3;", *ONE_TABLE
    )
    assert (
        "2 of 5 stays are of a patient who was merged into another. To show the one who"
        " lives on, in rows SELECT …, COALESCE(p.merged_into, s.patient_id) AS patient_shown"
        " FROM stay s LEFT JOIN unit u ON u.id = s.unit_id LEFT JOIN patient p ON p.id ="
        " s.patient_id, and patient_id: {from: patient_shown}"
        in text.replace(" ? ", " ")
    )


@pytest.mark.parametrize(
    ("survivor", "said"),
    [
        (1, "none of the 1 patients who were merged into another has a stay here"),
        ("NULL", "0 of 5 stays are of a patient who was merged into another, and no"),
    ],
    ids=["moved", "nobody-yet"],
)
def test_where_no_stay_is_of_a_merged_patient_it_says_what_that_tells(
    new: New, survivor: object, said: str
) -> None:
    assert said in new(f"{MERGED}{OTHER.format(survivor)}", *ONE_TABLE)


def test_rows_without_a_state_and_the_meaning_of_codes_are_questions(new: New) -> None:
    text = new("UPDATE stay SET status = NULL WHERE id = 1;", *ONE_TABLE)
    assert (
        "? status: 1 of 5 rows have no status, and cannot be served: what are" in text
    )
    # One mark for what habits know.
    assert "status:  # ? stay.status: do its codes mean that? It is guessed by" in text
    assert "cancelled: hidden        # 1 row" in text
