"""`encounters mapping new` on hospitals: how many slots of a draft are right.

Two are public schemas (tests/app/cli/hospitals), two the demo hospital and GNU Health.
"""

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
import yaml

from adapters import open_adapter
from adapters.contract import (
    EncounterRecord,
    PatientRecord,
    ResourceType,
    SearchQuery,
    Sort,
    SortKey,
)
from adapters.mapping.load import load_mapping
from app.cli import main
from tests.app.cli import hospitals
from tests.databases import writing
from tests.sets import SERVERS

ENOUGH = 0.7

NewUrl = Callable[[str], str]


@pytest.fixture
def draft(new_url: NewUrl, tmp_path: Path) -> Callable[[str, str], tuple[str, str]]:
    """Return what fills a hospital, and returns its URL and the text of its draft."""

    def make(name: str, kind: str = "sqlite") -> tuple[str, str]:
        url = new_url(kind)
        hospitals.fill(name, url)
        return url, written(url, tmp_path, *hospitals.KEYS[name]["options"])

    return make


def written(url: str, folder: Path, *options: str) -> str:
    """Return the text of a draft."""
    file = folder / "new.yaml"
    assert main(["mapping", "new", "--from", url, "--out", str(file), *options]) in (
        0,
        1,
    )
    return file.read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "sqlite") for name in hospitals.KEYS),
        *((name, "mariadb") for name in ("openemr", "openmrs")),
    ],
)
def test_most_slots_are_right_and_no_wrong_one_is_silent(
    name: str, kind: str, draft: Callable[[str, str], tuple[str, str]]
) -> None:
    _, text = draft(name, kind)
    score = hospitals.score(text, hospitals.KEYS[name])
    assert score.silent == ()
    assert score.share >= ENOUGH, score
    assert all(word not in text.replace(":now", "") for word in ("NOW()", "CURRENT_"))


@pytest.mark.parametrize("name", ["openemr", "openmrs", "demo"])
def test_the_tables_are_found_without_options(
    name: str, new_url: NewUrl, tmp_path: Path
) -> None:
    url = new_url("sqlite")
    hospitals.fill(name, url)
    text = written(url, tmp_path)
    score = hospitals.score(text, hospitals.KEYS[name])
    assert score.silent == ()
    assert score.share >= ENOUGH, score
    # Each choice of a table is a question.
    sections = ("\nencounter:", "\npatient:", "\norganization:")
    assert text.count("# ? by keys and names this is ") == sum(
        s in text for s in sections
    )


def test_what_a_draft_reads_is_served(
    draft: Callable[[str], tuple[str, str]], tmp_path: Path
) -> None:
    url, text = draft("openmrs")
    # Codes are answered.
    text = text.replace("table: {}", "table: {F: female, M: male}", 2).replace(
        "table: {F: female, M: male}", "table: {Inpatient: IMP}", 1
    )
    file = tmp_path / "answered.yaml"
    file.write_text(text, "utf-8")
    with closing(open_adapter(load_mapping(file, {"PAS_URL": url}))) as adapter:
        query = SearchQuery(ResourceType.PATIENT, (), Sort(SortKey.ID), 1)
        (patient,) = adapter.search(query).rows
        stays = SearchQuery(ResourceType.ENCOUNTER, (), Sort(SortKey.ID), 1)
        number = adapter.count(stays)
    assert isinstance(patient, PatientRecord)
    assert [(name.family, name.given) for name in patient.names] == [
        ("Family1", ("Given1",))
    ]
    # Every 50th stay is voided.
    assert number == hospitals.STAYS - hospitals.STAYS // 50


FAR, FURTHER = "2999-12-31 00:00:00", "9999-12-31 00:00:00"
ZERO = "0000-00-00 00:00:00"
_PLAIN = dict.fromkeys((FAR, FURTHER), "s.date_end")
_OF_SERVERS = {**_PLAIN, ZERO: "NULLIF(s.date_end, 0)"}
ENDS: dict[str, dict[str, str]] = {
    "sqlite": {**_PLAIN, ZERO: f"NULLIF(s.date_end, '{ZERO}')"},
    "postgresql": {**_PLAIN, "infinity": "s.date_end"},
    **dict.fromkeys(SERVERS, _OF_SERVERS),
}
"""Ends that are none, and what a draft selects for them, by kind of database."""


@pytest.mark.parametrize(
    ("kind", "end"),
    [(kind, end) for kind, ends in ENDS.items() for end in ends],
)
def test_an_end_that_is_none_is_no_end_and_the_derived_status_agrees(
    kind: str, end: str, new_url: NewUrl, tmp_path: Path
) -> None:
    url, expected = new_url(kind), ENDS[kind][end]
    time = "TIMESTAMP" if kind == "postgresql" else "DATETIME"
    engine = writing(url)
    with engine.begin() as connection:
        columns = f"id INTEGER PRIMARY KEY, date_start {time}, date_end {time}"
        connection.execute(sa.text(f"CREATE TABLE stays ({columns})"))
        row = sa.text("INSERT INTO stays VALUES (:id, '2024-01-01 00:00:00', :end)")
        connection.execute(row, {"id": 1, "end": end})
        connection.execute(row, {"id": 2, "end": "2024-01-03 00:00:00"})
    engine.dispose()
    text = written(url, tmp_path)
    assert ("absent: " in text) is (expected == "s.date_end")
    stays = (file := yaml.safe_load(text))["encounter"]
    # No column holds the status: it is derived.
    assert re.search(r"status: .*# \? ", text)
    assert f"WHEN {expected} <= :now" in stays["rows"]
    stays["fields"] |= {"patient_id": "1"}
    (tmp_path / "answered.yaml").write_text(yaml.safe_dump(file), "utf-8")
    mapping = load_mapping(tmp_path / "answered.yaml", {"PAS_URL": url})
    source = replace(mapping.source, may_write=True)
    with closing(open_adapter(replace(mapping, source=source))) as adapter:
        query = SearchQuery(ResourceType.ENCOUNTER, (), Sort(SortKey.ID), 2)
        rows = adapter.search(query).rows
    served = [row for row in rows if isinstance(row, EncounterRecord)]
    assert [(stay.id, stay.status, stay.end is None) for stay in served] == [
        ("1", "in-progress", True),
        ("2", "finished", False),
    ]
    assert all(stay.start for stay in served)


WARDS = """
CREATE TABLE STATION (STA_ID INTEGER PRIMARY KEY, STA_LEITUNG VARCHAR(20));
CREATE TABLE KLINIK (KLI_ID INTEGER PRIMARY KEY, KLI_BEZEICHNUNG VARCHAR(40));
CREATE TABLE PATIENT (PAT_ID INTEGER PRIMARY KEY, PAT_NACHNAME VARCHAR(20), PAT_VORNAME VARCHAR(20),
  PAT_GEBURTSDATUM DATE);
CREATE TABLE FALL (ADM_ID INTEGER PRIMARY KEY, ADM_PATIENT INTEGER REFERENCES PATIENT (PAT_ID),
  ADM_STATION INTEGER REFERENCES STATION (STA_ID), ADM_KLINIK INTEGER REFERENCES KLINIK (KLI_ID),
  ADM_STATUS VARCHAR(3), ADM_ERSTELLT DATETIME, ADM_VON DATETIME, ADM_X DATETIME,
  ADM_GELOESCHT BOOLEAN);
INSERT INTO KLINIK VALUES (7, 'Klinik am See');
INSERT INTO FALL VALUES (1, 1, 1, 7, 'A', NULL, '2024-01-01 00:00:00', '9999-12-31 00:00:00', 0)
"""


def test_the_structure_of_a_german_hospital(new_url: NewUrl, tmp_path: Path) -> None:
    url = new_url("sqlite")
    engine = writing(url)
    with engine.begin() as connection:
        for statement in WARDS.split(";\n"):
            connection.execute(sa.text(statement))
    engine.dispose()
    text = written(url, tmp_path, "--stay", "FALL")
    lines = {line.split(": ")[0].strip(): line for line in text.splitlines()}
    # The common prefix says nothing; what is no audit time is start and end.
    assert "{from: ADM_VON}" in lines["start"]
    assert '{from: ADM_X, absent: ["9999-12-31 00:00:00"]}' in lines["end"]
    # A key to a ward is the unit, even without a column of codes.
    assert "{from: ADM_STATION}" in lines["functional_unit"]
    # The only hospital has its name and id; a declared key needs no mark.
    assert 'name: "Klinik am See"  # ?' in text
    assert lines["organization_id"] == "    organization_id: 7  # ? the only hospital"
    assert "    organization_id: {from: ADM_KLINIK}\n" in text
    assert lines["patient_id"].strip() == "patient_id: {from: ADM_PATIENT}"
    assert "{from: PAT_NACHNAME}  # ?" in lines["- family"]
    # A row that is left out is a question.
    assert "WHERE f.ADM_GELOESCHT IS NOT TRUE" in text
    assert "# ? rows whose f.ADM_GELOESCHT is true are left out" in text


CARE = """
CREATE TABLE care_ward (nr INTEGER PRIMARY KEY, ward_id VARCHAR(9), status VARCHAR(9));
CREATE TABLE care_person (pid INTEGER PRIMARY KEY, name_last VARCHAR(20), name_first VARCHAR(20),
  date_birth DATE, sex CHAR(1), phone_1_nr VARCHAR(20), status VARCHAR(9));
CREATE TABLE care_class (nr INTEGER PRIMARY KEY, status VARCHAR(9));
CREATE TABLE care_encounter (encounter_nr INTEGER PRIMARY KEY, pid INTEGER, encounter_date DATETIME,
  encounter_class_nr INTEGER, encounter_status VARCHAR(9), current_ward_nr INTEGER,
  discharge_date DATE, discharge_datetime DATETIME, modify_time DATETIME, status VARCHAR(9))
"""


def test_a_hospital_without_keys_or_options(new_url: NewUrl, tmp_path: Path) -> None:
    url = new_url("sqlite")
    engine = writing(url)
    with engine.begin() as connection:
        for statement in CARE.split(";\n"):
            connection.execute(sa.text(statement))
    engine.dispose()
    file = yaml.safe_load(written(url, tmp_path))
    stays, patients = file["encounter"], file["patient"]
    columns = {name: field["from"] for name, field in stays["fields"].items()}
    # The status that most tables have is that of a row.
    assert columns["status"] == "encounter_status"
    # Of a day and a time with equal names the time is taken.
    assert (columns["start"], columns["end"]) == (
        "encounter_date",
        "discharge_datetime",
    )
    assert (columns["id"], columns["visit_number"]) == ("encounter_nr", "encounter_nr")
    assert (columns["class"], columns["patient_id"]) == ("encounter_class_nr", "pid")
    # A guessed key to a ward says its code.
    assert re.search(
        r"JOIN care_ward (\w+) ON \1\.nr = c\.current_ward_nr", stays["rows"]
    )
    assert "FROM care_person c" in patients["rows"]
    assert patients["fields"]["telecoms"][0]["value"] == {"from": "phone_1_nr"}


VISITS = """\
CREATE TABLE person (person_id INTEGER PRIMARY KEY, family_name VARCHAR(40), birth_date DATE);
CREATE TABLE visit_occurrence (visit_id INTEGER PRIMARY KEY,
    person_id INTEGER REFERENCES person (person_id),
    visit_class VARCHAR(9), visit_type VARCHAR(9), visit_start DATETIME, visit_end DATETIME);
CREATE TABLE visit_part (part_id INTEGER PRIMARY KEY,
    visit_id INTEGER REFERENCES visit_occurrence (visit_id),
    person_id INTEGER REFERENCES person (person_id),
    visit_class VARCHAR(9), visit_type VARCHAR(9), visit_start DATETIME, visit_end DATETIME)"""


def test_neither_a_part_of_stays_nor_a_code_with_one_value_is_taken(
    new_url: NewUrl, tmp_path: Path
) -> None:
    url = new_url("sqlite")
    engine = writing(url)
    with engine.begin() as connection:
        for statement in VISITS.split(";\n"):
            connection.execute(sa.text(statement))
        for n in range(200):
            values = f"({n}, NULL, 'HL7', '{('IN', 'OUT')[n % 2]}', NULL, NULL)"
            connection.execute(sa.text(f"INSERT INTO visit_occurrence VALUES {values}"))
    engine.dispose()
    stays = yaml.safe_load(written(url, tmp_path))["encounter"]
    assert "FROM visit_occurrence" in stays["rows"]
    assert stays["fields"]["class"]["from"] == "visit_type"


INSTANTS = {"postgresql": "TIMESTAMP WITH TIME ZONE", "mariadb": "TIMESTAMP NULL"}


@pytest.mark.parametrize("kind", INSTANTS)
def test_a_status_follows_from_instants_where_they_can_be_compared(
    kind: str, new_url: NewUrl, tmp_path: Path
) -> None:
    url = new_url(kind)
    engine = writing(url)
    time, key = INSTANTS[kind], "UUID" if kind == "postgresql" else "INTEGER"
    with engine.begin() as connection:
        ward = f"CREATE TABLE ward (ward_id {key} PRIMARY KEY, code VARCHAR(9))"
        connection.execute(sa.text(ward))
        columns = f"id INTEGER PRIMARY KEY, date_start {time}, date_end {time}"
        leads = f"ward {key}, FOREIGN KEY (ward) REFERENCES ward (ward_id)"
        connection.execute(sa.text(f"CREATE TABLE stays ({columns}, {leads})"))
    engine.dispose()
    stays = yaml.safe_load(written(url, tmp_path))["encounter"]
    assert ("status" in stays["fields"]) is (kind == "postgresql")
    # A key of any type can be followed.
    assert stays["fields"]["functional_unit"] == {"from": "ward_code"}
