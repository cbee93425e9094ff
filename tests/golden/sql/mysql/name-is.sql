SELECT id 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE name IN (%(v0)s) AND (convert(name USING utf8mb4) COLLATE utf8mb4_bin) IN (%(v0)s)
