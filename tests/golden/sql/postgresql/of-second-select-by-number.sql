SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (SELECT CAST(patient AS VARCHAR(64)) AS patient 
FROM (SELECT patient, digits FROM numbers
) AS pas 
WHERE digits IN (%(v0)s))
