SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) pas 
WHERE id IN (SELECT CAST(patient AS VARCHAR2(64 CHAR)) AS patient 
FROM (SELECT patient, digits FROM numbers
) pas 
WHERE digits IN (:v0))
