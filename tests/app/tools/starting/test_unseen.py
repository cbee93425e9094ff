"""`encounters mapping new` asks a database for no value that identifies a person.

A real database is watched from inside: which columns each statement reads, and all values
that it hands over. The statement that reads a personal column may count or describe.
"""

import lzma
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adapters.sql.dialects import sqlite
from app.cli import main
from demo import hospital
from tests.app.tools.starting.invented import statements

SAMPLE = Path(__file__).parents[3] / "gnuhealth" / "sample.sqlite.xz"

DEMO = """
etablissement.raison_sociale etablissement.nom_recherche etablissement.telephone
etablissement.courriel etablissement.ligne1 etablissement.code_postal etablissement.commune
patient.date_deces patient.heure_deces identite.civilite identite.nom_naissance
identite.nom_naissance_recherche identite.prenoms identite.prenoms_recherche
identite.nom_utilise identite.nom_utilise_recherche identite.prenom_utilise
identite.prenom_utilise_recherche identite.date_naissance identifiant_patient.valeur
moyen_contact.valeur adresse.ligne1 adresse.ligne2 adresse.code_postal adresse.commune
adresse.pays sejour.num_venue
"""
GNUHEALTH = """
party_party.name party_party.lastname party_party.dob party_party.ref party_party.code
party_party.federation_account gnuhealth_person_name.family gnuhealth_person_name.given
gnuhealth_person_name.prefix gnuhealth_person_name.suffix
gnuhealth_person_alternative_identification.code party_address.name party_address.party_name
gnuhealth_person_alternative_identification.comments party_address.city
party_address.postal_code party_address.street party_contact_mechanism.value
party_contact_mechanism.value_compact party_contact_mechanism.name
party_contact_mechanism.comment party_contact_mechanism.remarks
gnuhealth_death_certificate.dod gnuhealth_death_certificate.observations
gnuhealth_appointment.name gnuhealth_appointment.comments gnuhealth_inpatient_registration.info
gnuhealth_inpatient_registration.name gnuhealth_inpatient_registration.nursing_plan
gnuhealth_inpatient_registration.discharge_plan gnuhealth_patient_evaluation.code
gnuhealth_patient_evaluation.chief_complaint
"""
FRENCH = """
patient.ipp patient.nom_naissance patient.nom_usage patient.prenom patient.date_naissance
patient.lieu_naissance patient.date_deces patient.adresse patient.code_postal patient.ville
patient.telephone patient.ins patient.medecin_traitant sejour.nda sejour.motif_entree
sejour.medecin_responsable etablissement.nom
"""
LEGACY = """
FPATIEN.PATNOMNA FPATIEN.PATNOMUS FPATIEN.PATPRENO FPATIEN.PATDTNAI FPATIEN.PATLIEUN
FTRACE.TRATEXTE
"""
ENGLISH = """
persons.mrn persons.last_name persons.first_name persons.maiden_name persons.dob
persons.date_of_death persons.home_phone persons.email persons.street persons.city persons.zip
clinic_appointments.clinician_name admissions.encounter_number facilities.facility_name
"""
OLDEST = """
MALADE.NOM MALADE.NOM_JF MALADE.PRENOM MALADE.NE_LE MALADE.NIR MALADE.VILLE MALADE.CP
HOSPIT.MED_RESP
"""
CLINIC = """
person.birthdate person.death_date person_name.given_name person_name.family_name
patient_identifier.identifier
"""

# A small hospital, whose few names and numbers look like codes by how often they occur,
# in columns and lists whose names are near those of states, kinds and marks.
ODD = """
CREATE TABLE employe (id INTEGER PRIMARY KEY, libelle VARCHAR(20));
CREATE TABLE classe (id INTEGER PRIMARY KEY, libelle VARCHAR(20), nom VARCHAR(20));
CREATE TABLE patient (
  id INTEGER PRIMARY KEY, code_ipp VARCHAR(8), nom VARCHAR(20), prenom VARCHAR(20),
  naissance CHAR(10), sexe CHAR(1), statut_nom VARCHAR(20), deces_commentaire VARCHAR(20),
  nom_actif VARCHAR(20));
CREATE TABLE identite_nom (
  id INTEGER PRIMARY KEY, patient_id INTEGER, nom VARCHAR(20), prenom VARCHAR(20),
  nom_usage VARCHAR(20));
CREATE TABLE adresse (
  id INTEGER PRIMARY KEY, patient_id INTEGER, adresse_usuelle VARCHAR(20), ville VARCHAR(20));
CREATE TABLE sejour (
  id INTEGER PRIMARY KEY, patient_id INTEGER, etat_par INTEGER, classe_id INTEGER,
  type_sejour VARCHAR(20), annulation_commentaire VARCHAR(20), statut VARCHAR(8),
  date_entree DATETIME, date_sortie DATETIME);
INSERT INTO employe VALUES (1, 'Infirmier LEROY');
INSERT INTO classe VALUES (1, 'Salle de Mme ROUX', 'ROUX');
INSERT INTO patient VALUES
  (1, 'P0001', 'DUBOIS', 'Lea', '12/01/1980', 'F', 'A', 'annonce a Paul', 'DUBOIS'),
  (2, 'P0002', 'DUBOIS', 'Max', '31/12/1981', 'M', 'A', 'annonce a Paul', 'DUBOIS');
INSERT INTO identite_nom VALUES (1, 1, 'DUBOIS', 'Lea', 'NOIRET'),
  (2, 2, 'DUBOIS', 'Max', 'NOIRET');
INSERT INTO adresse VALUES (1, 1, '3 rue Blanche', 'Vichy'), (2, 2, '3 rue Blanche', 'Vichy');
INSERT INTO sejour VALUES
  (1, 1, 1, 1, 'voir Mme BLANC', 'dit par son fils', 'SORTI',
   '2024-01-02 10:00:00', '2024-01-03 10:00:00'),
  (2, 2, 1, 1, 'voir M. BRUN', 'dit par son fils', 'SORTI',
   '2024-01-02 11:00:00', '2024-01-03 10:00:00'),
  (3, 2, 1, 1, 'voir M. GRIS', NULL, 'SORTI',
   '2024-01-02 11:00:00', '2024-01-03 10:00:00'),
  (4, 2, 1, 1, 'voir M. VERT', NULL, 'SORTI',
   '2024-01-02 11:00:00', '2024-01-03 10:00:00'),
  (5, 2, 1, 1, 'voir M. BLEU', NULL, 'SORTI',
   '2024-01-02 11:00:00', '2024-01-03 10:00:00'),
  (6, 2, 1, 1, 'voir M. ROSE', NULL, 'SORTI',
   '2024-01-02 11:00:00', '2024-01-03 10:00:00')
"""
ODD_PERSONAL = """
employe.libelle classe.libelle classe.nom patient.code_ipp patient.nom patient.prenom
patient.naissance patient.deces_commentaire patient.nom_actif identite_nom.nom
identite_nom.prenom identite_nom.nom_usage adresse.adresse_usuelle adresse.ville
sejour.annulation_commentaire sejour.type_sejour
"""


class Watch:
    """What a database was asked for; what it may not read is refused, and remembered."""

    def __init__(self, personal: set[str]) -> None:
        self._personal = {name.lower() for name in personal}
        self.statement = ""
        self.values: set[str] = set()
        self.refused: set[str] = set()

    def allow(self, action: int, table: Any, column: Any, *_: Any) -> int:
        if action != sqlite3.SQLITE_READ:
            return sqlite3.SQLITE_OK
        name = f"{table}.{column}".lower()
        if name not in self._personal or self.is_empty() or self.counts():
            return sqlite3.SQLITE_OK
        self.refused.add(name)
        return sqlite3.SQLITE_DENY

    def describes(self) -> bool:
        """Tell whether it makes or looks at a view: no row of it is read."""
        return self.statement.startswith(("CREATE TEMP VIEW", "PRAGMA", "DROP VIEW"))

    def is_empty(self) -> bool:
        """Tell whether it reads no row, what is returned being looked at all the same."""
        none = (
            self.statement.startswith("WITH told") and "\n) LIMIT 0)" in self.statement
        )
        return none or self.describes()

    def counts(self) -> bool:
        """Tell whether all that the statement returns are counts and lengths."""
        returned = self.statement.partition("\nFROM")[0].removeprefix("SELECT ")
        returned = returned.replace("max(length(", "count((")
        before = ""
        while returned != before:
            before, returned = returned, re.sub(r"\([^()]*\)", "", returned)
        names = [re.sub(r" AS \w+", "", part).strip() for part in returned.split(",")]
        return {name.lower() for name in names} <= {"count"}


class Connection(sqlite3.Connection):
    """A connection that tells a watch what it is asked for."""

    watch: Watch

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or Cursor)


class Cursor(sqlite3.Cursor):
    @property
    def watch(self) -> Watch:
        assert isinstance(self.connection, Connection)
        return self.connection.watch

    def execute(self, statement: str, *values: Any) -> "Cursor":
        self.watch.statement = statement
        super().execute(statement, *values)
        return self

    def fetchall(self) -> list[Any]:
        return [self._seen(row) for row in super().fetchall()]

    def fetchone(self) -> Any:
        return self._seen(super().fetchone())

    def fetchmany(self, *size: Any) -> list[Any]:
        return [self._seen(row) for row in super().fetchmany(*size)]

    def __next__(self) -> Any:
        return self._seen(super().__next__())

    def _seen(self, row: Any) -> Any:
        if not self.watch.describes():
            self.watch.values.update(str(cell).strip() for cell in row or ())
        return row


def watched(monkeypatch: pytest.MonkeyPatch, watch: Watch) -> None:
    """Have each connection to a SQLite file tell what it is asked for."""
    connect = sqlite3.connect

    def made(*options: Any, **more: Any) -> sqlite3.Connection:
        connection = connect(*options, **more, factory=Connection)
        connection.watch = watch
        connection.set_authorizer(watch.allow)
        return connection

    monkeypatch.setattr(sqlite.sqlite3, "connect", made)


def held(file: Path, personal: set[str]) -> set[str]:
    """Return all values of the personal columns of a database."""
    found: set[str] = set()
    with closing(sqlite3.connect(file)) as connection:
        for name in personal:
            table, _, column = name.partition(".")
            rows = connection.execute(f'SELECT DISTINCT "{column}" FROM "{table}"')
            found |= {str(value).strip() for (value,) in rows if value is not None}
    # A day that stands for none is nobody's, and a letter or two are found anywhere.
    return {value for value in found if len(value) > 2} - {"1900-01-01"}


def demo(file: Path) -> None:
    hospital.fill(f"sqlite:///{file}", 1000)


def gnuhealth(file: Path) -> None:
    file.write_bytes(lzma.decompress(SAMPLE.read_bytes()))


def invented(*sql: str) -> Callable[[Path], None]:
    def make(file: Path) -> None:
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(";".join(sql))

    return make


@pytest.mark.parametrize(
    ("make", "personal"),
    [
        (demo, DEMO),
        (gnuhealth, GNUHEALTH),
        (invented(*statements("french", "sqlite")), FRENCH),
        (invented(*statements("english", "sqlite")), ENGLISH),
        (invented(*statements("legacy", "sqlite")), LEGACY),
        (invented(*statements("clinic", "sqlite")), CLINIC),
        (invented(*statements("oldest", "sqlite")), OLDEST),
        (invented(ODD), ODD_PERSONAL),
    ],
    ids=["demo", "gnuhealth", "french", "english", "legacy", "clinic", "oldest", "odd"],
)
def test_no_value_of_a_person_is_asked_for(
    make: Callable[[Path], None],
    personal: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "pas.sqlite"
    make(file)
    names = set(personal.split())
    values = held(file, names)
    watch = Watch(names)
    watched(monkeypatch, watch)
    assert main(["mapping", "new", "--from", f"sqlite:///{file}"]) == 0
    told = capsys.readouterr()
    assert not watch.refused
    # It was tried: rows were read.
    assert "warning" not in told.err
    assert re.search(r"Encounter: [1-9]\d* of the first", told.err)
    assert watch.values
    assert not values & watch.values
    assert not [value for value in values if value in told.out + told.err]
