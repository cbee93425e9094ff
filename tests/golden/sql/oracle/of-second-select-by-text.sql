SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) pas 
WHERE CAST(id AS VARCHAR2(64 CHAR)) IN (SELECT id 
FROM (SELECT patient, digits FROM numbers
) pas 
WHERE digits IN (:v0))
