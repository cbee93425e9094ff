SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE CAST(id AS VARCHAR(64)) IN (SELECT id COLLATE Latin1_General_100_BIN2 AS anon_1 
FROM (SELECT patient, digits FROM numbers
) AS pas 
WHERE digits IN (?) AND (digits COLLATE Latin1_General_100_BIN2) IN (?))
