SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE patients.id IN (SELECT items.patient
FROM (SELECT patient, digits FROM numbers
) items
WHERE items.digits IN (?) AND (items.digits COLLATE Latin1_General_100_BIN2) IN (?))
