SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE CAST(patients.id AS VARCHAR2(64 CHAR)) IN (SELECT items.code
FROM (SELECT patient, digits FROM numbers
) items
WHERE items.digits IN (:v1))
