-- numbers: first page
SELECT TOP (?) pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE ((pas.state COLLATE Latin1_General_100_BIN2) NOT IN (?, ?) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND pas.began NOT IN (CAST(? AS DATETIME))
ORDER BY pas.began DESC, pas.stay_id DESC

-- numbers: first page
SELECT TOP (?) pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE ((pas.state COLLATE Latin1_General_100_BIN2) NOT IN (?, ?) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND (pas.began IS NULL OR pas.began IN (CAST(? AS DATETIME)))
ORDER BY pas.stay_id DESC

-- numbers: next page
SELECT TOP (?) pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.state IN (?, ?) AND (pas.state COLLATE Latin1_General_100_BIN2) IN (?, ?) AND pas.stay_id IS NOT NULL AND pas.began NOT IN (CAST(? AS DATETIME)) AND pas.began <= CAST(? AS DATETIME) AND (pas.began < CAST(? AS DATETIME) OR pas.stay_id < ?)
ORDER BY pas.began DESC, pas.stay_id DESC

-- numbers: next page
SELECT TOP (?) pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.state IN (?, ?) AND (pas.state COLLATE Latin1_General_100_BIN2) IN (?, ?) AND pas.stay_id IS NOT NULL AND (pas.began IS NULL OR pas.began IN (CAST(? AS DATETIME)))
ORDER BY pas.stay_id DESC

-- numbers: few rows
SELECT patients.patient_id, patients.replaced_by
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) patients
WHERE patients.patient_id IN (?, ?) AND patients.replaced_by IS NOT NULL
UNION ALL SELECT patients.patient_id, patients.replaced_by
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) patients
WHERE patients.replaced_by IN (?, ?) AND patients.replaced_by IS NOT NULL

-- numbers: few rows
SELECT TOP (?) pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.patient_id IN (?, ?) AND ((pas.state COLLATE Latin1_General_100_BIN2) NOT IN (?, ?) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL
ORDER BY CASE WHEN pas.changed IS NULL THEN 1 ELSE 0 END, pas.changed DESC, pas.stay_id DESC

-- numbers: number
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE ((pas.patient_id IN (?) OR pas.patient_id IN (?)) OR CAST(pas.patient_id AS VARCHAR(64)) IN (SELECT (items.patient_id COLLATE Latin1_General_100_BIN2)
FROM (SELECT patient_id, number, authority FROM patient_numbers
) items
WHERE (items.number IN (?) AND (items.number COLLATE Latin1_General_100_BIN2) IN (?) AND items.authority IN (?) AND (items.authority COLLATE Latin1_General_100_BIN2) IN (?) OR items.number IN (?) AND (items.number COLLATE Latin1_General_100_BIN2) IN (?)))) AND pas.patient_id IS NOT NULL

-- numbers: name starts
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE ((' ' + (trim(replace(replace(replace(replace(translate(replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace((lower(pas.used_name) COLLATE Latin1_General_100_BIN2), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?)) COLLATE Latin1_General_100_CI_AI)) LIKE ? ESCAPE '!' OR (' ' + (trim(replace(replace(replace(replace(translate(replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace((lower(pas.birth_name) COLLATE Latin1_General_100_BIN2), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?)) COLLATE Latin1_General_100_CI_AI)) LIKE ? ESCAPE '!' OR (' ' + (trim(replace(replace(replace(replace(translate(replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace((lower(pas.given) COLLATE Latin1_General_100_BIN2), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?)) COLLATE Latin1_General_100_CI_AI)) LIKE ? ESCAPE '!') AND pas.patient_id IS NOT NULL

-- numbers: born on a day
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE pas.born >= CAST(? AS DATETIME) AND pas.born < CAST(? AS DATETIME) AND pas.patient_id IS NOT NULL

-- texts: dates
SELECT TOP (?) pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE (pas.began COLLATE Latin1_General_100_BIN2) >= ? AND (pas.began COLLATE Latin1_General_100_BIN2) NOT IN (?, ?, ?) AND (pas.began COLLATE Latin1_General_100_BIN2) < ? AND (pas.began COLLATE Latin1_General_100_BIN2) NOT IN (?, ?, ?) AND ((pas.state COLLATE Latin1_General_100_BIN2) NOT IN (?, ?) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND (pas.began COLLATE Latin1_General_100_BIN2) NOT IN (?, ?, ?)
ORDER BY (pas.began COLLATE Latin1_General_100_BIN2) DESC, (pas.stay_id COLLATE Latin1_General_100_BIN2) DESC

-- texts: next page
SELECT TOP (?) pas.stay_id, pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, pas.began, pas.ended, pas.unit, pas.changed
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.kind IN (?, ?) AND (pas.kind COLLATE Latin1_General_100_BIN2) IN (?, ?) AND ((pas.state COLLATE Latin1_General_100_BIN2) NOT IN (?, ?) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND (pas.stay_id COLLATE Latin1_General_100_BIN2) > ?
ORDER BY (pas.stay_id COLLATE Latin1_General_100_BIN2) ASC

-- texts: number
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE (pas.patient_id IN (?) AND (pas.patient_id COLLATE Latin1_General_100_BIN2) IN (?) OR pas.patient_id IN (SELECT LOWER(CONVERT(VARCHAR(8000), items.patient_id, 2))
FROM (SELECT patient_id, number, authority FROM patient_numbers
) items
WHERE items.number IN (?) AND (items.number COLLATE Latin1_General_100_BIN2) IN (?)) AND (pas.patient_id COLLATE Latin1_General_100_BIN2) IN (SELECT LOWER(CONVERT(VARCHAR(8000), items.patient_id, 2))
FROM (SELECT patient_id, number, authority FROM patient_numbers
) items
WHERE items.number IN (?) AND (items.number COLLATE Latin1_General_100_BIN2) IN (?))) AND pas.patient_id IS NOT NULL

-- texts: name contains
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE (((' ' + (trim(replace(replace(replace(replace(translate(replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace((lower(pas.used_name) COLLATE Latin1_General_100_BIN2), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?)) COLLATE Latin1_General_100_CI_AI)) LIKE ? ESCAPE '!' OR (' ' + (trim(replace(replace(replace(replace(translate(replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace((lower(pas.birth_name) COLLATE Latin1_General_100_BIN2), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?)) COLLATE Latin1_General_100_CI_AI)) LIKE ? ESCAPE '!') OR ((' ' + (trim(replace(replace(replace(replace(translate(replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace((lower(pas.used_name) COLLATE Latin1_General_100_BIN2), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?)) COLLATE Latin1_General_100_CI_AI)) LIKE ? ESCAPE '!' OR (' ' + (trim(replace(replace(replace(replace(translate(replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace((lower(pas.birth_name) COLLATE Latin1_General_100_BIN2), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?)) COLLATE Latin1_General_100_CI_AI)) LIKE ? ESCAPE '!')) AND pas.patient_id IS NOT NULL

-- texts: name is
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE (((' ' + (trim(replace(replace(replace(replace(translate(replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace((lower(pas.used_name) COLLATE Latin1_General_100_BIN2), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?)) COLLATE Latin1_General_100_CI_AI)) LIKE ? ESCAPE '!' OR (' ' + (trim(replace(replace(replace(replace(translate(replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace((lower(pas.birth_name) COLLATE Latin1_General_100_BIN2), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?)) COLLATE Latin1_General_100_CI_AI)) LIKE ? ESCAPE '!') OR ((' ' + (trim(replace(replace(replace(replace(translate(replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace((lower(pas.used_name) COLLATE Latin1_General_100_BIN2), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?)) COLLATE Latin1_General_100_CI_AI)) LIKE ? ESCAPE '!' OR (' ' + (trim(replace(replace(replace(replace(translate(replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace((lower(pas.birth_name) COLLATE Latin1_General_100_BIN2), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?)) COLLATE Latin1_General_100_CI_AI)) LIKE ? ESCAPE '!')) AND pas.patient_id IS NOT NULL

-- texts: born after
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE ((pas.born COLLATE Latin1_General_100_BIN2) >= ? AND (pas.born COLLATE Latin1_General_100_BIN2) NOT IN (?) OR pas.born IN (?, ?, ?, ?, ?, ?, ?) AND (pas.born COLLATE Latin1_General_100_BIN2) IN (?, ?, ?, ?, ?, ?, ?)) AND pas.patient_id IS NOT NULL

-- uuids: id
SELECT TOP (?) LOWER(CONVERT(CHAR(36), pas.stay_id)), pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, CONVERT(VARCHAR(33), pas.began, 121), CONVERT(VARCHAR(33), pas.ended, 121), pas.unit, CONVERT(VARCHAR(33), pas.changed, 121)
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.stay_id IN (CAST(? AS UNIQUEIDENTIFIER)) AND ((pas.state COLLATE Latin1_General_100_BIN2) NOT IN (?, ?) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL
ORDER BY pas.stay_id ASC

-- uuids: next page
SELECT TOP (?) LOWER(CONVERT(CHAR(36), pas.stay_id)), pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, CONVERT(VARCHAR(33), pas.began, 121), CONVERT(VARCHAR(33), pas.ended, 121), pas.unit, CONVERT(VARCHAR(33), pas.changed, 121)
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE ((pas.state COLLATE Latin1_General_100_BIN2) NOT IN (?, ?) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND pas.changed IS NOT NULL AND pas.changed <= CAST(? AS DATETIME2) AND (pas.changed < CAST(? AS DATETIME2) OR pas.stay_id < CAST(? AS UNIQUEIDENTIFIER))
ORDER BY pas.changed DESC, pas.stay_id DESC

-- uuids: next page
SELECT TOP (?) LOWER(CONVERT(CHAR(36), pas.stay_id)), pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, CONVERT(VARCHAR(33), pas.began, 121), CONVERT(VARCHAR(33), pas.ended, 121), pas.unit, CONVERT(VARCHAR(33), pas.changed, 121)
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE ((pas.state COLLATE Latin1_General_100_BIN2) NOT IN (?, ?) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND pas.changed IS NULL
ORDER BY pas.stay_id DESC

-- uuids: dates
SELECT TOP (?) LOWER(CONVERT(CHAR(36), pas.stay_id)), pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, CONVERT(VARCHAR(33), pas.began, 121), CONVERT(VARCHAR(33), pas.ended, 121), pas.unit, CONVERT(VARCHAR(33), pas.changed, 121)
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.began >= CAST(? AS DATETIME2) AND pas.began NOT IN (CAST(? AS DATETIME2)) AND pas.began < CAST(? AS DATETIME2) AND pas.began NOT IN (CAST(? AS DATETIME2)) AND ((pas.state COLLATE Latin1_General_100_BIN2) NOT IN (?, ?) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL AND pas.began NOT IN (CAST(? AS DATETIME2))
ORDER BY pas.began DESC, pas.stay_id DESC

-- uuids: patient
SELECT patients.patient_id, patients.replaced_by
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) patients
WHERE patients.patient_id IN (?) AND patients.patient_id + 0x01 IN (CAST(? AS VARBINARY(8000)) + 0x01) AND patients.replaced_by IS NOT NULL
UNION ALL SELECT patients.patient_id, patients.replaced_by
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) patients
WHERE patients.replaced_by IN (?) AND patients.replaced_by + 0x01 IN (CAST(? AS VARBINARY(8000)) + 0x01) AND patients.replaced_by IS NOT NULL

-- uuids: patient
SELECT TOP (?) LOWER(CONVERT(CHAR(36), pas.stay_id)), pas.visit, pas.hospital, pas.patient_id, pas.state, pas.kind, CONVERT(VARCHAR(33), pas.began, 121), CONVERT(VARCHAR(33), pas.ended, 121), pas.unit, CONVERT(VARCHAR(33), pas.changed, 121)
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.patient_id IN (?) AND pas.patient_id + 0x01 IN (CAST(? AS VARBINARY(8000)) + 0x01) AND ((pas.state COLLATE Latin1_General_100_BIN2) NOT IN (?, ?) OR pas.state IS NULL) AND pas.stay_id IS NOT NULL
ORDER BY CASE WHEN pas.changed IS NULL THEN 1 ELSE 0 END, pas.changed DESC, pas.stay_id DESC

-- uuids: number
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE pas.patient_id IN (SELECT items.patient_id
FROM (SELECT patient_id, number, authority FROM patient_numbers
) items
WHERE items.number IN (?) AND (items.number COLLATE Latin1_General_100_BIN2) IN (?)) AND pas.patient_id IS NOT NULL

-- uuids: name starts
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE ((' ' + (trim(replace(replace(replace(replace(translate(replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace((lower(CAST(pas.used_name AS NVARCHAR(4000))) COLLATE Latin1_General_100_BIN2), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?)) COLLATE Latin1_General_100_CI_AI)) LIKE ? ESCAPE '!' OR (' ' + (trim(replace(replace(replace(replace(translate(replace(translate(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace((lower(CAST(pas.birth_name AS NVARCHAR(4000))) COLLATE Latin1_General_100_BIN2), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?), ?, ?)) COLLATE Latin1_General_100_CI_AI)) LIKE ? ESCAPE '!') AND pas.patient_id IS NOT NULL

-- uuids: born until
SELECT count(*)
FROM (SELECT patient_id, used_name, birth_name, given, sex, born, replaced_by, changed,
       CASE WHEN replaced_by IS NULL THEN 1 ELSE 0 END AS active
FROM patients

) pas
WHERE (pas.born < ? OR pas.born < ? AND pas.born NOT IN (?)) AND pas.patient_id IS NOT NULL

-- codes counted
SELECT TOP (?) (pas.state COLLATE Latin1_General_100_BIN2), count(*)
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
GROUP BY (pas.state COLLATE Latin1_General_100_BIN2)
ORDER BY count(*) DESC

-- ends in blanks
SELECT count(*)
FROM (SELECT s.stay_id, COALESCE(p.replaced_by, s.patient_id) AS patient_id, s.state,
       s.kind, s.began, s.ended, s.visit, s.hospital, s.unit, s.changed
FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id

) pas
WHERE pas.visit <> rtrim(pas.visit)
