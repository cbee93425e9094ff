"""Five invented hospital systems, in SQL that SQLite, PostgreSQL and MariaDB have.

A French one that is well kept, an English one with keys declared and visits in two
tables, and an old one with names of eight letters and dates as text. No key of the old
one is declared. A clinic whose codes and names stand in tables of their own, and one that knows
neither keys nor states. Nobody in them is real.
"""

from collections.abc import Iterator

FRENCH = """
CREATE TABLE uf (id_uf INTEGER PRIMARY KEY, code_uf VARCHAR(4), libelle VARCHAR(60));
CREATE TABLE etablissement (id_etab INTEGER PRIMARY KEY, nom VARCHAR(60), finess_et VARCHAR(9));
CREATE TABLE patient (
  id_patient INTEGER PRIMARY KEY, ipp VARCHAR(12) UNIQUE, nom_naissance VARCHAR(60),
  nom_usage VARCHAR(60), prenom VARCHAR(60), sexe CHAR(1), date_naissance DATE,
  lieu_naissance VARCHAR(60), date_deces DATE, adresse VARCHAR(80), code_postal VARCHAR(10),
  ville VARCHAR(40), telephone VARCHAR(20),
  ins VARCHAR(15), statut_ins VARCHAR(4),
  medecin_traitant VARCHAR(60), date_maj DATETIME_ NULL);
CREATE TABLE sejour (
  id_sejour INTEGER PRIMARY KEY, nda VARCHAR(12), id_patient INTEGER NOT NULL,
  id_etab INTEGER, id_uf INTEGER, statut VARCHAR(10), type_venue VARCHAR(4),
  date_entree DATETIME_ NULL, date_sortie DATETIME_ NULL, date_entree_prevue DATETIME_ NULL,
  annule CHAR(1), motif_entree VARCHAR(200), medecin_responsable VARCHAR(60),
  date_maj DATETIME_ NULL,
  FOREIGN KEY (id_patient) REFERENCES patient (id_patient),
  FOREIGN KEY (id_uf) REFERENCES uf (id_uf),
  FOREIGN KEY (id_etab) REFERENCES etablissement (id_etab));
CREATE TABLE mouvement (
  id_mouvement INTEGER PRIMARY KEY, id_sejour INTEGER NOT NULL, id_uf INTEGER,
  date_debut DATETIME_ NULL, date_fin DATETIME_ NULL,
  FOREIGN KEY (id_sejour) REFERENCES sejour (id_sejour));
INSERT INTO uf VALUES (1, '0123', 'Cardiologie'), (2, '0200', 'Urgences');
INSERT INTO etablissement VALUES (1, 'CH de Montval', '999999901');
INSERT INTO patient VALUES
  (1, '0000000042', 'MARTIN', 'DUPONT', 'Anne', 'F', '1957-12-24', 'Lyon', NULL,
   '3 rue du Puits', '69001', 'Lyon', '0400000000',
   '257129999999901', 'VALI', 'Dr NO', '2024-03-30 08:15:00'),
  (2, '0000000043', 'PETIT', NULL, 'Jean', 'M', '1900-01-01', NULL, '2024-01-02',
   NULL, NULL, NULL, NULL, '160029999999902', 'PROV', NULL, NULL);
INSERT INTO sejour VALUES
  (1, '240000001', 1, 1, 1, 'SORTI', 'HC', '2024-03-30 08:15:00', '2024-03-31 17:00:00', NULL,
   'N', 'chute', 'Dr NO', '2024-04-01 01:02:03'),
  (2, '240000002', 1, 1, 2, 'PRESENT', 'URG', '2024-06-01 10:00:00', NULL, NULL,
   'N', NULL, NULL, '2024-06-01 10:00:00'),
  (3, '240000003', 2, 1, NULL, 'PREVU', 'EXT', NULL, NULL, '2024-09-01 08:00:00',
   'N', NULL, NULL, '2024-06-02 10:00:00'),
  (4, '240000004', 2, 1, 1, 'SORTI', 'HC', '2024-02-01 08:00:00', '2024-02-02 08:00:00', NULL,
   'O', NULL, NULL, '2024-02-02 10:00:00'),
  (5, '240000005', 2, 1, 1, 'Z9', 'QQ', '2024-02-01 09:00:00', '2024-02-02 09:00:00', NULL,
   'N', NULL, NULL, '2024-02-02 10:00:00');
INSERT INTO mouvement VALUES (1, 1, 1, '2024-03-30 08:15:00', '2024-03-31 17:00:00');
"""

ENGLISH = """
CREATE TABLE facilities (
  facility_id INTEGER PRIMARY KEY, facility_name VARCHAR(60), phone VARCHAR(20));
CREATE TABLE wards (
  ward_id INTEGER PRIMARY KEY, facility_id INTEGER, ward_code VARCHAR(8), ward_name VARCHAR(60),
  FOREIGN KEY (facility_id) REFERENCES facilities (facility_id));
CREATE TABLE persons (
  person_id INTEGER PRIMARY KEY, mrn VARCHAR(12), last_name VARCHAR(60), first_name VARCHAR(60),
  maiden_name VARCHAR(60), sex INTEGER, dob DATE, date_of_death DATETIME_ NULL,
  home_phone VARCHAR(20), email VARCHAR(80), street VARCHAR(80), city VARCHAR(40), zip VARCHAR(10),
  merged_into INTEGER, is_active INTEGER, updated_at DATETIME_ NULL);
CREATE TABLE admissions (
  admission_id INTEGER PRIMARY KEY, encounter_number VARCHAR(12), person_id INTEGER NOT NULL,
  ward_id INTEGER, facility_id INTEGER, patient_class CHAR(1), status VARCHAR(12),
  admit_dt DATETIME_ NULL, discharge_dt DATETIME_ NULL, attending_doctor_id INTEGER,
  deleted_at DATETIME_ NULL, created_at DATETIME_ NULL, updated_at DATETIME_ NULL,
  FOREIGN KEY (person_id) REFERENCES persons (person_id),
  FOREIGN KEY (ward_id) REFERENCES wards (ward_id),
  FOREIGN KEY (facility_id) REFERENCES facilities (facility_id));
CREATE TABLE clinic_appointments (
  appointment_id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL, appointment_date DATE,
  appointment_time TIME, status VARCHAR(12), clinician_name VARCHAR(60), facility_id INTEGER,
  FOREIGN KEY (person_id) REFERENCES persons (person_id),
  FOREIGN KEY (facility_id) REFERENCES facilities (facility_id));
CREATE TABLE prescriptions (
  prescription_id INTEGER PRIMARY KEY, person_id INTEGER, status VARCHAR(10),
  start_date DATE, end_date DATE, FOREIGN KEY (person_id) REFERENCES persons (person_id));
INSERT INTO facilities VALUES (1, 'Saint Bride', '555-0100');
INSERT INTO wards VALUES (1, 1, 'CARD', 'Cardiology');
INSERT INTO persons VALUES
  (1, 'M0042', 'Miller', 'Ann', 'Smith', 2, '1957-12-24', NULL, '555-0101', 'ann@example.org',
   '3 Well Lane', 'York', 'YO1', NULL, 1, '2024-03-30 08:15:00'),
  (2, 'M0043', 'Miller', 'Ann', NULL, 2, '1957-12-24', NULL, NULL, NULL, NULL, NULL, NULL, 1, 0,
   '2024-03-30 08:15:00');
INSERT INTO admissions VALUES
  (1, 'E1', 1, 1, 1, 'I', 'DISCHARGED', '2024-03-30 08:15:00', '2024-03-31 17:00:00', 7, NULL,
   '2024-03-30 08:15:00', '2024-04-01 01:02:03'),
  (2, 'E2', 1, NULL, 1, 'E', 'ADMITTED', '2024-06-01 10:00:00', NULL, 7, NULL,
   '2024-06-01 10:00:00', NULL),
  (3, 'E3', 2, 1, 1, 'I', 'CANCELLED', '2024-06-02 10:00:00', NULL, 7, '2024-06-03 10:00:00',
   '2024-06-02 10:00:00', NULL);
INSERT INTO clinic_appointments VALUES
  (1, 1, '2024-05-02', '09:30:00', 'completed', 'Dr No', 1),
  (2, 1, '2034-05-02', '10:30:00', 'booked', 'Dr No', 1);
INSERT INTO prescriptions VALUES (1, 1, 'active', '2024-05-02', NULL);
"""

LEGACY = """
CREATE TABLE FPATIEN (
  PATIPP CHAR(10) PRIMARY KEY, PATNOMNA CHAR(30), PATNOMUS CHAR(30), PATPRENO CHAR(30),
  PATCDSEX CHAR(1), PATDTNAI CHAR(8), PATLIEUN CHAR(30));
CREATE TABLE FSEJOUR (
  SEJNUMER CHAR(9) PRIMARY KEY, SEJIPP CHAR(10), SEJCDETA CHAR(1), SEJCDTYP CHAR(2),
  SEJDTENT CHAR(8), SEJHRENT CHAR(4), SEJDTSOR CHAR(8), SEJHRSOR CHAR(4), SEJCDUF CHAR(4),
  SEJDTMAJ CHAR(14));
CREATE TABLE FUNITFO (UFCODE CHAR(4) PRIMARY KEY, UFLIBELL CHAR(40));
CREATE TABLE FTRACE (TRANUMER INTEGER PRIMARY KEY, TRATEXTE CHAR(200));
INSERT INTO FPATIEN VALUES
  ('0000000042', 'MARTIN', 'DUPONT', 'ANNE', '2', '19571224', 'LYON'),
  ('0000000043', 'PETIT', ' ', 'JEAN', '1', '19600229', 'PARIS');
INSERT INTO FUNITFO VALUES ('0123', 'CARDIOLOGIE');
INSERT INTO FSEJOUR VALUES
  ('240000001', '0000000042', 'S', 'HC', '20240330', '0815', '20240331', '1700', '0123',
   '20240401010203'),
  ('240000002', '0000000042', 'E', 'UR', '20240601', '1000', '99991231', '0000', '0123',
   '20240601100000'),
  ('240000003', '0000000043', 'P', 'EX', '20340901', '0800', '99991231', '0000', ' ',
   '20240602100000');
"""

CLINIC = """
CREATE TABLE person (
  person_id INTEGER PRIMARY KEY, gender VARCHAR(50), birthdate DATE, dead INTEGER,
  death_date DATETIME_ NULL, cause_of_death INTEGER, creator INTEGER, date_changed DATETIME_ NULL);
CREATE TABLE patient (
  patient_id INTEGER PRIMARY KEY, creator INTEGER, date_changed DATETIME_ NULL, voided INTEGER,
  FOREIGN KEY (patient_id) REFERENCES person (person_id));
CREATE TABLE person_name (
  person_name_id INTEGER PRIMARY KEY, preferred INTEGER, person_id INTEGER,
  given_name VARCHAR(50), family_name VARCHAR(50),
  FOREIGN KEY (person_id) REFERENCES person (person_id));
CREATE TABLE patient_identifier (
  patient_identifier_id INTEGER PRIMARY KEY, patient_id INTEGER, identifier VARCHAR(50),
  identifier_type VARCHAR(20), FOREIGN KEY (patient_id) REFERENCES patient (patient_id));
CREATE TABLE visit_type (visit_type_id INTEGER PRIMARY KEY, name VARCHAR(40));
CREATE TABLE visit (
  visit_id INTEGER PRIMARY KEY, patient_id INTEGER, visit_type_id INTEGER,
  date_started DATETIME_ NULL, date_stopped DATETIME_ NULL, voided INTEGER,
  FOREIGN KEY (patient_id) REFERENCES patient (patient_id),
  FOREIGN KEY (visit_type_id) REFERENCES visit_type (visit_type_id));
CREATE TABLE encounter (
  encounter_id INTEGER PRIMARY KEY, patient_id INTEGER, visit_id INTEGER,
  encounter_datetime DATETIME_ NULL,
  FOREIGN KEY (patient_id) REFERENCES patient (patient_id),
  FOREIGN KEY (visit_id) REFERENCES visit (visit_id));
INSERT INTO person VALUES (1, 'F', '1980-01-02', 0, NULL, NULL, 1, NULL);
INSERT INTO patient VALUES (1, 1, '2024-01-01 00:00:00', 0);
INSERT INTO person_name VALUES (1, 1, 1, 'Ada', 'Moss');
INSERT INTO patient_identifier VALUES (1, 1, 'M0042', 'Green card');
INSERT INTO visit_type VALUES (1, 'Outpatient'), (2, 'Inpatient');
INSERT INTO visit VALUES
  (1, 1, 1, '2024-01-01 10:00:00', '2024-01-01 12:00:00', 0),
  (2, 1, 2, '2024-02-01 10:00:00', NULL, 1);
INSERT INTO encounter VALUES (1, 1, 1, '2024-01-01 10:10:00');
"""

OLDEST = """
CREATE TABLE MALADE (
  NO_MALADE INTEGER, NOM CHAR(30), NOM_JF CHAR(30), PRENOM CHAR(20), NE_LE CHAR(10),
  SEXE CHAR(1), NIR CHAR(15), VILLE CHAR(30), CP CHAR(5));
CREATE TABLE HOSPIT (
  NO_HOSPIT INTEGER, NO_MALADE INTEGER, DAT_ENT CHAR(16), DAT_SOR CHAR(16),
  MODE_ENT CHAR(1), SERVICE CHAR(4), MED_RESP CHAR(20));
CREATE TABLE URGENCE (
  NO_URG INTEGER, NO_MALADE INTEGER, DAT_ARR CHAR(16), DAT_DEP CHAR(16), ORIENT CHAR(2));
INSERT INTO MALADE VALUES
  (1, 'DURAND', 'MARTIN', 'ZOE', '22/01/1980', 'F', '280019999999999', 'METZ', '57000');
INSERT INTO HOSPIT VALUES
  (1, 1, '23/02/2021 10:00', '25/02/2021 12:00', '8', '0123', 'Dr NO'),
  (2, 1, '13/03/2021 10:00', ' ', '8', '0123', 'Dr NO');
INSERT INTO URGENCE VALUES (1, 1, '23/02/2021 08:00', '23/02/2021 10:00', 'HO');
"""

SYSTEMS = {
    "french": FRENCH,
    "english": ENGLISH,
    "legacy": LEGACY,
    "clinic": CLINIC,
    "oldest": OLDEST,
}


def statements(system: str, dialect: str) -> Iterator[str]:
    """Yield the statements that make one of the systems in a kind of database."""
    time = "TIMESTAMP" if dialect == "postgresql" else "DATETIME"
    for statement in SYSTEMS[system].replace("DATETIME_", time).split(";\n"):
        if statement.strip():
            yield statement
