"""`encounters mapping new` on hospitals: how many slots of a draft are right.

Two are public schemas (tests/toolkit/hospitals), two the demo hospital and GNU Health.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime
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
from tests.databases import writing
from tests.sets import SERVERS
from tests.toolkit import hospitals
from toolkit.names import code_of

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
    assert "# ? only rows where f.ADM_GELOESCHT IS NOT TRUE: are the others" in text


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


def filled(url: str, script: str, **rows: Sequence[dict[str, object]]) -> str:
    """Make tables with rows, and return their URL."""
    engine = writing(url)
    with engine.begin() as connection:
        for statement in script.strip().split(";\n"):
            connection.execute(sa.text(statement))
        for table, values in rows.items():
            columns = [sa.column(name) for name in values[0]]
            connection.execute(sa.insert(sa.table(table, *columns)), values)
    engine.dispose()
    return url


VOCABULARY = """
CREATE TABLE concept (concept_id INTEGER PRIMARY KEY, concept_name VARCHAR(99),
  concept_code VARCHAR(9));
CREATE TABLE person (person_id INTEGER PRIMARY KEY, gender_concept_id INTEGER,
  race_concept_id INTEGER, origin_concept_id INTEGER, year_of_birth INTEGER,
  month_of_birth INTEGER, day_of_birth INTEGER);
CREATE TABLE death (person_id INTEGER, death_date DATE);
CREATE TABLE episode (episode_id INTEGER PRIMARY KEY, person_id INTEGER, episode_number INTEGER,
  episode_start DATE, episode_end DATE, episode_type VARCHAR(9));
CREATE TABLE visit_occurrence (visit_occurrence_id INTEGER PRIMARY KEY, person_id INTEGER,
  visit_concept_id INTEGER, visit_type_concept_id INTEGER, from_concept_id INTEGER,
  visit_note VARCHAR(9), xtime TIME, visit_start_date DATE, visit_start_time TIME,
  visit_end_date DATE, visit_end_time TIME)
"""


def test_a_hospital_whose_codes_are_keys_of_a_vocabulary(
    kind: str, new_url: NewUrl, tmp_path: Path
) -> None:
    labels = {1: "MALE", 2: "FEMALE", 3: "Outpatient visit", 4: "Emergency room visit"}
    labels |= {number: f"Finding {number}" for number in range(5, 105)}
    times = ("06:30:00", None)
    url = filled(
        new_url(kind),
        VOCABULARY,
        concept=[{"concept_id": n, "concept_name": name} for n, name in labels.items()],
        person=[
            {"person_id": n, "gender_concept_id": 1 + n % 2, "race_concept_id": 5}
            | {"year_of_birth": 1950 + n, "month_of_birth": 7, "day_of_birth": 9}
            for n in range(1, 20)
        ],
        death=[{"person_id": 3, "death_date": "2024-05-06"}],
        visit_occurrence=[
            {"visit_occurrence_id": n, "person_id": 1 + n % 19, "visit_note": "x"}
            | {"visit_concept_id": 3 + n % 2, "visit_type_concept_id": 6}
            | {"visit_start_date": "2024-01-02", "visit_start_time": "05:00:00"}
            | {"visit_end_date": "2024-01-03", "visit_end_time": times[n % 2]}
            for n in range(120)
        ],
    )
    text = written(url, tmp_path)
    # A table without rows holds no stays, and one that everything leads to is no hospital.
    assert "FROM visit_occurrence v" in text
    assert "organization:" not in text
    # A number is different in most rows; without one it is the key.
    assert "{from: visit_occurrence_id}  # ? no column holds another number" in text
    # The labels of the keys that are in use say what they mean, with a mark.
    assert "3: AMB  # ? Outpatient visit; 60 rows" in text
    assert "4: EMER  # ? Emergency room visit; 60 rows" in text
    assert "2: female  # ? FEMALE; 10 rows" in text
    assert "Finding" not in text
    (tmp_path / "new.yaml").write_text(text, "utf-8")
    mapping = load_mapping(tmp_path / "new.yaml", {"PAS_URL": url})
    source = replace(mapping.source, may_write=True)
    with closing(open_adapter(replace(mapping, source=source))) as adapter:
        stays = SearchQuery(ResourceType.ENCOUNTER, (), Sort(SortKey.ID), 2)
        patients = SearchQuery(ResourceType.PATIENT, (), Sort(SortKey.ID), 19)
        first, second = adapter.search(stays).rows
        (third,) = [p for p in adapter.search(patients).rows if p.id == "3"]
    assert isinstance(first, EncounterRecord)
    assert isinstance(second, EncounterRecord)
    assert isinstance(third, PatientRecord)
    # A day and a time of day are one moment; a day without one ends at its end.
    assert (first.class_code, str(first.start)) == ("AMB", "2024-01-02 05:00:00+01:00")
    assert str(first.end) == "2024-01-03 06:30:00+01:00"
    assert str(second.end) == "2024-01-03 23:59:00+01:00"
    assert (third.gender, str(third.birth_date)) == ("female", "1953-07-09")
    # Where each has one death at most it is joined, and the patient's key is their number.
    assert str(third.deceased_at) == "2024-05-06 00:00:00+02:00"
    assert [number.value for number in third.identifiers] == ["3"]


MARKS = """
CREATE TABLE town (town_id INTEGER PRIMARY KEY, name VARCHAR(20), zip VARCHAR(9),
  country VARCHAR(9));
CREATE TABLE patients (patient_id INTEGER PRIMARY KEY, chart VARCHAR(9), surname VARCHAR(9),
  address_town_id INTEGER, date_update DATETIME, modify_time DATETIME);
CREATE TABLE user_log (log_id INTEGER PRIMARY KEY, patient_id INTEGER, start_date DATETIME,
  end_date DATETIME, status VARCHAR(9), type VARCHAR(9), unit VARCHAR(9));
CREATE TABLE sejour (sejour_id INTEGER PRIMARY KEY, patient_id INTEGER, libelle VARCHAR(9),
  annule VARCHAR(1), encounter_status VARCHAR(9), entree DATETIME, sortie DATETIME);
"""


def test_marks_of_rows_and_columns_that_hold_nothing(
    new_url: NewUrl, tmp_path: Path
) -> None:
    url = filled(
        new_url("sqlite"),
        MARKS,
        town=[{"town_id": 1, "name": "X", "zip": "1", "country": "FR"}],
        patients=[
            {
                "patient_id": 1,
                "address_town_id": 1,
                "modify_time": "2024-01-01 00:00:00",
            }
        ],
        user_log=[{"log_id": 1}],
        sejour=[
            {"sejour_id": n, "patient_id": 1, "libelle": "x", "annule": str(n % 2)}
            | {"encounter_status": "cancelled"}
            for n in range(9)
        ],
    )
    text = written(url, tmp_path)
    file = yaml.safe_load(text)
    stays, patients = file["encounter"], file["patient"]
    # No declared key says that these are the patients: all depends on it.
    assert "    id: {from: patient_id}  # ? if patients is the table" in text
    # A table of entries of a log holds no stays.
    assert "FROM sejour s" in stays["rows"]
    # What is cancelled is not served, whatever type the mark has.
    assert "WHERE COALESCE(s.annule, '0') <> '1'" in stays["rows"]
    assert "# ? only rows where COALESCE(s.annule" in text
    # A column that says no more than that is no status, a text of all rows no number.
    assert stays["fields"]["status"]["from"] == "derived_status"
    assert stays["fields"]["visit_number"] == {"from": "sejour_id"}
    # A column without a value does not win.
    assert patients["fields"]["last_updated"] == {"from": "modify_time"}
    # A key to a table of towns is a city, and what else that says of the address.
    (address,) = patients["fields"]["addresses"]
    assert {name: field["from"] for name, field in address.items()} == {
        "city": "address_town_name",
        "postal_code": "town_zip",
        "country": "town_country",
    }
    # Each system of examples is a question.
    systems = [line for line in text.splitlines() if "example.org" in line]
    assert len(systems) == text.count("# ? the system of these numbers") + 2
    assert all("# ? " in line for line in systems)


@pytest.mark.parametrize(
    ("slot", "text", "code"),
    [
        *(("class", text, "IMP") for text in ("Inpatient", "stationär", "RICOVERO")),
        *(
            ("class", text, "AMB")
            for text in ("OP", "Outpatient Hospital", "ambulatoire")
        ),
        *(
            ("class", text, "EMER")
            for text in ("Urgences", "Notfall", "pronto soccorso")
        ),
        *(("gender", text, "female") for text in ("F", "weiblich", "mujer", "Femme")),
        *(("gender", text, "male") for text in ("m", "männlich", "hombre", "MALE")),
        *(
            ("status", text, "finished")
            for text in ("discharged", "entlassen", "sorti")
        ),
        *(("status", text, "hidden") for text in ("cancelled", "annulé", "storniert")),
        *((slot, "4711", "") for slot in ("class", "gender", "status", "use")),
        ("class", "complication", ""),
    ],
)
def test_words_of_codes_in_six_languages(slot: str, text: str, code: str) -> None:
    assert code_of(slot, text) == code


STAFF = """
CREATE TABLE practitioner (name VARCHAR(40) PRIMARY KEY, first_name VARCHAR(20), remarks TEXT);
CREATE TABLE patient (name VARCHAR(40) PRIMARY KEY, first_name VARCHAR(20),
  last_name VARCHAR(20), birth_date DATE, remarks TEXT);
CREATE TABLE remark (name VARCHAR(40) PRIMARY KEY, company_name VARCHAR(20), remarks TEXT);
CREATE TABLE admission (name VARCHAR(40) PRIMARY KEY, patient VARCHAR(40), admitted TIMESTAMP,
  admission_practitioner VARCHAR(40), practitioner VARCHAR(40), other_practitioner VARCHAR(40),
  admission_type VARCHAR(9), remarks TEXT)
"""


def test_nothing_of_people_is_written(
    kind: str, new_url: NewUrl, tmp_path: Path
) -> None:
    doctor = {n: f"Dr Canary {n % 3}" for n in range(60)}
    url = filled(
        new_url(kind),
        STAFF,
        practitioner=[
            {"name": f"Dr Canary {n}", "first_name": "Kim"} for n in range(3)
        ],
        patient=[
            {"name": f"P{n}", "first_name": f"Canary {n}", "last_name": "Canary"}
            | {"birth_date": "1950-01-01"}
            for n in range(60)
        ],
        remark=[{"name": "R1", "company_name": "x"}],
        admission=[
            {"name": f"A{n}", "patient": f"P{n}", "admitted": "2024-01-02 08:00:00"}
            | {"admission_practitioner": doctor[n], "practitioner": doctor[n]}
            | {"other_practitioner": doctor[59 - n], "admission_type": "IN"}
            for n in range(60)
        ],
    )
    text = written(url, tmp_path)
    assert "Canary" not in text
    assert "{from: first_name}" in text, "the key of every table is called name"
    assert "remark" not in text.partition("organization:")[2]


MERGES = """
CREATE TABLE XA_WARD (WRD_ID_A VARCHAR(3) PRIMARY KEY, WRD_NAME VARCHAR(20));
CREATE TABLE XA_DISEASE (DIS_ID INTEGER PRIMARY KEY, DIS_DESC VARCHAR(20));
CREATE TABLE XA_PATIENT (PAT_ID INTEGER PRIMARY KEY, PAT_FNAME VARCHAR(9), PAT_SNAME VARCHAR(9),
  PAT_ANNIV DATE, PAT_SEX VARCHAR(1), PAT_TELE VARCHAR(9), PAT_MOBILE VARCHAR(9),
  PAT_FAX VARCHAR(9), PAT_LAST_MODIFIED_BY VARCHAR(9), PAT_ACTIVE BOOLEAN, PAT_DELETED VARCHAR(1));
CREATE TABLE XA_PATIENTMERGE (PTM_ID INTEGER PRIMARY KEY,
  PTM_OLD INTEGER UNIQUE REFERENCES XA_PATIENT (PAT_ID),
  PTM_MERGED INTEGER REFERENCES XA_PATIENT (PAT_ID));
CREATE TABLE XA_ADMISSION (ADM_ID INTEGER PRIMARY KEY,
  ADM_PAT_ID INTEGER REFERENCES XA_PATIENT (PAT_ID), ADM_SERVICE VARCHAR(9),
  ADM_WRD_ID_A VARCHAR(3) REFERENCES XA_WARD (WRD_ID_A), ADM_TYPE INTEGER,
  ADM_DIS_1 INTEGER REFERENCES XA_DISEASE (DIS_ID),
  ADM_DIS_2 INTEGER REFERENCES XA_DISEASE (DIS_ID),
  ADM_DIS_3 INTEGER REFERENCES XA_DISEASE (DIS_ID), ADM_DATE_ADM DATETIME, ADM_DATE_DIS DATETIME,
  ADM_DELETED VARCHAR(1));
CREATE TABLE XA_OPD (OPD_ID INTEGER PRIMARY KEY, OPD_PAT_ID INTEGER REFERENCES XA_PATIENT (PAT_ID),
  OPD_DATE DATETIME, OPD_CREATED_DATE DATETIME, OPD_ACTIVE BOOLEAN);
CREATE TABLE XA_IPT (AN INTEGER PRIMARY KEY, HN INTEGER REFERENCES XA_PATIENT (PAT_ID),
  XDATE DATETIME, YDATE DATETIME, IPT_ACTIVE BOOLEAN)
"""


def test_abbreviations_merges_and_marks_that_most_rows_have(
    new_url: NewUrl, tmp_path: Path
) -> None:
    numbers, day = range(1, 101), "2024-01-01 00:00:00"
    url = filled(
        new_url("sqlite"),
        MERGES,
        XA_WARD=[{"WRD_ID_A": "M", "WRD_NAME": "Medicine"}],
        XA_DISEASE=[{"DIS_ID": n, "DIS_DESC": f"Disease {n}"} for n in numbers],
        XA_PATIENT=[
            {"PAT_ID": n, "PAT_FNAME": "a", "PAT_SNAME": "b", "PAT_ANNIV": "1980-01-01"}
            | {"PAT_SEX": "FM"[n % 2], "PAT_TELE": "01", "PAT_MOBILE": "06"}
            | {"PAT_FAX": "02", "PAT_LAST_MODIFIED_BY": "x", "PAT_ACTIVE": True}
            | {"PAT_DELETED": "NY"[n % 10 == 0]}
            for n in numbers
        ],
        XA_PATIENTMERGE=[{"PTM_ID": 1, "PTM_OLD": 10, "PTM_MERGED": 11}],
        XA_ADMISSION=[
            {"ADM_ID": n, "ADM_PAT_ID": n, "ADM_SERVICE": "x", "ADM_WRD_ID_A": "M"}
            | {"ADM_TYPE": n, "ADM_DIS_1": n, "ADM_DIS_2": n, "ADM_DIS_3": n}
            | {"ADM_DATE_ADM": day, "ADM_DATE_DIS": None, "ADM_DELETED": "NY"[n < 9]}
            for n in numbers
        ],
        XA_OPD=[
            {"OPD_ID": n, "OPD_PAT_ID": n if n > 9 else None, "OPD_DATE": day}
            | {"OPD_CREATED_DATE": day, "OPD_ACTIVE": n > 8}
            for n in numbers
        ],
        XA_IPT=[
            {"AN": n, "HN": n, "XDATE": None if n % 3 else day, "YDATE": day}
            | {"IPT_ACTIVE": n < 9}
            for n in numbers
        ],
    )
    tables = ("XA_ADMISSION", "XA_OPD", "XA_IPT")
    text = written(url, tmp_path, *(part for t in tables for part in ("--stay", t)))
    file = yaml.safe_load(text)
    admissions, visits, others = file["encounter"]["sources"]
    # Rows that are marked as deleted, or not as active, are left out with a question.
    assert "WHERE COALESCE(x.ADM_DELETED, 'N') <> 'Y'" in admissions["rows"]
    assert "WHERE x.OPD_ACTIVE IS NOT FALSE" in visits["rows"]
    assert text.count("# ? only rows where") == 2
    # Where few rows are active the stay may go on.
    assert "WHERE" not in others["rows"]
    fields = admissions["fields"]
    assert fields["start"] == {"from": "ADM_DATE_ADM"}
    assert fields["end"] == {"from": "ADM_DATE_DIS"}
    # A declared key of units comes before a name.
    assert fields["functional_unit"] == {"from": "ADM_WRD_ID_A"}
    # What has too many values is no code; the name of the table says it of all.
    assert fields["class"] == "IMP"
    # A key of patients that some rows lack is a question.
    assert "{from: ADM_PAT_ID}\n" in text
    assert "{from: OPD_PAT_ID}  # ? " in text
    # Without an end a stay that has begun is over; of two times most rows have the start.
    assert "THEN 'planned' ELSE 'finished' END" in visits["rows"]
    assert others["fields"]["start"] == {"from": "YDATE"}
    assert others["fields"]["end"] == {"from": "XDATE"}
    patients = file["patient"]
    fields = patients["fields"]
    assert fields["active"]["from"] == "PAT_DELETED"
    assert file["codes"]["active_XA_PATIENT"]["table"] == {"N": True, "Y": False}
    assert fields["birth_date"] == {"from": "PAT_ANNIV"}
    assert fields["names"] == [
        {"family": {"from": "PAT_SNAME"}, "given": {"from": "PAT_FNAME"}}
    ]
    # Each number is an item.
    numbers = [(one["system"], one["value"]["from"]) for one in fields["telecoms"]]
    assert numbers == [
        ("phone", "PAT_TELE"),
        ("phone", "PAT_MOBILE"),
        ("fax", "PAT_FAX"),
    ]
    assert fields["replaced_by"] == {"from": "xa_patientmerge_ptm_merged"}
    assert "ON x3.PTM_OLD = x.PAT_ID" in re.sub(r"x\d+", "x3", patients["rows"])
    guesses = ("active", "birth_date", "replaced_by", "start", "end", "functional_unit")
    for name in guesses:
        lines = re.findall(rf"^ +{name}: {{from.*$", text, re.MULTILINE)
        assert lines
        assert all("# ? " in line for line in lines)


CONTENTS = """
CREATE TABLE tbl_hospital (hospital_name VARCHAR(40) PRIMARY KEY, city VARCHAR(40));
CREATE TABLE adt_ward (ward_cd NUMERIC(9, 0) PRIMARY KEY, ward_ds VARCHAR(20),
  clinic_id VARCHAR(40), FOREIGN KEY (clinic_id) REFERENCES tbl_hospital (hospital_name));
CREATE TABLE adt_patient (pat_no NUMERIC(9, 0) PRIMARY KEY, taxcode VARCHAR(16),
  nm_patient VARCHAR(40), add_line_1 VARCHAR(40), add_line_2 VARCHAR(40),
  home_phone VARCHAR(20), work_phone VARCHAR(20), dob VARCHAR(10), sex_c VARCHAR(1),
  reg_code VARCHAR(9));
CREATE TABLE adt_more (more_id INTEGER PRIMARY KEY, merged_pat_no NUMERIC(9, 0),
  pat_no NUMERIC(9, 0), city VARCHAR(20),
  FOREIGN KEY (pat_no) REFERENCES adt_patient (pat_no));
CREATE TABLE zc_sex (sex_key VARCHAR(1) PRIMARY KEY, title VARCHAR(20), name VARCHAR(20));
CREATE TABLE adt_encounter (enc_key NUMERIC(9, 0) PRIMARY KEY, slip VARCHAR(12),
  pat_no NUMERIC(9, 0), ward_cd NUMERIC(9, 0), enc_date VARCHAR(14),
  exp_disch_dt VARCHAR(14), disch_dt VARCHAR(14), mod_dt {time}, ins_dt {time},
  FOREIGN KEY (pat_no) REFERENCES adt_patient (pat_no),
  FOREIGN KEY (ward_cd) REFERENCES adt_ward (ward_cd))
"""


def test_what_columns_hold_says_what_their_names_do_not(
    kind: str, new_url: NewUrl, tmp_path: Path
) -> None:
    numbers, moment = range(1, 41), "2024-01-02 08:00:00"
    time = "TIMESTAMP" if kind == "postgresql" else "DATETIME"
    url = filled(
        new_url(kind),
        CONTENTS.format(time=time),
        tbl_hospital=[
            {"hospital_name": f"{name} House", "city": name}
            for name in ("North", "South")
        ],
        adt_ward=[{"ward_cd": 1, "ward_ds": "West", "clinic_id": "North House"}],
        adt_patient=[
            {"pat_no": n, "taxcode": f"CAN{n:03}ARY", "nm_patient": f"Canary {n}"}
            | {
                "add_line_1": "a",
                "add_line_2": "b",
                "home_phone": f"{n}",
                "work_phone": "2",
            }
            | {"dob": f"{1 + n % 28:02}.07.1950", "sex_c": "12"[n % 2], "reg_code": "x"}
            for n in numbers
        ],
        zc_sex=[
            {"sex_key": "1", "title": "F", "name": "Female"},
            {"sex_key": "2", "title": "M", "name": "Male"},
        ],
        adt_encounter=[
            {"enc_key": n, "slip": f"E{n:05}", "pat_no": n, "ward_cd": 1}
            | {"enc_date": f"202401{1 + n % 28:02}0815", "exp_disch_dt": "202402020815"}
            | {"disch_dt": f"202402{1 + n % 28:02}0815" if n % 3 else ""}
            | {"mod_dt": moment if n % 2 else None, "ins_dt": moment}
            for n in numbers
        ],
    )
    text = written(url, tmp_path)
    file = yaml.safe_load(text)
    stays, patients = file["encounter"], file["patient"]
    fields = stays["fields"]
    # What differs in each row and has digits is a number; the key of a NUMERIC type is a key.
    assert (fields["id"], fields["visit_number"]) == (
        {"from": "enc_key"},
        {"from": "slip"},
    )
    # Texts of one form are times; what is expected is no end.
    assert fields["start"] == {"from": "enc_date", "format": "%Y%m%d%H%M"}
    assert fields["end"] == {"from": "disch_dt", "format": "%Y%m%d%H%M"}
    assert patients["fields"]["birth_date"] == {"from": "dob", "format": "%d.%m.%Y"}
    # A row that never changed has no last change.
    assert re.search(r"last_updated: {from: mod_dt}  # \? .*empty in some rows", text)
    # The hospital is that of the unit; its key is no FHIR id.
    assert re.search(
        r"organization_id: {from: adt_ward_clinic_id}  # \? .*no FHIR ids", text
    )
    # Each line, number and identifier is there, and the label of an undeclared key.
    (address,) = patients["fields"]["addresses"]
    assert [line["from"] for line in address["lines"]] == ["add_line_1", "add_line_2"]
    values = [one["value"]["from"] for one in patients["fields"]["telecoms"]]
    assert values == ["home_phone", "work_phone"]
    assert patients["fields"]["identifiers"][0]["value"] == {"from": "taxcode"}
    assert patients["fields"]["names"] == [{"text": {"from": "nm_patient"}}]
    assert "Female: female  # 1 row" in text
    assert not any(word in text for word in ("Canary", "CAN0", "E000"))


NAMELESS = """
CREATE TABLE zolm (zolm_key INTEGER PRIMARY KEY, nm_zolm VARCHAR(40), dt_xa DATE, dt_xo DATE);
CREATE TABLE brek (brek_key INTEGER PRIMARY KEY, nm_brek VARCHAR(40), dt_xa DATE);
CREATE TABLE flim (flim_key INTEGER PRIMARY KEY, zolm_key INTEGER, brek_key INTEGER, dt_qua DATE,
  tm_vix TIME, FOREIGN KEY (zolm_key) REFERENCES zolm (zolm_key),
  FOREIGN KEY (brek_key) REFERENCES brek (brek_key));
CREATE TABLE gnar (gnar_key INTEGER PRIMARY KEY, flim_key INTEGER,
  FOREIGN KEY (flim_key) REFERENCES flim (flim_key));
CREATE TABLE plov (plov_key INTEGER PRIMARY KEY, flim_key INTEGER, brek_key INTEGER,
  FOREIGN KEY (flim_key) REFERENCES flim (flim_key),
  FOREIGN KEY (brek_key) REFERENCES brek (brek_key));
CREATE TABLE wurt (zolm_key INTEGER PRIMARY KEY, dt_qua DATE,
  FOREIGN KEY (zolm_key) REFERENCES zolm (zolm_key))
"""


def test_keys_and_days_say_which_tables_hold_stays_and_patients(
    kind: str, new_url: NewUrl, tmp_path: Path
) -> None:
    numbers = range(1, 91)
    born = {n: {"dt_xa": f"{1925 + n}-05-01"} for n in numbers}
    url = filled(
        new_url(kind),
        NAMELESS,
        zolm=[
            {"zolm_key": n, "nm_zolm": f"Canary {n}", "dt_xo": "2020-05-01"} | born[n]
            for n in numbers
        ],
        brek=[
            {"brek_key": n, "nm_brek": f"Canary {n}"} | born[n * 9]
            for n in range(1, 11)
        ],
        flim=[
            {"flim_key": n, "zolm_key": n, "brek_key": 1 + n % 10}
            | {"dt_qua": "2024-05-01", "tm_vix": f"08:{n % 60:02}:00"}
            for n in numbers
        ],
        gnar=[{"gnar_key": 1, "flim_key": 1}],
        plov=[{"plov_key": 1, "flim_key": 1, "brek_key": 1}],
        wurt=[{"zolm_key": 1, "dt_qua": "2024-05-01"}],
    )
    text = written(url, tmp_path)
    file = yaml.safe_load(text)
    stays, patients = file["encounter"], file["patient"]
    assert "FROM flim f" in stays["rows"]
    assert stays["fields"]["patient_id"] == {"from": "zolm_key"}
    assert "FROM zolm z" in patients["rows"]
    assert patients["fields"]["birth_date"] == {"from": "dt_xa"}
    assert patients["fields"]["names"] == [{"text": {"from": "nm_zolm"}}]
    # A time of day behind a day belongs to it.
    assert stays["fields"]["start"] == {"from": "dt_qua_tm_vix"}
    # Nothing of it is sure.
    found = re.findall(r"^ +\w+: (?:\[)?{from: .*$", text, re.MULTILINE)
    assert len(found) > 5
    assert all("# ? " in line for line in found)
    assert "organization:" not in text
    assert "Canary" not in text


LINKS = """
CREATE TABLE person (person_id INTEGER PRIMARY KEY, last_name VARCHAR(20),
  first_name VARCHAR(20), gender VARCHAR(1), date_of_birth DATE);
CREATE TABLE patient (person_id INTEGER PRIMARY KEY, remarks VARCHAR(20),
  FOREIGN KEY (person_id) REFERENCES person (person_id));
CREATE TABLE user_account (user_id INTEGER PRIMARY KEY, person_id INTEGER,
  FOREIGN KEY (person_id) REFERENCES person (person_id));
CREATE TABLE address (address_id INTEGER PRIMARY KEY, line1 VARCHAR(20), city VARCHAR(20));
CREATE TABLE person_address (person_id INTEGER, address_id INTEGER,
  PRIMARY KEY (person_id, address_id), FOREIGN KEY (person_id) REFERENCES person (person_id),
  FOREIGN KEY (address_id) REFERENCES address (address_id));
CREATE TABLE payer (payer_id INTEGER PRIMARY KEY, name VARCHAR(20), city VARCHAR(20));
CREATE TABLE a_payer (person_id INTEGER PRIMARY KEY, payer_id INTEGER,
  FOREIGN KEY (person_id) REFERENCES person (person_id),
  FOREIGN KEY (payer_id) REFERENCES payer (payer_id));
CREATE TABLE hospital (hospital_id INTEGER PRIMARY KEY, name VARCHAR(20));
CREATE TABLE hospital_address (hospital_id INTEGER, address_id INTEGER,
  PRIMARY KEY (hospital_id, address_id),
  FOREIGN KEY (hospital_id) REFERENCES hospital (hospital_id),
  FOREIGN KEY (address_id) REFERENCES address (address_id));
CREATE TABLE building (building_id INTEGER PRIMARY KEY, hospital_id INTEGER,
  FOREIGN KEY (hospital_id) REFERENCES hospital (hospital_id));
CREATE TABLE encounter (encounter_id INTEGER PRIMARY KEY, patient_id INTEGER,
  building_id INTEGER, treating_person_id INTEGER, encounterclass VARCHAR(9), begin_visit {time},
  begin_admission {time}, clock {stamp}, FOREIGN KEY (patient_id) REFERENCES patient (person_id),
  FOREIGN KEY (building_id) REFERENCES building (building_id),
  FOREIGN KEY (treating_person_id) REFERENCES person (person_id))
"""


def test_persons_and_what_link_tables_give_them(
    kind: str, new_url: NewUrl, tmp_path: Path
) -> None:
    numbers, moment = range(1, 21), "2024-05-01 08:00:00"
    time = "TIMESTAMP" if kind == "postgresql" else "DATETIME"
    now, is_server = "CURRENT_TIMESTAMP", kind in SERVERS
    stamp = f"TIMESTAMP DEFAULT {now} ON UPDATE {now}" if is_server else time
    url = filled(
        new_url(kind),
        LINKS.format(time=time, stamp=stamp),
        person=[
            {"person_id": n, "last_name": "Canary", "first_name": f"Canary {n}"}
            | {"gender": "FM"[n % 2], "date_of_birth": "1980-05-01"}
            for n in numbers
        ],
        patient=[{"person_id": n} for n in numbers if n > 3],
        user_account=[{"user_id": n, "person_id": n} for n in (1, 2, 3)],
        address=[
            {"address_id": n, "line1": "Canary", "city": "X"} for n in range(1, 23)
        ],
        person_address=[{"person_id": n, "address_id": n} for n in numbers],
        payer=[{"payer_id": 1, "name": "Payer", "city": "Y"}],
        a_payer=[{"person_id": n, "payer_id": 1} for n in numbers],
        hospital=[{"hospital_id": n, "name": f"Hospital {n}"} for n in (1, 2)],
        hospital_address=[{"hospital_id": n, "address_id": 20 + n} for n in (1, 2)],
        building=[{"building_id": n, "hospital_id": n} for n in (1, 2)],
        encounter=[
            {"encounter_id": n, "patient_id": n, "building_id": 1 + n % 2}
            | {"treating_person_id": n % 3 + 1, "encounterclass": "IN"[n % 2]}
            | {"begin_visit": moment, "begin_admission": None if n % 4 else moment}
            | {"clock": moment}
            for n in numbers
            if n > 3
        ],
    )
    text = written(url, tmp_path)
    file = yaml.safe_load(text)
    stays, patients = file["encounter"]["fields"], file["patient"]
    # Of a person and the patient who it is, the patient is taken.
    assert stays["patient_id"] == {"from": "patient_id"}
    assert "FROM patient p" in patients["rows"]
    assert patients["fields"]["birth_date"] == {"from": "person_date_of_birth"}
    # An address is one of each person; a payer, with its town, is one of many.
    for section, key in (("patient", "person_id"), ("organization", "hospital_id")):
        (address,) = file[section]["fields"]["addresses"]
        assert (address["key"], address["city"]) == (key, {"from": "address_city"})
        assert re.search(r"LEFT JOIN address (\w+) ON \1\.address_id", address["rows"])
    # What lies in a hospital is a unit, and says in which the stay is.
    assert stays["functional_unit"] == {"from": "building_id"}
    assert stays["organization_id"] == {"from": "building_hospital_id"}
    assert stays["class"]["from"] == "encounterclass"
    # Of two starts one is that of every stay.
    assert stays["start"] == {"from": "begin_visit"}
    assert (stays.get("last_updated") == {"from": "clock"}) is is_server
    assert "Canary" not in text


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("%Y-%m-%d,%H:%M:%S", {"format": "%Y-%m-%d,%H:%M:%S"}),
        ("%Y-%m-%dT%H:%M:%SZ", {"format": "%Y-%m-%dT%H:%M:%SZ", "time_zone": "UTC"}),
    ],
)
def test_texts_are_times_whatever_their_name(
    form: str, options: dict[str, str], new_url: NewUrl, tmp_path: Path
) -> None:
    columns = "id INTEGER PRIMARY KEY, xa VARCHAR(30), xo VARCHAR(30), dis VARCHAR(30)"
    moment = datetime(2024, 5, 1, 8)  # noqa: DTZ001
    # What is of another calendar is a question; digits without such a name are a number.
    of_other = moment.replace(year=2567).strftime(form)
    stays = [
        {"id": n, "xa": moment.strftime(form), "xo": "20240501", "dis": of_other}
        for n in range(20)
    ]
    url = filled(new_url("sqlite"), f"CREATE TABLE stays ({columns})", stays=stays)
    text = written(url, tmp_path)
    fields = yaml.safe_load(text)["encounter"]["fields"]
    assert fields["start"] == {"from": "xa", **options}
    assert fields["end"] == {"from": "dis", **options}
    assert re.search(r"end: {from: dis,.*# \? .*another calendar", text)


USERS = """
CREATE TABLE users (id INTEGER PRIMARY KEY, first_name VARCHAR(20), last_name VARCHAR(20),
  dob DATE, status BOOLEAN);
CREATE TABLE patients (id INTEGER PRIMARY KEY, user_id INTEGER, deleted_at TIMESTAMP);
CREATE TABLE addresses (id INTEGER PRIMARY KEY, owner_id INTEGER, owner_type VARCHAR(40),
  address1 VARCHAR(20), city VARCHAR(20));
CREATE TABLE phones (id INTEGER PRIMARY KEY, user_id INTEGER, phone VARCHAR(20));
CREATE TABLE beds (id INTEGER PRIMARY KEY, name VARCHAR(20));
CREATE TABLE ipd_records (id INTEGER PRIMARY KEY, ipd_no VARCHAR(9) UNIQUE, patient_id INTEGER,
  bed_id INTEGER, payer_company_id INTEGER, date TIMESTAMP);
CREATE TABLE leaving_cards (id INTEGER PRIMARY KEY, ipd_record_id INTEGER,
  discharge_date TIMESTAMP);
CREATE TABLE companies (id INTEGER PRIMARY KEY, name VARCHAR(20), phone VARCHAR(20));
CREATE TABLE app_settings (id INTEGER PRIMARY KEY, name VARCHAR(20), phone VARCHAR(20),
  address VARCHAR(20))
"""


def test_keys_that_nobody_declared_and_what_is_beside_stays(
    kind: str, new_url: NewUrl, tmp_path: Path
) -> None:
    numbers, moment = range(1, 91), datetime(2024, 5, 1, 8)  # noqa: DTZ001
    url = filled(
        new_url(kind),
        USERS,
        users=[
            {"id": n, "first_name": "Canary", "last_name": f"Canary {n}"}
            | {"dob": date(1925 + n, 5, 1), "status": n % 9 > 0}
            for n in numbers
        ],
        patients=[{"id": n, "user_id": 91 - n, "deleted_at": None} for n in numbers],
        addresses=[
            {
                "id": n,
                "owner_id": n,
                "owner_type": f"App\\{'Doctor' if n % 9 else 'Patient'}",
            }
            | {"address1": "Canary", "city": "X"}
            for n in numbers
        ],
        phones=[{"id": n, "user_id": n, "phone": f"0{n}"} for n in numbers],
        beds=[{"id": n, "name": f"B{n}"} for n in (1, 2)],
        ipd_records=[
            {"id": n, "ipd_no": f"I{n}", "patient_id": 1 + n % 50, "bed_id": 1 + n % 2}
            | {"payer_company_id": 1 if n % 2 else None, "date": moment}
            for n in numbers
        ],
        leaving_cards=[
            {"id": n, "ipd_record_id": n, "discharge_date": moment} for n in numbers
        ],
        companies=[{"id": n, "name": f"Payer {n}", "phone": "01"} for n in (1, 2)],
        app_settings=[{"id": 1, "name": "North", "phone": "01", "address": "Street"}],
    )
    text = written(url, tmp_path)
    file = yaml.safe_load(text)
    stays, patients = file["encounter"]["fields"], file["patient"]["fields"]
    assert "FROM ipd_records i" in file["encounter"]["rows"]
    assert stays["patient_id"] == {"from": "patient_id"}
    assert stays["visit_number"] == {"from": "ipd_no"}
    # What no column holds: the class is in the name, the end on a card, the unit by the bed.
    assert stays["class"] == "IMP"
    assert stays["end"] == {"from": "leaving_cards_discharge_date"}
    assert "functional_unit" not in stays
    # A patient is the user that no other one is; deleted rows are left out.
    assert "WHERE p.deleted_at IS NULL" in file["patient"]["rows"]
    assert patients["birth_date"] == {"from": "users_dob"}
    assert patients["active"] == {"from": "users_status"}
    # A table that many share says whose a row is, and one of users leads to the patient.
    (address,), (phone,) = patients["addresses"], patients["telecoms"]
    assert address["key"] == "owner_id"
    assert "LIKE '%Patient'" in address["rows"]
    assert phone["key"] == "patients_id"
    assert "JOIN patients p0 ON p0.user_id = p.user_id" in phone["rows"]
    # The hospital is one; a company that not every stay has pays.
    assert "FROM app_settings a" in file["organization"]["rows"]
    fields = re.findall(r"^ +(?:\w+|- \w+): (?:\[)?{from: .*$", text, re.MULTILINE)
    assert all("# ? " in line for line in fields)
    assert "Canary" not in text


def test_uuids_are_ids(new_url: NewUrl, tmp_path: Path) -> None:
    tables = (
        "CREATE TABLE patient (id UUID PRIMARY KEY, dob DATE);\nCREATE TABLE encounter"
    )
    columns = "id UUID PRIMARY KEY, patient_id UUID REFERENCES patient (id), start DATE"
    text = written(filled(new_url("postgresql"), f"{tables} ({columns})"), tmp_path)
    assert "SELECT CAST(e.id AS VARCHAR(36)) AS id" in text
    assert "    patient_id: {from: patient_id}" in text


def test_marks_without_a_value_and_clocks_in_texts(
    new_url: NewUrl, tmp_path: Path
) -> None:
    url = filled(
        new_url("sqlite"),
        """
CREATE TABLE patient (id INTEGER PRIMARY KEY, birth_date DATE, name VARCHAR(40),
  name_key VARCHAR(40), given_name VARCHAR(9), retired BOOLEAN);
CREATE TABLE stay (id INTEGER PRIMARY KEY, patient_id INTEGER REFERENCES patient (id),
  date_admission DATETIME, time_admission CHAR(5), activity VARCHAR(9), active_flag BOOLEAN)
""",
        patient=[
            {
                "id": n,
                "birth_date": f"19{n + 10}-01-02",
                "name": f"Doe{n}",
                "retired": n == 1,
            }
            for n in range(1, 81)
        ],
        stay=[
            {"id": n, "patient_id": n, "date_admission": "2024-03-30 00:00:00"}
            | {"time_admission": "19:49"}
            for n in range(1, 81)
        ],
    )
    text = written(url, tmp_path, "--stay", "stay")
    # What is empty in all rows is no mark of deleted ones.
    assert "    WHERE " not in text
    assert "SUBSTR(s.date_admission, 1, 10) || ' ' || COALESCE(s.time_admission" in text
    assert "active: {from: retired, codes: active_patient}" in text
    # A copy for a search is no name, and an empty given one needs none beside it.
    assert "- text: {from: name}" in text or "{from: name}  # ?" in text
    assert "name_key}" not in text
