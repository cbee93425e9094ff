SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (SELECT CAST(patient AS CHAR(64)) AS patient 
FROM (SELECT patient, digits FROM numbers
) AS pas 
WHERE digits IN (%(v0)s) AND (convert(digits USING utf8mb4) COLLATE utf8mb4_bin) IN (%(v0)s)) AND (convert(id USING utf8mb4) COLLATE utf8mb4_bin) IN (SELECT CAST(patient AS CHAR(64)) AS patient 
FROM (SELECT patient, digits FROM numbers
) AS pas 
WHERE digits IN (%(v0)s) AND (convert(digits USING utf8mb4) COLLATE utf8mb4_bin) IN (%(v0)s))
