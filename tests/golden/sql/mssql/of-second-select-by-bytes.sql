SELECT patients.id
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) patients
WHERE patients.code IN (SELECT LOWER(CONVERT(VARCHAR(8000), items.bytes, 2))
FROM (SELECT patient, digits FROM numbers
) items
WHERE items.digits IN (?) AND (items.digits COLLATE Latin1_General_100_BIN2) IN (?)) AND (patients.code COLLATE Latin1_General_100_BIN2) IN (SELECT LOWER(CONVERT(VARCHAR(8000), items.bytes, 2))
FROM (SELECT patient, digits FROM numbers
) items
WHERE items.digits IN (?) AND (items.digits COLLATE Latin1_General_100_BIN2) IN (?))
