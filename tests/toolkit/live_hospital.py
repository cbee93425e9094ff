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
TYPES = {
    "sqlite": {"time": "DATETIME", "instant": "DATETIME"},
    "postgresql": {"time": "TIMESTAMP", "instant": "TIMESTAMPTZ"},
    "mysql": {"time": "DATETIME(6)", "instant": "TIMESTAMP NULL"},
}
MAPPING = (HERE / "live_hospital.yaml").read_text("utf-8")


def fill(url: str) -> None:
    """Make the hospital in an empty database."""
    stays, patients = [], []
    for n in range(1, 121):
        state = "ESA"[n % 3] if n % 40 == 0 else "SE"[n % 10 == 9]
        began = datetime(2020, 5, 1, 8, 10) + timedelta(hours=7 * n)  # noqa: DTZ001
        ended = began + timedelta(hours=30)
        changed = ended + timedelta(hours=1)
        stays.append(
            f"({n}, {n}, '{state}', 'HC', '{began}', '{ended}', 'V{n}', 'U{n % 5}',"
            f" '{changed}')"
        )
        patients.append(
            f"({n}, 'Ljungqvist{n}', 'ljungqvist{n}', '{'MF'[n % 2]}',"
            f" '19{n % 80 + 10}-02-03', '2020-05-01 10:{n % 60:02}:00')"
        )
    run(
        url,
        *TABLES.split(";"),
        f"INSERT INTO stays VALUES {', '.join(stays)}",
        f"INSERT INTO patients VALUES {', '.join(patients)}",
    )


def run(url: str, *statements: str) -> None:
    """Run statements in the database of a hospital, in its dialect."""
    backend = sa.make_url(url).get_backend_name()
    engine = writing(url)
    with engine.begin() as connection:
        for statement in statements:
            for name, type_ in TYPES[backend].items():
                statement = statement.replace(f"{{{name}}}", type_)
            if backend == "mysql":
                statement = statement.replace('"', "`")
                if statement.startswith("DROP INDEX"):
                    table = statement.split()[-1].split("_")[0]
                    statement = f"{statement} ON {table}"
            connection.execute(sa.text(statement))
    engine.dispose()


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
