CREATE TABLE units (unit_id INTEGER PRIMARY KEY, code TEXT, label TEXT);
CREATE TABLE patients (
  patient_no INTEGER PRIMARY KEY, last_name TEXT, first_names TEXT, sex TEXT, born TEXT);
CREATE TABLE stays (
  stay_id INTEGER PRIMARY KEY, visit_no TEXT, patient_no INTEGER, state TEXT, kind TEXT,
  admitted TEXT, discharged TEXT, unit_id INTEGER, changed_utc TEXT);

INSERT INTO units VALUES (1, '0123', 'Emergency'), (2, '2410', 'Cardiology');
INSERT INTO patients VALUES
  (42, 'Lefèvre', 'Zoé Marie', 'F', '1980-05-17'),
  (43, 'Okafor', 'Daniel', 'M', '1951-11-02'),
  (44, 'Ní Bhriain', 'Orla', NULL, NULL);
INSERT INTO stays VALUES
  (1001, '000123456', 42, 'D', 'IN', '2024-03-30 08:15:00', '2024-03-31 17:00:00', 2, '2024-03-31 15:02:03'),
  (1002, '000123457', 42, 'A', 'ER', '2025-05-31 22:40:00', '9999-12-31 00:00:00', 1, '2025-05-31 20:41:10'),
  (1003, '000123458', 43, 'B', 'OP', '2025-07-01 09:00:00', NULL, NULL, '2025-05-20 07:30:00'),
  (1004, '000123459', 43, 'C', 'IN', '2025-06-02 10:00:00', NULL, 2, '2025-05-28 12:00:00'),
  (1005, '000123460', 44, 'T', 'XX', '2025-04-10 23:30:00', '2025-04-11 06:00:00', 1, '2025-04-11 04:05:00');
