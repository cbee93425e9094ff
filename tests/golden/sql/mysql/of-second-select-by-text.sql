SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (SELECT CASE WHEN (CAST(CAST(rtrim(convert(id USING utf8mb4) COLLATE utf8mb4_bin) AS SIGNED INTEGER) AS CHAR) = rtrim(convert(id USING utf8mb4) COLLATE utf8mb4_bin)) THEN CAST(rtrim(convert(id USING utf8mb4) COLLATE utf8mb4_bin) AS SIGNED INTEGER) END AS anon_1 
FROM (SELECT patient, digits FROM numbers
) AS pas 
WHERE digits IN (%(v0)s) AND (convert(digits USING utf8mb4) COLLATE utf8mb4_bin) IN (%(v0)s))
