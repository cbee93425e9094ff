"""Rows that the samples happen not to have and that an installation may well have."""

ODD = """
-- What no screen would leave: no state, a state of somebody's own, no day and no number.
INSERT INTO gnuhealth_inpatient_registration (id, patient, state, admission_type,
  hospitalization_date, discharge_date) VALUES
  (9001, 2, NULL, 'routine', '2026-01-01 10:00:00', '2026-01-02 10:00:00'),
  (9002, 2, 'archived', 'routine', '2026-01-01 10:00:00', '2026-01-02 10:00:00');
INSERT INTO gnuhealth_appointment (id, patient, state) VALUES (9001, 2, 'confirmed');

-- A stay that did not come about, and the visits that it should have held.
INSERT INTO gnuhealth_inpatient_registration (id, patient, state, admission_type,
  hospitalization_date, discharge_date)
  VALUES (9003, 7, 'cancelled', 'routine', '2026-01-01 10:00:00', '2026-01-02 10:00:00');
-- The number of an appointment is not unique.
INSERT INTO gnuhealth_appointment (id, name, patient, state, appointment_date,
  inpatient_registration_code)
  VALUES (9003, 'APP 2026/3', 7, 'confirmed', '2026-01-01 09:00:00', 9003);
INSERT INTO gnuhealth_patient_evaluation (id, patient, state, discharge_reason,
  evaluation_start, inpatient_registration_code)
  VALUES (9003, 7, 'signed', 'home', '2026-01-01 10:00:00', 9003);

-- One visit in all three tables.
INSERT INTO gnuhealth_inpatient_registration (id, name, patient, state, admission_type,
  hospitalization_date, discharge_date) VALUES
  (9004, 'INPAC1000', 7, 'hospitalized', 'urgent', '2026-01-01 10:00:00', '2026-01-02 10:00:00');
INSERT INTO gnuhealth_appointment (id, name, patient, state, appointment_date,
  inpatient_registration_code) VALUES
  (9004, 'APP 2026/1', 7, 'done', '2026-01-01 09:00:00', NULL),
  (9005, 'APP 2026/2', 7, 'confirmed', '2026-01-01 09:00:00', 9004);
INSERT INTO gnuhealth_patient_evaluation (id, patient, state, discharge_reason,
  evaluation_start, appointment, inpatient_registration_code)
  VALUES (9004, 7, 'done', 'home', '2026-01-01 10:00:00', 9004, 9004);

-- Two evaluations of one appointment, the second not over and with an end all the same.
INSERT INTO gnuhealth_appointment (id, patient, state, appointment_date)
  VALUES (9006, 7, 'done', '2026-01-03 09:00:00');
INSERT INTO gnuhealth_patient_evaluation (id, patient, state, discharge_reason,
  evaluation_start, evaluation_endtime, appointment) VALUES
  (9006, 7, 'signed', 'home', '2026-01-03 09:00:00', '2026-01-03 09:20:00', 9006),
  (9007, 7, 'in_progress', 'home', '2026-01-03 09:30:00', '2026-01-03 10:00:00', 9006);

-- People: NULL beside '', a merged one, two languages, an address of two lines.
UPDATE party_party SET lastname = NULL WHERE id = 14;
UPDATE gnuhealth_person_name SET family = NULL WHERE party = 14;
UPDATE gnuhealth_person_name SET given = '' WHERE party = 12 AND use = 'official';
UPDATE party_party SET replaced_by = (SELECT party FROM gnuhealth_patient WHERE id = 2)
  WHERE id = (SELECT party FROM gnuhealth_patient WHERE id = 5);
UPDATE party_party SET replaced_by = (SELECT party FROM gnuhealth_patient WHERE id = 5)
  WHERE id = (SELECT party FROM gnuhealth_patient WHERE id = 9);
INSERT INTO party_party_lang (id, party, lang) SELECT 9001, 12, MIN(id) FROM ir_lang;
UPDATE gnuhealth_du SET address_street = 'rue des Lilas
bâtiment B' WHERE id = 1;
INSERT INTO gnuhealth_person_alternative_identification (id, party, alternative_id_type, code)
  VALUES (9001, 12, 'medical_record', 'IPP-9001'), (9002, 12, 'other', 'ANY-9002');
"""
