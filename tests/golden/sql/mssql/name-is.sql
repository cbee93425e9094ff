SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE patients.name IN (?) AND (patients.name COLLATE Latin1_General_100_BIN2) IN (?)
