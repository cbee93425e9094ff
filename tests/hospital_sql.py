"""The tiny hospital as tables of a database and as the mapping file that reads them."""

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from itertools import product
from uuid import UUID

import sqlalchemy as sa

from adapters.contract import ResourceType
from adapters.parameters import SEARCH_PARAMETERS
from tests.databases import writing
from toolkit.contract.hospital import (
    FINESS_SYSTEM,
    IPP_SYSTEM,
    KINDS,
    NO_END,
    NO_START,
    SEXES,
    STATES,
    UNIT_URL,
    VISIT_SYSTEMS,
    Hospital,
    Ids,
    PatientRow,
    StayRow,
)

_TABLES = """
CREATE TABLE stays (stay_id {id} UNIQUE, patient_id {id}, state {code}, kind {code},
  began {time}, ended {time}, visit {text}, hospital {text}, unit {unit}, changed {time});
CREATE INDEX stays_began ON stays (began, stay_id);
CREATE TABLE patients (patient_id {id} PRIMARY KEY, used_name {text}, birth_name {text},
  given {text}, sex {code}, born {day}, replaced_by {id}, changed {time});
CREATE TABLE patient_numbers (patient_id {id}, number {text}, authority {text});
CREATE TABLE organizations (code {key} PRIMARY KEY, title {text}, finess {text},
  changed {time})
"""

_KINDS = ("id", "key", "code", "unit", "text", "time", "day")
_BINARY = "COLLATE utf8mb4_bin"
_TYPES: Mapping[tuple[str, Ids], str] = {
    ("sqlite", Ids.NUMBERS): "INTEGER; TEXT; TEXT; TEXT; TEXT; TEXT; TEXT",
    ("sqlite", Ids.TEXTS): (
        "VARCHAR(40); VARCHAR(80); CHAR(4); CHAR(6); VARCHAR(80); DATETIME; DATE"
    ),
    ("sqlite", Ids.UUIDS): "BLOB; TEXT; TEXT; TEXT; TEXT; TEXT; TEXT",
    ("mysql", Ids.UUIDS): (
        f"BINARY(16); VARCHAR(80) {_BINARY}; VARCHAR(40); VARCHAR(40); VARCHAR(80);"
        " DATETIME(6); DATE"
    ),
    ("postgresql", Ids.UUIDS): "BYTEA; TEXT; TEXT; TEXT; TEXT; TIMESTAMP(6); DATE",
    ("mysql", Ids.NUMBERS): (
        f"BIGINT; VARCHAR(80) {_BINARY}; VARCHAR(40); VARCHAR(40); VARCHAR(80);"
        " DATETIME(6); DATE"
    ),
    ("mysql", Ids.TEXTS): (
        f"VARCHAR(40) {_BINARY}; VARCHAR(80) {_BINARY}; CHAR(4) CHARACTER SET latin1;"
        " CHAR(6); VARCHAR(80); DATETIME(6); DATE"
    ),
    ("postgresql", Ids.NUMBERS): "BIGINT; TEXT; TEXT; TEXT; TEXT; TIMESTAMP(6); DATE",
    ("postgresql", Ids.TEXTS): (
        "VARCHAR(40); VARCHAR(80); CHAR(4); CHAR(6); VARCHAR(80); TIMESTAMP(6); DATE"
    ),
}
"""Columns of the first kind are as loose as they come, of the second as old ones are."""


_UNNAMED = tuple(
    StayRow(0, patient, began=began, changed=began)
    for patient, began in product(
        (1, 2), (None, "2024-03-14 10:00:00", "2024-10-27 02:30:00")
    )
)
"""Rows without an id, which no page and no total has (decision 40)."""

Cells = dict[str, object]


class Tables:
    """The tables of a hospital in one database, kept by a connection that may write."""

    def __init__(self, url: str, hospital: Hospital) -> None:
        self._engine = writing(url)
        self._dialect = self._engine.dialect.name
        if self._dialect == "sqlite":
            # No test looks at what is left after a power cut.
            sa.event.listen(
                self._engine,
                "connect",
                lambda c, _: c.execute("PRAGMA synchronous = OFF"),
            )
        self._ids = hospital.ids
        self.create()
        self.fill(hospital)

    def create(self) -> None:
        """Make the tables, empty, in place of what was there."""
        types = _TYPES[self._dialect, self._ids].split("; ")
        statements = _TABLES.format_map(dict(zip(_KINDS, types, strict=True)))
        with self._engine.begin() as connection:
            for table in ("stays", "patients", "patient_numbers", "organizations"):
                connection.execute(sa.text(f"DROP TABLE IF EXISTS {table}"))
            for statement in statements.split(";"):
                connection.execute(sa.text(statement))

    def fill(self, hospital: Hospital) -> None:
        """Put all rows of a hospital into empty tables."""
        unnamed = [self._stay(row) | {"id": None} for row in _UNNAMED]
        numbers = [
            {"id": self._id(row.id), "number": number, "authority": authority}
            for row in hospital.patients
            for number, authority in row.numbers
        ]
        organizations = [
            {**row._asdict(), "changed": self._time(row.changed)}
            for row in hospital.organizations
        ]
        with self._engine.begin() as connection:
            for table, rows in (
                ("stays", [*map(self._stay, hospital.stays), *unnamed]),
                ("patients", [*map(self._patient, hospital.patients)]),
                ("patient_numbers", numbers),
                ("organizations", organizations),
            ):
                _insert(connection, table, rows)

    def put_stay(self, row: StayRow) -> None:
        """Insert a stay, in place of the one with its id when there is one."""
        self._put("stays", "stay_id", row.id, [self._stay(row)])

    def put_patient(self, row: PatientRow) -> None:
        """Insert a patient without further numbers, in place of the one with its id."""
        self._put("patients", "patient_id", row.id, [self._patient(row)])

    def delete_patient(self, id: int) -> None:
        """Delete a patient."""
        self._put("patients", "patient_id", id, [])

    def delete_stay(self, id: int) -> None:
        """Delete a stay."""
        self._put("stays", "stay_id", id, [])

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def _put(self, table: str, key: str, id: int, rows: list[Cells]) -> None:
        with self._engine.begin() as connection:
            delete = sa.text(f"DELETE FROM {table} WHERE {key} = :id")
            connection.execute(delete, {"id": self._id(id)})
            _insert(connection, table, rows)

    def _stay(self, row: StayRow) -> Cells:
        return {
            **row._asdict(),
            "id": self._id(row.id),
            "patient": row.patient and self._id(row.patient),
            "began": self._time(row.began),
            "ended": self._time(row.ended),
            "changed": self._time(row.changed),
        }

    def _patient(self, row: PatientRow) -> Cells:
        is_text = row.born is None or self._dialect == "sqlite"
        cells = {
            **row._asdict(),
            "id": self._id(row.id),
            "born": row.born if is_text else date.fromisoformat(row.born or ""),
            "replaced_by": row.replaced_by and self._id(row.replaced_by),
            "changed": self._time(row.changed),
        }
        del cells["numbers"]
        return cells

    def _id(self, number: int) -> object:
        """Return an id as the column holds it: bytes for a UUID."""
        stored = self._ids.stored(number)
        return UUID(str(stored)).bytes if self._ids is Ids.UUIDS else stored

    def _time(self, text: str | None) -> object:
        """Return a time as the column holds it; text ones with six places or as needed."""
        if text is None or self._dialect != "sqlite":
            return datetime.fromisoformat(text) if text else None
        whole = text and self._ids is Ids.TEXTS and "." not in text
        return f"{text}.000000" if whole else text


def _insert(connection: sa.Connection, table: str, rows: list[Cells]) -> None:
    if rows:
        places = ", ".join(f":{name}" for name in rows[0])
        connection.execute(sa.text(f"INSERT INTO {table} VALUES ({places})"), rows)


def mapping_text(hospital: Hospital, url: str = "{env: PAS_URL}") -> str:
    """Return the mapping file of a hospital."""
    text = "\n".join(_mapping_lines(hospital, url))
    if hospital.ids is Ids.UUIDS:
        text = re.sub(
            r"\{from: (\w+_id|replaced_by)\}", r"{from: \1, form: uuid}", text
        )
    return text


def covering_changes(text: str) -> str:
    """Return the mapping with last changes of all that it shows, which can be searched."""
    covered = text.replace("time_zone: UTC}", "time_zone: UTC, covers: all}")
    return covered.replace("search: [_id, ", "search: [_id, _lastUpdated, ")


def _mapping_lines(hospital: Hospital, url: str) -> Iterator[str]:
    split = ', split: " "' if hospital.ids is Ids.TEXTS else ""
    yield _HEAD.format(
        url=url, date=hospital.date_reading, twice=hospital.twice, never=hospital.never
    )
    yield f"constants: {{functional_unit_extension: {UNIT_URL!r}}}"
    yield "codes:"
    for name, table, otherwise in (
        ("states", STATES, ""),
        ("kinds", KINDS, ", otherwise: UNK"),
        ("sexes", SEXES, ", otherwise: unknown"),
        ("systems", VISIT_SYSTEMS, ""),
    ):
        entries = ", ".join(f"{code!r}: {made!r}" for code, made in table.items())
        yield f"  {name}: {{table: {{{entries}}}{otherwise}}}"
    for kind, section in (
        (ResourceType.ENCOUNTER, _ENCOUNTER),
        (ResourceType.PATIENT, _PATIENT.format(split=split)),
        (ResourceType.ORGANIZATION, _ORGANIZATION),
    ):
        # All that there is, but the last change: `covering_changes` adds it.
        names = (name for name in SEARCH_PARAMETERS[kind] if name != "_lastUpdated")
        yield section.replace("SEARCH", ", ".join(names))


_HEAD = """\
mapping: 1
name: Tiny hospital
profile: full
time_zone: Europe/Paris
date: {date}
local_times: {{twice: {twice}, never: {never}}}
source: {{kind: sql, url: {url}, connections: 2, may_write: true}}"""

_ENCOUNTER = """\
encounter:
  rows: |
    SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
           s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
    FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id
  fields:
    id: {from: stay_id}
    patient_id: {from: patient_id}
    status: {from: state, codes: states}
    class: {from: kind, codes: kinds}
    start: {from: began, absent: [NO_START, NO_START.000000]}
    end: {from: ended, absent: [NO_END, NO_END.000000]}
    visit_number: {from: visit}
    visit_number_system: {from: hospital, codes: systems}
    functional_unit: {from: unit}
    organization_id: {from: hospital}
    last_updated: {from: changed, time_zone: UTC}
  search: [SEARCH]
  sort: [date, _lastUpdated]""".replace("NO_START", NO_START).replace("NO_END", NO_END)

_PATIENT = f"""\
patient:
  rows: |
    SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
           replaced_by IS NULL AS active
    FROM patients
  fields:
    id: {{{{from: patient_id}}}}
    active: {{{{from: active}}}}
    identifiers:
      - {{{{type: PI, system: '{IPP_SYSTEM}', value: {{{{from: patient_id}}}}}}}}
      - rows: SELECT patient_id, number, authority FROM patient_numbers
        key: patient_id
        system: {{{{from: authority}}}}
        value: {{{{from: number}}}}
    names:
      - {{{{use: usual, family: {{{{from: used_name}}}}, given: {{{{from: given{{split}}}}}}}}}}
      - {{{{use: old, family: {{{{from: birth_name}}}}}}}}
    gender: {{{{from: sex, codes: sexes}}}}
    birth_date: {{{{from: born}}}}
    replaced_by: {{{{from: replaced_by}}}}
    last_updated: {{{{from: changed, time_zone: UTC}}}}
  search: [SEARCH]
  sort: [_id, _lastUpdated]"""

_ORGANIZATION = f"""\
organization:
  rows: SELECT code, title, finess, changed FROM organizations
  fields:
    id: {{from: code}}
    name: {{from: title}}
    identifiers: [{{type: FINEJ, system: '{FINESS_SYSTEM}', value: {{from: finess}}}}]
    last_updated: {{from: changed, time_zone: UTC}}
  search: [SEARCH]
  sort: [_id, _lastUpdated]"""
