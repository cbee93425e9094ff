"""The rows of the replayed hospital, in plain SQL; none of them ever changes."""

import unicodedata
from collections.abc import Iterator
from datetime import date, datetime
from typing import NamedTuple

import sqlalchemy as sa

NO_START, NO_END = "1900-01-01 00:00:00", "9999-12-31 23:59:59"
LARGEST_ID = 2**63 - 1
WALKED = 20
"""The patient whose stays are walked through."""

_M = "2024-03-14"


class Stay(NamedTuple):
    """A row of `stays`. Times are local, `changed` is in UTC."""

    stay_id: int
    patient_id: int | None = 1
    state: str | None = "S"
    kind: str | None = "HC"
    began: str | None = None
    ended: str | None = None
    visit: str | None = None
    hospital: str | None = "H1"
    unit: str | None = None
    changed: str | None = None


class Patient(NamedTuple):
    """A row of `patients`."""

    patient_id: int
    used_name: str | None = None
    birth_name: str | None = None
    given: str | None = None
    sex: str | None = None
    born: str | None = None
    replaced_by: int | None = None
    changed: str | None = None


class Number(NamedTuple):
    """A row of `patient_numbers`."""

    patient_id: int
    number: str
    authority: str | None


class House(NamedTuple):
    """A row of `organizations`."""

    code: str
    title: str | None = None
    finess: str | None = None
    changed: str | None = None


def _walked() -> Iterator[Stay]:
    """Yield stays with equal starts, without a start, with and without a last change."""
    for n in range(90):
        hour = n // 3 if n < 60 else n
        yield Stay(
            1000 + (n * 37) % 90,
            WALKED,
            "PES"[n % 3],
            ("URG", "HC", "EXT", "SEA", "NEW")[n % 5],
            f"2023-05-{1 + hour // 24:02} {hour % 24:02}:00:00",
            visit=f"W{n:03}",
            hospital=("H1", "H2")[n % 2],
            unit=f"{n % 4:04}",
            changed=f"2023-06-{1 + n % 20:02} 12:00:00" if n % 4 else None,
        )
    for n in range(24):
        changed = f"2023-07-{1 + n // 4:02} 08:00:00.000001" if n % 3 else None
        yield Stay(1200 + (n * 7) % 24, WALKED, "P", "SEA", changed=changed)


STAYS = (
    Stay(1, began=f"{_M} 08:15:00", ended=f"{_M} 17:30:00", visit="V1"),
    Stay(2, began=f"{_M} 00:00:00", ended="2024-03-15 00:00:00", visit="v1"),
    Stay(3, began="2024-03-13 23:59:59", ended=f"{_M} 00:00:00", visit="V2"),
    Stay(4, began="2024-03-15 00:00:00", ended="2024-03-16 10:00:00"),
    Stay(5, began=f"{_M} 23:59:59.999999", ended=f"{_M} 23:59:59.999999"),
    Stay(6, began="2024-03-13 23:59:59.500000", unit="0123"),
    Stay(7, began=f"{_M} 00:00:00.000001", unit="123"),
    Stay(8, began="2024-02-29 12:00:00", ended="2024-04-01 12:00:00", unit="0123 A"),
    Stay(9, began=NO_START, ended="2024-03-10 10:00:00"),
    *(
        Stay(id, 5, began=f"{_M} 09:00:00", changed="2024-03-14 08:30:00")
        for id in (*range(10, 22), 420, 421, 422)
    ),
    Stay(22, began="2024-03-01 09:00:00", state="E"),
    Stay(23, ended="2024-03-20 10:00:00", changed="2024-03-20 09:00:00.123456"),
    Stay(24, state="P", changed="2024-03-20 09:00:00.123457"),
    Stay(25, state="P", changed="2024-03-20 09:00:00"),
    Stay(26, state="P"),
    Stay(27, 2, state="P", kind="SEA"),
    Stay(28, began="", ended="", changed=""),
    Stay(29, began=NO_START, ended=NO_END),
    Stay(30, 3, began="2024-10-27 02:30:00", ended="2024-10-27 02:45:00"),
    Stay(31, 3, began="2024-10-27 01:59:59", ended="2024-10-27 03:00:00"),
    Stay(32, 3, began="2024-10-27 03:00:00", changed="2024-10-27 02:30:00"),
    Stay(33, 3, began="2024-03-31 01:59:59", ended="2024-03-31 03:30:00"),
    Stay(34, 3, began="2024-03-31 03:00:01", changed="2024-03-31 02:30:00"),
    # Rows that cannot be mapped.
    Stay(35, 3, began="2024-03-31 02:30:00", visit="G1"),
    Stay(36, 3, began="2024-03-30 20:00:00", ended="2024-03-31 02:00:00"),
    Stay(37, state="Z", began=f"{_M} 10:00:00", visit="Z1", kind="URG"),
    Stay(38, state=None, began=f"{_M} 10:00:00"),
    Stay(39, state="", changed="2024-03-14 10:00:00"),
    Stay(40, None, began=f"{_M} 10:00:01", visit="Z1"),
    Stay(41, hospital="H9", began=f"{_M} 10:00:02", visit="Z9"),
    Stay(42, 2, "P", began="2024-03-20 09:00:00", changed="2023-01-01 00:00:00"),
    Stay(43, began=f"{_M} 10:00:03", ended=f"{_M} 10:00:02"),
    # Hidden, removed.
    Stay(50, state="A", began=f"{_M} 10:00:00", visit="V1"),
    Stay(51, state="X", began=f"{_M} 10:00:00", visit="V1"),
    Stay(52, state="X"),
    Stay(60, 4, "C", "HP", began="2024-05-01 10:00:00"),
    Stay(61, 4, "S", None, began="2024-05-02 10:00:00"),
    Stay(62, 4, "S", "", began="2024-05-03 10:00:00"),
    Stay(63, 4, "S", "NEW", began="2024-05-04 10:00:00"),
    Stay(64, 4, "S", "hc", began="2024-05-05 10:00:00"),
    Stay(65, 4, "E", "EXT", began="2024-05-06 10:00:00"),
    Stay(70, 6, began="2024-06-01 10:00:00", visit="000123"),
    Stay(71, 6, began="2024-06-01 10:00:00", visit="000123", hospital="H2"),
    Stay(72, 6, began="2024-06-01 10:00:00", visit="000123", hospital=None),
    Stay(73, 6, began="2024-06-01 10:00:00", visit="123", hospital=""),
    Stay(74, 6, began="2024-06-02 10:00:00", visit="100%", unit="%"),
    Stay(75, 6, began="2024-06-02 10:00:00", visit="A_B", unit="_"),
    Stay(76, 6, began="2024-06-02 10:00:00", visit="AXB", unit="É"),
    Stay(77, 6, began="2024-06-02 10:00:00", visit="A\\B", unit="é"),
    Stay(78, 6, began="2024-06-02 10:00:00", visit="O'B", unit="'"),
    Stay(79, 6, began="2024-06-02 10:00:00", visit='"', unit=":v0"),
    Stay(80, 6, began="2024-06-02 10:00:00", visit=":v0", unit="a|b"),
    Stay(81, 6, began="2024-06-02 10:00:00", visit="A,B", unit="a,b"),
    Stay(82, 6, began="2024-06-02 10:00:00", visit="", unit=None),
    # Of a patient that was merged into another.
    Stay(90, 7, began="2024-07-01 10:00:00"),
    Stay(91, 8, began="2024-07-02 10:00:00"),
    Stay(92, 9, began="1999-12-31 23:59:59", changed="1970-01-01 00:00:00"),
    Stay(93, 9, began="9999-12-30 00:00:00", ended=NO_END),
    Stay(LARGEST_ID, 9, began="2024-07-02 10:00:00"),
    *_walked(),
)

PATIENTS = (
    Patient(1, "Martin", "Duprès", "Jean Paul", "1", "1950-02-28"),
    Patient(2, "De La Tour", "de la tour", "Marie-Ève", "2", "1950-03-01"),
    Patient(3, "Latour", "MARTIN", "Éléonore", "2", "2000-02-29"),
    Patient(4, "O'Brien", "L\u2019Hermite", "Zoe\u0308", "9", "1999-12-31"),
    Patient(5, "Le Bœuf", "Strauß", "Œdipe", "", "2000-01-01"),
    Patient(6, "100%", "A_B", "Back\\slash", None, None),
    Patient(7, "Ancien", None, "Paul", "1", "1970-01-01", 8),
    Patient(8, "Nouveau", "Ancien", "Paul", "1", "1970-01-01"),
    Patient(9, "Saint-Jean", "Ñuñez", "Łukasz", "1", "1969-12-31"),
    Patient(10, "", "", "", changed="2024-03-14 08:00:00"),
    Patient(11, None, None, None, changed="2024-03-14 08:00:00"),
    Patient(
        12,
        "Émile",
        "Smith Jones",
        "Ann",
        "2",
        "1960-06-15",
        changed="2024-03-14 08:00:00.000001",
    ),
    Patient(13, "Ping !", "M!0"),
    Patient(WALKED, "Marcheur", "Promeneur", "Pas", "1", "1980-08-08"),
    *(
        Patient(
            100 + n,
            f"Foule{n:02}",
            "Commun",
            ("Anne", "Zoé", "Éric")[n % 3],
            "12"[n % 2],
            f"19{60 + n}-0{1 + n % 9}-15",
            changed=f"2022-01-{1 + n // 2:02} 00:00:00" if n % 5 else None,
        )
        for n in range(25)
    ),
    Patient(LARGEST_ID, "X", changed="2020-01-01 00:00:00"),
)

NUMBERS = (
    Number(12, "0042", "urn:oid:1.2.3"),
    Number(12, "AbC", "urn:oid:1.2.4"),
    Number(12, "7", None),
    Number(LARGEST_ID, "abc", "urn:oid:1.2.4"),
    Number(LARGEST_ID, "0042", "urn:oid:1.2.4"),
)

HOUSES = (
    House("H1", "Hôpital de l'Île", "750000001", "2024-01-01 00:00:00"),
    House("H2", "Clinique Saint-Cœur", "750000002", "2024-01-01 00:00:00"),
    House("h2", "HOPITAL DU NORD", None),
    House("H-3.b", "100% Santé", "", "2023-01-01 00:00:00"),
    House("042", None, "0042"),
    House("42", "Clinique 42"),
    # FHIR asks for a name or a number: this one cannot be mapped.
    House("43", ""),
    *(House(f"K{n:02}", f"Maison {n:02}", f"{n:09}") for n in range(12)),
)

_TABLES = """
CREATE TABLE stays (stay_id {id} PRIMARY KEY, patient_id {id}, state {code}, kind {code},
  began {time}, ended {time}, visit {text}, hospital {text}, unit {text}, changed {time});
CREATE INDEX stays_began ON stays (began, stay_id);
CREATE TABLE patients (patient_id {id} PRIMARY KEY, used_name {text}, birth_name {text},
  given {text}, sex {code}, born {day}, replaced_by {id}, changed {time});
CREATE TABLE patient_numbers (patient_id {id}, number {text}, authority {text});
CREATE TABLE organizations (code {key} PRIMARY KEY, title {text}, finess {text},
  changed {time});
CREATE TABLE folded (patient_id {id} PRIMARY KEY, used_name {text}, birth_name {text},
  given {text})
"""
_VIEWS = """
CREATE VIEW vue_sejour AS
SELECT stay_id AS numero, visit AS venue,
       COALESCE(p.replaced_by, s.patient_id) AS dossier,
       CASE WHEN state = 'P' THEN 'PREVU' WHEN state = 'E' THEN 'PRESENT'
            WHEN state IN ('S', 'C') THEN 'SORTI' WHEN state = 'A' THEN 'ANNULE'
            WHEN state = 'X' THEN 'SUPPRIME' ELSE state END AS situation,
       kind AS nature, began AS entree, ended AS sortie, unit AS unite,
       hospital AS etablissement, s.changed AS modifie_utc
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id;
CREATE VIEW vue_patient AS
SELECT p.patient_id AS dossier,
       CASE WHEN p.replaced_by IS NULL THEN 'A' ELSE 'F' END AS etat,
       p.replaced_by AS repris_par, 'H1' AS etablissement, p.changed AS modifie_utc,
       CASE p.sex WHEN '1' THEN 'M' WHEN '2' THEN 'F' ELSE 'I' END AS sexe,
       p.born AS naissance, p.birth_name AS nom, f.birth_name AS nom_cherche,
       p.given AS prenoms, f.given AS prenoms_cherches,
       p.used_name AS usage_nom, f.used_name AS usage_nom_cherche,
       NULL AS usage_prenom, NULL AS usage_prenom_cherche
FROM patients p JOIN folded f ON f.patient_id = p.patient_id;
CREATE VIEW vue_etablissement AS
SELECT code AS numero, title AS nom, finess FROM organizations
"""
_BINARY = "VARCHAR(80) COLLATE utf8mb4_bin"
_TYPES = {
    "sqlite": ("INTEGER", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT"),
    "postgresql": ("BIGINT", "TEXT", "TEXT", "TEXT", "TIMESTAMP(6)", "DATE"),
    "mysql": ("BIGINT", _BINARY, "VARCHAR(40)", "VARCHAR(80)", "DATETIME(6)", "DATE"),
}
_KINDS = ("id", "key", "code", "text", "time", "day")
_LETTERS = str.maketrans(
    {"œ": "oe", "æ": "ae", "ß": "ss", "ł": "l", "-": " ", "'": " ", "\u2019": " "}
)


def fold(text: str | None) -> str | None:
    """Return a name as this hospital compares it: without case and accents."""
    if text is None:
        return None
    plain = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    bare = "".join(sign for sign in plain if not unicodedata.combining(sign))
    return " ".join(bare.split())


def fill(url: str) -> None:
    """Make all tables of the hospital in an empty database, and fill them."""
    is_mysql = sa.make_url(url).get_backend_name() == "mysql"
    # No TLS on the socket of the tests' own server.
    arguments = {"ssl_disabled": True} if is_mysql else {}
    engine = sa.create_engine(url, connect_args=arguments)
    dialect = engine.dialect.name
    types = dict(zip(_KINDS, _TYPES[dialect], strict=True))
    views = _VIEWS if dialect == "sqlite" else ""
    folded = [
        (row.patient_id, fold(row.used_name), fold(row.birth_name), fold(row.given))
        for row in PATIENTS
    ]
    with engine.begin() as connection:
        for statement in (_TABLES.format_map(types) + ";" + views).split(";"):
            if statement.strip():
                connection.execute(sa.text(statement))
        for table, rows in (
            ("stays", STAYS),
            ("patients", PATIENTS),
            ("patient_numbers", NUMBERS),
            ("organizations", HOUSES),
        ):
            _insert(connection, table, [_typed(row, dialect) for row in rows])
        names = ("patient_id", "used_name", "birth_name", "given")
        _insert(
            connection, "folded", [dict(zip(names, row, strict=True)) for row in folded]
        )
    engine.dispose()


def _insert(
    connection: sa.Connection, table: str, rows: list[dict[str, object]]
) -> None:
    places = ", ".join(f":{column}" for column in rows[0])
    columns = ", ".join(rows[0])
    connection.execute(
        sa.text(f"INSERT INTO {table} ({columns}) VALUES ({places})"), rows
    )


def _typed(row: Stay | Patient | Number | House, dialect: str) -> dict[str, object]:
    """Return the values of a row as the columns hold them."""
    values: dict[str, object] = dict(row._asdict())
    if dialect == "sqlite":
        return values
    for column in ("began", "ended", "changed"):
        if column in values:
            text = values[column]
            values[column] = datetime.fromisoformat(str(text)) if text else None
    if born := values.get("born"):
        values["born"] = date.fromisoformat(str(born))
    return values
