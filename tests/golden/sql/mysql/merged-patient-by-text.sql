SELECT id, patient, state, began 
FROM (SELECT id, patient, state, began FROM stays -- all
) AS pas 
WHERE patient IN (%(v0)s, (SELECT CASE WHEN (CAST(CAST(rtrim(convert(merged USING utf8mb4) COLLATE utf8mb4_bin) AS SIGNED INTEGER) AS CHAR) = rtrim(convert(merged USING utf8mb4) COLLATE utf8mb4_bin)) THEN CAST(rtrim(convert(merged USING utf8mb4) COLLATE utf8mb4_bin) AS SIGNED INTEGER) END AS anon_1 
FROM (SELECT id, name, merged FROM patients WHERE note <> ':x'
) AS pas 
WHERE id IN (%(v1)s) AND (convert(id USING utf8mb4) COLLATE utf8mb4_bin) IN (%(v1)s) AND merged IS NOT NULL 
 LIMIT %(param_1)s))
