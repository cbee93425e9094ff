SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (SELECT CASE WHEN (CAST(CAST(rtrim(id COLLATE "BINARY") AS BIGINT) AS TEXT) = rtrim(id COLLATE "BINARY")) THEN CAST(rtrim(id COLLATE "BINARY") AS BIGINT) END AS anon_1 
FROM (SELECT patient, digits FROM numbers
) AS pas 
WHERE digits IN (?))
