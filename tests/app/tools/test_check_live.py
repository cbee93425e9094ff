"""`encounters mapping check --live`: each planted defect is found, and a clean hospital is.

Every case is a clean hospital with one thing wrong, on three databases.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from adapters.sql.inspection.computed import (
    expression_of,
    is_of_several,
    is_put_together,
)
from adapters.sql.inspection.cut import is_cut
from app.cli import main
from app.tools.live import check_live
from tests.databases import NewDatabase, writing
from tests.mariadb_server import MariaServer

DATABASES = ("sqlite", "postgresql", "mariadb")

TABLES = """
CREATE TABLE stays (stay_id BIGINT PRIMARY KEY, patient_id BIGINT, state VARCHAR(8),
  kind VARCHAR(8), began {time}, ended {time}, visit VARCHAR(20), unit VARCHAR(8),
  changed {time});
CREATE INDEX stays_began ON stays (began, stay_id);
CREATE INDEX stays_patient ON stays (patient_id);
CREATE INDEX stays_visit ON stays (visit);
CREATE INDEX stays_unit ON stays (unit);
CREATE INDEX stays_state ON stays (state);
CREATE INDEX stays_kind ON stays (kind);
CREATE INDEX stays_changed ON stays (changed, stay_id);
CREATE TABLE patients (patient_id BIGINT PRIMARY KEY, family VARCHAR(40),
  folded VARCHAR(40), sex VARCHAR(4), born DATE, changed {time});
CREATE INDEX patients_born ON patients (born);
CREATE INDEX patients_sex ON patients (sex);
CREATE INDEX patients_changed ON patients (changed, patient_id)
"""
TIMES = {"sqlite": "DATETIME", "postgresql": "TIMESTAMP", "mariadb": "DATETIME(6)"}

MAPPING = """\
mapping: 1
name: Clean
profile: full
time_zone: Europe/Paris
constants:
  visit_number_system: urn:oid:1.2.3
  functional_unit_extension: https://example.org/unit
source: {kind: sql, url: {env: PAS_URL}, may_write: true}
codes:
  states: {table: {E: in-progress, S: finished, A: hidden}}
  kinds: {table: {HC: IMP}, otherwise: UNK}
  sexes: {table: {F: female, M: male}}
encounter:
  rows: SELECT * FROM stays
  fields:
    id: {from: stay_id}
    patient_id: {from: patient_id}
    status: {from: state, codes: states}
    class: {from: kind, codes: kinds}
    start: {from: began}
    end: {from: ended}
    visit_number: {from: visit}
    functional_unit: {from: unit}
    last_updated: {from: changed, time_zone: UTC}
  search: [_id, patient, date, identifier, status, class, service-provider._extension]
  sort: [date, _lastUpdated]
patient:
  rows: SELECT patient_id, family, folded, sex, born, changed FROM patients
  fields:
    id: {from: patient_id}
    names:
      - family: {from: family, search: folded}
        given: {from: family, search: folded}
    gender: {from: sex, codes: sexes}
    birth_date: {from: born}
    identifiers: [{type: PI, system: urn:oid:1.2.4, value: {from: patient_id}}]
    last_updated: {from: changed, time_zone: UTC}
  search: [_id, name, family, given, birthdate, gender, identifier]
  sort: [_id, _lastUpdated]
"""

SECRETS = ("Ljungqvist", "ljungqvist")
"""What a report on these rows must never say."""


class Defect(NamedTuple):
    """What is changed in the hospital or in the file, and what has to be told of it."""

    told: str
    at: str
    """A part of the line of the file that is to be mended."""
    sql: tuple[str, ...] = ()
    old: str = ""
    new: str = ""
    severity: str = "error"
    source: str = ""
    remedy: str = ""
    also: tuple[str, str] = ("", "")
    databases: tuple[str, ...] = DATABASES


NOW = datetime.now(UTC)


DEFECTS = {
    "a column that is not there": Defect(
        "the SELECT returns no column 'unitt'; did you mean 'unit'?",
        "functional_unit:",
        old="{from: unit}",
        new="{from: unitt}",
        source="unitt",
    ),
    "a column that the patients do not have": Defect(
        "the SELECT returns no column 'birth'",
        "birth_date:",
        old="birth_date: {from: born}",
        new="birth_date: {from: birth}",
        source="birth",
    ),
    "a list that is searched": Defect(
        "a list cannot be searched: name a column of texts with search:",
        "given:",
        ("ALTER TABLE patients ADD COLUMN givens TEXT[]",),
        old="given: {from: family, search: folded}",
        new="given: {from: givens}",
        also=("SELECT patient_id, family", "SELECT patient_id, givens, family"),
        source="patients.givens",
        databases=("postgresql",),
    ),
    "a limit that was left in": Defect(
        "the SELECT of rows has a LIMIT: what is beyond it is never served",
        "encounter:",
        old="SELECT * FROM stays",
        new="SELECT * FROM stays ORDER BY stay_id LIMIT 50",
        severity="warning",
    ),
    "a comma that is missing": Defect(
        "the source cannot read the SELECT of rows at '1': what is missing before it?",
        "encounter:",
        old="SELECT * FROM stays",
        new="SELECT stays.* 1 AS x FROM stays",
    ),
    "a quote that is missing": Defect(
        "the source refuses the SELECT of rows: does it lack a table or column, or is its end",
        "encounter:",
        old="SELECT * FROM stays",
        new="SELECT * FROM stays WHERE visit <> ' #'",
    ),
    "a table that is not there": Defect(
        "the source has no",
        "encounter:",
        old="FROM stays",
        new="FROM stay",
    ),
    "a code that no entry names": Defect(
        "codes.states names no 'Z' (1 row): such rows cannot be served",
        "states: {table",
        ("UPDATE stays SET state = 'Z' WHERE stay_id = 1",),
        source="stays.state",
        remedy="Z: '?'   # 1 row; planned, in-progress, finished, hidden (never served),"
        " removed (answered 410)",
    ),
    "a code that otherwise catches": Defect(
        "codes.kinds names no 'EXT' (2 rows): all become 'UNK'",
        "class:",
        ("UPDATE stays SET kind = 'EXT' WHERE stay_id IN (1, 2)",),
        severity="note",
        source="stays.kind",
    ),
    "an entry that no row has": Defect(
        "no row has 'X'",
        "states: {table",
        old="A: hidden",
        new="A: hidden, X: removed",
        severity="note",
        source="stays.state",
    ),
    "an item that no row has": Defect(
        "rows has it: only_if lets none through, is 'sex' as it says?",
        "identifiers: [",
        old="value: {from: patient_id}}",
        new="value: {from: patient_id}, only_if: {from: sex, in: [W]}}",
        severity="warning",
    ),
    "a field that no row has": Defect(
        "rows has it",
        "organization_id:",
        old="    functional_unit: {from: unit}\n",
        new="    functional_unit: {from: unit}\n    organization_id: {from: nobody}\n",
        sql=("ALTER TABLE stays ADD nobody VARCHAR(8)",),
        severity="note",
        source="stays.nobody",
    ),
    "a field that has what stands for none": Defect(
        "rows has it",
        "organization_id:",
        old="    functional_unit: {from: unit}\n",
        new="    functional_unit: {from: unit}\n    organization_id: {from: nobody, absent: [X]}\n",
        sql=(
            "ALTER TABLE stays ADD nobody VARCHAR(8)",
            "UPDATE stays SET nobody = 'X'",
        ),
        severity="warning",
        source="stays.nobody",
    ),
    "names taken for codes": Defect(
        "cannot be served; over 100 different values, which are not shown: is this a column"
        " of codes?",
        "gender:",
        old="gender: {from: sex",
        new="gender: {from: family",
        source="patients.family",
    ),
    "a few names taken for codes": Defect(
        "12 rows with values that codes.sexes does not name cannot be served; 12 different"
        " values, which are not shown: is this a column of codes?",
        "gender:",
        ("DELETE FROM patients WHERE patient_id > 12",),
        old="gender: {from: sex",
        new="gender: {from: family",
        source="patients.family",
    ),
    "names taken for codes, some of which become something": Defect(
        "12 different values, which are not shown: is this a column of codes?",
        "class:",
        ("DELETE FROM stays WHERE stay_id > 12",),
        old="class: {from: kind",
        new="class: {from: visit",
        severity="warning",
        source="stays.visit",
    ),
    "codes of a small copy, of which the table names half": Defect(
        "codes.states names no 'Q7' (1 row), 'Q8' (1 row), 'Q9' (1 row): such rows cannot",
        "states:",
        (
            "DELETE FROM stays WHERE stay_id > 8",
            "UPDATE stays SET state = 'Q7' WHERE stay_id = 1",
            "UPDATE stays SET state = 'Q8' WHERE stay_id = 2",
            "UPDATE stays SET state = 'Q9' WHERE stay_id = 3",
            "UPDATE stays SET state = 'A' WHERE stay_id = 4",
            "UPDATE stays SET state = 'E' WHERE stay_id = 5",
            "UPDATE stays SET state = 'S' WHERE stay_id = 6",
        ),
        source="stays.state",
    ),
    "an end before the start": Defect(
        "rows looked at cannot be served: ends before it starts",
        "end:",
        ("UPDATE stays SET ended = '2001-01-01 00:00:00' WHERE stay_id = 7",),
        source="stays.ended",
    ),
    "no patient": Defect(
        "1 row has nothing here, which is required: such rows cannot be served",
        "patient_id: {from",
        ("UPDATE stays SET patient_id = NULL WHERE stay_id = 7",),
        source="stays.patient_id",
    ),
    "no status": Defect(
        "2 rows have nothing here, which is required: such rows cannot be served",
        "status: {from",
        ("UPDATE stays SET state = NULL WHERE stay_id IN (7, 8)",),
        source="stays.state",
    ),
    "a patient who was merged": Defect(
        "2 stays have a patient who was replaced by another",
        "patient_id: {from: patient_id}",
        (
            "ALTER TABLE patients ADD COLUMN merged BIGINT",
            "UPDATE patients SET merged = 2 WHERE patient_id = 1",
            "UPDATE stays SET patient_id = 1 WHERE stay_id IN (7, 8)",
            "UPDATE stays SET patient_id = 2 WHERE patient_id = 1 AND stay_id NOT IN (7, 8)",
        ),
        old="SELECT patient_id, family, folded, sex, born, changed FROM patients",
        new="SELECT * FROM patients",
        also=("gender: {", "replaced_by: {from: merged}\n    gender: {"),
        severity="warning",
        source="stays.patient_id",
    ),
    "a patient that is not there": Defect(
        "1 of 119 stays refer to a patient whom the patients do not have",
        "patient_id: {from",
        ("UPDATE stays SET patient_id = 99999 WHERE stay_id = 7",),
        severity="warning",
        source="stays.patient_id",
    ),
    "an id that FHIR does not allow": Defect(
        "rows looked at cannot be served: not a FHIR id",
        "id: {from: visit}",
        ("UPDATE stays SET visit = 'V 7' WHERE stay_id = 7",),
        old="id: {from: stay_id}",
        new="id: {from: visit}",
        source="stays.visit",
    ),
    "an id that several rows have": Defect(
        "1 ids have several rows, up to 3",
        "id: {from: visit}",
        ("UPDATE stays SET visit = 'V3' WHERE stay_id IN (1, 2)",),
        old="id: {from: stay_id}",
        new="id: {from: visit}",
        source="stays.visit",
    ),
    "a row without an id": Defect(
        "2 rows have no id",
        "id: {from: visit}",
        ("UPDATE stays SET visit = NULL WHERE stay_id IN (1, 2)",),
        old="id: {from: stay_id}",
        new="id: {from: visit}",
        source="stays.visit",
    ),
    "a time that never happens": Defect(
        "a local time that never happens (clock change) (is the column in UTC",
        "start:",
        ("UPDATE stays SET began = '2020-03-29 02:30:00' WHERE stay_id = 7",),
        source="stays.began",
    ),
    "a time that happens twice": Defect(
        "1 of 119 times happen twice (autumn clock change), and are read as the first",
        "start:",
        (
            "UPDATE stays SET began = '2020-10-25 02:30:00', ended = NULL"
            " WHERE stay_id = 7",
        ),
        severity="note",
        source="stays.began",
    ),
    "starts that are ahead of the clock": Defect(
        "1 of 119 stays that have begun start in the future, by less than the zone's offset",
        "start:",
        (
            "UPDATE stays SET ended = NULL, began ="
            f" '{NOW + timedelta(minutes=50):%Y-%m-%d %H:%M:%S}' WHERE stay_id = 7",
        ),
        old="start: {from: began}",
        new="start: {from: began, time_zone: UTC}",
        severity="warning",
        source="stays.began",
    ),
    "changes that are ahead of the clock": Defect(
        "1 of 119 rows were changed in the future, by less than the zone's offset",
        "last_updated: {from: changed, time_zone: UTC}",
        (
            "UPDATE stays SET changed ="
            f" '{NOW + timedelta(minutes=50):%Y-%m-%d %H:%M:%S}' WHERE stay_id = 7",
        ),
        severity="warning",
        source="stays.changed",
    ),
    "changes in UTC read as local time": Defect(
        "stays were changed before they began, by less than the zone's offset",
        "last_updated:",
        ("UPDATE stays SET changed = began",),
        # Two hours from Paris all summer: as far as UTC.
        old="start: {from: began}",
        new="start: {from: began, time_zone: Atlantic/Azores}",
        also=("{from: changed, time_zone: UTC}", "{from: changed}"),
        severity="warning",
        source="stays.changed",
    ),
    "an end that stands for none": Defect(
        "10 rows end on 2999-12-31: does it stand for none? Then say so with absent",
        "end:",
        (
            "UPDATE stays SET ended = '2999-12-31 00:00:00' WHERE stay_id BETWEEN 41 AND 50",
        ),
        severity="warning",
        source="stays.ended",
        remedy='absent: ["2999-12-31',
    ),
    "a day and its hour that stand for none": Defect(
        "10 rows end on 2999-12-31: does it stand for none? Then say so with absent",
        "end:",
        (
            "ALTER TABLE stays ADD COLUMN day DATE",
            "ALTER TABLE stays ADD COLUMN hour VARCHAR(5)",
            "UPDATE stays SET day = '2999-12-31', hour = '23:59' WHERE stay_id > 110",
        ),
        old="{from: ended}",
        new='{from: [day, hour], absent: ["2999-12-31 23:59"]}',
        severity="warning",
        source="stays.day, stays.hour",
        remedy='absent: ["2999-12-31 23:59", "2999-12-31"]',
    ),
    "a search by the day alone": Defect(
        "compared by a column of days, and has a time of day: searches by the hour and orders err",
        "start:",
        (
            "ALTER TABLE stays ADD COLUMN day DATE",
            "CREATE INDEX stays_day ON stays (day, stay_id)",
            "UPDATE stays SET day = '2020-06-01'",
        ),
        old="{from: began}",
        new="{from: began, search: day}",
        source="stays.began",
        remedy="",
        databases=("postgresql", "mariadb"),
    ),
    "an end that is a typing error": Defect(
        "1 row ends more than 20 years ahead: is a year wrong?",
        "end:",
        ("UPDATE stays SET ended = '2120-05-07 10:00:00' WHERE stay_id = 41",),
        severity="warning",
        source="stays.ended",
        databases=("sqlite",),
    ),
    "times that are days": Defect(
        "times are at 00:00: does the column hold days only?",
        "start:",
        ("UPDATE stays SET began = '2020-06-01 00:00:00'",),
        severity="note",
        source="stays.began",
    ),
    "a day without a time": Defect(
        "a column of days: say at what time of day",
        "start:",
        ("ALTER TABLE stays ADD COLUMN day DATE",),
        old="start: {from: began}",
        new="start: {from: day}",
        source="stays.day",
        databases=("postgresql", "mariadb"),
        remedy='at: "00:00"',
    ),
    "a time in a column of numbers": Defect(
        "a column of numbers, without a format",
        "end:",
        old="end: {from: ended}",
        new="end: {from: patient_id}",
        source="stays.patient_id",
    ),
    "an id of a type with fractions": Defect(
        "a type with fractions: an id is best an integer or a text",
        "id: {from: number}",
        old="SELECT * FROM stays",
        new="SELECT s.*, CAST(stay_id AS DECIMAL(12, 2)) AS number FROM stays s",
        also=("id: {from: stay_id}", "id: {from: number}"),
        severity="note",
        source="number",
        databases=("postgresql", "mariadb"),
    ),
    "texts with a T": Defect(
        "texts with a T between day and time",
        "start:",
        (
            "ALTER TABLE stays ADD COLUMN began_text VARCHAR(30)",
            "UPDATE stays SET began_text = '2020-05-01T10:00:00'",
        ),
        old="start: {from: began}",
        new="start: {from: began_text}",
        severity="warning",
        source="stays.began_text",
    ),
    "texts with a T and a Z": Defect(
        "texts with a T between day and time",
        "start:",
        (
            "ALTER TABLE stays ADD COLUMN began_text VARCHAR(30)",
            "UPDATE stays SET began_text = '2020-05-01T10:00:00Z'",
        ),
        old="start: {from: began}",
        new="start: {from: began_text}",
        severity="warning",
        source="stays.began_text",
        remedy='format: "%Y-%m-%dT%H:%M:%SZ", time_zone: UTC',
    ),
    "texts that are no ISO 8601": Defect(
        "cannot be served: not readable as a time (how is it written? Say so with format)",
        "start:",
        (
            "ALTER TABLE stays ADD COLUMN began_text VARCHAR(30)",
            "UPDATE stays SET began_text = '01.05.2020 10:00'",
        ),
        old="start: {from: began}",
        new="start: {from: began_text}",
        source="stays.began_text",
    ),
    "numbers that end in blanks": Defect(
        "3 rows end in blanks, which the database counts",
        "visit_number:",
        ("UPDATE stays SET visit = visit || '  ' WHERE stay_id <= 3",),
        source="stays.visit",
        databases=("sqlite", "postgresql"),
    ),
    "a code that ends in a blank": Defect(
        "1 row ends in blanks, which the database counts",
        "gender:",
        ("UPDATE patients SET sex = 'F ' WHERE patient_id = 2",),
        source="patients.sex",
        databases=("sqlite", "postgresql"),
    ),
    "numbers that end in blanks where MariaDB counts them": Defect(
        "3 rows end in blanks, which the database counts",
        "visit_number:",
        (
            "ALTER TABLE stays MODIFY visit VARCHAR(20) COLLATE utf8mb4_unicode_nopad_ci",
            "UPDATE stays SET visit = CONCAT(visit, ' ') WHERE stay_id <= 3",
        ),
        source="stays.visit",
        databases=("mariadb",),
    ),
    "numbers of a second SELECT that end in blanks": Defect(
        "2 rows end in blanks, which the database counts",
        "identifiers:",
        (
            "CREATE TABLE numbers (person BIGINT, number VARCHAR(9))",
            "INSERT INTO numbers VALUES (1, 'A '), (2, 'B '), (3, 'C')",
        ),
        old="identifiers: [{type: PI, system: urn:oid:1.2.4, value: {from: patient_id}}]",
        new="identifiers: [{type: PI, system: urn:oid:1.2.4, value: {from: number},"
        ' rows: "SELECT person, number FROM numbers", key: person}]',
        source="numbers.number",
        databases=("sqlite", "postgresql"),
    ),
    "a filter without an index": Defect(
        "'patient' reads every row of stays: no index leads to it",
        "patient_id: {from",
        ("DROP INDEX stays_patient",),
        severity="warning",
        source="stays.patient_id",
        remedy=(
            "CREATE INDEX stays_patient_id_began_stay_id ON stays"
            " (patient_id, began, stay_id);"
        ),
    ),
    "a filter without an index, through a view": Defect(
        "'patient' reads every row of stays: no index leads to it",
        "patient_id: {from: p}",
        (
            "DROP INDEX stays_patient",
            "CREATE VIEW seen AS SELECT stay_id, patient_id AS p, state, kind, began,"
            " ended, visit, unit, changed FROM stays",
        ),
        old="SELECT * FROM stays",
        new="SELECT * FROM seen",
        also=("patient_id: {from: patient_id}", "patient_id: {from: p}"),
        severity="warning",
        source="stays.patient_id",
        remedy="CREATE INDEX stays_patient_id_began_stay_id ON stays",
    ),
    "a filter without an index, but for who replaced whom": Defect(
        "'patient' reads every row of stays: no index leads to it",
        "patient_id: {from: patient_id}",
        ("DROP INDEX stays_patient", "ALTER TABLE patients ADD COLUMN merged BIGINT"),
        old="SELECT patient_id, family, folded, sex, born, changed FROM patients",
        new="SELECT * FROM patients",
        also=("gender: {", "replaced_by: {from: merged}\n    gender: {"),
        severity="warning",
        source="stays.patient_id",
        remedy="CREATE INDEX stays_patient_id_began_stay_id ON stays",
    ),
    "a filter on what is computed": Defect(
        "'identifier' reads every row of stays: no index leads to it, as the SELECT computes",
        "visit_number:",
        old="SELECT * FROM stays",
        new="SELECT s.*, 'V' || stay_id AS number FROM stays s",
        also=("{from: visit}", "{from: number}"),
        severity="warning",
        source="number",
    ),
    "a filter on what stands in two tables": Defect(
        "'patient' reads every row of archived: no index leads to it, as the SELECT puts"
        " rows of several tables together (UNION): each of them needs an index",
        "patient_id: {from",
        ("CREATE TABLE archived AS SELECT * FROM stays WHERE stay_id < 0",),
        old="SELECT * FROM stays",
        new="SELECT * FROM stays UNION ALL SELECT * FROM archived",
        severity="warning",
        source="patient_id",
        databases=("postgresql",),
    ),
    "a filter on what several tables make": Defect(
        "from several tables: no index of it can exist",
        "functional_unit:",
        old="SELECT * FROM stays",
        new="SELECT s.*, COALESCE(p.folded, s.unit) AS place"
        " FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id",
        also=("{from: unit}", "{from: place}"),
        severity="warning",
        source="place",
    ),
    "an order without an index": Defect(
        "the order '_lastUpdated' sorts all rows before each page: no index has it",
        "last_updated: {from: changed",
        ("DROP INDEX stays_changed",),
        severity="warning",
        source="stays.changed",
        remedy="CREATE INDEX stays_changed_stay_id ON stays (changed, stay_id);",
    ),
    "a code without an index": Defect(
        "'gender' reads every row of patients: no index leads to it",
        "gender:",
        ("DROP INDEX patients_sex",),
        severity="note",
        source="patients.sex",
        remedy="CREATE INDEX patients_sex_patient_id ON patients (sex, patient_id);",
    ),
}


@pytest.fixture(scope="session")
def new_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], str]:
    """Return what makes an empty database of a kind."""

    def make(kind: str) -> str:
        if kind == "sqlite":
            return f"sqlite:///{tmp_path_factory.mktemp('live') / 'pas.sqlite'}"
        if kind == "postgresql":
            new: NewDatabase = request.getfixturevalue("new_postgresql")
            return new("unicode")
        server: MariaServer = request.getfixturevalue("mariadb_server")
        return server.new_database()

    return make


@pytest.fixture(params=DATABASES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def fill(url: str, kind: str, statements: tuple[str, ...] = ()) -> None:
    """Make the clean hospital, then what is wrong with it."""
    engine = writing(url)
    with engine.begin() as connection:
        for statement in TABLES.format(time=TIMES[kind]).split(";"):
            connection.execute(sa.text(statement))
        connection.execute(sa.text(PATIENT), [_patient(n) for n in range(1, 121)])
        connection.execute(sa.text(STAY), [_stay(n) for n in range(1, 121)])
        for statement in statements:
            if kind == "mariadb" and statement.startswith("DROP INDEX"):
                statement += f" ON {statement.split()[-1].split('_')[0]}"
            connection.execute(sa.text(statement))
    engine.dispose()


def _run(url: str, *statements: str) -> None:
    engine = writing(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
    engine.dispose()


STAY = (
    "INSERT INTO stays VALUES (:id, :patient, :state, 'HC', :began, :ended, :visit,"
    " :unit, :changed)"
)
PATIENT = "INSERT INTO patients VALUES (:id, :family, :folded, :sex, :born, :changed)"


def _stay(number: int) -> dict[str, object]:
    began = datetime(2020, 5, 1, 8, 10) + timedelta(hours=7 * number)  # noqa: DTZ001
    ended = began + timedelta(hours=30)
    return {
        "id": number,
        "patient": number,
        "state": "ESA"[number % 3] if number % 40 == 0 else "SE"[number % 2],
        "began": str(began),
        "ended": str(ended),
        "visit": f"V{number}",
        "unit": f"U{number % 5}",
        "changed": str(ended + timedelta(hours=1)),
    }


def _patient(number: int) -> dict[str, object]:
    return {
        "id": number,
        "family": f"Ljungqvist{number}",
        "folded": f"ljungqvist{number}",
        "sex": "MF"[number % 2],
        "born": f"19{number % 80 + 10}-02-03",
        "changed": f"2020-05-01 10:{number % 60:02}:00",
    }


def written(directory: Path, *changes: tuple[str, str]) -> Path:
    """Write the mapping file with these changes."""
    text = MAPPING
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    file = directory / "hospital.yaml"
    file.write_text(text)
    return file


def looked(file: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    """Return what was found."""
    main(["mapping", "check", "--live", "--json", str(file)])
    told = capsys.readouterr()
    assert told.err == ""
    assert not any(secret in told.out for secret in SECRETS)
    found: list[dict[str, str]] = json.loads(told.out)["findings"]
    return found


@pytest.fixture
def url(
    kind: str, new_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> str:
    url = new_url(kind)
    monkeypatch.setenv("PAS_URL", url)
    return url


def test_blanks_that_a_database_does_not_count_are_not_told(
    kind: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A CHAR of PostgreSQL, and all texts of MariaDB as it is made."""
    if kind == "sqlite":
        pytest.skip("counts them in every column")
    blanks = "ALTER TABLE stays MODIFY visit CHAR(20)"
    if kind == "postgresql":
        blanks = "ALTER TABLE stays ALTER COLUMN visit TYPE CHAR(20)"
    fill(url, kind, (blanks, "UPDATE stays SET state = CONCAT(state, ' ')"))
    if kind == "postgresql":
        _run(url, "UPDATE stays SET state = TRIM(state)")
    found = looked(written(tmp_path), capsys)
    assert not [each for each in found if "blanks" in each["text"]]


def test_nothing_is_wrong_with_a_clean_hospital(
    kind: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(url, kind)
    file = written(tmp_path)
    found = looked(file, capsys)
    assert [one["text"] for one in found if not _is_expected(one)] == []
    assert main(["mapping", "check", "--live", str(file)]) == 0
    assert capsys.readouterr().out.endswith(f"{file}: nothing to mend\n")


def _is_expected(one: dict[str, str]) -> bool:
    """What is no fault of a hospital: words within texts, a collation of the server."""
    texts = ("to find words within texts", "compared by the database without case")
    return one["severity"] == "note" and any(text in one["text"] for text in texts)


@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS.keys())
def test_a_defect_is_told_at_its_line(
    defect: Defect,
    kind: str,
    url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if kind not in defect.databases:
        pytest.skip("this database has no such type")
    fill(url, kind, defect.sql)
    file = written(tmp_path, (defect.old, defect.new), defect.also)
    found = looked(file, capsys)
    told = [one for one in found if defect.told in one["text"]]
    assert len(told) == 1, [one["text"] for one in found]
    one = told[0]
    line = file.read_text().splitlines()[int(one["line"]) - 1]
    assert defect.at in line
    assert one["severity"] == defect.severity
    assert one["source"] == defect.source
    assert one["remedy"].startswith(defect.remedy)
    if one["remedy"].startswith("CREATE INDEX"):
        _run(url, one["remedy"])
        assert one not in looked(file, capsys)


def test_a_far_day_that_the_file_knows_is_none(
    kind: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    far = "UPDATE stays SET ended = '2999-12-31 00:00:00' WHERE stay_id > 60"
    fill(url, kind, (far,))
    (one,) = [
        f for f in looked(written(tmp_path), capsys) if "stand for none" in f["text"]
    ]
    known = written(tmp_path, ("{from: ended}", f"{{from: ended, {one['remedy']}}}"))
    assert not any("stand for none" in f["text"] for f in looked(known, capsys))
    days = written(tmp_path, ("{from: ended}", "{from: ended, absent: [2999-12-31]}"))
    assert kind == "sqlite" or not [
        f for f in looked(days, capsys) if "stand for none" in f["text"]
    ]


def test_codes_and_counts_alone_are_quoted(
    kind: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(url, kind, ("UPDATE patients SET sex = substr(family, 1, 4)",))
    found = looked(written(tmp_path, ("M: male", "M: male, F2: female")), capsys)
    (one,) = [f for f in found if "codes.sexes names no" in f["text"]]
    assert "'Ljun' (120 rows)" in one["text"]


def test_an_index_for_words_within_texts_is_of_what_is_compared(
    new_url: Callable[[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = new_url("postgresql")
    monkeypatch.setenv("PAS_URL", url)
    fill(url, "postgresql")
    file = written(tmp_path)
    (remedy,) = {one["remedy"] for one in looked(file, capsys)} - {""}
    extension, index = remedy.split("\n")
    assert extension == "CREATE EXTENSION IF NOT EXISTS pg_trgm;"
    expression = "' ' || lower(folded)"
    assert f"USING gin (({expression}) gin_trgm_ops);" in index
    # The server of the tests lacks the extension; what is indexed it can index plainly.
    _run(url, index.replace("USING gin ", "").replace(" gin_trgm_ops", ""))
    assert main(["mapping", "explain", str(file), "Patient?name=x"]) == 0
    assert f"({expression}) LIKE" in capsys.readouterr().out


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////none/such.sqlite",
        "postgresql://eve:hush@127.0.0.1:9/secret_pas",
        "mysql://eve:hush@127.0.0.1:9/secret_pas",
    ],
)
def test_a_source_that_is_away_is_one_sentence(
    url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PAS_URL", url)
    file = written(tmp_path)
    assert main(["mapping", "check", "--live", str(file)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        f"{file}: the source cannot be looked at: the database took no connection; is it"
        " up, and are address and account right?\n"
    )


def test_an_account_that_is_refused_is_one_sentence(
    mariadb_server: MariaServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = mariadb_server.new_database().rpartition("/")[2].partition("?")[0]
    monkeypatch.setenv("PAS_URL", mariadb_server.url(database, account="eve:hush"))
    assert main(["mapping", "check", "--live", str(written(tmp_path))]) == 2
    told = capsys.readouterr().err
    assert "took no connection: it refuses the account, its password or the" in told
    assert not any(secret in told for secret in ("eve", "hush", database))


def test_a_variable_that_is_not_set_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAS_URL", raising=False)
    file = written(tmp_path)
    assert main(["mapping", "check", "--live", str(file)]) == 2
    assert "the environment variable PAS_URL is not set" in capsys.readouterr().err


def test_a_file_with_faults_is_not_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAS_URL", "sqlite:////none/such.sqlite")
    file = written(tmp_path, ("codes: states", "codes: state"))
    assert main(["mapping", "check", "--live", str(file)]) == 1
    told = capsys.readouterr()
    assert "'state'" in told.out
    assert told.err == ""


def test_an_account_that_may_write_is_told_at_the_source(
    new_url: Callable[[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = new_url("postgresql")
    monkeypatch.setenv("PAS_URL", url)
    fill(url, "postgresql")
    file = written(tmp_path, (", may_write: true", ""))
    (one,) = [one for one in looked(file, capsys) if one["severity"] == "error"]
    assert "may change tables" in one["text"]
    assert file.read_text().splitlines()[int(one["line"]) - 1].startswith("source:")


def test_each_table_of_several_is_looked_at(
    kind: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(url, kind, ("CREATE TABLE more AS SELECT * FROM stays",))
    fields = MAPPING.partition("  fields:")[2].partition("  search:")[0]
    entry = "    - prefix: {0}-\n      rows: SELECT * FROM {1}\n      fields:{2}"
    entries = "".join(
        entry.format(prefix, table, fields.replace("\n", "\n    ").rstrip(" "))
        for prefix, table in (("a", "stays"), ("b", "more"))
    )
    own = f"  rows: SELECT * FROM stays\n  fields:{fields}"
    file = written(tmp_path, (own, f"  sources:\n{entries}"))
    found = looked(file, capsys)
    warned = {one["source"] for one in found if one["severity"] == "warning"}
    assert warned == {
        f"more.{column}"
        for column in ("stay_id", "patient_id", "began", "visit", "unit", "changed")
    }


def test_people_are_told_how_much_there_is(
    new_url: Callable[[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = new_url("sqlite")
    monkeypatch.setenv("PAS_URL", url)
    fill(url, "sqlite", ("UPDATE stays SET state = 'Z' WHERE stay_id = 1",))
    file = written(tmp_path)
    assert main(["mapping", "check", "--live", str(file)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(
        f"{file}:10:3: Encounter.status ← stays.state: codes.states"
    )
    assert told[1].startswith("    Z: '?'   # 1 row; ")
    assert told[-1] == f"{file}: 1 error, 2 notes"


def test_errors_come_first_and_an_index_is_told_once(
    new_url: Callable[[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = new_url("sqlite")
    monkeypatch.setenv("PAS_URL", url)
    dropped = ("stays_began", "stays_changed", "patients_changed", "patients_born")
    fill(
        url,
        "sqlite",
        (
            *(f"DROP INDEX {name}" for name in dropped),
            "UPDATE patients SET sex = 'Z' WHERE patient_id = 1",
        ),
    )
    found = looked(written(tmp_path), capsys)
    order = ["error", "warning", "note"]
    ranks = [order.index(one["severity"]) for one in found]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(order)
    indexes = [one["remedy"] for one in found if "CREATE INDEX" in one["remedy"]]
    assert indexes
    assert len(indexes) == len(set(indexes))
    again = "the same index as above: "
    named = {one["remedy"].split()[2] for one in found if "CREATE" in one["remedy"]}
    repeated = [one for one in found if one["remedy"].startswith(again)]
    assert repeated
    assert {one["remedy"].removeprefix(again) for one in repeated} <= named
    for severity in order:
        own = [one for one in found if one["severity"] == severity]
        of_index = [one["remedy"].startswith(("CREATE", again)) for one in own]
        assert of_index == sorted(of_index)


def test_rows_between_the_newest_and_the_oldest_are_looked_at(
    new_url: Callable[[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = new_url("sqlite")
    monkeypatch.setenv("PAS_URL", url)
    fill(url, "sqlite")
    many = "WITH RECURSIVE n(i) AS (SELECT 121 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)"
    _run(
        url,
        f"INSERT INTO stays {many} SELECT i, 1, 'S', 'HC',"
        " datetime('2020-06-10', '+' || i || ' hours'), NULL, 'V' || i, 'U1',"
        " '2021-06-01 00:00:00' FROM n",
        "UPDATE stays SET ended = '2001-01-01 00:00:00' WHERE stay_id > 2500"
        " AND stay_id < 3500",
    )
    (one,) = [
        one for one in looked(written(tmp_path), capsys) if "ends before" in one["text"]
    ]
    assert " of 3,0" in one["text"] or " of 2,9" in one["text"], one["text"]


def test_a_look_ends_in_time(
    url: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(url, kind)
    told = [finding.text for finding in check_live(written(tmp_path), seconds=0)]
    assert told == ["not all was looked at: it took longer than 0 seconds"]


@pytest.mark.parametrize(
    ("rows", "several"),
    [
        ("select COALESCE(s.a, s.b) as made, s.id from s", False),
        ("SELECT s.id, COALESCE(s.a, u.b) AS made FROM s JOIN u ON u.id = s.u", True),
        ("SELECT (SELECT MAX(x) FROM u) AS made, s.id FROM s", True),
        ("SELECT u.id, s.a || 'u.x, (' AS made FROM s JOIN u ON u.id = s.u", False),
        ("SELECT * FROM seen", False),
    ],
    ids=["one", "two", "within", "text", "view"],
)
def test_of_how_many_tables_a_column_is_made(rows: str, several: bool) -> None:
    assert is_of_several(expression_of(rows, "made")) is several


@pytest.mark.parametrize(
    ("rows", "together"),
    [
        ("SELECT id FROM a union all SELECT id FROM b", True),
        ("SELECT 'a UNION of two' AS made FROM reunions", False),
    ],
)
def test_whether_rows_of_several_tables_are_put_together(
    rows: str, together: bool
) -> None:
    assert is_put_together(rows) is together


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("SELECT id FROM stays\nlimit 10\n", True),
        ("SELECT id FROM stays LIMIT 10 OFFSET 5", True),
        ("SELECT id FROM stays FETCH FIRST 10 ROWS ONLY", True),
        ("SELECT TOP 10 id FROM stays", True),
        ("SELECT id, (SELECT n FROM units LIMIT 1) FROM stays", False),
        ("SELECT id FROM (SELECT id FROM stays LIMIT 10) s", False),
        ("SELECT top FROM stays", False),
    ],
)
def test_a_limit_counts_where_it_is_of_the_whole(rows: str, expected: bool) -> None:
    assert is_cut(rows) is expected
