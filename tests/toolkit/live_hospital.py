"""A sound hospital in a database, its mapping file, and what check --live reports of it."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from app.cli import main
from tests.databases import writing
from tests.sets import SERVERS
from toolkit.confirm import UNASKED, UNCONFIRMED

HERE = Path(__file__).parent
Findings = list[dict[str, str]]

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
INSTANTS = {
    "sqlite": "DATETIME",
    "postgresql": "TIMESTAMPTZ",
    "mariadb": "TIMESTAMP NULL",
    "mysql": "TIMESTAMP NULL",
}
TIMES = {
    "sqlite": "DATETIME",
    "postgresql": "TIMESTAMP",
    "mariadb": "DATETIME(6)",
    "mysql": "DATETIME(6)",
}

MAPPING = (HERE / "live_hospital.yaml").read_text("utf-8")
FIRST = "mapping: 1\n"

STAY = (
    "INSERT INTO stays VALUES (:id, :patient, :state, 'HC', :began, :ended, :visit,"
    " :unit, :changed)"
)
PATIENT = "INSERT INTO patients VALUES (:id, :family, :folded, :sex, :born, :changed)"


def fill(url: str, kind: str, statements: Sequence[str] = ()) -> None:
    """Make the hospital in an empty database, and run further statements."""
    run(url, *TABLES.format(time=TIMES[kind]).split(";"))
    engine = writing(url)
    with engine.begin() as connection:
        connection.execute(sa.text(PATIENT), [_patient(n) for n in range(1, 121)])
        connection.execute(sa.text(STAY), [_stay(n) for n in range(1, 121)])
    engine.dispose()
    for statement in statements:
        is_drop = kind in SERVERS and statement.startswith("DROP INDEX")
        table = statement.split()[-1].split("_")[0]
        statement = statement.replace("{instant}", INSTANTS[kind])
        statement = statement.replace("{time}", TIMES[kind])
        run(url, f"{statement} ON {table}" if is_drop else statement)


def run(url: str, *statements: str) -> None:
    """Run statements in the database of a hospital."""
    engine = writing(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
    engine.dispose()


def counted(url: str, expression: str, where: str = "1 = 1") -> dict[str, int]:
    """Return how many stays have each value of an expression."""
    query = f"SELECT {expression}, COUNT(*) FROM stays WHERE {where} GROUP BY 1"
    engine = writing(url)
    with engine.connect() as connection:
        rows = connection.execute(sa.text(query)).all()
    engine.dispose()
    return {str(value): number for value, number in rows}


def _stay(number: int) -> dict[str, object]:
    began = datetime(2020, 5, 1, 8, 10) + timedelta(hours=7 * number)  # noqa: DTZ001
    ended = began + timedelta(hours=30)
    return {
        "id": number,
        "patient": number,
        "state": "ESA"[number % 3] if number % 40 == 0 else "SE"[number % 10 == 9],
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


def written(directory: Path, *changes: Sequence[str], text: str = MAPPING) -> Path:
    """Write the mapping file with these changes."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    file = directory / "hospital.yaml"
    file.write_text(text)
    return file


def checked(file: Path, capsys: pytest.CaptureFixture[str]) -> Findings:
    """Return the findings of check --live about the rows; they never quote a name."""
    main(["mapping", "check", "--live", "--json", str(file)])
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "ljungqvist" not in printed.out.lower()
    findings: Findings = json.loads(printed.out)["findings"]
    return [one for one in findings if one["topic"] not in (UNASKED, UNCONFIRMED)]


def defects(name: str) -> dict[str, dict[str, Any]]:
    """Return a table of defects by name."""
    text = (HERE / f"defects_{name}.yaml").read_text("utf-8")
    table: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return table


def findings_of(defect: Mapping[str, Any], file: Path, findings: Findings) -> Findings:
    """Return the findings that a defect has to have."""
    lines = file.read_text().splitlines()
    return [
        one
        for one in findings
        if int(one["line"])
        and defect["at"] in lines[int(one["line"]) - 1]
        and one["severity"] == defect.get("severity", "error")
        and one["source"] == defect.get("source", "")
        and one["remedy"].startswith(defect.get("remedy", ""))
        and all(word in one["text"] for word in defect.get("says", ()))
    ]
